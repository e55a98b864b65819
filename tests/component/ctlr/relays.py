# SPDX-License-Identifier: Apache-2.0
# Relays as a kind of gateway: tests of controller_api.py.
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
