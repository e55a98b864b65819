#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_explain.py BUILD: `roceway explain` with two controllers of one CA and separate stores: the
# second one answers what the first one does not know or does not answer. Sites, gateways, a job
# with tunnels in a network, sessions; then all errors.
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import cases  # noqa: E402
from ctlr.harness import CA, Controller, Gateway, Member, free_port, temporary, until  # noqa: E402

WIDTH = 100
TRIES = 10
V6 = "fd12:3456:789a:bcde:f012:3456:789a:bcd"
world = None


class World:
    def __init__(self, build, directory):
        self.program, self.dir = build / "bin/roceway", directory
        self.ca, self.foreign = CA(directory / "ca"), CA(directory / "foreign")
        self.ca.issue("ctl", "controller", "127.0.0.1")
        self.foreign.issue("op", "operator")
        self.context = {name: self.ca.issue(name, role) for name, role in [
            ("op", "operator"), ("sched", "scheduler"), ("net", "network"), ("gw-a1", "gateway"), ("gw-a2", "gateway"), ("gw-b1", "gateway"), ("gw-c", "gateway")]}
        (directory / "paths.json").write_text(json.dumps({"paths": [
            {"first": "a", "second": "b", "edge": "pe-1", "name": name, "bandwidth_bps": bps, "delay_us": 15_500, "jitter_us": 40}
            for name, bps in (("north", 6 * 10**9), ("south", 3 * 10**9))]}))
        self.controllers = [Controller(build, self.ca, directory, f"{{kind: sqlite, path: {directory}/{name}.db}}", name=name, lease="600s",
                                       extra=f"providers: [{{name: fibres, kind: static, file: {directory}/paths.json}}]\n") for name in ("one", "two")]
        self.fill(self.controllers[0])
        self.other = self.gateway(self.second("op"), self.controllers[1], "gw-a2", "a", 12)
        self.other.open(("10.1.9.1", "10.3.9.9"))

    def second(self, name):
        c = self.controllers[1].client(self.context[name])
        c.put("/v1/sites/a", {"prefixes": ["10.1.0.0/16"]}, 201)
        return c

    def gateway(self, operator, controller, name, site, n):
        g = Gateway(controller.client(self.context[name]), name, site, n)
        g.register()
        g.renew()
        return g

    def fill(self, controller):
        self.op = controller.client(self.context["op"])
        self.op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/16", "fd12:3456::/32"]}, 201)
        self.op.put("/v1/sites/b", {"prefixes": ["10.2.0.0/16"]}, 201)
        a1, a2, b1 = (self.gateway(self.op, controller, *g) for g in (("gw-a1", "a", 11), ("gw-a2", "a", 12), ("gw-b1", "b", 21)))
        until(lambda: len([t for t in self.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 2)
        self.a1 = a1
        self.measured()
        self.op.post("/v1/jobs", {"name": "train", "granularity": "qp", "pairs": [
            {"source": "10.1.0.1", "destination": "10.2.0.1", "source_qpn": 700 + i, "destination_qpn": 800 + i, "bandwidth_bps": 4 * 10**9, "delay_us": 20_000}
            for i in range(2)]}, 201)
        self.op.post("/v1/jobs", {"name": "weights", "pairs": [{"source": "10.1.0.30", "destination": "10.2.0.30", "bytes": 10**9}], "within_ms": 3600_000,
                                  "priority": 2, "dscp": 46}, 201)
        self.op.post("/v1/jobs", {"name": "bursts", "pairs": [{"source": "10.1.0.31", "destination": "10.2.0.31", "bytes": 10**5, "period_us": 20_000}], "carrier": "native"}, 201)
        self.op.post("/v1/jobs", {"name": "huge", "pairs": [{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 10**12}]}, 409)
        opened = [{"id": f"s{i}", "source": "10.1.0.1", "destination": "10.2.0.1", "source_qpn": 700 + i, "destination_qpn": 800 + i} for i in range(2)]
        opened += [{"id": "plain", "source": "10.1.0.5", "destination": "10.2.0.5"}, {"id": "six", "source": V6, "destination": "10.2.0.6", "tunnel": "gw-b1"},
                   {"id": "nowhere", "source": "10.1.0.7", "destination": "10.99.0.1"}, {"id": "also", "vni": 7, "source": "10.1.0.5", "destination": "10.2.0.5"}]
        a1.client.post(a1.path("/sessions"), {"sessions": [{"event": "opened", **s} for s in opened]})
        b1.open(("10.2.0.8", "10.1.0.8"))

    def measured(self):
        """A report of the path: the controller believes it for a minute, which is not long on a busy machine."""
        self.a1.client.post(self.a1.path("/links"), {"lease": self.a1.lease, "links": [
            {"peer": "gw-b1", "carrier": c, "rtt_us": 31_400, "rtt_min_us": 31_000, "jitter_us": 300, "loss_ppm": loss, "burst": 8, "bandwidth_bps": 9_400_000_000, "age_ms": 0}
            for c, loss in (("native", 14_000), ("tcp", 16_000))]})

    def explanation(self, session):
        return self.op.get(f"/v1/sessions/{session}/explain")


def url(*indexes):
    return ",".join(f"https://127.0.0.1:{world.controllers[i].port}" for i in indexes)


def run(line, want=0, said=(), command="explain", **env):
    """stdout of `roceway explain LINE`, or of another command, run as the operator; each of `said` is in stderr."""
    d = world.ca.dir
    e = {"ROCEWAY_CONTROLLER": url(0, 1), "ROCEWAY_CA": d / "ca.pem", "ROCEWAY_CERTIFICATE": d / "op.pem", "ROCEWAY_KEY": d / "op.key", **env}
    keep = {k: v for k, v in os.environ.items() if not k.startswith("ROCEWAY_")}
    env = {**keep, **{k: str(v) for k, v in e.items() if v is not None}}
    for _ in range(TRIES):
        r = subprocess.run([world.program, command, *line.split()], capture_output=True, text=True, timeout=300, env=env)
        # It gives a connection 3 s, handshake included: a busy machine may need more.
        if not any(re.search(rf"cannot reach the controller at {url(i)}: .*time(d )?out", r.stderr, re.I) for i in (0, 1)):
            break
    assert r.returncode == want, (line, r.returncode, r.stdout, r.stderr)
    if want == 0 or said == ():
        assert (r.stderr == "") == (want == 0), (line, r.stderr)
    for text in said:
        assert text in r.stderr, (line, text, r.stderr)
    for text in r.stdout.splitlines() if "--json" not in line else ():
        assert len(text) <= WIDTH and text == text.rstrip(), (line, text)
    return r.stdout


def told(text, *words):
    flat = " ".join(text.split())
    for w in words:
        assert w in flat, (w, text)


# --- links of relays --------------------------------------------------------------------------------------------------------------------


def test_links_of_relays_of_all_replicas():
    """Each replica knows what its own relays report; one line for each end."""
    def report(g, n, source, destination, qpn, relay, tunnel):
        g.client.post(g.path("/sessions"), {"sessions": [{"id": n, "event": "opened", "source": source, "destination": destination, "source_qpn": qpn,
                                                         "link": "00000000000000aa", "relay": relay, "bytes": 2**20, **tunnel}]})
    report(world.a1, "link", "10.1.0.77", "10.2.0.77", 4711, "10.1.0.254", {"tunnel": "gw-b1"})
    report(world.other, "link", "10.2.0.77", "10.1.0.77", 815, "10.2.0.254", {})
    text = run("--network", command="links")
    told(text, "00000000000000aa 10.1.0.77 4711 10.1.0.254 gw-a1 1 MiB gw-a1/gw-b1 31.4 ms 1.40 %", "00000000000000aa 10.2.0.77 815 10.2.0.254 gw-a2 1 MiB gw-a1/gw-b1 31.4 ms 1.40 %")
    one, = json.loads(run("--network --json", command="links"))["links"]
    assert {e["gateway"] for e in one["ends"]} == {"gw-a1", "gw-a2"} and one["tunnel"] == "gw-a1/gw-b1", one
    assert len(json.loads(run("--network --json", command="links", ROCEWAY_CONTROLLER=url(1)))["links"][0]["ends"]) == 1
    told(run("--network --detail", command="links"), "00000000000000aa")
    for g in (world.a1, world.other):
        g.client.post(g.path("/sessions"), {"sessions": [{"id": "link", "event": "closed"}]})
    assert json.loads(run("--network --json", command="links"))["links"] == []
    run("--network", want=1, said=["cannot reach the controller"], command="links", ROCEWAY_CONTROLLER=f"https://127.0.0.1:{free_port()}")


# --- sessions ---------------------------------------------------------------------------------------------------------------------------


def test_a_session_with_all_that_led_to_its_decision():
    text = run("gw-a1:plain")
    x = world.explanation("gw-a1:plain")
    told(text, "10.1.0.5 to 10.2.0.5", f"native by {x['session']['pair']}", x["reason"], f"{x['pair_rule']}: {x['pair_reason']}", "demand not known")
    for a in x["alternatives"]:
        line, = [row for row in text.splitlines() if row.startswith(a["carrier"] + " ")]
        assert (" yes " in line) == a["chosen"], line
    told(text, "quic - no", "weight took another one" if len([p for p in x["pairs"] if p["up"]]) > 1 else "")
    for p in x["pairs"]:
        line, = [row for row in text.splitlines() if row.startswith(p["pair"] + " ")]
        assert (" yes " in line) == p["chosen"] and " up " in line, line


def test_inputs_have_value_source_and_age():
    world.measured()
    text = run(f"{V6} 10.2.0.6")  # it was under way on this pair, whose path is measured
    told(text, "decision native by gw-a1/gw-b1", "under-way: it was on this pair", "no the session was on another one", "loss native 1.40 % gw-a1",
         "loss tcp quic rdma 1.60 % gw-a1", "round trip native tcp quic rdma 31.4 ms gw-a1", "bandwidth of gw-b1 tcp 5 Gbps gw-b1 -", "CNPs of gw-a1 native yes")
    ages = [row.split()[-2:] for row in text.splitlines() if row.startswith("round trip")]
    assert len(ages) == 1 and ages[0][1] in ("ms", "us", "s"), ages


def test_a_session_of_a_job_names_it_and_its_network():
    text = run("10.1.0.1 10.2.0.1 701")
    told(text, "session gw-a1:s1", "QPNs 701 and 801", "job: the plan of its job names", "In the network, for job train", "train~a~b", "fibres", "pe-1", "15.5 ms")
    assert run("10.1.0.1 10.2.0.1 0x321").splitlines()[0] == text.splitlines()[0]  # the other end's QPN


def test_a_job_of_bytes_tells_until_when():
    said = world.op.get("/v1/jobs/weights")
    ends = datetime.fromtimestamp(said["deadline_ms"] // 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
    told(run("--job weights"), "priority 2", "DSCP 46", f"ends {ends}", "10.1.0.30 10.2.0.30 954 MiB gw-")
    told(run("--job bursts"), "only by native", "ends when withdrawn", "97.7 KiB / 20 ms gw-")


def test_no_decision_is_explained_too():
    told(run("gw-a1:nowhere"), "decision none", "because an address is at no known site")


def test_json_is_the_apis():
    world.measured()
    for line, page in (("gw-a1:plain", "/v1/sessions/gw-a1:plain/explain"), ("10.1.0.1 10.2.0.1 700", "/v1/sessions/gw-a1:s0/explain"), ("--job train", "/v1/jobs/train")):
        ours, theirs = json.loads(run(line + " --json")), world.op.get(page)
        for x in ours, theirs:  # these counters continue
            x.get("session", {}).pop("age_ms", None)
            x.pop("inputs", None)
            x.get("decision", {}).pop("text", None)
        assert ours == theirs, (line, ours, theirs)
    x = json.loads(run("gw-a1:six --json"))
    assert x["inputs"]["path"]["native"]["loss_ppm"]["source"] == "gw-a1" and x["pair_rule"] == "under-way" and "decided_reason" in x["decision"], x


def test_the_list_is_of_all_controllers():
    every = json.loads(run("--json"))
    ids = [s["id"] for s in every["sessions"]]
    assert len(ids) == len(set(ids)) == 8 and "gw-a2:10.1.9.1-10.3.9.9" in ids and "gw-a1:six" in ids and not every["more"], ids
    text = run("")
    told(text, "gw-a1:plain", "8 sessions", "700 800")
    told(run("--limit 3"), "3 sessions; there are more")
    assert len(json.loads(run("--limit all --json"))["sessions"]) == 8
    assert [s["id"] for s in json.loads(run("--vni 7 --json"))["sessions"]] == ["gw-a1:also"]
    assert len(json.loads(run("10.1.0.5 --json"))["sessions"]) == 2
    told(run("fd12:3456:789a:bcde:f012:3456:789a:0bcd"), "1 session")
    run("10.1.77.77", 1, ["no session of 10.1.77.77"])


def test_of_several_that_match_none_is_guessed():
    told(run("10.1.0.1 10.2.0.1", 1, ["2 sessions match"]), "gw-a1:s0", "gw-a1:s1")
    assert run("10.1.0.5 10.2.0.5 --json", 1, ["2 sessions match"]) == ""
    told(run("10.1.0.5 10.2.0.5 --vni 7"), "session gw-a1:also", "VNI 7")
    told(run("10.1.0.8 10.2.0.8"), "session gw-b1:10.2.0.8-10.1.0.8")  # only the other direction is known


# --- jobs -------------------------------------------------------------------------------------------------------------------------------


def test_a_job_with_its_plan():
    text = run("--job train")
    told(text, "state planned", "spread by qp", "701 801 4 Gbps 20 ms", "train~a~b", "one path" if world.op.get("/v1/jobs/train")["network"][0]["shape"] == "same-path"
         else "several paths at an edge", "fibres pe-1 north", "info planned")
    run("--job nobody", 1, ["there is no job nobody"])
    run("--job huge", 1, ["there is no job huge"])
    run("--job train gw-a1:s0", 2, ["one word too many"])


# --- gateways ---------------------------------------------------------------------------------------------------------------------------


def test_a_pair_of_gateways():
    """Which one serves since when and why, and what the other one is."""
    one, two = (Member(world.controllers[0].client(world.context["gw-c"]), "gw-c", "c", 31, m) for m in ("rack-1", "rack-2"))
    for m in one, two:
        m.register()
    told(run("--gateway gw-c"), "gateway gw-c", "pair not protected", "serves nobody says so", "epoch none", "rack-1 up - - -")
    one.say("paired", "ready", 3, served="granted")
    two.say("ready", "paired", 3)
    until(lambda: world.op.get("/v1/gateways/gw-c")["pair"]["protected"])
    told(run("--gateway gw-c"), "pair protected because rack-1 serves, and rack-2 has everything", "serves rack-1", "epoch 3, since 20", "rack-2 up ready paired 3")
    two.say("alone", None, 4, served="silent", lost="stuck")
    until(lambda: world.op.get("/v1/gateways/gw-c")["pair"]["serves"] == "rack-2")
    told(run("--gateway gw-c"), "pair not protected because rack-2 is alone: a copy could not be made, or was refused; rack-1 is silent", "serves rack-2",
         "warning takeover: rack-2 serves instead of rack-1", "epoch 4 after 3: the one that served was silent")
    assert json.loads(run("--gateway gw-c --json"))["pair"]["epoch"] == 4
    text = run("--gateway gw-a1")
    told(text, "gateway gw-a1", "site a", "state up", "is the present one")
    assert "pair" not in text and "MEMBER" not in text, text
    run("--gateway nobody", 1, ["there is no gateway nobody"])
    run("--gateway gw-c --job train", 2, ["exclude each other"])
    run("--gateway gw-c gw-a1:s0", 2, ["one word too many for --gateway"])


# --- errors ---------------------------------------------------------------------------------------


def test_what_the_first_does_not_know_or_answer_the_second_does():
    told(run("gw-a2:10.1.9.1-10.3.9.9"), "session gw-a2:10.1.9.1-10.3.9.9", "decision none")
    away = f"https://127.0.0.1:{free_port()}"
    told(run(f"gw-a1:plain --controller {away},{url(0)}"), "session gw-a1:plain")
    run(f"gw-a1:none --controller {away},{url(0)}", 1, ["there is no session gw-a1:none", f"cannot reach the controller at {away}: "])
    run(f"gw-a1:plain --controller {away}/", 1, [f"cannot reach the controller at {away}: "])
    run("gw-a1:none", 1, ["there is no session gw-a1:none"])
    run("gw-a1:x%2f/../y", 1, ["there is no session"])


def test_who_may_not_ask():
    d, f = world.ca.dir, world.foreign.dir
    run("", 1, ["refuses the certificate", "net.pem", "operator or a scheduler"], ROCEWAY_CERTIFICATE=d / "net.pem", ROCEWAY_KEY=d / "net.key")
    run("gw-a1:plain", 1, ["refuses the certificate", "op.pem"], ROCEWAY_CERTIFICATE=f / "op.pem", ROCEWAY_KEY=f / "op.key")
    told(run(f"gw-a1:plain --certificate {d}/sched.pem --key={d}/sched.key", ROCEWAY_CERTIFICATE=None, ROCEWAY_KEY="/none"), "session gw-a1:plain")


def test_files_that_are_wrong():
    d, f = world.ca.dir, world.foreign.dir
    run("gw-a1:plain", 1, [f"is not trusted by the CA in {f}/ca.pem"], ROCEWAY_CA=f / "ca.pem")
    run("gw-a1:plain", 1, ["cannot read /none/ca.pem"], ROCEWAY_CA="/none/ca.pem")
    run("gw-a1:plain", 1, [f"{d}/sched.key"], ROCEWAY_KEY=d / "sched.key")
    for name in "CONTROLLER", "CA", "CERTIFICATE", "KEY":
        run("gw-a1:plain", 2, [f"--{name.lower()} or ROCEWAY_{name} tells"], **{f"ROCEWAY_{name}": None})


def test_wrong_usage():
    for line, text in (("--controller http://x", "expected https://NAME:PORT"), ("--controller ,", "expected https://"), ("10.1.0.1 10.2", "expected an address, found 10.2"),
                       ("10.1.0.1 10.2.0.1 x", "QPN: expected a number"), ("1 2 3 4", "one word too many"), ("--vni 16777216", "--vni: expected a number"),
                       ("--limit 0", "--limit"), ("--contoller x", "did you mean --controller?")):
        run(line, 2, [text])
    told(run("-h"), "SESSION is GATEWAY:ID", "$ROCEWAY_CONTROLLER", "$ROCEWAY_KEY")


def main():
    global world
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    with temporary() as d:
        world = World(build, Path(d))
        rc = cases.run(globals())
        for c in world.controllers:
            c.stop()
    return rc


if __name__ == "__main__":
    sys.exit(main())
