#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real gateways that are stopped and started again while queue pairs between two hosts run.

    ha [eth0] -- [lan0] ga [wan0] -- [wa] wanem [wb] -- [wan0] gb [lan0] -- [eth0] hb

The hosts are models (tests/component/rc/rc_veth.c) in this machine's namespaces. Needs root. Argument: the build
folder.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402

MID = lab.TAG + "m"
BIN = os.path.join(lab.BUILD, "bin")
RC = os.path.join(lab.BUILD, "tests", "rc_veth")
QPS = 8


def topology():
    lab.topology()
    lab.sh("ip", "-n", lab.GA, "link", "del", "wan0")
    lab.sh("ip", "netns", "add", MID)
    for gw, mid in ((lab.GA, "wa"), (lab.GB, "wb")):
        lab.sh("ip", "-n", gw, "link", "add", "wan0", "type", "veth", "peer", "name", mid, "netns", MID)
        lab.sh("ip", "-n", gw, "link", "set", "wan0", "up")
        lab.sh("ip", "-n", MID, "link", "set", mid, "up")


class Wan:
    """20 ms round trip, some loss."""

    def __init__(self, folder):
        self.sock = os.path.join(folder, "wanem.sock")
        self.proc = subprocess.Popen(("ip", "netns", "exec", MID, os.path.join(BIN, "wanem"), "--a", "wa", "--b", "wb", "--delay", "10ms",
                                      "--loss", "0.5%", "--control", self.sock), stderr=subprocess.DEVNULL)

    def outage(self, time_):
        end = time.monotonic() + lab.READY
        while subprocess.run((os.path.join(BIN, "wanem"), "ctl", self.sock, "outage", time_), capture_output=True).returncode:
            assert time.monotonic() < end, "wanem does not answer"
            time.sleep(0.02)

    def stop(self):
        self.proc.terminate()
        self.proc.wait()


class Load:
    def __init__(self, *options, hosts=(2,)):
        """`hosts`: the last byte of each address of the hosts."""
        macs = []
        for host, n in ((lab.HA, 1), (lab.HB, 2)):
            assert lab.ping(host, "10.%d.0.1" % n)
            text = subprocess.run(("ip", "-j", "-n", host, "neigh", "show", "10.%d.0.1" % n), capture_output=True, text=True).stdout
            macs.append(json.loads(text)[0]["lladdr"])
        self.proc = subprocess.Popen((RC, "--hosts", ",".join(map(str, hosts)), lab.HA, macs[0], lab.HB, macs[1], str(QPS)) + options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.done = self.stall = 0

    def read(self):
        line = self.proc.stdout.readline()
        assert line and not line.startswith("error"), line or "it died"
        word, n = line.split()
        if word == "stall":  # microseconds without a completion of some queue pair
            self.stall = max(self.stall, int(n))
        else:
            self.done = int(n)
        return word

    def current(self):
        """Reads what was said while nobody listened: until the next line has to be waited for."""
        began = time.monotonic()
        self.read()
        while time.monotonic() - began < 0.02:
            began = time.monotonic()
            self.read()

    def more(self, n=2000):
        """Waits until so many more operations are complete."""
        self.current()
        self.to(self.done + n)

    def to(self, done):
        end = time.monotonic() + lab.READY
        while self.done < done:
            self.read()
            assert time.monotonic() < end, "only %d of %d operations" % (self.done, done)

    def finish(self):
        self.proc.stdin.close()
        while self.read() != "ok":
            pass
        assert self.proc.wait(lab.READY) == 0

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()
        with contextlib.suppress(OSError):
            self.proc.stdin.close()


@contextlib.contextmanager
def running(folder, drain_timeout="10s", workers=1):
    a, b, wan = lab.Gateway(folder, "a", workers=workers), lab.Gateway(folder, "b", workers=workers), Wan(folder)
    for g in a, b:
        with open(g.config) as f:
            text = f.read()
        with open(g.config, "w") as f:
            f.write(text.replace("log_level: info,", "log_level: info, drain_timeout: %s," % drain_timeout))
    load = None
    try:
        b.start()
        a.start().wait("tunnel=far state=up")
        b.wait("tunnel=far state=up")
        load = Load()
        load.more()
        yield a, b, wan, load
    finally:
        if load:
            load.kill()
        a.kill()
        b.kill()
        wan.stop()


def restarted(g):
    """Starts it again, with a log of its own; returns what the last life said."""
    said = g.text()
    g.start().wait("tunnel=far state=up")
    return said


def journal(folder):
    return [name for name in os.listdir(folder) if name.endswith(".journal")]


def roceway(folder, *words):
    return subprocess.run((os.path.join(BIN, "roceway"), "--socket", os.path.join(folder, "a.sock")) + words, capture_output=True, text=True,
                          timeout=60)


def test_sigterm_under_load(folder):
    """Each gateway in turn, twice: no queue pair ends, all bytes are right."""
    with running(folder) as (a, b, _, load):
        for g in a, b, a, b:
            code, counters = g.stop()
            said = restarted(g)
            assert code == 0, said
            assert re.search(r" notice drain: done after \d+ ms flows_left=0 bytes_left=0$", said, re.M), said
            assert "conns_failed" not in counters and "conns_lost" not in counters, counters
            load.more()
        load.finish()
        for g in a, b:
            code, _ = g.stop()
            assert code == 0 and " error " not in g.text(), g.text()
        assert not journal(folder)


def test_command_under_load(folder):
    with running(folder, workers=2) as (a, _, _, load):
        r = roceway(folder, "drain")
        assert r.returncode == 0 and r.stdout.endswith("the gateway stops\n") and "drained: 0 flows, 0 B left" in r.stdout, r
        assert a.proc.wait(lab.READY) == 0
        restarted(a)
        load.more()
        r = roceway(folder, "drain", "--keep")
        assert r.returncode == 0, r
        state = json.loads(roceway(folder, "drain", "--keep", "--json").stdout)
        assert state["state"] == "drained" and state["then"] == "keep", state
        assert roceway(folder, "drain", "--cancel").returncode == 0
        load.more()
        load.finish()
        assert "drop_draining" in roceway(folder, "counters").stdout


def test_bound(folder):
    """The WAN is away: SIGTERM ends by its timeout, and leaves the journal. An operator's drain gives up instead."""
    with running(folder, "1s") as (a, _, wan, load):
        wan.outage("60s")
        r = roceway(folder, "drain", "--timeout", "1")
        assert r.returncode == 1 and "the gateway serves on" in r.stderr, r
        assert json.loads(roceway(folder, "status", "--json").stdout)["state"] == "running"
        assert a.stop()[0] == 0
        assert re.search(r" warning drain: ends by its timeout: .* flows_left=[1-9]\d* bytes_left=[1-9]", a.text()), a.text()
        assert journal(folder)


def test_second_sigterm(folder):
    with running(folder, "1h") as (a, _, wan, load):
        wan.outage("60s")
        a.proc.send_signal(signal.SIGTERM)
        a.wait("drain: begins by=SIGTERM")
        assert a.stop()[0] == 0
        assert "stopping on signal SIGTERM" in a.text()
        assert journal(folder)


def main(names, world=topology):
    """Runs the functions of a script whose names begin with test_, or those that the command line asks for, each with a folder of its own;
    `world` makes the network. Returns the exit code."""
    want = sys.argv[2] if len(sys.argv) > 2 else ""
    passed = failed = 0
    try:
        world()
        for t in [v for k, v in names.items() if k.startswith("test_") and want in k]:
            with tempfile.TemporaryDirectory() as folder:
                began = time.monotonic()
                try:
                    t(folder)
                    passed += 1
                    print("ok %s %.1f s" % (t.__name__, time.monotonic() - began), flush=True)
                except Exception as e:  # noqa: BLE001: any failure is a failed test
                    failed += 1
                    print("not ok %s: %s: %s" % (t.__name__, type(e).__name__, e), flush=True)
                    for side in "ab12":
                        with contextlib.suppress(OSError), open(os.path.join(folder, side + ".log")) as f:
                            print("--- %s\n%s" % (side, f.read()[-3000:]), flush=True)
    finally:
        lab.cleanup()
        subprocess.run(("ip", "netns", "del", MID), stderr=subprocess.DEVNULL)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(globals()))
