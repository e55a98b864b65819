# SPDX-License-Identifier: Apache-2.0
# Builds frames from bytes: Ethernet, VLAN, IPv4/IPv6, UDP, VXLAN, BTH with a right ICRC, ARP and
# neighbour discovery; and a socket that sends them. It can make many that differ little; scapy
# checks a sample of them in the test that uses it.
import ctypes
import ipaddress
import os
import socket
import struct
import zlib

ROCE, VXLAN = 4791, 4789
_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
# Bytes between BTH and payload by RC opcode; opcodes that are missing have none.
EXT = {6: 16, 10: 16, 12: 16, 9: 4, 11: 20, 13: 4, 15: 4, 16: 4, 17: 4, 18: 12, 19: 28, 20: 28, 3: 4, 5: 4, 8: 0, 22: 4, 23: 4}


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def addr(text):
    return ipaddress.ip_address(text).packed


def checksum(data):
    s = sum(struct.unpack(f"!{len(data) // 2}H", data[:len(data) & ~1])) + (data[-1] << 8 if len(data) & 1 else 0)
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff


def ether(dst, src, payload, kind=None, vlan=None):
    """kind: EtherType; by default it follows from the payload's IP version."""
    kind = kind or (0x0800 if payload[0] >> 4 == 4 else 0x86dd)
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    return dst + src + tag + struct.pack("!H", kind) + payload


def ip(src, dst, payload, proto=17, ttl=64, frag=0x4000, tos=0, ident=0):
    """src, dst: packed; their length gives the version. frag: flags and offset of IPv4."""
    if len(src) == 16:
        return struct.pack("!IHBB", 6 << 28 | tos << 20, len(payload), proto, ttl) + src + dst + payload
    head = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(payload), ident, frag, ttl, proto, 0) + src + dst
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def udp(sport, dport, payload):
    """Without a checksum."""
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def vxlan(vni, frame, flags=8, reserved=0):
    return struct.pack("!II", flags << 24 | reserved, vni << 8) + frame


def roce(src, dst, sport, opcode, qpn, psn, ext=b"", payload=b"", ack_req=True, icrc_xor=0, **ip_args):
    """An IP packet of RoCEv2 with its ICRC."""
    pad = -len(payload) % 4
    bth = struct.pack("!BBHII", opcode, 0x40 | pad << 4, 0xffff, qpn, ack_req << 31 | psn)
    body = bth + ext + payload + bytes(pad)
    pkt = bytearray(ip(src, dst, udp(sport, ROCE, body + bytes(4)), **ip_args))
    pkt[-4:] = struct.pack("<I", icrc(pkt) ^ icrc_xor)
    return bytes(pkt)


def icrc(pkt):
    """The ICRC of an IP packet, whose last four bytes are its place (IBA A17.3.3)."""
    p = bytearray(pkt[:-4])
    if p[0] >> 4 == 4:
        p[1] = p[8] = 0xff
        p[10:12] = b"\xff\xff"
        at = 20
    else:
        p[0], p[1:4] = p[0] | 0xf, b"\xff\xff\xff"
        p[7] = 0xff
        at = 40
    p[at + 6:at + 8] = b"\xff\xff"
    p[at + 12] = 0xff
    return zlib.crc32(p, zlib.crc32(b"\xff" * 8))


def arp(op, s_mac, s_ip, t_mac, t_ip):
    return struct.pack("!HHBBH", 1, 0x0800, 6, 4, op) + s_mac + s_ip + t_mac + t_ip


def advert(src, dst, target, lladdr, hop=255, flags=0x60):
    """A neighbour advertisement: an IPv6 packet."""
    body = struct.pack("!BBHB3x", 136, 0, 0, flags) + target + b"\x02\x01" + lladdr
    pseudo = src + dst + struct.pack("!II", len(body), 58)
    body = body[:2] + struct.pack("!H", checksum(pseudo + body)) + body[4:]
    return ip(src, dst, body, proto=58, ttl=hop)


class Injector:
    """A packet socket on a device of a namespace."""

    def __init__(self, netns, dev):
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{netns}", os.O_RDONLY)
        try:
            self._enter(there)
            try:
                self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
                self.sock.bind((dev, 0))
            finally:
                self._enter(here)
        finally:
            os.close(here)
            os.close(there)

    @staticmethod
    def _enter(fd):
        if _libc.setns(fd, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def send(self, frame):
        self.sock.send(frame)

    def close(self):
        self.sock.close()
