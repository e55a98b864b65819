# SPDX-License-Identifier: Apache-2.0
"""Files of `roceway capture`, read by a few lines of their own, and what must be true of two of them from both gateways of a tunnel."""
import collections
import re
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LUA = ROOT / "tools/dissector/roceway.lua"
ICRC = ROOT / "tests/lib/roce_icrc.py"
STAGES = ("lan-in", "wan-out", "wan-in", "lan-out")


class Packet(collections.namedtuple("Packet", "stage id words data wire time")):
    @property
    def events(self):
        return set(filter(None, self.words.get("event", "").split(",")))


class Capture:
    """A pcapng file, read by this test's own few lines."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        self.packets, self.names, self.statistics, self.comments = [], [], {}, []
        at = 0
        while at < len(self.bytes):
            kind, size = struct.unpack_from("<II", self.bytes, at)
            assert size >= 12 and size % 4 == 0 and at + size <= len(self.bytes), "cut at %d of %d" % (at, len(self.bytes))
            assert struct.unpack_from("<I", self.bytes, at + size - 4)[0] == size
            self.block(kind, self.bytes[at + 8:at + size - 4])
            at += size

    @staticmethod
    def options(body):
        out = collections.defaultdict(list)
        while len(body) >= 4:
            code, size = struct.unpack_from("<HH", body)
            if not code:
                break
            out[code].append(body[4:4 + size])
            body = body[4 + (size + 3 & ~3):]
        return out

    def block(self, kind, body):
        if kind == 0x0a0d0d0a:
            self.comments += [c.decode() for c in self.options(body[16:])[1]]
        elif kind == 1:
            assert struct.unpack_from("<H", body)[0] == 1
            self.names.append(self.options(body[8:])[2][0].decode())
        elif kind == 5:
            o = self.options(body[12:])
            self.statistics[struct.unpack_from("<I", body)[0]] = tuple(struct.unpack("<Q", o[n][0])[0] for n in (4, 5))
        elif kind == 6:
            interface, high, low, size, wire = struct.unpack_from("<IIIII", body)
            o = self.options(body[20 + (size + 3 & ~3):])
            words = dict(w.split("=", 1) for w in o[1][0].decode().split())
            assert words["stage"] == self.names[interface].split()[-1], (words, self.names[interface])
            packet_id = struct.unpack("<Q", o[5][0])[0] if 5 in o else 0
            self.packets.append(Packet(words["stage"], packet_id, words, body[20:20 + size], wire, (high << 32 | low) / 1e9))

    def by_stage(self):
        out = {s: collections.defaultdict(list) for s in STAGES}
        for p in self.packets:
            if p.id:
                out[p.stage][p.id].append(p)
        return out

    def check_accounts(self):
        """Each packet that the filter took is in the file, or counted as lost."""
        count = collections.Counter(self.names.index(n) for p in self.packets for n in self.names if n.split()[-1] == p.stage)
        for i in range(len(self.names)):
            taken, lost = self.statistics[i]
            assert taken == count[i] + lost, "%s: taken %d, in the file %d, lost %d" % (self.names[i], taken, count[i], lost)
        return sum(lost for _, lost in self.statistics.values())


def roce_of(p):
    """The RoCEv2 packet of a LAN frame, from its IP header on; None: it is something else."""
    if p.data[12:14] != b"\x08\x00" or p.data[23] != 17 or struct.unpack_from("!H", p.data, 36)[0] != 4791:
        return None
    return p.data[14:14 + struct.unpack_from("!H", p.data, 16)[0]]


def tshark(path, *words):
    r = subprocess.run(("tshark", "-X", f"lua_script:{LUA}", "-n", "-r", path, *words), capture_output=True, text=True, timeout=120)
    assert r.returncode == 0 and "cut short" not in r.stderr, r.stderr
    return r.stdout


def check_stages(a, b, least=50):
    """Requests of host A: from the first stage to the last, through both gateways, and those that were lost on the WAN. A lost
    datagram that was rebuilt from repairs is in no wan-in: how many, is returned."""
    at, bt = a.by_stage(), b.by_stage()
    first, last = b.packets[0].time, max(p.time for p in b.packets)
    whole = lost = rebuilt = 0
    for packet_id, out in at["wan-out"].items():
        into = at["lan-in"].get(packet_id)
        if not into or into[0].words["decision"] != "take" or into[0].words.get("reason") != "accepted":
            continue
        if not first + 0.5 < into[0].time or not out[0].time < last - 1.5:
            continue  # it may have been on its way when a capture began or ended
        assert packet_id in bt["lan-out"], "an accepted packet never left: %s" % (into[0].words,)
        if packet_id not in bt["wan-in"]:
            rebuilt += 1
            continue
        flow = {p.words["flow"] for p in into + out + bt["wan-in"][packet_id] + bt["lan-out"][packet_id]}
        assert len(flow) == 1, flow
        whole += 1
        if len(out) > len(bt["wan-in"][packet_id]):
            assert any("retransmit" in p.events for p in out), [p.words for p in out]
            lost += 1
    assert whole > least, whole
    assert lost + rebuilt >= 1 or whole < 3000, "no datagram was lost"  # of 0.5 %: a slow machine may send too little
    return whole, lost, rebuilt


def check_icrc(path):
    """All packets of the LAN stages have right ICRCs, and tshark sees as many. Their number."""
    r = subprocess.run((sys.executable, ICRC, "-q", path), capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, (r.stdout + r.stderr)[-1000:]
    n = int(re.search(r"(\d+) good, 0 bad$", r.stdout.strip())[1])
    seen = tshark(path, "-Y", 'frame.comment contains "stage=lan" && infiniband && !_ws.malformed', "-T", "fields", "-e", "frame.number").split()
    assert n == len(seen) and n > 100, (n, len(seen))
    return n
