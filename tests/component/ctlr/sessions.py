# SPDX-License-Identifier: Apache-2.0
# Sessions by weight, and the carriers that tunnels move to: tests of controller_api.py.
import time

from ctlr.harness import SLOW, until
from ctlr.world import keep_alive


def test_sessions_end_that_a_report_of_all_does_not_name(w):
    """A gateway whose `closed` events are lost opens all its sessions anew, in numbered reports."""
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")

    def told(gw, *ids, **marks):
        opened = [{"id": i, "event": "opened", "source": "10.1.0.1", "destination": "10.2.0.1"} for i in ids]
        gw.client.post(gw.path("/sessions"), {"sessions": opened, **marks})
        return {s["id"] for s in w.op.get("/v1/sessions?limit=1000&gateway=gw-a1")["sessions"]}

    def ids(text):
        return {"gw-a1:" + i for i in text}

    told(b, "x")
    assert told(a, *"1234") == ids("1234")
    assert told(a, "1", all_part=1) == ids("1234")
    assert told(a, "5", all_part=2) == ids("12345")
    assert told(a, all_part=3, all_last=True) == ids("15")  # an empty report ends it, too
    assert told(a, "6", all_last=True) == ids("156")  # of no series
    # one report is lost: nothing ends
    told(a, "1", all_part=1)
    assert told(a, "6", all_part=3) == ids("156")
    assert told(a, "7", all_part=4, all_last=True) == ids("1567")
    # it begins anew in the middle
    told(a, "1", all_part=1)
    told(a, "5", all_part=1)
    assert told(a, "7", all_part=2, all_last=True) == ids("57")
    assert told(a, "8", all_part=1, all_last=True) == ids("8")
    assert told(a, all_part=1, all_last=True) == set()
    assert [s["id"] for s in w.op.get("/v1/sessions")["sessions"]] == ["gw-b1:x"]


def test_sessions_go_by_weight_and_both_directions_together(w):
    w.sites()
    fast = {"bandwidth": 3 * 10**10}
    a1, a2, b1, b2 = gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{"gw-a1": fast})
    stop = keep_alive(w, *gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    pairs = [(f"10.1.1.{i}", f"10.2.1.{i}") for i in range(1, 17)]
    there = {d["id"]: d for d in a1.open(*pairs)}
    back = {d["id"]: d for d in b1.open(*[(d, s) for s, d in pairs])}
    for s, d in pairs:
        assert there[f"{s}-{d}"]["pair"].split("/") == back[f"{d}-{s}"]["pair"].split("/")[::-1]
    first = [d["pair"].split("/")[0] for d in there.values()]
    assert first.count("gw-a1") == 12 and first.count("gw-a2") == 4, first
    listed = w.op.get("/v1/sessions?limit=1000")["sessions"]
    assert len(listed) == 32
    assert len(w.op.get("/v1/sessions?gateway=gw-b1")["sessions"]) == 16
    page = w.op.get("/v1/sessions?limit=20")
    assert len(page["sessions"]) == 20 and len(w.op.get(f"/v1/sessions?after={page['next']}")["sessions"]) == 12
    x = w.op.get(f"/v1/sessions/{listed[0]['id']}/explain")
    assert [a["carrier"] for a in x["alternatives"] if a["chosen"]] == [x["decision"]["carrier"]]
    assert [p["pair"] for p in x["pairs"] if p["chosen"]], x["pairs"]
    w.op.get("/v1/sessions/gw-a1:none/explain", 404)
    routes = {(r["source"], r["destination"]): r["gateways"][0]["gateway"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r}
    for s, d in pairs:
        assert routes[s + "/32", d + "/32"] == there[f"{s}-{d}"]["pair"].split("/")[0]
    general = [r for r in w.op.get("/v1/routes?site=b")["routes"] if "source" not in r]
    assert [r["destination"] for r in general] == ["10.1.0.0/16"] and len(general[0]["gateways"]) == 2
    # existing sessions stay, and so does their other end
    for tunnel in ("gw-b1", "gw-b2"):
        s, d = f"10.1.2.{tunnel[-1]}", f"10.2.2.{tunnel[-1]}"
        here = {"id": tunnel, "event": "opened", "source": s, "destination": d, "tunnel": tunnel}
        assert a2.client.post(a2.path("/sessions"), {"sessions": [here]})["decisions"][0]["pair"] == f"gw-a2/{tunnel}"
        assert b1.open((d, s))[0]["pair"] == f"{tunnel}/gw-a2"
    # one gateway leaves: only its sessions move
    stop()
    stop = keep_alive(w, a1, a2, b1)
    until(lambda: w.op.get("/v1/gateways/gw-b2")["state"] == "lost")
    now = {s["id"]: s for s in w.op.get("/v1/sessions?gateway=gw-a1&limit=1000")["sessions"]}
    for s, d in pairs:
        was, is_ = there[f"{s}-{d}"]["pair"], now[f"gw-a1:{s}-{d}"]["pair"]
        assert is_ == was if was.endswith("gw-b1") else is_.endswith("/gw-b1"), (was, is_)
    assert [t["weight"] for t in a1.document()["tunnels"] if t["name"] == "gw-b2"] == [0]
    # closed, and not moved
    a1.client.post(a1.path("/sessions"), {"sessions": [{"id": f"{s}-{d}", "event": "load", "bytes": 7} for s, d in pairs]})
    assert w.op.get("/v1/sessions?gateway=gw-a1")["sessions"][0]["bytes"] == 7
    a1.client.post(a1.path("/sessions"), {"sessions": [{"id": f"{s}-{d}", "event": "closed"} for s, d in pairs]})
    assert not w.op.get("/v1/sessions?gateway=gw-a1")["sessions"]
    assert "no known site" in a1.open(("10.1.0.1", "10.99.0.1"))[0]["reason"]
    assert "one site" in a1.open(("10.1.0.1", "10.1.0.2"))[0]["reason"]
    for bad, field in [({"id": "1", "event": "opened"}, "source"), ({"id": "1", "event": "load"}, "bytes")]:
        good = {"id": "ok", "event": "opened", "source": "10.1.0.8", "destination": "10.2.0.8"}
        assert a1.client.post(a1.path("/sessions"), {"sessions": [good, bad]}, 400)["field"] == f"sessions[1].{field}"
    assert not [s for s in w.op.get("/v1/sessions?limit=1000")["sessions"] if s["id"].endswith(":ok")]
    stop()


def link(peer, carrier, **v):
    return {"peer": peer, "carrier": carrier, "rtt_us": 20000, "rtt_min_us": 20000, "jitter_us": 100, "loss_ppm": 0, "burst": 1, "bandwidth_bps": 0, "age_ms": 0, **v}


def test_a_tunnel_moves_to_the_carrier_that_is_better(w):
    """TCP has more capacity here; native loses its capability and gets it back."""
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)
    assert a.document()["tunnels"][0]["carrier"] == "native"
    a.client.post(a.path("/links"), {"lease": a.lease, "links": [link("gw-b1", "native"), link("nobody", "tcp")]})
    out = w.op.get("/v1/links")
    assert [(m["gateway"], m["peer"], m["rtt_us"]) for m in out["measured"]] == [("gw-a1", "gw-b1", 20000)]
    assert w.op.get("/v1/tunnels")["tunnels"][0]["rtt_us"] == 20000
    w.net.put("/v1/links/a/b/net", {"class": "deterministic", "bandwidth_bps": 10**9, "delay_us": 5000, "jitter_us": 10, "loss_ppm": 0, "ttl_ms": 60000})
    assert w.op.get("/v1/links")["pushed"][0]["source"] == "net"
    until(lambda: a.document()["tunnels"][0]["rate_bps"] < 2 * 10**9)  # guaranteed by the network
    s = a.open(("10.1.0.3", "10.2.0.3"))[0]
    x = w.op.get(f"/v1/sessions/gw-a1:{s['id']}/explain")
    assert x["inputs"]["class"] == "deterministic" and x["inputs"]["path"]["native"]["bandwidth_bps"]["source"] == "net"
    w.net.put("/v1/links/a/a/net", {"class": "internet", "bandwidth_bps": 1, "delay_us": 1, "jitter_us": 1, "loss_ppm": 1, "ttl_ms": 1000}, 400)
    w.net.put("/v1/links/a/nowhere/net", {"class": "internet", "bandwidth_bps": 1, "delay_us": 1, "jitter_us": 1, "loss_ppm": 1, "ttl_ms": 1000}, 409)
    w.net.delete("/v1/links/a/b/net")
    w.net.delete("/v1/links/a/b/net", 404)
    until(lambda: a.document()["tunnels"][0]["rate_bps"] > 10**10)
    for g, bandwidth in ((a, 10**12), (b, 16 * 10**11)):
        g.reg["capabilities"]["rocev2"]["bandwidth_bps"] = bandwidth
        g.register()
    until(lambda: a.document()["tunnels"][0]["rate_bps"] == 10**12)  # what a gateway takes
    b.reg["capabilities"] = {"tcp": b.reg["capabilities"]["tcp"]}
    b.register()
    until(lambda: a.document()["tunnels"][0]["carrier"] == "tcp" and b.document()["tunnels"][0]["carrier"] == "tcp")
    assert any("from native to tcp" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    stop()


def test_a_tunnel_moves_to_quic_and_back(w):
    """QUIC carries more than the rest where both gateways have registered it; by CUBIC at one end it does not bear loss."""
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)

    def carriers(want):
        until(lambda: all(g.document()["tunnels"][0]["carrier"] == want for g in (a, b)))

    def offers(g, **quic):
        g.reg["capabilities"] = {"rocev2": {"bandwidth_bps": 10**8, "cnp": True}, "tcp": {"bandwidth_bps": 10**8, "algorithms": ["cubic"]}}
        if quic:
            g.reg["capabilities"]["quic"] = quic
        g.register()

    for g in (a, b):
        offers(g)
    carriers("native")
    offers(a, bandwidth_bps=9 * 10**8)
    assert a.document()["tunnels"][0]["carrier"] == "native"  # one end alone
    offers(b, bandwidth_bps=9 * 10**8)
    carriers("quic")
    assert any("from native to quic" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    for g, peer in ((a, "gw-b1"), (b, "gw-a1")):
        g.client.post(g.path("/links"), {"lease": g.lease, "links": [link(peer, "quic", loss_ppm=10000)]})
    assert [m["loss_ppm"] for m in w.op.get("/v1/links")["measured"] if m["carrier"] == "quic"] == [10000, 10000]
    carriers("quic")  # bbr2 bears it
    offers(b, bandwidth_bps=9 * 10**8, congestion_control="cubic")
    carriers("native")
    b.reg["capabilities"]["quic"]["congestion_control"] = "reno"
    assert b.register(400)["field"] == "capabilities.quic.congestion_control"
    stop()


def with_rdma(g, n, bandwidth=9 * 10**9, port=4793):
    """RDMA sends more than the gateway natively: where it is possible it is better, not only first in order."""
    g.reg["capabilities"]["rocev2"]["bandwidth_bps"] = 7 * 10**9
    g.reg["capabilities"]["rdma"] = {"bandwidth_bps": bandwidth, "address": f"203.0.113.{n}:{port}", "qps": 4, "window_bytes": 8 << 20}
    g.register()


def test_a_tunnel_moves_to_rdma_and_back_when_loss_appears(w):
    """RDMA needs both gateways, a path that a network has promised, the bandwidth that its device sends, and hardly a loss."""
    promise = {"class": "reserved", "bandwidth_bps": 10**10, "delay_us": 1000, "jitter_us": 10, "loss_ppm": 0, "ttl_ms": 600000}
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)

    def tunnel(g):
        return g.document()["tunnels"][0]

    def carriers(want):
        until(lambda: tunnel(a)["carrier"] == want and tunnel(b)["carrier"] == want)

    def said():
        s = a.open(("10.1.0.3", "10.2.0.3"))[0]
        return {x["carrier"]: x for x in w.op.get(f"/v1/sessions/gw-a1:{s['id']}/explain")["alternatives"]}["rdma"]["limit"]

    def report(g, peer, **v):
        g.client.post(g.path("/links"), {"lease": g.lease, "links": [link(peer, "rdma", rtt_us=2000, rtt_min_us=2000, **v)]})

    assert tunnel(a)["carrier"] == "native" and "rdma" not in tunnel(a) and said() == "no-source"
    with_rdma(a, 1)
    until(lambda: said() == "no-source")  # one end alone
    assert "rdma" not in tunnel(a)  # a gateway that is older would refuse the document
    with_rdma(b, 2)
    until(lambda: "rdma" in tunnel(a))
    assert tunnel(a)["rdma"] == {"local": "203.0.113.1:4793", "remote": "203.0.113.2:4793"} and tunnel(a)["carrier"] == "native"
    assert tunnel(b)["rdma"] == {"local": "203.0.113.2:4793", "remote": "203.0.113.1:4793"} and said() == "not-reserved"
    w.net.put("/v1/links/a/b/net", promise)
    carriers("rdma")  # nothing is measured yet: what the network says counts
    report(a, "gw-b1")
    report(b, "gw-a1")
    assert any("from native to rdma" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    # one end measures loss: back at once, while the other one has measured none
    report(b, "gw-a1", loss_ppm=2000)
    began = time.monotonic()
    carriers("native")
    assert time.monotonic() - began < 3 * SLOW and said() == "go-back-n"
    assert any(x["gateway"] == "gw-b1" and x["carrier"] == "rdma" and x["loss_ppm"] == 2000 for x in w.op.get("/v1/links")["measured"])
    report(b, "gw-a1")
    carriers("rdma")  # clean, for long enough
    w.net.put("/v1/links/a/b/net", {**promise, "bandwidth_bps": 9 * 10**9})
    carriers("native")  # the device would send more than that
    assert said() == "narrow"
    # another port: the two cannot come together by RDMA
    with_rdma(b, 2, port=4794)
    until(lambda: "rdma" not in tunnel(a) and "rdma" not in tunnel(b))
    w.net.delete("/v1/links/a/b/net")
    stop()
