#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pair of real relays at site A and a single one at site B, while queue pairs between two hosts run: each relay of the pair dies and hands
over. Connections that began before and after go on, with the aliases that their hosts know.

    ha [eth0] -- switch -- [lan0] g1 [wan0] -- switch -- [wan0] gb [lan0] -- [eth0] hb
                       \\-- [lan0] g2 [wan0] --/
                           g1 [pair0] -- cable -- [pair0] g2

The hosts are models (tests/component/rc/rc_veth.c), which compare every byte; they know their own relay alone. Needs root. Argument: the
build folder.
"""
import contextlib
import json
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402
import gw_pair as pair  # noqa: E402
from relay_chain import PROXY, RC  # noqa: E402

QPS = 4
RELAY = """relay:
  addresses: [10.{n}.0.1]
  allow: [{{from: 10.1.0.0/24, to: 10.2.0.0/24, ports: 1-65535}}]
"""
MAP = "  map: [" + ", ".join(f"{{name: h{h}, listen: 10.1.0.1, port: {7000 + h}, target: 10.2.0.{h}}}" for h in pair.HOSTS) + "]\n"


def as_relay(gateway, n):
    gateway.program = PROXY
    with open(gateway.config, "a") as f:
        f.write(RELAY.format(n=n) + (MAP if n == 1 else ""))


class Load(drain.Load):
    """Queue pairs of host 10.1.0.N with 10.2.0.N, by a port of relay A."""

    def __init__(self, host, qps=QPS):
        macs = []
        for ns, n in ((lab.HA, 1), (lab.HB, 2)):
            assert lab.ping(ns, "10.%d.0.1" % n)
            text = subprocess.run(("ip", "-j", "-n", ns, "neigh", "show", "10.%d.0.1" % n), capture_output=True, text=True).stdout
            macs.append(json.loads(text)[0]["lladdr"])
        self.proc = subprocess.Popen((RC, "--hosts", str(host), "--relays", "10.1.0.1", "10.2.0.1", str(7000 + host), lab.HA, macs[0], lab.HB, macs[1], str(qps)),
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.done = self.stall = 0


class World:
    def __init__(self, folder):
        self.one, self.two = (pair.Member(folder, n, pair.BEAT) for n in "12")
        self.b = lab.Gateway(folder, "b")
        for g, n in ((self.one, 1), (self.two, 1), (self.b, 2)):
            as_relay(g, n)
        self.loads = []

    def load(self, host, qps=QPS):
        """One more, whose connections are set up."""
        self.loads.append(Load(host, qps))
        self.loads[-1].more()

    def more(self):
        for x in self.loads:
            x.more()

    def finish(self, *members):
        for x in self.loads[1:]:
            x.finish()
        pair.finish(self.loads[0], self.b, *members)


@contextlib.contextmanager
def running(folder, late=False):
    """Relay 1 is active, relay 2 has everything. `late`: it does not run yet."""
    w = World(folder)
    pair.cable(True)
    try:
        w.b.start()
        w.one.start().until("alone")
        w.b.wait("tunnel=far state=up")
        if not late:
            w.two.start().until("ready")
            w.one.until("paired")
        yield w
    finally:
        for x in w.loads:
            x.kill()
        w.one.end()
        w.two.end()
        w.b.kill()


def links(member):
    """{number: (state, alias, QPNs)} of those that are not closed."""
    r = pair.roceway(member, "--json", "links")
    return {x["link"]: (x["state"], x["alias_qpn"], x["local_qpn"], x["remote_qpn"]) for x in json.loads(r.stdout)["links"] if x["state"] != "closed"}


def counter(member, name):
    r = pair.roceway(member, "--json", "counters", "--all")
    return sum(c["value"] for c in json.loads(r.stdout)["counters"] if c["name"] == name)


def test_active_dies(folder):
    """Twice, with its standby back in between; connections from before each time, and from after."""
    with running(folder) as w:
        w.load(2)
        before = links(w.one)
        assert len(before) == QPS and links(w.two) == before, (before, links(w.two))
        assert counter(w.one, "relay_waited") > 0 and counter(w.one, "drop_relay_wait") == 0
        w.one.kill()
        w.more()
        w.two.until("alone")
        assert links(w.two) == before
        w.load(3)
        w.one.start().until("ready")
        w.two.until("paired")
        assert len(links(w.one)) == 2 * QPS and links(w.one) == links(w.two), (links(w.one), links(w.two))
        w.two.kill()
        w.more()
        w.one.until("alone")
        w.load(9)
        assert len(links(w.one)) == 3 * QPS
        w.finish(w.one)


def test_hand_over(folder):
    """To and fro: nobody waits for silence."""
    with running(folder) as w:
        w.load(2)
        for active, other in ((w.one, w.two), (w.two, w.one)):
            r = pair.roceway(active, "drain", "--hand-over")
            assert r.returncode == 0 and "the standby has taken over" in r.stdout, r
            w.more()
            other.until("paired")
            active.until("ready")
            w.load(3 if active is w.one else 9)
            assert links(w.one) == links(w.two)
        w.finish(w.one, w.two)


def test_standby_comes_late(folder):
    """It gets the links that there are."""
    with running(folder, late=True) as w:
        w.load(2)
        w.load(3, 20)
        assert not counter(w.one, "relay_waited")
        w.two.start().until("ready")
        w.one.until("paired")
        assert len(links(w.two)) == QPS + 20 and links(w.two) == links(w.one)
        w.one.kill()
        w.more()
        w.two.until("alone")
        w.finish(w.two)


def test_dies_during_set_ups(folder):
    """Hosts repeat what was under way; no host knows an alias that the other relay does not have."""
    with running(folder) as w:
        x = Load(2, 40)
        w.loads.append(x)
        pair.until("some links of 40", lambda: 4 <= w.one.text().count("event=asked"))
        w.one.kill()
        x.more()
        w.two.until("alone")
        assert len(links(w.two)) == 40
        w.finish(w.two)


def test_standby_dies(folder):
    """New connections wait no longer than the witness needs."""
    with running(folder) as w:
        w.load(2)
        w.two.kill()
        w.load(3)
        w.one.until("alone")
        w.two.start().until("ready")
        w.one.until("paired")
        w.load(9)
        assert links(w.one) == links(w.two)
        w.finish(w.one)


if __name__ == "__main__":
    CODE = drain.main(globals(), pair.topology)
    subprocess.run(("ip", "netns", "del", pair.G2), stderr=subprocess.DEVNULL)
    sys.exit(CODE)
