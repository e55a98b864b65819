#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Offload without hardware: the real gateway with `offload` on ports whose driver lacks rte_flow,
and on a kernel interface that may or may not support tc filters. Every rule is shown with its place
and reason; tenants are added and removed nevertheless; nothing remains afterwards.
tests/e2e/test_offload.py tests a kernel with flower. Needs root. Argument: the build folder."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
NS = "rgo%d" % os.getpid()
READY = 20  # s

CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway: {{name: off, workers: 1, log_level: info, journal_dir: {folder}}}
eal: {{args: ["--in-memory", "--no-huge", "-m", "128"]}}
ports:
  - {{name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [10.1.0.1/24], {offload}}}
  - {{name: wan, device: "net_af_packet1,iface=wan0", role: wan, addresses: [192.0.2.1/24]}}
tunnels:
  - {{name: far, port: wan, local: 192.0.2.1, remote: 192.0.2.2, prefixes: [10.2.0.0/24], security: none, rate: 1Gbps}}
tenants:
  - name: red
    vni: 5001
    vlan: 101
    prefixes: [{{prefix: 10.7.0.0/24, at: vtep}}, {{prefix: 10.7.1.0/24, at: vlan}}, {{prefix: 10.8.0.0/24, at: far}}]
    vteps: [10.1.0.11]
    hosts:
      - {{address: 10.7.0.5, mac: "02:00:00:00:00:05", vtep: 10.1.0.11}}
      - {{address: 10.7.1.6, mac: "02:00:00:00:00:06"}}
    acl:
      - {{action: deny, source: 10.7.0.66/32, destination: 0.0.0.0/0}}
      - {{action: deny, source: 10.7.0.0/24, destination: 0.0.0.0/0, operations: [write]}}
memory: {{buffers: 4096, custody_per_connection: 2MiB, custody_total: 4MiB}}
api: {{socket: {sock}}}
"""


def inside(*words, **kw):
    return subprocess.run(("ip", "netns", "exec", NS, *words), capture_output=True, text=True, **kw)


class Gateway:
    def __init__(self, folder, offload):
        self.folder, self.sock, self.log = folder, folder + "/g.sock", folder + "/log"
        with open(folder + "/g.yaml", "w") as f:
            f.write(CONFIG.format(folder=folder, sock=self.sock, offload=offload))

    def __enter__(self):
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(("ip", "netns", "exec", NS, BUILD + "/bin/roceway-gateway", "--config", self.folder + "/g.yaml"),
                                          stdout=log, stderr=log)
        end = time.monotonic() + READY
        while "main: ready" not in self.text():
            assert self.child.poll() is None and time.monotonic() < end, self.text()
            time.sleep(0.05)
        return self

    def __exit__(self, *exc):
        self.child.send_signal(signal.SIGTERM)
        code = self.child.wait(20)
        assert exc[0] or code == 0, (code, self.text())

    def text(self):
        with open(self.log) as f:
            return f.read()

    def cli(self, *words):
        r = subprocess.run((BUILD + "/bin/roceway", "--socket", self.sock, *words), capture_output=True, text=True, timeout=20)
        assert r.returncode == 0, (words, r.stdout, r.stderr, self.text()[-800:])
        return r.stdout

    def rules(self):
        return json.loads(self.cli("offload", "--json"))


def changes(g, wrong):
    """Rules follow a change; `wrong`: values that a rule must not have."""
    before = g.rules()
    acl = [r for r in before["rules"] if r["what"] == "acl" and r["acl_rule"] == 0]
    assert acl and acl[0]["tenant"] == "red" and "src 10.7.0.66/32" in acl[0]["match"], before
    assert any(r["acl_rule"] == 1 and "opcode" in r["match"] for r in before["rules"]), before
    assert any(r["what"] == "unknown-vni" for r in before["rules"]), before
    assert not [r for r in before["rules"] if wrong(r)], before
    # between the two sides as workers do it: the ACL allows one direction
    forward = [r for r in before["rules"] if r["what"] == "forward"]
    assert sorted(bool(r["why"] and "denies" in r["why"]) for r in forward) == [False, True], forward
    assert ["10.7.1.6" in r["match"].split("src")[1].split()[0] for r in forward if "denies" not in (r["why"] or "")] == [True], forward
    g.cli("tenant", "add", "blue", "vni=5002", "prefix=10.7.0.0/24@vtep", "vtep=10.1.0.12")
    more = g.rules()
    assert [r for r in more["rules"] if r["tenant"] == "blue"] and not [r for r in more["rules"] if wrong(r)], more
    g.cli("tenant", "del", "red")
    less = g.rules()
    assert {r["tenant"] for r in less["rules"]} == {"blue", ""}, less
    assert "unknown-vni" in g.cli("offload")


def test_rte_flow(folder):
    """af_packet has no rte_flow: all rules are in software, with the driver's message."""
    with Gateway(folder, "offload: rte_flow") as g:
        port = g.rules()["ports"][0]
        assert (port["name"], port["backend"], port["hardware"], port["kernel"]) == ("lan", "rte_flow", 0, 0) and port["software"] > 5, port
        changes(g, lambda r: r["where"] != "software" or not r["why"])
        whys = {r["why"] for r in g.rules()["rules"]}
        assert any("not supported" in w or "not implemented" in w for w in whys), whys


def test_tc(folder):
    """In the kernel if possible, otherwise in software with the kernel's message; removed
    afterwards."""
    with Gateway(folder, "offload: tc, offload_device: lan0") as g:
        port = g.rules()["ports"][0]
        assert port["backend"] == "tc" and port["hardware"] == 0 and port["device"] == "lan0", port
        if port["kernel"] + port["software"] == 0:  # this kernel has no place for filters
            assert port["error"], port
            g.cli("tenant", "del", "red")
        else:
            changes(g, lambda r: r["where"] == "hardware" or (r["where"] == "software") != bool(r["why"]))
    left = inside("tc", "filter", "show", "dev", "lan0", "ingress").stdout
    assert "flower" not in left, left
    assert "rwy-vxlan" not in inside("ip", "link").stdout


def test_no_device(folder):
    """A device that does not exist: reported, and everything works without it."""
    with Gateway(folder, "offload: tc, offload_device: nothere0") as g:
        port = g.rules()["ports"][0]
        assert "nothere0" in port["error"], port
        assert "nothere0" in g.text()
        g.cli("tenant", "del", "red")


def main():
    if os.geteuid() != 0:
        print("skipped: needs root\n0 passed, 0 failed")
        return 0
    failed = passed = 0
    subprocess.run(("ip", "netns", "add", NS), check=True)
    try:
        for dev in "lan0", "wan0":
            inside("ip", "link", "add", dev, "type", "veth", "peer", "name", dev + "p", check=True)
            inside("ip", "link", "set", dev, "up", check=True)
            inside("ip", "link", "set", dev + "p", "up", check=True)
        for test in test_rte_flow, test_tc, test_no_device:
            folder = tempfile.mkdtemp(prefix="rgo")
            try:
                test(folder)
                passed += 1
            except Exception as e:  # any exception is a failure
                failed += 1
                print(f"FAIL {test.__name__}: {type(e).__name__}: {e}")
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        subprocess.run(("ip", "netns", "del", NS))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
