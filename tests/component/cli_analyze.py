#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cli_analyze.py BUILD: `roceway analyze` over capture files: pcap and pcapng, several, cut, broken, from standard input; table, JSON, page."""
import ipaddress
import json
import struct
import subprocess
import sys
import tempfile
import zlib
from html.parser import HTMLParser
from pathlib import Path

import cases

ROCEWAY = Path(sys.argv[1]) / "bin/roceway"
A, B, QPN_A, QPN_B = "10.1.0.2", "10.2.0.2", 0x11, 0x12
RTT, SIZE, COUNT = 20_000_000, 1024, 50  # ns, bytes, messages: one after the other
WRITE_ONLY, ACK = 0x0A, 0x11


def icrc(ip):
    """IBA A17.3.3: fields that routers change count as ones."""
    p = bytearray(b"\xff" * 8 + ip)
    for at in (1, 8, 10, 11, 20 + 6, 20 + 7, 28 + 4):
        p[8 + at] = 0xFF
    return struct.pack("<I", zlib.crc32(bytes(p)))


def packet(src, dst, opcode, qpn, psn, rest):
    bth = struct.pack(">BBHII", opcode, 0x40, 0xFFFF, qpn, 1 << 31 | psn)
    udp_len = 8 + len(bth) + len(rest) + 4
    ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 20 + udp_len, 0, 0x4000, 64, 17, 0) + ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed)
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip[10:12] = struct.pack(">H", 0xFFFF - ((total & 0xFFFF) + (total >> 16)))
    whole = bytes(ip) + struct.pack(">HHHH", 50000, 4791, udp_len, 0) + bth + rest
    return b"\0" * 12 + b"\x08\x00" + whole + icrc(whole)


def session():
    """[(time in ns, frame)]: WRITEs of which each waits for the ACK of the one before."""
    out, now = [], 1_700_000_000 * 10**9
    for i in range(COUNT):
        out.append((now, packet(A, B, WRITE_ONLY, QPN_B, i, struct.pack(">QII", 0, 7, SIZE) + b"\x55" * SIZE)))
        out.append((now + RTT, packet(B, A, ACK, QPN_A, i, struct.pack(">I", 0x1F << 24 | i + 1))))
        now += RTT + 3000
    return out


def pcap(frames, snap=65535):
    """Classic pcap with nanoseconds."""
    out = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for at, f in frames:
        out.append(struct.pack("<IIII", at // 10**9, at % 10**9, min(len(f), snap), len(f)) + f[:snap])
    return b"".join(out)


def analyze(*args, stdin=None):
    return subprocess.run([ROCEWAY, "analyze", *map(str, args)], input=stdin, capture_output=True, timeout=60)


def good(*args, stdin=None):
    r = analyze(*args, stdin=stdin)
    assert r.returncode == 0, (args, r.stderr)
    return r.stdout.decode()


def refused(words, *args, code=1):
    r = analyze(*args)
    text = r.stderr.decode()
    assert r.returncode == code, (args, r.returncode, text)
    assert text.startswith("roceway: ") and text.count("\n") == 1 and words in text, (words, text)
    assert not r.stdout, r.stdout


def check_one(j):
    assert len(j["flows"]) == 1, j
    f = j["flows"][0]
    assert f["qpn"] == QPN_B and f["counters"]["messages"] == COUNT and f["counters"]["writes"] == COUNT, f
    assert f["counters"]["resent_packets"] == 0 and f["counters"]["icrc_bad"] == 0, f
    assert f["findings"][0]["word"] == "window", f["findings"]
    assert abs(f["rtt"]["p50"] - RTT / 1e9) < RTT / 1e9 / 20, f["rtt"]


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.outside = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.outside += [v for k, v in attrs if k in ("src", "href") and not v.startswith("#")]


def test_formats():
    d = Path(tempfile.mkdtemp(dir=ROOM))
    frames = session()
    (d / "one.pcap").write_bytes(pcap(frames))
    check_one(json.loads(good(d / "one.pcap", "--json")))
    subprocess.run(["editcap", "-F", "pcapng", d / "one.pcap", d / "one.pcapng"], check=True)
    check_one(json.loads(good(d / "one.pcapng", "--json")))
    check_one(json.loads(good("-", "--json", stdin=pcap(frames))))
    # A ring of two files, named in the wrong order.
    (d / "late.pcap").write_bytes(pcap(frames[31:]))
    (d / "early.pcap").write_bytes(pcap(frames[:31]))
    check_one(json.loads(good(d / "late.pcap", d / "early.pcap", "--json")))


def test_cut():
    d = Path(tempfile.mkdtemp(dir=ROOM))
    whole = pcap(session())
    (d / "snap.pcap").write_bytes(pcap(session(), snap=90))
    j = json.loads(good(d / "snap.pcap", "--json"))
    check_one(j)
    assert j["cut"] == COUNT, j["cut"]
    (d / "short.pcap").write_bytes(whole[:-10])
    r = analyze(d / "short.pcap", "--json")
    assert r.returncode == 0 and b"ends in the middle of a packet" in r.stderr, r
    assert json.loads(r.stdout)["packets"] == 2 * COUNT - 1


def test_people():
    d = Path(tempfile.mkdtemp(dir=ROOM))
    (d / "one.pcap").write_bytes(pcap(session()))
    text = good(d / "one.pcap")
    assert all(len(line) <= 100 for line in text.splitlines()), text
    assert f"{A} > {B}" in text and "window" in text and "20 ms" in text, text
    good(d / "one.pcap", "--html", d / "page.html")
    page = Page()
    page.feed((d / "page.html").read_text())
    assert page.tags.count("svg") >= 3 and "section" in page.tags, page.tags
    assert not page.outside, page.outside
    assert "no flow has QPN 0x63 in this capture" in good(d / "one.pcap", "--qpn", "99")
    assert "1 of 1 flows" not in good(d / "one.pcap", "--limit", "all")


def test_refused():
    d = Path(tempfile.mkdtemp(dir=ROOM))
    (d / "one.pcap").write_bytes(pcap(session()))
    (d / "text").write_text("this is no capture, but long enough for a header of one\n")
    (d / "empty").write_bytes(b"")
    token_ring = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 6)
    (d / "ring.pcap").write_bytes(token_ring)
    refused("No such file", d / "none.pcap")
    refused("unknown file format", d / "text")
    refused("is empty", d / "empty")
    refused("not Ethernet", d / "ring.pcap")
    refused("name 1 to 64 capture files", code=2)
    refused("'0' is no number from 1 to", d / "one.pcap", "--limit", "0", code=2)
    refused("--html: expected a file, found -", d / "one.pcap", "--html", "-", code=2)
    refused("'many' is no number", d / "one.pcap", "--limit", "many", code=2)
    refused("'0x1000000' is no number", d / "one.pcap", "--qpn", "0x1000000", code=2)
    refused("No such file or directory", d / "one.pcap", "--html", d / "no/page.html")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as ROOM:
        sys.exit(cases.run(globals()))
