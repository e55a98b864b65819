# SPDX-License-Identifier: Apache-2.0
"""Goals T4: tenants in two data centers in virtual time (docs/simulator.md). run-tenants calls
run(). The gateways are the engine's own objects. Rates are what the simulator counts on the WAN, by
tenant, in sliding windows. A message's time ends with its last byte at the receiver."""
import time
from concurrent.futures import ThreadPoolExecutor

from dc_goals import JOBS, Run

import report

# The hosts' links and the fabric have room: the WAN, 100 Gb/s, is shared. 4 hosts of 100 Gb/s send
# four times that.
SITE = "leaves=4 hosts=1 spines=2 frate=400G gwrate=400G"
PAIR = "leaves=4 hosts=2 spines=4 frate=800G gwrate=800G fhosts=4"
BEGIN = 25  # ms: begin of the overload
WINDOW = 2  # ms
SHARES = (50, 30, 10)
WEIGHTS = (1, 2, 1)
OVER = f"tenants=3 tflows=16,16,16 tstart={BEGIN}ms,{BEGIN}ms,0 weight=1,2,1"
# The tenant's messages: 64 KiB, Poisson, on queue pairs and hosts of their own.
SMALL = "xtenant=1 xqps=32 xload=0.2 xsize=65536"
AGGRESSOR = f"{PAIR} tenants=2 guarantee=40G,0 treserve=40%,0 {SMALL} time=70ms skip=30ms"
# Priority 7 and a guarantee: a message now and then, beside two tenants that have nearly all the
# rest guaranteed and send as fast as they can.
LOW = f"{PAIR} rtt=2ms tenants=3 treserve=10%,30%,30% xtenant=1 xqps=16 xload=0.02 xsize=4096 time=60ms skip=20ms"
LOADED = "tflows=0,32,32"
# One tenant's messages beside another tenant whose hosts do what harms others, at the LAN's rate.
HOSTILE = f"{PAIR} rtt=10ms tenants=2 guarantee=40G,0 treserve=40%,0 {SMALL} htenant=2 time=60ms skip=25ms"
WAYS = {"deep windows": "tflows=0,64 depth=1024", "ignored ACKs": "tflows=0,64 hostile=deaf", "bogus QPNs": "tflows=0,0 hostile=bogus",
        "CM flood": "tflows=0,0 hostile=cm payload=full"}


def words(rtt=10, guarantee="50G,30G,10G", more=""):
    return f"{SITE} rtt={rtt}ms guarantee={guarantee} {OVER} treserve=40%,25%,10% time=80ms skip=40ms {more}"


def runs():
    yield Run("overload", words(), True)
    # A tenth of all packets is lost, and every byte must arrive. What is repeated costs the path.
    yield Run("overload lossy", "leaves=4 hosts=1 spines=2 frate=40G gwrate=40G rate=10G wan=10G rtt=10ms loss=0.01 guarantee=5G,3G,1G "
              f"{OVER} treserve=40%,25%,10% time=160ms skip=60ms", True)
    for rtt in (1, 10):
        yield Run(f"alone {rtt}", f"{AGGRESSOR} rtt={rtt}ms tflows=0,0")
        yield Run(f"aggressor {rtt}", f"{AGGRESSOR} rtt={rtt}ms tflows=0,1000 depth=2")
    limit = f"{SITE} rtt=10ms tenants=2 tflows=16,16 treserve=30%,30% limit=20G,0 time=200ms skip=40ms set_at=100ms set_tenant=1"
    yield Run("limit up", f"{limit} set_limit=40G", True)
    yield Run("limit down", f"{limit} set_limit=5G", True)
    yield Run("low idle", f"{LOW} priority=7,0,0 guarantee=5G,60G,30G tflows=0,0,0")
    yield Run("low loaded", f"{LOW} priority=7,0,0 guarantee=5G,60G,30G {LOADED}")
    yield Run("low plain", f"{LOW} guarantee=0,60G,30G {LOADED}")
    yield Run("hostile alone", f"{HOSTILE} tflows=0,0", True)
    for name, way in WAYS.items():
        yield Run(f"hostile {name}", f"{HOSTILE} {way}", True)
    # The hosts of a limited tenant, beside a tenant with memory of its own.
    near = f"{PAIR} rtt=10ms tenants=2 limit=0,10G treserve=40%,20% {SMALL} time=150ms skip=50ms"
    yield Run("near alone", f"{near} tflows=0,0")
    yield Run("near", f"{near} tflows=0,64", True)


# --- rates ------------------------------------------------------------------------------------------


def sliding(rows, column, window, begin=0, end=1e9):
    """(end of the window, mean of the column over it), for each sample."""
    t = [r["ms"] for r in rows]
    w = max(1, round(window / (t[1] - t[0])))
    acc, out = 0.0, []
    for i, r in enumerate(rows):
        acc += r[column] - (rows[i - w][column] if i >= w else 0)
        if i + 1 >= w and t[i] - window >= begin and t[i] <= end:
            out.append((t[i], acc / w))
    return out


def since(points, good, begin):
    """The time after `begin` from which on all windows are good; None: the last one is not. A
    window counts from its end."""
    at = None
    for t, v in points:
        at = (t if at is None else at) if good(v) else None
    return None if at is None else max(0, at - begin)


def mean(rows, column, begin, end=1e9):
    v = [r[column] for r in rows if begin < r["ms"] <= end]
    return sum(v) / len(v)


def hosts(d):
    return f"{d['dropped'] + d['wan_lost']:.0f} packets dropped, {d['host_resent']:.0f} sent again by hosts, {d['gw_cnps_sent']:.0f} CNPs, {d['gw_holdbacks']:.0f} ACKs held back"


def overload_rows(name, d, scale, goal):
    rows, took, least, last = d["rows"], [], [], max(r["ms"] for r in d["rows"])
    for i, g in enumerate(SHARES, 1):
        p = sliding(rows, f"wire{i}", WINDOW, BEGIN)
        after = since(p, lambda v, g=g: v >= .99 * g * scale, BEGIN)
        took.append(last - BEGIN if after is None else after)
        least.append(min(v for t, v in p if t >= BEGIN + 10 + WINDOW) / (g * scale))
    got = [mean(rows, f"wire{i}", BEGIN + 10) for i in (1, 2, 3)]
    rest = sum(got) - sum(SHARES) * scale
    off = max(abs((x - g * scale) / rest / (w / sum(WEIGHTS)) - 1) for x, g, w in zip(got, SHARES, WEIGHTS))
    hostly = [mean(rows, f"got{i}", BEGIN + 20) for i in (1, 2, 3)]
    cond = (f"guarantees {'/'.join(f'{g * scale:g}' for g in SHARES)} of {100 * scale:g} Gb/s, weights 1:2:1, 4 hosts send all they can; windows of {WINDOW} ms on the wire; "
            f"{'/'.join(f'{x:.2f}' for x in got)} Gb/s there, {'/'.join(f'{x:.2f}' for x in hostly)} of payload at the hosts; {hosts(d)}; {d['scenario']}")
    yield report.row(f"T4 {name} guarantee after", max(took), "ms", None, None, 10 if goal else None, True, cond)
    yield report.row(f"T4 {name} least of guarantee", min(least), "x", None, None, .99 if goal else None, False, cond)
    yield report.row(f"T4 {name} rest by weight, off", off, "share", None, None, .02 if goal else None, True, cond)


def hostile_rows(r):
    a = r["hostile alone"]
    alone = mean(a["rows"], "wire1", 25)
    for name in WAYS:
        d = r[f"hostile {name}"]
        got = mean(d["rows"], "wire1", 25)
        cond = (f"64 KiB messages, 20 Gb/s of 100, {d['inter_n']:.0f} of them, beside another tenant that harms; its p50 / p99 "
                f"{d['inter_p50_us']:.0f} / {d['inter_p99_us']:.0f} us, alone {a['inter_p50_us']:.0f} / {a['inter_p99_us']:.0f}; the other has "
                f"{mean(d['rows'], 'wire2', 25):.1f} Gb/s of the WAN; {hosts(d)}; {d['scenario']}")
        yield report.row(f"T4 hostile {name} goodput", got / alone, "x", None, None, .97, False, f"on the wire {got:.2f} Gb/s, alone {alone:.2f}; {cond}")
        yield report.row(f"T4 hostile {name} p99", d["inter_p99_us"], "us", a["inter_p99_us"], "alone", 1.1 * a["inter_p99_us"], True, cond)


def rows_of(r):
    d = r["overload"]
    yield from overload_rows("overload", d, 1, True)
    yield report.row("T4 overload lost", d["dropped"] + d["wan_lost"] + d["host_resent"], "packets", None, None, 0, True, f"dropped, or sent again by hosts; {hosts(d)}")
    yield from overload_rows("lossy overload", r["overload lossy"], .1, True)
    for rtt in (1, 10):
        a, d = r[f"alone {rtt}"], r[f"aggressor {rtt}"]
        cond = (f"us: mean / p50 / p99 of {d['inter_n']:.0f} messages of 64 KiB: {d['inter_mean_us']:.0f} / {d['inter_p50_us']:.0f} / {d['inter_p99_us']:.0f}, alone "
                f"{a['inter_mean_us']:.0f} / {a['inter_p50_us']:.0f} / {a['inter_p99_us']:.0f}; the path alone is {500 * rtt} us; aggressor {d['flows_gbps']:.1f} Gb/s on 1,000 queue pairs of "
                f"other hosts; {hosts(d)}; {d['scenario']}")
        yield report.row(f"T4 aggressor {rtt}ms p99", d["inter_p99_us"], "us", a["inter_p99_us"], "alone", 1.05 * a["inter_p99_us"], True, cond)
    for name, old, new in (("up", 20, 40), ("down", 20, 5)):
        d = r[f"limit {name}"]
        before = sliding(d["rows"], "wire1", 10, 60, 100)
        after = sliding(d["rows"], "wire1", WINDOW, 100)
        took = since(after, lambda v: abs(v / new - 1) <= .01, 100)
        cond = (f"one call of eng_tenant_set a gateway at 100 ms: limit {old} to {new} Gb/s; {mean(d['rows'], 'wire1', 60, 100):.3f} before, {mean(d['rows'], 'wire1', 120):.3f} after; {hosts(d)}; "
                f"{d['scenario']}")
        yield report.row(f"T4 limit {name} seen after", 100 if took is None else took, "ms", None, None, 1000, True, f"within 1 %, windows of {WINDOW} ms; {cond}")
        yield report.row(f"T4 limit {name} held, off", max(abs(v / old - 1) for _, v in before), "share", None, None, .01, True, f"windows of 10 ms; {cond}")
        yield report.row(f"T4 limit {name} lost", d["dropped"] + d["wan_lost"], "packets", None, None, 0, True, cond)
    a, d, p = r["low idle"], r["low loaded"], r["low plain"]
    cond = (f"4 KiB now and then, priority 7 and 5 Gb/s guaranteed, beside 60 and 30 Gb/s guaranteed to others that send all they can ({d['flows_gbps']:.1f} Gb/s); without load "
            f"{a['inter_p99_us']:.1f} us, without priority and guarantee {p['inter_p99_us']:.1f} us; the path alone is 1000 us; {d['scenario']}")
    yield report.row("T4 low latency p99", d["inter_p99_us"], "us", p["inter_p99_us"], "plain", 1.05 * a["inter_p99_us"], True, cond)
    yield from hostile_rows(r)
    a, d = r["near alone"], r["near"]
    cond = f"a tenant with limit 10 Gb/s whose hosts send all they can on 64 queue pairs, beside one that is measured; {hosts(d)}; {d['scenario']}"
    held = max(x["custody2"] for x in d["rows"])
    free = .6 * (3 * d["bdp"] + (64 << 20)) / 1e6
    yield report.row("T4 near source held", held / free, "share", None, None, 1.05, True,
                     f"{held:.1f} MB in custody at most, of {free:.1f} MB that are not reserved for the other; {cond}")
    yield report.row("T4 near source resent", d["host_resent"] / d["packets"], "share", None, None, .05, True, cond)
    yield report.row("T4 near source limit, off", abs(mean(d["rows"], "wire2", 60) / 10 - 1), "share", None, None, .01, True, cond)
    yield report.row("T4 near source lost", d["dropped"] + d["wan_lost"], "packets", None, None, 0, True, cond)
    yield report.row("T4 near source others p99", d["inter_p99_us"], "us", a["inter_p99_us"], "alone", 1.05 * a["inter_p99_us"], True, cond)


def run(build, only):
    """Rows, and the number of runs without a figure or with violations."""
    begin = time.monotonic()
    if only and not any(o.startswith("T4") for o in only):
        return [], 0
    cells = list(runs())
    with ThreadPoolExecutor(JOBS) as pool:
        done = list(pool.map(lambda c: c.run(build), cells))
    bad = [c.name for c in done if c.out is None or c.out["violations"]]
    if any(c.out is None for c in done):
        print(f"  T4: no figures: {', '.join(bad)}", flush=True)
        return [], len(bad)
    rows = list(rows_of({c.name: {**c.out, "rows": c.rows} for c in done}))
    print(f"  T4: {len(cells)} runs of two data centers with tenants, {time.monotonic() - begin:.0f} s", flush=True)
    return rows, len(bad)
