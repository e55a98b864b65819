# SPDX-License-Identifier: Apache-2.0
"""Control messages beside bulk: 1 KiB now and then between 8 pairs of hosts, while 8 others fill the
WAN. Their 99th percentile against that of an idle path.

Once they are RDMA, in a tenant of their own with the highest priority. Once they are a TCP packet
each, as Gloo's are: gateways carry those as they come, and between two datagrams of bulk
(docs/what-crosses.md); nobody has to name a class for them. A lost one is counted, and not sent
again. `scale` (at most 16) divides the WAN.
"""
import _sim

WAN = 100e9
TENANTS = "tenants=2 tflows={},0 xtenant=2 priority=0,7"
KINDS = {"control messages, p99": ("xop=rc", TENANTS), "control messages by TCP, p99": ("xop=ip", "flows={}")}


def words(near, more):
    return f"leaves=2 hosts=8 rtt=20ms wan={WAN / near:.0f} gwrate=100G rate=100G fhosts=8 xload=0.0005 xsize=1KiB xqps=8 time=3s skip=1s sample=100ms {more}"


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    near = min(scale, 16)
    for name, (kind, bulk) in KINDS.items():
        def p99(w, flows, kind=kind, bulk=bulk):
            out = _sim.rwydc(build, words(near, f"{kind} {('flows={}' if 'native' in w else bulk).format(flows)} {w}"))
            return out["inter_p99_us"] / 1e3 if not out["inter_lost"] else float("inf")
        idle = p99("", 0)
        yield from _sim.arms(name, "ms", idle, lambda w, f=p99: f(w, 8), row, goal=1.1 * idle, more=f"1 KiB beside 8 hosts that fill the WAN; 1/{near} of its rate")
