#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cli_anonymise.py BUILD: `roceway anonymise`: nothing of the original is left, the analysis is the same, ICRCs are right, bad input is refused."""
import ipaddress
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import cases

ROCEWAY = Path(sys.argv[1]) / "bin/roceway"
A, B, A6, B6 = "10.71.33.2", "10.71.34.9", "2001:db8:77::a1", "2001:db8:77::b2"
QPN_A, QPN_B, RKEY, VA, IMM, COMM = 0x4C17A9, 0x5D28BA, 0x1F2E3D4C, 0x7F53B2C0D1E28000, 0x9182A3B4, 0xC0FFEE01
MAC_A, MAC_B = bytes.fromhex("b8599f1122a3"), bytes.fromhex("b8599f4455c6")
PAYLOAD, SECRET, ATOMIC = b"the patient's name is", b"private data of an application", b"SWAPDATACOMPARED"
PORT, COUNT, RTT = 0xD1A7, 40, 20_000_000
WRITE_ONLY_IMM, ACK, CMP_SWAP, UD, SEND_INV, CNP = 0x0B, 0x11, 0x13, 0x64, 0x17, 0x81


def icrc(ip):
    """IBA A17.3.3: fields that routers change count as ones."""
    p = bytearray(b"\xff" * 8 + ip)
    v4 = ip[0] >> 4 == 4
    if v4:
        masked = [1, 8, 10, 11]
    else:
        p[8] |= 0x0F
        masked = [1, 2, 3, 7]
    hlen = 20 if v4 else 40
    for at in (*masked, hlen + 6, hlen + 7, hlen + 12):
        p[8 + at] = 0xFF
    return struct.pack("<I", zlib.crc32(bytes(p)))


def packet(src, dst, opcode, qpn, psn, rest, wrong=False):
    bth = struct.pack(">BBHII", opcode, 0x40, 0xFFFF, qpn, 1 << 31 | psn)
    udp_len = 8 + len(bth) + len(rest) + 4
    s, d = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if s.version == 4:
        ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 20 + udp_len, 0, 0x4000, 64, 17, 0) + s.packed + d.packed)
        total = sum(struct.unpack(">10H", ip))
        total = (total & 0xFFFF) + (total >> 16)
        ip[10:12] = struct.pack(">H", 0xFFFF - ((total & 0xFFFF) + (total >> 16)))
    else:
        ip = struct.pack(">IHBB", 6 << 28 | 0x4C17A, udp_len, 17, 64) + s.packed + d.packed
    whole = bytes(ip) + struct.pack(">HHHH", PORT, 4791, udp_len, 0) + bth + rest
    crc = icrc(whole)
    macs = MAC_B + MAC_A if src in (A, A6) else MAC_A + MAC_B
    return macs + (b"\x08\x00" if s.version == 4 else b"\x86\xdd") + whole + (bytes([crc[0] ^ 4]) + crc[1:] if wrong else crc)


def gid(ip):
    a = ipaddress.ip_address(ip)
    return a.packed if a.version == 6 else b"\0" * 10 + b"\xff\xff" + a.packed


def mad(attr, body):
    head = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x1122334455667788, attr, 0, 0)
    return struct.pack(">II", 0x80010000, 1) + head + body.ljust(232, b"\0")


def q24(qpn, low=0):
    return struct.pack(">I", qpn << 8 | low)


def cm(a, b):
    """REQ of a, REP of b."""
    path = b"\0" * 4 + gid(a) + gid(b) + struct.pack(">IBBBB", 0x4C17A << 12 | 3, 0, 64, 0, 18 << 3)
    req = struct.pack(">IIQQII", COMM, 0, 0x1064E51, 0xB8599F031122A3, 0, 0) + q24(QPN_A, 4) + q24(0, 4) + q24(0, 0x90) + q24(0, 0x97)
    req += struct.pack(">HBB", 0xFFFF, 3 << 4 | 7, 0xF0) + path + b"\0" * 44 + gid(a) + SECRET
    rep = struct.pack(">III", COMM + 7, COMM, 0) + q24(QPN_B) + q24(0) + q24(0) + bytes([4, 4, 0, 7 << 5]) + b"\0" * 8 + SECRET
    return [packet(a, b, UD, 1, 0, mad(0x10, req)), packet(b, a, UD, 1, 0, mad(0x13, rep))]


def session(a, b):
    """[(time in ns, frame)]"""
    out, now = [], 1_700_000_000 * 10**9
    for f in cm(a, b):
        now += RTT
        out.append((now, f))
    for i in range(COUNT):
        body = struct.pack(">QII", VA + 4096 * i, RKEY, 512) + struct.pack(">I", IMM) + PAYLOAD.ljust(512, b"\x5a")
        out.append((now, packet(a, b, WRITE_ONLY_IMM, QPN_B, i, body)))
        out.append((now + RTT, packet(b, a, ACK, QPN_A, i, struct.pack(">I", 0x1F << 24 | i + 1))))
        now += RTT + 3000
    out.append((now, packet(b, a, CNP, QPN_A, 0, PAYLOAD[:16])))
    out.append((now, packet(a, b, CMP_SWAP, QPN_B, COUNT, struct.pack(">QI", VA, RKEY) + ATOMIC)))
    out.append((now + 1000, packet(a, b, SEND_INV, QPN_B, COUNT + 1, struct.pack(">I", RKEY) + PAYLOAD + b"\0" * 3)))
    out.append((now + 2000, packet(a, b, WRITE_ONLY_IMM, QPN_B, COUNT + 2, struct.pack(">QIII", VA, RKEY, 4, IMM) + b"abcd", wrong=True)))
    return out


def pcap(frames, snap=65535, link=1):
    out = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)]
    for at, f in frames:
        out.append(struct.pack("<IIII", at // 10**9, at % 10**9, min(len(f), snap), len(f)) + f[:snap])
    return b"".join(out)


def frames_of(data):
    out, at = [], 24
    while at < len(data):
        n = struct.unpack_from("<I", data, at + 8)[0]
        out.append(data[at + 16:at + 16 + n])
        at += 16 + n
    return out


def run(*args, stdin=None):
    return subprocess.run([ROCEWAY, *map(str, args)], input=stdin, capture_output=True, timeout=60)


def good(*args, stdin=None):
    r = run(*args, stdin=stdin)
    assert r.returncode == 0, (args, r.stderr)
    return r.stdout


def refused(words, *args, code=1):
    r = run("anonymise", *args)
    text = r.stderr.decode()
    assert r.returncode == code and words in text and text.count("\n") == 1, (words, r.returncode, text)


def room():
    return Path(tempfile.mkdtemp(dir=ROOM))


def analysis(path):
    """What `analyze` says, without names."""
    def strip(j):
        if isinstance(j, dict):
            return {k: strip(v) for k, v in j.items() if k not in ("flow", "qpn")}
        return [strip(v) for v in j] if isinstance(j, list) else j
    j = json.loads(good("analyze", path, "--json"))
    assert j["flows"], j
    return json.dumps(strip(j), sort_keys=True)


# What must not be found, in the order of bytes of the wire.
ORIGINAL = {
    "payload": PAYLOAD, "private data": SECRET, "atomic data": ATOMIC[:8], "compare data": ATOMIC[8:], "R_Key": struct.pack(">I", RKEY),
    "address": struct.pack(">Q", VA)[:4], "immediate": struct.pack(">I", IMM), "QPN of A": q24(QPN_A)[:3], "QPN of B": q24(QPN_B)[:3],
    "MAC of A": MAC_A, "MAC of B": MAC_B, "port": struct.pack(">HH", PORT, 4791), "communication ID": struct.pack(">I", COMM),
    "TID": struct.pack(">Q", 0x1122334455667788), "GUID": struct.pack(">Q", 0xB8599F031122A3),
}


def test_nothing_left():
    for a, b in ((A, B), (A6, B6)):
        d = room()
        before = pcap(session(a, b))
        (d / "in.pcap").write_bytes(before)
        good("anonymise", d / "in.pcap", d / "out.pcap")
        after = (d / "out.pcap").read_bytes()
        packed = {a: ipaddress.ip_address(a).packed, b: ipaddress.ip_address(b).packed}
        for what, word in {**ORIGINAL, **packed}.items():
            assert word in before, what
            assert word not in after, f"{what} is left"
        assert len(frames_of(after)) == len(frames_of(before))


def test_same_analysis():
    for a, b in ((A, B), (A6, B6)):
        d = room()
        for name, snap in (("whole", 65535), ("cut", 150)):
            (d / f"{name}.pcap").write_bytes(pcap(session(a, b), snap))
            good("anonymise", d / f"{name}.pcap", d / f"{name}.out")
            assert analysis(d / f"{name}.pcap") == analysis(d / f"{name}.out"), name


def test_icrc():
    for a, b in ((A, B), (A6, B6)):
        d = room()
        (d / "in.pcap").write_bytes(pcap(session(a, b)))
        good("anonymise", d / "in.pcap", d / "out.pcap")
        right = [icrc(f[14:-4]) == f[-4:] for f in frames_of((d / "out.pcap").read_bytes())]
        assert all(right[:-1]) and not right[-1], right
        seen = subprocess.run(["tshark", "-n", "-r", d / "out.pcap", "-Y", "infiniband.cm.req || infiniband.cm.rep", "-T", "fields", "-e", "_ws.malformed"],
                              capture_output=True, text=True, timeout=60, check=True).stdout
        assert seen == "\n\n", seen


def test_prefixes():
    d = room()
    hosts = ["10.1.2.3", "10.1.2.200", "10.1.77.1", "192.168.1.1"]
    (d / "in.pcap").write_bytes(pcap([(i, packet(h, B, ACK, QPN_A, i, b"\x1f\0\0\1")) for i, h in enumerate(hosts)]))
    good("anonymise", d / "in.pcap", d / "out.pcap")
    got = [int.from_bytes(f[26:30], "big") for f in frames_of((d / "out.pcap").read_bytes())]
    want = [int(ipaddress.ip_address(h)) for h in hosts]
    for i in range(4):
        for k in range(i):
            assert (got[i] ^ got[k]).bit_length() == (want[i] ^ want[k]).bit_length(), (hosts[i], hosts[k])


def test_key():
    d = room()
    (d / "in.pcap").write_bytes(pcap(session(A, B)))
    good("anonymise", d / "in.pcap", d / "one", "--key", d / "key")
    assert os.stat(d / "key").st_mode & 0o777 == 0o600
    good("anonymise", d / "in.pcap", d / "two", "--key", d / "key")
    good("anonymise", d / "in.pcap", d / "three")
    one, two, three = ((d / n).read_bytes() for n in ("one", "two", "three"))
    assert one == two != three
    assert good("anonymise", "-", "-", "--key", d / "key", stdin=(d / "in.pcap").read_bytes()) == one
    for text in ("", "0" * 31, "0" * 33, "g" * 32):
        (d / "bad").write_text(text)
        refused("is no key", d / "in.pcap", d / "four", "--key", d / "bad")
        assert not (d / "four").exists()


def test_left_out():
    d = room()
    frames = session(A, B)
    arp = b"\xff" * 6 + MAC_A + b"\x08\x06" + ipaddress.ip_address(A).packed * 8
    vxlan = bytearray(frames[4][1])
    vxlan[36:38] = struct.pack(">H", 4789)
    short = frames[4][1][:50]
    (d / "in.pcap").write_bytes(pcap([(1, arp), (2, bytes(vxlan)), (3, short), (4, b""), *frames]))
    r = run("anonymise", d / "in.pcap", d / "out.pcap")
    assert r.returncode == 0 and f"{len(frames)} RoCEv2 packets written, 4 others" in r.stderr.decode(), r.stderr
    (d / "cut.pcap").write_bytes(pcap(frames)[:-10])
    r = run("anonymise", d / "cut.pcap", d / "out.pcap")
    assert r.returncode == 0 and b"ends in the middle of a packet" in r.stderr, r.stderr


def test_refused():
    d = room()
    (d / "in.pcap").write_bytes(pcap(session(A, B) * 40))
    (d / "empty").write_bytes(b"")
    (d / "text").write_text("this is no capture, but long enough for a header of one\n")
    (d / "ring.pcap").write_bytes(pcap([], link=6))
    refused("name the capture file", code=2)
    refused("name the capture file", d / "in.pcap", code=2)
    refused("No such file", d / "none", d / "out")
    refused("is empty", d / "empty", d / "out")
    refused("unknown file format", d / "text", d / "out")
    refused("link type", d / "ring.pcap", d / "out")
    refused("is the file that is read", d / "in.pcap", d / "in.pcap")
    refused("No such file", d / "in.pcap", d / "no/out")
    assert not (d / "out").exists()
    # A link, so that a device is not at risk: only a regular file may be removed.
    (d / "full").symlink_to("/dev/full")
    refused("is the disk full", d / "in.pcap", d / "full")
    assert (d / "full").is_symlink()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as ROOM:
        sys.exit(cases.run(globals()))
