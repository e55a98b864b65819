#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bad_captures.py BUILD: what the readers of captures (analyze, anonymise, replay --sim) do with either byte order, many interfaces, cut and damaged files, short packets, wrong clocks, other links, many queue pairs."""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

sys.argv = sys.argv[:2]
from cli_replay import A, B, COUNT, QPN_A, QPN_B, aeth, packet, pcap, reth, session  # noqa: E402

ROCEWAY = Path(sys.argv[1]) / "bin/roceway"
ETHERNET, WRITE_ONLY, ACK, NANO = 1, 0x0A, 0x11, 10**9
PACKETS = len(session())


def pcapng(frames, order="<", interfaces=1, links=(ETHERNET,), resolutions=(9,), extra=b""):
    """One section; packets of the interfaces in turn, and their times in the unit of each."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        n = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + n + body + n

    out = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for i in range(interfaces):
        unit = struct.pack(order + "HHB3xHH", 9, 1, resolutions[i % len(resolutions)], 0, 0)
        out.append(block(1, struct.pack(order + "HHI", links[i % len(links)], 0, 65535) + unit))
    out.append(extra)
    out.append(block(0x0BAD, b"a block that nobody knows"))
    for n, (at, f) in enumerate(frames):
        i = n % interfaces
        ticks = at // 10 ** (9 - resolutions[i % len(resolutions)])
        out.append(block(6, struct.pack(order + "IIIII", i, ticks >> 32, ticks & 0xFFFFFFFF, len(f), len(f)) + f))
    return b"".join(out)


def run(*args, limit=60):
    r = subprocess.run([ROCEWAY, *map(str, args)], capture_output=True, text=True, timeout=limit, stdin=subprocess.DEVNULL)
    assert r.returncode in (0, 1), (args, r)
    assert r.returncode == 0 or (r.stderr.startswith("roceway: ") and r.stderr.count("\n") == 1), (args, r)
    return r


def write(data):
    path = Path(tempfile.mkdtemp(dir=ROOM)) / "in.pcap"
    path.write_bytes(data)
    return path


def each(data):
    """The three readers' answers."""
    path = write(data)
    return [run("analyze", path, "--json"), run("anonymise", path, path.with_suffix(".out")), run("replay", "--sim", "--json", path)]


def all_right(data):
    analysis, anonymised, replay = each(data)
    assert json.loads(analysis.stdout)["roce"] == PACKETS, analysis
    assert f"{PACKETS} RoCEv2 packets written, 0 others" in anonymised.stderr, anonymised
    assert [s["completed"] for s in json.loads(replay.stdout)["sides"]] == [3 * COUNT, 2 * COUNT], replay


def all_refuse(data, words):
    for r in each(data):
        assert r.returncode == 1 and words in r.stderr and not r.stdout, (words, r)


def test_forms():
    frames = session()
    for order in "<>":
        all_right(pcap(frames, order=order))
        all_right(pcapng(frames, order))
        all_right(pcapng(frames, order, interfaces=100, resolutions=(9, 6, 9)))


def test_interfaces():
    """libpcap gives one link type for a file."""
    all_refuse(pcapng(session(), interfaces=100, links=(ETHERNET,) * 99 + (113,)), "type")
    # Packets of interfaces that the file does not describe.
    described = len(pcapng([])) - len(pcapng([], interfaces=0))
    section = 28  # the block of the section; those of the interfaces follow
    whole = pcapng(session())
    none = whole[:section] + whole[section + described:]
    for r in each(none):
        assert r.returncode == 1, r


def test_links():
    for link in (0, 6, 105, 147, 189, 228 + 1000):
        all_refuse(pcap(session(), link=link), "link type")


def test_cut_anywhere():
    """A file that ends at any byte of its first packets: what was whole is read, or one line says why not."""
    for data in (pcap(session()[:4]), pcapng(session()[:4], interfaces=2)):
        whole = 0
        for n in sorted({*range(140), *range(140, len(data) - 1, 11), *range(len(data) - 40, len(data) - 1)}):
            path = write(data[:n])
            r = run("analyze", path, "--json")
            if r.returncode == 0:
                now = json.loads(r.stdout)["packets"]
                assert whole <= now <= whole + 1, (n, now)
                whole = now
            run("anonymise", path, path.with_suffix(".out"))
        assert whole == 3, whole


def test_damaged_lengths():
    frames = session()
    head, rest = pcap([]), pcap(frames)[24:]
    for captured, wire in ((0xFFFFFFFF, 60), (1 << 31, 1 << 31), (300_000, 300_000), (60, 10), (0, 0), (0, 0xFFFFFFFF)):
        record = struct.pack("<IIII", 1, 1, captured, wire) + bytes(min(captured, 60))
        each(head + record + rest)
    section = pcapng([])
    for n in (0, 3, 11, 12, 13, 0x7FFFFFFC, 0xFFFFFFFC, 0xFFFFFFFF):
        each(section + struct.pack("<II", 6, n) + rest[:100])
        each(section[:4] + struct.pack("<I", n) + section[8:])
    # A packet of an interface that there is not, of no length, of too much.
    for fields in ((7, 0, 0, 60, 60), (0, 0, 0, 0, 0), (0, 0xFFFFFFFF, 0xFFFFFFFF, 64, 64), (0, 0, 0, 0xFFFFFFF0, 64)):
        body = struct.pack("<IIIII", *fields) + bytes(64)
        each(section + struct.pack("<II", 6, len(body) + 12) + body + struct.pack("<I", len(body) + 12))


def test_snap_below_headers():
    frames = session()
    for snap in (0, 1, 13, 14, 15, 33, 34, 41, 42, 53, 54, 57, 58, 69):
        analysis, anonymised, replay = each(pcap(frames, snap))
        j = json.loads(analysis.stdout)
        assert j["packets"] == PACKETS and j["roce"] <= PACKETS and bool(j["cut"]) == bool(j["roce"]), (snap, j)
        assert anonymised.returncode == 0, (snap, anonymised)
        if snap < 54:  # no packet has its BTH
            assert replay.returncode == 1 and ("shorter than" in replay.stderr or "is RoCEv2" in replay.stderr), (snap, replay)


def test_clocks():
    frames = session()
    backwards = [(frames[0][0] - i * 1000, f) for i, (_, f) in enumerate(frames)]
    j = json.loads(each(pcap(backwards))[0].stdout)
    assert j["backwards"] == PACKETS - 1 and j["seconds"] == 0, j
    for at in (0, (1 << 32) * NANO - 1):
        analysis, _, replay = each(pcap([(at, f) for _, f in frames]))
        assert json.loads(analysis.stdout)["roce"] == PACKETS, analysis
        assert replay.returncode == 0, replay
    # Nonsense in the part below a second.
    bad = bytearray(pcap(frames))
    bad[28:32] = b"\xff\xff\xff\xff"
    each(bytes(bad))


def test_many_queue_pairs():
    """10000 of them between two hosts, and ACKs that could be the answer of any, or of none."""
    n = 10000
    requests = [(i, packet(A, B, WRITE_ONLY, QPN_B + i, 7, reth(0, 8) + bytes(8))) for i in range(n)]
    answers = [(n + i, packet(B, A, ACK, QPN_A + i, 7 + i % 2, aeth(1))) for i in range(n)]
    path = write(pcap(requests + answers))
    j = json.loads(run("analyze", path, "--json", "--limit", "all", limit=60).stdout)
    assert j["unpaired"] == n and len(j["flows"]) == n, (j["unpaired"], len(j["flows"]))
    assert f"{2 * n} RoCEv2 packets written" in run("anonymise", path, path.with_suffix(".out")).stderr


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as ROOM:
        sys.exit(cases.run(globals()))
