#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_corpus.py: writes the seeds of the roce_parse, cm, vxlan, acl, analyze, replay and files corpora, seed-* in tests/fuzz/corpus/NAME/. Other files there were found by
fuzzing and stay. Written from the standards, not from roce/."""
import random
import struct
import zlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def ip4_checksum(header):
    s = sum(struct.unpack(f">{len(header) // 2}H", header))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def packet(opcode, ext=b"", payload=b"", ip6=False, options=b"", qpn=0x12, psn=7, flags=0, frag=0x4000, swap=False, ext6=b"",
           first6=17):
    pad = -len(payload) % 4
    bth = struct.pack(">BBHII", opcode, flags | pad << 4, 0xFFFF, qpn, psn)
    data = bth + ext + payload + bytes(pad)
    udp = struct.pack(">4H", 49152, 4791, 8 + len(data) + 4, 0)
    ends = [1, 2] if not swap else [2, 1]
    if ip6:
        a, b = (bytes([0xFD] + [0] * 14 + [e]) for e in ends)
        head = struct.pack(">IHBB", 6 << 28 | 0x6A << 20 | 0x12345, len(ext6) + 8 + len(data) + 4, first6, 64) + a + b + ext6
        masked = bytes([head[0] | 15, 255, 255, 255]) + head[4:7] + b"\xff" + head[8:]
    else:
        a, b = (bytes([10, 0, 0, e]) for e in ends)
        ihl = 5 + len(options) // 4
        head = struct.pack(">BBHHHBBH", 0x40 | ihl, 0x6A, ihl * 4 + 8 + len(data) + 4, 1, frag, 64, 17, 0) + a + b + options
        head = head[:10] + struct.pack(">H", ip4_checksum(head)) + head[12:]
        masked = head[:1] + b"\xff" + head[2:8] + b"\xff" + head[9:10] + b"\xff\xff" + head[12:]
    crc = zlib.crc32(b"\xff" * 8 + masked + udp[:6] + b"\xff\xff" + data[:4] + b"\xff" + data[5:])
    return head + udp + data + struct.pack("<I", crc)


RETH = struct.pack(">QII", 0x7F0000001000, 0xABCD, 4096)
ATOMIC = struct.pack(">QIQQ", 0x7F0000001000, 0xABCD, 1, 2)
GSI = struct.pack(">II", 0x80010000, 1)


def mad(attr, body, tid=1):
    return struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, tid, attr, 0, 0) + body.ljust(232, b"\0")


def cm(attr, body, swap=False, tid=1, ip6=False):
    return packet(0x64, GSI, mad(attr, body, tid), qpn=1, swap=swap, ip6=ip6)


def req(comm=0xA1, qpn=0xAA, psn=0x100):
    gid = bytes(10) + b"\xff\xff" + b"\x0a\0\0"
    body = struct.pack(">IIQQII", comm, 0, 0x1061B58, 0x11, 0, 0)
    body += struct.pack(">IIII", qpn << 8 | 16, 16, 20 << 3, psn << 8 | 20 << 3 | 7)
    body += struct.pack(">HBBHH", 0xFFFF, 3 << 4 | 7, 15 << 4, 0, 0) + gid + b"\x01" + gid + b"\x02"
    return body + struct.pack(">IBBBB", 0, 0, 64, 0, 19 << 3)


def rep(comm=0xB2, remote=0xA1, qpn=0xBB, psn=0x200):
    return struct.pack(">IIIIII4B", comm, remote, 0, qpn << 8, 0, psn << 8, 16, 16, 15 << 3, 7 << 5)


def ids(local, remote, more=b""):
    return struct.pack(">II", local, remote) + more


def parse_seeds():
    yield "send-only", packet(0x04, payload=b"hello")
    yield "send-only-empty", packet(0x04)
    yield "write-only", packet(0x0A, RETH, bytes(64))
    yield "write-first-ip6", packet(0x06, RETH, bytes(256), ip6=True)
    yield "write-middle", packet(0x07, b"", bytes(256))
    yield "write-last-imm", packet(0x09, b"\1\2\3\4", b"abc")
    yield "send-last-inv", packet(0x16, b"\1\2\3\4", b"abcdefg")
    yield "read-request", packet(0x0C, RETH)
    yield "read-response-only", packet(0x10, b"\x1f\0\0\1", b"abcd")
    yield "ack", packet(0x11, b"\x1f\0\0\1")
    yield "nak", packet(0x11, b"\x60\0\0\1", ip6=True)
    yield "atomic-ack", packet(0x12, b"\x1f\0\0\1" + bytes(8))
    yield "compare-swap", packet(0x13, ATOMIC)
    yield "uc-send", packet(0x24, payload=b"abcd", flags=0x40)
    yield "ud-send", packet(0x64, struct.pack(">II", 0x11111111, 5), b"x")
    yield "rd-read", packet(0x4C, bytes(12) + RETH)
    yield "xrc-write", packet(0xAA, bytes(4) + RETH, b"abcd")
    yield "cnp", packet(0x81, bytes(16))
    yield "options", packet(0x04, payload=b"abcd", options=b"\1" * 40)
    yield "fragment", packet(0x04, payload=b"abcd", frag=0x2000)
    yield "later-fragment", packet(0x04, payload=b"abcd", frag=0x0005)
    yield "ip6-hop-by-hop", packet(0x04, payload=b"abcd", ip6=True, ext6=b"\x11\0" + bytes(6), first6=0)
    yield "ip6-fragment", packet(0x04, payload=b"abcd", ip6=True, ext6=b"\x11\0\0\1" + bytes(4), first6=44)
    yield "reserved-opcode", packet(0x1F)
    yield "version", packet(0x04, flags=1)
    yield "padding", packet(0x11, b"\x1f\0\0\1") + bytes(6)


def cm_seeds():
    def talk(*packets):
        return b"\0" + b"".join(struct.pack(">H", len(p)) + p for p in packets)

    set_up = [cm(0x10, req()), cm(0x13, rep(), swap=True), cm(0x14, ids(0xA1, 0xB2))]
    yield "set-up", talk(*set_up)
    yield "disconnect", talk(*set_up, cm(0x15, ids(0xA1, 0xB2, struct.pack(">I", 0xBB << 8)), tid=9),
                             cm(0x16, ids(0xB2, 0xA1), swap=True, tid=9))
    yield "reject", talk(set_up[0], cm(0x12, ids(0, 0xA1, struct.pack(">BBH", 0, 0, 28)), swap=True))
    yield "mra", talk(set_up[0], cm(0x11, ids(0xB2, 0xA1, b"\0\xc8"), swap=True), set_up[1])
    yield "rep-first", talk(set_up[1], set_up[0])
    yield "replay", talk(*set_up, *set_up)
    yield "reuse", talk(*set_up, cm(0x10, req(0xA9, 0xAA, 5), tid=2), cm(0x13, rep(0xB9, 0xA9, 0xBC, 6), swap=True, tid=2))
    yield "ip6", talk(cm(0x10, req(), ip6=True))
    yield "sidr", talk(cm(0x17, bytes(32)))
    yield "many", talk(*(cm(0x10, req(i, i, i), tid=i) for i in range(1, 11)))
    # commands: attribute, direction, tid, local, remote, qpn, psn, time
    c = bytes
    yield "c-set-up", b"\1" + c([1, 0, 1, 1, 0, 1, 1, 1]) + c([4, 1, 1, 2, 1, 2, 2, 1]) + c([6, 0, 0, 1, 2, 2, 0, 1])
    yield "c-reuse", b"\1" + b"".join(c([1, 0, i, i, 0, 1, i, 0]) + c([4, 1, i, 3, i, 2, i, 0]) for i in range(4))
    yield "c-age", b"\1" + c([1, 0, 1, 1, 0, 1, 1, 255]) * 8
    yield "c-forget", b"\1" + c([1, 0, 1, 1, 0, 1, 1, 1]) + c([4, 1, 1, 2, 1, 2, 2, 1]) + c([128, 1, 0, 0, 0, 2, 0, 0])


MAC1, MAC2, GW_MAC = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2]), bytes([2, 0, 0, 0, 0, 0xFE])


def vxlan(inner, ip6=False, vni=5, flags=8, tos=0x6A, tag=b"", etype=None, dport=4789, first=0, frag=0x4000):
    """An input of fuzz_vxlan: its first byte, then a packet from the outer IP header on."""
    etype = etype or {4: 0x0800, 6: 0x86DD}.get(inner[0] >> 4 if inner else 0, 0x0806)
    data = struct.pack(">BxxxI", flags, vni << 8) + MAC2 + MAC1 + tag + struct.pack(">H", etype) + inner
    udp = struct.pack(">4H", 50000, dport, 8 + len(data), 0)
    if ip6:
        a, b = (bytes([0x20, 1, 0xD, 0xB8] + [0] * 11 + [e]) for e in (1, 2))
        return bytes([first]) + struct.pack(">IHBB", 6 << 28 | tos << 20, 8 + len(data), 17, 64) + a + b + udp + data
    head = struct.pack(">BBHHHBBH", 0x45, tos, 28 + len(data), 0, frag, 64, 17, 0) + bytes([192, 0, 2, 1, 192, 0, 2, 2])
    return bytes([first]) + head[:10] + struct.pack(">H", ip4_checksum(head)) + head[12:] + udp + data


def nd(target, kind=135, src=b"\xfd" + bytes(14) + b"\1", first=1):
    dst = bytes([0xFF, 2] + [0] * 9 + [1, 0xFF]) + target[13:]
    icmp = bytes([kind, 0, 0, 0]) + bytes(4) + target + (b"\1\1" + MAC1 if any(src) else b"")
    check = ip4_checksum(src + dst + struct.pack(">II", len(icmp), 58) + icmp)
    ip = struct.pack(">IHBB", 6 << 28, len(icmp), 58, 255) + src + dst
    return bytes([first]) + b"\x33\x33" + dst[12:] + MAC1 + b"\x86\xdd" + ip + icmp[:2] + struct.pack(">H", check) + icmp[4:]


def arp(target, sender=bytes([10, 0, 0, 1]), op=1, dst=b"\xff" * 6, tag=b"", first=1):
    return (bytes([first]) + dst + MAC1 + tag + struct.pack(">HHHBBH", 0x0806, 1, 0x0800, 6, 4, op) + MAC1 + sender + bytes(6) + target)


def vxlan_seeds():
    roce = [packet(0x0A, RETH, b"abcd"), packet(0x0A, RETH, b"abcd", ip6=True)]
    for under in (False, True):
        for i, inner in enumerate(roce):
            yield f"roce{4 + 2 * i}-over{4 + 2 * under}", vxlan(inner, under)
            yield f"roce{4 + 2 * i}-over{4 + 2 * under}-csum", vxlan(inner, under, first=2, tos=0x6B)
            yield f"tag{4 + 2 * i}-over{4 + 2 * under}", vxlan(inner, under, tag=b"\x81\0\x60\7", first=8)
    yield "tag-refused", vxlan(roce[0], tag=b"\x81\0\x60\7")
    yield "two-tags", vxlan(roce[0], tag=b"\x81\0\x60\7\x81\0\x60\7", first=8)
    yield "nested", vxlan(vxlan(roce[0])[1:])
    yield "no-vni-flag", vxlan(roce[0], flags=0)
    yield "gpe", vxlan(roce[0], flags=0x0C)
    yield "vni0", vxlan(roce[0], vni=0)
    yield "fragment", vxlan(roce[0], frag=0x2000)
    yield "other-port", vxlan(roce[0], dport=4790)
    yield "arp-inside", vxlan(arp(bytes([10, 0, 0, 254]))[15:], etype=0x0806)
    yield "frame-as-it-is", vxlan(roce[0], first=4)
    own4, far4, near4 = bytes([10, 0, 0, 254]), bytes([10, 1, 0, 9]), bytes([10, 0, 0, 9])
    own6, far6 = b"\xfd" + bytes(14) + b"\xfe", bytes([0xFD, 0, 0, 1]) + bytes(11) + b"\7"
    for name, target in (("own", own4), ("far", far4), ("near", near4)):
        yield f"arp-{name}", arp(target)
        yield f"arp-{name}-probe", arp(target, bytes(4))
    yield "arp-tagged", arp(far4, tag=b"\x81\0\x60\7", first=3)
    yield "arp-reply", arp(own4, op=2, dst=GW_MAC)
    yield "nd-own", nd(own6)
    yield "nd-far", nd(far6)
    yield "nd-probe", nd(own6, src=bytes(16))
    yield "nd-advert", nd(own6, kind=136)


def acl_seeds():
    rng = random.Random(7)
    for n, size in ((0, 100), (1, 60), (2, 200), (10, 700), (64, 1500), (65, 1500), (130, 3000), (255, 5000)):
        for how in (0, 1):
            yield f"rules{n}-{how}", bytes([n, how]) + rng.randbytes(size)
    yield "raw-zero", bytes([3, 0x80]) + bytes(200)
    any_rule = bytes(34) + b"\0\0\xff\xff\1\xff\1"
    yield "raw-any", bytes([2, 0x81]) + any_rule * 2 + rng.randbytes(60)
    yield "raw-second-bad", bytes([2, 0x80]) + any_rule + b"\1" * 41


def analyze_seeds(with_cm=False):  # and replay's; a table of CM connections makes a run slow
    def capture(*frames):
        out = b""
        for step, ip in frames:
            frame = b"\0" * 12 + b"\x08\x00" + ip
            frame += b"\0" * (len(frame) & 1)  # an even length: Ethernet
            out += struct.pack(">BHB", step, len(frame), 0) + frame
        return out

    writes = [(3, packet(0x0A, struct.pack(">QII", 0, 7, 64), b"d" * 64, psn=i)) for i in range(4)]
    acks = [(200, packet(0x11, struct.pack(">I", 0x1F << 24 | i + 1), psn=i, swap=True, qpn=0x34)) for i in range(4)]
    nak = (50, packet(0x11, struct.pack(">I", 0x60 << 24), psn=1, swap=True, qpn=0x34))
    rnr = (50, packet(0x11, struct.pack(">I", 0x21 << 24), psn=2, swap=True, qpn=0x34))
    read = (5, packet(0x0C, struct.pack(">QII", 0, 7, 2000), psn=4))
    answers = [(9, packet(op, ext, b"r" * n, psn=4 + i, swap=True, qpn=0x34)) for i, (op, ext, n) in enumerate(
        ((0x0D, struct.pack(">I", 5), 1024), (0x0F, struct.pack(">I", 5), 976)))]
    yield "writes", capture(*writes, *acks)
    yield "nak", capture(*writes, nak, *writes[1:], *acks[1:])
    yield "rnr", capture(*writes, rnr, *writes[2:], *acks)
    yield "read", capture(*writes, *acks, read, *answers)
    set_up = [(9, cm(0x10, req(0xA1, 0x34, 0))), (9, cm(0x13, rep(0xB2, 0xA1, 0x12, 0), swap=True)), (9, cm(0x14, ids(0xA1, 0xB2)))]
    ends = [(9, cm(0x15, ids(0xA1, 0xB2, struct.pack(">I", 0x12 << 8)))), (9, cm(0x16, ids(0xB2, 0xA1), swap=True))]
    if with_cm:
        yield "cm", capture(*set_up, *writes, *acks, *ends)


def files_seeds():
    frames = [b"\0" * 12 + b"\x08\x00" + packet(0x0A, struct.pack(">QII", 0, 7, 8), b"d" * 8, psn=i) for i in range(3)]
    for name, order in (("little", "<"), ("big", ">")):
        head = struct.pack(order + "IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        yield f"pcap-{name}", head + b"".join(struct.pack(order + "IIII", i, i, len(f), len(f)) + f for i, f in enumerate(frames))

        def block(kind, body):
            body += bytes(-len(body) % 4)
            return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)

        ng = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
        ng += block(1, struct.pack(order + "HHIHHB3xHH", 1, 0, 65535, 9, 1, 9, 0, 0)) * 2
        for i, f in enumerate(frames):
            comment = struct.pack(order + "HH", 1, 8) + b"comment!" + struct.pack(order + "HHQHH", 4, 8, 5, 0, 0)
            ng += block(6, struct.pack(order + "IIIII", i % 2, 0, i, len(f), len(f)) + f + bytes(-len(f) % 4) + comment)
        yield f"pcapng-{name}", ng + block(5, struct.pack(order + "IIIHHQHH", 0, 0, 9, 5, 8, 7, 0, 0))
    yield "cooked", struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 113) + struct.pack("<IIII", 1, 2, len(frames[0]) + 2, len(frames[0]) + 2) + \
        bytes(14) + frames[0][12:]
    yield "raw", struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + struct.pack("<IIII", 1, 2, len(frames[0]) - 14, len(frames[0])) + frames[0][14:]


def main():
    for name, seeds in (("roce_parse", parse_seeds()), ("cm", cm_seeds()), ("vxlan", vxlan_seeds()), ("acl", acl_seeds()), ("analyze", analyze_seeds()),
                        ("replay", analyze_seeds(with_cm=True)), ("files", files_seeds())):
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, data in seeds:
            (folder / f"seed-{seed}").write_bytes(data)


main()
