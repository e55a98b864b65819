# SPDX-License-Identifier: Apache-2.0
# Ranks of training jobs: tests of controller_api.py.
import json
import subprocess
import threading
import time

from ctlr.harness import ROOT, until
from ctlr.networks import TIMEOUT, Network, configure, four, legs, made, texts

G = 10**9
TABLE3 = {"sequence_length": 16384, "hidden_size": 4096, "micro_batch_size": 2, "global_batch_size": 30, "element_bytes": 2, "step_us": 60700000}


def pod(name, net, n, ranks=8, nics=8, **more):
    """A container at 10.NET.N.0/24; its NICs are posted in no order."""
    order = sorted(range(nics), key=lambda i: i * 5 % nics)
    return {"name": name, "ranks": ranks, "nics": [{"name": f"eth{i + 4}", "address": f"10.{net}.{n}.{i + 1}", "hca": f"mlx5_{i + 4}"} for i in order], **more}


def task(clusters, containers, **more):
    whole = {k: more.pop(k) for k in ("priority", "preempt") if k in more}
    split = {"pipeline": 6, "tensor": 4, "clusters": [{"site": s, "ranks": r} for s, r in clusters], "model": TABLE3, **more}
    return {"split": split, "containers": containers, **whole}


def two_sites(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-b1")
    stop = w.keep_alive(*gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 1)
    w.net.put("/v1/links/a/b/net", {"class": "reserved", "bandwidth_bps": 10 * G, "delay_us": 20000, "jitter_us": 100, "loss_ppm": 0, "ttl_ms": 86400000})
    return gws, stop


def ranks_of(out):
    return {c["name"]: [r["rank"] for r in c["ranks"]] for c in out["containers"]}


def table3(spare=(), **more):
    return task([("a", 16), ("b", 8)], [pod("pod-1", 1, 1, node="n1"), pod("pod-2", 1, 2, node="n2"), pod("pod-3", 2, 3, node="n3"), *spare], **more)


def test_table_3_gets_ranks_and_what_they_demand(w):
    gws, stop = two_sites(w)
    said = w.sched.put("/v1/jobs/task1", table3(delay_us=60000), 201)
    assert said["state"] == "planned"
    out = w.sched.get("/v1/jobs/task1/ranks")
    assert ranks_of(out) == {"pod-1": list(range(8)), "pod-2": list(range(8, 16)), "pod-3": list(range(16, 24))}
    assert out["master"] == {"container": "pod-1", "address": "10.1.1.1", "port": 29500} and (out["world_size"], out["nodes"]) == (24, 3)
    assert [n["name"] for n in out["containers"][0]["nics"]] == [f"eth{i}" for i in range(4, 12)]  # eth9 before eth10
    want = -(-(2**28 * 8 * 10**6) // 3035000)
    assert out["demand"] == {"bandwidth_bps": want, "delay_us": 60000, "jitter_us": 0, "bytes": 2**28, "micro_batches": 15, "transfer_us": 3035000}
    # the last four NICs of pod-2 and the first four of pod-3, one to one
    assert [(r["source"], r["destination"]) for r in said["plan"]] == [(f"10.1.2.{5 + i}", f"10.2.3.{1 + i}") for i in range(4)]
    assert all(abs(r["gateway_bps"] * 0.92 / want - 1) < 0.001 for r in said["plan"])
    assert len(gws[0].document()["assignments"]) == 4
    events = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "task1"]
    assert "all ranks are assigned; pod-1 is the master" in events
    # the same again changes nothing; ranks stay when the demand changes
    assert w.sched.put("/v1/jobs/task1", table3(delay_us=60000), 200) == said
    more = table3(delay_us=60000)
    more["split"]["model"] = {**TABLE3, "transfer_us": 6070000}
    w.sched.put("/v1/jobs/task1", more, 200)
    again = w.sched.get("/v1/jobs/task1/ranks")
    assert again["generation"] == out["generation"] and again["containers"] == out["containers"]
    assert again["demand"]["bandwidth_bps"] == -(-(2**28 * 8 * 10**6) // 6070000)
    # all is there after a restart
    stop()
    w.ctl.kill()
    w.ctl.start()
    w.connect()
    assert w.sched.get("/v1/jobs/task1/ranks") == again
    w.sched.delete("/v1/jobs/task1")
    w.sched.get("/v1/jobs/task1/ranks", 404)


def test_figure_31_puts_the_middle_site_in_the_middle(w):
    ends = {"qingyang": ("gw-a1", 1), "cluster2": ("gw-a2", 2), "hangzhou": ("gw-b1", 3)}
    for site, (_, n) in ends.items():
        w.op.put(f"/v1/sites/{site}", {"prefixes": [f"10.{n}.0.0/16"]}, 201)
    gws = [w.gateway(name, site, n) for site, (name, n) in ends.items()]
    [g.register() for g in gws]
    stop = w.keep_alive(*gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 3)
    for p in json.loads((ROOT / "conf/samples/jobs/three-sites.json").read_text())["paths"]:
        w.op.put(f"/v1/links/{p['first']}/{p['second']}/net", {"class": "deterministic", "ttl_ms": 86400000, "loss_ppm": 0,
                 **{k: p[k] for k in ("bandwidth_bps", "delay_us", "jitter_us")}})
    pods = [pod(f"pod-{site}", n, 1) for site, (_, n) in ends.items()]
    said = w.sched.put("/v1/jobs/t", task([(s, 8) for s in ends], pods, delay_us=12000), 201)
    out = w.sched.get("/v1/jobs/t/ranks")
    assert ranks_of(out)["pod-qingyang"] == list(range(8, 16)) and out["master"]["container"] == "pod-cluster2"
    assert len(said["plan"]) == 8
    # in the order that the scheduler wants, 20 ms are between two neighbours
    body = task([(s, 8) for s in ends], pods, delay_us=12000)
    for i, c in enumerate(body["split"]["clusters"]):
        c["first"] = 8 * i
    refused = w.sched.put("/v1/jobs/t", body, 409)
    assert refused["fits"][0]["delay_us"] > 20000, refused
    assert w.sched.get("/v1/jobs/t/ranks") == out
    stop()


def test_a_job_waits_for_its_containers_and_is_undone(w):
    """The scheduler dies in the middle: what it reserved lapses, and another one may have it."""
    gws, stop = two_sites(w)
    half = task([("a", 16), ("b", 8)], [pod("pod-1", 1, 1), pod("pod-2", 1, 2)], hold_ms=60000)
    said = w.sched.put("/v1/jobs/task1", half, 201)
    assert (said["state"], said["plan"]) == ("waiting", [])
    out = w.sched.get("/v1/jobs/task1/ranks")
    assert (out["state"], out["missing"]) == ("waiting", 8) and "master" not in out and ranks_of(out) == {"pod-1": [], "pod-2": []}
    other = task([("a", 24)], [pod("x", 1, 9), pod("pod-1", 1, 1), pod("y", 1, 8)])
    refused = w.sched.put("/v1/jobs/task2", other, 409)
    assert refused["field"].startswith("containers[1].nics[") and "the job task1 has 10.1.1." in refused["error"], refused
    w.sched.post("/v1/jobs/task1/failures", {"containers": ["pod-1"]}, 409)
    assert w.sched.put("/v1/jobs/task1", half, 200)["state"] == "waiting"  # it has hold_ms again
    # the rest comes: a poll that waits is answered
    answer = []
    t = threading.Thread(target=lambda: answer.append(w.ctl.client(w.context["sched"]).get(f"/v1/jobs/task1/ranks?after={out['generation']}&wait_ms=60000")))
    t.start()
    half["containers"].append(pod("pod-3", 2, 3))
    w.sched.put("/v1/jobs/task1", half, 200)
    t.join()
    assert answer[0]["state"] == "planned" and answer[0]["missing"] == 0 and answer[0]["generation"] > out["generation"]
    w.sched.get(f"/v1/jobs/task1/ranks?after={answer[0]['generation']}&wait_ms=1", 304)
    w.sched.delete("/v1/jobs/task1")
    # nobody brings the rest
    w.sched.put("/v1/jobs/task1", task([("a", 16), ("b", 8)], [pod("pod-1", 1, 1)], hold_ms=1000), 201)
    until(lambda: w.sched.ask("GET", "/v1/jobs/task1")[0] == 404)
    assert any("did not come in time" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    said = w.sched.put("/v1/jobs/task2", other, 201)
    assert (said["state"], said["plan"]) == ("planned", [])  # all at one site: nothing crosses
    stop()


def test_a_dead_server_is_replaced_and_the_rest_stays(w):
    gws, stop = two_sites(w)
    spare = pod("spare", 1, 7, node="n7")
    w.sched.put("/v1/jobs/task1", table3([spare]), 201)
    before = w.sched.get("/v1/jobs/task1/ranks")
    assert ranks_of(before)["spare"] == []
    assert w.sched.post("/v1/jobs/task1/failures", {"nodes": ["n9"]}, 409)["field"] == "nodes[0]"
    assert w.sched.post("/v1/jobs/task1/failures", {}, 400)["field"] == "containers"
    w.sched.post("/v1/jobs/nothing/failures", {"nodes": ["n9"]}, 404)
    answer, began = [], time.monotonic()
    t = threading.Thread(target=lambda: answer.append(w.ctl.client(w.context["sched"]).get(f"/v1/jobs/task1/ranks?after={before['generation']}&wait_ms=60000")))
    t.start()
    said = w.sched.post("/v1/jobs/task1/failures", {"nodes": ["n2"]})
    t.join()
    print(f"    every rank knew {time.monotonic() - began:.3f} s after the report")
    was, now = ranks_of(before), ranks_of(answer[0])
    assert now == {**was, "pod-2": [], "spare": was["pod-2"]} and said["state"] == "planned"
    assert [r["source"] for r in said["plan"]] == [f"10.1.7.{5 + i}" for i in range(4)]
    until(lambda: {x["source"] for x in gws[0].document()["assignments"]} == {r["source"] for r in said["plan"]})
    # no spare is left: the job is broken, and keeps what lives
    said = w.sched.post("/v1/jobs/task1/failures", {"containers": ["pod-3"]})
    assert said["state"] == "broken" and "8 ranks have no container" in said["reason"] and said["plan"] == []
    out = w.sched.get("/v1/jobs/task1/ranks")
    assert (out["state"], out["missing"]) == ("broken", 8) and ranks_of(out)["pod-1"] == was["pod-1"]
    # the scheduler brings another one, without those that died
    body = table3([spare])
    body["containers"] = [c for c in body["containers"] if c["name"] not in ("pod-2", "pod-3")] + [pod("pod-4", 2, 4)]
    said = w.sched.put("/v1/jobs/task1", body, 200)
    assert said["state"] == "planned" and len(said["plan"]) == 4
    assert ranks_of(w.sched.get("/v1/jobs/task1/ranks")) == {"pod-1": was["pod-1"], "spare": was["pod-2"], "pod-4": was["pod-3"]}
    seen = texts(w, "task1")
    assert any("container pod-2 failed, which had 8 ranks from 8 on" in s for s in seen), seen
    stop()


def test_a_report_of_failures_preempts_nobody_again(w):
    """Its job preempted another one when it came; that one fits again since, and stays."""
    gws, stop = two_sites(w)

    def pairs(net, bps, **more):
        return {"pairs": [{"source": f"10.1.{net}.1", "destination": f"10.2.{net}.1", "bandwidth_bps": bps}], **more}

    def preempted():
        return sum("preempted by task1" in s for s in texts(w, "small"))
    w.sched.put("/v1/jobs/filler", pairs(8, 5 * G, priority=5), 201)
    w.sched.put("/v1/jobs/small", pairs(9, 2 * G), 201)
    assert w.sched.put("/v1/jobs/task1", table3([pod("spare", 1, 7, node="n7")], priority=1, preempt=True), 201)["preempts"] == ["small"]
    w.sched.delete("/v1/jobs/filler")
    until(lambda: w.sched.get("/v1/jobs/small")["state"] == "planned")
    assert preempted() == 1
    said = w.sched.post("/v1/jobs/task1/failures", {"nodes": ["n2"]})
    assert said["state"] == "planned" and w.sched.get("/v1/jobs/small")["state"] == "planned"
    assert preempted() == 1
    stop()


def test_a_report_of_failures_waits_for_who_changes_the_tunnels(w):
    """Meanwhile a request has its network make a larger tunnel, and fails: the network keeps what the job has."""
    network = Network()
    configure(w, network.yaml.replace(f"timeout_ms: {TIMEOUT}", f"timeout_ms: {3 * TIMEOUT}"))
    _, stop = four(w)
    body = table3([pod("spare", 1, 7, node="n7")])
    said = w.sched.put("/v1/jobs/task1", body, 201)
    had = made(network, "task1~a~b")
    assert legs(said) == had
    network.behave(tunnels="late")
    body["split"]["model"] = {**TABLE3, "transfer_us": TABLE3["step_us"] // 40}
    status = []

    def larger():
        status.append(w.ctl.client(w.context["sched"]).ask("PUT", "/v1/jobs/task1", body)[0])
        network.behave(tunnels="")
    t = threading.Thread(target=larger)
    t.start()
    until(lambda: made(network, "task1~a~b") != had)
    said = w.sched.post("/v1/jobs/task1/failures", {"nodes": ["n2"]})
    t.join()
    assert status == [503] and said["state"] == "planned" and legs(said) == had
    until(lambda: made(network, "task1~a~b") == had)
    assert legs(w.sched.get("/v1/jobs/task1")) == had
    stop()
    network.kill()


def test_splits_that_cannot_be_are_refused(w):
    gws, stop = two_sites(w)
    good = table3()

    def refused(status, field, change):
        body = json.loads(json.dumps(good))
        change(body)
        out = w.sched.put("/v1/jobs/t", body, status)
        assert out["field"] == field, (field, out)
        w.sched.get("/v1/jobs/t", 404)

    def at(*path, value):
        def change(body):
            for key in path[:-1]:
                body = body[key]
            body[path[-1]] = value
        return change
    refused(400, "containers", lambda b: b.pop("containers"))
    refused(400, "pairs", at("pairs", value=[{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 1}]))
    refused(400, "demand", at("demand", value={"bandwidth_bps": 1}))
    refused(400, "granularity", at("granularity", value="qp"))
    refused(400, "split", at("split", "bandwidth_bps", value=1))
    refused(400, "split", lambda b: b["split"].pop("model"))
    refused(400, "split.model", at("split", "model", "global_batch_size", value=31))
    refused(400, "split.model", at("split", "model", "hidden_size", value=2**62))  # it overflows
    refused(400, "split.model", at("split", "model", "transfer_us", value=1))  # two petabits a second
    refused(400, "split.clusters[1].site", at("split", "clusters", 1, "site", value="a"))
    refused(400, "split.clusters[0].ranks", at("split", "clusters", 0, "ranks", value=14))
    refused(400, "split.clusters", at("split", "clusters", 0, "ranks", value=20))
    refused(400, "split.clusters", at("split", "clusters", 0, "first", value=0))
    refused(400, "split", at("split", "pipeline", value=65536))
    refused(400, "containers[1].ranks", at("containers", 1, "ranks", value=6))
    refused(400, "containers[1].name", at("containers", 1, "name", value="pod-1"))
    refused(400, "containers[1].nics[2].address", at("containers", 1, "nics", 2, "address", value="10.1.1.1"))
    refused(409, "containers[1].nics[0].address", at("containers", 1, "nics", 0, "address", value="192.0.2.77"))
    refused(409, "containers", at("containers", 1, "nics", 1, "address", value="10.2.0.77"))
    refused(409, "containers[2].nics[0].address", lambda b: b["split"]["clusters"].pop() and b["split"]["clusters"][0].update(ranks=24))
    refused(400, "pairs", lambda b: b.pop("split"))
    refused(400, "containers", lambda b: (b.pop("split"), b.update(pairs=[{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 1}])))
    w.sched.put("/v1/jobs/t", {**good, "tenant": "nobody"}, 409)
    w.sched.put("/v1/jobs/p", {"pairs": [{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 1}]}, 201)
    w.sched.get("/v1/jobs/p/ranks", 404)
    w.sched.get("/v1/jobs/p/ranks?container=/", 400)
    w.sched.post("/v1/jobs/p/failures", {"nodes": ["n1"]}, 404)
    stop()


def begin(w, cert, *words):
    d = w.ca.dir
    return subprocess.Popen([ROOT / "tools/ranks/roceway-rank", "--controller", f"https://127.0.0.1:{w.ctl.port}", "--ca", d / "ca.pem", "--cert",
                             d / f"{cert}.pem", "--key", d / f"{cert}.key", "--timeout", "60", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def helper(w, cert, *words):
    p = begin(w, cert, *words)
    out, err = p.communicate()
    return subprocess.CompletedProcess(p.args, p.returncode, out, err)


def shell(out):
    assert out.returncode == 0, out.stderr
    return dict(line.removeprefix("export ").split("=", 1) for line in out.stdout.splitlines())


def test_a_start_script_gets_the_ranks_of_its_container(w):
    gws, stop = two_sites(w)
    w.context["task1"] = w.ca.issue("task1", "container")
    half = table3()
    last = half["containers"].pop()
    w.sched.put("/v1/jobs/task1", half, 201)
    outs = {}
    threads = [threading.Thread(target=lambda k=k, words=words: outs.__setitem__(k, helper(w, "task1", "--job", "task1", *words)))
               for k, words in {"pod-2": ("--container", "pod-2"), "local": ("--container", "pod-2", "--local-rank", "6")}.items()]
    [t.start() for t in threads]
    half["containers"].append(last)
    w.sched.put("/v1/jobs/task1", half, 200)
    [t.join() for t in threads]
    v = shell(outs["pod-2"])
    generation = v.pop("RANKS_GENERATION")
    names = [f"mlx5_{i}" for i in range(4, 12)]
    assert v == {"RANK": "8", "WORLD_SIZE": "24", "LOCAL_WORLD_SIZE": "8", "NODE_RANK": "1", "NNODES": "3", "STAGE": "2", "MASTER_ADDR": "10.1.1.1",
                 "MASTER_PORT": "29500", "NCCL_IB_HCA": "=" + ",".join(names), "NCCL_SOCKET_IFNAME": "=" + ",".join(f"eth{i}" for i in range(4, 12))}, v
    v = shell(outs["local"])
    assert (v["RANK"], v["LOCAL_RANK"], v["STAGE"], v["NCCL_IB_HCA"]) == ("14", "6", "3", "=mlx5_10")
    # it lacks its way, and gets it with the same ranks
    w.op.delete("/v1/gateways/gw-b1")
    until(lambda: w.sched.get("/v1/jobs/task1")["state"] == "broken")
    p = begin(w, "task1", "--job", "task1", "--container", "pod-2")
    assert "task1 is broken: its demand has no room" in (line := p.stderr.readline()), line
    gws[1].register()
    until(lambda: w.sched.get("/v1/jobs/task1")["state"] == "planned")
    assert f"RANKS_GENERATION={generation}\n" in p.communicate()[0] and p.returncode == 0
    # no such container, another job's certificate, no such job
    assert "has no pod-9" in helper(w, "task1", "--job", "task1", "--container", "pod-9").stderr
    assert "certificate is for the job task1" in helper(w, "task1", "--job", "other", "--container", "pod-1").stderr
    assert helper(w, "task1", "--job", "task1", "--container", "pod-1", "--watch").returncode == 2
    # a change ends a watch
    watch = []
    t = threading.Thread(target=lambda: watch.append(helper(w, "task1", "--job", "task1", "--container", "pod-1", "--watch", "--generation", generation)))
    t.start()
    w.sched.post("/v1/jobs/task1/failures", {"containers": ["pod-2"]})
    t.join()
    assert watch[0].returncode == 3
    assert "reported as failed" in helper(w, "task1", "--job", "task1", "--container", "pod-2").stderr
    # it may read nothing else
    client = w.ctl.client(w.context["task1"])
    client.get("/v1/jobs/task1", 403)
    client.get("/v1/jobs", 403)
    stop()
