#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real relays whose processes die, by SIGKILL, and are started again: their links go on.

    ha -- r1 -- [wanem] -- r2 -- hb

The hosts are models (tests/component/rc/rc_veth.c) in this machine's namespaces; they connect by CM. In ack mode `far` no acknowledged
WRITE is with one process alone, so no queue pair may end. Needs root. Argument: the build folder.
"""
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402
import relay_chain as chain  # noqa: E402
from relay_chain import PROXY, RC, flowing, until  # noqa: E402

QPS = 4
LAN = ["10.1.0.1", "10.2.0.1"]
WAN = ["192.0.2.1", "192.0.2.2"]
NETNS = [lab.GA, lab.GB]
PORT = 7000
SAID = re.compile(r"links of the process before: restored=(\d+) unfit=(\d+) broken=(\d+)")
UNPAIRED, COOKIE, OK = 4, 1, 0


class Relay(chain.Relay):
    def __init__(self, folder, i):
        self.i, self.sock, self.log, self.path = i, f"{folder}/{i}.sock", f"{folder}/{'ab'[i]}.log", f"{folder}/r{i}.yaml"
        listen = f"  map: [{{name: far, listen: {LAN[0]}, port: {PORT}, target: 10.2.0.2}}]\n" if i == 0 else ""
        with open(self.path, "w") as f:
            f.write(f"gateway: {{name: {NETNS[i]}, polling: adaptive, log_level: info, journal_dir: {folder}/j{i}, drain_timeout: 1s}}\n"
                    f'eal: {{args: ["--in-memory", "--no-huge", "-m", "128"]}}\n'
                    f'ports:\n  - {{name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [{LAN[i]}/24], mtu: 1500}}\n'
                    f'  - {{name: wan, device: "net_af_packet1,iface=wan0", role: wan, addresses: [{WAN[i]}/24], mtu: 1500}}\n'
                    f"tunnels:\n  - {{name: far, port: wan, local: {WAN[i]}, remote: {WAN[1 - i]}, prefixes: [10.{2 - i}.0.0/24], security: none, rate: 1Gbps}}\n"
                    f"memory: {{buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}}\nconnections: {{ack_mode: far}}\napi: {{socket: {self.sock}}}\n"
                    f"relay:\n  addresses: [{LAN[i]}]\n  allow: [{{from: 10.1.0.0/16, to: 10.2.0.0/16, ports: 1-65535}}]\n{listen}")
        os.makedirs(f"{folder}/j{i}", mode=0o700)

    def start(self):
        with open(self.log, "w") as log:
            self.proc = subprocess.Popen(("ip", "netns", "exec", NETNS[self.i], PROXY, "--config", self.path), stderr=log, stdout=log)

    def ready(self):
        until(self, lambda: "tunnel=far state=up" in self.text())

    def links(self):
        """{number: (state, alias, QPNs)} of those that are not closed."""
        return {x["link"]: (x["state"], x["alias_qpn"], x["local_qpn"], x["remote_qpn"]) for x in self.ask("links")["links"] if x["state"] != "closed"}

    def again(self):
        """Dies and starts. Returns how many links were restored, unfit, broken."""
        self.kill()
        self.start()
        self.ready()
        said = SAID.search(self.text())
        return tuple(map(int, said.groups())) if said else None


class Load(drain.Load):
    """WRITEs both ways by each queue pair; hosts know their own relay alone."""

    def __init__(self, macs, qps=QPS, timeout=1000):
        self.proc = subprocess.Popen((RC, "--writes", "--relays", LAN[0], LAN[1], str(PORT), lab.HA, macs[0], lab.HB, macs[1], str(qps), str(timeout)),
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.done = self.stall = 0


def topology():
    drain.topology()
    for host, relay in ((lab.HA, lab.GA), (lab.HB, lab.GB)):
        subprocess.run(("ip", "-n", host, "route", "flush", "root", "10.0.0.0/8", "proto", "boot"), stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def running(folder):
    wan, relays = drain.Wan(folder), [Relay(folder, i) for i in range(2)]
    try:
        for r in relays:
            r.start()
        for r in relays:
            r.ready()
        macs = []
        for host, addr in ((lab.HA, LAN[0]), (lab.HB, LAN[1])):
            assert lab.ping(host, addr)
            text = subprocess.run(("ip", "-j", "-n", host, "neigh", "show", addr), capture_output=True, text=True).stdout
            macs.append(json.loads(text)[0]["lladdr"])
        yield relays, macs
    finally:
        for r in relays:
            r.kill()
        wan.stop()


@contextlib.contextmanager
def loaded(macs, *how):
    load = Load(macs, *how)
    try:
        yield load
    finally:
        load.kill()


def test_killed_under_load(folder):
    """Each relay in turn, twice: the same links, and every byte is right."""
    with running(folder) as (relays, macs), loaded(macs) as load:
        load.more()
        for r in relays * 2:
            before = r.links()
            assert len(before) == QPS and all(x[0] == "established" for x in before.values()), before
            with flowing(load):
                assert r.again() == (QPS, 0, 0), r
            assert r.links() == before
            load.more()
        load.finish()
        assert set(relays[0].links()) == set(relays[1].links())


def killed_during_set_ups(folder, which):
    with running(folder) as (relays, macs), loaded(macs, 24) as load:
        r = relays[which]
        until("some links of 24", lambda: 4 <= r.text().count("event=asked"))
        r.kill()
        assert r.again()[1:] == (0, 0), r
        load.more()
        load.finish()


def test_killed_during_set_ups_a(folder):
    """Hosts repeat their messages, and find the links as they were."""
    killed_during_set_ups(folder, 0)


def test_killed_during_set_ups_b(folder):
    killed_during_set_ups(folder, 1)


def test_stopped_under_load(folder):
    """SIGTERM: the links are there for the next process, whose hosts have lost nothing."""
    with running(folder) as (relays, macs), loaded(macs) as load:
        load.more()
        for r in relays:
            with flowing(load):
                r.proc.send_signal(signal.SIGTERM)
                assert r.proc.wait(lab.READY) == 0, r
                assert r.again() == (QPS, 0, 0), r
            load.more()
        load.finish()


def test_other_configuration(folder):
    """What the new file does not allow ends; the host gets no answer."""
    with running(folder) as (relays, macs), loaded(macs, QPS, 200) as load:
        load.more()
        with open(relays[0].path) as f:
            text = f.read()
        with open(relays[0].path, "w") as f:
            f.write(text.replace("ports: 1-65535", "ports: 8000-9000"))
        assert relays[0].again() == (0, QPS, 0), relays[0]
        assert not relays[0].links()
        assert relays[0].again() is None  # they are not in the journal any more
        until("the load's error", lambda: not (line := load.proc.stdout.readline()) or "ended with status" in line)


def ask(kind, cookie, lqpn=0x123, rqpn=0x456, target="10.2.0.2"):
    """One question of host A's library to its relay: (answer, cookie, alias)."""
    data = (b"RwyA" + struct.pack("!BBBBQQ", 1, kind, 0, 0, 77, cookie) + bytes(10) + b"\xff\xff" + socket.inet_aton(target)
            + struct.pack("!HHHHIIII", 0, 0, 0, 0, lqpn, rqpn, 0, 0))
    with lab.inside(lab.HA), contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        s.settimeout(0.5)
        s.connect((LAN[0], 4795))
        end = time.monotonic() + lab.READY
        while True:
            s.send(data)
            with contextlib.suppress(OSError):
                got = s.recv(100)
                return got[6], struct.unpack_from("!Q", got, 16)[0], struct.unpack_from("!I", got, 56)[0]
            assert time.monotonic() < end, "the relay does not answer"


def test_pair(folder):
    """A program without CM that asks again after the relay died has the alias that it had."""
    with running(folder) as (relays, _):
        answer, cookie, _ = ask(3, 0)
        assert answer == COOKIE
        answer, _, alias = ask(3, cookie)
        assert answer == OK and alias
        before = relays[0].links()
        assert len(before) == 1
        assert relays[0].again() == (1, 0, 0), relays[0]
        assert relays[0].links() == before
        answer, cookie, _ = ask(3, cookie)
        assert answer == COOKIE  # the key of the cookies was the process's own
        assert ask(3, cookie)[::2] == (OK, alias)
        assert ask(UNPAIRED, cookie)[0] == OK
        assert relays[0].again() == (1, 0, 0) and not relays[0].links(), relays[0]


if __name__ == "__main__":
    sys.exit(drain.main(globals(), topology))
