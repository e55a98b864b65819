#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# sim_train.py BUILD: rwydc train: with free messages a step takes the predicted time, the same seed
# makes the same run, a guarantee protects from other traffic, a queue pair in error ends the job,
# the spans of a stage fill the step. The schedule alone: test_sim_pipe.c.
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

RWYDC = str(Path(sys.argv[1]) / "tests/sim/rwydc")
SMALL = "leaves=2 hosts=8 stages=2 split=1 tp=2 server=1 micro=3 slot=60ms act=8MiB rtt=2ms"
BAD_WORDS = [
    ("split=7", "split is within stages"), ("micro=0", "micro: '0' is outside"), ("slot=3", "is not a time"), ("overlap=maybe", "none of: off on"),
    ("stages=4 split=2 third=2 tp=1", "third is a stage after split"), ("stages=4 split=2 third=4 tp=1", "third is a stage after split"),
    ("stages=8 leaves=2", "all its leaves but the last"), ("speed=1", "there is no key 'speed'"), ("act=1", "a byte a GPU"), ("loss=2", "loss: '2' is outside"),
]


def run(words, *more):
    return subprocess.run([RWYDC, "train", *more, *words.split()], capture_output=True, text=True, timeout=200)


def row(words):
    r = run(words, "--json")
    assert r.returncode == 0, (words, r)
    d = json.loads(r.stdout)
    assert d["violations"] == 0, d
    return d


def test_bad_words():
    for words, want in BAD_WORDS:
        r = run(words)
        assert r.returncode == 2 and want in r.stderr and r.stderr.count("\n") == 1 and not r.stdout, (words, r)


def test_free_messages():
    for words in ("net=off", "net=off overlap=on early=1 micro=64 mode=native"):
        d = row(words)
        assert abs(d["step_s"] - d["free_s"]) < 1e-6 and d["packets"] == 0, d
    assert abs(row("net=off micro=15 slot=3s")["step_s"] - 60) < 1e-6


def test_repeatable():
    a, b, c = (row(f"{SMALL} cross=2 seed={s}") for s in (7, 7, 8))
    assert a["hash"] == b["hash"] != c["hash"] and a["step_s"] == b["step_s"], (a, b, c)
    assert row(a["scenario"])["hash"] == a["hash"]


def test_distance():
    """One micro-batch, two stages: two passes each way and two messages, each of its bytes at the
    rate and half a round trip."""
    d = row(f"{SMALL} micro=1 wan=1G rtt=20ms")
    message = 8 * 2**20 * 8 / 1e9 + 10e-3
    assert 120e-3 + 2 * message < d["step_s"] < 120e-3 + 2.1 * message and d["wan_n"] == 2, d


def test_three_sites():
    """One micro-batch, a stage at each site: three passes each way, and four messages."""
    words = f"{SMALL} stages=3 split=1 third=2 micro=1 wan=1G rtt=20ms overlap=on early=1"
    message = 8 * 2**20 * 8 / 1e9 + 10e-3
    for mode in "", "cc=auto", "mode=native rto=1s":
        d = row(f"{words} {mode}")
        assert 180e-3 + 4 * message < d["step_s"] < 180e-3 + 4.2 * message + (0.2 if mode == "cc=auto" else 0) and d["wan_n"] == 4, (mode, d)
    assert row(f"{words} cross=2")["step_s"] > 180e-3 + 5 * message  # the others are between two of the sites
    for more in "loss=1e-2", "outage_at=100ms outage_len=50ms":
        d = row(f"{words} {more}")
        assert d["done"] == 1 and d["wan_lost"] > 0 and d["qp_errors"] == 0, (more, d)
    d, again = (row(f"{words} cross=2 guarantee=0.9 seed=3") for _ in "ab")
    assert d["hash"] == again["hash"], (d, again)


def test_unequal_stages():
    for words in ("", "split=2"):
        d = row(f"net=off stages=4 split=3 tp=1 micro=15 slot=3s slot2=4s {words}")
        last = 2 if words else 3
        assert abs(d["step_s"] - d["free_s"]) < 1e-6 and abs(d["free_s"] - (3 * last + 4 * (4 - last) + 14 * 4)) < 1e-6, d


def test_guarantee():
    clean, shared, kept = (row(f"{SMALL} wan=1G {more}")["wan_ms"] for more in ("", "cross=4", "cross=4 guarantee=0.95"))
    assert shared > 2 * clean and 0.9 * clean < kept < 1.2 * clean, (clean, shared, kept)


def test_broken():
    d = row(f"{SMALL} mode=native rto=10ms backoff=1 retry=3 rtt=200ms")
    assert d["done"] == 0 and d["qp_errors"] > 0, d


def test_losses():
    d = row(f"{SMALL} loss=1e-2")
    assert d["done"] == 1 and d["wan_lost"] > 0 and d["qp_errors"] == 0, d


def test_spans():
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as f:
        step = json.loads(run(f"{SMALL} mode=native", "--json", "--spans", f.name).stdout)["step_s"]
        rows = list(csv.DictReader(f))
    of = [[r for r in rows if r["stage"] == s] for s in "01"]
    assert all(sum(r["what"] == k for r in stage) == 3 for stage in of for k in ("forward", "backward")), rows
    assert abs(sum(float(r["to_s"]) - float(r["from_s"]) for r in of[0]) - step) < 1e-5, rows
    assert all(abs(float(a["to_s"]) - float(b["from_s"])) < 2e-6 for stage in of for a, b in zip(stage, stage[1:])), rows


sys.exit(cases.run(globals()))
