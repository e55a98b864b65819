# SPDX-License-Identifier: Apache-2.0
# Jobs that say more than a rate: tests of controller_api.py.
from ctlr.harness import until


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
    w.ctl.stop()
    w.ctl.start()
    w.connect()
    assert "hold the tunnels to another" in w.sched.put("/v1/jobs/bulk2", one(4, carrier="tcp"), 409)["error"]
    for name in "quick", "bulk":
        w.sched.delete(f"/v1/jobs/{name}")
    w.sched.put("/v1/jobs/bulk2", one(4, carrier="tcp"), 201)
    stop()
