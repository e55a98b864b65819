#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""roce_icrc.py [-q] FILE...: checks the ICRC of every RoCEv2 packet in pcap and pcapng files, and
prints a line about each packet.

Written from IBA annex A17 and the pcap formats alone; shares nothing with roce/. Parses VLAN tags
and VXLAN. Exit status: 0 all ICRCs right (at least one found), 1 a wrong one, 2 an unreadable file,
3 no RoCEv2 packet.
"""
import ipaddress
import struct
import sys
import zlib

ROCE_PORT, VXLAN_PORT = 4791, 4789
SERVICES = {0x00: "RC", 0x20: "UC", 0x40: "RD", 0x60: "UD", 0xA0: "XRC"}
OPERATIONS = (
    "SEND first,SEND middle,SEND last,SEND last imm,SEND only,SEND only imm,WRITE first,WRITE middle,WRITE last,WRITE last imm,"
    "WRITE only,WRITE only imm,READ request,READ response first,READ response middle,READ response last,READ response only,"
    "ACK,ATOMIC ACK,CMP_SWAP,FETCH_ADD,RESYNC,SEND last inv,SEND only inv").split(",")


class BadFile(Exception):
    pass


def opcode_name(op):
    if op == 0x81:
        return "CNP"
    service, n = SERVICES.get(op & 0xE0), op & 0x1F
    return f"{service} {OPERATIONS[n]}" if service and n < len(OPERATIONS) else f"opcode 0x{op:02x}"


def pcap_records(data):
    """(number, link type, bytes, truncated) of a classic pcap file."""
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}.get(data[:4])
    if not order or len(data) < 24:
        raise BadFile("not a pcap or pcapng file")
    link = struct.unpack(order + "I", data[20:24])[0] & 0xFFFF
    at, number = 24, 0
    while at + 16 <= len(data):
        _, _, caplen, origlen = struct.unpack(order + "4I", data[at:at + 16])
        at += 16
        if at + caplen > len(data):
            return
        number += 1
        yield number, link, data[at:at + caplen], caplen < origlen
        at += caplen


def pcapng_records(data):
    order, links, at, number = "<", [], 0, 0
    while at + 12 <= len(data):
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, size = struct.unpack(order + "II", data[at:at + 8])
        if size < 12 or size % 4 or at + size > len(data):
            return
        body = data[at + 8:at + size - 4]
        if kind == 1:
            links.append(struct.unpack(order + "H", body[:2])[0])
        elif kind == 6 and len(body) >= 20:
            iface, _, _, caplen, origlen = struct.unpack(order + "5I", body[:20])
            number += 1
            if iface < len(links):
                yield number, links[iface], body[20:20 + caplen], caplen < origlen
        elif kind == 3 and links:
            origlen = struct.unpack(order + "I", body[:4])[0]
            number += 1
            yield number, links[0], body[4:4 + origlen], len(body) - 4 < origlen
        at += size


def records(path):
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError as e:
        raise BadFile(e.strerror) from e
    return pcapng_records(data) if data[:4] == b"\x0a\x0d\x0d\x0a" else pcap_records(data)


def to_ip(link, frame):
    """The IP packet in a frame, or None."""
    if link in (12, 14, 101):
        return frame
    at = {1: 12, 113: 14, 276: 0}.get(link)
    if at is None or len(frame) < at + 2:
        return None
    ethertype = struct.unpack(">H", frame[at:at + 2])[0]
    at += 20 if link == 276 else 2
    while ethertype in (0x8100, 0x88A8) and len(frame) >= at + 4:
        ethertype = struct.unpack(">H", frame[at + 2:at + 4])[0]
        at += 4
    return frame[at:] if ethertype in (0x0800, 0x86DD) else None


def roce_packets(ip):
    """(IP packet of its own length, offset of UDP, complete) of each RoCEv2 packet in it: at most
    one, perhaps in VXLAN."""
    if len(ip) < 20:
        return
    if ip[0] >> 4 == 4:
        hlen, total, proto = (ip[0] & 15) * 4, struct.unpack(">H", ip[2:4])[0], ip[9]
        if struct.unpack(">H", ip[6:8])[0] & 0x3FFF:
            return
    elif ip[0] >> 4 == 6 and len(ip) >= 40:
        hlen, total, proto = 40, 40 + struct.unpack(">H", ip[4:6])[0], ip[6]
    else:
        return
    if proto != 17 or hlen < 20 or len(ip) < hlen + 8:
        return
    dport = struct.unpack(">H", ip[hlen + 2:hlen + 4])[0]
    if dport == VXLAN_PORT and len(ip) >= hlen + 16:
        inner = to_ip(1, ip[hlen + 16:total])
        if inner:
            yield from roce_packets(inner)
    elif dport == ROCE_PORT:
        yield ip[:total], hlen, len(ip) >= total and total >= hlen + 8 + 12 + 4


def icrc(ip, hlen):
    p = bytearray(ip[:-4])
    if p[0] >> 4 == 4:
        masked = [1, 8, 10, 11]
    else:
        p[0] |= 0x0F
        masked = [1, 2, 3, 7]
    for i in masked + [hlen + 6, hlen + 7, hlen + 8 + 4]:
        p[i] = 0xFF
    return struct.pack("<I", zlib.crc32(bytes(p), zlib.crc32(b"\xff" * 8)))


def describe(ip, hlen):
    src, dst = (ip[12:16], ip[16:20]) if ip[0] >> 4 == 4 else (ip[8:24], ip[24:40])
    bth = ip[hlen + 8:]
    qpn, psn = int.from_bytes(bth[5:8], "big"), int.from_bytes(bth[9:12], "big")
    return (f"{ipaddress.ip_address(src)} > {ipaddress.ip_address(dst)} {opcode_name(bth[0])} qp 0x{qpn:06x} psn {psn} "
            f"len {len(ip)}")


def main(argv):
    quiet = "-q" in argv
    paths = [a for a in argv if a != "-q"]
    good = bad = cut = 0
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    for path in paths:
        try:
            for number, link, frame, _ in records(path):
                ip = to_ip(link, frame)
                for packet, hlen, complete in roce_packets(ip) if ip else ():
                    if not complete:
                        cut += 1
                        continue
                    want = icrc(packet, hlen)
                    ok = want == packet[-4:]
                    good, bad = good + ok, bad + (not ok)
                    if not ok:
                        print(f"{path}:{number}: BAD ICRC {packet[-4:].hex()}, should be {want.hex()}: {describe(packet, hlen)}")
                    elif not quiet:
                        print(f"{path}:{number}: {describe(packet, hlen)}")
        except BadFile as e:
            print(f"{path}: {e}", file=sys.stderr)
            return 2
    print(f"{good} good, {bad} bad" + (f", {cut} cut short and not checked" if cut else ""))
    return 1 if bad else 0 if good else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
