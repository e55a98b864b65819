# SPDX-License-Identifier: Apache-2.0
# Jobs of granularity qp: tests of controller_api.py. Weights are 3:1 at both sites, so 16 queue pairs are 9:3:3:1 over the pairs of gateways.
from collections import Counter

from ctlr.harness import until
from ctlr.networks import texts

A, B = "10.1.5.1", "10.2.5.1"
QPS = [(0x100 + i, 0x2000 + 7 * i) for i in range(16)]  # at A, at B


def start(w):
    w.sites()
    fast = {"bandwidth": 3 * 10**10}
    gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{"gw-a1": fast, "gw-b1": fast})
    stop = {g.name: w.keep_alive(g) for g in gws}
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    return gws, stop


def named(bps=10**8):
    return {"granularity": "qp", "pairs": [{"source": A, "destination": B, "source_qpn": a, "destination_qpn": b, "bandwidth_bps": bps} for a, b in QPS]}


def opened(gateway, qps, turned=False, **more):
    """{(QPN at A, QPN at B): (gateway at A, gateway at B)} of the decisions for a report of these.
    """
    sessions = [{"id": f"{a}-{b}", "event": "opened", "source": B if turned else A, "destination": A if turned else B, "source_qpn": b if turned else a,
                 "destination_qpn": a if turned else b, **more} for a, b in qps]
    said = gateway.client.post(gateway.path("/sessions"), {"sessions": sessions})["decisions"]
    pairs = {tuple(map(int, d["id"].split("-"))): tuple(d["pair"].split("/")) for d in said}
    return {q: p[::-1] for q, p in pairs.items()} if turned else pairs


def planned(said):
    return {(r["source_qpn"], r["destination_qpn"]): tuple(r["pair"].split("/")) for r in said["plan"] if "pair" in r}


def routed(w):
    """The same of the routes of both sites, where those agree."""
    here, there = ({(r["source_qpn"], r["destination_qpn"]): r["gateways"][0]["gateway"] for r in w.op.get(f"/v1/routes?site={s}")["routes"] if "source_qpn" in r}
                   for s in "ab")
    assert {(b, a) for a, b in here} == set(there), (here, there)
    return {(a, b): (g, there[b, a]) for (a, b), g in here.items()}


def documented(gws):
    """The same of assignments; those of siblings say the same."""
    out, siblings = {}, {}
    for g in gws:
        doc = g.document()
        for x in doc["assignments"]:
            first = g.name.startswith("gw-a")
            q = (x["source_qpn"], x["destination_qpn"]) if first else (x["destination_qpn"], x["source_qpn"])
            assert x["source"] == (A if first else B) and x["destination"] == (B if first else A)
            pair = (g.name, x["tunnel"]) if first else (x["tunnel"], g.name)
            assert out.setdefault(q, pair) == pair
        for s in doc["siblings"]:
            for p in s["pairs"]:
                siblings.setdefault((p["source"], p["source_qpn"], p["destination_qpn"]), set()).add(s["name"])
    for (a, b), (at_a, at_b) in out.items():
        assert siblings.get((A, a, b)) in ({at_a}, None) and siblings.get((B, b, a)) in ({at_b}, None)
    return out


def test_named_queue_pairs_have_a_pair_of_gateways_each(w):
    gws, stop = start(w)
    said = w.sched.put("/v1/jobs/q", named(), 201)
    plan = planned(said)
    assert len(plan) == 16 and Counter(plan.values()) == {("gw-a1", "gw-b1"): 9, ("gw-a1", "gw-b2"): 3, ("gw-a2", "gw-b1"): 3, ("gw-a2", "gw-b2"): 1}
    assert routed(w) == plan and documented(gws) == plan
    # a session of each, by either end; another queue pair of the same hosts is not the job's
    assert opened(gws[0], QPS[:8]) == {q: plan[q] for q in QPS[:8]} and opened(gws[3], QPS, True) == plan
    assert opened(gws[0], QPS) == plan and routed(w) == plan
    opened(gws[0], [(0x777, 0x778)])
    x = w.op.get("/v1/sessions/gw-a1:256-8192/explain")
    assert [p["pair"] for p in x["pairs"] if p["chosen"]] == ["/".join(plan[256, 8192])]
    # planned again with more of them, in another order: none moves
    more = named()
    more["pairs"].reverse()
    more["pairs"] += [{**more["pairs"][0], "source_qpn": 0x900 + i, "destination_qpn": 0x9000 + i} for i in range(16)]
    again = planned(w.sched.put("/v1/jobs/q", more, 200))
    assert {q: again[q] for q in QPS} == plan
    assert Counter(again.values()) == {("gw-a1", "gw-b1"): 18, ("gw-a1", "gw-b2"): 6, ("gw-a2", "gw-b1"): 6, ("gw-a2", "gw-b2"): 2}
    w.sched.put("/v1/jobs/q", named(), 200)
    assert planned(w.sched.get("/v1/jobs/q")) == plan  # the same question, the same answer
    # a gateway is lost: its queue pairs move, the others stay, at both ends; it returns: none moves
    stop["gw-a2"]()
    until(lambda: w.op.get("/v1/gateways/gw-a2")["state"] == "lost")
    after = planned(w.sched.get("/v1/jobs/q"))
    assert all(after[q] == p if p[0] != "gw-a2" else after[q][0] == "gw-a1" for q, p in plan.items())
    assert routed(w) == after and documented([g for g in gws if g.name != "gw-a2"]) == after
    assert opened(gws[2], QPS, True) == after and "4 of its 16 pairs moved to other gateways" in texts(w, "q")
    gws[1].register()
    stop["gw-a2"] = w.keep_alive(gws[1])
    until(lambda: all(t["weight"] for t in gws[2].document()["tunnels"]))
    assert planned(w.sched.get("/v1/jobs/q")) == after
    # after a restart, too
    for how in (w.ctl.stop, w.ctl.kill):
        [end() for end in stop.values()]
        how()
        w.ctl.start()
        w.connect()
        for g in gws:
            g.client = getattr(w, g.name.replace("-", "_"))
            g.renew()
        stop = {g.name: w.keep_alive(g) for g in gws}
        assert planned(w.sched.get("/v1/jobs/q")) == after and routed(w) == after and documented(gws) == after
    w.sched.delete("/v1/jobs/q")
    assert routed(w) == {} and documented(gws) == {}
    for bad, field in [({"destination_qpn": None}, "pairs[0].destination_qpn"), ({"source_qpn": None}, "pairs[0].source_qpn")]:
        body = named()
        body["pairs"][0] = {k: v for k, v in body["pairs"][0].items() if k not in bad}
        assert w.sched.put("/v1/jobs/q", body, 400)["field"] == field
    assert w.sched.put("/v1/jobs/q", {**named(), "granularity": "nic"}, 400)["field"] == "granularity"
    assert w.sched.put("/v1/jobs/q", {"pairs": named()["pairs"]}, 400)["field"] == "granularity"
    [end() for end in stop.values()]


def test_queue_pairs_that_nobody_named_are_spread_as_they_are_reported(w):
    gws, stop = start(w)
    said = w.sched.put("/v1/jobs/q", {"granularity": "qp", "pairs": [{"source": A, "destination": B, "bandwidth_bps": 16 * 10**8}]}, 201)
    assert "pair" not in said["plan"][0] and planned(said) == {}
    there = opened(gws[0], QPS[:8]) | opened(gws[1], QPS[8:])
    shares = Counter(there.values())
    assert shares == {("gw-a1", "gw-b1"): 9, ("gw-a1", "gw-b2"): 3, ("gw-a2", "gw-b1"): 3, ("gw-a2", "gw-b2"): 1}, shares
    assert opened(gws[2], QPS, True) == there and routed(w) == there
    # reported again, planned again with other demands: none moves
    assert opened(gws[0], QPS) == there
    w.sched.put("/v1/jobs/q", {"granularity": "qp", "pairs": [{"source": A, "destination": B, "bandwidth_bps": 8 * 10**8}]}, 200)
    assert opened(gws[2], QPS[::-1], True) == there and routed(w) == there
    # a session in a tunnel stays there
    s = {"id": "here", "event": "opened", "source": A, "destination": B, "source_qpn": 0x5000, "destination_qpn": 0x5001, "tunnel": "gw-b2"}
    assert gws[1].client.post(gws[1].path("/sessions"), {"sessions": [s]})["decisions"][0]["pair"] == "gw-a2/gw-b2"
    # one with unknown QPNs follows its addresses
    s = {"id": "new", "event": "opened", "source": A, "destination": B}
    assert gws[0].client.post(gws[0].path("/sessions"), {"sessions": [s]})["decisions"][0]["pair"]
    stop["gw-b2"]()
    until(lambda: w.op.get("/v1/gateways/gw-b2")["state"] == "lost")
    after = opened(gws[0], QPS)
    assert all(after[q] == p if p[1] != "gw-b2" else after[q][1] == "gw-b1" for q, p in there.items())
    assert opened(gws[2], QPS, True) == after
    [end() for end in stop.values()]
