# SPDX-License-Identifier: Apache-2.0
"""Goal C of run-wan: the path changes under hosts that send less than it carries, in bursts and
with pauses, from a gateway whose process shares its processor (docs/simulator.md: changes, demand,
stalls). Two seconds or 40 round trips after each change the goodput must reach nine tenths of the
hosts' demand on the new path. bbr and cubic stand beside it."""
import json
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import report

LIMIT = 600  # seconds per cell
SEEDS = 3
GOAL = 0.9
SECONDS = 14
REFERENCES = ("bbr", "cubic")
# The behaviour of hosts and of the gateways' processors. A Soft-RoCE host of the lab sends 136
# Mb/s.
HOSTS = {
    "busy": "demand=136M chunk=64KiB stalls=0",
    "stalls": "demand=136M chunk=64KiB stalls=300 stall=6ms",
    "little": "demand=32M chunk=4KiB stalls=40 stall=4ms",
    "pauses": "demand=136M chunk=128KiB stalls=20 stall=10ms on=1500ms off=500ms",
}
# The path before, and its changes.
PATHS = {
    "0.2 to 20 ms": ("rate=10G rtt=0.2ms", "3s:rtt=20ms"),
    "0.2 to 20 ms and 1 %": ("rate=10G rtt=0.2ms", "3s:rtt=20ms,loss=1%"),
    "20 to 60 to 20 ms": ("rate=10G rtt=20ms", "3s:rtt=60ms/8s:rtt=20ms"),
    "30, 60, 30 ms, 0.1 %": ("rate=10G rtt=30ms loss=0.1%", "3s:rtt=60ms/8s:rtt=30ms"),
    "flaps 20 and 40 ms": ("rate=10G rtt=20ms loss=0.1%", "2s:rtt=40ms/4500ms:rtt=20ms/7s:rtt=40ms/9500ms:rtt=20ms"),
    "loss 0, 1, 0 %": ("rate=10G rtt=20ms", "3s:loss=1%/8s:loss=0"),
    "100, 20, 100 Mb/s": ("rate=100M rtt=20ms", "3s:rate=20M/8s:rate=100M"),
    "100, 20, 100 Mb/s, short queue": ("rate=100M rtt=20ms queue=230KiB", "3s:rate=20M/8s:rate=100M"),
    "100 Mb/s, 20 to 60 ms and 1 %": ("rate=100M rtt=20ms", "3s:rtt=60ms,loss=1%"),
    "jitter 5 ms": ("rate=10G rtt=20ms jitter_dist=normal keep_order=off", "3s:jitter=5ms"),
    "outage of 1 s": ("rate=10G rtt=20ms outage_from=3s outage_len=1s", "4s:rtt=20ms"),
}


def rtt_ms(words):
    return float(words.split("rtt=")[1].split("ms")[0])


class Cell:
    def __init__(self, path, host):
        base, changes = PATHS[path]
        self.name = f"C {path}, {host}"
        self.words = (f"{base} {HOSTS[host]} arrival=back {'' if 'queue=' in base else 'queue=2MiB '}rtts={int(SECONDS * 1000 / rtt_ms(base))} skip=10 changes={changes}")
        self.out = {}

    def one(self, build, cc, seed):
        cmd = ["nice", f"{build}/tests/sim/rwywan", "--json", f"seed={zlib.crc32(self.name.encode()) + seed}", f"cc={cc}", *self.words.split()]
        r = subprocess.run(cmd, capture_output=True, text=True, timeout=LIMIT)
        if r.returncode:
            print(f"run-wan: {' '.join(cmd)}: exit {r.returncode}\n{r.stderr}", file=sys.stderr, flush=True)
        return json.loads(r.stdout) if r.stdout else None

    def run(self, build):
        try:
            self.out["auto"] = [self.one(build, "auto", s) for s in range(SEEDS)]
            for cc in REFERENCES:
                self.out[cc] = [self.one(build, cc, 0)]
        except (subprocess.TimeoutExpired, ValueError) as e:
            print(f"run-wan: {self.name}: {e}", file=sys.stderr, flush=True)
        return self


def worst(runs):
    """(least share after it settled, longest time until nine tenths; None: never) over all changes
    and runs."""
    all_changes = [c for d in runs if d for c in d["changes"]]
    times = [c["back_s"] for c in all_changes]
    return min(c["share"] for c in all_changes), None if min(times) < 0 else max(times)


def text(runs):
    share, back = worst(runs)
    return f"{share:.2f}, " + ("never" if back is None else f"{back:.2f} s")


def rows(c):
    share, _ = worst(c.out["auto"])
    others = "; ".join(f"{cc} {text(c.out[cc])}" for cc in REFERENCES)
    yield report.row(c.name, share, "share", worst(c.out["bbr"])[0], "bbr", GOAL, False,
                     f"worst of {SEEDS} seeds and of all changes; auto {text(c.out['auto'])}; {others}; {c.words}")


def run(build, only):
    cells = [c for c in (Cell(p, h) for p in PATHS for h in HOSTS) if not only or any(o in c.name for o in only)]
    found, broken = [], 0
    with ThreadPoolExecutor(2) as pool:
        for c in pool.map(lambda c: c.run(build), cells):
            if "cubic" not in c.out or not all(d and not d["violations"] for runs in c.out.values() for d in runs):
                broken += 1
                continue
            found += rows(c)
            print(f"  {c.name:<46} " + "  ".join(f"{cc}: {text(c.out[cc])}" for cc in c.out), flush=True)
    return found, broken
