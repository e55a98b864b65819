# SPDX-License-Identifier: Apache-2.0
# What two hosts posted, by a file of `roceway capture` at one gateway: each message with its bytes and when it passed there; and two such
# sessions beside each other.
import statistics
import struct
import sys
from dataclasses import dataclass, field

from .paths import ROOT

sys.path.append(str(ROOT / "tests/lib"))
from captured import Capture, roce_of  # noqa: E402

FIRST, ONLY, LAST, READ = {0x00, 0x06}, {0x04, 0x05, 0x0a, 0x0b, 0x0c, 0x13, 0x14, 0x17}, {0x02, 0x03, 0x08, 0x09, 0x16}, 0x0c
REQUESTS = FIRST | ONLY | LAST | {0x01, 0x07}
EXTRA = {0x03: 4, 0x05: 4, 0x06: 16, 0x09: 4, 0x0a: 16, 0x0b: 20, 0x0c: 16, 0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4}  # headers behind the BTH
HALF, MASK = 1 << 23, (1 << 24) - 1
SHORT = 0.002  # s: shorter gaps are those of a burst, or of what a shared machine's scheduler makes of them


@dataclass
class Flow:
    """A queue pair's requests: the bytes of each whole message from the BTH's opcode on, and when its first packet came."""
    messages: list = field(default_factory=list)
    times: list = field(default_factory=list)


def packets(path):
    """{(source, destination, destination QPN): {PSN from the first one: (time, opcode, what follows the BTH)}} of the requests on the LAN,
    each PSN once; and the path MTU."""
    out, most = {}, 256
    for p in Capture(path).packets:
        ip = roce_of(p) if p.stage.startswith("lan") else None
        if ip is None or ip[28] not in REQUESTS:
            continue
        bth, pad = ip[28:40], ip[29] >> 4 & 3
        flow = out.setdefault((ip[12:16], ip[16:20], bth[5:8]), {})
        psn = int.from_bytes(bth[9:12], "big")
        first = flow.setdefault("first", psn)
        body = bytes(ip[40:len(ip) - 4 - pad])
        flow.setdefault((psn - first + HALF & MASK) - HALF, (p.time, bth[0], body))
        most = max(most, len(body) - EXTRA.get(bth[0], 0))
    return out, 1 << (most - 1).bit_length()


def flow_of(taken, pmtu):
    """Messages in the order of PSNs. As the replay does, one of which a packet is missing is left out."""
    flow, parts, at, due = Flow(), [], 0, None
    taken.pop("first")
    for psn, (time, opcode, body) in sorted(taken.items()):
        if due is not None and psn < due:  # the rest of a READ, asked for again
            continue
        if due is not None and psn > due:
            parts = []
        due = psn + 1
        if opcode in FIRST | ONLY:
            parts, at = [], time
        elif not parts:
            continue
        parts.append((opcode, body))
        if opcode == READ:
            due = psn + max(1, -(-struct.unpack_from(">I", body, 12)[0] // pmtu))
        if opcode in LAST | ONLY:
            flow.messages.append(tuple(parts))
            flow.times.append(at)
            parts = []
    return flow


def posted(path):
    """The flows of both hosts, in the order of their first packet."""
    found, pmtu = packets(path)
    return [f for f in (flow_of(taken, pmtu) for taken in found.values()) if f.messages]


@dataclass
class Beside:
    """total: the time of all flows together, by that in the first session; gap: half of all longer gaps differ by less, as a share."""
    messages: int
    bytes: int
    total: float
    gap: float
    gaps: int

    @property
    def off(self):
        return max(abs(self.total - 1), self.gap)

    def within(self, share):
        return self.off <= share


def beside(first, again):
    """Asserts that both have the same messages, byte for byte and in the same order, and compares when they were posted."""
    left = list(again)
    was = now = 0.0
    off = []
    for f in first:
        same = [g for g in left if g.messages == f.messages]
        assert same, f"no flow of the replay has these {len(f.messages)} messages; those that it has: {[len(g.messages) for g in left]}"
        left.remove(same[0])
        g = same[0]
        was += f.times[-1] - f.times[0]
        now += g.times[-1] - g.times[0]
        gaps = ((b - a, d - c) for a, b, c, d in zip(f.times, f.times[1:], g.times, g.times[1:]))
        off += [abs(y / x - 1) for x, y in gaps if x >= SHORT]
    assert not left, f"the replay has {len(left)} flows more"
    return Beside(sum(len(f.messages) for f in first), sum(len(b) for f in first for m in f.messages for _, b in m), now / was,
                  statistics.median(off), len(off))
