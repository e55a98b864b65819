# SPDX-License-Identifier: Apache-2.0
# Gateways send along what networks granted: the paths in their documents. Tests of
# controller_api.py, over both stores; the network is that of ctlr/networks.py.
from ctlr.harness import until
from ctlr.networks import BIG, G, Network, configure, job, legs, texts

NETS = {"gw-a1": ["192.0.2.11:4793", "198.51.100.11:4793"], "gw-b1": ["192.0.2.21:4793", "203.0.113.21:4793"]}


def two(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-b1", **{g: {"bandwidth": BIG} for g in NETS})
    for g in gws:
        g.register(wan=NETS[g.name])
    stop = w.keep_alive(*gws)
    until(lambda: [t["state"] for t in w.op.get("/v1/tunnels")["tunnels"]] == ["up"])
    return gws, stop


def tunnel_of(gw):
    """The only tunnel in a gateway's document."""
    said = gw.document()
    return said["tunnels"][0] if said and said["tunnels"] else None


def granted(w):
    t, = w.op.get("/v1/tunnels")["tunnels"]
    return {(p["edge"], p["path"]): p for p in t.get("paths", []) if p["bandwidth_bps"]}


def test_gateways_send_along_what_was_granted(w):
    network = Network()
    network.behave(steer=["pe-1", "p", {"dscp": 10}])
    network.behave(steer=["pe-2", "q", {"first": "198.51.100.0/24", "second": "203.0.113.0/24", "source_port": 5000}])
    configure(w, network.yaml)
    (a, b), stop = two(w)
    assert "paths" not in tunnel_of(a)
    said = w.sched.put("/v1/jobs/j", job(60 * G), 201)
    entry, = said["network"]
    assert {(leg["edge"], leg["path"]): leg["steer"] for leg in entry["legs"]} == {
        ("pe-1", "p"): {"dscp": 10}, ("pe-2", "q"): {"first": "198.51.100.0/24", "second": "203.0.113.0/24", "source_port": 5000}}
    until(lambda: {k: p["bandwidth_bps"] for k, p in granted(w).items()} == legs(said))
    at_a, at_b = until(lambda: tunnel_of(a).get("paths")), until(lambda: tunnel_of(b).get("paths"))
    # both have the same numbers and ports, each its own addresses; the rates are those that were granted
    first, second = sorted(at_a, key=lambda p: p["label"])
    assert (first["label"], first["dscp"], first["rate_bps"], first["use"]) == ("pe-1/p", 10, legs(said)["pe-1", "p"], "granted"), first
    assert "local" not in first and "remote" not in first
    assert (second["label"], second["local"], second["remote"], second["source_port"]) == ("pe-2/q", "198.51.100.11", "203.0.113.21", 5000), second
    assert [(p["label"], p["udp_port"], p["rate_bps"]) for p in at_a] == [(p["label"], p["udp_port"], p["rate_bps"]) for p in at_b]
    assert [p["udp_port"] for p in at_a] == [4793 + 64, 4793 + 128]
    other = next(p for p in at_b if p["label"] == "pe-2/q")
    assert (other["local"], other["remote"]) == ("203.0.113.21", "198.51.100.11"), other
    assert tunnel_of(a)["own_path"] == "spare"
    assert sum(p["rate_bps"] for p in at_a) == entry["bandwidth_bps"]
    assert any("goes by path p at pe-1" in x for x in texts(w, "gw-a1/gw-b1")), texts(w)
    # what the gateways measure of them
    link = {"peer": "gw-b1", "carrier": "native", "rtt_us": 20000, "rtt_min_us": 20000, "jitter_us": 100, "loss_ppm": 0, "burst": 1, "bandwidth_bps": 0, "age_ms": 0}
    path = {"label": "pe-1/p", "answers": True, "rate_bps": 29 * G, "rtt_us": 20040, "loss_ppm": 3}
    a.client.post(a.path("/links"), {"links": [{**link, "paths": [path]}]}, 200)
    assert w.op.get("/v1/tunnels")["tunnels"][0]["along"] == {"gw-a1": [path]}
    for wrong in ([], [path] * 8, [{**path, "answers": 1}], [{**path, "label": ""}], [{**path, "rate_bps": -1}], [{**path, "colour": 1}], 7):
        a.client.post(a.path("/links"), {"links": [{**link, "paths": wrong}]}, 400)
    assert w.op.get("/v1/tunnels")["tunnels"][0]["along"] == {"gw-a1": [path]}
    a.client.post(a.path("/links"), {"links": [link]}, 200)
    assert "along" not in w.op.get("/v1/tunnels")["tunnels"][0]
    # a demand that fills another shape: a third path; those that stay keep their numbers
    network.behave(more=["pe-1", "r", 90 * G])
    network.behave(steer=["pe-1", "r", {"dscp": 12}])
    said = w.sched.put("/v1/jobs/j", job(160 * G), 200)
    assert len(legs(said)) == 3
    until(lambda: {k: p["bandwidth_bps"] for k, p in granted(w).items()} == legs(said))
    now = until(lambda: len(tunnel_of(a)["paths"]) == 3 and tunnel_of(a)["paths"])
    assert [(p["label"], p["udp_port"]) for p in now[:2]] == [(p["label"], p["udp_port"]) for p in at_a] and now[2]["label"] == "pe-1/r", now
    # a second job adds to them
    more = w.sched.put("/v1/jobs/k", job(10 * G, net=6), 201)
    until(lambda: {k: p["bandwidth_bps"] for k, p in granted(w).items()} == {k: v + legs(more).get(k, 0) for k, v in legs(said).items()})
    w.sched.delete("/v1/jobs/k")
    until(lambda: {k: p["bandwidth_bps"] for k, p in granted(w).items()} == legs(said))
    # the controller starts again: the same numbers
    w.ctl.kill()
    w.ctl.start()
    w.connect()
    assert [p["path"] for p in w.op.get("/v1/tunnels")["tunnels"][0]["paths"]] == [p["label"].split("/")[1] for p in now]
    stop()
    (a, b), stop = two(w)
    # an address that the gateway does not have: none of the paths is used, and it is said why
    network.behave(steer=["pe-2", "q", {"first": "198.51.100.99"}])
    w.sched.put("/v1/jobs/j", job(59 * G), 200)
    why = until(lambda: w.op.get("/v1/tunnels")["tunnels"][0].get("unsteered"))
    assert why == "path q at pe-2: gateway gw-a1 has no address in 198.51.100.99", why
    until(lambda: "paths" not in tunnel_of(a) and "own_path" not in tunnel_of(a))
    assert any(f"is not led into what was granted: {why}" in x for x in texts(w, "gw-a1/gw-b1"))
    # a path of which nothing is said
    network.behave(steer=["pe-2", "q", None])
    w.sched.put("/v1/jobs/j", job(58 * G), 502)  # null is no object
    network.behave(steer=["pe-2", "q", {"dscp": 14}])
    w.sched.put("/v1/jobs/j", job(58 * G), 200)
    until(lambda: "unsteered" not in w.op.get("/v1/tunnels")["tunnels"][0])
    until(lambda: len(tunnel_of(b).get("paths", [])) == 2)
    # what it carries by another carrier has one way
    w.sched.put("/v1/jobs/j", {**job(2 * G), "carrier": "tcp"}, 200)
    until(lambda: w.op.get("/v1/tunnels")["tunnels"][0].get("unsteered") == "it goes by tcp, which has one way")
    until(lambda: "paths" not in tunnel_of(a))
    w.sched.put("/v1/jobs/j", job(50 * G), 200)
    w.sched.delete("/v1/jobs/j")
    until(lambda: "paths" not in w.op.get("/v1/tunnels")["tunnels"][0] and "paths" not in tunnel_of(a))
    stop()
    network.kill()


def test_a_path_that_a_network_lost_is_left(w):
    """One of two legs vanishes and others have its room: nobody sends along it, the other keeps its number and rate. It comes back."""
    network = Network()
    for dscp, leg in ((10, ("pe-1", "p")), (12, ("pe-2", "q"))):
        network.behave(steer=[*leg, {"dscp": dscp}])
    w.ctl.config.write_text(w.ctl.config.read_text() + "policy: {ask_networks: 200ms}\n")
    configure(w, network.yaml)
    (a, b), stop = two(w)
    said = w.sched.put("/v1/jobs/j", job(60 * G), 201)
    before = until(lambda: tunnel_of(a).get("paths"))
    # it loses pe-1's part, and makes it again
    network.behave(lose=["j~a~b", "pe-1", "p"])
    until(lambda: {(leg["edge"], leg["path"]) for leg in network.tunnels()["j~a~b"]["legs"]} == set(legs(said)))
    until(lambda: "network net-1 has again path p at pe-1" in texts(w, "j"))
    assert "network net-1 has lost path p at pe-1" in texts(w, "j")
    until(lambda: w.sched.get("/v1/jobs/j") == said and len(granted(w)) == 2)
    # now others have its room
    network.behave(others=["pe-1", "p", 100 * G])
    network.behave(lose=["j~a~b", "pe-1", "p"])
    until(lambda: set(granted(w)) == {("pe-2", "q")})
    for g in (a, b):
        now = until(lambda g=g: [p.get("use") for p in tunnel_of(g).get("paths", [])].count("granted") == 1 and tunnel_of(g)["paths"])
        kept = next(p for p in now if p["use"] == "granted")
        assert kept["label"] == "pe-2/q" and kept in before, (kept, before)
        assert all(p["use"] == "never" for p in now if p is not kept) and len(now) == 1 + (before.index(kept) == 1), now
    here = w.sched.get("/v1/jobs/j")
    assert here["state"] == "planned" and [leg["edge"] for leg in here["network"][0]["legs"] if leg.get("gone")] == ["pe-1"], here
    until(lambda: any("no longer has its reservation" in x for x in texts(w, "j")))
    assert "no longer goes by path p at pe-1" in " ".join(texts(w, "gw-a1/gw-b1"))
    # the controller starts again and still knows it
    w.ctl.kill()
    w.ctl.start()
    w.connect()
    assert set(granted(w)) == {("pe-2", "q")}
    stop()
    (a, b), stop = two(w)
    # the room is there again
    network.behave(others=["pe-1", "p", 0])
    until(lambda: w.sched.get("/v1/jobs/j") == said)
    until(lambda: tunnel_of(a).get("paths") == before and len(granted(w)) == 2)
    # all of it is lost
    network.behave(others=["pe-1", "p", 100 * G])
    network.behave(others=["pe-2", "q", 50 * G])
    network.behave(forget="j~a~b")
    until(lambda: "paths" not in tunnel_of(a) and "paths" not in tunnel_of(b))
    assert w.sched.get("/v1/jobs/j")["state"] == "planned"
    w.sched.delete("/v1/jobs/j")
    stop()
    network.kill()
