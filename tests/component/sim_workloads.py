#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# sim_workloads.py BUILD: the workloads of tests/workloads/ in small: a transfer with a deadline is
# there in time beside others and late without a plan, and its plan is what the controller makes.
import sys
from pathlib import Path

import cases

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))
sys.dont_write_bytecode = True
import _sim  # noqa: E402
import control_messages  # noqa: E402
import reinforcement  # noqa: E402
import training  # noqa: E402
import training_chips  # noqa: E402
import training_pipelines  # noqa: E402
import training_sites  # noqa: E402
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


def test_incast_is_fair_through_gateways_alone():
    words = reinforcement.words(SCALE, "flows=16 place=incast fsize=8MiB")
    ours, native = (_sim.rwydc(BUILD, f"{words} {w}") for w in ("", _sim.NATIVE["native"]))
    limit = 16 * 2**23 * 8 / (reinforcement.HOST / 32 * _sim.PLAIN) + reinforcement.RTT / 2
    assert ours["flows_done"] == 16 and limit < ours["flows_last_us"] / 1e6 < 1.2 * limit, (ours, limit)
    assert native["flows_last_us"] > 1.3e6 * limit, native


def test_an_outage_costs_a_step_little():
    clean, hit = (_sim.rwydc(BUILD, training.words(SCALE, 30, f"cc=auto {w}"), train=True) for w in ("", training.OUTAGE))
    assert hit["wan_lost"] > 0 and hit["qp_errors"] == 0 and 0.98 < hit["step_s"] / clean["step_s"] < 1.02, (clean, hit)


def test_steps_take_what_bytes_allow():
    """Over three sites, on mixed chips and in two pipelines: the time of one site, and of each message
    that is not hidden one time on the WAN."""
    pipelines = training_pipelines
    for words, site, messages, bytes_ in [
            (training.words(SCALE, 30, training_sites.SITES), (15 + 5) * 3.0302, 4, training.ACT),
            (training_chips.words(SCALE, 1.25), (3 + 15 * 1.25) * training_chips.SLOT, 2, training.ACT),
            (pipelines.words(SCALE, 8), (8 + 3) * pipelines.SLOT, 2, pipelines.PIPELINES * training.ACT)]:
        limit = site + messages * _sim.message(bytes_, training.WAN, training.RTT)
        assert limit < _sim.step(BUILD, words) < 1.002 * limit, (words, limit)


def test_tcp_passes_bulk():
    """Messages by TCP beside full load: through gateways in turn with its datagrams, natively behind
    its queue; each arrives once."""
    idle, ours, native = (_sim.rwydc(BUILD, control_messages.words(64, f"xop=ip time=1s skip=200ms {w}")) for w in ("", "flows=8", f"flows=8 {_sim.NATIVE['native']}"))
    assert all(r["inter_lost"] == 0 and r["inter_n"] > 50 for r in (idle, ours, native)), (idle, ours, native)
    assert ours["inter_p99_us"] < 1.1 * idle["inter_p99_us"] and native["inter_p99_us"] > 2 * idle["inter_p99_us"], (idle, ours, native)


def test_native_that_reaches_a_goal_is_named():
    def row(name, value, unit, reference=None, reference_name=None, goal=None, at_most=False, conditions=""):
        return {"name": name, "goal": goal, "conditions": conditions}
    figures = {"": 1.0, "cc=auto": 2.0, _sim.NATIVE["native"]: 5.0, _sim.NATIVE["native, no DCQCN"]: 1.1}
    rows = list(_sim.arms("x", "s", 1, figures.get, row, goal=1.2))
    assert [r["goal"] for r in rows] == [1.2, 1.2, None, None] and "does not tell" in rows[0]["conditions"], rows
    rows = list(_sim.arms("x", "s", 1, figures.get, row, goal=1.05, auto=False))
    assert [r["goal"] for r in rows] == [1.05, None, None, None] and "does not tell" not in rows[0]["conditions"], rows


sys.exit(cases.run(globals()))
