# SPDX-License-Identifier: Apache-2.0
# Two relays at each site, in pairs with a tunnel each; host A's agent says by which one new
# connections go. The relay in use is killed under load.
#
#   host A -- a1 == b1 -- host B        roceway-host-agent at host A: a1, else a2
#          \- a2 == b2 -/
import contextlib
import re
import time

from lab import needs
from lab.fleet import Fleet
from lab.gateway import DEFAULTS
from lab.paths import BIN
from lab.proc import wait_for
from test_proxy import apart

PROBE = 200  # ms between two questions of the agent; a relay that answers none of three is down
DREQS_MAX = 70  # s for which the kernel repeats a DREQ that nobody answers
ENDING = 35  # s after which the relay forgets the link then
FILE = "/run/roceway-host/redirect.conf"


def relay_yaml(own, far):
    site, other = own.site, 3 - own.site
    return f"""tunnels:
  - name: {far.name}
    port: wan
    local: {own.wan}
    remote: {far.wan}
    udp_port: 4793
    prefixes: [10.{other}.0.0/24]
    security: none
relay:
  addresses: [{own.lan}]
  redirect_port: 4790
  allow:
    - {{from: 10.{site}.0.0/24, to: 10.{other}.0.0/24, ports: 1-65535}}
    - {{from: 10.{other}.0.0/24, to: 10.{site}.0.0/24, ports: 1-65535}}
"""


@contextlib.contextmanager
def relays(lab):
    """{name: relay}: a1 and b1 with a tunnel between them, a2 and b2 likewise."""
    f = Fleet(lab)
    try:
        f.build()
        for own, far in (("a1", "b1"), ("b1", "a1"), ("a2", "b2"), ("b2", "a2")):
            g = f.gateways[own]
            g.options = dict(DEFAULTS, relay=True)
            g.more = relay_yaml(g, f.gateways[far])
            g.start()
        wait_for("tunnels", lambda: all(g.tunnels() for g in f.gateways.values()), 30, 0.2)
        yield f.gateways
    finally:
        f.close()


@contextlib.contextmanager
def agent(lab, first, second):
    """Host A's agent, which asks both relays."""
    words = lab.a.program(BIN / "roceway-host-agent")
    lab.a.run(f"""mkdir -p /run/roceway-host; rm -f {FILE}; echo 'redirect 10.2.0.0/24 via {first.lan} else {second.lan}' >/tmp/t/relays.conf
        printf 'policy /tmp/t/relays.conf\\nprobe {PROBE}\\n' >/tmp/t/agent.conf""")
    job = lab.a.start(f"{words} --config /tmp/t/agent.conf 2>&1")
    try:
        wait_for("the agent's file", lambda: lab.a.run(f"cat {FILE} 2>/dev/null; true").out, 20, 0.1)
        yield job
    finally:
        job.kill()
        lab.a.run(f"rm -f {FILE}")


def is_down(lab, relay):
    return re.search(rf"{relay.lan}[^ ]*,down", lab.a.run(f"cat {FILE}").out)


def rping(lab):
    """A new connection of host A's."""
    r = lab.pair(f"rping -s -V -C 5 -a {lab.b.ip4} -p 7174", f"roceway-run rping -c -V -C 5 -a {lab.b.ip4} -p 7174", port=7174, cm=True, timeout=30)
    assert r.ok, r


def empty(relay):
    """No link is open, and no byte of a host is kept. (A flow's record is, for connections.idle_expiry.)"""
    return not relay.ask("links")["open"] and not sum(w["held_bytes"] for w in relay.ask("memory")["workers"])


@needs(native=True, timeout=400)
def test_relay_killed(lab):
    """A relay is killed under load: its queue pairs get an error, new connections use the other relay within a second, and the far
    relay frees what it had when its host has ended the queue pairs. When the relay is back it is used again."""
    with relays(lab) as r, agent(lab, r["a1"], r["a2"]):
        apart(lab)
        rping(lab)
        assert r["a1"].sum("relay_in_packets") and not r["a2"].sum("relay_in_packets")
        words = f"-F -R -d {lab.a.rxe} -x {lab.a.gid()} -s 4096 -q 4 -D 200 --retry_count=3"  # 7 is for ever with Soft-RoCE
        server = lab.serve(f"ib_write_bw {words}", port=18515, cm=True)
        client = lab.a.start(f"roceway-run ib_write_bw {words} {lab.b.ip4}")
        wait_for("load", lambda: r["b1"].sum("relay_out_packets") > 500, 60, 0.1)
        r["a1"].kill()
        killed = time.monotonic()
        wait_for("the agent knows", lambda: is_down(lab, r["a1"]), 10, 0.02)
        took = time.monotonic() - killed
        rping(lab)
        lab.log(f"the agent knew after {took:.2f} s")
        assert took <= 1, took
        assert r["a2"].sum("relay_in_packets")
        x = client.wait(100)
        assert "Failed status 12" in x.text, x  # IBV_WC_RETRY_EXC_ERR
        # A responder is told nothing of a requester that is gone, as natively.
        server.kill()
        wait_for("b1 has freed all", lambda: empty(r["b1"]), DREQS_MAX + ENDING + 15, 0.5)
        r["a1"].start()
        wait_for("a1 answers again", lambda: not is_down(lab, r["a1"]), 20, 0.1)
        wait_for("its tunnel", r["a1"].tunnels, 20, 0.2)
        rping(lab)
        assert r["a1"].sum("relay_in_packets")
