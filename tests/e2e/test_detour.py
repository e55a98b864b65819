# SPDX-License-Identifier: Apache-2.0
# The retransmission detour (docs/carriers.md): the native path loses a fifth of all datagrams, and
# what it has lost goes by TCP or QUIC over another network.
import contextlib
import time

from lab import each, needs
from lab.copy import Copy
from lab.net import IP
from lab.proc import ns_argv, sh, wait_for

LOSS = 20  # percent


@contextlib.contextmanager
def another_network(lab, carrier):
    """A cable between both gateways' machines, which loses nothing; detours go by it."""
    a, b = lab.net.gwa, lab.net.gwb
    sh(IP, "-n", a, "link", "add", "other", "type", "veth", "peer", "name", "other", "netns", b)
    before = [dict(g.options) for g in (lab.gwa, lab.gwb)]
    try:
        for site, ns in ((1, a), (2, b)):
            sh(IP, "-n", ns, "addr", "add", f"198.51.100.{site}/24", "dev", "other")
            sh(IP, "-n", ns, "link", "set", "other", "up")
        for g in (lab.gwa, lab.gwb):
            g.stop()
            g.options = dict(g.options, detour=carrier)
        for g in (lab.gwa, lab.gwb):
            g.start()
        yield
    finally:
        for g, options in zip((lab.gwa, lab.gwb), before):
            g.stop()
            g.options = options
        sh(IP, "-n", a, "link", "del", "other", check=False)
        for g in (lab.gwa, lab.gwb):
            g.start()
        wait_for("the tunnel is up", lambda: lab.gwa.ask("tunnels")["tunnels"][0]["state"] == "up", 20, 0.1)


def states(lab):
    return [g.carrier()["detour_state"] for g in (lab.gwa, lab.gwb)]


def other_bytes(ns):
    return int(sh(*ns_argv(ns), "cat", "/sys/class/net/other/statistics/tx_bytes"))


@needs(gateway=True, timeout=200)
@each(carrier=["tcp", "quic"])
def test_detour(lab, carrier):
    """20 % loss each way: files with checksums and ib_write_bw lose nothing, and repeats take the detour. When its network is cut, the
    rest goes natively; when it is back, by detour again."""
    with another_network(lab, carrier):
        lab.wan(rtt_ms=20, loss=LOSS)
        wait_for("detours are ready", lambda: states(lab) == ["ready", "ready"], 30, 0.1)
        assert all(g.carrier()["sending"] == "native" and g.carrier()["detour"] == carrier for g in (lab.gwa, lab.gwb))
        sent = [other_bytes(ns) for ns in (lab.net.gwa, lab.net.gwb)]
        copies = [Copy(lab, (lab.a, lab.b), mib=4), Copy(lab, (lab.b, lab.a), mib=4, port=7428)]
        p = lab.perftest("ib_write_bw", size=65536, seconds=4, timeout=18, limit=60)
        for copy in copies:
            copy.check()
        assert p.ok, p
        for g, ns, had in zip((lab.gwa, lab.gwb), (lab.net.gwa, lab.net.gwb), sent):
            c, native = g.carrier(), g.sum("retransmit_lost")
            lab.log(f"{g.side}: of what was lost {native} went natively again, {c['detour_datagrams']} datagrams by {carrier}, {c['detour_late']} late, {c['detour_no_room']} without room")
            assert c["detour_datagrams"] > 100 and c["detour_datagrams"] > native, (native, c)
            assert c["sending"] == "native" and c["fallbacks"] == 0, c
            assert other_bytes(ns) - had > 500 * c["detour_datagrams"], "it went elsewhere"
        # the other network dies under load
        copy = Copy(lab, (lab.a, lab.b), mib=4)
        lab.wait_traffic(100)
        sh(IP, "-n", lab.net.gwa, "link", "set", "other", "down")
        copy.check()
        wait_for("no detour", lambda: "ready" not in states(lab), 30, 0.1)
        sh(IP, "-n", lab.net.gwa, "link", "set", "other", "up")
        wait_for("detours are ready again", lambda: states(lab) == ["ready", "ready"], 60, 0.1)
        had, began = lab.gwa.carrier()["detour_datagrams"], time.monotonic()
        Copy(lab, (lab.a, lab.b), mib=4).check()
        assert lab.gwa.carrier()["detour_datagrams"] > had, time.monotonic() - began
