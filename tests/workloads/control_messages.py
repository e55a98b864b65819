# SPDX-License-Identifier: Apache-2.0
"""Control messages beside bulk: 1 KiB now and then between 8 pairs of hosts, with a priority of
their own, while 8 others fill the WAN. Their 99th percentile against that of an idle path.

The messages are RDMA here. Gloo's are TCP, which gateways forward as it comes
(docs/what-crosses.md), and which the simulator does not have. `scale` (at most 16) divides the WAN.
"""
import _sim

WAN = 100e9


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    near = min(scale, 16)
    base = f"leaves=2 hosts=8 rtt=20ms wan={WAN / near:.0f} gwrate=100G rate=100G fhosts=8 xload=0.0005 xsize=1KiB xqps=8 time=3s skip=1s sample=100ms"

    def p99(w, bulk):
        tenants = "" if "native" in w else f"tenants=2 tflows={bulk},0 xtenant=2 priority=0,7"
        return _sim.rwydc(build, f"{base} {tenants or f'flows={bulk}'} {w}")["inter_p99_us"] / 1e3
    idle = p99("", 0)
    yield from _sim.arms("control messages, p99", "ms", idle, lambda w: p99(w, 8), row, goal=1.1 * idle, more=f"1 KiB beside 8 hosts that fill the WAN; 1/{near} of its rate")
