# SPDX-License-Identifier: Apache-2.0
# What a gateway's document has room for: tests of controller_api.py.
from ctlr.harness import until

SITE_MAX = 100000
JOB = 4000  # pairs


def job(i, n):
    return {"pairs": [{"source": f"10.1.{i}.{1 + k % 250}", "destination": f"10.2.{k // 250}.{1 + k % 250}", "bandwidth_bps": 1000} for k in range(n)]}


def test_pairs_of_all_jobs_fit_a_document(w):
    """A gateway takes 100,000 of a site: the job that would make more is refused, and nothing changes."""
    w.sites()
    for g in w.gateways("gw-a1", "gw-b1"):
        w.keep_alive(g)
    until(lambda: [t["state"] for t in w.op.get("/v1/tunnels")["tunnels"]] == ["up"])
    full = SITE_MAX // JOB
    for i in range(full):
        w.sched.put(f"/v1/jobs/j{i}", job(i, JOB), 201)
    said = w.sched.put("/v1/jobs/more", job(full, 1), 409)
    assert said["field"] == "pairs" and f"site a take {SITE_MAX} of all jobs: others have {SITE_MAX} there, and this one 1" in said["error"], said
    w.op.get("/v1/jobs/more", 404)
    # one that is planned again has the room that it had
    w.sched.put("/v1/jobs/j0", job(0, JOB - 1), 200)
    w.sched.put("/v1/jobs/more", job(full, 2), 409)
    w.sched.put("/v1/jobs/more", job(full, 1), 201)
    w.sched.put("/v1/jobs/j0", job(0, JOB), 409)
    w.sched.delete("/v1/jobs/j1")
    w.sched.put("/v1/jobs/j0", job(0, JOB), 200)
