#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# sim_workloads.py BUILD: the workloads of tests/workloads/ in small: a transfer with a deadline is
# there in time beside others and late without a plan, and its plan is what the controller makes.
import sys
from pathlib import Path

import cases

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))
sys.dont_write_bytecode = True
import weight_transfer as weights  # noqa: E402

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
SCALE = 512  # 459 MB over 1.95 Gbit/s


def run(name):
    words, time = weights.scenarios(SCALE)[name]
    return weights.run(BUILD, SCALE, words, time)


def test_alone_it_takes_what_the_path_needs():
    out = run("alone")
    assert out["done"] and out["errors"] == 0 and weights.limit() * 0.99 < out["seconds"] < weights.limit() / 0.95, (out, weights.limit())


def test_a_deadline_is_kept_beside_others():
    out, late = run("with a deadline, beside others"), run("without a plan, beside others")
    assert out["done"] and 0.9 * weights.WITHIN < out["seconds"] <= weights.WITHIN, out
    assert late["seconds"] > 1.2 * weights.WITHIN, late


def test_the_plan_is_the_controllers():
    """tests/unit/test_plan_shape.c has the same figure for 2 s."""
    assert round(weights.BYTES * 8 / (2 * weights.SPARE)) == 970322580645
    assert weights.reserved() < weights.WAN


sys.exit(cases.run(globals()))
