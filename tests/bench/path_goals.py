# SPDX-License-Identifier: Apache-2.0
"""Goal P of run-wan: tunnels of several paths (docs/simulator.md). Two unequal ones carry their sum,
also with losses; completion times of messages (G1) hold on 2, 4 and 8; one of two dies, loses 30 % or
becomes longer; and all paths of a tunnel behind one queue take no more of it than double of one
flow's share, where a tunnel of one path takes no more either."""
import itertools
import json
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import report

LIMIT = 900  # seconds per cell
UNEQUAL = "rate=600M rtt=10ms paths=2 path=1:rate=400M,rtt=30ms{loss} queue=1bdp arrival=back rtts=2000 skip=200"
KINDS = ("auto", "bbr", "cubic")
G1_SIZES = (("128KiB", 3000, 1e-2, 0.16), ("4MiB", 5000, 1e-3, 0.04), ("4MiB", 5000, 1e-2, 0.08), ("16MiB", 1000, 1e-3, 0.04))
CHANGES = {"dies": "loss=1", "loses 30 %": "loss=30%,rloss=30%", "is 50 ms longer": "rtt=80ms"}
# A dead path's data comes by the other one after a round trip and three probes, and as much again
# on the way.
STALL_MS = 100


class Cell:
    def __init__(self, name, words, goals, ref=None):
        """goals: (figure, unit, bound, whether less is better). ref: words of a run to compare
        with."""
        self.name, self.words, self.goals, self.ref = f"P {name}", words, goals, ref
        self.out = {}

    def one(self, build, words):
        cmd = ["nice", f"{build}/tests/sim/rwywan", "--json", f"seed={zlib.crc32(self.name.encode())}", *words.split()]
        r = subprocess.run(cmd, capture_output=True, text=True, timeout=LIMIT)
        if r.returncode:
            print(f"run-wan: {' '.join(cmd)}: exit {r.returncode}\n{r.stderr}", file=sys.stderr, flush=True)
        return json.loads(r.stdout) if r.stdout else None

    def run(self, build):
        try:
            self.out["ours"] = self.one(build, self.words)
            if self.ref:
                self.out["ref"] = self.one(build, self.ref)
        except (subprocess.TimeoutExpired, ValueError) as e:
            print(f"run-wan: {self.name}: {e}", file=sys.stderr, flush=True)
        return self


def cells():
    for cc, loss in itertools.product(("fixed", "auto", "bbr"), (0, 1)):
        words = UNEQUAL.format(loss=f",loss={loss}%" if loss else "") + f" cc={cc}"
        yield Cell(f"unequal {cc} {loss}%", words, [("goodput_share", "share", 0.94 if loss else 0.95, False)])
    for cc, n in itertools.product(KINDS, (2, 4, 8)):
        yield Cell(f"equal {cc} {n}", f"cc={cc} rate=200M rtt=20ms paths={n} queue=1bdp arrival=back rtts=1000 skip=100", [("goodput_share", "share", 0.95, False)])
    for n, (size, messages, loss, extra) in itertools.product((2, 4, 8), G1_SIZES):
        bytes_ = int(size[:-3]) << (20 if size.endswith("MiB") else 10)
        # until each path's loss is known
        warm = max(2, int(n * 60 / loss * 4096 / bytes_))
        words = f"cc=fixed rtt=25ms size={size} messages={messages} warm={warm} loss={loss:g}"
        yield Cell(f"G1 {n} paths {size} {loss:g}", f"{words} rate={400 // n}G paths={n}",
                   [("mean", "x", 1.03, True), ("p999" if messages >= 2000 else "p99", "x", 1.05, True), ("extra", "share", extra, True)], f"{words} rate=400G")
    for cc, (what, change) in itertools.product(("auto", "bbr"), CHANGES.items()):
        words = f"cc={cc} rate=200M rtt=30ms paths=2 queue=1bdp arrival=back rtts=400 skip=100 changes=5s:path=1,{change}"
        yield Cell(f"one {what} {cc}", words, [("after", "share", 0.95, False), ("stall_ms", "ms", STALL_MS, True)])
    for cc, n, others in itertools.product(KINDS, (2, 4, 8), (1, 4)):
        shared = f"cc={cc} rate=1G rtt=20ms bottleneck=one queue=1bdp arrival=back window=2 rtts=3000 skip=1000 cross=cubic:{others}"
        yield Cell(f"{n} paths beside {others} cubic {cc}", f"{shared} paths={n}", [("ours", "x fair", 2, True), ("ours", "x fair", 0.5, False)], shared)


def figure(d, name):
    """`after`: the share of what the well path alone carries, or of both where the other one still
    carries something, from 2 s or 40 round trips after the change."""
    return d["changes"][0]["share"] if name == "after" else d[name]


def rows(c):
    for name, unit, bound, less in c.goals:
        other = c.out.get("ref") and figure(c.out["ref"], name)
        yield report.row(f"{c.name} {name}{' at least' if not less and name == 'ours' else ''}", figure(c.out["ours"], name), unit, other,
                         "one path" if c.ref else None, bound, less, c.words)


def run(build, only):
    found, broken = [], 0
    chosen = [c for c in cells() if not only or any(o in c.name for o in only)]
    with ThreadPoolExecutor(2) as pool:
        for c in pool.map(lambda c: c.run(build), chosen):
            if not c.out.get("ours") or any(d and d["violations"] for d in c.out.values()):
                broken += 1
                continue
            found += rows(c)
            print(f"  {c.name:<34} " + "  ".join(f"{g[0]} {figure(c.out['ours'], g[0]):.4g}" for g in c.goals)
                  + (f"  one path {figure(c.out['ref'], c.goals[0][0]):.4g}" if c.out.get("ref") else ""), flush=True)
    return found, broken
