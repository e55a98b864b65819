# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning over two sites: the weights of 16 trainers are cut anew for 16 rollout hosts
(each to each), and results of 16 hosts go to one (incast). 20 ms, a WAN of 400 Gb/s, hosts of 100.

The limit is the payload at the narrowest place, the WAN for the first and a host's link for the
second, and half a round trip; the time is that of the last byte of all, so no percentile is above
it. `scale` (at most 32: packets keep their size) divides rates and bytes.
"""
import _sim

HOSTS, WAN, HOST, RTT = 16, 400e9, 100e9, 0.020
RESHARD, RESULT = 64 << 20, 1 << 30  # bytes of a pair, of a host


def words(scale, more):
    near = min(scale, 32)
    return f"leaves=2 hosts=8 rtt=20ms wan={WAN / near:.0f} rate={HOST / near:.0f} msg={max(2048, 65536 // near)} ackreq={max(1, 16 // near)} time=20s sample=100ms {more}"


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    near = min(scale, 32)

    def last(flows, more):
        out = _sim.rwydc(build, words(scale, more))
        return out["flows_last_us"] / 1e6 if out["flows_done"] == flows else float("inf")

    limit = HOSTS * RESULT * 8 / (HOST * _sim.PLAIN) + RTT / 2
    yield from _sim.arms("RL, incast of 16", "s", limit, lambda w: last(HOSTS, f"flows={HOSTS} place=incast fsize={RESULT // near} {w}"), row, goal=1.2 * limit,
                         more=f"1 GiB of each of 16 hosts to one; 1/{near} of all bytes and rates")
    limit = HOSTS * HOSTS * RESHARD * 8 / (WAN * _sim.TUNNEL) + RTT / 2
    yield from _sim.arms("RL, each to each", "s", limit, lambda w: last(HOSTS**2, f"flows={HOSTS**2} place=all fsize={RESHARD // near} {w}"), row, goal=1.2 * limit, auto=False,
                         more=f"256 queue pairs, 64 MiB each; 1/{near} of all bytes and rates")
    # Hosts behind gateways have a timer of 2 ms, and repeat while the queues of their own network are longer.
    yield row("RL, each to each, auto, timers of 1 s", last(HOSTS**2, f"flows={HOSTS**2} place=all fsize={RESHARD // near} cc=auto rto=1s"), "s", reference=limit,
              reference_name="limit", conditions=f"as native's; 1/{near} of all bytes and rates")
