#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pair of real gateways at site A, a single one at site B, and a real controller, which makes their tunnel and tells who serves, while queue
pairs between two hosts run.

    ha [eth0] -- switch -- [lan0] g1 [wan0] -- switch -- [wan0] gb [lan0] -- [eth0] hb
                       \\-- [lan0] g2 [wan0] --/              g1, g2, gb [mg0] -- switch -- controller
                           g1 [pair0] -- cable -- [pair0] g2

As in gw_pair.py, which has the rest of the promise. Needs root. Argument: the build folder.
"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402
import gw_pair as pairs  # noqa: E402
from ctlr.harness import CA, Controller  # noqa: E402

CTL = "10.200.0.9"
MANAGED = {lab.GA: 1, pairs.G2: 2, lab.GB: 3}
NAME = lab.TAG + "a"
M1, M2 = "198.51.100.1", "198.51.100.2"  # without `controller.member`: their ends of the cable
CENTER = "controller: {{urls: [\"https://{ctl}:{port}\"], ca: {ca}/ca.pem, certificate: {ca}/{name}.pem, key: {ca}/{name}.key, site: {site}, bandwidth: 1Gbps, document: {document}{more}}}\n"


def topology():
    pairs.topology()
    lab.sh("ip", "-n", pairs.SWITCHES, "link", "add", "mg", "type", "bridge")
    lab.sh("ip", "-n", pairs.SWITCHES, "link", "set", "mg", "up")
    lab.sh("ip", "-n", pairs.SWITCHES, "addr", "add", CTL + "/24", "dev", "mg")
    for ns, n in MANAGED.items():
        lab.sh("ip", "-n", ns, "link", "add", "mg0", "type", "veth", "peer", "name", "m%d" % n, "netns", pairs.SWITCHES)
        lab.sh("ip", "-n", pairs.SWITCHES, "link", "set", "m%d" % n, "master", "mg", "up")
        lab.sh("ip", "-n", ns, "addr", "add", "10.200.0.%d/24" % n, "dev", "mg0")
        lab.sh("ip", "-n", ns, "link", "set", "mg0", "up")


def until(what, text):
    end = time.monotonic() + lab.READY
    while not (out := what()):
        assert time.monotonic() < end, text() if callable(text) else text
        time.sleep(0.05)
    return out


class Control(Controller):
    """In the switches' namespace."""

    def start(self):
        self.config.write_text(self.config.read_text().replace("address: \"127.0.0.1:", "address: \"0.0.0.0:"))
        self.proc = subprocess.Popen(("ip", "netns", "exec", pairs.SWITCHES, self.program, "--config", self.config), stdin=subprocess.DEVNULL, stderr=self.log.open("a"))

        def listens():
            with lab.inside(pairs.SWITCHES), contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
        until(listens, "the controller does not listen")


class Api:
    def __init__(self, controller, context):
        self.client = controller.client(context)

    def get(self, path):
        with lab.inside(pairs.SWITCHES):
            return self.client.get(path)

    def put(self, path, body):
        with lab.inside(pairs.SWITCHES):
            return self.client.put(path, body, None)

    def pair(self):
        return self.get("/v1/gateways/" + NAME).get("pair", {})

    def events(self, part):
        return [e for e in self.get("/v1/events?limit=1000")["events"] if e["name"] == NAME and part in e["text"]]

    def event(self, part):
        return until(lambda: self.events(part), lambda: "no event `%s`: %s" % (part, self.get("/v1/events?limit=1000")))[-1]

    def protected(self, serves):
        return until(lambda: (p := self.pair())["protected"] and p["serves"] == serves and p, lambda: self.pair())

    def sessions(self):
        """Of the pair: what they are, and the process that told of each."""
        all_ = self.get("/v1/sessions?limit=1000&gateway=" + NAME)["sessions"]
        return sorted((s["source"], s["destination"], s["source_qpn"], s["destination_qpn"], s.get("pair")) for s in all_), {s["id"].split(":")[1].split("-")[0] for s in all_}

    def tunnels(self):
        return [(t["name"], t["state"], t["carrier"]) for t in self.get("/v1/tunnels")["tunnels"]]


def managed(g, folder, ca, port, name, site, home, more=""):
    """Its tunnels but the cable come from the controller."""
    with open(g.config) as f:
        text = f.read()
    text = re.sub(r"  - name: far\n(    .*\n)*", "", text)
    text = re.sub(r"tunnels:\n(?!  -)", "", text)
    with open(g.config, "w") as f:
        f.write(text + CENTER.format(ctl=CTL, port=port, ca=ca.dir, name=name, site=site, document=os.path.join(home, "document.json"), more=more))


def generation(g):
    return json.loads(pairs.roceway(g, "--json", "controller").stdout)["generation"]


@contextlib.contextmanager
def running(folder, member=("", ""), keys=False, lease="3s"):
    ca = CA(os.path.join(folder, "ca"))
    ca.issue("ctl", "controller", "127.0.0.1", CTL)
    ctl = Control(lab.BUILD, ca, folder, "{kind: sqlite, path: %s/c.db}" % folder, lease=lease if keys else lease + ", security: none")
    op = Api(ctl, ca.issue("op", "operator"))
    for n, site in ((1, "a"), (2, "b")):
        op.put("/v1/sites/" + site, {"prefixes": ["10.%d.0.0/24" % n, "fd00:%d::/64" % n]})
        ca.issue(lab.TAG + site, "gateway")
    one, two, b = pairs.Member(folder, "1", pairs.BEAT), pairs.Member(folder, "2", pairs.BEAT), lab.Gateway(folder, "b")
    b.sock = os.path.join(folder, "b.sock")
    for g, more in ((one, member[0]), (two, member[1])):
        managed(g, folder, ca, ctl.port, NAME, "a", os.path.join(folder, g.n), more and ", member: " + more)
        if keys:
            with open(g.config) as f:
                text = f.read()
            with open(g.config, "w") as f:
                f.write(text.replace("security: none\n    standby", "peer_name: %s\n    standby" % NAME))
    managed(b, folder, ca, ctl.port, lab.TAG + "b", "b", folder)
    pairs.cable(True)
    try:
        b.start()
        one.start().until("alone")
        two.start().until("ready")
        one.until("paired")
        yield SimpleNamespace(one=one, two=two, b=b, ctl=ctl, op=op)
    finally:
        one.end()
        two.end()
        b.kill()
        ctl.kill()


def finish(load, *gateways):
    """Everything arrived once; no gateway says an error."""
    load.finish()
    for g in gateways:
        errors = [line for line in g.text().splitlines() if re.match(r"\S+ error ", line) and "does not move" not in line]
        assert not errors, errors


@contextlib.contextmanager
def loaded(w):
    load = drain.Load()
    try:
        load.more()
        yield load
    finally:
        load.kill()


def test_takeovers_are_told(folder):
    """One gateway for the controller: nobody's tunnel, document or session goes, and each takeover has an event that says why."""
    with running(folder) as w, loaded(w) as load:
        op, one, two, b = w.op, w.one, w.two, w.b
        p = op.protected(M1)
        assert [m["member"] for m in p["members"]] == [M1, M2] and [m["state"] for m in p["members"]] == ["paired", "ready"], p
        assert generation(one) == generation(two) > 0  # it has the tunnels before it takes over
        for g, m in ((one, M1), (two, M2)):
            assert "site a, member %s of the pair" % m in pairs.roceway(g, "controller").stdout, pairs.roceway(g, "controller").stdout
        gateway = op.get("/v1/gateways/" + NAME)
        assert gateway["wan"] == ["192.0.2.1:4793", "[fd00:9::1]:4793"] and len(gateway["lan"]) == 2, gateway  # and not the cable
        until(lambda: len(op.sessions()[0]) >= drain.QPS, lambda: op.sessions())
        was, told = op.sessions()
        tunnels, far, epoch = op.tunnels(), generation(b), p["epoch"]
        assert len(told) == 1 and tunnels == [("%sa/%sb" % (lab.TAG, lab.TAG), "up", "native")], tunnels

        one.kill()
        at = time.time()
        load.more()
        two.until("alone")
        p = until(lambda: (p := op.pair())["serves"] == M2 and p, lambda: op.pair())
        assert p["epoch"] == epoch + 1 and not p["protected"] and abs(p["since_ms"] / 1000 - at) < 10, p
        e = op.event("takeover")
        assert e["severity"] == "warning" and "%s serves instead of %s since " % (M2, M1) in e["text"] and "the one that served was silent" in e["text"], e
        assert "alone" in op.event("not protected (no-standby)")["text"]
        load.more()
        until(lambda: op.sessions()[1] and not op.sessions()[1] & told, lambda: op.sessions())  # told by the new process
        now, by_two = op.sessions()
        assert [s[:4] for s in now] == [s[:4] for s in was] and len(by_two) == 1, (was, now)
        until(lambda: op.pair()["members"][0]["lease"] == "lost", lambda: op.pair())
        assert op.get("/v1/gateways/" + NAME)["state"] == "up" and op.tunnels() == tunnels and generation(b) == far

        one.start().until("ready")
        two.until("paired")
        p = op.protected(M2)
        assert p["members"][1]["served"]["by"] == "silent" and not op.events("serve, in epoch"), p

        r = pairs.roceway(two, "drain", "--hand-over")  # a planned move back
        assert r.returncode == 0, r
        load.more()
        p = op.protected(M1)
        assert p["epoch"] == epoch + 2, p
        e = op.event("handed over")
        assert e["severity"] == "info" and "%s serves instead of %s" % (M1, M2) in e["text"], e
        assert len(op.events("takeover")) == len(op.events("handed over")) == 1

        two.kill()  # the standby
        load.more()
        one.until("alone")
        e = op.event("the standby is silent")
        assert e["severity"] == "warning" and "not protected (no-standby): %s is " % M1 in e["text"], e
        problem, = op.get("/v1/health")["pair_problems"]
        assert problem["gateway"] == NAME and problem["reason"] == "no-standby", problem
        two.start().until("ready")
        op.protected(M1)
        assert op.tunnels() == tunnels and generation(b) == far and not [e for e in op.get("/v1/events?limit=1000")["events"] if e["what"] == "gateway" and "lost" in e["text"]]
        finish(load, b, one, two)


def test_zombie_and_controller(folder):
    """A gateway that stood still contradicts nobody for long; a takeover while the controller is away is told afterwards."""
    with running(folder, lease="300s") as w, loaded(w) as load:
        op, one, two = w.op, w.one, w.two
        epoch = op.protected(M1)["epoch"]
        one.proc.send_signal(signal.SIGSTOP)
        two.until("alone")
        load.more()
        until(lambda: op.pair()["serves"] == M2, lambda: op.pair())  # at once, and not with the next lease, in 100 s
        one.proc.send_signal(signal.SIGCONT)
        one.until("ready")
        two.until("paired")
        assert op.protected(M2)["epoch"] == epoch + 1
        w.ctl.kill()
        two.kill()
        load.more()
        one.until("alone")
        w.ctl.start()
        op.client.close()
        e = op.event("takeover: %s serves instead of %s" % (M1, M2))
        assert "epoch %d after %d: the one that served was silent" % (epoch + 2, epoch + 1) in e["text"], e
        two.start().until("ready")
        assert op.protected(M1)["epoch"] == epoch + 2
        load.more()
        finish(load, w.b, one, two)


def test_keys_and_cable(folder):
    """With keys, which the standby has before it takes over; then the cable is cut, and the witness behind the controller's tunnel decides."""
    with running(folder, keys=True) as w, loaded(w) as load:
        op, one, two = w.op, w.one, w.two
        epoch = op.protected(M1)["epoch"]
        pairs.until("keys for gateway 2", lambda: pairs.keys_of(one)["standby"])
        assert pairs.keys_of(two)["exchanges"] == 0, pairs.keys_of(two)
        one.kill()
        load.more()
        two.until("alone")
        one.start().until("ready")
        two.until("paired")
        assert op.protected(M2)["epoch"] == epoch + 1
        pairs.cable(False)
        load.more()
        serve = until(lambda: [g for g in (one, two) if g.info().get("state") == "alone"], lambda: (one.info(), two.info()))
        load.more()
        assert sum(bool(g.info().get("serves")) for g in (one, two)) == 1, (one.info(), two.info())
        name = {"1": M1, "2": M2}[serve[0].n]
        p = until(lambda: (p := op.pair())["serves"] == name and p["reason"] == "no-standby" and p, lambda: op.pair())
        pairs.cable(True)
        serve[0].until("paired")
        assert op.protected(name)["epoch"] >= p["epoch"]
        assert not op.events("both say") and not op.events("past-epoch")
        load.more()
        finish(load, w.b, one, two)


def test_one_name_for_two(folder):
    """Both say that they are one member: found out, and hosts do not notice."""
    with running(folder, ("twin", "twin")) as w, loaded(w) as load:
        e = w.op.event("say that they are its member twin")
        assert e["severity"] == "error" and e["what"] == "refused", e
        p = w.op.pair()
        assert [m["member"] for m in p["members"]] == ["twin"] and not p["protected"], p
        away = until(lambda: [g for g in (w.one, w.two) if "each needs a name of its own" in g.text()], "nobody says why")
        assert len(away) >= 1
        load.more()
        load.finish()


if __name__ == "__main__":
    CODE = drain.main(globals(), topology)
    subprocess.run(("ip", "netns", "del", pairs.G2), stderr=subprocess.DEVNULL)
    sys.exit(CODE)
