# SPDX-License-Identifier: Apache-2.0
# Queue rules: a device that has rte_flow puts each worker's datagrams into its queue (lab/tap.py).
from lab import needs
from lab.tap import gateway_on_tap

QPS = 8
UDP_PORT = 4793


def counted(gw, name):
    """A counter of each worker."""
    found = {c["worker"]: c["value"] for c in gw.ask("counters", "--workers", "--all")["counters"]
             if (c["group"], c["name"]) == ("gateway", name)}
    return [found[w] for w in sorted(found)]


@needs(gateway=True, workers=2, steering="qp", timeout=300)
def test_queue_rules(lab):
    """ib_write_bw with 8 QPs, which both workers serve: the filters count the datagrams of each, and worker 1, which polls
    nothing but its queue of the WAN, has none of another and hands none over."""
    with gateway_on_tap(lab) as (guest, gw):
        ports = {p["name"]: p for p in gw.ask("ports")["ports"]}
        lab.log(f"ports: {ports}")
        assert ports["wan"]["queue_rules"] == {"rules": 2, "installed": 2, "why": ""}, ports["wan"]
        assert "each worker gets its own datagrams: queue rules=2" in gw.said()
        before = guest.filters()
        lab.log(f"filters: {before}")
        p = lab.perftest("ib_write_bw", size=4096, qps=QPS, iters=20, limit=90)
        assert p.ok, p.text
        after = guest.filters()
        lab.log(f"filters: {after}")
        for worker in 0, 1:
            port = UDP_PORT + worker
            assert after[port][0] == worker and after[port][1] > before[port][1] + 5, (before, after)
        handed, wan, received = (counted(gw, n)[1] for n in ("handoff", "to_engine_wan", "rx_packets"))
        lab.log(f"worker 1: handed over {handed}, datagrams {wan}, received {received}")
        assert handed == 0 and 0 < wan <= received, (handed, wan, received)
