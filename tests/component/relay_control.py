#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real relays and a real controller, which makes their tunnel: registration, load, links, redirects.

    ha -- r1 ===== r2 -- hb          r1, r2 -- ctl

The hosts are models (tests/component/rc/rc_veth.c) in this machine's namespaces. Needs root. Argument: the build folder.
"""
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gw_smoke as lab  # noqa: E402
from ctlr.harness import CA, Controller  # noqa: E402
from relay_chain import CLI, PROXY, QPS, Load, until  # noqa: E402
import relay_chain  # noqa: E402

R, CTL = [lab.TAG + "c1", lab.TAG + "c2"], lab.TAG + "ctl"
LAN = ["10.1.0.1", "10.2.0.1"]


class Control(Controller):
    """In a namespace of its own."""

    def start(self):
        self.config.write_text(self.config.read_text().replace("address: \"127.0.0.1:", "address: \"0.0.0.0:"))
        self.proc = subprocess.Popen(("ip", "netns", "exec", CTL, self.program, "--config", self.config), stdin=subprocess.DEVNULL, stderr=self.log.open("a"))

        def listens():
            with lab.inside(CTL), contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
        until("the controller listens", listens)


class Api:
    def __init__(self, controller, context):
        self.client = controller.client(context)

    def get(self, path):
        with lab.inside(CTL):
            return self.client.get(path)

    def put(self, path, body):
        with lab.inside(CTL):
            return self.client.put(path, body, None)


class Relay:
    def __init__(self, folder, i, ca, port):
        self.i, self.sock, self.log = i, f"{folder}/{i}.sock", f"{folder}/r{i}.log"
        ca.run("issue", R[i], "gateway")
        os.makedirs(f"{folder}/j{i}", mode=0o700)
        self.config = f"{folder}/r{i}.yaml"
        listen = f"  map: [{{name: far, listen: {LAN[0]}, port: 7000, target: 10.2.0.2}}]\n" if i == 0 else ""
        with open(self.config, "w") as f:
            f.write(f"gateway: {{name: {R[i]}, polling: adaptive, log_level: info, journal_dir: {folder}/j{i}, drain_timeout: 0s}}\n"
                    f'eal: {{args: ["--in-memory", "--no-huge", "-m", "128"]}}\n'
                    f'ports:\n  - {{name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [{LAN[i]}/24], mtu: 1500}}\n'
                    f'  - {{name: wan, device: "net_af_packet1,iface=wan0", role: wan, addresses: [192.0.2.{i + 1}/24], mtu: 1500}}\n'
                    f"memory: {{buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}}\napi: {{socket: {self.sock}}}\n"
                    f'controller: {{urls: ["https://10.200.{i}.1:{port}"], ca: {ca.dir}/ca.pem, certificate: {ca.dir}/{R[i]}.pem, key: {ca.dir}/{R[i]}.key, '
                    f"site: {'ab'[i]}, bandwidth: 1Gbps, document: {folder}/j{i}/document.json}}\n"
                    f"relay:\n  addresses: [{LAN[i]}]\n  redirect_port: 4790\n  links_max: 77\n  allow: [{{from: 10.1.0.0/24, to: 10.2.0.0/24}}]\n{listen}")
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            self.proc = subprocess.Popen(("ip", "netns", "exec", R[self.i], PROXY, "--config", self.config), stderr=log, stdout=log)

    def __str__(self):
        with open(self.log) as f:
            return f"r{self.i + 1}: {f.read()[-2500:]}"

    def ask(self, *words):
        return json.loads(subprocess.run((CLI, "--socket", self.sock, "--json", *words), capture_output=True, text=True, check=True, timeout=60).stdout)

    def kill(self):
        self.proc.kill()
        self.proc.wait()


def topology():
    for ns in (lab.HA, lab.HB, *R, CTL):
        lab.sh("ip", "netns", "add", ns)
        lab.sh("ip", "-n", ns, "link", "set", "lo", "up")
    for i, host in enumerate((lab.HA, lab.HB)):
        lab.sh("ip", "-n", R[i], "link", "add", "lan0", "type", "veth", "peer", "name", "eth0", "netns", host)
        lab.sh("ip", "-n", host, "link", "set", "eth0", "up")
        lab.no_offloads(host, "eth0")
        lab.sh("ip", "-n", host, "addr", "add", f"10.{i + 1}.0.2/24", "dev", "eth0")
        lab.sh("ip", "-n", R[i], "link", "add", "ctl0", "type", "veth", "peer", "name", f"r{i}", "netns", CTL)
        for ns, dev, n in ((R[i], "ctl0", 2), (CTL, f"r{i}", 1)):
            lab.sh("ip", "-n", ns, "addr", "add", f"10.200.{i}.{n}/24", "dev", dev)
            lab.sh("ip", "-n", ns, "link", "set", dev, "up")
    lab.sh("ip", "-n", R[0], "link", "add", "wan0", "type", "veth", "peer", "name", "wan0", "netns", R[1])
    for ns in R:
        for dev in ("lan0", "wan0"):
            lab.sh("ip", "-n", ns, "link", "set", dev, "up")


def cleanup():
    for ns in (lab.HA, lab.HB, *R, CTL):
        subprocess.run(("ip", "netns", "del", ns), stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def world(folder):
    relays, ctl = [], None
    ca = CA(os.path.join(folder, "ca"))
    ca.issue("ctl", "controller", "127.0.0.1", "10.200.0.1", "10.200.1.1")
    try:
        ctl = Control(lab.BUILD, ca, folder, f"{{kind: sqlite, path: {folder}/c.db}}", lease="3s, security: none")
        op = Api(ctl, ca.issue("op", "operator"))
        op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/24"]})
        op.put("/v1/sites/b", {"prefixes": ["10.2.0.0/24"]})
        # what a gateway of these sites would get, and no relay takes
        op.put("/v1/tenants/red", {"vni": 5001, "sites": {s: {"prefixes": [{"prefix": f"172.16.{n}.0/24", "at": "vlan"}], "vlan": 101} for s, n in (("a", 1), ("b", 2))}})
        relays = [Relay(folder, i, ca, ctl.port) for i in range(2)]
        yield relays, op
    finally:
        for r in relays:
            r.kill()
        if ctl:
            ctl.kill()


def redirects(op, site="a"):
    return {r["prefix"]: [(x["gateway"], x["address"], x["port"], x["state"]) for x in r["relays"]] for r in op.get(f"/v1/redirects?site={site}")["redirects"]}


def listen_map(relay):
    """The map becomes what the file says, by a reload: entries that are the same keep their links, those by command go or are the file's."""
    def entries():
        return {e["name"]: (e["port"], e["target"], e["links"]) for e in relay.ask("map")["map"]}

    def written(more, was=("", "")):
        with open(relay.config) as f:
            text = f.read()
        with open(relay.config, "w") as f:
            f.write(text.replace(*was).replace("target: 10.2.0.2}", "target: 10.2.0.2}" + more))
        relay.ask("reload")
    far = 7000, "10.2.0.2", QPS
    entry = f"listen: {LAN[0]}, port: 7001, target: 10.2.0.3"
    extra = f", {{name: extra, {entry}}}"
    relay.ask("map", "add", "extra", f"listen={LAN[0]}", "port=7001", "target=10.2.0.3")
    assert entries() == {"far": far, "extra": (7001, "10.2.0.3", 0)}
    written(extra)
    assert entries() == {"far": far, "extra": (7001, "10.2.0.3", 0)}
    relay.ask("map", "add", "unwritten", f"listen={LAN[0]}", "port=7002", "target=10.2.0.3")
    written(f", {{name: other, {entry}}}", (extra, ""))  # its address and port have another name
    assert entries() == {"far": far, "other": (7001, "10.2.0.3", 0)}
    written("", (f", {{name: other, {entry}}}", ""))
    assert entries() == {"far": far}


def check(relays, op):
    # registration: what it is, and the document is one that it takes
    def registered():
        return [g for g in op.get("/v1/gateways")["gateways"] if g["state"] == "up" and "relay" in g["capabilities"]]
    until("both register", lambda: len(registered()) == 2)
    for i, g in enumerate(sorted(registered(), key=lambda g: g["site"])):
        assert g["capabilities"]["relay"] == {"addresses": [LAN[i]], "ask_port": 4795, "redirect_port": 4790, "links_max": 77}, g
    until("their documents are in force", lambda: all(g["generation"] == g["generation_running"] and "refusal" not in g for g in registered()))
    for r in relays:
        until(r, lambda r=r: [t["state"] for t in r.ask("tunnels")["tunnels"]] == ["up"])
    until("redirects", lambda: redirects(op) == {"10.2.0.0/24": [(R[0], LAN[0], 4795, "up")]})
    # links: the same numbers at both relays and at the controller
    macs = []
    for i, host in enumerate((lab.HA, lab.HB)):
        assert lab.ping(host, LAN[i])
        text = subprocess.run(("ip", "-j", "-n", host, "neigh", "show", LAN[i]), capture_output=True, text=True).stdout
        macs.append(json.loads(text)[0]["lladdr"])
    load = Load(macs, 7000)
    try:
        load.more(400)
        own = [{x["link"] for x in r.ask("links")["links"]} for r in relays]
        assert len(own[0]) == QPS and own[0] == own[1], own

        def whole():
            return [x for x in op.get("/v1/relay-links")["links"] if len(x["ends"]) == 2]
        links = until("the controller has both ends of each", lambda: len(whole()) == QPS and whole())
        assert {x["link"] for x in links} == own[0]
        for x in links:
            ends = {e["gateway"]: (e["host"], e["peer"], e["relay"]) for e in x["ends"]}
            assert ends == {R[0]: ("10.1.0.2", "10.2.0.2", LAN[0]), R[1]: ("10.2.0.2", "10.1.0.2", LAN[1])}, x
            assert x["tunnel"] == "/".join(R) and x["carrier"] == "native", x
        until("both say how many", lambda: all(g["load"].get("links") == QPS for g in registered()))
        load.finish()
    finally:
        load.kill()
    listen_map(relays[0])
    until("what was carried", lambda: all(e["bytes"] > 0 for x in op.get("/v1/relay-links")["links"] for e in x["ends"]))
    # the far relay is gone: hosts are told that theirs leads nowhere; then it is back
    relays[1].kill()
    until("lost", lambda: redirects(op) == {"10.2.0.0/24": [(R[0], LAN[0], 4795, "lost")]})
    for x in op.get("/v1/relay-links")["links"]:
        assert {e["gateway"]: e["state"] for e in x["ends"]} == {R[0]: "up", R[1]: "lost"}, x
    time.sleep(0.2)
    relays[1].start()
    until("its links are there again", lambda: len(whole()) == QPS and all(e["state"] == "up" for x in whole() for e in x["ends"]))
    assert {x["link"] for x in whole()} == own[0]
    until("back", lambda: redirects(op) == {"10.2.0.0/24": [(R[0], LAN[0], 4795, "up")]})


def main():
    relay_chain.LAN = [LAN[0], None, LAN[1]]  # for Load
    cleanup()
    with tempfile.TemporaryDirectory() as folder:
        try:
            topology()
            with world(folder) as (relays, op):
                try:
                    check(relays, op)
                except BaseException:
                    print(*relays, sep="\n")
                    raise
        finally:
            cleanup()
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
