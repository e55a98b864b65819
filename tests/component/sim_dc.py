#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# sim_dc.py BUILD: rwydc reports errors of a scenario; the same seed makes the same run; a thin run
# equals the full run; whatever the network does, every message ends exactly once, in order; and
# results that arithmetic predicts are as predicted.
import csv
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cases

RWYDC = str(Path(sys.argv[1]) / "tests/sim/rwydc")
SMALL = "leaves=2 hosts=2 spines=2"

BAD_WORDS = [
    ("rtt=-5ms", "word 1: rtt: '-5ms' is outside"), ("loss=95%", "word 1: loss: '95%' is outside"), ("rate=fast", "is not bits a second"),
    ("speed=1", "there is no key 'speed'"), ("rtt", "is not key=value"), ("mode=other", "is none of: roceway native"), ("seed=1.5", "seed: '1.5' is outside"),
    ("rtt=5", "is not a time with its unit"), ("cc=reno", "cc: there is no such algorithm"), ("pmtu=1500", "pmtu is 256, 512"),
    ("kmin=2MiB", "minimum is above its maximum"), ("rule=grc", "rule is of the native"), ("host=sr", "host=sr is a baseline"), ("skip=1s", "skip leaves nothing"),
    ("slow_at=1ms", "slow_at wants slow_rate"), ("loss=1e-3 payload=thin", "payload=full"), ("leaves=64 hosts=64", "more than 250 hosts"),
    ("leaves=1 hosts=1 load=0.5", "load wants two hosts"), ("start=2ms time=1ms", "within time"),
    ("tenants=3 guarantee=5G,3G", "guarantee: fewer values than tenants"), ("tenants=1 weight=0", "weight: '0' is outside"),
    ("tenants=1 guarantee=5G limit=1G", "its limit is below its guarantee"), ("tenants=1 mode=native", "tenants are the gateways'"), ("xtenant=1", "one of the tenants"),
    ("fhosts=32", "leaves no host"), ("tenants=1 set_at=1ms", "set_at wants set_tenant"), ("tenants=1 limit=fast", "is not bits a second"),
]
RUNS = [
    f"{SMALL} flows=2 xload=0.1 load=0.3 rtt=1ms time=8ms", f"{SMALL} flows=2 xload=0.1 load=0.3 rtt=1ms time=8ms mode=native",
    f"{SMALL} flows=2 rtt=1ms time=8ms loss=1e-3 cc=auto ccrate=0", f"{SMALL} flows=1 rtt=1ms time=8ms loss=1e-3 mode=native",
    f"{SMALL} load=0.8 time=5ms pfc=off buf=1MiB ecn=off mode=native", f"{SMALL} flows=3 place=incast bidir=1 op=send rtt=500us time=8ms",
    f"{SMALL} flows=2 rtt=1ms time=20ms slow=nic slow_at=4ms slow_rate=10G slow_len=6ms", f"{SMALL} flows=2 rtt=1ms time=20ms slow_at=4ms slow_rate=10G",
    f"{SMALL} flows=2 load=0.2 rtt=1ms time=10ms mode=native host=sr loss=1e-3", f"{SMALL} flows=3 load=0.3 rtt=1ms time=10ms mode=native rule=themis",
    f"{SMALL} flows=3 rtt=1ms time=10ms mode=native rule=grc", f"{SMALL} flows=3 place=incast rtt=4ms wan=400G credit=0.1 time=20ms",
    f"{SMALL} flows=2 msg=1000 pmtu=1024 rtt=300us time=3ms jitter=20us",
]


def run(words, *more):
    return subprocess.run([RWYDC, *more, *words.split()], capture_output=True, text=True, timeout=200)


def row(words):
    r = run(words, "--json")
    assert r.returncode == 0, (words, r)
    return json.loads(r.stdout)


def test_bad_words():
    for words, want in BAD_WORDS:
        r = run(words)
        assert r.returncode == 2 and want in r.stderr and r.stderr.count("\n") == 1 and not r.stdout, (words, r)


def test_files():
    with tempfile.NamedTemporaryFile("w", suffix=".scen") as f:
        f.write("leaves 2 # small\n\nhosts 2\nload 30%\ntime 2ms\n")
        f.flush()
        assert run("", "--hash", "--file", f.name).stdout == run("leaves=2 hosts=2 load=0.3 time=2ms", "--hash").stdout
        f.write("rtt\n")
        f.flush()
        r = run("", "--file", f.name)
        assert r.returncode == 2 and ":6: 'rtt' wants one value" in r.stderr, r


def test_invariants():
    with ThreadPoolExecutor(2) as pool:
        for words, d in zip(RUNS, pool.map(row, RUNS)):
            assert d["violations"] == 0 and d["messages"] > 0 and d["qp_errors"] == 0, (words, d)


def test_repeatable():
    hashes = [run(f"{RUNS[0]} seed={seed}", "--hash").stdout for seed in (7, 7, 8)]
    assert hashes[0] == hashes[1] != hashes[2] and len(hashes[0]) == 17, hashes
    assert row(row(RUNS[0])["scenario"])["hash"] == row(RUNS[0])["hash"]


def test_thin_is_full():
    a, b = (run(f"{SMALL} flows=3 xload=0.2 rtt=1ms time=3ms fec=off payload={p}", "--hash").stdout for p in ("thin", "full"))
    assert a == b != "", (a, b)


def test_windows():
    """128 messages of 64 KiB outstanding, 25 ms: natively a window per round trip, through the
    gateways the line rate."""
    native = row(f"{SMALL} mode=native flows=1 rtt=25ms time=300ms skip=50ms rto=1s")
    assert abs(native["flows_gbps"] / (128 * 65536 * 8 / 25e-3 / 1e9) - 1) < 0.05, native["flows_gbps"]
    near = row(f"{SMALL} flows=1 rtt=25ms time=60ms skip=40ms")
    assert near["flows_gbps"] > 90 and near["host_resent"] == 0 and near["host_timeouts"] == 0, near


def test_timers():
    """A NIC with a timer shorter than the path repeats packets; one without back-off gives up."""
    assert row(f"{SMALL} mode=native flows=1 rtt=25ms time=60ms")["host_resent"] > 0
    dead = row(f"{SMALL} mode=native flows=1 rtt=100ms time=60ms rto=10ms backoff=1")
    assert dead["qp_errors"] == 1 and dead["flows_gbps"] == 0, dead


def test_lossless():
    """No drops with PFC; drops without it, which go-back-N repairs."""
    hard = f"{SMALL} mode=native load=0.9 time=5ms buf=2MiB ecn=off"
    a, b = row(hard), row(f"{hard} pfc=off alpha=0.25")
    assert a["dropped"] == 0 and a["pauses"] > 0 and a["host_resent"] == 0, a
    assert b["dropped"] > 0 and b["pauses"] == 0 and b["host_resent"] > 0 and b["intra_n"] == a["intra_n"], b


def test_repair():
    """A lost packet costs selective repeat one packet, go-back-N all packets in flight."""
    words = f"{SMALL} mode=native flows=1 rtt=1ms rto=20ms loss=1e-4 time=60ms skip=20ms"
    sr, gbn = row(f"{words} host=sr"), row(words)
    assert gbn["host_resent"] > 100 * sr["host_resent"] > 0 and sr["host_resent"] <= 2 * sr["wan_lost"] and sr["qp_errors"] == 0, (sr, gbn)


def test_marks():
    """Marking keeps queues short at little cost."""
    with_ecn, without = (row(f"{SMALL} mode=native load=0.6 time=20ms sizes=fixed isize=1MiB ecn={e}") for e in ("on", "off"))
    assert with_ecn["cnps"] > 0 and without["cnps"] == 0 and with_ecn["leaf_peak"] < without["leaf_peak"], (with_ecn, without)


def test_tenants():
    """Two tenants share a link by guarantee and weight; a limit set at run time holds from then on;
    no packet reaches another tenant's host (a violation)."""
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as f:
        words = f"{SMALL} wan=10G frate=40G gwrate=40G rate=10G rtt=1ms tenants=2 guarantee=6G,0 tflows=2,2 set_at=15ms set_tenant=2 set_limit=1G time=25ms"
        r = run(words, "--json", "--trace", f.name)
        assert r.returncode == 0, r
        d, rows = json.loads(r.stdout), list(csv.DictReader(f))
    for begin, end, want in ((8, 15, (8, 2)), (17, 25, (9, 1))):
        part = [x for x in rows if begin < float(x["ms"]) <= end]
        got = [sum(float(x[f"wire{i}"]) for x in part) / len(part) for i in (1, 2)]
        assert all(abs(g - w) < 0.1 for g, w in zip(got, want)), (begin, got)
    assert d["violations"] == 0 and d["dropped"] == 0 and d["qp_errors"] == 0, d


def test_traces():
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as f:
        assert run(f"{SMALL} flows=2 rtt=1ms time=4ms", "--trace", f.name).returncode == 0
        lines = f.read().splitlines()
        assert lines[0].startswith("ms,far_held_mb") and len(lines) == 40 and all(l.count(",") == lines[0].count(",") for l in lines), lines[:3]


sys.exit(cases.run(globals()))
