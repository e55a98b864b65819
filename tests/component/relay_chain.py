#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A chain of three real relays between two hosts, by routes; circles of relays, and strangers.

    ha -- r1 -- [wanem] -- r2 -- [wanem] -- r3 -- hb
           `---------------------------------'

The hosts are models (tests/component/rc/rc_veth.c) in this machine's namespaces; they connect by CM. r2 has no part in the hosts' LANs.
Prefixes that nobody has go in circles: 10.3/24 by all three relays, 10.4/24 from r2 back to r1, 10.5/24 from r3 back to r2.
Needs root. Argument: the build folder.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
from gw_drain import Load as RcLoad  # noqa: E402

PROXY, CLI, WANEM = (os.path.join(lab.BUILD, "bin", n) for n in ("roceway-proxy", "roceway", "wanem"))
RC = os.path.join(lab.BUILD, "tests", "rc_veth")
R = [lab.TAG + n for n in ("r1", "r2", "r3")]
MID = [lab.TAG + n for n in ("m12", "m23")]
QPS = 4
# Of each relay: its WAN interfaces with their addresses; tunnels: (name, local, remote, prefixes).
WAN = [{"wan0": "192.0.2.1", "wan1": "198.51.100.1"}, {"wan0": "192.0.2.2", "wan1": "203.0.113.2"}, {"wan0": "203.0.113.3", "wan1": "198.51.100.3"}]
A, B, ALL, BACK1, BACK2, NONE = ("10.%d.0.0/24" % n for n in (1, 2, 3, 4, 5, 99))
TUNNELS = [[("r2", "wan0", "192.0.2.2", [B, ALL, BACK1, BACK2]), ("r3", "wan1", "198.51.100.3", [NONE])],
           [("r1", "wan0", "192.0.2.1", [A, BACK1]), ("r3", "wan1", "203.0.113.3", [B, ALL, BACK2])],
           [("r2", "wan0", "203.0.113.2", [A, BACK2]), ("r1", "wan1", "198.51.100.1", [ALL])]]
LAN = ["10.1.0.1", "10.7.0.1", "10.2.0.1"]
# Ports at r1 and what they mean; r2 does not allow 7001.
PORTS = {7000: ("10.2.0.2", 7000), 7001: ("10.2.0.2", 7001), 7003: ("10.3.0.2", 7000), 7004: ("10.4.0.2", 7000), 7005: ("10.5.0.2", 7000)}


def config(folder, i, mode):
    ports = "".join(f'  - {{name: {w}, device: "net_af_packet{k + 1},iface={w}", role: wan, addresses: [{a}/24], mtu: 1500}}\n' for k, (w, a) in enumerate(WAN[i].items()))
    tunnels = "".join(f"  - {{name: {n}, port: {w}, local: {WAN[i][w]}, remote: {far}, prefixes: [{', '.join(p)}], security: none, rate: 1Gbps}}\n"
                      for n, w, far, p in TUNNELS[i])
    allowed = "7000-7000" if i == 1 else "1-65535"
    listen = "".join(f"    - {{name: p{p}, listen: {LAN[0]}, port: {p}, target: {t}, target_port: {q}}}\n" for p, (t, q) in PORTS.items())
    text = (f"gateway: {{name: {R[i]}, polling: adaptive, log_level: info, journal_dir: {folder}/j{i}, drain_timeout: 0s}}\n"
            f'eal: {{args: ["--in-memory", "--no-huge", "-m", "128"]}}\n'
            f'ports:\n  - {{name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [{LAN[i]}/24], mtu: 1500}}\n{ports}tunnels:\n{tunnels}'
            f"memory: {{buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}}\nconnections: {{ack_mode: {mode}}}\napi: {{socket: {folder}/{i}.sock}}\n"
            f"relay:\n  addresses: [{LAN[i]}]\n  allow: [{{from: 10.0.0.0/8, to: 10.0.0.0/8, ports: {allowed}}}]\n" + (f"  map:\n{listen}" if i == 0 else ""))
    path = os.path.join(folder, f"r{i}.yaml")
    with open(path, "w") as f:
        f.write(text)
    os.makedirs(f"{folder}/j{i}", mode=0o700, exist_ok=True)
    return path


class Relay:
    def __init__(self, folder, i, mode):
        self.i, self.mode, self.sock, self.log = i, mode, f"{folder}/{i}.sock", f"{folder}/r{i}.log"
        path = config(folder, i, mode)
        subprocess.run((PROXY, "--check", path), check=True, stdout=subprocess.DEVNULL)
        with open(self.log, "w") as log:
            self.proc = subprocess.Popen(("ip", "netns", "exec", R[i], PROXY, "--config", path), stderr=log, stdout=log)

    def __str__(self):
        return f"r{self.i + 1}: {self.text()[-1500:]}"

    def text(self):
        with open(self.log) as f:
            return f.read()

    def ask(self, *words):
        return json.loads(subprocess.run((CLI, "--socket", self.sock, "--json", *words), capture_output=True, text=True, check=True, timeout=lab.READY).stdout)

    def counter(self, name):
        return sum(c["value"] for c in self.ask("counters", "--all")["counters"] if c["name"] == name)

    def kill(self):
        self.proc.kill()
        self.proc.wait()


def until(what, true):
    end = time.monotonic() + lab.READY
    while not (out := true()):
        assert time.monotonic() < end, str(what)
        time.sleep(0.05)
    return out


def topology():
    for ns in (lab.HA, lab.HB, *R, *MID):
        lab.sh("ip", "netns", "add", ns)
        lab.sh("ip", "-n", ns, "link", "set", "lo", "up")
    for host, relay, addr in ((lab.HA, R[0], "10.1.0.2/24"), (lab.HB, R[2], "10.2.0.2/24")):
        lab.sh("ip", "-n", relay, "link", "add", "lan0", "type", "veth", "peer", "name", "eth0", "netns", host)
        lab.sh("ip", "-n", host, "link", "set", "eth0", "up")
        lab.no_offloads(host, "eth0")
        lab.sh("ip", "-n", host, "addr", "add", addr, "dev", "eth0")
    lab.sh("ip", "-n", R[1], "link", "add", "lan0", "type", "veth", "peer", "name", "nobody0")
    lab.sh("ip", "-n", R[1], "link", "set", "nobody0", "up")
    for (a, ia), (b, ib), mid in (((R[0], "wan0"), (R[1], "wan0"), MID[0]), ((R[1], "wan1"), (R[2], "wan0"), MID[1])):
        for gw, dev, end in ((a, ia, "wa"), (b, ib, "wb")):
            lab.sh("ip", "-n", gw, "link", "add", dev, "type", "veth", "peer", "name", end, "netns", mid)
            lab.sh("ip", "-n", mid, "link", "set", end, "up")
    lab.sh("ip", "-n", R[0], "link", "add", "wan1", "type", "veth", "peer", "name", "wan1", "netns", R[2])
    for gw in R:
        for dev in ("lan0", "wan0", "wan1"):
            lab.sh("ip", "-n", gw, "link", "set", dev, "up")


def cleanup():
    for ns in (lab.HA, lab.HB, *R, *MID):
        subprocess.run(("ip", "netns", "del", ns), stderr=subprocess.DEVNULL)


class Load(RcLoad):
    """Queue pairs through the relays: hosts know their own relay alone."""

    def read(self):
        line = self.proc.stdout.readline()
        assert line and line.split()[0] in ("done", "stall", "ok"), line or "it died"
        word, n = line.split()
        if word != "stall":
            self.done = int(n)
        return word

    def __init__(self, macs, port, qps=QPS):
        self.proc = subprocess.Popen((RC, "--relays", LAN[0], LAN[2], str(port), lab.HA, macs[0], lab.HB, macs[1], str(qps), "4000"),
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.done = self.stall = 0


def refused(macs, port):
    """The REJ reason that the host gets."""
    load = Load(macs, port, 1)
    out, _ = load.proc.communicate(timeout=lab.READY)
    assert load.proc.returncode == 3, (load.proc.returncode, out)
    return out.strip()


@contextlib.contextmanager
def chain(folder, mode):
    wans, relays = [], []
    try:
        for mid, delay in zip(MID, ("5ms", "3ms")):
            wans.append(subprocess.Popen(("ip", "netns", "exec", mid, WANEM, "--a", "wa", "--b", "wb", "--delay", delay, "--loss", "1%", "--control", f"{folder}/{mid}.sock"),
                                         stderr=subprocess.DEVNULL))
        relays = [Relay(folder, i, mode) for i in range(3)]
        for r in relays:
            until(r, lambda r=r: all(f"tunnel={t[0]} state=up" in r.text() for t in TUNNELS[r.i]))
        macs = []
        for host, addr in ((lab.HA, LAN[0]), (lab.HB, LAN[2])):
            assert lab.ping(host, addr)
            text = subprocess.run(("ip", "-j", "-n", host, "neigh", "show", addr), capture_output=True, text=True).stdout
            macs.append(json.loads(text)[0]["lladdr"])
        yield relays, macs
    finally:
        for p in (*relays, *wans):
            p.kill()
        for p in wans:
            p.wait()


@contextlib.contextmanager
def flowing(load):
    """The load stands still, and its hosts' timers run out, when nobody reads what it says."""
    enough, wrong = threading.Event(), []

    def read():
        try:
            while not enough.is_set():
                load.read()
        except AssertionError as e:  # a thread's own exception would only be printed
            wrong.append(str(e))
    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        enough.set()
        reader.join()
    assert not wrong, wrong


def check_segments(relay, ids):
    """`links --segments` while data flows: three segments each, what is measured is there."""
    def measured():
        links = {x["link"]: x["segments"] for x in relay.ask("links", "--segments")["links"]}
        assert ids <= set(links), (ids, links)
        return links if any(s[0]["out_bytes_per_second"] > 0 and s[1]["out_bytes_per_second"] > 0 for s in links.values()) else None
    links = until("rates of the segments", measured)
    for link in ids:
        host, middle, far = links[link]
        assert (host["segment"], middle["segment"], far["segment"]) == ("host", "tunnel", "far host"), links[link]
        assert host["state"] in ("paired", "idle") and middle["state"] == "up" and middle["tunnel"] == "r2", links[link]
        assert 0.005 < middle["rtt_seconds"] and middle["lost"] > 0, middle
    text = subprocess.run((CLI, "--socket", relay.sock, "links", "--segments"), capture_output=True, text=True, check=True, timeout=lab.READY).stdout
    assert text.count(" far host 10.") >= QPS and max(map(len, text.splitlines())) <= 100, text


def test_data_through_three_relays(relays, macs):
    """WRITE, READ and ATOMIC both ways, at 1 % loss on each segment: exact, once, in order; then nothing is left."""
    load = Load(macs, 7000)
    try:
        load.more(800)
        ids = [{x["link"] for x in r.ask("links")["links"] if x["state"] == "established"} for r in relays]
        assert len(ids[0]) == QPS and ids[0] == ids[2] and not ids[1], ids  # the middle one keeps none
        for link in ids[0]:
            assert f"link={link} event=onward" in relays[1].text()
        assert relays[1].counter("onward_packets") > 1000 and relays[0].counter("onward_packets") == relays[2].counter("onward_packets") == 0
        if relays[0].mode == "near":  # hosts wait for nobody: a busy machine ends no queue pair
            with flowing(load):
                for end in (relays[0], relays[2]):
                    check_segments(end, ids[0])
        load.finish()
    finally:
        load.kill()
    for r in relays:
        until(f"custody at r{r.i + 1}", lambda r=r: sum(f["custody_bytes"] for f in r.ask("flows")["flows"]) == 0)
        for name in ("drop_onward_loop", "drop_onward_acl", "drop_onward_hops", "drop_onward_malformed", "refused_relay_loop"):
            assert r.counter(name) == 0, (r.i, name)


def test_circles_are_refused(relays, macs):
    """The relay that sees that it is one says no, as a host without a listener does."""
    for port, at in ((7003, 0), (7004, 1), (7005, 2)):
        before = [r.counter("refused_relay_loop") for r in relays]
        assert refused(macs, port) == "rejected 8", port
        grown = [r.counter("refused_relay_loop") - b for r, b in zip(relays, before)]
        assert grown[at] >= 1 and sum(grown) == grown[at], (port, grown)
    assert sum(r.counter("drop_onward_loop") for r in relays) == 0


def test_the_relay_between_has_an_access_list(relays, macs):
    before = relays[1].counter("refused_acl")
    assert refused(macs, 7001) == "rejected 8"
    assert relays[1].counter("refused_acl") > before and relays[2].counter("refused_acl") == 0


def run(folder, mode, tests):
    """How many passed, and failed."""
    passed = failed = 0
    with chain(folder, mode) as (relays, macs):
        for name, test in tests:
            try:
                test(relays, macs)
                passed += 1
            except Exception:
                failed += 1
                traceback.print_exc()
                print("not ok", name, mode)
        for r in relays if failed else ():
            print(r)
            print([(c["name"], c["value"]) for c in r.ask("counters", "--all")["counters"]
                   if c["value"] and c["name"].startswith(("drop", "refused", "onward", "links", "relay"))])
    return passed, failed


def main():
    names = sys.argv[2:]
    tests = [(n, t) for n, t in globals().items() if n.startswith("test_") and (not names or any(w in n for w in names))]
    results = []
    cleanup()
    try:
        topology()
        for mode in ("near", "end"):
            with tempfile.TemporaryDirectory() as folder:
                results.append(run(folder, mode, tests if mode == "near" else [x for x in tests if "data" in x[0]]))
    finally:
        cleanup()
    passed, failed = (sum(r[i] for r in results) for i in (0, 1))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
