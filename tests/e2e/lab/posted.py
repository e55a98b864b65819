# SPDX-License-Identifier: Apache-2.0
# What two hosts posted, by a file of `roceway capture` at one gateway: each message with its bytes, where in the file it is, and when it
# passed there; and two such sessions beside each other. Nothing is asserted about how fast one of them was.
import bisect
import ipaddress
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
    """A queue pair's requests, to (source, destination, destination QPN): of each whole message the bytes from the BTH's opcode on, and the
    place in the file and the time of its first packet; and when all of it and of those before it had come."""
    to: tuple
    messages: list = field(default_factory=list)
    begins: list = field(default_factory=list)
    ends: list = field(default_factory=list)

    @property
    def times(self):
        return [time for _, time in self.begins]


def packets(path):
    """{(source, destination, destination QPN): {PSN from the first one: ((place, time), opcode, what follows the BTH)}} of the requests on
    the LAN, each PSN once; and the path MTU."""
    out, most = {}, 256
    for place, p in enumerate(Capture(path).packets):
        ip = roce_of(p) if p.stage.startswith("lan") else None
        if ip is None or ip[28] not in REQUESTS:
            continue
        bth, pad = ip[28:40], ip[29] >> 4 & 3
        to = ipaddress.ip_address(ip[12:16]), ipaddress.ip_address(ip[16:20]), int.from_bytes(bth[5:8], "big")
        flow = out.setdefault((str(to[0]), str(to[1]), to[2]), {})
        psn = int.from_bytes(bth[9:12], "big")
        first = flow.setdefault("first", psn)
        body = bytes(ip[40:len(ip) - 4 - pad])
        flow.setdefault((psn - first + HALF & MASK) - HALF, ((place, p.time), bth[0], body))
        most = max(most, len(body) - EXTRA.get(bth[0], 0))
    return out, 1 << (most - 1).bit_length()


def flow_of(to, taken, pmtu):
    """Messages in the order of PSNs. As the replay does, one of which a packet is missing is left out."""
    flow, parts, begin, end, due = Flow(to), [], (0, 0), (0, 0), None
    taken.pop("first")
    for psn, (at, opcode, body) in sorted(taken.items()):
        if due is not None and psn < due:  # the rest of a READ, asked for again
            continue
        if due is not None and psn > due:
            parts = []
        due = psn + 1
        if opcode in FIRST | ONLY:
            parts, begin = [], max(begin, at)
        elif not parts:
            continue
        parts.append((opcode, body))
        end = max(end, at)
        if opcode == READ:
            due = psn + max(1, -(-struct.unpack_from(">I", body, 12)[0] // pmtu))
        if opcode in LAST | ONLY:
            flow.messages.append(tuple(parts))
            flow.begins.append(begin)
            flow.ends.append(end)
            parts = []
    return flow


def posted(path):
    """The flows of both hosts, in the order of their first packet."""
    found, pmtu = packets(path)
    return [f for f in (flow_of(to, taken, pmtu) for to, taken in found.items()) if f.messages]


def waited(flow, peer, away=0):
    """For each message of a flow how many of its peer's were whole before it, and so long before it that they may have been its cause: what
    its host did `away` from the capture, there and back."""
    return [bisect.bisect_left(peer.ends, begin) if not away else min(bisect.bisect_left(peer.ends, begin), bisect.bisect_right(
        peer.ends, begin[1] - away, key=lambda end: end[1])) for begin in flow.begins]


@dataclass
class Beside:
    """total: the time of all flows together, by that in the first session; gap: half of all longer gaps differ by less, as a share. Both
    are for people: they tell of the machine, too. causes: messages that waited for one of the peer."""
    messages: int
    bytes: int
    causes: int
    total: float
    gap: float
    gaps: int


def same_flows(first, again):
    """[(flow, the one of `again` with the same messages, byte for byte and in the same order)]; asserts that there are no others."""
    left, out = list(again), []
    for f in first:
        same = [g for g in left if g.messages == f.messages]
        assert same, f"no flow of the replay has these {len(f.messages)} messages; those that it has: {[len(g.messages) for g in left]}"
        left.remove(same[0])
        out.append((f, same[0]))
    assert not left, f"the replay has {len(left)} flows more"
    return out


def beside(first, again, peers, away):
    """Asserts that both have the same messages in the same order, and that none was posted before what it may have waited for in the first
    session. peers: {where a flow goes to: where its peer goes to}; away: {host: seconds, there and back}."""
    pairs = same_flows(first, again)
    of = {f.to: (f, g) for f, g in pairs}
    causes = 0
    for f, g in pairs:
        if peers[f.to] not in of:
            continue  # the peer posted nothing
        peer, peer_again = of[peers[f.to]]
        for k, (was, now) in enumerate(zip(waited(f, peer, away.get(f.to[0], 0)), waited(g, peer_again))):
            assert now >= was, f"message {k} of {f.to} was posted behind {now} of its peer's messages, and behind {was} in the capture"
            causes += was > 0
    was, now = (sum(f.times[-1] - f.times[0] for f in flows) for flows in zip(*pairs))
    gaps = [(b - a, d - c) for f, g in pairs for a, b, c, d in zip(f.times, f.times[1:], g.times, g.times[1:]) if b - a >= SHORT]
    return Beside(sum(len(f.messages) for f in first), sum(len(b) for f in first for m in f.messages for _, b in m), causes,
                  now / was if was else 1, statistics.median(abs(y / x - 1) for x, y in gaps) if gaps else 0, len(gaps))
