# SPDX-License-Identifier: Apache-2.0
# RoCE packets and datagrams of gateways, right and wrong ones: for gw_badinput.py.
import ipaddress
import struct
import zlib

IPS = {side: ("10.%d.0.2" % n, "fd00:%d::2" % n) for side, n in (("a", 1), ("b", 2))}
EXT = {**{op: 16 for op in (0x06, 0x0A, 0x0C)}, 0x0B: 20, **{op: 4 for op in (0x03, 0x05, 0x09, 0x16, 0x17)}, 0x12: 12,
       **{op: 4 for op in (0x0D, 0x0F, 0x10, 0x11)}, 0x13: 28, 0x14: 28}
RC = [op for op in range(0x18) if op != 0x15]
NO_PAYLOAD = {0x0C, 0x11, 0x12, 0x13, 0x14}
KNOWN = set(RC) | set(range(0x20, 0x2C)) | set(range(0x40, 0x56)) | {0x64, 0x65, 0x81} | {0xA0 + op for op in RC}


def csum(data):
    s = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def addr(text):
    return ipaddress.ip_address(text).packed


def ip_packet(src, dst, payload, proto=17, ttl=64, options=b"", frag=0x4000, tos=0, length=None, ext6=b""):
    """An IP packet with right lengths and checksum, or the given length."""
    if ":" in src:
        n = len(ext6) + len(payload) if length is None else length
        return struct.pack(">IHBB", 6 << 28 | tos << 20, n, proto, ttl) + addr(src) + addr(dst) + ext6 + payload
    n = 20 + len(options) + len(payload) if length is None else length
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, tos, n & 0xFFFF, 7, frag, ttl, proto, 0)
    head += addr(src) + addr(dst) + options
    return head[:10] + struct.pack(">H", csum(head)) + head[12:] + payload


def fix_ip4(p):
    hlen = max((p[0] & 15) * 4, 20)
    head = p[:10] + b"\0\0" + p[12:hlen]
    return p[:10] + struct.pack(">H", csum(head)) + p[12:]


def udp(payload, dport=4791, sport=49152, length=None):
    return struct.pack(">4H", sport, dport, 8 + len(payload) if length is None else length, 0) + payload


def icrc(ip):
    """IBA annex A17: over the packet without its last four bytes, with variant fields as ones."""
    p = bytearray(ip[:-4])
    hlen = 40 if p[0] >> 4 == 6 else (p[0] & 15) * 4
    if hlen == 40 and p[0] >> 4 == 6:
        p[0] |= 15
    for i in ([1, 2, 3, 7] if p[0] >> 4 == 6 else [1, 8, 10, 11]) + [hlen + 6, hlen + 7, hlen + 12]:
        p[i] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(p)))


def sealed(ip):
    return ip[:-4] + icrc(ip)


def bth(op, qpn, psn, ack=False, flags=0, pad=0):
    return struct.pack(">BBHII", op, flags | pad << 4, 0xFFFF, qpn, (0x80000000 if ack else 0) | psn & 0xFFFFFF)


def ext_of(op, size=0, syndrome=0x1F):
    if op in (0x06, 0x0A, 0x0B, 0x0C):
        return struct.pack(">QII", 0x1000, 0x77, size) + (bytes(4) if op == 0x0B else b"")
    if op in (0x0D, 0x0F, 0x10, 0x11, 0x12):
        return struct.pack(">I", syndrome << 24 | 1) + (bytes(8) if op == 0x12 else b"")
    return bytes(EXT.get(op, 0))


def roce(side, op, qpn, psn, payload=b"", ack=False, v6=False, ext=None, flags=0, pad=None, tail=b"", host=None, syndrome=0x1F,
         **ip):
    """From the host on this side to the other's. A valid packet unless an argument changes it;
    `tail` follows the payload."""
    src, dst = IPS[side][v6], IPS["ab".replace(side, "")][v6]
    if host:
        src, dst = ("%s%d" % (a[:-1], host) for a in (src, dst))
    pad = -len(payload) % 4 if pad is None else pad
    ext = ext_of(op, len(payload), syndrome) if ext is None else ext
    body = bth(op, qpn, psn, ack, flags, pad) + ext + payload + (tail or bytes(-len(payload) % 4)) + bytes(4)
    return sealed(ip_packet(src, dst, udp(body), **ip))


class Pkt:
    """A RoCE packet as seen on a LAN."""

    def __init__(self, ip):
        hlen = 40 if ip[0] >> 4 == 6 else (ip[0] & 15) * 4
        self.ip, self.v6 = ip, ip[0] >> 4 == 6
        b = ip[hlen + 8:]
        self.op, self.qpn, self.psn, self.ack = b[0], int.from_bytes(b[5:8], "big"), int.from_bytes(b[9:12], "big"), b[8] >> 7
        self.syndrome, self.payload = b[12] if 0x0D <= self.op <= 0x12 else None, b[12 + EXT.get(self.op, 0):-4]
        self.good = icrc(ip) == ip[-4:]


def datagram(d):
    """A datagram with a valid CRC."""
    d = d[:16] + bytes(4) + d[20:]
    return d[:16] + struct.pack(">I", zlib.crc32(d)) + d[20:]


def tunnel_ip(d, src="192.0.2.1", dst="192.0.2.2", sport=4793, dport=4793, **ip):
    return ip_packet(src, dst, udp(d, dport, sport), **ip)
