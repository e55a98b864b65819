#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""dissector.py BUILD: tools/dissector/roceway.lua in tshark: its numbers are the code's, it reads every frame, and nothing breaks it."""
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build")
ROOT = Path(__file__).resolve().parents[2]
LUA = ROOT / "tools/dissector/roceway.lua"
HEADS = 14 + 20 + 8  # Ethernet, IPv4, UDP
WAN_HEADER = 20


def tshark(pcap, *args):
    r = subprocess.run(["tshark", "-X", f"lua_script:{LUA}", "-n", "-o", "roceway.check_crc:TRUE", "-r", pcap, *args],
                       capture_output=True, text=True, timeout=120)
    assert r.returncode == 0 and "Lua" not in r.stderr, r.stderr
    return r.stdout


def emitted(d):
    """The capture, and [(name, {field: value})] of its datagrams."""
    pcap = d / "wan.pcap"
    text = subprocess.run([BUILD / "tests/unit/test_wan_emit", pcap], capture_output=True, text=True, check=True, timeout=60).stdout
    rows = [line.split() for line in text.splitlines()]
    return pcap, [(r[0], dict(w.split("=", 1) for w in r[1:])) for r in rows]


def lua_table(name):
    body = re.search(rf"local {name} = \{{(.*?)\}}", LUA.read_text(), re.S)[1]
    return {int(n, 0): word for n, word in re.findall(r"\[(\w+)\] = \"(\w+)\"", body)}


def enum(header, kind, prefix):
    """{number: NAME} of a C enum; numbers count up where none is given."""
    body = re.search(rf"enum {kind} \{{(.*?)\n\}};", (ROOT / header).read_text(), re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    out, n = {}, 0
    for word, value in re.findall(rf"{prefix}(\w+)(?: = (\w+))?,", body):
        n = int(value, 0) if value else n
        out[n] = word
        n += 1
    return out


def test_numbers():
    assert lua_table("frame_types") == enum("wan/wire/pkt.h", "wan_frame_type", "WAN_F_")
    assert lua_table("open_types") == enum("engine/msg.h", "eng_open_type", "ENG_OPEN_")
    assert lua_table("ctrl_types") == enum("engine/msg.h", "eng_ctrl_type", "ENG_CTRL_")
    assert lua_table("peer_types") == enum("engine/msg.h", "eng_peer_type", "ENG_PEER_")
    assert lua_table("ends") == enum("engine/msg.h", "eng_end", "ENG_END_")


def test_fields():
    with tempfile.TemporaryDirectory() as name:
        pcap, packets = emitted(Path(name))
        fields = sorted({k for _, f in packets for k in f})
        full = [k if k.startswith("infiniband.") else f"roceway.{k}" for k in fields]
        rows = tshark(pcap, "-T", "fields", "-E", "occurrence=a", *(a for k in full for a in ("-e", k))).split("\n")[:-1]
        assert len(rows) == len(packets), (len(rows), len(packets))
        for (what, want), row in zip(packets, rows):
            got = dict(zip(fields, row.split("\t")))
            for key, value in want.items():
                assert got[key] == value, f"{what}: {key} is {value}, tshark sees {got[key]!r}"
        seen = tshark(pcap, "-Y", "roceway.crc.good == 1 && !_ws.malformed && !roceway.frame.bad", "-T", "fields", "-e", "frame.number")
        assert len(seen.split()) == len(packets), "a CRC or a frame is wrong to tshark"


def test_every_frame():
    """A new frame needs a datagram in the emitter, and so a reader here."""
    with tempfile.TemporaryDirectory() as name:
        pcap, _ = emitted(Path(name))
        seen = {int(v, 0) for v in tshark(pcap, "-T", "fields", "-E", "occurrence=a", "-e", "roceway.frame").replace(",", "\n").split()}
        assert {t & ~7 if t in range(0x10, 0x18) else t & ~2 if t == 0x1a else t for t in seen} == set(lua_table("frame_types"))


def test_sealed():
    """Sealed datagrams: the header in the clear, nothing read of the rest; and others on the same ports stay others."""
    rng = random.Random(2)
    tag = bytes(range(16))
    with tempfile.TemporaryDirectory() as name:
        d = Path(name)
        pcap, packets = emitted(d)
        data = pcap.read_bytes()
        out, foreign, at = [data[:24]], [data[:24]], 24
        while at < len(data):
            size = struct.unpack("=I", data[at + 8:at + 12])[0]
            frame = bytearray(data[at + 16:at + 16 + size])
            frame[HEADS + 3] = 7
            frame[HEADS + 16:] = rng.randbytes(size - HEADS - 16)
            frame += tag
            frame[16:18] = struct.pack(">H", size + 16 - 14)
            frame[38:40] = struct.pack(">H", size + 16 - 34)
            head = data[at:at + 8] + struct.pack("=II", len(frame), len(frame))
            out.append(head + bytes(frame))
            frame[HEADS + 8] = 0x20  # a packet number that no gateway reaches
            frame[HEADS + 4:HEADS + 8] = b"\0\0\0\1"
            foreign.append(head + bytes(frame))
            at += 16 + size
        (d / "sealed.pcap").write_bytes(b"".join(out))
        rows = tshark(d / "sealed.pcap", "-T", "fields", "-e", "roceway.key_set", "-e", "roceway.tag", "-e", "roceway.sealed", "-e", "roceway.index").splitlines()
        assert len(rows) == len(packets)
        for (what, _), row, packet in zip(packets, rows, out[1:]):
            key_set, seen, inside, index = row.split("\t")
            assert (key_set, seen) == ("7", tag.hex()), (what, row)
            assert inside == packet[16 + HEADS + 16:-16].hex() and int(index, 0) == struct.unpack_from(">I", packet, 16 + HEADS + 4)[0], what
        assert not tshark(d / "sealed.pcap", "-Y", "roceway.frame || roceway.crc || roceway.hello.mtu || _ws.malformed || _ws.lua.error")
        (d / "foreign.pcap").write_bytes(b"".join(foreign))
        assert not tshark(d / "foreign.pcap", "-Y", "roceway")


def test_damage():
    """Changed and cut datagrams: the CRC tells, and the script has no error."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        d = Path(name)
        pcap, packets = emitted(d)
        data = pcap.read_bytes()
        out, at = [data[:24]], 24
        changed = 0
        while at < len(data):
            head, size = data[at:at + 8], struct.unpack("=I", data[at + 8:at + 12])[0]
            frame = data[at + 16:at + 16 + size]
            for _ in range(20):
                bad = bytearray(frame)
                place = rng.randrange(HEADS + WAN_HEADER, size) if size > HEADS + WAN_HEADER else HEADS + 10
                bad[place] ^= 1 << rng.randrange(8)
                cut = rng.randrange(HEADS, size) if rng.randrange(3) == 0 else size
                changed += cut == size
                out.append(head + struct.pack("=II", cut, size) + bytes(bad[:cut]))
            at += 16 + size
        (d / "bad.pcap").write_bytes(b"".join(out))
        good = tshark(d / "bad.pcap", "-Y", "roceway.crc.good == 1", "-T", "fields", "-e", "frame.number").split()
        assert not good, f"datagrams {good} were changed, and their CRC is called right"
        wrong = tshark(d / "bad.pcap", "-Y", "roceway.crc.good == 0", "-T", "fields", "-e", "frame.number").split()
        # What does not look like ours any more (an unknown first frame) is not counted.
        assert len(wrong) > changed / 2 > len(packets), (len(wrong), changed)


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
