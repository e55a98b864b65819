# SPDX-License-Identifier: Apache-2.0
"""Goal T of run-wan: a training step over two sites (rwydc train, docs/simulator.md), its
efficiency against one site.

The reference is a published measurement of the same job between two sites 2000 km apart: 60.7 s on
one site and 68.4 s on two (88.75 %), 64.4 s with computing and communication overlapped (94.26 %),
with 128 instead of 30 sequences 210.4 s and 214.8 s (97.95 %); with other traffic on the WAN 171.1
s (60 % less), with that traffic kept away by the network 70.2 s.
"""
import json
import os
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import report

LIMIT = 1500  # seconds per cell
# The job of the table: 15 or 64 micro-batches. The compute time of a stage is such that one site
# takes the published time.
BATCH = {30: "micro=15 slot=3.0302s", 128: "micro=64 slot=3.0445s"}
SITE = {30: 60.7, 128: 210.4}
GATEWAY = "custody=30"  # 440 MB of memory for custody
NATIVE = "mode=native rto=1s"  # NIC timers that follow their configuration
OVERLAP = "overlap=on early=1"
CROSS = "cross=16"
AHEAD = "ahead=100ms"


class Cell:
    def __init__(self, name, batch, words, site=None, native=None, goal=None, clean=None):
        self.name, self.words = f"T {name}", f"{BATCH[batch]} {words}"
        self.batch, self.site, self.native, self.reach, self.clean = batch, site, native, goal, clean
        self.out, self.seconds = None, 0

    def run(self, build):
        cmd = ["nice", f"{build}/tests/sim/rwydc", "train", "--json", f"seed={zlib.crc32(self.name.encode())}", *self.words.split()]
        begin = time.monotonic()
        try:
            r = subprocess.run(cmd, capture_output=True, text=True, timeout=LIMIT)
            if r.returncode:
                print(f"run-wan: {' '.join(cmd)}: exit {r.returncode}\n{r.stderr}", file=sys.stderr, flush=True)
            self.out = json.loads(r.stdout) if r.stdout else None
        except (subprocess.TimeoutExpired, ValueError) as e:
            print(f"run-wan: {self.name}: {e}", file=sys.stderr, flush=True)
        self.seconds = time.monotonic() - begin
        return self


def cells(full):
    site = {b: Cell(f"{b} one site", b, "split=6 mode=native") for b in BATCH}
    yield from site.values()

    def pair(name, batch, words, goal=None, native_more=""):
        native = Cell(f"{name} native", batch, f"{words} {NATIVE} {native_more}", site[batch])
        yield native
        yield Cell(f"{name} roceway", batch, f"{words} {GATEWAY}", site[batch], native, goal)
        yield Cell(f"{name} roceway auto", batch, f"{words} {GATEWAY} cc=auto", site[batch], native, goal)

    plain = tuple(pair("30", 30, "", 0.8875))
    yield from (*plain, *pair("30 overlap", 30, OVERLAP, 0.9426), *pair("128 overlap", 128, OVERLAP, 0.9795))
    yield Cell("30 native, NIC timers of 2 ms", 30, "mode=native", site[30])
    for loss in (1e-5, 1e-4, 1e-3):
        yield from pair(f"30 loss {loss:.0e}".replace("e-0", "e-"), 30, f"loss={loss:g}", 0.8875)
    if full:
        yield from (*pair("128", 128, "", 0.9795), *pair("30 10G", 30, "wan=10G", 0.8875), *pair("30 100G", 30, "wan=100G", 0.8875))
        yield from pair("30 overlap loss 1e-3", 30, f"{OVERLAP} loss=1e-3", 0.9426)
        yield Cell("30 native 400M", 30, f"{NATIVE} wan=400M", site[30])
    cross = Cell("30 cross native", 30, f"{NATIVE} {CROSS}", site[30], clean=plain[0])
    yield cross
    ahead = "" if full else AHEAD
    yield Cell("30 cross roceway", 30, f"{GATEWAY} {CROSS} {ahead}", site[30], cross, clean=plain[1])
    yield Cell("30 cross roceway guarantee", 30, f"{GATEWAY} {CROSS} {ahead} guarantee=0.95", site[30], cross, 0.97, plain[1])


def step(c):
    return c.out["step_s"] if c and c.out and c.out["done"] else None


def rows(c):
    d, site = c.out, step(c.site)
    cond = (f"step {d['step_s']:.2f} s; one site {site or 0:.2f} s; between sites a micro-batch took {d['wan_ms']:.0f} ms, most {d['wan_max_ms']:.0f}, its sender "
            f"{d['wan_sent_ms']:.0f}; stages held by sends {d['send_s']:.2f} s, waiting {d['wait_s']:.2f} s; hosts sent {d['host_resent']:.0f} packets again; {d['scenario']}")
    if not c.site:
        yield report.row(f"{c.name} step", d["step_s"], "s", SITE[c.batch], "published", conditions=cond)
        return
    if not site:
        return
    if not d["done"]:
        yield report.row(f"{c.name} efficiency", 0, "share", None, None, c.reach, False, f"a queue pair failed, or an hour was not enough; {cond}")
        return
    clean, native = step(c.clean), step(c.native)
    if not c.clean:
        yield report.row(f"{c.name} efficiency", site / d["step_s"], "share", site / native if native else None, "native RoCE" if native else None, c.reach, False, cond)
    elif clean:
        cond = f"clean step / this one; efficiency {site / d['step_s']:.4f}; the others got {d['cross_gbps']:.2f} Gb/s both ways; {cond}"
        ref = step(c.native.clean) / native if native else None
        yield report.row(f"{c.name} kept", clean / d["step_s"], "share", ref, "native RoCE" if ref else None, c.reach, False, cond)


def run(build, only, full):
    """(rows, number of cells without a figure or with violations)"""
    todo = [c for c in cells(full) if not only or any(o in c.name for o in only)]
    long = ("cross", "128", "loss", "")
    longest = sorted(todo, key=lambda c: next(i for i, w in enumerate(long) if w in c.name))
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for c in pool.map(lambda c: c.run(build), longest):
            if c.out:
                print(f"  {c.name:<28} step {c.out['step_s']:.2f} s, {c.out['wan_ms']:.0f} ms between sites; {c.seconds:.1f} s", flush=True)
    broken = sum(not c.out or c.out["violations"] > 0 for c in todo)
    return [r for c in todo if c.out for r in rows(c)], broken
