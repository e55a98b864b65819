# SPDX-License-Identifier: Apache-2.0
# Stores that fail, and several replicas over one: tests of controller_api.py.
import threading
import time

from ctlr.bodies import BODIES
from ctlr.harness import Controller, Gateway, LOAD, Member, Wires, registration, seen, until
from ctlr.jobs import four, job_of, pairs_by_job, pairs_by_routes
from ctlr.ranks import pod, table3
from ctlr.tenants import red
from ctlr.world import BUILD, SHORT, World, keep_alive

NEW = {"vni": 9, "sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vtep"}]}}}
WRITES = [("PUT", "/v1/sites/{name}", "op", {"prefixes": []}), ("DELETE", "/v1/sites/{name}", "op", None), ("PUT", "/v1/tenants/{name}", "op", NEW),
          ("DELETE", "/v1/tenants/{name}", "op", None), ("POST", "/v1/jobs", "sched", None), ("PUT", "/v1/jobs/{name}", "sched", None),
          ("DELETE", "/v1/jobs/{name}", "sched", None), ("PUT", "/v1/links/{site_a}/{site_b}/{source}", "net", BODIES[4][4]),
          ("DELETE", "/v1/links/{site_a}/{site_b}/{source}", "net", None), ("PUT", "/v1/detours/{first}/{second}", "op", {"detour": "tcp"}),
          ("DELETE", "/v1/detours/{first}/{second}", "op", None)]


def store_is_down(w, etcd):
    """All nodes are down: reads work, changes are refused, and when the nodes return all data is
    unchanged."""
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)
    w.op.put("/v1/tenants/old", red(4001), 201)
    w.op.put("/v1/sites/old", {"prefixes": []}, 201)
    pair = {"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**8}
    w.sched.put("/v1/jobs/old", {"pairs": [pair]}, 201)
    w.sched.put("/v1/jobs/task1", table3([pod("spare", 1, 7)]), 201)
    w.net.put("/v1/links/a/b/net", BODIES[4][4] | {"bandwidth_bps": 10**11, "ttl_ms": 86400000})
    w.op.put("/v1/detours/gw-a1/gw-b1", {"detour": "tcp"}, 200)
    before = [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")]
    for i in range(3):
        etcd.kill(i)
    for method, path, who, body in WRITES:
        name = "old" if method == "DELETE" else "new"
        if path == "/v1/jobs":
            body = {"name": "new", "pairs": [pair]}
        elif path.startswith("/v1/jobs") and method == "PUT":
            body = {"pairs": [pair]}
        p = path.replace("{name}", name).replace("{site_a}", "a").replace("{site_b}", "b").replace("{source}", "net")
        p = p.replace("{first}", "gw-a1").replace("{second}", "gw-b1")
        out = w.__dict__[who].ask(method, p, body, 503)[1]
        assert "store" in out["error"], out
    w.gw_a2.put("/v1/gateways/gw-a2", registration("a", 12), 503)
    w.op.delete("/v1/gateways/gw-b1", 503)
    w.sched.post("/v1/jobs/task1/failures", {"containers": ["pod-1"]}, 503)
    until(lambda: w.op.ask("GET", "/v1/health")[0] == 503)
    seen.add(("/v1/health", "GET", 503))
    until(lambda: [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")] == before)
    a.renew()
    a.open(("10.1.0.1", "10.2.0.1"))
    for i in range(3):
        etcd.start(i)
    until(lambda: w.op.ask("GET", "/v1/health")[0] == 200)
    assert before == [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")]
    w.op.put("/v1/sites/new", {"prefixes": []}, 201)
    stop()


def two_replicas(w, etcd, directory):
    """What one is told the other knows; a gateway goes from one to the other; one etcd node dies."""
    second = Controller(BUILD, w.ca, directory, etcd.yaml(), name="ctl2", lease=w.lease)
    op2 = second.client(w.context["op"])
    w.sites()
    until(lambda: [s["name"] for s in op2.get("/v1/sites")["sites"]] == ["a", "b"])
    a, b = w.gateways("gw-a1", "gw-b1")
    docs = [a.document(), b.document()]
    a2 = Gateway(second.client(w.context["gw-a1"]), "gw-a1", "a", 11)
    a2.reg, a2.lease, a2.generation = a.reg, a.lease, a.generation
    assert a2.document() == docs[0]
    a2.renew()
    until(lambda: w.op.get("/v1/gateways/gw-a1")["owner"] == "ctl2")
    etcd.kill(0)
    for i in range(5):
        until(lambda i=i: op2.ask("PUT", f"/v1/sites/x{i}", {"prefixes": []})[0] in (200, 201))
        until(lambda i=i: w.op.ask("GET", f"/v1/sites/x{i}")[0] == 200)
    etcd.start(0)
    # the replica of a gateway dies: the other one takes over
    second.kill()
    until(lambda: w.op.get("/v1/gateways/gw-a1")["state"] == "lost")
    a.register()
    assert w.op.get("/v1/gateways/gw-a1")["owner"] == "ctl"


def a_replica_is_cut_off(w, etcd, directory):
    """It sends its gateways to the other one, where they stay up. Then all replicas are cut off: nobody is lost."""
    wires = Wires(etcd)
    second = Controller(BUILD, w.ca, directory, wires.yaml(), name="ctl2", lease=w.lease)
    op2 = second.client(w.context["op"])
    until(lambda: w.said("ctl2", "is there"))
    w.sites()
    b, = w.gateways("gw-b1")
    a = Gateway(second.client(w.context["gw-a1"]), "gw-a1", "a", 11)
    m = Member(second.client(w.context["gw-a2"]), "gw-a2", "a", 12, "m1")
    for g in (a, m):
        until(lambda g=g: g.client.ask("PUT", g.path(), g.reg)[0] == 200)
        g.register()
    until(lambda: w.op.get("/v1/gateways/gw-a1")["owner"] == w.op.get("/v1/gateways/gw-a2")["owner"] == "ctl2")
    going = [True]

    def agent(g, at, context):
        """As a gateway's: it goes to the next controller after 503, and registers there."""
        known = [Gateway(c.client(context), g.name, "a", 0) for c in at]
        more = {"pair": {"member": "m1", "configuration": "0" * 16, "state": "alone", "epoch": 1, "age_ms": 5}} if isinstance(g, Member) else {}
        i, registered = 0, True
        while going[0]:
            k = known[i]
            try:
                if registered:
                    body = {"lease": g.lease, "boot_id": g.reg["boot_id"], "generation_running": 0, "load": LOAD, **more}
                    registered = k.client.ask("POST", g.path("/lease"), body)[0] == 200
                    i = (i + (not registered)) % len(at)
                else:
                    status, out = k.client.ask("PUT", g.path(), g.reg)
                    registered = status == 200
                    g.lease = out["lease"] if registered else g.lease
                    i = (i + (not registered)) % len(at)
            except OSError:
                i, registered = (i + 1) % len(at), False
            time.sleep(0.1)
    threads = [threading.Thread(target=agent, args=(g, at, w.context[g.name]), daemon=True)
               for g, at in ((a, (second, w.ctl)), (m, (second, w.ctl)), (b, (w.ctl, second)))]
    [t.start() for t in threads]

    def lost(op):
        return [e for e in op.get("/v1/events?limit=1000")["events"] if e["what"] == "gateway" and e["text"].startswith("lost")]
    wires.set(True)
    until(lambda: w.said("ctl2", "is gone"))
    until(lambda: {w.op.get(f"/v1/gateways/gw-{n}")["owner"] for n in ("a1", "a2", "b1")} == {"ctl"})
    assert "cut off" in a.client.ask("PUT", a.path(), a.reg, 503)[1]["error"]
    assert ("/v1/gateways/{name}/lease", "POST", 503) in seen
    time.sleep(SHORT + 1)  # more than a term
    assert not lost(w.op)
    wires.set(False)
    until(lambda: op2.get("/v1/gateways") and all(op2.get(f"/v1/gateways/gw-{n}")["owner"] == "ctl" for n in ("a1", "a2", "b1")))
    until(lambda: any("in touch" in e["text"] for e in op2.get("/v1/events?limit=1000")["events"]))
    # nobody has a store
    for i in range(3):
        etcd.kill(i)
    until(lambda: b.client.ask("PUT", b.path(), b.reg)[0] == 503)
    time.sleep(SHORT + 1)
    for i in range(3):
        etcd.start(i)
    until(lambda: w.op.ask("GET", "/v1/health")[0] == 200 and op2.ask("GET", "/v1/health")[0] == 200)
    time.sleep(SHORT + 1)
    assert not lost(w.op) and not lost(op2)
    assert {g["state"] for g in w.op.get("/v1/gateways")["gateways"]} == {"up"}
    going[0] = False
    [t.join() for t in threads]
    second.kill()


def two_replicas_and_a_job(w, etcd, directory):
    """A gateway is lost, another one removed: both replicas see it, one plan comes of it."""
    second = Controller(BUILD, w.ca, directory, etcd.yaml(), name="ctl2", lease=w.lease)
    op2 = second.client(w.context["op"])
    w.sites()
    gws, stop = four(w)
    before = pairs_by_job(w.sched.put("/v1/jobs/j1", job_of(5, 10**8), 201))
    until(lambda: op2.ask("GET", "/v1/jobs/j1")[0] == 200)
    def same(gone):
        plans = [pairs_by_job(op.get("/v1/jobs/j1")) for op in (w.op, op2)]
        routes = [pairs_by_routes(op.get("/v1/routes?site=a"), op.get("/v1/routes?site=b")) for op in (w.op, op2)]
        return plans[0] == plans[1] == routes[0] == routes[1] and not any(gone in gws for gws in plans[0].values()) and plans[0]
    stop["gw-a2"]()
    after = until(lambda: same("gw-a2"))
    assert len(after) == 16 and all(after[p] == gws for p, gws in before.items() if "gw-a2" not in gws)
    stop["gw-b2"]()
    w.op.delete("/v1/gateways/gw-b2")  # no replica's lease: both replicas make a plan
    last = until(lambda: same("gw-b2"))
    assert len(last) == 16 and all(last[p] == gws for p, gws in after.items() if "gw-b2" not in gws)
    for op in (w.op, op2):
        texts = [e["text"] for e in op.get("/v1/events?limit=1000")["events"] if e["name"] == "j1"]
        assert sum("pairs moved" in t for t in texts) == 2, texts
    [stop[g]() for g in ("gw-a1", "gw-b1")]
    second.kill()


def full_store(directory):
    w = World("full_store", directory, f"{{kind: sqlite, path: {directory}/full.db, max_size: 1MiB}}", limits="{body: 1MiB}")
    status, n = 201, 0
    while status == 201 and n < 100:
        status, out = w.op.ask("PUT", f"/v1/sites/f{n}", {"prefixes": [f"10.{n}.{i}.0/24" for i in range(64)], "location": "x" * 120})
        n += status == 201
        if status == 201 and n % 10 == 0:
            w.op.put(f"/v1/jobs/none{n}", {"pairs": [{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 1}]}, None)
        big = {"vni": 1000 + n, "sites": {f"f{n - 1}": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vlan"}], "vlan": 100 + n}}}
        big["acl"] = [{"action": "deny", "source": f"10.1.0.{i & 255}/32", "destination": "any"} for i in range(1000)]
        if status == 201:
            status, out = w.op.ask("PUT", f"/v1/tenants/t{n}", big)
    assert status == 503 and "full" in out["error"], (status, out, n)
    assert len(w.op.get("/v1/sites")["sites"]) == n
    w.op.delete("/v1/tenants/t1")  # room again
    w.op.put("/v1/sites/small", {"prefixes": []}, 201)
    w.ctl.stop()
