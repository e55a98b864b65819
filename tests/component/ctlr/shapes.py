# SPDX-License-Identifier: Apache-2.0
# Jobs that say more than a rate: tests of controller_api.py.
import re
import time

from ctlr.harness import SLOW, until

G = 10**9


def one(net, bps=10**8, **more):
    return {"pairs": [{"source": f"10.1.{net}.1", "destination": f"10.2.{net}.1", "bandwidth_bps": bps}], **more}


def said_to(g, job):
    """A gateway's tunnel, and the only assignment of a job in its document."""
    d = g.document()
    (a,) = [a for a in d["assignments"] if a["job"] == job]
    return d["tunnels"][0], a


def test_a_job_names_dscp_and_carrier(w):
    w.sites()
    gws = a, b = w.gateways("gw-a1", "gw-b1")
    stop = w.keep_alive(*gws)
    until(lambda: [t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"])
    w.sched.put("/v1/jobs/plain", one(1), 201)
    assert said_to(a, "plain")[0]["carrier"] == "native" and not {"dscp", "carrier"} & set(said_to(a, "plain")[1])
    # a live move: the tunnel follows the job, and both ends are told; so does one that names no carrier
    w.sched.put("/v1/jobs/bulk", one(2, carrier="tcp"), 201)
    for g in gws:
        until(lambda g=g: said_to(g, "bulk")[0]["carrier"] == "tcp" and said_to(g, "bulk")[1].get("carrier") == "tcp")
    assert w.op.get("/v1/tunnels")["tunnels"][0]["carrier"] == "tcp"
    assert "carrier" not in said_to(a, "plain")[1]
    # a tunnel has one carrier: who wants another one is refused, and nothing changes
    before = [w.op.get(f"/v1/{k}") for k in ("jobs", "tunnels")] + [g.document() for g in gws]
    out = w.sched.put("/v1/jobs/quick", one(3, dscp=46), 409)
    assert "hold the tunnels to another" in out["error"] and out["fits"][0]["bandwidth_bps"] == 0, out
    assert w.sched.put("/v1/jobs/quick", one(3, dscp=46, carrier="tcp"), 400)["field"] == "dscp"
    assert w.sched.put("/v1/jobs/quick", one(3, dscp=64), 400)["field"] == "dscp"
    assert w.sched.put("/v1/jobs/quick", one(3, carrier="pigeon"), 400)["field"] == "carrier"
    assert "not possible" in w.sched.put("/v1/jobs/quick", one(3, carrier="quic"), 409)["error"]  # no gateway has it
    assert before == [w.op.get(f"/v1/{k}") for k in ("jobs", "tunnels")] + [g.document() for g in gws]
    # its owner may change it, and with it the tunnel
    w.sched.put("/v1/jobs/bulk", one(2, dscp=10), 200)
    for g in gws:
        until(lambda g=g: said_to(g, "bulk")[0]["carrier"] == "native" and said_to(g, "bulk")[1].get("dscp") == 10)
    w.sched.put("/v1/jobs/quick", one(3, dscp=46), 201)
    assert [said_to(g, "quick")[1]["dscp"] for g in gws] == [46, 46]
    # a restart of the controller knows it
    restart(w)
    assert "hold the tunnels to another" in w.sched.put("/v1/jobs/bulk2", one(4, carrier="tcp"), 409)["error"]
    for name in "quick", "bulk":
        w.sched.delete(f"/v1/jobs/{name}")
    w.sched.put("/v1/jobs/bulk2", one(4, carrier="tcp"), 201)
    stop()


def detours(*gws):
    return [{k: v for k, v in g.document()["tunnels"][0].items() if k.startswith("detour")} for g in gws]


def test_an_operator_sets_detours(w):
    w.sites()
    gws = a, b = w.gateways("gw-a1", "gw-b1")
    stop = w.keep_alive(*gws)
    until(lambda: [t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"])
    assert detours(*gws) == [{}, {}]
    before = a.document()["generation"]
    w.op.put("/v1/detours/gw-b1/gw-a1", {"detour": "tcp", "detour_after": 3}, 200)  # in any order
    want = {"detour": "tcp", "detour_after": 3}
    assert detours(*gws) == [want, want] and a.document()["generation"] > before
    t, = w.op.get("/v1/tunnels")["tunnels"]
    assert (t["detour"], t["detour_after"], t["carrier"]) == ("tcp", 3, "native")
    # refused: nothing changes
    assert "gw-a1 has no carrier quic" in w.op.put("/v1/detours/gw-a1/gw-b1", {"detour": "quic"}, 409)["error"]
    w.op.put("/v1/detours/gw-a1/gw-a2", {"detour": "tcp"}, 404)
    for bad, field in (({"detour": "off"}, "detour"), ({"detour": "tcp", "detour_after": 9}, "detour_after"), ({}, "detour")):
        assert w.op.put("/v1/detours/gw-a1/gw-b1", bad, 400)["field"] == field
    assert detours(*gws) == [want, want]
    # a restart of the controller knows it; a gateway that lost the carrier is not told of it
    restart(w)
    assert detours(*gws) == [want, want]
    stop()
    b.reg["capabilities"].pop("tcp")
    b.register()
    until(lambda: detours(*gws) == [{}, {}])
    b.reg["capabilities"]["tcp"] = a.reg["capabilities"]["tcp"]
    b.register()
    until(lambda: detours(*gws) == [want, want])
    w.op.delete("/v1/detours/gw-a1/gw-b1")
    assert detours(*gws) == [{}, {}] and "detour" not in w.op.get("/v1/tunnels")["tunnels"][0]
    w.op.delete("/v1/detours/gw-a1/gw-b1", 404)


def pair(net, **demand):
    return {"source": f"10.1.{net}.1", "destination": f"10.2.{net}.1", **demand}


def world(w):
    """Two gateways with 10 Gbit/s each, one at each site."""
    w.sites()
    gws = w.gateways("gw-a1", "gw-b1")
    stop = w.keep_alive(*gws)
    until(lambda: [t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"])
    return gws, stop


def restart(w):
    w.ctl.stop()
    w.ctl.start()
    for c in vars(w).values():
        if hasattr(c, "close"):
            c.close()


def everything(w, gws):
    return [w.op.get(f"/v1/{k}") for k in ("jobs", "tunnels")] + [g.document() for g in gws]


def conflicts(w):
    w.op.get("/metrics")
    return int(re.search(rb"roceway_controller_commit_conflicts_total (\d+)", w.op.text)[1])


def payload(said):
    """Of the only row, of what the gateway sends: a is 0.92."""
    return said["plan"][0]["gateway_bps"] * 0.92


def test_bytes_with_a_deadline_become_a_rate(w):
    gws, stop = world(w)
    job = {"pairs": [pair(1, bytes=G)], "within_ms": 4000}
    asked = time.time() * 1000
    said = w.sched.put("/v1/jobs/weights", job, 201)
    assert 8 * G / 4 < payload(said) < 8 * G / 4 * 1.04, said  # 1 GB in 4 s less 1/32
    assert abs(said["deadline_ms"] - asked - 4000) < 3000, (said, asked)
    assert w.sched.put("/v1/jobs/weights", job, 200)["deadline_ms"] == said["deadline_ms"]  # the same request
    until(lambda: w.sched.ask("GET", "/v1/jobs/weights")[0] == 404)  # its time is over
    assert said["deadline_ms"] <= time.time() * 1000
    # too short a time: how long it would take, and that is true
    before = everything(w, gws)
    short = {"pairs": [pair(1, bytes=100 * G)], "within_ms": 10000}
    out = w.sched.put("/v1/jobs/weights", short, 409)
    (fits,) = out["fits"]
    assert "later_ms" not in out and 80000 < fits["within_ms"] < 100000, out
    assert before == everything(w, gws)
    w.sched.put("/v1/jobs/weights", {**short, "within_ms": fits["within_ms"] - 100}, 409)
    w.sched.put("/v1/jobs/weights", {**short, "within_ms": fits["within_ms"]}, 201)
    w.sched.delete("/v1/jobs/weights")
    # an hour of the clock
    at = int(time.time() * 1000) + 3600_000
    said = w.sched.put("/v1/jobs/weights", {"pairs": [pair(1, bytes=1000 * G)], "deadline_ms": at}, 201)
    assert said["deadline_ms"] == at and abs(payload(said) / (8000 * G / 3600 * 32 / 31) - 1) < 0.001, said
    w.sched.delete("/v1/jobs/weights")
    for body, field in [({"deadline_ms": int(time.time() * 1000) - 1}, "deadline_ms"), ({}, "pairs[0].bytes"), ({"deadline_ms": at, "within_ms": 5}, "within_ms"),
                        ({"within_ms": 5, "duration_ms": 5}, "duration_ms"), ({"within_ms": 1}, "pairs[0].bytes")]:
        many = 10**18 if body == {"within_ms": 1} else G
        assert w.sched.put("/v1/jobs/bad", {"pairs": [pair(1, bytes=many)], **body}, 400)["field"] == field, body
    for demand, field in [({}, "pairs[0].bandwidth_bps"), ({"bandwidth_bps": 1, "bytes": 1}, "pairs[0].bytes"), ({"bandwidth_bps": 1, "period_us": 1}, "pairs[0].period_us"),
                          ({"bytes": 1, "window_us": 5}, "pairs[0].window_us"), ({"bytes": 1, "period_us": 5, "window_us": 6}, "pairs[0].window_us")]:
        assert w.sched.put("/v1/jobs/bad", {"pairs": [pair(1, **demand)], **({"within_ms": 9} if "window_us" in demand else {})}, 400)["field"] == field, demand
    assert w.sched.put("/v1/jobs/bad", {"pairs": [pair(1, bandwidth_bps=1)], "within_ms": 9}, 400)["field"] == "within_ms"
    stop()


def test_jobs_of_one_deadline_end_together(w):
    """Each ends once, and none loses against another one."""
    _, stop = world(w)
    n, at = 100, int(time.time() * 1000) + 6000 * SLOW
    for i in range(n):
        w.sched.put(f"/v1/jobs/j{i}", {"pairs": [pair(i, bytes=1000)], "deadline_ms": round(at)}, 201)
    before = conflicts(w)
    until(lambda: not w.sched.get("/v1/jobs")["jobs"])
    told = [e["name"] for e in w.op.get("/v1/events?limit=1000")["events"] if "its time is over" in e["text"]]
    assert sorted(told) == sorted(f"j{i}" for i in range(n)), told
    assert conflicts(w) - before < n / 10
    stop()


def test_bursts_become_a_rate(w):
    gws, stop = world(w)
    # a micro-batch of 2^28 bytes every 3.035 s, through in half of that
    ranks = [{"rank": i, "address": f"10.{1 + i}.7.1", "stage": i} for i in range(2)]
    said = w.sched.put("/v1/jobs/pipe", {"ranks": ranks, "demand": {"bytes": 2**28, "period_us": 3035000, "window_us": 1517500}}, 201)
    assert abs(payload(said) / (8 * 2**28 / 1.5175 * 32 / 31) - 1) < 0.001 and "deadline_ms" not in said, said
    w.sched.put("/v1/jobs/pipe", {"ranks": ranks, "demand": {"bytes": 2**28, "period_us": 3035000}}, 200)
    assert abs(payload(w.sched.get("/v1/jobs/pipe")) / (8 * 2**28 / 3.035 * 32 / 31) - 1) < 0.001
    (fits,) = w.sched.put("/v1/jobs/more", {"pairs": [pair(1, bytes=10 * G, period_us=10**7, window_us=10**6)]}, 409)["fits"]
    assert 8 * 10**6 < fits["window_us"] < 10**7, fits
    w.sched.put("/v1/jobs/more", {"pairs": [pair(1, bytes=10 * G, period_us=10**7, window_us=fits["window_us"])]}, 201)
    stop()


def test_a_refused_job_is_told_when_it_would_fit(w):
    gws, stop = world(w)
    for i, seconds in enumerate((40, 20, 30)):
        w.sched.put(f"/v1/jobs/j{i}", {"pairs": [pair(i, bandwidth_bps=3 * G)], "duration_ms": 1000 * seconds}, 201)
    ends = {i: time.time() * 1000 + 1000 * s for i, s in enumerate((40, 20, 30))}
    before = everything(w, gws)

    def later(gbits, name="big", status=409, **more):
        return w.sched.put(f"/v1/jobs/{name}", {"pairs": [pair(7, bandwidth_bps=gbits * G)], **more}, status).get("later_ms", 0)
    assert abs(later(3) - ends[1]) < 5000  # one that ends is enough
    assert abs(later(5) - ends[2]) < 5000
    assert abs(later(8) - ends[0]) < 5000
    assert later(12) == 0  # never
    assert before == everything(w, gws)
    w.sched.put("/v1/jobs/j1", {"pairs": [pair(1, bandwidth_bps=3 * G)]}, 200)  # without an end now
    assert abs(later(3) - ends[2]) < 5000
    stop()


def test_a_job_preempts_those_of_a_lower_priority(w):
    gws, stop = world(w)

    def put(name, net, gbits, status, **more):
        return w.sched.put(f"/v1/jobs/{name}", {"pairs": [pair(net, bandwidth_bps=gbits * G)], **more}, status)

    def states():
        return {j["name"]: j["state"] for j in w.op.get("/v1/jobs")["jobs"]}

    def rate(name):
        return [a["rate_bps"] for g in gws for a in g.document()["assignments"] if a["job"] == name]
    put("small", 1, 1, 201, priority=1)
    put("old", 2, 3, 201, priority=1)
    put("young", 3, 3, 201, priority=1)
    put("high", 4, 2, 201, priority=5)
    before = everything(w, gws)
    put("need", 5, 3, 409, priority=3)  # it does not say that it may
    put("need", 5, 3, 409, priority=1, preempt=True)  # of equals none goes
    put("need", 5, 8, 409, priority=3, preempt=True)  # all that are lower are not enough
    assert before == everything(w, gws)
    # one is enough: of the lowest the youngest; it keeps its tunnel and has no rate
    said = put("need", 5, 3, 201, priority=3, preempt=True)
    assert said["preempts"] == ["young"]
    assert states() == {"small": "planned", "old": "planned", "young": "preempted", "high": "planned", "need": "planned"}
    young = w.sched.get("/v1/jobs/young")
    assert young["reason"] == "preempted by need" and young["preempted"]["by"] == "need", young
    assert abs(young["preempted"]["at_ms"] - time.time() * 1000) < 60000
    assert rate("young") == [0, 0] and all(r > 3 * G for r in rate("need")) and len(rate("need")) == 2
    assert ["preempted by need"] == [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "young" and "preempted" in e["text"]]
    # it is still so after a restart
    restart(w)
    assert w.sched.get("/v1/jobs/young") == young
    # the room is taken once: a third one needs another
    assert put("third", 6, 2, 201, priority=2, preempt=True)["preempts"] == ["old"]
    # the first of those that wait is the one that fits; the highest priority is asked first
    w.sched.put("/v1/jobs/young", {"pairs": [pair(3, bandwidth_bps=3 * G)], "priority": 2}, 409)
    w.sched.delete("/v1/jobs/need")
    until(lambda: sorted((states()["young"], states()["old"])) == ["planned", "preempted"])
    w.sched.delete("/v1/jobs/third")
    until(lambda: states()["young"] == states()["old"] == "planned")
    assert "preempted" not in w.sched.get("/v1/jobs/young") and all(r > 3 * G for r in rate("young"))
    stop()


def measure(gws, **more):
    """What a gateway sees of the path between the two."""
    a, b = gws
    a.client.post(a.path("/links"), {"lease": a.lease, "links": [
        {"peer": "gw-b1", "carrier": "native", "rtt_us": 20000, "rtt_min_us": 20000, "jitter_us": 100, "loss_ppm": 0, "burst": 1, "bandwidth_bps": 0, "age_ms": 0, **more}]})


def test_a_plan_follows_what_is_measured(w):
    w.ctl.stop()
    w.ctl.config.write_text(w.ctl.config.read_text() + "policy: {confirm: 1s, hold: 1500ms}\n")
    w.ctl.start()
    w.connect()
    gws, stop = world(w)
    measure(gws)
    w.sched.put("/v1/jobs/j", {"pairs": [pair(1, bandwidth_bps=2 * G, delay_us=15000)]}, 201)

    def job():
        return w.sched.get("/v1/jobs/j")
    edge = job()["plan"][0]["edge_bps"]
    rev = w.op.get("/v1/routes?site=a")["generation"]
    # a little loss changes little, and nothing is stored
    measure(gws, loss_ppm=20000)
    time.sleep(2.5)
    assert job()["plan"][0]["edge_bps"] == edge and w.op.get("/v1/routes?site=a")["generation"] == rev
    # a quarter is lost: the network carries what is sent again
    measure(gws, loss_ppm=250000)
    until(lambda: 1.3 * edge < job()["plan"][0]["edge_bps"] < 1.4 * edge)
    assert job()["state"] == "planned"
    # it carries less than the job asked for, and does again
    measure(gws, bandwidth_bps=G)
    until(lambda: job()["state"] == "broken")
    assert "no carrier reaches the bandwidth" in job()["reason"], job()
    assert job()["plan"][0]["pair"] == "gw-a1/gw-b1"
    # it is tried again, and a little more loss is nothing to store
    rev = w.op.get("/v1/routes?site=a")["generation"]
    measure(gws, bandwidth_bps=G, loss_ppm=1000)
    time.sleep(3)
    assert w.op.get("/v1/routes?site=a")["generation"] == rev and job()["state"] == "broken"
    measure(gws)
    until(lambda: job()["state"] == "planned")
    assert "reason" not in job() and abs(job()["plan"][0]["edge_bps"] / edge - 1) < 0.01
    # it became longer than the job bears
    measure(gws, rtt_us=40000)
    until(lambda: job()["state"] == "broken")
    assert "longer than requested" in job()["reason"], job()
    measure(gws)
    until(lambda: job()["state"] == "planned")
    texts = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "j"]
    assert sum("broken" in t for t in texts) == sum("fits again" in t for t in texts) == 2, texts
    stop()


def test_a_promise_is_for_all_jobs_together(w):
    gws, stop = world(w)
    w.net.put("/v1/links/a/b/net", {"class": "reserved", "bandwidth_bps": 4 * G, "delay_us": 9000, "jitter_us": 10, "loss_ppm": 0, "ttl_ms": 600000})
    w.sched.put("/v1/jobs/first", {"pairs": [pair(1, bandwidth_bps=2 * G)], "duration_ms": 60000}, 201)
    out = w.sched.put("/v1/jobs/second", {"pairs": [pair(2, bandwidth_bps=2 * G)]}, 409)
    assert 1.6 * G < out["fits"][0]["bandwidth_bps"] < 1.7 * G and abs(out["later_ms"] - time.time() * 1000 - 60000) < 10000, out
    w.sched.put("/v1/jobs/second", {"pairs": [pair(2, bandwidth_bps=out["fits"][0]["bandwidth_bps"])]}, 201)
    w.sched.put("/v1/jobs/second", {"pairs": [pair(2, bandwidth_bps=out["fits"][0]["bandwidth_bps"] - 1)]}, 200)  # its own share counts as free
    assert w.sched.put("/v1/jobs/third", {"pairs": [pair(3, bandwidth_bps=10**6)], "preempt": True, "priority": 1}, 201)["preempts"] == ["second"]
    restart(w)
    w.sched.put("/v1/jobs/fourth", {"pairs": [pair(4, bandwidth_bps=2 * G)]}, 409)
    w.sched.delete("/v1/jobs/first")
    until(lambda: w.sched.get("/v1/jobs/second")["state"] == "planned")
    stop()



def test_jobs_of_one_pair_go_to_all_gateways(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2")
    stop = w.keep_alive(*gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    got = []
    for i in range(48):
        w.sched.put(f"/v1/jobs/p{i}", one(i + 1, bps=10**6), 201)
        got.append(w.op.get(f"/v1/jobs/p{i}")["plan"][0]["pair"])
    stop()
    assert len(set(got)) == 4 and max(map(got.count, set(got))) <= 24, got
    w.sched.put("/v1/jobs/p7", one(8, bps=2 * 10**6), 200)
    assert w.op.get("/v1/jobs/p7")["plan"][0]["pair"] == got[7]
