# SPDX-License-Identifier: Apache-2.0
# Tenants that come, clash and stay: tests of controller_api.py.
import threading
from concurrent.futures import ThreadPoolExecutor

from ctlr.harness import until
from ctlr.world import in_store, keep_alive


def red(vni=5001, **more):
    return {"vni": vni, "sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vtep"}], "vteps": ["10.1.0.11"], "vlan": 101},
                                  "b": {"prefixes": [{"prefix": "10.2.0.0/24", "at": "vtep"}], "vteps": ["10.2.0.11"]}}, **more}


def test_tenants_that_clash_are_refused(w):
    w.sites()
    w.op.put("/v1/tenants/red", red(guarantee="1Gbps"), 201)
    w.op.put("/v1/tenants/red", red(guarantee="1Gbps"), 200)
    blue = red()
    assert w.op.put("/v1/tenants/blue", blue, 409)["field"] == "vni"
    blue["vni"] = 5002
    assert w.op.put("/v1/tenants/blue", blue, 409)["field"] == "sites.a.vlan"
    blue["sites"]["a"]["vlan"] = 102
    w.op.put("/v1/tenants/blue", blue, 201)  # the same addresses: tenants may overlap
    assert w.op.put("/v1/tenants/blue", {**blue, "vni": 5001}, 409)["field"] == "vni"
    assert w.op.get("/v1/tenants/blue")["vni"] == 5002
    for bad in ({"sites": {}}, {"sites": {"a": {"prefixes": [{"prefix": "10.1.0.5/24", "at": "vtep"}]}}}, {"acl": [{"action": "perhaps"}]},
                {"guarantee": "1 parsec"}, {"weight": 0}, {"sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "gw-b1"}]}}},
                {"sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vlan"}], "vlan": 5000}}}):
        assert w.op.put("/v1/tenants/bad", {**red(7), **bad}, 400)["field"]
    assert w.op.put("/v1/tenants/bad", {"vni": 7, "sites": {"nowhere": {"prefixes": []}}}, 409)["field"] == "sites"
    w.op.get("/v1/tenants/bad", 404)
    assert "tenant" in w.op.delete("/v1/sites/a", 409)["error"]
    assert [t["name"] for t in w.op.get("/v1/tenants")["tenants"]] == ["blue", "red"]
    w.op.delete("/v1/tenants/red")
    w.op.delete("/v1/tenants/blue")
    w.op.delete("/v1/tenants/blue", 404)


def test_tenants_without_a_vni_get_one_of_their_own(w):
    w.sites()
    def tenant(i, **more):
        return {"sites": {"a": {"prefixes": [{"prefix": f"10.1.{i}.0/24", "at": "vlan"}], "vlan": 100 + i}}, **more}
    first = 1 << 23
    w.op.put("/v1/tenants/typed", tenant(0, vni=first + 2), 201)
    clients = [w.ctl.client(w.context["op"]) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: clients[i].put(f"/v1/tenants/t{i}", tenant(1 + i), 201), range(4)))
    def vnis():
        return {t["name"]: t["vni"] for t in w.op.get("/v1/tenants")["tenants"]}
    was = vnis()
    assert sorted(was.values()) == [first + i for i in range(5)] and was["typed"] == first + 2, was
    # it stays: put again as it was, and otherwise
    revision = w.op.put("/v1/tenants/t1", tenant(2), 200)["revision"]
    assert w.op.put("/v1/tenants/t1", tenant(2), 200)["revision"] == revision
    w.op.put("/v1/tenants/t1", tenant(2, priority=3), 200)
    assert vnis() == was
    # it is given back
    w.op.delete("/v1/tenants/t1")
    w.op.put("/v1/tenants/t9", tenant(9), 201)
    assert vnis()["t9"] == was["t1"]
    assert w.op.put("/v1/tenants/t8", tenant(8, vni=was["t0"]), 409)["field"] == "vni"
    # the space is exhausted: who names none is refused, and nothing changes; who names one is not
    w.ctl.stop()
    w.ctl.config.write_text(w.ctl.config.read_text() + f"tenants: {{first_vni: {first}, last_vni: {first + 4}}}\n")
    w.ctl.start()
    w.connect()
    before = w.op.get("/v1/tenants")
    out = w.op.put("/v1/tenants/t7", tenant(7), 409)
    assert out["field"] == "vni" and f"all VNIs from {first} to {first + 4} have tenants" in out["error"], out
    w.op.put("/v1/tenants/t0", tenant(1), 200)  # it keeps its own
    assert w.op.get("/v1/tenants") == before
    w.op.put("/v1/tenants/t7", tenant(7, vni=77), 201)
    w.op.delete("/v1/tenants/t3")
    w.op.put("/v1/tenants/t6", tenant(6), 201)
    assert vnis()["t6"] == was["t3"]


def test_of_many_who_want_one_vni_one_gets_it(w):
    w.sites()
    codes = []
    def put(i):
        c = w.ctl.client(w.context["op"])
        t = red(6000)
        del t["sites"]["a"]["vlan"]
        codes.append(c.ask("PUT", f"/v1/tenants/t{i}", t)[0])
    threads = [threading.Thread(target=put, args=(i,)) for i in range(12)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(codes) == [201] + [409] * 11, codes
    assert len(w.op.get("/v1/tenants")["tenants"]) == 1
    for i in range(12):
        w.op.ask("DELETE", f"/v1/tenants/t{i}")


def test_a_tenant_whose_jobs_are_there_stays(w):
    w.sites()
    w.op.put("/v1/tenants/red", red(), 201)
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)
    w.sched.put("/v1/jobs/of-red", {"tenant": "red", "pairs": [{"source": "10.1.0.5", "destination": "10.2.0.5", "bandwidth_bps": 10**8}]}, 201)
    until(lambda: a.document()["assignments"])
    assert "job of-red" in w.op.delete("/v1/tenants/red", 409)["error"]
    stop()
    # a store of before that: the job has no tenant, and the next one with its VNI does not get its reservations
    in_store(w, "tenant/red", None)
    a.client, b.client = w.gw_a1, w.gw_b1
    stop = keep_alive(w, a, b)
    w.op.put("/v1/tenants/blue", red(), 201)
    assert a.document()["assignments"] == [] and b.document()["assignments"] == []
    assert [r for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r] == []
    w.sched.delete("/v1/jobs/of-red")
    w.op.delete("/v1/tenants/blue")
    stop()
