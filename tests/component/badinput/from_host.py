# SPDX-License-Identifier: Apache-2.0
# Wrong packets of a host: tests of gw_badinput.py.
import struct

from badinput.lab import HALF_OPEN_MAX, changes, rng
from badinput.packets import EXT, IPS, KNOWN, NO_PAYLOAD, Pkt, RC, addr, bth, fix_ip4, ip_packet, roce, sealed, udp


def victim(v6=False, payload=b"x" * 24, **how):
    """A valid packet to a queue pair that does not exist: it would open a flow."""
    return roce("a", 0x0A, 0x777, 5, payload, v6=v6, **how)


def cut_frame(lab):
    """The frame ends before the length in its IP header."""
    for v6, head in ((False, 20), (True, 40)):
        p = victim(v6)
        kind = 0x86DD if v6 else 0x0800
        lab.attack({"gw_drop_bad_ip": head, "drop_rx_truncated": len(p) - head},
                   lambda: lab.a.send([p[:n] for n in range(len(p))], ethertype=kind))


def cut_packet(lab):
    """IP lengths are right, but the packet is truncated: UDP's length wrong, then right."""
    for v6 in (False, True):
        body = victim(v6)[40 if v6 else 20:]
        ips = IPS["a"][v6], IPS["b"][v6]
        cut = [ip_packet(*ips, body[:n]) for n in range(len(body))]
        lab.attack({"drop_bad_udp_length": len(cut)}, lambda: lab.a.send(cut))
        # a truncated WRITE fits its opcode in steps of four from the size with a RETH and an ICRC
        cut = [ip_packet(*ips, udp(body[8:n])) for n in range(8, len(body)) if n < 8 + 12 + 16 + 4 or n % 4]
        lab.attack({"drop_bad_length": len(cut)}, lambda: lab.a.send(cut))


def ip_lengths(lab):
    p = victim()
    bad = [fix_ip4(p[:2] + struct.pack(">H", n) + p[4:]) for n in range(20)]
    lab.attack({"gw_drop_bad_ip": 20}, lambda: lab.a.send(bad))
    long = [fix_ip4(p[:2] + struct.pack(">H", len(p) + n) + p[4:]) for n in (1, 2, 100, 1500, 65535 - len(p))]
    long += [q[:4] + struct.pack(">H", len(q) - 40 + n) + q[6:] for q in [victim(True)] for n in (1, 8, 65535 - len(q) + 40)]
    lab.attack({"drop_rx_truncated": len(long)}, lambda: lab.a.send(long))
    words = [fix_ip4(bytes([0x40 | n]) + p[1:]) for n in range(5)]
    version = [bytes([n << 4 | 5]) + p[1:] for n in range(16) if n != 4]
    lab.attack({"gw_drop_bad_ip": len(words) + len(version)}, lambda: lab.a.send(words + version, ethertype=0x0800))
    version = [bytes([n << 4]) + victim(True)[1:] for n in range(16) if n != 6]
    lab.attack({"gw_drop_bad_ip": len(version)}, lambda: lab.a.send(version, ethertype=0x86DD))


def udp_lengths(lab):
    for v6 in (False, True):
        p, at = victim(v6), 44 if v6 else 24
        right = struct.unpack(">H", p[at:at + 2])[0]
        bad = [sealed(p[:at] + struct.pack(">H", n) + p[at + 2:]) for n in (*range(0, right), right + 1, right + 4, 65535)]
        lab.attack({"drop_bad_udp_length": len(bad)}, lambda: lab.a.send(bad))


def ip_checksum(lab):
    p = victim()
    bad = [p[:10] + struct.pack(">H", struct.unpack(">H", p[10:12])[0] ^ 1 << n) + p[12:] for n in range(16)]
    other = ip_packet(*(IPS[s][0] for s in "ab"), udp(b"other", 9))
    bad += [other[:10] + bytes([other[10] ^ 1]) + other[11:]]
    lab.attack({"drop_bad_ip": 17}, lambda: lab.a.send(bad))


def payloads(lab):
    """Payloads that do not fit the opcode, with otherwise right lengths and ICRC."""
    bad = []
    for op in RC:
        for v6 in (False, True):
            size = EXT.get(op, 0)
            bad += [roce("a", op, 0x777, 1, ext=bytes(n), v6=v6) for n in range(0, size, 4)]
            bad += [roce("a", op, 0x777, 1, b"p" * n, v6=v6, pad=0, tail=b"q" * t) for n, t in ((0, 1), (0, 2), (4, 3))]
            if op in NO_PAYLOAD:
                bad += [roce("a", op, 0x777, 1, b"p" * n, v6=v6) for n in (1, 4, 64)]
            else:
                bad += [roce("a", op, 0x777, 1, b"", v6=v6, pad=3)]
            if op in (0x00, 0x01, 0x06, 0x07, 0x0D, 0x0E):
                bad += [roce("a", op, 0x777, 1, b"p" * n, v6=v6) for n in (0, 1, 2, 3, 1023)]
            if op in (0x02, 0x03, 0x08, 0x09, 0x0F, 0x16):
                bad += [roce("a", op, 0x777, 1, b"", v6=v6)]
    # FIRST, MIDDLE and LAST without payload are also in the first line, if they have no other error
    lab.attack({"drop_bad_length": len(bad)}, lambda: lab.a.send(bad))


def wrong_icrc(lab):
    for v6 in (False, True):
        p, head = victim(v6), 40 if v6 else 20
        checked = [i for i in range(head + 8 + 12, len(p))]                 # RETH, payload, ICRC
        checked += [head + 8 + i for i in (2, 3, 5, 6, 7, 8, 9, 10, 11)]  # BTH except opcode, flags and variant fields
        checked += [head, head + 1]                                      # UDP source port
        bad = [p[:i] + bytes([p[i] ^ 1 << rng.randrange(8)]) + p[i + 1:] for i in checked]
        bad += [p[:-4] + x for x in (bytes(4), b"\xff" * 4, p[-4:][::-1])]
        bad += [p[:head + 9] + bytes([p[head + 9] ^ 0x80]) + p[head + 10:]]  # solicited event
        lab.attack({"drop_icrc": len(bad)}, lambda: lab.a.send(bad))


def opcodes(lab):
    # Upper three bits of an opcode: RC, UC, RD, UD, CNP, XRC, a manufacturer's own
    counter = ["drop_uncarried_unknown", "drop_unknown_opcode", "drop_rd", "drop_unknown_opcode", "drop_unknown_opcode",
               "drop_xrc", "drop_vendor_opcode", "drop_vendor_opcode"]
    bad = [op for op in range(256) if op not in KNOWN]
    expect = {name: sum(counter[op >> 5] == name for op in bad) for name in counter}
    lab.attack(expect, lambda: lab.a.send([roce("a", op, 0x777, 1, b"p" * 64, v6=bool(op & 1), ext=b"") for op in bad]))
    # RD and XRC are known but not carried: with enough bytes after the BTH they are not too short
    rd = [roce("a", 0x55, 0x777, 1, ext=bytes(12)), roce("a", 0x44, 0x777, 1, b"data", ext=bytes(12)),
          roce("a", 0xA4, 0x777, 1, b"data", ext=bytes(4)), roce("a", 0xAA, 0x777, 1, b"data", ext=bytes(20))]
    lab.attack({"drop_rd": 2, "drop_xrc": 2}, lambda: lab.a.send(rd))
    cnp = [roce("a", 0x81, q, 0, ext=bytes(16)) for q in (0, 1, 0x777, 0xFFFFFF)]
    lab.attack({"rp_cnp_handled": len(cnp)}, lambda: lab.a.send(cnp))


def bth_version(lab):
    bad = [victim(v6, flags=n) for n in range(1, 16) for v6 in (False, True)]
    lab.attack({"drop_bad_bth": len(bad)}, lambda: lab.a.send(bad))


def fragments(lab):
    """The kernel under net_af_packet keeps IPv4 fragments to join them (the engine's own check:
    test_roce_parse). IPv6 fragments arrive."""
    p = victim()
    pieces = [fix_ip4(p[:6] + struct.pack(">H", f) + p[8:]) for f in (0x2000, 0x6000, 0xA000, 1, 0x2001, 0x1FFF)]
    pieces += [ip_packet(*(IPS[s][0] for s in "ab"), p[20:20 + n], frag=0x2000) for n in (4, 8, 16, 24)]
    lab.attack({}, lambda: lab.a.send(pieces))
    body, ips = victim(True)[40:], (IPS["a"][1], IPS["b"][1])
    first = [ip_packet(*ips, body, proto=44, ext6=b"\x11\0\0" + bytes([m]) + b"\1\2\3\4") for m in (0, 1)]
    lab.attack({"drop_ip_fragment": 2}, lambda: lab.a.send(first))
    later = [ip_packet(*ips, body, proto=44, ext6=b"\x11\0\0" + bytes([m]) + b"\1\2\3\4") for m in (8, 9)]
    lab.attack({"dgrams": 2}, lambda: lab.a.send(later), seen=2)


def options(lab):
    p = victim()
    bad = [fix_ip4(bytes([0x4F]) + p[1:2] + struct.pack(">H", n) + p[4:] + bytes(20)) for n in (20, 24, 56, 59)]
    lab.attack({"gw_drop_bad_ip": len(bad)}, lambda: lab.a.send(bad))
    cut = [fix_ip4(bytes([0x40 | n]) + p[1:]) for n in range(6, 16)]  # options where UDP was: another port, or none
    lab.attack({"dgrams": 10}, lambda: lab.a.send(cut), seen=10)
    ends = [ip_packet(*(IPS[s][0] for s in "ab"), b"", options=b"\1" * n) for n in (4, 20, 40)]
    lab.attack({"drop_bad_udp_length": 3}, lambda: lab.a.send(ends))


def ip6_extensions(lab):
    body = victim(True)[40:]
    ips = IPS["a"][1], IPS["b"][1]
    opts = b"\x11\0\1\4" + bytes(4)
    bad = [ip_packet(*ips, body, proto=p, ext6=opts) for p in (0, 43, 60)]
    bad += [ip_packet(*ips, body, proto=0, ext6=b"\x3c\0\1\4" + bytes(4) + opts)]
    bad += [ip_packet(*ips, body, proto=60, ext6=(b"\x3c\0\1\4" + bytes(4)) * 9)]          # too many
    bad += [ip_packet(*ips, b"", proto=0, ext6=b"\x11" + bytes([n]) + bytes(6)) for n in (1, 9, 255)]  # past the end
    bad += [ip_packet(*ips, b"", proto=p, ext6=bytes(n)) for p in (0, 43, 44, 60) for n in range(8)]
    bad += [ip_packet(*ips, b"", proto=44, ext6=b"\x3c\0\0\1" + bytes(4) + opts)]          # UDP's header is in the next fragment
    lab.attack({"drop_bad_ip": len(bad)}, lambda: lab.a.send(bad))


def mapped(lab):
    """IPv6 packets with IPv4-mapped addresses (RFC 4291, 2.5.5.2), which are no IPv4 hosts'."""
    v4 = ["::ffff:" + IPS[s][0] for s in "ab"]
    v6 = [IPS[s][1] for s in "ab"]
    body = victim(True)[40:]
    bad = [sealed(ip_packet(src, dst, body)) for src, dst in (v4, (v4[0], v6[1]), (v6[0], v4[1]))]
    bad += [ip_packet(*v4, udp(b"other", 9)), ip_packet(*v4, b"tcp", proto=6)]
    lab.attack({"gw_drop_bad_ip": len(bad)}, lambda: lab.a.send(bad))


def unknown_qpn(lab):
    """Answers for queue pairs that do not exist, from either side."""
    for host, at in ((lab.a, "a"), (lab.b, "b")):
        bad = [roce(host.side, 0x11, q, 9, syndrome=s, v6=v6) for s in range(256) for q, v6 in ((0x777, False), (0, True))]
        bad += [roce(host.side, op, q, 9, b"d" * 64, v6=v6) for op in (0x0D, 0x0E, 0x0F, 0x10) for q in (2, 0xFFFFFF)
                for v6 in (False, True)]
        bad += [roce(host.side, 0x12, 0x778, 9), roce(host.side, 0x10, 0x778, 9)]
        lab.attack({"drop_unknown_qpn": len(bad)}, lambda: host.send(bad), at=at)


def foreign_source(lab):
    """A host takes an address of the other site, or one that no LAN port leads to. Errors of
    routers, which may have any address, pass."""
    to = IPS["b"]
    sources = ("10.2.0.9", "203.0.113.5", "0.0.0.0"), ("fd00:2::9", "2001:db8::5")
    bad = [sealed(ip_packet(src, to[v6], udp(bth(0x0A, 0x777, 5, True, 0, 0) + bytes(16) + bytes(28))))
           for v6 in (0, 1) for src in sources[v6]]
    bad += [ip_packet(src, to[v6], udp(b"hello", 9)) for v6 in (0, 1) for src in sources[v6]]
    lab.attack({"drop_lan_foreign_source": len(bad)}, lambda: lab.a.send(bad))
    lab.attack({"drop_lan_foreign_source": 20}, lambda: lab.a.send(bad[:1] * 20))
    # between others: what was decided for one address is not used for the next
    mixed = [p for _ in range(3) for p in (bad[0], ip_packet("10.1.0.77", to[0], udp(b"hello", 9)))]
    lab.attack({"drop_lan_foreign_source": 3, "dgrams": 3}, lambda: lab.a.send(mixed), seen=3)
    errors = [ip_packet("203.0.113.5", to[0], b"\3\4" + bytes(6) + victim()[:28], proto=1)]
    lab.attack({"dgrams": 1}, lambda: lab.a.send(errors), seen=1)


def ghost_acks(lab):
    """Unexpected answers on an existing connection: B's, to A's queue pair."""
    for v6, flow in lab.lasting.items():
        q, psn = flow["qp"]["peer"], flow["psn"]
        ghosts = [roce("b", 0x11, q, psn + n, syndrome=s, v6=v6) for s in range(256) for n in (0, 5, 0x400000)]
        ghosts += [roce("b", 0x11, q, psn - n, syndrome=s, v6=v6) for s in (0x1F, 0x20, 0x60, 0x61, 0x63) for n in (1, 2, 900)]
        lab.attack({"drop_ghost_ack": len(ghosts)}, lambda: lab.b.send(ghosts), at="b")
        old = [roce("b", op, q, psn + n, b"d" * 256 if op != 0x12 else b"", v6=v6) for op in (0x0D, 0x0E, 0x0F, 0x10, 0x12)
               for n in (-1, 0, 7)]
        lab.attack({"drop_old_response": len(old)}, lambda: lab.b.send(old), at="b")


def psn_window(lab):
    """Other PSNs than the expected one. One far off may belong to a new queue pair: the far host is
    asked, and denies it."""
    for v6, flow in lab.lasting.items():
        q, psn = flow["qpn"], flow["psn"]
        epsn = flow["qp"]["epsn"]
        for off in (1, 2, 100, 0x3FFF, 0x4000, 0x7FFFFF, -1, -2, -100, -0x10000, -0x7FFFFF):
            lab.a.send([roce("a", 0x0A, q, psn + off & 0xFFFFFF, b"wrong", ack=True, v6=v6)])
            for h in (lab.a, lab.b):
                h.pump(0.03)
        assert flow["qp"]["epsn"] == epsn, "the host took a packet that was never due"
        lab.works()


def sequences(lab):
    """Opcodes out of sequence, inconsistent lengths: that connection ends, and no other."""
    wrong = [(0x01, b"m" * 1024), (0x02, b"l"), (0x07, b"m" * 1024), (0x08, b"l"), (0x00, b"f" * 1000)]
    for op, payload in wrong:
        flow = lab.connect()
        p = roce("a", op, flow["qpn"], flow["psn"], payload)
        lab.attack({"drop_bad_sequence": 1, "naks_sent": 1}, lambda: lab.a.send([p]))
    flow = lab.connect()
    p = roce("a", 0x0A, flow["qpn"], flow["psn"], b"four", ext=struct.pack(">QII", 0, 0, 5))
    lab.attack({"drop_bad_sequence": 1, "naks_sent": 1}, lambda: lab.a.send([p]))


GSI = struct.pack(">II", 0x80010000, 1)


def mad(attr, body=b"", tid=1, mgmt=7, version=1, cls=2, method=3):
    return struct.pack(">BBBBHHQHHI", version, mgmt, cls, method, 0, 0, tid, attr, 0, 0) + body.ljust(232, b"\0")


def cm(side, data, **how):
    return roce(side, 0x64, 1, 0, data, ext=how.pop("ext", GSI), **how)


def cm_req(comm, qpn, psn, side="a"):
    gids = [addr("::ffff:" + IPS[s][0]) for s in (side, "ab".replace(side, ""))]
    body = struct.pack(">IIQQII", comm, 0, 0x1061B58, 0x11, 0, 0) + struct.pack(">IIII", qpn << 8 | 16, 16, 0xA0, psn << 8 | 0xA7)
    return mad(0x10, body + struct.pack(">HBBHH", 0xFFFF, 0x37, 0xF0, 0, 0) + gids[0] + gids[1] + struct.pack(">IBBBB", 0, 0, 64, 0, 152))


def cm_rep(comm, remote, qpn, psn):
    return mad(0x13, struct.pack(">IIIIII4B", comm, remote, 0, qpn << 8, 0, psn << 8, 16, 16, 0x78, 0xE0))


def cm_ids(attr, local, remote, more=b""):
    return mad(attr, struct.pack(">II", local, remote) + more)


def bad_mads(lab):
    """A malformed CM MAD is counted and dropped; other management is carried unchecked."""
    sizes = [n for n in range(0, 300) if n != 256]
    lab.attack({"drop_bad_cm": len(sizes)}, lambda: lab.a.send([cm("a", cm_req(1, 2, 3).ljust(300, b"z")[:n]) for n in sizes]),
               seen=0)
    # other management classes, methods and versions are carried unchecked
    other = [mad(0x10, mgmt=c) for c in range(256) if c != 7] + [mad(0x10, version=v) for v in (0, 2, 255)]
    other += [mad(0x10, cls=v) for v in (0, 1, 3)] + [mad(0x10, method=m) for m in (1, 2, 0x81)]
    lab.attack({}, lambda: lab.a.send([cm("a", m) for m in other]), seen=len(other))
    keys = [struct.pack(">II", 0, 1), struct.pack(">II", 0x80010000, 2), struct.pack(">II", 0xFFFFFFFF, 0)]
    lab.attack({}, lambda: lab.a.send([cm("a", cm_req(1, 2, 3), ext=k) for k in keys]), seen=3)


def stray_mads(lab):
    """Valid messages about connections that do not exist, replayed ones, unknown attributes, random
    bodies."""
    stray = [cm_rep(9, 8, 0x50, 1)] * 50 + [cm_ids(0x15, 9, 8, struct.pack(">I", 0x50 << 8))] * 50
    stray += [cm_ids(a, 9, 8) for a in (0x11, 0x12, 0x14, 0x16)] * 10
    n = len(stray)
    lab.attack({"cm_messages": n}, lambda: lab.a.send([cm("a", m) for m in stray]), seen=n, at_other={"cm_messages": n})
    odd = [mad(a, rng.randbytes(232)) for a in (0, 1, 0x0F, 0x17, 0x18, 0x19, 0x1A, 0x20, 0xFFFF)]
    odd += [mad(a, b"\xff" * 232) for a in range(0x11, 0x17)]
    lab.attack({"cm_messages": len(odd)}, lambda: lab.a.send([cm("a", m) for m in odd]), seen=len(odd),
               at_other={"cm_messages": len(odd)})
    # REQ twice, then REP 30 times: one connection, learned once
    req, rep = cm("a", cm_req(0x51, 0x61, 7)), cm("b", cm_rep(0x52, 0x51, 0x62, 8))
    lab.attack({"cm_messages": 2}, lambda: lab.a.send([req, req]), seen=2, at_other={"cm_messages": 2})
    done = {"cm_messages": 30, "cm_connections": 1, "conns_opened": 2}
    lab.attack(done, lambda: lab.b.send([rep] * 30), at="b", seen=30, at_other=done, flows=1)


def not_roce(lab):
    other = lambda v6=0, **how: ip_packet(*(IPS[s][v6] for s in "ab"), udp(b"hello", 9), **how)
    lab.attack({"drop_ttl": 4}, lambda: lab.a.send([other(ttl=t, v6=v) for t in (0, 1) for v in (0, 1)]))
    lab.attack({"dgrams": 2}, lambda: lab.a.send([other(ttl=2), other(ttl=2, v6=1)]), seen=2)
    lost = [ip_packet("10.1.0.2", d, udp(b"x", 9)) for d in ("10.9.9.9", "10.1.0.77", "0.0.0.0", "255.255.255.255", "127.0.0.1",
                                                             "224.0.0.5")]
    lost += [ip_packet("fd00:1::2", d, udp(b"x", 9)) for d in ("fd00:9::9", "::", "::1", "ff02::1")]
    lost += [ip_packet("10.1.0.2", "10.9.9.9", victim()[20:])]
    lab.attack({"drop_lan_no_route": len(lost)}, lambda: lab.a.send(lost))


def frames(lab):
    """Ethernet: other addresses, other types, tags, invalid ARP and ND."""
    p = victim()
    tags = [lab.a.frame(p)[:12] + struct.pack(">HH", k, t) + lab.a.frame(p)[12:] for k in (0x8100, 0x88A8)
            for t in (1, 7, 4095, 0xE005)]
    lab.attack({"drop_rx_vlan": len(tags)}, lambda: [lab.a.raw(t) for t in tags])
    kinds = [lab.a.frame(p, ethertype=t) for t in (0x8915, 0x88CC, 0x8847, 0x0600, 0x0000, 0xFFFF)]
    lab.attack({"drop_rx_not_ip": len(kinds)}, lambda: [lab.a.raw(k) for k in kinds])
    lab.attack({"drop_rx_not_ours": 2}, lambda: [lab.a.raw(f) for f in (lab.a.frame(p, dst=b"\2\0\0\0\0\x99"),
                                                                       lab.a.frame(p, src=lab.a.peer))])
    arp = struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + lab.a.mac + addr("10.1.0.2") + bytes(6) + addr("10.1.0.1")
    odd = [arp[:n] for n in range(len(arp))] + [rng.randbytes(28) for _ in range(50)]
    odd += [arp[:6] + struct.pack(">H", n) + arp[8:] for n in (0, 3, 9, 0xFFFF)]
    odd += [arp[:14] + addr(ip) + arp[18:] for ip in ("10.1.0.1", "10.2.0.2", "0.0.0.0", "255.255.255.255")]
    nd = [struct.pack(">BBH", k, 0, 0) + rng.randbytes(n) for k in (133, 134, 135, 136, 137) for n in (0, 4, 20, 28, 60)]
    odd_nd = [ip_packet("fd00:1::2", "fd00:1::1", x, proto=58, ttl=255) for x in nd]
    lab.attack({}, lambda: (lab.a.send(odd, ethertype=0x0806), lab.a.send(odd, ethertype=0x0806, dst=b"\xff" * 6),
                            lab.a.send(odd_nd)))
    lab.attack({}, lambda: lab.a.send([victim(), victim(True), b"", b"\x45", rng.randbytes(1400)], dst=b"\xff" * 6),
               allow=("gw_drop_bad_ip", "drop_rx_truncated"))


def jumbo(lab):
    """Larger than the LAN's MTU and than any path MTU."""
    big = [roce("a", 0x0A, 0x777, 5, bytes(n)) for n in (4097, 5000, 8900)]
    lab.attack({}, lambda: lab.a.send(big), allow=("drop_bad_length", "drop_rx_segments", "drop_rx_truncated"))
    other = [ip_packet("10.1.0.2", "10.2.0.2", udp(bytes(n), 9)) for n in (1472, 1473, 3000, 8900)]
    before = len(lab.b.seen)
    lab.a.send(other)
    lab.b.pump(0.3)
    assert len(lab.b.seen) >= before + 1 and all(len(p) <= 1500 for p in lab.b.seen[before:] if isinstance(p, bytes))
    lab.works()


def noise(lab):
    """Random bytes after headers with more and more valid fields."""
    bad = [rng.randbytes(rng.randrange(1, 1400)) for _ in range(800)]
    bad += [b"\x45" + rng.randbytes(rng.randrange(19, 300)) for _ in range(400)]
    bad += [ip_packet(*(IPS[s][v6] for s in "ab"), rng.randbytes(rng.randrange(0, 400)), proto=rng.choice((0, 43, 44, 60, 17)))
            for _ in range(800) for v6 in (0, 1)]
    bad += [ip_packet(*(IPS[s][v6] for s in "ab"), udp(rng.randbytes(rng.randrange(0, 400)))) for _ in range(800) for v6 in (0, 1)]
    n = lab.gw["a"].flows()
    lab.a.send(bad)
    lab.a.send(bad, ethertype=0x0800)
    lab.a.send(bad, ethertype=0x86DD)
    lab.b.pump(0.3)
    assert lab.gw["a"].flows() == n
    lab.works()


def half_open(lab):
    """Thousands of first packets to queue pairs that do not exist: limited, without effect on other
    flows."""
    g = lab.gw["a"]
    lab.connect()
    memory = [x.rss() for x in lab.gw.values()]
    before, n = g.counters(), g.flows()
    flood = [roce("a", 0x0A, 0x100000 + i, i, bytes(64), host=3) for i in range(3000)]
    lab.a.send(flood)
    lab.a.send(flood)
    lab.b.pump(0.3)
    got = changes(before, g.counters())
    most = range(HALF_OPEN_MAX * 7 // 8, (HALF_OPEN_MAX + 1) * 7 // 8 + 2)  # the rest is for other hosts
    opened = got["conns_opened"]
    assert g.flows() - n in most and opened in most, (n, g.flows(), got)
    assert got["drop_half_open"] >= 2 * (3000 - opened), got
    assert len([p for p in lab.b.seen if isinstance(p, Pkt) and p.qpn >= 0x100000]) >= 1
    lab.works()
    for before_, x in zip(memory, lab.gw.values()):
        assert x.rss() < before_ + (16 << 20), "memory grew from %d to %d" % (before_, x.rss())
