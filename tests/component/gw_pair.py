#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pair of real gateways at site A and a single one at site B, while queue pairs between two hosts run: each gateway of the pair dies,
is stopped and goes on as a zombie, and the cable between them is cut.

    ha [eth0] -- switch -- [lan0] g1 [wan0] -- switch -- [wan0] gb [lan0] -- [eth0] hb
                       \\-- [lan0] g2 [wan0] --/
                           g1 [pair0] -- cable -- [pair0] g2

The hosts are models, as in gw_drain.py, which compares every byte: no queue pair may end. A gateway that was replaced is started again by a
thread, as systemd would. Needs root. Argument: the build folder.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402

G2, SWITCHES = lab.TAG + "g2", drain.MID
PAIR = {"1": lab.GA, "2": G2}
REPLACED = 75  # exit status
CA = os.path.join(lab.ROOT, "tools", "ca", "roceway-ca")
WORKERS = 3
HOSTS = (2, 3, 9)  # last bytes of addresses: the pair of each belongs to another one of WORKERS
WAIT = "1s"  # of a gateway that starts
BEAT = "200ms"  # four of them are silence: beside other tests a worker may not run for 200 ms

PORTS = """  - name: cable
    device: "net_af_packet2,iface=pair0"
    role: wan
    addresses: [198.51.100.{n}/30]
    mtu: 1500
tunnels:
  - name: pair
    port: cable
    local: 198.51.100.{n}
    remote: 198.51.100.{m}
    security: none
    standby: true
    standby_beat: {beat}
    standby_wait: {wait}
"""
LINES = (("role: lan\n", "role: lan\n    mac: 02:52:57:aa:00:01\n"), ("role: wan\n", "role: wan\n    mac: 02:52:57:aa:00:02\n"))


def topology():
    """As gw_smoke's, with a switch at each side of the pair."""
    for ns in (lab.HA, lab.GA, G2, lab.GB, lab.HB, SWITCHES):
        lab.sh("ip", "netns", "add", ns)
        lab.sh("ip", "-n", ns, "link", "set", "lo", "up")
    for br in ("lan", "wan"):
        lab.sh("ip", "-n", SWITCHES, "link", "add", br, "type", "bridge")
        lab.sh("ip", "-n", SWITCHES, "link", "set", br, "up")
    for br, ns, dev, port in (("lan", lab.HA, "eth0", "la"), ("lan", lab.GA, "lan0", "l1"), ("lan", G2, "lan0", "l2"),
                              ("wan", lab.GA, "wan0", "w1"), ("wan", G2, "wan0", "w2"), ("wan", lab.GB, "wan0", "wb")):
        lab.sh("ip", "-n", ns, "link", "add", dev, "type", "veth", "peer", "name", port, "netns", SWITCHES)
        lab.sh("ip", "-n", SWITCHES, "link", "set", port, "master", br, "up")
        lab.sh("ip", "-n", ns, "link", "set", dev, "up")
    lab.sh("ip", "-n", lab.GB, "link", "add", "lan0", "type", "veth", "peer", "name", "eth0", "netns", lab.HB)
    lab.sh("ip", "-n", lab.GB, "link", "set", "lan0", "up")
    lab.sh("ip", "-n", lab.GA, "link", "add", "pair0", "type", "veth", "peer", "name", "pair0", "netns", G2)
    cable(True)
    for host, n, m in ((lab.HA, 1, 2), (lab.HB, 2, 1)):
        lab.sh("ip", "-n", host, "link", "set", "eth0", "up")
        lab.no_offloads(host, "eth0")
        for last in HOSTS:
            lab.sh("ip", "-n", host, "addr", "add", "10.%d.0.%d/24" % (n, last), "dev", "eth0")
        lab.sh("ip", "-n", host, "addr", "add", "fd00:%d::2/64" % n, "dev", "eth0", "nodad")
        lab.sh("ip", "-n", host, "route", "add", "10.%d.0.0/24" % m, "via", "10.%d.0.1" % n)


def cable(up):
    for gw in PAIR.values():
        lab.sh("ip", "-n", gw, "link", "set", "pair0", "up" if up else "down")


class Member(lab.Gateway):
    """One of the pair. While `kept`, a process that was replaced is started again, as the unit file has it."""

    def __init__(self, folder, n, beat, workers=1):
        super().__init__(folder, "a", workers=workers)
        self.netns, self.n = PAIR[n], n
        self.sock = os.path.join(folder, n + ".sock")
        with open(self.config) as f:
            text = f.read()
        for was, now in LINES:
            text = text.replace(was, now, 1)
        home = os.path.join(folder, n)
        os.mkdir(home, 0o700)
        text = (text.replace("tunnels:\n", PORTS.format(n=n, m=3 - int(n), beat=beat, wait=WAIT), 1)
                .replace("journal_dir: " + folder, "journal_dir: " + home).replace("a.sock", n + ".sock")
                .replace("memory:\n", "connections: {ack_mode: site}\nmemory:\n", 1))
        self.config, self.log = (os.path.join(folder, n + end) for end in (".yaml", ".log"))
        with open(self.config, "w") as f:
            f.write(text)
        self.ends, self.kept, self.said = [], True, ""
        self.keeper = threading.Thread(target=self._keep, daemon=True)

    def start(self):
        super().start()
        if not self.keeper.is_alive() and not self.keeper.ident:
            self.keeper.start()
        return self

    def _keep(self):
        while self.kept:
            time.sleep(0.05)
            code = self.proc.poll()
            if code == REPLACED and self.kept:
                self.ends.append(code)
                self.said += self.text()
                super().start()

    def info(self):
        """/v1/standby, {} while it does not answer."""
        r = subprocess.run((os.path.join(drain.BIN, "roceway"), "--socket", self.sock, "--json", "standby"), capture_output=True, text=True, timeout=60)
        return json.loads(r.stdout)["standby"] if not r.returncode else {}

    def until(self, *states):
        end = time.monotonic() + lab.READY
        while (state := self.info().get("state")) not in states:
            assert time.monotonic() < end, "gateway %s is %s, not %s" % (self.n, state, states)
            time.sleep(0.02)
        return self

    def end(self):
        self.kept = False
        if self.keeper.ident:
            self.keeper.join()
        if self.proc and self.proc.poll() is None:
            with contextlib.suppress(OSError):
                self.proc.send_signal(signal.SIGCONT)
        self.kill()


def roceway(member, *words):
    return subprocess.run((os.path.join(drain.BIN, "roceway"), "--socket", member.sock) + words, capture_output=True, text=True, timeout=60)


def counters(member):
    return {c["name"]: c["value"] for c in json.loads(roceway(member, "--json", "counters").stdout)["counters"]}


def with_keys(folder, *gateways):
    """Both of the pair have one certificate."""
    here = os.path.join(folder, "ca")
    for words in (("init",), ("issue", "gw-a", "gateway"), ("issue", "gw-b", "gateway")):
        subprocess.run((CA, here) + words, check=True)
    for g in gateways:
        own, peer = ("gw-b", "gw-a") if g.netns == lab.GB else ("gw-a", "gw-b")
        with open(g.config) as f:
            text = f.read()
        text = text.replace("security: none\n    standby", "peer_name: gw-a\n    standby").replace("security: none", "peer_name: " + peer)
        with open(g.config, "w") as f:
            f.write(text + "keys: {certificate: %s/%s.pem, key: %s/%s.key, ca: %s/ca.pem}\n" % (here, own, here, own, here))


@contextlib.contextmanager
def running(folder, beat=BEAT, keys=False, options=(), at_once=False, workers=1):
    """Gateway 1 is active, gateway 2 has everything. `at_once`: they start together, and any of them is active."""
    one, two = (Member(folder, n, beat, workers) for n in "12")
    b = lab.Gateway(folder, "b", workers=workers)
    load = None
    if keys:
        with_keys(folder, one, two, b)
    cable(True)
    try:
        b.start()
        if at_once:
            one.start(), two.start()
            one.until("paired", "ready")
            two.until("ready" if one.info()["serves"] else "paired")
        else:
            one.start().until("alone")
            b.wait("tunnel=far state=up")
            two.start().until("ready")
            one.until("paired")
        load = drain.Load(*options, hosts=HOSTS if workers > 1 else (2,))
        load.more()
        yield one, two, b, load
    finally:
        if load:
            load.kill()
        one.end()
        two.end()
        b.kill()


def finish(load, b, *members):
    """Everything arrived once; nobody lost a connection."""
    load.finish()
    # A gateway that was stopped says that its worker did not move. Two that start at once may both want DPDK's first telemetry socket.
    unexpected = re.compile(" error (?!dpdk: TELEMETRY|.*does not move)")
    for g in members:
        errors = [line for line in (g.text() + g.said).splitlines() if unexpected.search(line)]
        assert not errors, errors
    code, counts = b.stop()
    assert code == 0 and " error " not in b.text(), b.text()
    assert "conns_failed" not in counts and "conns_lost" not in counts, counts


def test_roles(folder):
    """Who serves, what the commands say, and that nothing of the standby leaves its ports."""
    with running(folder) as (one, two, b, load):
        load.more()
        assert one.info()["serves"] and one.info()["site"] and not two.info()["serves"], (one.info(), two.info())
        assert one.info()["flows"] > 0 and two.info()["flows"] > 0, (one.info(), two.info())
        for g in one, two:
            assert roceway(g, "health").returncode == 0, roceway(g, "health").stdout
            assert "standby" in roceway(g, "status").stdout
        before = counters(two)
        assert lab.ping(lab.HA, "10.1.0.1")  # the active one's kernel answers, once
        lab.all_once(lab.HA, "10.1.0.1", 5)
        now = counters(two)
        assert now.get("drop_standby_rx"), now
        for port in json.loads(roceway(two, "--json", "ports").stdout)["ports"]:
            assert (port["tx_packets"] > 0) == (port["name"] == "cable"), port
            assert port["mac"] == one_mac(one, port["name"]) or port["name"] == "cable", port
        assert "tx_announced" not in before and counters(one)["tx_announced"] > 0
        finish(load, b, one, two)
        for words in ("tunnel", "del", "pair"), ("tunnel", "set", "pair", "standby_beat=20ms"), ("tunnel", "set", "pair", "standby=false"):
            r = roceway(one, *words)
            assert r.returncode == 1 and ("only with a restart" in r.stderr or "pair" in r.stderr), r
        with open(one.config) as f:
            text = f.read()
        with open(one.config, "w") as f:
            f.write(text.replace("standby_beat: " + BEAT, "standby_beat: 60ms"))
        r = roceway(one, "reload")
        assert r.returncode == 1 and "expected `%s` for `standby_beat`, which changes only with a restart" % BEAT in r.stderr, r
        assert roceway(one, "tunnel", "set", "far", "rate=9Gbps").returncode == 0


def test_both_start(folder):
    """Power comes back: one of them serves. It asks the witness first, which needs keys."""
    for n, keys in enumerate((False, True)):
        inner = os.path.join(folder, str(n))
        os.mkdir(inner, 0o700)
        with running(inner, keys=keys, at_once=True) as (one, two, b, load):
            assert sum(g.info()["serves"] for g in (one, two)) == 1, (one.info(), two.info())
            load.more()
            finish(load, b, one, two)


def one_mac(member, name):
    return [p["mac"] for p in json.loads(roceway(member, "--json", "ports").stdout)["ports"] if p["name"] == name][0]


def test_active_dies(folder):
    with running(folder) as (one, two, b, load):
        one.kill()
        load.more()
        two.until("alone")
        one.start().until("ready")
        two.until("paired")
        load.more()
        two.kill()  # and back
        load.more()
        one.until("alone")
        finish(load, b, one)


def test_restarts(folder):
    """As an upgrade does it: the standby, then the active one, which drains first."""
    with running(folder) as (one, two, b, load):
        code, _ = two.stop()
        assert code == 0 and one.until("alone")
        two.start().until("ready")
        one.until("paired")
        code, _ = one.stop()
        assert code == 0 and "drain: done: the standby has taken over after" in one.text(), one.text()
        load.more()
        two.until("alone")
        one.start().until("ready")
        two.until("paired")
        load.more()
        finish(load, b, one, two)


def test_hand_over(folder):
    """By an operator, to and fro: nobody waits for silence."""
    with running(folder) as (one, two, b, load):
        for active, other in ((one, two), (two, one)):
            was = active.proc.pid
            r = roceway(active, "drain", "--hand-over")
            assert r.returncode == 0 and "the standby has taken over" in r.stdout and "starts again" in r.stdout, r
            other.until("alone", "copying", "pairing", "paired")
            load.more()
            other.until("paired")
            active.until("ready")
            assert active.proc.pid != was and active.ends == [REPLACED], active.ends
        load.more()
        assert one.text().count("drain: begins by=operator then=hand-over") + one.said.count("then=hand-over") == 1, one.said
        finish(load, b, one, two)


def test_hand_over_to_nobody(folder):
    """Refused while there is no standby; a standby that stands still does not get the queue pairs."""
    with running(folder) as (one, two, b, load):
        r = roceway(two, "drain", "--hand-over")
        assert r.returncode == 1 and "no standby has everything" in r.stderr, r
        r = roceway(one, "drain", "--hand-over", "--keep")
        assert r.returncode == 2 and "exclude each other" in r.stderr, r
        two.proc.send_signal(signal.SIGSTOP)
        r = roceway(one, "drain", "--hand-over")  # it has not noticed yet, or has
        assert r.returncode == 1 and ("did not take over" in r.stderr or "no standby has everything" in r.stderr), r
        one.until("alone")
        load.more()
        two.kill()
        r = roceway(one, "drain", "--hand-over")
        assert r.returncode == 1 and "no standby has everything" in r.stderr, r
        assert roceway(one, "drain", "--cancel").returncode == 1
        load.more()
        finish(load, b, one)


def keys_of(member):
    """The keys of the tunnel to gateway B, or what none would say."""
    r = roceway(member, "--json", "tunnels")
    tunnels = json.loads(r.stdout)["tunnels"] if not r.returncode else []
    return next((t["keys"] for t in tunnels if t["name"] != "pair"), {"standby": False, "exchanges": 0, "reserved": 0})


def until(what, condition):
    end = time.monotonic() + lab.READY
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_keys(folder):
    """The standby has keys before it takes over, and its own ones afterwards; so has the next one."""
    with running(folder, keys=True) as (one, two, b, load):
        until("keys for gateway 2", lambda: keys_of(one)["standby"])
        assert keys_of(two)["exchanges"] == 0 and keys_of(two)["reserved"] > 0, keys_of(two)
        one.kill()
        load.more()
        two.until("alone")
        until("an exchange of gateway 2", lambda: keys_of(two)["exchanges"] > 0)
        one.start().until("ready")
        two.until("paired")
        until("keys for gateway 1", lambda: keys_of(two)["standby"])
        two.proc.send_signal(signal.SIGSTOP)
        load.more()
        one.until("alone")
        two.proc.send_signal(signal.SIGCONT)
        two.until("ready")
        load.more()
        finish(load, b, one, two)


def test_keys_beforehand(folder):
    """It takes over with them when no exchange is possible."""
    with running(folder, keys=True) as (one, two, b, load):
        until("keys for gateway 2", lambda: keys_of(one)["standby"])
        lab.sh("ip", "-n", G2, "rule", "add", "pref", "1", "ipproto", "tcp", "prohibit")
        one.kill()
        two.until("alone")
        load.more()
        assert keys_of(two)["exchanges"] == 0 and keys_of(two)["state"] == "used", keys_of(two)
        lab.sh("ip", "-n", G2, "rule", "del", "pref", "1")
        until("an exchange of gateway 2", lambda: keys_of(two)["exchanges"] > 0)
        load.more()
        finish(load, b, two)


def test_zombie(folder):
    """The active gateway stops for longer than the other one waits, and goes on."""
    with running(folder) as (one, two, b, load):
        one.proc.send_signal(signal.SIGSTOP)
        two.until("alone")
        load.more()
        one.proc.send_signal(signal.SIGCONT)
        one.until("ready")  # as a new process
        assert one.ends == [REPLACED], one.ends
        two.until("paired")
        load.more()
        finish(load, b, one, two)


def test_cable(folder, keys=False):
    """The cable is cut: one of them goes on, by the witness. It comes back."""
    with running(folder, keys=keys) as (one, two, b, load):
        cable(False)
        load.more()
        end = time.monotonic() + lab.READY
        while not (serve := [g for g in (one, two) if g.info().get("state") == "alone"]):
            assert time.monotonic() < end, (one.info(), two.info())
            time.sleep(0.02)
        load.more()
        assert sum(bool(g.info().get("serves")) for g in (one, two)) == 1, (one.info(), two.info())
        cable(True)
        serve[0].until("paired")
        (two if serve[0] is one else one).until("ready")
        if keys:
            until("keys for the standby", lambda: keys_of(serve[0])["standby"])
        load.more()
        finish(load, b, one, two)


def test_cable_keys(folder):
    """The other one has keys, too, and asks in vain. It gets others then."""
    test_cable(folder, keys=True)


def test_standby_dies(folder):
    with running(folder) as (one, two, b, load):
        two.kill()
        load.more()
        one.until("alone")
        assert roceway(one, "health").returncode == 1 and "standby" in roceway(one, "health").stdout
        two.start().until("ready")
        one.until("paired")
        load.more()
        two.proc.send_signal(signal.SIGSTOP)
        one.until("alone")
        load.more()
        two.proc.send_signal(signal.SIGCONT)
        two.until("ready")
        one.until("paired")
        load.more()
        finish(load, b, one, two)


def accepted(member):
    """Requests, of each worker."""
    r = roceway(member, "--json", "counters", "--workers", "--all")
    return [c["value"] for c in json.loads(r.stdout)["counters"] if c["name"] == "accepted"]


def test_workers(folder, keys=False):
    """Several workers, of which each has queue pairs: they take over together."""
    with running(folder, keys=keys, workers=WORKERS) as (one, two, b, load):
        assert len(accepted(one)) == WORKERS and all(accepted(one)) and not any(accepted(two)), (accepted(one), accepted(two))
        if keys:
            until("keys for gateway 2", lambda: keys_of(one)["standby"])
        one.kill()
        load.more()
        two.until("alone")
        assert all(accepted(two)), accepted(two)
        one.start().until("ready")
        two.until("paired")
        two.proc.send_signal(signal.SIGSTOP)
        one.until("alone")
        load.more()
        two.proc.send_signal(signal.SIGCONT)
        two.until("ready")
        assert two.ends == [REPLACED], two.ends
        one.until("paired")
        r = roceway(one, "drain", "--hand-over")
        assert r.returncode == 0 and "the standby has taken over" in r.stdout, r
        load.more()
        two.until("paired")
        one.until("ready")
        finish(load, b, one, two)


def test_workers_keys(folder):
    test_workers(folder, keys=True)


def test_workers_cable(folder):
    """The cable is cut, and the standby dies: the same gateway serves with all its workers."""
    with running(folder, workers=WORKERS) as (one, two, b, load):
        cable(False)
        load.more()
        until("one that goes on", lambda: any(g.info().get("state") == "alone" for g in (one, two)))
        assert sum(bool(g.info().get("serves")) for g in (one, two)) == 1, (one.info(), two.info())
        active, other = (one, two) if one.info().get("serves") else (two, one)
        cable(True)
        active.until("paired")
        other.until("ready")
        other.kill()
        load.more()
        active.until("alone")
        other.start().until("ready")
        active.until("paired")
        load.more()
        finish(load, b, active)


def test_worker_numbers(folder):
    """Gateways with other numbers of workers are no pair: each says so, and there is no standby."""
    with running(folder, workers=WORKERS) as (one, two, b, load):
        two.kill()
        one.until("alone")
        with open(two.config) as f:
            text = f.read()
        with open(two.config, "w") as f:
            f.write(text.replace("workers: %d" % WORKERS, "workers: 2"))
        two.start().until("storing")
        until("its complaint", lambda: "the other gateway of the pair has another number of workers" in one.text())
        assert "workers=2 other=3" in two.text() and "workers=3 other=2" in one.text(), (one.text(), two.text())
        assert one.info()["state"] == "alone" and roceway(one, "health").returncode == 1, one.info()
        load.more()
        load.finish()


if __name__ == "__main__":
    CODE = drain.main(globals(), topology)
    subprocess.run(("ip", "netns", "del", G2), stderr=subprocess.DEVNULL)
    sys.exit(CODE)
