# SPDX-License-Identifier: Apache-2.0
"""Weights of a model cross the WAN from its trainers to the hosts that roll it out, in time.

A published transfer of a model with 235 billion parameters, in FP8 a byte each, took 2 s from 128
to 32 GPUs within one cluster. Here it crosses 20 ms, over a WAN of 1 Tb/s that others want half of
as well. A job with `bytes` and a deadline gets the rate that the controller makes of them
(controller/plan/shape.h) as a reservation: guaranteed, and not exceeded.

The simulator (rwydc, docs/simulator.md) has 32 hosts with 100 Gb/s at each site; a flow for each
receiver has an equal part of the weights. `scale` divides the bytes and the WAN, so that all times
stay and a run is shorter.

The limit beside each time is the path's: the payload at the WAN's rate, less headers of 4 KiB
packets (Ethernet, IP and UDP of the tunnel, its header, RoCE), and half a round trip.
"""
import json
import subprocess

BYTES, RECEIVERS = 235e9, 32
WAN, RTT = 1e12, 0.020
WITHIN = 2.5  # s: twice of what a cluster would take, and little more than the WAN's limit
SPARE = 31 / 32  # PLAN_SHAPE_SPARE
GATEWAY = 0.92  # a: what headers leave of what the gateway sends, as the controller counts
PAYLOAD = 0.967  # what they leave of 4 KiB packets
OTHERS = 0.5  # of the WAN
NATIVE = "mode=native rto=1s"  # NIC timers that follow their configuration


def limit():
    """The shortest time in which the path carries the weights."""
    return BYTES * 8 / (WAN * PAYLOAD) + RTT / 2


def reserved():
    """What the plan gives to the job, bit/s on the wire: n/a."""
    return BYTES * 8 / (WITHIN * SPARE) / GATEWAY


def run(build, scale, words, time):
    wan = f"leaves=5 hosts=8 fhosts={RECEIVERS} wan={WAN / scale:.0f} gwrate=1000G rtt={RTT * 1e3:.0f}ms custody=6 credit=6"
    work = f"fsize={BYTES / scale / RECEIVERS:.0f} time={time}s sample=100ms"
    r = subprocess.run(["nice", f"{build}/tests/sim/rwydc", "--json", *wan.split(), *work.split(), *words.split()], capture_output=True, text=True, timeout=3600)
    if r.returncode:
        raise RuntimeError(f"rwydc {wan} {work} {words}: {r.stderr}")
    out = json.loads(r.stdout)
    return {"seconds": out["flows_last_us"] / 1e6, "done": out["flows_done"] == RECEIVERS, "others_us": out["inter_p50_us"], "errors": out["qp_errors"]}


def scenarios(scale):
    """name: words, time to run."""
    others = f"xload={OTHERS} xqps=64"
    tenants = f"tenants=2 tflows={RECEIVERS},0 xtenant=2"
    rate = f"{reserved() / scale:.0f},0"
    return {
        "alone": (f"flows={RECEIVERS}", 4),
        "alone, native": (f"flows={RECEIVERS} {NATIVE}", 4),
        "with a deadline, beside others": (f"{others} {tenants} guarantee={rate} limit={rate} priority=1,0", 4),
        "without a plan, beside others": (f"{others} {tenants}", 8),
        "native, beside others": (f"flows={RECEIVERS} {others} {NATIVE}", 8),
    }


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    for name, (words, time) in scenarios(scale).items():
        out = run(build, scale, words, time)
        goal = {"alone": limit() / 0.95, "with a deadline, beside others": WITHIN}.get(name)
        text = f"235 GB to 32 hosts over 20 ms, 1/{scale} of all bytes and rates; others' messages p50 {out['others_us'] / 1e3:.1f} ms"
        text += "" if name != "alone" else "; native reaches the goal, too"
        text += "" if out["done"] else "; not done then"
        yield row(f"weights, {name}", out["seconds"] if out["done"] else time, "s", reference=limit(), reference_name="path", goal=goal, at_most=True, conditions=text)
        if name == "with a deadline, beside others":
            yield row("weights, earlier than the deadline", 100 * (1 - out["seconds"] / WITHIN), "%", goal=5, at_most=True,
                      conditions="1/32 is spare; headers take 3.3 % of 4 KiB packets, and the plan counts 8 %")
