#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# sim_perf.py BUILD: rwyperf reports errors of a scenario; the same seed makes the same run; hosts
# READ through the gateways as fast as without them where nothing is lost, no far host is asked
# twice, and every byte is right. All times are virtual, so the figures are exact.
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cases

RWYPERF = str(Path(sys.argv[1]) / "tests/sim/rwyperf")
BAD_WORDS = [
    ("rtt=-5ms", "word 1: rtt: '-5ms' is outside"), ("loss=60%", "word 1: loss: '60%' is outside"), ("speed=1", "there is no key 'speed'"),
    ("op=atomic", "is none of: read write send"), ("qps=0", "qps: '0' is outside"), ("size=1X", "is not bytes"), ("cc=reno", "cc: there is no such algorithm"),
    ("time=1s skip=2s", "skip leaves nothing"),
]
# Queue pairs, bytes, messages of each. The hosts' links take 32 Mbit/s: the last of 64 READs of
# 1 MiB waits for 19 s. Soft-RoCE's window lets a queue pair have one such READ outstanding and a
# part of the next, the window of others lets it have 16.
ONCE = [
    "qps=4 size=1MiB messages=12", "qps=16 size=64KiB messages=48", "qps=16 size=1MiB messages=5", "qps=64 size=1MiB messages=2",
    "qps=16 size=1MiB messages=16 window=100000 queue=20000",
]


def run(words):
    return subprocess.run([RWYPERF, *words.split()], capture_output=True, text=True)


def result(words):
    r = run(words)
    d = json.loads(r.stdout)
    assert r.returncode == 0 and d["good"], (words, r)
    return d


def results(words):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(result, words))


def test_help():
    r = run("--help")
    assert r.returncode == 0 and r.stdout.startswith("usage: rwyperf ") and " messages" in r.stdout and not r.stderr, r


def test_bad_words():
    for words, want in BAD_WORDS:
        r = run(words)
        assert r.returncode == 2 and want in r.stderr and r.stderr.count("\n") == 1 and not r.stdout, (words, r)


def test_repeatable():
    a, b, c = (run(f"loss=1% messages=64 seed={seed}").stdout for seed in (7, 7, 8))
    assert a == b != c, (a, c)


def test_reads_are_asked_once():
    for d in results([f"{w} rtt={rtt}" for w in ONCE for rtt in ("200us", "100ms")]):
        assert d["old"] == d["sent_again"] == d["timeouts"] == d["implied_naks"] == 0, d
        assert d["of_line"] >= 0.99, d


# Host A repeats READs each 268 ms, and its timers run out before it sees the answers that came
# during a pause. A copy of a connection's first READ is not taken for a new connection's.
def test_repeats_of_a_slow_host():
    runs = results([f"qps=16 size=1MiB messages=5 rtt=200us pauses=5 pause=600ms seed={seed}" for seed in range(1, 7)])
    assert all(d["repeats_of_host"] > 100 and d["of_line"] >= 0.95 for d in runs), runs
    # A first copy comes after a pause, when nothing has shown the host's timer yet: 4 of 96 READs,
    # and 20 without the rule.
    assert sum(d["asked"] - 80 for d in runs) <= 8, runs


# A connection's first READ without CM costs up to one round trip, so that the path MTU is known.
def test_as_fast_as_native():
    for rtt in ("200us", "20ms", "100ms"):
        for size in ("64KiB", "1MiB"):
            for op in ("read", "send", "write"):
                ours, native = results([f"op={op} rtt={rtt} size={size} messages=1000 time=6s skip=2s mode={m}" for m in ("roceway", "native")])
                assert ours["MBps"] >= 0.995 * native["MBps"], (rtt, size, op, ours, native)


# Two seconds after the path has changed a host has what it has on the new one from the start, also
# when the gateways' processes stand still now and then.
def test_path_that_changes():
    for op in ("read", "send", "write"):
        for before, after in ((0.2, 20), (20, 60), (60, 20)):
            for more in ("", "stalls=300 stall=6ms"):
                common = f"op={op} messages=4000 time=8s skip=4500ms {more}"
                changed, constant = results([f"{common} rtt={before}ms change=2s rtt2={after}ms", f"{common} rtt={after}ms"])
                assert changed["MBps"] >= 0.98 * constant["MBps"], (op, before, after, more, changed, constant)
                assert changed["host_sent_again"] == changed["sent_again"] == 0, (op, before, after, more, changed)


# The path is used at a small part of its rate. FEC knows where an answer ends, so a lost response
# is rebuilt instead of waiting for a round trip.
def test_lost_responses_cost_little():
    for words in ("rtt=20ms", "rtt=100ms", "rtt=100ms size=1MiB messages=32", "rtt=100ms qps=4"):
        for seed in (1, 2, 3):
            lossy, clean = results([f"{words} seed={seed} loss={loss}" for loss in ("1%", "0")])
            assert lossy["MBps"] >= 0.95 * clean["MBps"], (words, lossy, clean)
            assert lossy["repairs"] <= 0.16 * lossy["packets"], (words, lossy)


# The loss begins after a minute without any: FEC must notice.
def test_loss_begins_late():
    common = "rtt=100ms messages=8000 time=80s skip=60s change=60s rtt2=100ms"
    lossy, clean = results([f"{common} loss2={loss}" for loss in ("1%", "0")])
    assert lossy["MBps"] >= 0.96 * clean["MBps"], (lossy, clean)


sys.exit(cases.run(globals()))
