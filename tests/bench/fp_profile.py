# SPDX-License-Identifier: Apache-2.0
"""A profile of the fast path by stages: bench_fastpath under perf, and what fp_stages.py makes of it.

Counts cycles and cache misses where the machine has such counters, else samples the CPU's clock (as
on most virtual machines). perf follows call stacks by DWARF, inlined functions too. It stops in
libraries' assembler (CRC, AES, Galois field), which has no call frame information. Of such a sample
the stack is searched for return addresses: the first one is the caller's, since assembler keeps
nothing there, and the next one in a gateway's turn tells the side.
"""
import argparse
import bisect
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import fp_stages
from fastpath import eal, idle_cpu, memory_args

RATE = 6000  # samples a second
STACK = 8192  # bytes of each sample
LEAD = 0.3  # seconds at the beginning that are left out: caches, the branch predictor, memory that is used first
FIELDS = "event,time,period,ip,sym,dso"
PERF_MISSING = "perf is missing: apt-get install linux-perf (tools/setup/install --profile)"
PERF_REFUSED = "perf may not watch this program: run as root, or sysctl kernel.perf_event_paranoid=1"


def fail(text):
    sys.exit(f"run-fastpath --profile: {text}")


def events():
    """What perf counts here. The first one is for the cycles."""
    r = subprocess.run(["perf", "stat", "-x,", "-e", "cycles,cache-misses", "true"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if r.returncode and re.search(r"paranoid|permission|not permitted", r.stderr, re.I):
        fail(PERF_REFUSED)
    there = [name for name in ("cycles", "cache-misses") if re.search(rf"^[1-9]\d*,[^,]*,{name}", r.stderr, re.M)]
    return there if "cycles" in there else ["cpu-clock"]


def record(build, data, chosen, options):
    """Runs the benchmark; returns its figures."""
    memory, _ = memory_args()
    cmd = ["perf", "record", "-F", str(RATE), "-e", ",".join(chosen), "--call-graph", f"dwarf,{STACK}", "-o", str(data), "--",
           f"{build}/tests/bench/bench_fastpath", *eal(idle_cpu(), memory, "rwypf"), "--",
           "--payload", str(options.payload), "--qps", str(options.qps), "--ms", str(options.ms), *(["--keys"] if options.keys else [])]
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = p.communicate(timeout=120 + options.ms / 1000)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)  # perf's child, too
        p.communicate()
        fail(f"{' '.join(cmd)}: it does not end")
    if re.search(r"perf_event_paranoid|Permission denied|Operation not permitted", err) and not out:
        fail(PERF_REFUSED)
    try:
        figures = json.loads(out)
    except ValueError:
        fail(f"{' '.join(cmd)}: exit {p.returncode}\n{out[-1000:]}{err[-1000:]}")
    if not figures["slices"]:
        fail("the CPU was taken away in each batch; nothing can be measured now")
    return figures


# --- stacks that perf could not follow -------------------------------------------------------------------------

MMAP2, SAMPLE = 10, 9
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCHES, REGS_USER, STACK_USER, IDENTIFIER = (
    1 << n for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16))  # enum perf_event_sample_format


class Stacks:
    """Samples' stacks in a file of perf record (tools/perf/Documentation/perf.data-file-format.txt)."""

    def __init__(self, path, program, symbols=None):
        """symbols: [(address, function)] of the program; without, nm says them."""
        self.path, self.program, self.base = path, os.path.realpath(program), None
        if symbols is None:
            out = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True).stdout
            symbols = [(int(w[0], 16), w[2].split(".")[0]) for w in map(str.split, out.splitlines()) if len(w) == 3 and w[1] in "tTwW"]
        self.at, self.names = zip(*sorted(symbols))

    def function(self, word):
        """The function of the program that a return address is in, or None."""
        a = word - (self.base or 0) - 1
        i = bisect.bisect(self.at, a)
        return self.names[i - 1] if i and a < self.at[-1] else None

    def calls(self, stack):
        """The functions that the words of a stack are in, from the innermost, up to a turn or main."""
        found = []
        for (word,) in struct.iter_unpack("<Q", stack[:len(stack) & ~7]):
            f = self.function(word)
            if f and not f.startswith("_"):
                found.append(f)
                if f in fp_stages.SIDES or f == "main":
                    break
        return found

    def read(self, times):
        """(time in ns, calls) of the samples of these times."""
        with open(self.path, "rb") as f:
            magic, _, attr_size, attrs, attrs_size, start, size = struct.unpack("<8s6Q", f.read(56))
            if magic != b"PERFILE2":
                fail(f"{self.path}: not a file of perf record")
            f.seek(attrs)
            attr = f.read(attrs_size)
            kinds = {struct.unpack_from("<Q", attr, o + 24)[0] for o in range(0, attrs_size, attr_size)}
            regs = bin(struct.unpack_from("<Q", attr, 80)[0]).count("1")
            kind = kinds.pop()
            if kinds or kind & (READ | RAW | BRANCHES):
                fail(f"{self.path}: samples of a format that is not read here")
            f.seek(start)
            while f.tell() < start + size:
                what, _, length = struct.unpack("<IHH", f.read(8))
                event = f.read(length - 8)
                if what == MMAP2 and event[64:].split(b"\0")[0].decode() == self.program:
                    address, _, offset = struct.unpack_from("<3Q", event, 8)
                    self.base = address - offset if self.base is None else min(self.base, address - offset)
                elif what == SAMPLE:
                    time, stack = self.stack(event, kind, regs, times)
                    if stack:
                        yield time, self.calls(stack)

    @staticmethod
    def stack(event, kind, regs, times):
        """(time, stack or None), of a PERF_RECORD_SAMPLE."""
        o = 8 * sum(bool(kind & bit) for bit in (IDENTIFIER, IP, TID))
        time, = struct.unpack_from("<Q", event, o)
        if time not in times:
            return time, None
        o += 8 * sum(bool(kind & bit) for bit in (TIME, ADDR, ID, STREAM_ID, CPU, PERIOD))
        if kind & CALLCHAIN:
            o += 8 + 8 * struct.unpack_from("<Q", event, o)[0]
        if kind & REGS_USER:
            o += 8 + 8 * (regs if struct.unpack_from("<Q", event, o)[0] else 0)
        length, = struct.unpack_from("<Q", event, o)
        return time, event[o + 8:o + 8 + length] if length else None


# --- the whole ---------------------------------------------------------------------------------------------------


class Profile:
    """Both sides' tallies. Samples before the first turn that counts, and LEAD seconds more, are left out."""

    def __init__(self, chosen):
        self.cycles, self.start = chosen[0], None
        self.sides = {side: fp_stages.Tally() for side in fp_stages.SIDES.values()}
        self.cut = []  # samples that perf followed to no end: (time in ns, event, period, frames)

    def add(self, time, event, period, frames):
        side, within = fp_stages.turn(frames)
        if not side:
            return
        self.start = time if self.start is None else min(time, self.start)
        if time >= self.start + LEAD * 1e9:
            self.sides[side].add(within, period, misses=not event.startswith(self.cycles))

    def read(self, lines):
        for text, event, period, frames in fp_stages.samples(lines):
            second, part = text.split(".")
            time = int(second) * 10**9 + int(part.ljust(9, "0")[:9])
            if frames and "main" not in frames and not fp_stages.turn(frames)[0]:
                self.cut.append((time, event, period, frames))
            elif frames:
                self.add(time, event, period, frames)

    def mend(self, stacks):
        """stacks: (time, calls) from Stacks.read(). The first call and the last are sure: words in between
        may be left from earlier calls."""
        calls = dict(stacks)
        for time, event, period, frames in self.cut:
            found = calls.get(time)
            if found and found[-1] in fp_stages.SIDES:
                self.add(time, event, period, [f for f in frames if f != "[unknown]"] + [found[0], found[-1]])

    def problems(self, keys=False):
        few = [f"{side}: no sample" for side, t in self.sides.items() if not t.total]
        return few or [p for side, t in self.sides.items() for p in t.problems(side, keys)]


def measure(build, options):
    """(events, the benchmark's figures, Profile)."""
    chosen = events()
    folder = Path(build) / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as d:  # some 100 MB
        data, profile = Path(d) / "perf.data", Profile(chosen)
        figures = record(build, data, chosen, options)
        p = subprocess.Popen(["perf", "script", "--ns", "-i", str(data), "-F", FIELDS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        profile.read(p.stdout)
        if p.wait():
            fail(f"perf script: exit {p.returncode}")
        profile.mend(Stacks(data, f"{build}/tests/bench/bench_fastpath").read({time for time, *_ in profile.cut}))
    return chosen, figures, profile


def main(words):
    about = argparse.ArgumentParser(prog="run-fastpath --profile", description="cycles of a packet by stages of its path")
    about.add_argument("build", metavar="BUILD")
    about.add_argument("--payload", type=int, default=1024)
    about.add_argument("--qps", type=int, default=1)
    about.add_argument("--ms", type=int, default=6000, help="how long it runs")
    about.add_argument("--keys", action="store_true", help="with AES-128-GCM")
    about.add_argument("--json", action="store_true")
    options = about.parse_args(words)
    build, wrong = options.build, fp_stages.missing()
    if wrong:
        fail("tests/bench/fp_stages.py is out of date: " + "; ".join(wrong))
    if not Path(build, "tests/bench/bench_fastpath").exists():
        fail(f"make {build}/tests/bench/bench_fastpath first")
    if not shutil.which("perf"):
        fail(PERF_MISSING)
    chosen, figures, profile = measure(build, options)
    sides = {side: {"median": figures[side]["median"], "p10": figures[side]["p10"], "samples": t.samples,
                    "stages": t.rows(figures[side]["median"]) if t.total else []} for side, t in profile.sides.items()}
    if options.json:
        print(json.dumps({"payload": options.payload, "qps": options.qps, "keys": options.keys, "events": chosen, "tsc_hz": figures["tsc_hz"], **sides}))
    else:
        for side, s in sides.items():
            print(f"{side}, {options.payload} B, {options.qps} QP{'s' if options.qps > 1 else ''}{', keys' if options.keys else ''}: {s['median']:.0f} cycles a packet "
                  f"(best tenth {s['p10']:.0f}), {s['samples']} samples of {chosen[0]}")
            print("\n".join(fp_stages.table(s["stages"], len(chosen) > 1)) if s["stages"] else "no sample", end="\n\n")
    wrong = profile.problems(options.keys)
    for text in wrong:
        print(f"run-fastpath --profile: {text}", file=sys.stderr)
    return int(bool(wrong))
