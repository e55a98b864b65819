#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""RDMA where there is none: what a gateway says when a tunnel shall go by RDMA and no RDMA device has the tunnel's address.
tests/e2e/test_relay_rdma.py has RDMA itself. Needs root. Argument: the build folder."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
GATEWAY, CLI = (os.path.join(BUILD, "bin", p) for p in ("roceway-gateway", "roceway"))
CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway: {{name: "rdma{pid}", workers: 1, polling: adaptive, log_level: info, journal_dir: {folder}, drain_timeout: 0s}}
eal:
  args: ["--in-memory", "--no-huge", "-m", "128"]
ports:
  - {{name: lan, device: "net_null0", role: lan, addresses: [10.1.0.1/24], mtu: 1500}}
  - {{name: wan, device: "net_null1", role: wan, addresses: [192.0.2.1/24], mtu: 1500}}
tunnels:
  - name: far
    port: wan
    local: 192.0.2.1
    remote: 192.0.2.2
    prefixes: [10.2.0.0/24]
    tcp_local: 203.0.113.1
{keys}
memory: {{buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}}
api: {{socket: {folder}/gw.sock}}
"""
# A machine without any RDMA device, or one whose devices have other addresses.
REASONS = ("no RDMA: this machine has no RDMA device, or not the kernel module rdma_ucm", "no RDMA: no RDMA device has the address 203.0.113.1")


def config(folder, *keys):
    path = os.path.join(folder, "gw.yaml")
    with open(path, "w") as f:
        f.write(CONFIG.format(pid=os.getpid(), folder=folder, keys="".join(f"    {k}\n" for k in keys)))
    return path


def own_net(*words):
    """The command in a network namespace of its own: the gateway makes taps."""
    return ["unshare", "--net", "sh", "-c", 'ip link set lo up; ip addr add 203.0.113.1/32 dev lo; exec "$@"', "sh", *words]


def refused(folder, words, *keys):
    r = subprocess.run(own_net(GATEWAY, *words, config(folder, *keys)), capture_output=True, text=True, timeout=60)
    return r.returncode, r.stdout + r.stderr


def the_file_must_fit(folder):
    code, said = refused(folder, ["--check"], "security: none", "carrier: rdma")
    assert code and "expected an `rdma_port` with `carrier: rdma`, found `0`" in said, said
    code, said = refused(folder, ["--check"], "rdma_port: 4793", "rdma_buffers: 8", "security: none")
    assert code and "for `rdma_buffers`" in said, said
    path = config(folder, "rdma_port: 4793", "peer_name: far.example")
    with open(path, "a") as f:
        f.write("keys: {certificate: /a.pem, key: /a.key, ca: /ca.pem}\n")
    r = subprocess.run([GATEWAY, "--check", path], capture_output=True, text=True, timeout=60)
    assert not r.returncode, r  # with keys, which is the default
    code, said = refused(folder, ["--check"], "rdma_port: 4793", "peer_name: far.example")
    assert code and "expected `keys.certificate`, `keys.key` and `keys.ca` for the keys of tunnel `far`" in said, said
    code, said = refused(folder, ["--check"], "security: none", "rdma_port: 4793", "carrier: rdma")
    assert not code, said


def carrier_that_cannot_be(folder):
    """`carrier: rdma`: it does not start, and says why."""
    code, said = refused(folder, ["--config"], "security: none", "rdma_port: 4793", "carrier: rdma")
    assert code and any(f"tunnel=far {r}" in said for r in REASONS), said


def move_that_cannot_be(folder):
    """`rdma_port` alone: it starts with a warning; a move there is refused, and changes nothing. Without `rdma_port`, too."""
    for keys, reasons in ((["rdma_port: 4793"], REASONS), ([], ["tunnel far has `rdma_port: 0` in the configuration: no RDMA"])):
        log = open(os.path.join(folder, "log"), "w+")
        gw = subprocess.Popen(own_net(GATEWAY, "--config", config(folder, "security: none", *keys)), stdout=log, stderr=subprocess.STDOUT)
        try:
            ask = [CLI, "--socket", os.path.join(folder, "gw.sock")]
            end = time.monotonic() + 30
            while subprocess.run([*ask, "status"], capture_output=True).returncode:
                assert gw.poll() is None and time.monotonic() < end, open(log.name).read()
                time.sleep(0.1)
            r = subprocess.run([*ask, "tunnel", "set", "far", "carrier=rdma"], capture_output=True, text=True, timeout=20)
            assert r.returncode and any(x in r.stderr for x in reasons), r
            c = json.loads(subprocess.run([*ask, "tunnels", "--json"], capture_output=True, text=True).stdout)["tunnels"][0]["carrier"]
            assert (c["wanted"], c["sending"], c["rdma_connections"]) == ("native", "native", 0), c
            if keys:
                assert any(x in c["problem"] for x in reasons), c
                said = open(log.name).read()
                assert any(f"{x}" in said for x in reasons) and "it cannot move to RDMA" in said, said
        finally:
            gw.send_signal(signal.SIGTERM)
            gw.wait(20)
        assert gw.returncode == 0, (gw.returncode, open(log.name).read())


with tempfile.TemporaryDirectory() as folder:
    for test in (the_file_must_fit, carrier_that_cannot_be, move_that_cannot_be):
        test(folder)
        print("ok", test.__name__)
