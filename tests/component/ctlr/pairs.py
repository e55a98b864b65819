# SPDX-License-Identifier: Apache-2.0
# Pairs of gateways, which have one name: tests of controller_api.py. Both members talk to the controller as real ones do.
import contextlib
import http.client
import threading
import time
from types import SimpleNamespace

from ctlr.harness import Controller, Member, until


def members(w, n=11, site="a", **more):
    """Both of gw-a1; a client each, as both have a certificate with that name."""
    return [Member(w.ctl.client(w.context["gw-a1"]), "gw-a1", site, n, m, **more) for m in ("m1", "m2")]


def keeps(m, says):
    """Registers m, which says says[m] again and again, until the returned function is called, or its controller is gone."""
    m.register()
    stop = threading.Event()

    def run():
        with contextlib.suppress(OSError, http.client.HTTPException):
            while not stop.wait(0.2):
                m.say(*says[m])
    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end():
        stop.set()
        thread.join()
    return end


def pair(w):
    return w.op.get("/v1/gateways/gw-a1")["pair"]


def events(w, what="pair"):
    return [(e["severity"], e["text"]) for e in w.op.get("/v1/events?limit=1000")["events"] if e["what"] == what and e["name"] == "gw-a1"]


def said(w, part, what="pair"):
    found = until(lambda: [e for e in events(w, what) if part in e[1]])
    assert len(found) == 1, found
    return found[0]


def protected(w, one, two, epoch=1):
    one.say("paired", "ready", epoch, served="granted")
    two.say("ready", "paired", epoch)
    return until(lambda: (p := pair(w))["protected"] and p)


def metric(w, name):
    return [float(line.split()[1]) for line in w.op.ask("GET", "/metrics") and w.op.text.decode().splitlines() if line.startswith(f"roceway_controller_{name} ")][0]


def test_a_pair_is_one_gateway(w):
    """Tunnels, capacity and documents are those of one; both get the same document."""
    w.sites()
    b, = w.gateways("gw-b1")
    one, two = members(w)
    for m in one, two:
        m.register()
        m.register()  # once more: nothing changes
    assert one.lease != two.lease
    until(lambda: len(b.document()["tunnels"]) == 1)
    until(lambda: len(two.document()["tunnels"]) == 1)
    assert [g["name"] for g in w.op.get("/v1/gateways")["gateways"]] == ["gw-a1", "gw-b1"] and w.op.get("/v1/health")["gateways_up"] == 2
    doc = one.document()
    assert doc == two.document() and doc["siblings"] == [] and doc["tunnels"][0]["peer"] == "gw-b1", doc
    assert pair(w)["serves"] is None and pair(w)["reason"] == "nobody-serves", pair(w)
    before = b.document()
    p = protected(w, one, two)
    assert p["serves"] == "m1" and p["epoch"] == 1 and [m["state"] for m in p["members"]] == ["paired", "ready"], p
    assert p["members"][0]["served"]["text"] == "it started, and nobody else served" and "lost" not in p["members"][0], p
    assert b.document() == before and one.document() == doc  # what they say of each other concerns nobody else
    h = w.op.get("/v1/health")
    assert (h["pairs"], h["pairs_protected"], h["pair_problems"]) == (1, 1, []), h
    assert metric(w, "pairs") == metric(w, "pairs_protected") == 1
    assert said(w, "m1 serves since")[0] == "info" and said(w, "protected: m1 serves, and m2 has everything")[0] == "info"
    # both wait for documents, and neither ends the other's poll
    answers = []
    polls = [threading.Thread(target=lambda m=m: answers.append(Member.document(m, doc["generation"], 20000))) for m in (one, two)]
    for t in polls:
        t.start()
    time.sleep(0.3)
    assert not answers
    w.op.put("/v1/tenants/red", {"vni": 5001, "sites": {s: {"prefixes": [{"prefix": f"172.16.{n}.0/24", "at": "vtep"}]} for n, s in ((1, "a"), (2, "b"))}}, 201)
    for t in polls:
        t.join(30)
    assert [len(d["tenants"]) for d in answers] == [1, 1], answers
    one.client.get(one.path("/document?after=0"), 404)  # which of the two?
    # what is said again is not stored again
    commits = metric(w, "commits_total")
    for _ in range(5):
        one.say("paired", "ready", served="granted"), two.say("ready", "paired")
        time.sleep(0.1)
    assert metric(w, "commits_total") == commits, (commits, metric(w, "commits_total"))
    # a load counts once: that of the one that serves
    one.say("paired", "ready", load={"sessions": 7, "rate_bps": 10, "cpu_ppm": 1, "custody_ppm": 1})
    two.say("ready", "paired", load={"sessions": 3, "rate_bps": 5, "cpu_ppm": 1, "custody_ppm": 1})
    assert w.op.get("/v1/gateways/gw-a1")["load"]["sessions"] == 7


def test_a_takeover_is_told(w):
    """Who, when, why, in which epoch; tunnels, documents and sessions stay."""
    w.sites()
    b, = w.gateways("gw-b1")
    one, two = members(w)
    one.register(), two.register()
    until(lambda: len(two.document()["tunnels"]) == 1)
    protected(w, one, two, 4)
    assert one.open(("10.1.0.5", "10.2.0.5"))[0]["tunnel"] == "gw-b1"
    doc, far = two.document(), b.document()
    two.say("alone", None, 5, served="silent", age_ms=200, load={"sessions": 3, "rate_bps": 5, "cpu_ppm": 1, "custody_ppm": 1})
    assert w.op.get("/v1/gateways/gw-a1")["load"]["sessions"] == 3
    p = until(lambda: (p := pair(w))["serves"] == "m2" and p)
    assert p["epoch"] == 5 and not p["protected"] and p["reason"] == "no-standby" and "m2 is alone: m1 is silent" in p["why"], p
    assert "state" not in p["members"][0] and p["members"][0]["lease"] == "up", p  # it may be dead: what it said last counts no more
    severity, text = said(w, "takeover")
    assert severity == "warning" and "m2 serves instead of m1 since " in text and "epoch 5 after 4: the one that served was silent" in text, text
    assert abs(p["since_ms"] - (time.time() * 1000 - 200)) < 60000 and said(w, "not protected (no-standby)")[0] == "warning"
    assert [s["source"] for s in w.op.get("/v1/sessions")["sessions"]] == ["10.1.0.5"]
    two.client.post(two.path("/sessions"), {"lease": two.lease, "sessions": [
        {"id": "again", "event": "opened", "source": "10.1.0.5", "destination": "10.2.0.5", "tunnel": "gw-b1"}]})
    sessions = w.op.get("/v1/sessions")["sessions"]
    assert [s["id"] for s in sessions] == ["gw-a1:again"] and sessions[0]["pair"] == "gw-a1/gw-b1", sessions  # the same connection, told by the new one
    one.register(boot_id="boot-m1-2")
    one.say("storing", "copying", 5)
    two.say("paired", "ready", 5, served="silent")
    one.say("ready", "paired", 5)
    until(lambda: pair(w)["protected"])
    assert two.document() == doc and b.document() == far
    assert w.op.get("/v1/gateways/gw-a1")["state"] == "up" and not [e for e in events(w, "gateway") if "lost" in e[1]]
    # a planned move back
    two.say("yielding", "ready", 5, served="silent")
    one.say("alone", "replaced", 6, served="yields")
    until(lambda: pair(w)["serves"] == "m1")
    severity, text = said(w, "handed over")
    assert severity == "info" and "m1 serves instead of m2" in text and "epoch 6 after 5" in text, text
    assert (metric(w, "takeovers_total"), metric(w, "takeovers_planned_total")) == (1, 1)


def test_members_that_cannot_be_are_refused(w):
    w.sites()
    one, two = members(w)
    one.register(), two.register()
    protected(w, one, two)
    third = Member(w.ctl.client(w.context["gw-a1"]), "gw-a1", "a", 11, "m3")
    out = third.register(409)
    assert out["field"] == "pair.member" and "m3 is a third one" in out["error"], out
    alone = w.gateway("gw-a1", "a", 11)
    out = alone.register(409)
    assert out["field"] == "pair" and "is a pair, and its member m1 is up" in out["error"], out
    # two machines have one file: the second takes the place of the first, which then finds out that it is not the only one
    twin = Member(w.ctl.client(w.context["gw-a1"]), "gw-a1", "a", 11, "m2")
    twin.register(boot_id="boot-twin")
    assert two.say("ready", "paired", want=409)["field"] == "boot_id"
    out = two.register(409)
    assert out["field"] == "pair.member" and "two processes of gateway gw-a1 say that they are its member m2" in out["error"], out
    twin.say("ready", "paired")
    assert said(w, "two processes of gateway gw-a1", "refused")[0] == "error"
    # a standby at another site, by mistake
    far = Member(w.ctl.client(w.context["gw-a1"]), "gw-a1", "b", 11, "m2")
    out = far.register(409, boot_id="boot-far")
    assert out["field"] == "site" and "m1 is at site a and m2 at b" in out["error"], out
    assert said(w, "both must be at one site", "refused")[0] == "error"
    # leases: of no member, of nobody's, without one
    one.client.post(one.path("/lease"), {"lease": one.lease, "boot_id": "boot-m1", "generation_running": 0, "load": {"sessions": 0, "rate_bps": 0, "cpu_ppm": 0, "custody_ppm": 0}}, 409)
    third.lease, third.generation = one.lease, 0
    third.say("ready", want=404)
    one.lease = two.lease
    assert one.say("paired", want=409)["field"] == "lease"
    b, = w.gateways("gw-b1")
    b.renew(409, pair={"member": "m1", "configuration": "0" * 16, "state": "alone", "epoch": 1, "age_ms": 1})
    w.op.delete("/v1/gateways/gw-a1")
    w.op.get("/v1/gateways/gw-a1", 404)
    assert w.op.get("/v1/health")["pairs"] == 0
    alone.register()  # the name is free
    assert "pair" not in w.op.get("/v1/gateways/gw-a1")
    one.register(boot_id="boot-m1-9")  # and is a pair's again
    assert pair(w)["members"][0]["member"] == "m1"


def test_who_lies_is_found_out(w):
    """A process that stood still, two that serve, an epoch that goes back, files and versions that differ: seen in events and health."""
    w.sites()
    one, two = members(w)
    one.register(), two.register()
    protected(w, one, two, 7)
    two.say("alone", None, 8, served="silent")
    until(lambda: pair(w)["serves"] == "m2")
    one.say("paired", "ready", 7)  # it goes on, and does not know
    p = until(lambda: (p := pair(w))["reason"] == "past-epoch" and p)
    assert p["serves"] == "m2" and p["epoch"] == 8 and p["why"] == "m1 says that it serves in epoch 7, which is past: m2 serves in epoch 8", p
    assert said(w, "not protected (past-epoch): m1 says")[0] == "error"
    problem, = w.op.get("/v1/health")["pair_problems"]
    assert problem == {"gateway": "gw-a1", "reason": "past-epoch", "why": p["why"]}, problem
    one.say("paired", "ready", 8)
    p = until(lambda: (p := pair(w))["reason"] == "both-serve" and p)
    assert p["serves"] == "m2" and "m1 and m2 both say that they serve, in epoch 8" in p["why"], p
    one.register(boot_id="boot-m1-2")
    two.say("paired", "ready", 8)
    one.say("ready", "paired", 8)
    until(lambda: pair(w)["protected"])
    two.say("paired", "ready", 3)
    p = until(lambda: (p := pair(w))["reason"] == "past-epoch" and p)
    assert p["epoch"] == 8 and p["why"] == "m2 says that it serves in epoch 3, and said 8 before", p
    assert metric(w, "pair_conflicts_total") >= 3
    two.say("paired", "ready", 8)
    until(lambda: pair(w)["protected"])
    # another version alone does not keep it from taking over; another address does
    one.register(version="0.2.0")
    one.say("ready", "paired", 8)
    p = until(lambda: (p := pair(w))["protected"] and p)
    assert p["differ"] == "version" and w.op.get("/v1/gateways/gw-a1")["version"] == "0.1.0", p
    one.configuration = "f" * 16
    one.say("ready", "paired", 8)
    time.sleep(0.5)
    assert pair(w)["protected"] and pair(w)["differ"] == "version", pair(w)  # another version may make another digest
    one.register(wan=["192.0.2.99:4793"], version="0.1.0")
    one.say("ready", "paired", 8)
    p = until(lambda: (p := pair(w))["reason"] == "differ" and p["differ"].startswith("wan, conf") and p)
    assert p["differ"] == "wan, configuration" and not p["protected"] and "differ in wan, configuration" in p["why"], p
    assert w.op.get("/v1/gateways/gw-a1")["wan"] == ["192.0.2.11:4793"]  # a standby changes nothing
    one.configuration = "0123456789abcdef"
    one.register(wan=["192.0.2.11:4793"], version="0.1.0")
    one.say("ready", "paired", 8, generation_refused=1, refusal="no room")
    p = until(lambda: (p := pair(w))["reason"] == "refuses" and p)
    assert p["members"][0]["refusal"] == "no room" and said(w, "m1 refuses generation 1: no room", "gateway")[0] == "error"
    assert said(w, "its gateways differ in nothing any more")[0] == "info"
    # both journals are gone: epochs begin again
    one.register(boot_id="boot-m1-3"), two.register(boot_id="boot-m2-3")
    one.say("alone", "storing", 1, served="granted")
    until(lambda: pair(w)["serves"] == "m1" and pair(w)["epoch"] == 1)


def test_each_measures_quic_for_itself(w):
    """Two machines never measure the same: the pair is protected nevertheless, and a takeover changes no document."""
    w.sites()
    b, = w.gateways("gw-b1")
    one, two = members(w)
    for m, bps in ((one, 1_772_000_000), (two, 990_000_000)):
        m.register(capabilities={**m.reg["capabilities"], "quic": {"bandwidth_bps": bps}})
    p = protected(w, one, two)
    assert "differ" not in p, p
    until(lambda: len(b.document()["tunnels"]) == 1)
    before = b.document(), two.document()
    two.say("alone", None, 2, served="silent")
    until(lambda: pair(w)["serves"] == "m2")
    assert (b.document(), two.document()) == before
    two.register(capabilities={**two.reg["capabilities"], "quic": {"bandwidth_bps": 990_000_000, "congestion_control": "cubic"}})
    one.say("ready", "paired", 2)
    until(lambda: pair(w).get("differ") == "capabilities")


def test_a_standby_that_is_lost_is_said_to_be(w):
    """The gateway is up as long as one of the two is, and lost when both are."""
    w.sites()
    b, = w.gateways("gw-b1")
    one, two = members(w)
    ends = {m: keeps(m, {one: ("paired", "ready"), two: ("ready", "paired")}) for m in (one, two)}
    others = w.keep_alive(b)
    until(lambda: pair(w)["protected"])
    ends[two]()
    p = until(lambda: (p := pair(w))["reason"] == "lost" and p)
    assert [m["lease"] for m in p["members"]] == ["up", "lost"] and "m2 does not renew its lease" in p["why"], p
    assert said(w, "m2 is lost")[0] == "warning" and w.op.get("/v1/gateways/gw-a1")["state"] == "up"
    two.say("ready", "paired", want=409)
    ends[two] = keeps(two, {two: ("ready", "paired")})
    until(lambda: pair(w)["protected"])
    assert not [e for e in events(w, "gateway") if "lost" in e[1]]
    [end() for end in ends.values()]
    until(lambda: w.op.get("/v1/gateways/gw-a1")["state"] == "lost")
    p = pair(w)
    assert [m["lease"] for m in p["members"]] == ["lost", "lost"] and p["serves"] is None, p
    until(lambda: [t["weight"] for t in b.document()["tunnels"]] == [0])
    alone = w.gateway("gw-a1", "a", 11)
    alone.register()  # none of a pair any more
    assert "pair" not in w.op.get("/v1/gateways/gw-a1")
    two.register()
    assert pair(w)["members"] and w.op.get("/v1/gateways/gw-a1")["state"] == "up"
    others()


def test_pairs_are_there_again_after_a_restart(w):
    """Who serves is stored: a takeover while the controller was away is told by what the members say then."""
    w.sites()
    one, two = members(w)
    one.register(), two.register()
    protected(w, one, two, 4)
    w.ctl.kill()
    w.ctl.start()
    w.connect()
    for m in one, two:
        m.client.close()
    p = pair(w)
    assert p["protected"] and p["serves"] == "m1" and p["epoch"] == 4, p
    assert not events(w)  # nothing happened
    two.say("alone", None, 5, served="silent", age_ms=30000)
    until(lambda: pair(w)["serves"] == "m2")
    assert "m2 serves instead of m1" in said(w, "takeover")[1]


def pairs_and_replicas(w, etcd, directory):
    """The two talk to different replicas, which tell the same; one of these dies."""
    second = Controller(w.build, w.ca, directory, etcd.yaml(), name="ctl2", lease=w.lease)
    w2 = SimpleNamespace(op=second.client(w.context["op"]), ctl=second, context=w.context)
    w.sites()
    one, two = members(w)[0], members(w2)[1]
    says = {one: ("paired", "ready"), two: ("ready", "paired")}
    ends = [keeps(m, says) for m in (one, two)]
    for x in w, w2:
        p = until(lambda x=x: (p := pair(x))["protected"] and p)
        assert [m["owner"] for m in p["members"]] == ["ctl", "ctl2"] and x.op.get("/v1/gateways/gw-a1")["owner"] == "ctl", p
    assert one.document() == two.document()
    time.sleep(1)
    assert w.op.get("/v1/gateways/gw-a1")["owner"] == "ctl"  # they do not fight over it
    says[two] = ("alone", None, 2, "silent")
    w.ctl.kill()  # with the gateway that talks to it
    p = until(lambda: (p := pair(w2))["serves"] == "m2" and p)
    assert until(lambda: w2.op.get("/v1/gateways/gw-a1")["owner"] == "ctl2")
    until(lambda: pair(w2)["members"][0]["lease"] == "lost")
    assert w2.op.get("/v1/gateways/gw-a1")["state"] == "up" and "takeover" in said(w2, "m2 serves instead of m1")[1]
    [end() for end in ends]
    until(lambda: w2.op.get("/v1/gateways/gw-a1")["state"] == "lost")
    second.kill()
