#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs give up system calls (docs/security.md, "System calls"): a gateway, a relay and the control center, as the kernel tells of each thread;
and ports that need more of the kernel than others come up and go with it. tests/unit/test_base_sandbox.c tries the calls themselves.

The world is that of gw_smoke.py. Needs root. Arguments: the build folder, and a part of the names of the tests to run.
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402
from ctlr.harness import CA, Controller, temporary  # noqa: E402

RELAY = "relay:\n  addresses: [10.1.0.1]\n  allow:\n    - {from: 10.1.0.0/24, to: 10.2.0.0/24, ports: 1-65535}\n"
FILTER = "2"  # SECCOMP_MODE_FILTER


def threads(pid):
    """{name: (mode of seccomp, no new privileges)}; threads of one name that differ are told apart."""
    out = {}
    for t in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(FileNotFoundError), open("/proc/%d/task/%s/status" % (pid, t)) as f:
            said = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
            out[said["Name"] + " " + t] = (said["Seccomp"], said["NoNewPrivs"])
    return out


def all_filtered(pid):
    seen = threads(pid)
    assert len(seen) > 1 and set(seen.values()) == {(FILTER, "1")}, seen
    return {name.rsplit(" ", 1)[0] for name in seen}


def edit(a, change):
    with open(a.config) as f:
        text = f.read()
    with open(a.config, "w") as f:
        f.write(change(text))


@contextlib.contextmanager
def running(a):
    try:
        yield a.start().wait(" ready")
        code, _ = a.stop()
        assert code == 0, (code, a.text())
    finally:
        a.kill()


def roceway(folder, *words, want=0):
    r = subprocess.run((os.path.join(lab.BUILD, "bin", "roceway"), "--socket", os.path.join(folder, "a.sock")) + words, capture_output=True, text=True, timeout=60)
    assert r.returncode == want, r
    return r.stdout


def test_gateway(folder):
    """All threads: workers, those of DPDK, those that begin later."""
    a = lab.Gateway(folder, "a", workers=2)
    with running(a):
        before = all_filtered(a.proc.pid)
        assert {"rwy-keys", "rwy-carrier"} <= before and sum(n.startswith("rte-worker") or n.startswith("lcore-worker") for n in before) >= 1, before
        capture = subprocess.Popen((os.path.join(lab.BUILD, "bin", "roceway"), "--socket", os.path.join(folder, "a.sock"), "capture", "-w", "-"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + lab.READY
            while "rwy-capture" not in all_filtered(a.proc.pid):
                assert time.monotonic() < end and capture.poll() is None
                time.sleep(0.02)
        finally:
            capture.send_signal(signal.SIGINT)
            capture.wait()
        a.proc.send_signal(signal.SIGHUP)
        a.wait(" reload: config=")
        all_filtered(a.proc.pid)
        assert '"sandbox": true' in roceway(folder, "status", "--json") and "sandbox" not in roceway(folder, "status")


def test_off(folder):
    """It is said at the start and in the status; capabilities go as ever."""
    a = lab.Gateway(folder, "a")
    edit(a, lambda text: text.replace("gateway: {", "gateway: {sandbox: off, ", 1))
    with running(a):
        assert set(threads(a.proc.pid).values()) == {("0", "1")}, threads(a.proc.pid)
        assert re.search(r" warning main: sandbox: off: ", a.text())
        assert "sandbox        OFF" in roceway(folder, "status")


def test_relay(folder):
    a = lab.Gateway(folder, "a")
    edit(a, lambda text: text + RELAY)
    gateway, lab.Gateway.program = lab.Gateway.program, os.path.join(lab.BUILD, "bin", "roceway-proxy")
    try:
        with running(a):
            all_filtered(a.proc.pid)
            assert '"sandbox": true' in roceway(folder, "status", "--json")
    finally:
        lab.Gateway.program = gateway


def test_memif(folder):
    """Two processes share memory: the server's end is made when a client comes, in the sandbox."""
    sock = os.path.join(folder, "m.sock")
    a, b = lab.Gateway(folder, "a"), lab.Gateway(folder, "b")
    for g, role in (a, "server"), (b, "client"):
        edit(g, lambda text, role=role: text.replace('"net_af_packet0,iface=lan0"', '"net_memif0,socket-abstract=no,socket=%s,role=%s"' % (sock, role)))
    try:
        a.start().wait(" ready")
        b.start().wait(" ready")
        for g in a, b:
            g.wait(" port=lan up")
            all_filtered(g.proc.pid)
    finally:
        for g in a, b:
            code, _ = g.stop()
            assert code == 0, g.text()


def test_af_xdp(folder):
    """Its program is loaded before the gateway gives up bpf but for what takes it off the interface, at the end."""
    def xdp():
        out = subprocess.run(("ip", "-n", lab.GA, "link", "show", "dev", "lan0"), capture_output=True, text=True, check=True).stdout
        return "xdp" in out
    a = lab.Gateway(folder, "a")
    edit(a, lambda text: text.replace('"net_af_packet0,iface=lan0"', '"net_af_xdp0,iface=lan0"'))
    known = os.path.join(folder, "known")  # the driver forgets it, in the sandbox or not
    with open(known, "w") as f:
        f.write("leak:xsk_umem__create\n")
    os.environ["LSAN_OPTIONS"] = "suppressions=" + known
    a.start()
    del os.environ["LSAN_OPTIONS"]
    while " ready" not in a.text():
        if a.proc.poll() is not None:
            print("   this kernel has no AF_XDP: not tried")
            return
        time.sleep(0.05)
    try:
        all_filtered(a.proc.pid)
        assert xdp()
        assert a.stop()[0] == 0, a.text()
        assert not xdp(), "the program is left on the interface"
        assert "Function not implemented" not in a.text(), a.text()
    finally:
        a.kill()


def test_controller(folder):
    with temporary() as d:
        ca = CA(Path(d))
        ca.issue("ctl", "controller", "127.0.0.1")
        ctl = Controller(lab.BUILD, ca, d, "{kind: sqlite, path: %s/c.db}" % d)
        try:
            all_filtered(ctl.proc.pid)
            ctl.hup()
            all_filtered(ctl.proc.pid)
            ctl.stop()
        finally:
            ctl.kill()
        ctl.config.write_text(ctl.config.read_text().replace("log_level: info", "log_level: info, sandbox: off"))
        ctl.start()
        try:
            assert {mode for mode, _ in threads(ctl.proc.pid).values()} == {"0"} and "sandbox: off: " in ctl.log.read_text()
            ctl.stop()
        finally:
            ctl.kill()


def test_gateway_of_a_controller(folder):
    """What begins in the sandbox: the control center's thread with TLS, and the file of its last document."""
    document = os.path.join(folder, "document.json")
    with temporary() as d, lab.inside(lab.GA):
        ca = CA(Path(d))
        ca.issue("ctl", "controller", "127.0.0.1")
        ca.issue("gw", "gateway")
        op = ca.issue("op", "operator")
        ctl = Controller(lab.BUILD, ca, d, "{kind: sqlite, path: %s/c.db}" % d)
        try:
            ctl.client(op).ask("PUT", "/v1/sites/a", {"prefixes": ["10.1.0.0/16"]})
            a = lab.Gateway(folder, "a")
            edit(a, lambda text: re.sub('name: "[^"]*"', "name: gw", text, count=1) +
                 "controller: {urls: ['https://127.0.0.1:%d'], ca: %s/ca.pem, certificate: %s/gw.pem, key: %s/gw.key, site: a, document: %s}\n"
                 % (ctl.port, d, d, d, document))
            with running(a):
                a.wait("generation=")
                end = time.monotonic() + lab.READY
                while '"registered"' not in roceway(folder, "controller", "--json") or not os.path.exists(document):
                    assert time.monotonic() < end, a.text()
                    time.sleep(0.1)
                all_filtered(a.proc.pid)
            ctl.stop()
        finally:
            ctl.kill()


if __name__ == "__main__":
    sys.exit(drain.main(globals(), lab.topology))
