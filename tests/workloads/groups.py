# SPDX-License-Identifier: Apache-2.0
"""Groups that come and go: 400 queue pairs, a new one each 2 ms, each with one part of what a group
exchanges, two thirds of a WAN of 100 Gb/s at 20 ms together. None is known to the gateways before its
first packet. The limit is half a round trip and the part at the host's rate.

`scale` (at most 16) divides rates and bytes.
"""
import _sim

WAN, RTT, PART, PAIRS, APART = 100e9, 0.020, 16 << 20, 400, 0.002


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    near = min(scale, 16)
    limit = PART * 8 / (WAN * _sim.PLAIN) + RTT / 2

    def mean(w):
        words = f"leaves=2 hosts=8 rtt=20ms wan={WAN / near:.0f} gwrate={WAN:.0f} rate={WAN / near:.0f} msg={65536 // near} ackreq={max(1, 16 // near)}"
        out = _sim.rwydc(build, f"{words} flows={PAIRS} stagger={APART * 1e3:.0f}ms fsize={PART // near} time=5s sample=100ms {w}")
        return out["flows_fct_us"] / 1e3 if out["flows_done"] == PAIRS else float("inf")
    yield from _sim.arms("groups, new queue pairs", "ms", limit * 1e3, mean, row, goal=1.2e3 * limit, auto=False,
                         more=f"mean time of 16 MiB on a queue pair of its own, one each 2 ms; 1/{near} of all bytes and rates")
