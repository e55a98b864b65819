# SPDX-License-Identifier: Apache-2.0
# Relays as a kind of gateway: tests of controller_api.py.
import threading
import time

from ctlr.harness import LOAD, until

RELAY = {"addresses": ["10.1.0.254", "fd00:1::fe"], "ask_port": 4795, "redirect_port": 4790, "links_max": 1000}


def kinds(w, relays, gateways):
    """These gateways with their tunnels, the first ones as relays."""
    out = {n: w.gateway(n, n[3], {"gw-a1": 11, "gw-a2": 12, "gw-b1": 21, "gw-b2": 22}[n]) for n in [*relays, *gateways]}
    for name in relays:
        out[name].reg["capabilities"]["relay"] = RELAY
    for g in out.values():
        g.register()
    for g in out.values():
        peers = [n for n in out if n[3] != g.name[3]]
        until(lambda g=g, peers=peers: {t["name"] for t in g.document()["tunnels"]} == set(peers))
    return out


def serving(g):
    """Its tunnels by which new flows go."""
    return {t["name"]: t["prefixes"] for t in g.document()["tunnels"] if t["weight"]}


def test_relays_go_to_relays_and_gateways_to_gateways(w):
    w.sites()
    gws = kinds(w, ["gw-a1", "gw-b1"], ["gw-a2", "gw-b2"])
    assert serving(gws["gw-a1"]) == {"gw-b1": ["10.2.0.0/16"]} and serving(gws["gw-b1"]) == {"gw-a1": ["10.1.0.0/16"]}
    assert serving(gws["gw-a2"]) == {"gw-b2": ["10.2.0.0/16"]} and serving(gws["gw-b2"]) == {"gw-a2": ["10.1.0.0/16"]}
    # no host's route leads to a relay, and none stands in for a gateway
    assert {h["gateway"] for r in w.op.get("/v1/routes?site=a")["routes"] for h in r["gateways"]} == {"gw-a2"}
    for g in gws.values():
        assert g.document()["siblings"] == [], g.name
    d = gws["gw-a1"].open(("10.1.0.5", "10.2.0.5"))
    assert d[0]["pair"] == "gw-a1/gw-b1" or d[0]["pair"] == "gw-a2/gw-b2", d
    for i in range(40):  # whatever is spread goes between two of a kind
        d, = gws["gw-a2"].open((f"10.1.3.{i + 1}", "10.2.0.5"))
        assert d["pair"] in ("gw-a1/gw-b1", "gw-a2/gw-b2"), d
    # a job's hosts are in gateways' paths
    plan = w.sched.put("/v1/jobs/j", {"pairs": [{"source": f"10.1.4.{i + 1}", "destination": "10.2.4.1", "bandwidth_bps": 10**6} for i in range(8)]}, None)
    assert {r["pair"] for r in plan["plan"]} == {"gw-a2/gw-b2"}, plan
    # without one of its kind at the other site a relay goes to a gateway, when that one has no other either
    generation = gws["gw-a1"].generation
    w.op.delete("/v1/gateways/gw-b1")
    assert serving(gws["gw-a1"]) == {}
    w.op.delete("/v1/gateways/gw-a2")
    assert serving(gws["gw-a1"]) == {"gw-b2": ["10.2.0.0/16"]} and serving(gws["gw-b2"]) == {"gw-a1": ["10.1.0.0/16"]}
    assert gws["gw-a1"].generation > generation
    assert w.op.get("/v1/routes?site=a")["routes"] == []


def test_a_relay_says_what_it_is_and_has_no_tenants(w):
    w.sites()
    gws = kinds(w, ["gw-a1"], ["gw-a2", "gw-b1"])
    w.op.put("/v1/tenants/red", {"vni": 5001, "sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vlan"}], "vlan": 101},
                                                        "b": {"prefixes": [{"prefix": "10.2.0.0/24", "at": "vlan"}], "vlan": 101}}}, 201)
    assert gws["gw-a1"].document()["tenants"] == [] and len(gws["gw-a2"].document()["tenants"]) == 1
    gws["gw-a1"].renew(load={**LOAD, "links": 7})
    shown = w.op.get("/v1/gateways/gw-a1")
    assert shown["capabilities"]["relay"] == RELAY and shown["load"]["links"] == 7, shown
    gws["gw-a2"].renew()
    shown = w.op.get("/v1/gateways/gw-a2")
    assert "relay" not in shown["capabilities"] and "links" not in shown["load"], shown


def test_wrong_relays_are_refused(w):
    g = w.gateway("gw-a1", "a", 11)
    for change, field in (({"addresses": []}, "addresses"), ({"addresses": ["10.1.0.0/24"]}, "addresses[0]"), ({"ask_port": 65536}, "ask_port"),
                          ({"redirect_port": -1}, "redirect_port"), ({"links_max": 0}, "links_max"), ({"colour": "red"}, "colour")):
        g.reg["capabilities"]["relay"] = {**RELAY, **change}
        assert g.register(400)["field"] == f"capabilities.relay.{field}"
    g.reg["capabilities"]["relay"] = {"addresses": ["10.1.0.254"]}
    assert g.register(400)["field"].startswith("capabilities.relay.")


# --- hosts --------------------------------------------------------------------------------------


def redirects(client, site="a"):
    return client.get(f"/v1/redirects?site={site}")


def offered(out):
    """prefix -> {relay: (order, weight, state)}"""
    return {r["prefix"]: {x["gateway"]: (x["order"], x["weight"], x["state"]) for x in r["relays"]} for r in out["redirects"]}


def test_hosts_are_told_which_relays_and_when_that_changes(w):
    w.sites()
    assert redirects(w.host_1)["redirects"] == []
    gws = kinds(w, ["gw-a1", "gw-a2", "gw-b1"], [])
    both = {"gw-a1": (0, 100, "up"), "gw-a2": (0, 100, "up")}
    first = until(lambda: (lambda out: out if offered(out) == {"10.2.0.0/16": both} else None)(redirects(w.host_1)))
    assert first["redirects"][0]["relays"][0] == {
        "gateway": "gw-a1", "address": "10.1.0.254", "port": 4795, "order": 0, "weight": 100, "state": "up"}
    assert offered(redirects(w.op, "b")) == {"10.1.0.0/16": {"gw-b1": (0, 100, "up")}}
    # nothing newer: it waits; the operator's word is there at once
    assert w.host_1.ask("GET", f"/v1/redirects?site=a&after={first['generation']}&wait_ms=300")[0] == 304
    out, other = [], w.ctl.client(w.context["host-2"])
    t = threading.Thread(target=lambda: out.append(other.ask("GET", f"/v1/redirects?site=a&after={first['generation']}&wait_ms=30000")))
    t.start()
    time.sleep(0.2)
    asked = time.monotonic()
    w.op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/16"], "relays": [{"gateway": "gw-a2", "weight": 7}, {"gateway": "gw-a1", "order": 1}]})
    t.join(60)
    status, said = out.pop()
    assert status == 200 and time.monotonic() - asked < 10 and said["generation"] != first["generation"]
    assert offered(said) == {"10.2.0.0/16": {"gw-a2": (0, 7, "up"), "gw-a1": (1, 100, "up")}}, said
    # a relay that is gone from the far site: its prefixes go by nobody who answers, and the host is told so
    w.op.delete("/v1/gateways/gw-b1")
    until(lambda: offered(redirects(w.host_1)) == {})
    # a name that is no relay's is nobody's
    w.op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/16"], "relays": [{"gateway": "nobody-1"}]})
    gws["gw-b1"].register()
    until(lambda: gws["gw-b1"].document()["tunnels"])
    time.sleep(0.5)
    assert offered(redirects(w.host_1)) == {}


def test_redirects_follow_load_and_family(w):
    """With `least` a busy relay gets less; IPv6 prefixes go by IPv6 addresses; a relay without ask_port is no host's."""
    w.op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/16"], "weighting": "least"}, 201)
    w.op.put("/v1/sites/b", {"prefixes": ["10.2.0.0/16", "fd00:2::/64"]}, 201)
    gws = kinds(w, ["gw-a1", "gw-a2", "gw-b1"], [])
    gws["gw-a1"].renew(load={"sessions": 10, "rate_bps": 9 * 10**9, "cpu_ppm": 900000, "custody_ppm": 500000})
    gws["gw-a2"].renew(load=LOAD)

    def busy():
        o = offered(redirects(w.host_1)).get("10.2.0.0/16", {})
        return len(o) == 2 and o["gw-a2"][1] == 100 and 1 <= o["gw-a1"][1] < 60
    until(busy)
    six, = [r for r in redirects(w.host_1)["redirects"] if r["prefix"] == "fd00:2::/64"]
    assert {r["address"] for r in six["relays"]} == {"fd00:1::fe"}, six
    gws["gw-a2"].reg["capabilities"]["relay"] = {**RELAY, "ask_port": 0, "addresses": ["10.1.0.253"]}
    gws["gw-a2"].register()
    until(lambda: set(offered(redirects(w.host_1)).get("10.2.0.0/16", {})) == {"gw-a1"})


def test_a_lost_relay_is_said_to_be_lost(w):
    w.sites()
    gws = kinds(w, ["gw-a1", "gw-a2", "gw-b1"], [])
    stop = w.keep_alive(gws["gw-a2"], gws["gw-b1"])
    until(lambda: offered(redirects(w.host_1)).get("10.2.0.0/16", {}).get("gw-a1", (0, 0, ""))[2] == "lost")
    assert offered(redirects(w.host_1))["10.2.0.0/16"]["gw-a2"][2] == "up"
    stop()


def test_links_have_an_end_at_each_relay(w):
    w.sites()
    gws = kinds(w, ["gw-a1", "gw-b1"], [])

    def report(gw, n, event, **more):
        return gws[gw].client.post(gws[gw].path("/sessions"), {"sessions": [{"id": n, "event": event, **more}]}, None)
    link = "00ff00ff00ff00aa"
    a = {"source": "10.1.0.5", "destination": "10.2.0.7", "source_qpn": 17, "destination_qpn": 18, "link": link, "relay": "10.1.0.254"}
    b = {"source": "10.2.0.7", "destination": "10.1.0.5", "source_qpn": 18, "destination_qpn": 17, "link": link, "relay": "10.2.0.254"}
    assert report("gw-a1", "s", "opened", **{**a, "relay": None})["field"] == "sessions[0].relay"
    assert report("gw-a1", "s", "opened", **{k: v for k, v in a.items() if k != "relay"})["field"] == "sessions[0].relay"
    for bad in ("0", link + "0", link.upper(), 17):
        assert report("gw-a1", "s", "opened", **{**a, "link": bad})["field"] == "sessions[0].link", bad
    assert w.op.get("/v1/relay-links") == {"links": [], "next": None}
    report("gw-a1", "s", "opened", **a)
    one, = w.op.get("/v1/relay-links")["links"]
    assert one["ends"][0]["state"] == "up" and one["link"] == link and [(e["gateway"], e["host"], e["peer"], e["relay"], e["qpn"]) for e in one["ends"]] == [("gw-a1", "10.1.0.5", "10.2.0.7", "10.1.0.254", 17)]
    report("gw-b1", "t", "opened", **b)
    report("gw-b1", "u", "opened", **{**b, "source_qpn": 19, "link": "0000000000000001"})
    gws["gw-a1"].client.post(gws["gw-a1"].path("/links"), {"links": [
        {"peer": "gw-b1", "carrier": "native", "rtt_us": 20400, "rtt_min_us": 20000, "jitter_us": 1, "loss_ppm": 10000, "burst": 1, "bandwidth_bps": 10**9, "age_ms": 0}]})
    report("gw-a1", "s", "load", bytes=12345)
    other, one = w.op.get("/v1/relay-links")["links"]
    assert other["link"] == "0000000000000001" and {e["gateway"]: (e["qpn"], e["bytes"]) for e in one["ends"]} == {"gw-a1": (17, 12345), "gw-b1": (18, 0)}
    assert (one["tunnel"], one["carrier"], one["rtt_us"], one["loss_ppm"]) == ("gw-a1/gw-b1", "native", 20400, 10000), one
    page = w.op.get("/v1/relay-links?limit=1")
    assert [x["link"] for x in page["links"]] == ["0000000000000001"] and w.op.get(f"/v1/relay-links?limit=1&after={page['next']}")["links"][0]["link"] == link
    session = w.op.get("/v1/sessions?gateway=gw-a1")["sessions"][0]
    assert session["link"] == link and session["relay"] == "10.1.0.254"
    # the same session again, of no link: one end is left; then none
    report("gw-a1", "s", "opened", **{k: v for k, v in a.items() if k not in ("link", "relay")})
    assert [e["gateway"] for x in w.op.get("/v1/relay-links")["links"] if x["link"] == link for e in x["ends"]] == ["gw-b1"]
    report("gw-b1", "t", "closed")
    assert [x["link"] for x in w.op.get("/v1/relay-links")["links"]] == ["0000000000000001"]
    w.op.delete("/v1/gateways/gw-b1")
    assert w.op.get("/v1/relay-links")["links"] == []


LEASE = {"boot_id": "b1", "site": "a", "version": "0.1.0", "generation": 5, "down": ["10.1.0.254"]}


def test_hosts_keep_leases(w):
    w.sites()
    assert w.host_1.post("/v1/hosts/host-1/lease", LEASE)["ttl_ms"] > 0
    assert w.host_1.post("/v1/hosts/host-2/lease", LEASE, 403)["error"]
    assert w.host_1.post("/v1/hosts/host-1/lease", {**LEASE, "site": "z"}, 404)["field"] == "site"
    assert w.host_1.post("/v1/hosts/host-1/lease", {**LEASE, "down": ["x"]}, 400)["field"] == "down[0]"
    w.host_2.post("/v1/hosts/host-2/lease", {**LEASE, "down": []})
    hosts = w.op.get("/v1/hosts")["hosts"]
    assert [(h["name"], h["site"], h["generation"], h["down"]) for h in hosts] == [("host-1", "a", 5, ["10.1.0.254"]), ("host-2", "a", 5, [])], hosts
    until(lambda: w.host_2.post("/v1/hosts/host-2/lease", LEASE) and [h["state"] for h in w.op.get("/v1/hosts")["hosts"]] == ["lost", "up"])
    assert "roceway_controller_host_leases_total" in (w.op.get("/metrics"), w.op.text.decode())[1]


def test_a_stolen_certificate_of_a_host_is_noticed_and_ends(w):
    """Who has it can say things of that host alone, is told apart from its agent, and is refused on
    its open connection when it is revoked."""
    w.sites()
    before = [w.op.get(f"/v1/{k}") for k in ("sites", "tenants", "jobs", "gateways")]
    w.context["host-3"] = w.ca.issue("host-3", "host")
    agent, thief = (w.ctl.client(w.context["host-3"]) for _ in range(2))

    def said(client, boot, want=200):
        return client.post("/v1/hosts/host-3/lease", {**LEASE, "boot_id": boot}, want)

    def events():
        return [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if (e["what"], e["name"]) == ("host", "host-3")]
    said(agent, "first")
    said(agent, "second")  # it was started anew
    said(agent, "third")
    assert events() == []
    said(thief, "other")
    said(agent, "third")
    said(thief, "other")
    said(agent, "third")
    assert events() == ["two agents use its certificate at once: boots other and third"], events()
    for method, path, body in (("POST", "/v1/hosts/host-1/lease", LEASE), ("PUT", "/v1/sites/c", {"prefixes": []}), ("GET", "/v1/hosts", None), ("GET", "/v1/jobs", None),
                               ("PUT", "/v1/jobs/x", {"pairs": [{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 1}]}), ("DELETE", "/v1/sites/a", None),
                               ("GET", "/v1/gateways/gw-a1/document", None), ("GET", "/v1/tenants", None)):
        assert thief.ask(method, path, body, 403)[1]["error"], (method, path)
    w.ca.run("revoke", "host-3")
    w.ctl.hup()
    for client in thief, agent:
        assert "revoked" in said(client, "other", 403)["error"]
        client.close()
        assert "revoked" in client.get("/v1/redirects?site=a", 403)["error"]
    assert [w.op.get(f"/v1/{k}") for k in ("sites", "tenants", "jobs", "gateways")] == before
