# SPDX-License-Identifier: Apache-2.0
# Jobs whose tunnels networks' controllers make: tests of controller_api.py, over both stores. The
# network is tests/lib/provider/network.py: two edges, pe-1 with 100 Gbit/s and pe-2 with 50,
# between sites a and b; it fails as configured by the test.
import atexit
import http.client
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from ctlr.harness import ROOT, SLOW, Controller, until

G = 10**9
BIG = 400 * G  # of a gateway: the network is what bounds
TIMEOUT = round(1000 * SLOW)  # ms


class Network:
    def __init__(self):
        self.proc = subprocess.Popen([sys.executable, ROOT / "tests/lib/provider/network.py"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        atexit.register(self.proc.kill)
        self.port = int(self.proc.stdout.readline())
        self.yaml = f"{{name: net-1, kind: http, url: \"http://127.0.0.1:{self.port}\", timeout_ms: {TIMEOUT}, sites: [a, b]}}"

    def ask(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        c.request(method, path, json.dumps(body) if body is not None else None)
        out = json.loads(c.getresponse().read())
        c.close()
        return out

    def behave(self, **how):
        self.ask("POST", "/test/behave", how)

    def tunnels(self):
        return self.ask("GET", "/test/tunnels")

    def calls(self, word):
        return [c for c in self.ask("GET", "/test/calls") if c.startswith(word)]

    def kill(self):
        self.proc.kill()
        self.proc.wait()


def configure(w, *providers):
    w.ctl.stop()
    w.ctl.config.write_text(w.ctl.config.read_text() + f"providers: [{', '.join(providers)}]\n")
    w.ctl.start()
    w.connect()


def job(bps, net=5, n=1, **more):
    return {"pairs": [{"source": f"10.1.{net}.{i}", "destination": f"10.2.{net}.{i}", "bandwidth_bps": bps // n, **more} for i in range(n)]}


def at_edge(bps):
    """n/(a*b) of the default policy, without loss."""
    return bps / 0.92


def four(w, **more):
    w.sites()
    gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{g: {"bandwidth": BIG} for g in ("gw-a1", "gw-a2", "gw-b1", "gw-b2")})
    stop = w.keep_alive(*gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    return gws, stop


def legs(said):
    return {(leg["edge"], leg["path"]): leg["bandwidth_bps"] for n in said.get("network", []) for leg in n["legs"]}


def made(network, name):
    return {(leg["edge"], leg["path"]): leg["bandwidth_bps"] for leg in network.tunnels()[name]["legs"]}


def texts(w, name=None):
    return [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if name is None or e.get("name") == name]


def counter(w, name):
    w.op.get("/metrics")
    return next(int(line.split()[1]) for line in w.op.text.decode().splitlines() if line.startswith(f"roceway_controller_{name}_total "))


def test_a_job_gets_tunnels_of_its_network(w):
    network = Network()
    configure(w, network.yaml)
    gws, stop = four(w)
    before = {t["name"]: t["rate_bps"] for t in w.op.get("/v1/tunnels")["tunnels"]}
    said = w.sched.put("/v1/jobs/j", job(60 * G, n=16), 201)
    # one path at each edge, shared by bandwidth; both the network and the store have it
    entry, = said["network"]
    assert (entry["name"], entry["first"], entry["second"], entry["shape"]) == ("j~a~b", "a", "b", "same-path")
    assert abs(entry["bandwidth_bps"] / at_edge(60 * G) - 1) < 0.001, entry
    assert set(legs(said)) == {("pe-1", "p"), ("pe-2", "q")} and legs(said) == made(network, "j~a~b")
    assert abs(legs(said)["pe-1", "p"] / legs(said)["pe-2", "q"] - 2) < 0.001
    assert w.sched.get("/v1/jobs/j") == said
    # the tunnels between the gateways are limited to their part
    assert abs(sum(entry["pairs"].values()) - entry["bandwidth_bps"]) < 5 and len(entry["pairs"]) == 4
    until(lambda: {t["name"]: t.get("reserved_bps") for t in w.op.get("/v1/tunnels")["tunnels"]} == entry["pairs"])
    for t in w.op.get("/v1/tunnels")["tunnels"]:
        assert t["rate_bps"] <= entry["pairs"][t["name"]] < before[t["name"]], t
    told = {f"gw-a1/{t['name']}": t["rate_bps"] for t in until(lambda: gws[0].document())["tunnels"]}
    assert all(rate <= entry["pairs"][name] for name, rate in told.items()), told
    link, = w.op.get("/v1/links")["reserved"]
    assert (link["job"], link["source"], link["bandwidth_bps"], link["delay_us"]) == ("j", "reserved", entry["bandwidth_bps"], 12000) and link["age_ms"] < 60000
    # a session shows it
    row = said["plan"][0]
    gws[0].open((row["source"], row["destination"]))
    x = w.op.get(f"/v1/sessions/gw-a1:{row['source']}-{row['destination']}/explain")
    assert x["network"]["name"] == "j~a~b" and x["network"]["job"] == "j" and x["network"]["reason"] == "one path at each edge"
    assert x["inputs"]["class"] == "reserved" and x["inputs"]["path"]["native"]["bandwidth_bps"]["source"] == "reserved"
    assert x["inputs"]["path"]["native"]["bandwidth_bps"]["age_ms"] < 60000
    # more than one path per edge can carry: several paths; its present bandwidth counts as free
    network.behave(more=["pe-1", "r", 90 * G])
    said = w.sched.put("/v1/jobs/j", job(160 * G, n=16), 200)
    assert said["network"][0]["shape"] == "multi-path" and set(legs(said)) == {("pe-1", "p"), ("pe-1", "r"), ("pe-2", "q")}
    assert legs(said) == made(network, "j~a~b") and list(network.tunnels()) == ["j~a~b"]
    # more than available: the reason, and the largest demand that fits; nothing has changed
    out = w.sched.put("/v1/jobs/j", job(300 * G, n=16), 409)
    fits = out["fits"][0]
    assert "network" in out["error"] and "bandwidth" in fits["reason"] and 160 * G < fits["bandwidth_bps"] < 240 * G, out
    out = w.sched.put("/v1/jobs/k", job(G, net=6, delay_us=5000), 409)
    assert "short enough" in out["fits"][0]["reason"] and out["fits"][0]["delay_us"] == 10020, out
    assert legs(w.sched.get("/v1/jobs/j")) == legs(said) == made(network, "j~a~b")
    # a demand that fits is accepted
    w.sched.put("/v1/jobs/j", job(fits["bandwidth_bps"] - G, n=1), 200)
    w.sched.put("/v1/jobs/j", job(40 * G), 200)
    # a gateway leaves: pairs move without a request to the network
    calls = len(network.calls("PUT"))
    here = w.sched.get("/v1/jobs/j")
    a, b = here["plan"][0]["pair"].split("/")
    w.op.delete(f"/v1/gateways/{a}")
    moved = until(lambda: (lambda j: j["plan"][0].get("pair") != here["plan"][0]["pair"] and j)(w.sched.get("/v1/jobs/j")))
    assert moved["state"] == "planned" and legs(moved) == legs(here) and len(network.calls("PUT")) == calls
    assert list(moved["network"][0]["pairs"]) == [moved["plan"][0]["pair"]], moved
    until(lambda: [t["name"] for t in w.op.get("/v1/tunnels")["tunnels"] if "reserved_bps" in t] == [moved["plan"][0]["pair"]])
    # withdrawn: released, and the rate is as before
    w.sched.delete("/v1/jobs/j")
    until(lambda: network.tunnels() == {})
    until(lambda: all(t["rate_bps"] == before[t["name"]] and "reserved_bps" not in t for t in w.op.get("/v1/tunnels")["tunnels"]))
    assert w.op.get("/v1/links")["reserved"] == []
    # its end time has passed
    w.sched.put("/v1/jobs/short", {**job(G), "duration_ms": 1000}, 201)
    assert "short~a~b" in network.tunnels()
    until(lambda: w.sched.ask("GET", "/v1/jobs/short")[0] == 404 and network.tunnels() == {})
    # pairs that need no network
    w.sched.put("/v1/jobs/j", job(40 * G), 201)
    w.sched.put("/v1/jobs/j", {"pairs": [{"source": "10.1.0.1", "destination": "10.1.0.2", "bandwidth_bps": G}]}, 200)
    until(lambda: network.tunnels() == {})
    assert "network" not in w.sched.get("/v1/jobs/j")
    stop()
    network.kill()


def test_a_network_that_fails_leaves_nothing_behind(w):
    network = Network()
    configure(w, network.yaml)
    gws, stop = four(w)
    w.op.put("/v1/sites/c", {"prefixes": ["10.3.0.0/16"]}, 201)
    w.sched.put("/v1/jobs/kept", job(10 * G, net=9), 201)
    kept = network.tunnels()
    refused = [("garbage", "paths", 502, "free_bps is negative"), ("broken", "paths", 502, "status 500"), ("slow", "paths", 503, f"no answer within {TIMEOUT} ms"),
               ("broken", "tunnels", 502, "status 500"), ("refuse", "tunnels", 409, "taken meanwhile"), ("late", "tunnels", 503, f"no answer within {TIMEOUT} ms")]
    for i, (how, what, status, text) in enumerate(refused):
        name = f"j{i}"
        network.behave(**{what: how})
        out = w.sched.ask("PUT", f"/v1/jobs/{name}", job(10 * G), status)[1]
        assert text in out["error"] and "net-1" in out["error"], (how, what, out)
        out = w.sched.ask("POST", "/v1/jobs", {"name": name, **job(10 * G)}, status)[1]
        # nothing of it remains, also of requests whose answer was lost
        network.behave(**{what: ""})
        until(lambda: network.tunnels() == kept)
        w.sched.get(f"/v1/jobs/{name}", 404)
        assert any(text in t for t in texts(w, name)), texts(w, name)
    assert counter(w, "network_errors") >= 8 and counter(w, "network_refusals") >= 2 and counter(w, "network_dropped") >= 1
    told = texts(w, "net-1")
    assert any("status 500" in t for t in told) and "it answers again" in told
    # other requests are not delayed while it is slow
    network.behave(paths="slow")
    slow = []
    other = w.ctl.client(w.context["sched"])
    t = threading.Thread(target=lambda: slow.append(other.ask("PUT", "/v1/jobs/slow", job(G))[0]))
    t.start()
    until(lambda: len(network.calls("GET")) and slow == [] and t.is_alive())
    w.op.put("/v1/sites/d", {"prefixes": []}, 201)
    w.sched.put("/v1/jobs/near", {"pairs": [{"source": "10.1.0.1", "destination": "10.1.0.2", "bandwidth_bps": G}]}, 201)
    assert slow == []  # both were answered meanwhile
    t.join()
    assert slow == [503]
    network.behave(paths="")
    # a change that fails: the job is unchanged here and in the network
    was = w.sched.get("/v1/jobs/kept")
    network.behave(tunnels="late")
    w.sched.put("/v1/jobs/kept", job(50 * G, net=9), 503)
    network.behave(tunnels="")
    until(lambda: network.tunnels() == kept)
    assert w.sched.get("/v1/jobs/kept") == was
    # two changes of one job at once: one after the other
    codes = []
    clients = [w.ctl.client(w.context["sched"]) for _ in range(4)]
    threads = [threading.Thread(target=lambda c=c: codes.append(c.ask("POST", "/v1/jobs", {"name": "one", **job(G)})[0])) for c in clients]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(codes) == [200, 200, 200, 201], codes
    assert len([c for c in network.calls("PUT") if c == "PUT one~a~b"]) == 1
    # another tunnel is faster than the job: it is planned again with the rest
    said = w.sched.put("/v1/jobs/contested", job(60 * G), 201)
    assert said["network"][0]["shape"] == "same-path" and legs(said) == made(network, "contested~a~b")
    assert legs(said)["pe-1", "p"] < 30 * G and network.calls("PUT contested") == ["PUT contested~a~b"] * 2
    w.sched.delete("/v1/jobs/contested")
    # it is down: 503; existing jobs stay, and can be withdrawn; when it returns it gets its final
    # state
    network.kill()
    out = w.sched.put("/v1/jobs/x", job(G), 503)
    assert "net-1" in out["error"], out
    assert w.sched.get("/v1/jobs/kept") == was
    w.sched.delete("/v1/jobs/kept")
    w.sched.get("/v1/jobs/kept", 404)
    w.sched.put("/v1/jobs/kept", job(G), 503)
    w.sched.delete("/v1/jobs/one")
    stop()


def test_what_was_granted_and_not_kept_is_given_back_after_a_crash(w):
    network = Network()
    configure(w, network.yaml.replace(f"timeout_ms: {TIMEOUT}", "timeout_ms: 30000"))
    gws, stop = four(w)
    w.sched.put("/v1/jobs/kept", job(10 * G, net=9), 201)
    kept = network.tunnels()

    def crash():
        w.ctl.kill()
        network.behave(tunnels="")
        w.ctl.start()
        w.connect()
        for g in gws:
            g.client = getattr(w, g.name.replace("-", "_"))

    def dies(name, body, want):
        """Kills the controller after the network has done it and before anything is recorded."""
        network.behave(tunnels="late")

        def post():
            try:
                w.ctl.client(w.context["sched"]).ask("PUT", f"/v1/jobs/{name}", body)
            except (OSError, http.client.HTTPException):
                pass
        t = threading.Thread(target=post)
        t.start()
        until(lambda: made(network, f"{name}~a~b") == want if want else f"{name}~a~b" in network.tunnels() and network.tunnels() != kept)
        crash()
        t.join()
    stop()
    dies("lost", job(10 * G), None)
    until(lambda: network.tunnels() == kept)
    w.sched.get("/v1/jobs/lost", 404)
    assert len(w.sched.get("/v1/jobs")["jobs"]) == 1
    # a change of an existing job: as in the store
    [g.register() for g in gws]
    stop = w.keep_alive(*gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    was = w.sched.get("/v1/jobs/kept")
    dies("kept", job(20 * G, net=9), None)
    until(lambda: network.tunnels() == kept)
    assert w.sched.get("/v1/jobs/kept") == was
    # withdrawn while the network does not answer, and then the crash
    stop()
    network.behave(tunnels="broken")
    w.sched.delete("/v1/jobs/kept")
    until(lambda: network.calls("DELETE kept"))
    assert network.tunnels() == kept
    crash()
    until(lambda: network.tunnels() == {})
    network.kill()


def test_the_white_papers_job_over_its_three_sites(w):
    """Table 3 over figure 31, with a static provider: refused at first because the network has too
    little, then planned."""
    topology = json.loads((ROOT / "conf/samples/jobs/three-sites.json").read_text())
    task = json.loads((ROOT / "conf/samples/jobs/mixtral-pp6.json").read_text())
    file = w.ctl.config.with_name("paths.json")
    for p in topology["paths"]:
        p["bandwidth_bps"] = 400 * 10**6  # its test 6
    file.write_text(json.dumps(topology))
    configure(w, f"{{name: fibres, kind: static, file: {file}}}")
    ends = {"qingyang": ("gw-a1", 1), "cluster2": ("gw-a2", 2), "hangzhou": ("gw-b1", 3)}

    def register():
        out = []
        for site, (name, n) in ends.items():
            g = w.gateway(name, site, n, bandwidth=BIG)
            g.register()
            out.append(g)
        return out
    for site, (name, n) in ends.items():
        w.op.put(f"/v1/sites/{site}", {"prefixes": [f"10.{n}.0.0/16"]}, 201)
    gws = register()
    stop = w.keep_alive(*gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 3)
    out = w.sched.post("/v1/jobs", task, 409)
    assert len(out["fits"]) == 1 and abs(out["fits"][0]["bandwidth_bps"] / (368 * 10**6) - 1) < 0.001, out
    stop()
    w.ctl.stop()
    file.write_text((ROOT / "conf/samples/jobs/three-sites.json").read_text())
    w.ctl.start()
    w.connect()
    gws = register()
    stop = w.keep_alive(*gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 3)
    said = w.sched.post("/v1/jobs", task, 201)
    entry, = said["network"]
    assert (entry["first"], entry["second"], entry["shape"]) == ("hangzhou", "qingyang", "same-path") and len(said["plan"]) == 4
    assert abs(entry["bandwidth_bps"] / at_edge(40 * G) - 1) < 0.001
    until(lambda: [t.get("reserved_bps") for t in w.op.get("/v1/tunnels")["tunnels"] if t["name"] == "gw-a1/gw-b1"] == [entry["bandwidth_bps"]])
    # claimed bandwidth stays claimed, also after a restart: the provider itself stores nothing
    more = {"pairs": [{"source": "10.1.9.1", "destination": "10.3.9.1", "bandwidth_bps": 60 * G}]}
    for how in (w.ctl.stop, w.ctl.kill):
        out = w.sched.post("/v1/jobs", {"name": "more", **more}, 409)
        assert 51 * G < out["fits"][0]["bandwidth_bps"] < 52 * G, out
        stop()
        how()
        w.ctl.start()
        w.connect()
        gws = register()
        stop = w.keep_alive(*gws)
        assert w.sched.get(f"/v1/jobs/{task['name']}")["network"] == [entry]
    w.sched.delete(f"/v1/jobs/{task['name']}")
    until(lambda: w.sched.ask("POST", "/v1/jobs", {"name": "more", **more})[0] == 201)
    # sites that the file does not know: no network is asked
    w.sched.delete("/v1/jobs/more")
    stop()


def two_replicas_and_a_network(w, etcd, directory):
    """Each replica knows the other's grants; if one dies, the other settles its tunnels."""
    network = Network()
    file = Path(directory) / "paths.json"
    file.write_text(json.dumps({"paths": [{"first": "a", "second": "c", "edge": "pe-1", "name": "p", "bandwidth_bps": 100 * G, "delay_us": 1000}]}))
    providers = [network.yaml.replace(f"timeout_ms: {TIMEOUT}", "timeout_ms: 30000"), f"{{name: fibres, kind: static, file: {file}}}"]
    configure(w, *providers)
    w.op.put("/v1/sites/c", {"prefixes": ["10.3.0.0/16"]}, 201)
    gws, stop = four(w)
    c1 = w.gateway("nobody", "c", 31, bandwidth=BIG)
    c1.register()
    gws.append(c1)
    stop_c = w.keep_alive(c1)
    second = Controller(w.build, w.ca, directory, etcd.yaml(), name="ctl2", lease=w.lease, extra=f"providers: [{', '.join(providers)}]\n")
    other = second.client(w.context["sched"])
    until(lambda: len(second.client(w.context["op"]).get("/v1/tunnels")["tunnels"]) == 8)
    to_c = {"pairs": [{"source": "10.1.5.1", "destination": "10.3.5.1", "bandwidth_bps": 60 * G}]}
    w.sched.put("/v1/jobs/first", to_c, 201)
    until(lambda: other.ask("GET", "/v1/jobs/first")[0] == 200)
    out = other.put("/v1/jobs/second", {"pairs": [{**to_c["pairs"][0], "source": "10.1.5.2"}]}, 409)
    assert 30 * G < out["fits"][0]["bandwidth_bps"] < 35 * G, out
    other.delete("/v1/jobs/first")
    until(lambda: w.sched.ask("GET", "/v1/jobs/first")[0] == 404)
    w.sched.put("/v1/jobs/second", to_c, 201)
    # the same job at both at once: one plan, one tunnel
    codes = []
    threads = [threading.Thread(target=lambda c=c: codes.append(c.ask("POST", "/v1/jobs", {"name": "one", **job(G)})[0])) for c in (other, w.sched)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(codes) == [200, 201], codes
    # one dies with a tunnel that belongs to no job: the other one releases it
    kept = network.tunnels()
    network.behave(tunnels="late")

    def post():
        try:
            second.client(w.context["sched"]).ask("PUT", "/v1/jobs/lost", job(G))
        except (OSError, http.client.HTTPException):
            pass
    t = threading.Thread(target=post)
    t.start()
    until(lambda: "lost~a~b" in network.tunnels())
    second.kill()
    network.behave(tunnels="")
    t.join()
    until(lambda: network.tunnels() == kept)
    w.sched.get("/v1/jobs/lost", 404)
    stop()
    stop_c()
    network.kill()


def test_whatever_happens_the_network_has_what_the_jobs_say(w):
    """Clients add, change and withdraw jobs while the network fails at random and the controller is
    killed sometimes."""
    network = Network()
    configure(w, network.yaml.replace(f"timeout_ms: {TIMEOUT}", "timeout_ms: 300"))
    gws, stop = four(w)
    going, codes, pick = [True], Counter(), random.Random(5)

    def client(seed):
        mine = random.Random(seed)
        c = w.ctl.client(w.context["sched"])
        while going[0]:
            name = f"j{mine.randrange(4)}"
            try:
                if mine.random() < 0.3:
                    status, _ = c.ask("DELETE", f"/v1/jobs/{name}")
                else:
                    status, _ = c.ask("PUT", f"/v1/jobs/{name}", job(mine.randrange(1, 60) * G, net=20 + seed, n=mine.randrange(1, 4)))
                codes[status] += 1
            except (OSError, http.client.HTTPException):
                c.close()
    threads = [threading.Thread(target=client, args=(i,)) for i in range(6)]
    [t.start() for t in threads]
    for i in range(24):
        network.behave(paths=pick.choice(["", "", "", "broken", "slow"]), tunnels=pick.choice(["", "", "", "broken", "late", "refuse"]))
        seen = sum(codes.values())
        until(lambda seen=seen: sum(codes.values()) >= seen + 6)
        if i % 8 == 7:
            w.ctl.kill()
            w.ctl.start()
    going[0] = False
    network.behave(paths="", tunnels="")
    [t.join() for t in threads]
    stop()
    w.connect()

    def same():
        said = {n["name"]: {(leg["edge"], leg["path"]): leg["bandwidth_bps"] for leg in n["legs"]} for j in w.sched.get("/v1/jobs")["jobs"] for n in j.get("network", [])}
        there = network.tunnels()  # once: the last ones go while this looks
        return said == {name: {(leg["edge"], leg["path"]): leg["bandwidth_bps"] for leg in t["legs"]} for name, t in there.items()}
    try:
        until(same)
    except AssertionError as e:
        raise AssertionError(f"{w.sched.get('/v1/jobs')} but {network.tunnels()}") from e
    assert codes[200] + codes[201] > 5 and set(codes) <= {200, 201, 404, 409, 502, 503}, codes
    network.kill()


def test_two_networks_between_two_sites_are_placed_together(w):
    network = Network()
    file = w.ctl.config.with_name("paths.json")
    file.write_text(json.dumps({"paths": [{"first": "b", "second": "a", "edge": "pe-9", "name": "z", "bandwidth_bps": 60 * G, "delay_us": 9000}]}))
    configure(w, network.yaml[:-1] + ", edges: [pe-1]}", f"{{name: fibres, kind: static, file: {file}}}")
    gws, stop = four(w)
    said = w.sched.put("/v1/jobs/j", job(80 * G, n=8), 201)
    assert {(leg["provider"], leg["edge"]) for leg in said["network"][0]["legs"]} == {("net-1", "pe-1"), ("fibres", "pe-9")}
    assert made(network, "j~a~b") == {("pe-1", "p"): legs(said)["pe-1", "p"]} and said["network"][0]["shape"] == "same-path"
    # pe-2 is not used: the rest is of 160 Gbit/s
    out = w.sched.put("/v1/jobs/k", job(80 * G, net=6), 409)
    assert abs(out["fits"][0]["bandwidth_bps"] - (160 * G * 0.92 - 80 * G)) < G, out
    # one of them fails: nothing remains at the other
    network.behave(tunnels="broken")
    w.sched.put("/v1/jobs/k", job(50 * G, net=6), 502)
    network.behave(tunnels="")
    said = until(lambda: (lambda status, out: status == 201 and out)(*w.sched.ask("PUT", "/v1/jobs/k", job(60 * G, net=6))))
    assert sum(legs(said).values()) == said["network"][0]["bandwidth_bps"]
    # both must release it, and one of them is down for a while
    network.behave(tunnels="broken")
    w.sched.delete("/v1/jobs/j")
    w.sched.delete("/v1/jobs/k")
    until(lambda: len(network.calls("DELETE")) >= 3)
    network.behave(tunnels="")
    until(lambda: network.tunnels() == {})
    w.sched.put("/v1/jobs/j", job(140 * G, n=8), 201)
    stop()
    network.kill()


def test_a_tunnel_that_a_network_lost_is_made_again(w):
    net = Network()
    w.ctl.config.write_text(w.ctl.config.read_text() + "policy: {ask_networks: 200ms}\n")
    configure(w, net.yaml)
    w.sites()
    gws = w.gateways("gw-a1", "gw-b1", **{g: {"bandwidth": BIG} for g in ("gw-a1", "gw-b1")})
    stop = w.keep_alive(*gws)
    until(lambda: [t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"])
    before = w.sched.put("/v1/jobs/j1", job(20 * G), 201)
    (name,) = net.tunnels()
    made = net.tunnels()[name]
    until(lambda: len(net.calls(f"GET /v1/tunnels/{name}")) > 2)  # asked, and nothing else
    assert len(net.calls("PUT")) == 1
    # a network that fails says nothing of its tunnels
    net.behave(tunnels="broken")
    until(lambda: [e for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "net-1"])
    net.behave(tunnels="")
    assert len(net.calls("PUT")) == 1
    net.behave(forget=name)
    until(lambda: net.tunnels() == {name: made})
    until(lambda: w.op.get("/v1/jobs/j1") == before)
    texts = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "j1"]
    assert f"network net-1 has lost its tunnel {name}: it is made again" in texts, texts
    w.sched.delete("/v1/jobs/j1")
    until(lambda: net.tunnels() == {})
    stop()
