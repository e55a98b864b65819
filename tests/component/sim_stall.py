#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# sim_stall.py BUILD: rwystall reports errors of a scenario, the same seed makes the same run, and
# at a takeover hosts go on at once, whatever they ask for: none waits for its own timer. All times
# are virtual, so the figures are exact.
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cases

RWYSTALL = str(Path(sys.argv[1]) / "tests/sim/rwystall")
BAD_WORDS = [("event=fire", "is none of: nothing kill"), ("qps=2", "qps: '2' is outside"), ("speed=1", "there is no key 'speed'")]
BEAT, TIMEOUT = 10, 67  # ms


def run(words):
    return subprocess.run([RWYSTALL, *words.split()], capture_output=True, text=True)


def longest(words):
    """{what: ms}"""
    r = run(words)
    assert r.returncode == 0 and r.stdout.endswith("\n0 operations failed\n"), (words, r)
    return {m[1].strip(): float(m[2]) for m in re.finditer(r"(?m)^(.{28}) median .* longest +(-?[0-9.]+) ms$", r.stdout)}


def all_longest(words):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(longest, words))


def test_help():
    r = run("--help")
    assert r.returncode == 0 and r.stdout.startswith("usage: rwystall ") and " rounds " in r.stdout and not r.stderr, r


def test_bad_words():
    for words, want in BAD_WORDS:
        r = run(words)
        assert r.returncode == 2 and want in r.stderr and r.stderr.count("\n") == 1 and not r.stdout, (words, r)


def test_repeatable():
    a, b, c = (run("rounds=1 qps=10 seed=%d" % seed).stdout for seed in (7, 7, 8))
    assert a == b != c, (a, c)


def test_nobody_waits_for_a_timer():
    """depth=1: a READ or an ATOMIC that died with the gateway is all that its host waits for."""
    for d in all_longest(["rounds=4 depth=1", "rounds=2 depth=16", "rounds=2 event=still"]):
        assert len(d) == 13 and 4 * BEAT - 5 < d["noticed"] < d["served"] < max(d.values()), d
        assert all(ms < d["served"] + 10 < TIMEOUT for what, ms in d.items() if " of host " in what), d


def test_hand_over():
    d = longest("rounds=2 event=hand-over")
    assert all(ms < 10 for what, ms in d.items() if what != "whole again"), d


sys.exit(cases.run(globals()))
