# SPDX-License-Identifier: Apache-2.0
# Schedulers that ask for what cannot be, or for what another one has: tests of controller_api.py.
# What is refused has a reason, and changes nothing anywhere.
import time
from concurrent.futures import ThreadPoolExecutor

from ctlr.ranks import pod, task, two_sites
from ctlr.shapes import everything, pair, world

MOST = 10**15  # bit/s that a demand may have


def test_what_cannot_be_planned_changes_nothing(w):
    gws, stop = world(w)
    w.sched.put("/v1/jobs/old", {"pairs": [pair(1, bandwidth_bps=10**9)]}, 201)
    before = everything(w, gws)
    here, there = "10.1.9.1", "10.2.9.1"
    now = int(time.time() * 1000)
    for body, status, field in [
            # addresses and paths that nobody knows
            ({"pairs": [{"source": "192.0.2.77", "destination": there, "bandwidth_bps": 1}]}, 409, "pairs[0]"),
            ({"pairs": [{"source": here, "destination": "192.0.2.77", "bandwidth_bps": 1}]}, 409, "pairs[0]"),
            ({"pairs": [{"source": "fd00::1", "destination": there, "bandwidth_bps": 1}]}, 409, "pairs[0]"),
            ({"pairs": [{"source": "224.0.0.1", "destination": there, "bandwidth_bps": 1}]}, 400, "pairs[0].source"),
            ({"pairs": [{"source": here, "destination": here, "bandwidth_bps": 1}]}, 400, "pairs[0].destination"),
            ({"pairs": [pair(9, bandwidth_bps=1), {"source": "fd00::1", "destination": "fd00:0::1", "bandwidth_bps": 1}]}, 400, "pairs[1].destination"),
            ({"pairs": [pair(9, bandwidth_bps=1, path="p")]}, 400, "pairs[0].path"),
            ({"pairs": [pair(9, bandwidth_bps=1)], "paths": ["p"]}, 400, "paths"),
            ({"pairs": [pair(9, bandwidth_bps=1)], "tenant": "nobody"}, 409, "tenant"),
            # demands that overflow, alone or in sum
            ({"pairs": [pair(9, bandwidth_bps=MOST + 1)]}, 400, "pairs[0].bandwidth_bps"),
            ({"pairs": [pair(9, bandwidth_bps=2**63 - 1)]}, 400, "pairs[0].bandwidth_bps"),
            ({"pairs": [pair(9, bandwidth_bps=MOST)]}, 409, None),
            ({"pairs": [{"source": f"10.1.{i >> 8}.{i & 255}", "destination": there, "bandwidth_bps": MOST} for i in range(256, 2048)]}, 409, None),
            ({"pairs": [pair(9, bytes=2**62, period_us=1)]}, 400, "pairs[0].bytes"),
            ({"pairs": [pair(9, bytes=10**18)], "within_ms": 1}, 400, "pairs[0].bytes"),
            # times that are past, or so far away that they overflow in microseconds
            ({"pairs": [pair(9, bytes=1)], "deadline_ms": now - 1}, 400, "deadline_ms"),
            ({"pairs": [pair(9, bytes=1)], "deadline_ms": 1}, 400, "deadline_ms"),
            ({"pairs": [pair(9, bytes=10**6)], "deadline_ms": now + 2**64 // 1000 + 60_000}, 400, "deadline_ms"),
            ({"pairs": [pair(9, bytes=1)], "deadline_ms": 2**63 - 1}, 400, "deadline_ms"),
            ({"pairs": [pair(9, bytes=1)], "within_ms": 2**63 - 1}, 400, "within_ms"),
            ({"pairs": [pair(9, bandwidth_bps=1)], "duration_ms": 2**63 - 1}, 400, "duration_ms")]:
        out = w.sched.put("/v1/jobs/new", body, status)
        assert out["error"] and out.get("field") == field, (out, str(body)[:200])
        if (status, field) == (409, "pairs[0]"):
            assert f"{body['pairs'][0]['source']} and {body['pairs'][0]['destination']}: an address belongs to no site" == out["error"], out
        w.sched.get("/v1/jobs/new", 404)
        assert before == everything(w, gws), str(body)[:200]
    stop()


def test_a_deadline_that_is_past_leaves_the_job_as_it_was(w):
    gws, stop = world(w)
    w.sched.put("/v1/jobs/weights", {"pairs": [pair(1, bytes=10**9)], "within_ms": 600_000}, 201)
    before = everything(w, gws)
    now = int(time.time() * 1000)
    for more in ({"deadline_ms": now - 1}, {"deadline_ms": now}, {"within_ms": 0}, {"deadline_ms": now + 1, "within_ms": 1}):
        out = w.sched.put("/v1/jobs/weights", {"pairs": [pair(1, bytes=10**9)], **more}, 400)
        assert out["field"] in more, (more, out)
        assert before == everything(w, gws), more
    stop()


def test_of_many_schedulers_one_gets_a_container(w):
    """Six at once want one container each with others that nobody wants: one has it, and only its
    job is there; when it withdraws, another one may have it."""
    gws, stop = two_sites(w)

    def body(i):
        return task([("a", 24)], [pod("shared", 1, 1), pod("left", 1, 10 + 2 * i), pod("right", 1, 11 + 2 * i)])
    clients = [w.ctl.client(w.context["sched"]) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: clients[i].ask("PUT", f"/v1/jobs/task{i}", body(i)), range(6)))
    assert sorted(code for code, _ in got) == [201] + [409] * 5, got
    (won,) = [i for i, (code, _) in enumerate(got) if code == 201]
    assert all(f"the job task{won} has 10.1.1." in out["error"] and out["field"].startswith("containers[0].nics[") for code, out in got if code == 409), got
    assert [j["name"] for j in w.sched.get("/v1/jobs")["jobs"]] == [f"task{won}"]
    next_ = (won + 1) % 6
    w.sched.put(f"/v1/jobs/task{next_}", body(next_), 409)
    w.sched.delete(f"/v1/jobs/task{won}")
    w.sched.put(f"/v1/jobs/task{next_}", body(next_), 201)
    stop()
