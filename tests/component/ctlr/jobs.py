# SPDX-License-Identifier: Apache-2.0
# Jobs: planned, refused, withdrawn, and what the loss of gateways makes of them: tests of controller_api.py.
import signal
import threading
import time

from ctlr.harness import Gateway, SLOW, until
from ctlr.world import duration, keep_alive


def test_jobs_are_planned_refused_and_withdrawn(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{"gw-a1": {"bandwidth": 3 * 10**10}})
    stop = keep_alive(w, *gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    job = {"name": "j1", "pairs": [{"source": f"10.1.5.{i}", "destination": f"10.2.5.{i}", "bandwidth_bps": 10**8} for i in range(16)]}
    plan = w.sched.post("/v1/jobs", job, 201)
    first = [r["pair"].split("/")[0] for r in plan["plan"]]
    assert first.count("gw-a1") == 12 and first.count("gw-a2") == 4, first
    assert all(r["gateway_bps"] >= 10**8 and r["edge_bps"] >= r["gateway_bps"] for r in plan["plan"])
    w.sched.post("/v1/jobs", job, 200)  # the same again
    assert w.sched.post("/v1/jobs", {**job, "duration_ms": 5}, 409)["field"] == "name"
    # gateways and hosts get the same for both directions
    told = [(x["source"], x["destination"], g.name, x["tunnel"]) for g in gws for x in g.document()["assignments"]]
    assert len(told) == 32
    for r in plan["plan"]:
        a, b = r["pair"].split("/")
        assert (r["source"], r["destination"], a, b) in told and (r["destination"], r["source"], b, a) in told
    # each gateway knows its sibling, its tunnels and its pairs
    for g, other in ((gws[0], "gw-a2"), (gws[1], "gw-a1"), (gws[2], "gw-b2"), (gws[3], "gw-b1")):
        (s,) = g.document()["siblings"]
        assert s["name"] == other and s["state"] == "up" and len(s["tunnels"]) == 2, s
        assert {(p["source"], p["destination"]) for p in s["pairs"]} == {t[:2] for t in told if t[2] == other}
        for t in next(x for x in gws if x.name == other).document()["tunnels"]:
            assert {"peer": t["peer"], "weight": t["weight"]} in s["tunnels"], (t, s)
    routes = {(r["source"], r["destination"]): r["gateways"][0]["gateway"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r}
    for r in plan["plan"]:
        assert routes[r["source"] + "/32", r["destination"] + "/32"] == r["pair"].split("/")[0]
    opened = gws[0].open(*[(r["source"], r["destination"]) for r in plan["plan"]])
    assert [d["pair"] for d in opened] == [r["pair"] for r in plan["plan"]]
    # too much, and the largest demand that fits
    out = w.sched.post("/v1/jobs", {"name": "j2", "pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**12}]}, 409)
    assert 0 < out["fits"][0]["bandwidth_bps"] < 10**12, out
    w.sched.put("/v1/jobs/j1", {"pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**12}]}, 409)
    assert w.sched.get("/v1/jobs/j1")["plan"] == plan["plan"]  # the old plan stays
    w.sched.put("/v1/jobs/j1", {"pairs": job["pairs"][:2]}, 200)
    assert len(w.sched.get("/v1/jobs/j1")["plan"]) == 2
    ranks = [{"rank": i, "address": f"10.{1 + i // 4}.7.{i}", "stage": i // 4} for i in range(8)]
    w.sched.put("/v1/jobs/pp", {"ranks": ranks, "demand": {"bandwidth_bps": 10**8}}, 201)
    assert len(w.sched.get("/v1/jobs/pp")["plan"]) == 4
    w.sched.put("/v1/jobs/bad", {"ranks": ranks[:7], "demand": {"bandwidth_bps": 10**8}}, 400)
    w.sched.put("/v1/jobs/bad", {"ranks": ranks}, 400)
    w.sched.put("/v1/jobs/bad", {"pairs": job["pairs"], "tenant": "nobody"}, 409)
    # its bandwidth is free again after its withdrawal, or after its end time
    big = {"pairs": [{"source": "10.1.6.1", "destination": "10.2.6.1", "bandwidth_bps": 6 * 10**9}]}
    w.sched.put("/v1/jobs/big", {**big, "duration_ms": 1000}, 201)
    until(lambda: w.sched.ask("GET", "/v1/jobs/big")[0] == 404)
    for name in ("j1", "pp"):
        w.sched.delete(f"/v1/jobs/{name}")
    w.sched.delete("/v1/jobs/j1", 404)
    assert w.sched.get("/v1/jobs")["jobs"] == []
    assert all(not g.document()["assignments"] for g in gws)
    stop()


def test_two_jobs_name_one_pair(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, *gws)
    until(lambda: [t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"])

    def job(bps):
        return {"pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": bps}]}

    def told(g, jobs):
        status, out = g.client.ask("GET", g.path(f"/document?after={g.generation}&wait_ms=1000"))
        g.generation = out["generation"] if status == 200 else g.generation
        return status == 200 and sorted(x["job"] for x in out["assignments"]) == jobs

    def routed():
        return [r["source"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r] == ["10.1.5.1/32"]
    # whichever was first by name or by time: each is told, and the other one stays when it goes
    for first, second in (("j1", "j2"), ("j2", "j1")):
        w.sched.put(f"/v1/jobs/{first}", job(10**8), 201)
        [until(lambda g=g: told(g, [first])) for g in gws]
        w.sched.put(f"/v1/jobs/{second}", job(10**9), 201)
        [until(lambda g=g: told(g, ["j1", "j2"])) for g in gws]
        for name, left in ((first, [second]), (second, [])):
            assert routed()
            w.sched.delete(f"/v1/jobs/{name}")
            [until(lambda g=g: told(g, left)) for g in gws]
        assert not routed()
    # one that changes stays in the list
    w.sched.put("/v1/jobs/j1", job(10**8), 201)
    w.sched.put("/v1/jobs/j2", job(10**8), 201)
    w.sched.put("/v1/jobs/j1", {"pairs": [{"source": "10.1.5.9", "destination": "10.2.5.9", "bandwidth_bps": 10**8}]}, 200)
    assert sorted(r["source"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r) == ["10.1.5.1/32", "10.1.5.9/32"]
    stop()


def job_of(net, bps):
    return {"pairs": [{"source": f"10.1.{net}.{i}", "destination": f"10.2.{net}.{k}", "bandwidth_bps": bps} for i in range(4) for k in range(4)]}


def pairs_by_routes(a, b):
    """{(source, destination): (gateway at A, gateway at B)} of the answers to /v1/routes of both sites."""
    there, back = ({(r["source"][:-3], r["destination"][:-3]): r["gateways"][0]["gateway"] for r in said["routes"] if "source" in r} for said in (a, b))
    return {(x, y): (g, back[y, x]) for (x, y), g in there.items() if (y, x) in back}


def pairs_by_job(said):
    return {(r["source"], r["destination"]): tuple(r["pair"].split("/")) for r in said["plan"]}


def four(w):
    fast = {"bandwidth": 3 * 10**10}
    gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{"gw-a1": fast, "gw-b1": fast})
    stop = {g.name: keep_alive(w, g) for g in gws}
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    return gws, stop


def test_pairs_of_a_lost_gateway_go_elsewhere_in_one_step(w):
    w.sites()
    (a1, a2, b1, b2), stop = four(w)
    before = pairs_by_job(w.sched.put("/v1/jobs/j1", job_of(5, 10**8), 201))
    assert len(before) == 16 and any(g == "gw-a2" for g, _ in before.values())
    some = sorted(before, key=lambda p: before[p])[1::2]  # the others have no session
    assert [d["pair"] for d in a2.open(*some)] == ["/".join(before[p]) for p in some]
    # hosts and the gateways at the other end poll
    said, documents, hosts = {}, [], w.ctl.client(w.context["op"])
    generation = w.op.get("/v1/routes?site=a")["generation"]
    peer = Gateway(w.ctl.client(w.context["gw-b1"]), "gw-b1", "b", 21)
    def watch():
        g = peer.document()["generation"]
        while not documents or any(t["weight"] for t in documents[-1]["tunnels"] if t["peer"] == "gw-a2"):
            documents.append(peer.document(after=g, wait_ms=20000))
            g = documents[-1]["generation"]
    threads = [threading.Thread(target=lambda: said.update(hosts.get(f"/v1/routes?site=a&after={generation}&wait_ms=20000"))),
               threading.Thread(target=watch)]
    [t.start() for t in threads]
    stop["gw-a2"]()
    [t.join() for t in threads]
    after = pairs_by_routes(said, w.op.get("/v1/routes?site=b"))
    assert set(after) == set(before)
    for p, gws in before.items():
        assert after[p] == gws if gws[0] != "gw-a2" else after[p][0] == "gw-a1", (p, gws, after[p])
    job = w.sched.get("/v1/jobs/j1")
    assert job["state"] == "planned" and "reason" not in job and pairs_by_job(job) == after
    mine = {p for p, gws in after.items() if gws[1] == "gw-b1"}
    assert {(x["destination"], x["source"]) for x in documents[-1]["assignments"] if x["tunnel"] == "gw-a1"} == mine
    assert len(documents[-1]["assignments"]) == len(mine)
    n = sum(gws[0] == "gw-a2" for gws in before.values())
    texts = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "j1"]
    assert f"{n} of its 16 pairs moved to other gateways" in texts, texts
    (s,) = a1.document()["siblings"]  # its sibling knows
    assert s["state"] == "lost" and {(p["source"], p["destination"]) for p in s["pairs"]} == set(), s
    # the gateway returns: nothing moves
    a2.register()
    assert a2.document()["assignments"] == []
    stop["gw-a2"] = keep_alive(w, a2)
    until(lambda: all(t["weight"] for t in b1.document()["tunnels"]))
    time.sleep(1.5)  # a tick of all parts
    assert pairs_by_job(w.sched.get("/v1/jobs/j1")) == after
    assert pairs_by_routes(w.op.get("/v1/routes?site=a"), w.op.get("/v1/routes?site=b")) == after
    # a removed gateway
    stop["gw-b2"]()
    w.op.delete("/v1/gateways/gw-b2")  # in the same step, too
    assert all(gws[1] == "gw-b1" for gws in pairs_by_job(w.sched.get("/v1/jobs/j1")).values())
    assert all(pairs_by_job(w.sched.get("/v1/jobs/j1"))[p] == gws for p, gws in after.items() if gws[1] == "gw-b1")
    assert len(pairs_by_routes(w.op.get("/v1/routes?site=a"), w.op.get("/v1/routes?site=b"))) == 16
    [stop[g]() for g in ("gw-a1", "gw-a2", "gw-b1")]


def test_gateways_that_are_lost_at_once_are_one_step(w):
    """The controller is stopped while two leases expire: it handles both at once."""
    w.ctl.stop()
    w.ctl.config.write_text(w.ctl.config.read_text().replace(f"lease: {w.lease}", f"lease: {duration(5 * SLOW)}"))
    w.ctl.start()
    w.connect()
    w.sites()
    gws, stop = four(w)
    before = pairs_by_job(w.sched.put("/v1/jobs/j1", job_of(5, 10**8), 201))
    for name in ("gw-a2", "gw-b2"):
        stop[name]()
    time.sleep(3.5 * SLOW)
    w.ctl.proc.send_signal(signal.SIGSTOP)
    time.sleep(2 * SLOW)
    w.ctl.proc.send_signal(signal.SIGCONT)
    until(lambda: {g["name"]: g["state"] for g in w.op.get("/v1/gateways")["gateways"]} ==
          {"gw-a1": "up", "gw-a2": "lost", "gw-b1": "up", "gw-b2": "lost"})
    moved = sum(gws != ("gw-a1", "gw-b1") for gws in before.values())
    texts = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e.get("name") == "j1" and "moved" in e["text"]]
    assert texts == [f"{moved} of its 16 pairs moved to other gateways"], texts
    assert set(pairs_by_job(w.sched.get("/v1/jobs/j1")).values()) == {("gw-a1", "gw-b1")}
    [stop[g]() for g in ("gw-a1", "gw-b1")]


def test_a_job_that_does_not_fit_any_more_is_broken_until_it_does(w):
    w.sites()
    gws, stop = four(w)
    a2 = gws[1]
    def routes():
        return pairs_by_routes(w.op.get("/v1/routes?site=a"), w.op.get("/v1/routes?site=b"))
    def state(name):
        return w.sched.get(f"/v1/jobs/{name}")["state"]
    small = pairs_by_job(w.sched.put("/v1/jobs/small", job_of(5, 10**8), 201))
    w.sched.put("/v1/jobs/big", job_of(6, 19 * 10**8), 201)
    big = pairs_by_job(w.sched.get("/v1/jobs/big"))
    stop["gw-a2"]()
    until(lambda: state("big") == "broken")
    said = w.sched.get("/v1/jobs/big")
    assert "a and b" in said["reason"], said["reason"]
    assert all(said["reason"] in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "big" and "broken" in e["text"])
    lost = routes()
    assert len(lost) == 32 and all(g == "gw-a1" for g, _ in lost.values())
    assert all(pairs_by_job(said)[p] == gws for p, gws in big.items() if gws[0] == "gw-a1")
    rest = w.sched.get("/v1/jobs/small")["plan"]
    # it is still there after a restart
    w.ctl.stop()
    w.ctl.start()
    for c in vars(w).values():
        if hasattr(c, "close"):
            c.close()
    assert w.sched.get("/v1/jobs/big")["reason"] == said["reason"] and len(routes()) == 32
    # room again: only the broken one moves
    a2.register()
    stop["gw-a2"] = keep_alive(w, a2)
    until(lambda: state("big") == "planned")
    assert "reason" not in w.sched.get("/v1/jobs/big")
    assert any(g == "gw-a2" for g, _ in pairs_by_job(w.sched.get("/v1/jobs/big")).values())
    assert w.sched.get("/v1/jobs/small")["plan"] == rest and len(small) == 16
    # no gateway at B: no routes, no assignments; the plan is kept until one is there
    plans = [w.sched.get(f"/v1/jobs/{n}")["plan"] for n in ("small", "big")]
    for g in gws[2:]:
        g.renew()  # the first contact after a start has more time
        stop[g.name]()
    until(lambda: state("small") == state("big") == "broken" and not routes())
    until(lambda: all(g.document()["assignments"] == [] for g in gws[:2]))
    assert "no gateway" in w.sched.get("/v1/jobs/small")["reason"]
    for g in gws[2:]:
        g.register()
        stop[g.name] = keep_alive(w, g)
    until(lambda: state("small") == state("big") == "planned" and len(routes()) == 32)
    assert all(len(w.sched.get(f"/v1/jobs/{n}")["plan"]) == len(p) for n, p in zip(("small", "big"), plans))
    [end() for end in stop.values()]


def test_many_broken_jobs_are_tried_in_turns(w):
    """More than are tried in a second, and those of a high priority fit no more: the others come back."""
    w.sites()
    w.op.put("/v1/sites/c", {"prefixes": ["10.3.0.0/16"]}, 201)
    a, b = w.gateways("gw-a1", "gw-b1")
    c = w.gateway("gw-b2", "c", 31)
    c.register()
    stop = keep_alive(w, a, b, c)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 3)
    for i in range(80):
        job = {"pairs": [{"source": f"10.1.7.{i}", "destination": f"10.{2 + i % 2}.7.{i}", "bandwidth_bps": 10**7}], "priority": 7 * (i % 2)}
        w.sched.put(f"/v1/jobs/j{i}", job, 201)

    def states(priority):
        return {j["state"] for j in w.sched.get("/v1/jobs")["jobs"] if j["job"]["priority"] == priority}
    assert states(0) == states(7) == {"planned"}
    for name in ("gw-b1", "gw-b2"):
        w.op.delete(f"/v1/gateways/{name}")
    until(lambda: states(0) == states(7) == {"broken"})
    b.register()
    until(lambda: states(0) == {"planned"})
    assert states(7) == {"broken"}
    c.register()
    until(lambda: states(7) == {"planned"})
    stop()
