#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queue rules without hardware: the real gateway with two workers on ports whose driver has no rte_flow (af_packet), and
on a tap, whose driver makes rules by tc flower if the kernel has it. Each port says what its device has and why it lacks
the rest; a reload with another tunnel asks for more. test_gw_queues.c has a device with rte_flow, and gw_smoke.py
traffic by way of two workers without rules. Needs root. Argument: the build folder."""
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
NS = "rgq%d" % os.getpid()
READY = 20  # s

CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway: {{name: q, workers: 2, log_level: info, journal_dir: {folder}}}
eal: {{args: ["--in-memory", "--no-huge", "-m", "128"]}}
ports:
  - {{name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [10.1.0.1/24]}}
  - {{name: wan, device: "{device}", role: wan, addresses: [192.0.2.1/24, "fd00:9::1/64"]{more}}}
tunnels:
  - {{name: far, port: wan, local: 192.0.2.1, remote: 192.0.2.2, prefixes: [10.2.0.0/24], security: none, rate: 1Gbps}}
{tunnel}
memory: {{buffers: 4096, custody_per_connection: 2MiB, custody_total: 4MiB}}
api: {{socket: {sock}}}
"""
OTHER = '  - {name: more, port: wan, local: "fd00:9::1", remote: "fd00:9::2", prefixes: [10.3.0.0/24], security: none, rate: 1Gbps}'


def inside(*words, **kw):
    return subprocess.run(("ip", "netns", "exec", NS, *words), capture_output=True, text=True, **kw)


class Gateway:
    def __init__(self, folder, device, more=""):
        self.folder, self.sock, self.log = folder, folder + "/g.sock", folder + "/log"
        self.device, self.more = device, more
        self.write("")

    def write(self, tunnel):
        with open(self.folder + "/g.yaml", "w") as f:
            f.write(CONFIG.format(folder=self.folder, sock=self.sock, device=self.device, more=self.more, tunnel=tunnel))

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

    def said(self, what):
        """The lines at info level with these words."""
        return [line for line in self.text().splitlines() if " info offload: port=wan " in line and what in line]

    def cli(self, *words):
        r = subprocess.run((BUILD + "/bin/roceway", "--socket", self.sock, *words), capture_output=True, text=True, timeout=20)
        assert r.returncode == 0, (words, r.stdout, r.stderr, self.text()[-800:])
        return r.stdout

    def rules(self):
        lan, wan = json.loads(self.cli("ports", "--json"))["ports"]
        assert lan["queue_rules"] is None, lan
        return wan["queue_rules"]


def test_no_rte_flow(folder):
    with Gateway(folder, "net_af_packet1,iface=wan0,qpairs=2") as g:
        q = g.rules()
        assert (q["rules"], q["installed"]) == (2, 0) and q["why"], q
        assert len(g.said("has 0 of 2 queue rules: " + q["why"])) == 1, g.text()
        text = g.cli("ports")
        assert " 0/2 " in text and "port wan: workers hand datagrams to their owners: " + q["why"] in text, text
        g.write(OTHER)
        g.cli("reload")
        q = g.rules()
        assert (q["rules"], q["installed"]) == (4, 0), q
        assert len(g.said("has 0 of 4 queue rules: " + q["why"])) == 1, g.text()
        metrics = g.cli("metrics")
        for line in 'roceway_port_queue_rules{port="wan"} 4', 'roceway_port_queue_rules_installed{port="wan"} 0':
            assert line + "\n" in metrics, metrics
        g.write("")
        g.cli("reload")
        assert g.rules()["rules"] == 2


def test_one_queue(folder):
    with Gateway(folder, "net_af_packet1,iface=wan0") as g:
        assert g.rules() == {"rules": 0, "installed": 0, "why": "the device has fewer receive queues than there are workers"}
        assert len(g.said("has no queue rules")) == 1, g.text()


def test_off(folder):
    with Gateway(folder, "net_af_packet1,iface=wan0,qpairs=2", ", queue_rules: off") as g:
        assert g.rules() == {"rules": 0, "installed": 0, "why": "`queue_rules` is off"}


def test_tap(folder):
    """With flower the device has both; without, the reason is the driver's. Nothing remains."""
    with Gateway(folder, "net_tap0,iface=rgqtap") as g:
        q = g.rules()
        assert q["rules"] == 2 and q["installed"] in (0, 2) and (q["installed"] == 2) == (q["why"] == ""), q
        assert len(g.said("queue rules")) == 1, g.text()
        if q["installed"]:
            assert len(g.said("each worker gets its own datagrams: queue rules=2")) == 1, g.text()
            print("this kernel has flower: rules are installed")
    assert "rgqtap" not in inside("ip", "link").stdout


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
        for test in test_no_rte_flow, test_one_queue, test_off, test_tap:
            folder = tempfile.mkdtemp(prefix="rgq")
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
