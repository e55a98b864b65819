#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cli_replay.py BUILD: `roceway replay --sim`: what arrives is what was captured, runs repeat, bad input is refused with one line.

cli_replay.py BUILD FILE writes the capture of the tests.
"""
import ipaddress
import json
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import cases

ROCEWAY = Path(sys.argv[1]) / "bin/roceway"
A, B, C = "10.71.33.2", "10.71.34.9", "10.71.35.3"
QPN_A, QPN_B, PSN_A, PSN_B, RKEY, VA = 0x17A9, 0x28BA, 0xFFFFF8, 77, 0x1F2E3D4C, 0x7F53B2C0D1E28000
WRITE_FIRST, WRITE_LAST, SEND_ONLY, READ, READ_ONLY, ACK, FETCH_ADD, ATOMIC_ACK = 0x06, 0x08, 0x04, 0x0C, 0x10, 0x11, 0x14, 0x12
COUNT = 20


def icrc(ip):
    """IBA A17.3.3, IPv4: fields that routers change count as ones."""
    p = bytearray(b"\xff" * 8 + ip)
    for at in (1, 8, 10, 11, 26, 27, 32):
        p[8 + at] = 0xFF
    return struct.pack("<I", zlib.crc32(bytes(p)))


def packet(src, dst, opcode, qpn, psn, rest):
    pad = -len(rest) % 4
    bth = struct.pack(">BBHII", opcode, pad << 4, 0xFFFF, qpn, 1 << 31 | psn & 0xFFFFFF)
    udp_len = 8 + len(bth) + len(rest) + pad + 4
    ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 20 + udp_len, 0, 0x4000, 64, 17, 0))
    ip += ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip[10:12] = struct.pack(">H", 0xFFFF - ((total & 0xFFFF) + (total >> 16)))
    whole = bytes(ip) + struct.pack(">HHHH", 0xD1A7, 4791, udp_len, 0) + bth + rest + bytes(pad)
    return b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\x00" + whole + icrc(whole)


def reth(at, length):
    return struct.pack(">QII", VA + at, RKEY, length)


def aeth(msn):
    return struct.pack(">I", 0x1F << 24 | msn)


def session(a=A, b=B, qpn_a=QPN_A, qpn_b=QPN_B):
    """A SENDs a request; B WRITEs 1500 bytes and SENDs; A READs and counts. [(time in ns, frame)]"""
    out, now, psn_a, psn_b, msn = [], 1_700_000_000 * 10**9, PSN_A, PSN_B, 0

    def add(step, *f):
        nonlocal now
        now += step
        out.append((now, packet(*f)))
    for i in range(COUNT):
        data = bytes((i * 7 + k) & 255 for k in range(1500))
        add(500_000, a, b, SEND_ONLY, qpn_b, psn_a, b"request %d" % i)
        add(10_000, b, a, ACK, qpn_a, psn_a, aeth(3 * i + 1))
        add(50_000, b, a, WRITE_FIRST, qpn_a, psn_b, reth(0, 1500) + data[:1024])
        add(1_000, b, a, WRITE_LAST, qpn_a, psn_b + 1, data[1024:])
        add(1_000, b, a, SEND_ONLY, qpn_a, psn_b + 2, b"answer %d" % i)
        add(10_000, a, b, ACK, qpn_b, psn_b + 2, aeth(2 * i + 2))
        add(20_000, a, b, READ, qpn_b, psn_a + 1, reth(4096, 333))
        add(10_000, b, a, READ_ONLY, qpn_a, psn_a + 1, aeth(3 * i + 2) + data[:333])
        add(20_000, a, b, FETCH_ADD, qpn_b, psn_a + 2, struct.pack(">QIQQ", VA, RKEY, 1, 0))
        add(10_000, b, a, ATOMIC_ACK, qpn_a, psn_a + 2, aeth(3 * i + 3) + struct.pack(">Q", i))
        psn_a, psn_b, msn = psn_a + 3, psn_b + 3, msn + 3
    return out


def mad(attr, body):
    head = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x1122334455667788, attr, 0, 0)
    return struct.pack(">II", 0x80010000, 1) + head + body.ljust(232, b"\0")


def with_cm(frames, psn_a=PSN_A, psn_b=PSN_B, again=False, refused=False):
    """The same behind REQ, REP and RTU, and before DREQ and DREP. again: the REQ is sent twice."""
    gid = [b"\0" * 10 + b"\xff\xff" + ipaddress.ip_address(x).packed for x in (A, B)]

    def q24(n, low=0):
        return struct.pack(">I", (n & 0xFFFFFF) << 8 | low)

    def cm(src, dst, attr, body):
        return packet(src, dst, 0x64, 1, 0, mad(attr, body))

    path = b"\0" * 4 + gid[0] + gid[1] + struct.pack(">IBBBB", 3, 0, 64, 0, 18 << 3)
    req = struct.pack(">IIQQII", 0xA1, 0, 0x1061B58, 0x11, 0, 0) + q24(QPN_A, 4) + q24(0, 4) + q24(0, 0x90) + q24(psn_b, 0x97) + struct.pack(">HBB", 0xFFFF, 3 << 4 | 7, 0xF0) + path
    rep = struct.pack(">III", 0xB2, 0xA1, 0) + q24(QPN_B) + q24(0) + q24(psn_a) + bytes([4, 4, 0, 7 << 5]) + b"\0" * 8
    first, last, ms = frames[0][0], frames[-1][0], 10**6
    before = [(first - 9 * ms, cm(A, B, 0x10, req))] * (2 if again else 1)
    before += [(first - 5 * ms, cm(B, A, 0x13, rep)), (first - 4 * ms, cm(A, B, 0x14, struct.pack(">II", 0xA1, 0xB2)))]
    if refused:
        before[-1] = (first - 4 * ms, cm(A, B, 0x12, struct.pack(">IIBBH", 0xA1, 0xB2, 1 << 6, 0, 28)))
    behind = [(last + 5 * ms, cm(A, B, 0x15, struct.pack(">II", 0xA1, 0xB2) + q24(QPN_B))), (last + 6 * ms, cm(B, A, 0x16, struct.pack(">II", 0xB2, 0xA1)))]
    return before + frames + behind


def seen_from_a(frames, away):
    """The same with B so far away (in ns, there and back) from A, where the capture is taken."""
    out, shift, before = [], 0, None
    for at, f in frames:
        shift += away if f[26:30] == ipaddress.ip_address(B).packed and before != f[26:30] else 0
        before = f[26:30]
        out.append((at + shift, f))
    return out


def pcap(frames, snap=65535, link=1, order="<"):
    out = [struct.pack(order + "IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)]
    for at, f in frames:
        out.append(struct.pack(order + "IIII", at // 10**9, at % 10**9, min(len(f), snap), len(f)) + f[:snap])
    return b"".join(out)


def write(frames, **kw):
    path = Path(tempfile.mkdtemp(dir=ROOM)) / "in.pcap"
    path.write_bytes(frames if isinstance(frames, bytes) else pcap(frames, **kw))
    return path


def run(*args):
    return subprocess.run([ROCEWAY, "replay", *map(str, args)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def sim(*args, code=0):
    r = run("--sim", "--json", *args)
    assert r.returncode == code, (args, r.returncode, r.stdout, r.stderr)
    return json.loads(r.stdout)


def refused(words, *args, code=1):
    r = run(*args)
    assert r.returncode == code and words in r.stderr and r.stderr.count("\n") == 1 and not r.stdout, (words, r.returncode, r.stderr, r.stdout)


def check(j, messages=3 * COUNT):
    assert [s["completed"] for s in j["sides"]] == [messages, messages - COUNT], j
    assert [s["received"] for s in j["sides"]] == [messages - COUNT, messages], j
    for s in j["sides"]:
        assert s["result"] == "as captured" and not any(s["differs"].values()), s


def test_exact():
    path = write(session())
    j = sim(path, "--as", A)
    check(j)
    # 20 rounds, and in each of them B waits for A, A for B, and the ATOMIC and the next SEND for an answer: 4 ways over the WAN
    assert j["seconds"] > j["capture"]["seconds"] + COUNT * 2 * .02 * .99, j["seconds"]
    text = run("--sim", path).stdout
    assert "as captured" in text and f"hash {j['hash']}" in text, text


def test_repeats():
    path = write(session())
    words = ("--loss", "2%", "--rtt", "40ms", "--rate", "100Mbit", "--wan", "reorder=1%,dup=1%", "--fault", "outage@100ms+400ms,a-b@900ms+200ms")
    one, two, other = sim(path, *words, "--seed", 7), sim(path, *words, "--seed", 7), sim(path, *words, "--seed", 8)
    for j in (one, two, other):
        check(j)
        assert j["wan_lost_a"] > 0
    assert one == two and one["hash"] != other["hash"]


def test_speed_and_modes():
    path = write(session())
    slow, fast = sim(path, "--speed", .5, "--rtt", 0), sim(path, "--speed", 0, "--rtt", 0)
    assert slow["seconds"] > 1.8 * slow["capture"]["seconds"], slow["seconds"]
    assert fast["seconds"] < slow["seconds"] / 4, (slow["seconds"], fast["seconds"])
    for mode in ("near", "far", "end", "causal"):
        check(sim(path, "--ack-mode", mode))


def test_away():
    """A capture at A of hosts 20 ms apart, played over 20 ms: B's waits have the way to it and back in them; without it, times are those of the capture."""
    away = 20 * 10**6
    path = write(with_cm(seen_from_a(session(), away)))
    twice, once = sim(path, "--rtt", "20ms"), sim(path, "--rtt", "20ms", "--away", B + "=20ms")
    for j in (twice, once):
        check(j)
    assert all(s["time"] > 1.3 for s in twice["sides"]), twice
    assert all(abs(s["time"] - 1) < .002 for s in once["sides"]), once
    # Without a WAN the hosts of --sim are 20 us apart.
    j = sim(write(seen_from_a(session(), 20000)), "--rtt", 0, "--away", B + "=20us")
    assert all(abs(s["time"] - 1) < .05 for s in j["sides"]), j
    fast = sim(path, "--rtt", "20ms", "--away", B + "=20ms", "--speed", 2)
    assert all(s["time"] > 1.8 for s in fast["sides"]), fast  # the path is as long as before


def test_what_is_away_has_other_causes():
    """B, 20 ms away, SENDs right behind messages of A that cannot have reached it: these are not waited for, nor any that is less than 20 ms old."""
    for every in (7000, 8200):  # us
        frames, at = [], 1_700_000_000 * 10**9
        for i in range(60):
            at += every * 1000
            frames += [(at, packet(A, B, SEND_ONLY, QPN_B, PSN_A + i, b"a%d" % i)), (at + 10000, packet(B, A, ACK, QPN_A, PSN_A + i, aeth(i + 1))),
                       (at + 100000, packet(B, A, SEND_ONLY, QPN_A, PSN_B + i, b"b%d" % i)), (at + 110000, packet(A, B, ACK, QPN_B, PSN_B + i, aeth(i + 1)))]
        path = write(with_cm(frames))
        j = sim(path, "--rtt", "20ms", "--away", B + "=20ms")
        assert [s["result"] for s in j["sides"]] == ["as captured"] * 2 and all(abs(s["time"] - 1) < .05 for s in j["sides"]), (every, j)
        assert all(s["time"] > 2 for s in sim(path, "--rtt", "20ms")["sides"]), every


def test_kernel_clients():
    """What the kernels' NFS 4.2 and NVMe clients and servers sent (tests/e2e/test_capture_replay.py; `roceway anonymise`, the beginnings): set up by
    CM, SEND with invalidate, READs and WRITEs of the server. They were captured beside the client, 20 ms from the server."""
    for name, server, connections, least in (("nfs", "51.238.69.126", 1, 70), ("nvme", "101.32.87.96", 2, 60)):
        path = Path(__file__).parent / "sessions" / (name + ".pcap")
        words = path, "--rtt", "20ms", "--away", server + "=20ms"
        one, two = sim(*words), sim(*words)
        assert one == two and one["cm"] == one["capture"]["connections"] == connections and not one["cm_differ"], one
        assert one["capture"]["messages"] > least and not any(one["capture"][w] for w in ("partial", "missing", "unanswered", "unpaired")), one
        for s in one["sides"]:
            assert s["result"] == "as captured" and s["completed"] == s["messages"] and abs(s["time"] - 1) < .05, s


def test_gateways_have_run_for_long():
    """The first message of a connection that the gateways do not know takes a round trip, and no host sends it again."""
    j = sim(write(session()))
    check(j)
    for s in j["sides"]:
        assert s["resent"] == 0 and s["completion"]["max"] < .021, s


def test_captures():
    frames = session()
    for big in ("<", ">"):  # foreign-endian
        check(sim(write(frames, order=big)))
    # A snap length: zeros instead of payload
    path = write(frames, snap=100)
    j = sim(path)
    check(j)
    assert j["capture"]["cut"] == 2 * COUNT + COUNT, j["capture"]
    assert "zeros instead" in run("--sim", path).stderr
    # A clock that goes back, a file that ends in mid-packet, retransmissions: the same messages
    late = frames[:60] + [(at - 10**9, f) for at, f in frames[60:]]
    check(sim(write(late)))
    assert "earlier time" in run("--sim", write(late)).stderr
    cut = write(pcap(frames)[:-5])
    assert "ends in the middle of a packet" in run("--sim", cut).stderr
    check(sim(write([p for at, f in frames for p in ((at, f), (at + 100, f))])))
    # A message that was not captured whole is left out, with a line that says so.
    j = sim(write(frames[:22] + frames[23:]))
    assert j["capture"]["missing"] == 1 and j["sides"][1]["completed"] == 2 * COUNT - 1, j


def test_cm():
    """Hosts set up and end the connection with the messages of the capture: the gateways know it from its first request on."""
    frames = session()
    plain = sim(write(frames))
    j = sim(write(with_cm(frames)))
    check(j)
    assert (plain["cm"], j["cm"], j["cm_differ"]) == (0, 1, 0), j
    # B has no READs: without CM its first request waits for an ACK from over there.
    assert plain["sides"][1]["completion"]["max"] > .02 and j["sides"][1]["completion"]["max"] < .001, j["sides"][1]
    assert "1 of them set up by CM" in run("--sim", write(with_cm(frames))).stdout
    # Over a bad path, with an outage while it is set up: nothing is lost, and the same again.
    words = ("--loss", "5%", "--fault", "outage@0s+300ms", "--seed", 3)
    one, two = sim(write(with_cm(frames)), *words), sim(write(with_cm(frames)), *words)
    check(one)
    assert one == two and one["seconds"] > .3 and one["wan_lost_a"] > 0, one
    # A REQ that was sent again is played once. What was refused, or begins elsewhere, is played without CM.
    j = sim(write(with_cm(frames, again=True)))
    check(j)
    assert j["cm"] == 1, j
    for other in (with_cm(frames, refused=True), with_cm(frames, psn_a=5), with_cm(frames)[1:]):
        j = sim(write(other))
        check(j)
        assert j["cm"] == 0, j


def test_several_hosts():
    frames = sorted(session() + session(A, C, QPN_A + 1, 7) + session(C, B, 8, QPN_B + 1))
    path = write(frames)
    j = sim(path, "--as", A)
    assert j["left_out"] == 1 and len(j["sides"]) == 4, j
    assert "1 connections are left out" in run("--sim", "--as", A, path).stdout


def vxlan(vni, frame):
    """Without a UDP checksum, from one VTEP to another."""
    udp = struct.pack(">HHHHII", 50000, 4789, 16 + len(frame), 0, 8 << 24, vni << 8) + frame
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + bytes((192, 168, 0, 1, 192, 168, 0, 2))
    return b"\2\0\0\0\0\3\2\0\0\0\0\4\x08\x00" + ip + udp


def test_tenants_with_equal_addresses():
    def at(vni, frames, later=0):
        return [(t + later, vxlan(vni, f)) for t, f in frames]

    # Equal queue pairs, too: the packets of one tenant are not another's. The one that comes second is left out.
    path = write(sorted(at(100, session()) + at(200, session(), 1000)))
    j = sim(path)
    check(j)
    assert j["same_queue_pairs"] == 1 and j["left_out"] == 1 and len(j["sides"]) == 2, j
    assert "1 connections are left out: hosts of another VNI have their addresses and queue pairs" in run("--sim", path).stdout
    # A set-up is its own tenant's: of this one the REQ is another's.
    j = sim(write(sorted(at(100, with_cm(session())[1:]) + at(200, with_cm(session())[:1]))))
    check(j)
    assert j["cm"] == 0 and j["left_out"] == 0, j


def test_bad_input():
    frames = session()
    good = write(frames)
    arp = b"\xff" * 6 + b"\2\0\0\0\0\1" + b"\x08\x06" + b"\0" * 46
    refused("name 1 to 64 capture files", code=2)
    refused("--as IP, or --sim, is missing", good, code=2)
    lab = ("--as", A, "--to", B, "--interface", "lo", "--pair", ":1")
    for i in range(1, 4):
        refused(f"{lab[2 * i]} is missing", good, *lab[:2 * i], *lab[2 * i + 2:], code=2)
    refused("no address of a laboratory", good, *lab[:3], "8.8.8.8", *lab[4:], code=2)
    refused("no address of a laboratory", good, *lab[:3], "2a00:1450::1", *lab[4:], code=2)
    for near in ("11.0.0.1", "172.15.0.1", "172.32.0.1", "192.169.0.1", "169.253.0.1", "100.128.0.1", "198.20.0.1", "128.0.0.1", "fe00::1", "2001:db9::1"):
        refused(near + " is no address of a laboratory", good, *lab[:3], near, *lab[4:], code=2)
    r = run(good, *lab[:3], "8.8.8.8", "--interface", "none0", "--pair", ":1", "--yes-this-host")  # it gets further: to the interface, or the raw socket
    assert r.returncode == 1 and "laboratory" not in r.stderr and r.stderr.count("\n") == 1, r
    for where in ("7470", ":", "host:", ":0", ":65536", ":99999999999999999999", "host:rdma", ":-1", "x" * 300 + ":1"):
        refused(f"--pair: '{where}' is not HOST:PORT or :PORT", good, *lab[:6], "--pair", where, code=2)
    refused("10.9.9.9 has no RC connection", good, "--as", "10.9.9.9", *lab[2:], code=2)
    refused("No such file", "--sim", ROOM + "/none")
    refused("is empty", "--sim", write(b""))
    refused("unknown file format", "--sim", write(b"no capture, but long enough for a header of one\n" * 4))
    refused("link type", "--sim", write(frames, link=6))
    refused("has no packets", "--sim", write([]))
    refused("is RoCEv2", "--sim", write([(1, arp), (2, arp)]))
    refused("is RoCEv2", "--sim", write(frames, snap=30))
    refused("shorter than the packets' headers", "--sim", write(frames, snap=50))
    refused("one direction", "--sim", write([x for i, x in enumerate(frames) if i % 10 == 0]))
    refused("no whole message", "--sim", write([x for i, x in enumerate(frames) if i % 10 == 1]))
    refused("10.9.9.9 has no RC connection", "--sim", good, "--as", "10.9.9.9", code=2)
    refused("is no IP address", "--sim", good, "--as", "host", code=2)
    refused("10.9.9.9 has no RC connection", "--sim", good, "--away", "10.9.9.9=1ms", code=2)
    for words in (("--away", B), ("--away", f"{B}=5"), ("--away", "=5ms"), ("--away", f"{B}=5ms,x=1ms"), ("--speed", "-1"), ("--speed", "fast"), ("--rtt", "1"), ("--rtt", "1h"), ("--loss", "2"), ("--rate", "1Gbyte"), ("--wan", "x=1"),
                  ("--fault", "outage"), ("--fault", "outage@1s"), ("--fault", "crash@1s+1s"), ("--seed", "x"), ("--ack-mode", "late")):
        refused(words[0] + ":", "--sim", good, *words, code=2)
    for words in (("--to", B), ("--pair", ":1"), ("--with", B)):
        refused(words[0] + ": goes not together with --sim", "--sim", good, *words, code=2)
    for words in (("--rtt", "1ms"), ("--loss", "1%"), ("--seed", "7")):
        refused(words[0] + ": goes only together with --sim", good, *lab, *words, code=2)
    refused("do not find each other", "--sim", good, "--loss", "100%")
    j = sim(good, "--fault", "outage@100ms+3600s", code=1)
    assert {s["result"] for s in j["sides"]} <= {"no answer", "not complete"}, j


if __name__ == "__main__":
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_bytes(pcap(session()))
        sys.exit()
    with tempfile.TemporaryDirectory() as ROOM:
        sys.exit(cases.run(globals()))
