# SPDX-License-Identifier: Apache-2.0
"""Goals G4 to G6: two data centers in virtual time (docs/simulator.md). run-wan calls run(). Every
figure is from a seeded run of rwydc; beside Roceway stand the same scenario natively and, for G5,
the baselines."""
import csv
import json
import os
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import report

JOBS = min(2, os.cpu_count() or 1)
LIMIT = 600  # seconds per run
# Links between switches have room: the WAN and the receiver are measured, not how flows hash onto
# spines.
SMALL = "leaves=4 hosts=2 spines=2 frate=400G"
SITE = "leaves=4 hosts=4 spines=4"
# A gateway controls the queue in front of the WAN only if the queue is there: its port is faster
# than the WAN.
PORT = "gwrate=400G"
ARMS = (("native", "mode=native"), ("themis", "mode=native rule=themis"), ("grc", "mode=native rule=grc"), ("sr", "mode=native host=sr pfc=off"))
AUTO = "cc=auto"  # the product's default; without it the gateways know the WAN's rate (reserved path)
FOUND = 25  # round trips after which `auto` has found the rate of an idle path
LONG = "rto=4s backoff=1"  # what an operator sets for long distances: nothing is sent again too early
RTTS = (0.1, 1, 10, 25, 50, 100, 200)
WINDOW = 0.5  # ms: a rate is the mean over this time


class Run:
    def __init__(self, name, words, trace=False):
        self.name, self.words, self.trace, self.out, self.rows = name, words, trace, None, []

    def run(self, build):
        cmd = ["nice", f"{build}/tests/sim/rwydc", "--json", *self.words.split()]
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as f:
            try:
                r = subprocess.run(cmd + (["--trace", f.name] if self.trace else []), capture_output=True, text=True, timeout=LIMIT)
                self.out = json.loads(r.stdout)
            except (subprocess.TimeoutExpired, ValueError) as e:
                print(f"run-wan: {' '.join(cmd)}: {e}", flush=True)
                return self
            if r.returncode:
                print(f"run-wan: {r.stderr}", flush=True)
            if self.trace:
                self.rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]
        return self


def died(d):
    """A run in which queue pairs failed shows nothing that another one could be better than."""
    return d["qp_errors"] > 0


def row(name, value, unit, ref=None, ref_run=None, ref_name=None, goal=None, at_most=False, conditions="", by_ref=False):
    """report.row with the run that the reference is from. by_ref: the goal is relative to it: with a
    reference that died it is not met."""
    if ref_run is not None and died(ref_run):
        conditions = f"{ref_name}: {ref_run['qp_errors']:.0f} queue pairs in error, no reference; {conditions}"
        r = report.row(name, value, unit, None, None, goal, at_most, conditions)
        return {**r, "ok": False} if by_ref and goal is not None else r
    return report.row(name, value, unit, ref, ref_name, goal, at_most, conditions)


def n(d, *names):
    return " / ".join(f"{d[k]:.4g}" for k in names)


# --- G4 ------------------------------------------------------------------------------------------------


def g4_runs():
    for rtt in RTTS:
        words = f"leaves=2 hosts=2 spines=2 flows=1 rtt={rtt}ms time={max(30, 4 * rtt + 60):g}ms skip={max(10, 2 * rtt + 30):g}ms"
        yield Run(f"G4 {rtt:g}ms", words)
        yield Run(f"G4 {rtt:g}ms native", f"{words} mode=native")
        yield Run(f"G4 {rtt:g}ms native 10ms", f"{words} mode=native rto=10ms backoff=1")
        yield Run(f"G4 {rtt:g}ms native long", f"{words} mode=native {LONG}")


def g4_rows(r):
    base = r["G4 0.1ms"]["flows_gbps"]
    for rtt in RTTS:
        d, a, b, c = (r[f"G4 {rtt:g}ms{x}"] for x in ("", " native", " native 10ms", " native long"))
        cond = (f"{d['flows_gbps']:.2f} Gb/s; native {a['flows_gbps']:.3f} Gb/s, {a['host_resent']:.0f} packets sent again, with a timer of 10 ms that does not back off "
                f"{b['flows_gbps']:.3f} Gb/s, {b['qp_errors']:.0f} queue pairs in error, with one of 4 s {c['flows_gbps']:.3f} Gb/s; {d['host_resent_warm']:.0f} packets repeated before the connection was learned; "
                f"{d['scenario']}")
        yield report.row(f"G4 {rtt:g}ms goodput", d["flows_gbps"] / base, "of 0.1ms", c["flows_gbps"] / base, "native, 4 s", 0.98, False, cond)
        yield report.row(f"G4 {rtt:g}ms resent", d["host_resent"] + d["host_timeouts"], "packets", c["host_resent"] + c["host_timeouts"], "native, 4 s", 0, True, cond)


# --- G5 ------------------------------------------------------------------------------------------------


# ms between joins. `auto` first has to find the WAN's rate, which the first flow gives it time for.
STAGGER = {"": 20, "auto": 100, "native": 20}


def join_words(place, arm):
    """Four flows, one after the other. They share a WAN of 100G, or one receiver of 100G."""
    gap = STAGGER[arm]
    common = f"{SMALL} flows=4 depth=64 msg=1MiB rtt=6ms start=5ms stagger={gap}ms time={10 + 4 * gap}ms sample=50us"
    return f"{common} {PORT}" if place == "source" else f"{common} place=incast wan=400G gwrate=800G"


def settle(rows, flows, start, stagger, column):
    """The longest time, in ms, from a flow's start until all flows are within 10 % of their mean
    and stay so while nothing changes (`stagger`: they never do), and the share of the remaining
    time in which they are."""
    t = [r["ms"] for r in rows]
    w = max(1, round(WINDOW / (t[1] - t[0])))
    worst, good_n, all_n = 0, 0, 0
    for k in range(1, flows):
        since = None
        for i, x in enumerate(t):
            if not start + k * stagger + WINDOW <= x < start + (k + 1) * stagger:
                continue
            part = rows[i - w + 1:i + 1]
            v = [sum(r[f"{column}{j}"] for r in part) / w for j in range(k + 1)]
            fair = sum(v) / len(v)
            good = fair > 0 and all(abs(y - fair) <= fair / 10 for y in v)
            since = (x if since is None else since) if good else None
            good_n, all_n = good_n + good, all_n + 1
        worst = max(worst, stagger if since is None else since - start - k * stagger)
    return worst, good_n / all_n


def g5_runs():
    for flows in (2, 8, 64):
        for arm, words in (("", PORT), ("auto", f"{PORT} {AUTO}"), *ARMS):
            yield Run(f"G5 jain {flows} {arm}".rstrip(), f"{SITE} flows={flows} depth=64 msg=1MiB rtt=6ms time=120ms skip=60ms {words}")
    for place in ("source", "destination"):
        yield Run(f"G5 near-{place}", join_words(place, ""), True)
        yield Run(f"G5 near-{place} auto", f"{join_words(place, 'auto')} {AUTO}", True)
        yield Run(f"G5 near-{place} native", join_words(place, "native") + " mode=native", True)
    for rtt in (6, 12, 30):
        def words(more):
            begin = 10 + rtt * (FOUND if AUTO in more else 1)
            return f"{SITE} load=0.5 rtt={rtt}ms skip={begin}ms time={begin + 30}ms"
        yield Run(f"G5 mix {rtt}ms alone", f"{words('')} mode=native")
        for arm, more in (("", PORT), ("auto", f"{PORT} {AUTO}"), *ARMS, ("native long", f"mode=native {LONG}")):
            yield Run(f"G5 mix {rtt}ms {arm}".rstrip(), f"{words(more)} xload=0.6 xqps=128 {more}")


def g5_jain_rows(r, flows):
    native = r[f"G5 jain {flows} native"]
    for arm, goal in (("", 0.99), ("auto", 0.99), *((a, None) for a, _ in ARMS)):
        d = r[f"G5 jain {flows} {arm}".rstrip()]
        yield row(f"G5 Jain {flows} flows {arm}".rstrip(), d["jain"], "index", native["jain"], native, "native", goal, False,
                  f"{d['flows_gbps']:.1f} Gb/s, {d['qp_errors']:.0f} queue pairs in error; {d['scenario']}")


def g5_join_rows(r, place, offset, unit, goal):
    """Of each arm: how long until the shares of four flows are equal."""
    native = r[f"G5 near-{place} native"]

    def settled(x, arm):
        took, share = settle(x["rows"], 4, 5, STAGGER[arm], "rx")
        return max(0, took - offset) / (1 if unit == "ms" else 6), share
    theirs, other = settled(native, "native")
    for arm in ("", "auto"):
        d = r[f"G5 near-{place} {arm}".rstrip()]
        ours, share = settled(d, arm)
        yield row(f"G5 near-{place} {arm}".rstrip() + " settles", ours, unit, theirs, native, "native", goal, True,
                  f"until all shares are within 10 % for good, worst of 3 joins {STAGGER[arm]} ms apart (never counts as that); within 10 % for {100 * share:.0f} % of the time, natively "
                  f"{100 * other:.0f} %; {d['flows_gbps']:.1f} and {native['flows_gbps']:.1f} Gb/s" + ("; less the 3 ms of the path" if offset else "") + f"; {d['scenario']}")


def g5_mix_rows(r, rtt):
    """Roceway, with the WAN's rate known and without, and each baseline: traffic within a site beside
    traffic between the sites."""
    us = ("intra_mean_us", "intra_p99_us", "intra_small_us", "inter_mean_us")
    alone, native = r[f"G5 mix {rtt}ms alone"], r[f"G5 mix {rtt}ms native"]
    base = alone["intra_mean_us"]
    for arm in ("", "auto", *(a for a, _ in ARMS), "native long"):
        d = r[f"G5 mix {rtt}ms {arm}".rstrip()]
        ours = arm in ("", "auto")
        cond = (f"us: intra mean / p99 / mean below 100 kB / inter mean: {n(d, *us)}; natively {n(native, *us)}; without inter traffic {n(alone, *us[:3])}; "
                f"{d['qp_errors']:.0f} queue pairs in error; {d['scenario']}")
        name = f"G5 {rtt}ms {arm}".rstrip()
        yield row(f"{name} intra FCT", d["intra_mean_us"] / base, "x alone", native["intra_mean_us"] / base, native, "native", 1.10 if ours else None, True, cond)
        yield row(f"{name} inter FCT", d["inter_mean_us"], "us", native["inter_mean_us"], native, "native", None, True, cond)
        if ours:
            yield row(f"{name} intra vs native", d["intra_mean_us"] / native["intra_mean_us"], "x", None, native, "native", 0.2, True, cond, by_ref=True)
            yield row(f"{name} small vs native", d["intra_small_us"] / native["intra_small_us"], "x", None, native, "native", None, True, cond, by_ref=True)


def g5_rows(r):
    for flows in (2, 8, 64):
        yield from g5_jain_rows(r, flows)
    yield from g5_join_rows(r, "source", 3, "ms", 2)
    yield from g5_join_rows(r, "destination", 0, "RTT", 1.5)
    for rtt in (6, 12, 30):
        yield from g5_mix_rows(r, rtt)


# --- G6 ------------------------------------------------------------------------------------------------

SLOW_TO, G6_RTT = 25, 25  # Gb/s, ms
SLOW_AT = {"": 150, " auto": FOUND * 25}  # ms


def g6_words(arm):
    return f"{SMALL} flows=1 {PORT} xload=0.1 xsize=65536 rtt={G6_RTT}ms time={SLOW_AT[arm] + 250}ms sample=50us"


def g6_runs():
    for arm, more in (("", ""), (" auto", AUTO)):
        yield Run(f"G6 quiet{arm}", f"{g6_words(arm)} {more}")
        for slow in ("nic", "port"):
            yield Run(f"G6 {slow}{arm}", f"{g6_words(arm)} slow={slow} slow_at={SLOW_AT[arm]}ms slow_rate={SLOW_TO}G {more}", True)


def g6_rows(r):
    for slow, arm in (("nic", ""), ("port", ""), ("nic", " auto"), ("port", " auto")):
        slow_at, quiet = SLOW_AT[arm], r[f"G6 quiet{arm}"]
        slow += arm
        d = r[f"G6 {slow}"]
        rows = d["rows"]
        before = [x["rx0"] for x in rows if slow_at - G6_RTT < x["ms"] < slow_at]
        after = [x for x in rows if x["ms"] > slow_at + 6 * G6_RTT]
        # The bytes that come before the sender can know, less what the host takes meanwhile; bytes
        # from the IP header on, as the gateway counts.
        header, wire = 4140 / 4096, 4178 / 4140
        floor = (sum(before) / len(before) * header - SLOW_TO / wire) * G6_RTT / 8
        peak = max(x["far_held_mb"] for x in rows if x["ms"] > slow_at)
        steady = sum(x["far_held_mb"] for x in after) / len(after)
        rx = sum(x["rx0"] for x in after) / len(after)
        # `auto` looks for the WAN's rate by filling the queue in front of it, which is not the host's fault.
        lost = d["dropped"] + (0 if arm else d["wan_lost"])
        cond = (f"flow fell from {sum(before) / len(before):.1f} to {rx:.1f} Gb/s (the host takes {SLOW_TO / wire / header:.1f}); floor {floor:.0f} MB, peak {peak:.0f} MB, then "
                f"{steady:.1f} MB in the mean, BDP {d['bdp'] / 1e6:.0f} MB; {d['wan_lost']:.0f} packets lost in front of the WAN in all; {d['host_resent']:.0f} packets resent by hosts; {d['scenario']}")
        yield report.row(f"G6 {slow} drops", lost, "packets", None, None, 0, True, cond)
        yield report.row(f"G6 {slow} peak", peak / floor, "x floor", None, None, 1.05, True, cond)
        yield report.row(f"G6 {slow} steady", steady * 1e6 / d["bdp"], "BDP", None, None, 0.05, True, cond)
        yield report.row(f"G6 {slow} others FCT", d["inter_mean_us"] / quiet["inter_mean_us"], "x", None, None, 1.1, True, cond)


GOALS = (("G4", g4_runs, g4_rows), ("G5", g5_runs, g5_rows), ("G6", g6_runs, g6_rows))


def run(build, only):
    """Rows, and the number of runs without a figure or with violations. `only`: beginnings of goals
    (G4, G5, G6) to run; empty: all."""
    rows, broken, begin = [], 0, time.monotonic()
    for goal, runs, rows_of in GOALS:
        if only and not any(o.startswith(goal) for o in only):
            continue
        cells = list(runs())
        # The long runs begin first; the order does not matter for the result.
        with ThreadPoolExecutor(JOBS) as pool:
            done = list(pool.map(lambda c: c.run(build), sorted(cells, key=lambda c: -len(c.words))))
        bad = [c.name for c in done if c.out is None or c.out["violations"]]
        broken += len(bad)
        if any(c.out is None for c in done):
            print(f"  {goal}: no figures: {', '.join(bad)}", flush=True)
            continue
        result = {c.name: {**c.out, "rows": c.rows} for c in done}
        rows += rows_of(result)
        print(f"  {goal}: {len(cells)} runs of two data centers, {time.monotonic() - begin:.0f} s since the first", flush=True)
    return rows, broken
