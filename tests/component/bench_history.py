#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# bench_history.py [BUILD]: when the history of fast-path results (tests/bench/history.py) reports a
# slower change.
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
sys.dont_write_bytecode = True
import cases  # noqa: E402
import history  # noqa: E402


def row(name, to_reference, machine="m, 4 KiB pages", bench=history.BENCH):
    return {"commit": "c", "machine": machine, "row": name, "cycles": 1000 * to_reference, "to_reference": to_reference, "to_csum": 10, "load": 1, "bench": bench}


def judge(now, then, reasons=()):
    return history.verdict(history.compare(now, history.latest(then, "m, 4 KiB pages")), list(reasons))


def test_slower_fails_unless_the_commit_says_why():
    then = [row("near", 0.5), row("far", 0.4)]
    for near, fails in ((0.45, False), (0.5, False), (0.524, False), (0.526, True), (1.0, True)):
        said, failed = judge([row("near", near), row("far", 0.4)], then)
        assert failed == fails, (near, said)
    said, failed = judge([row("near", 0.6), row("far", 0.4)], then)
    assert "near +20.0 %" in said and "far" not in said, said
    said, failed = judge([row("near", 0.6)], then, ["Fastpath: a check per packet"])
    assert not failed and "a check per packet" in said


def test_the_last_of_the_same_machine_and_bench_counts():
    then = [row("near", 0.9), row("near", 0.5), row("near", 9.0, machine="other"), row("near", 9.0, bench=history.BENCH - 1)]
    assert judge([row("near", 0.6)], then)[1]
    said, failed = judge([row("near", 0.6)], [row("near", 0.1, machine="other")])
    assert not failed and "nothing to compare with" in said
    said, failed = judge([row("near", 0.5), row("new", 7.0)], then)
    assert not failed


def test_a_second_run_can_only_be_better():
    one, other = [row("near", 0.6), row("far", 0.4)], [row("near", 0.5), row("far", 0.45)]
    assert [r["to_reference"] for r in history.best(one, other)] == [0.5, 0.4]
    assert judge(one, [row("near", 0.5)])[1] and not judge(history.best(one, other), [row("near", 0.5)])[1]


def test_file():
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / "history" / "x.jsonl"
        assert history.read(path) == []
        history.record([row("near", 0.5)], path)
        history.record([row("near", 0.6)], path)
        assert [r["to_reference"] for r in history.read(path)] == [0.5, 0.6]
    for r in history.read():  # the history in the tree
        assert r["to_reference"] > 0 and r["to_csum"] > 0 and r["cycles"] > 0 and r["commit"] and r["machine"] and r["row"], r


def test_reasons():
    for body, there in (("Fastpath: one more line a flow", True), ("x\nFastpath: because", True), ("Fastpath:", False), ("the Fastpath: x", False)):
        assert bool(history.REASON.search(body)) == there, body


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
