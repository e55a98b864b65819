# SPDX-License-Identifier: Apache-2.0
# A pair of gateways at site A (docs/standby.md) instead of the lab's one, which stops. Site B's
# gateway is the lab's own, and the witness.
#
#   gwa: host's tap and switch fl (LAN), wana and switch fw (WAN)
#   gwp1, gwp2: lan, wan; pair0: the cable between them
import contextlib
import signal

from . import proc
from .fleet import _namespace, _plug, _switch
from .gateway import Gateway
from .net import IP
from .proc import sh

REPLACED = 75  # exit status of a gateway that the other one replaced
_PORT = """  - name: cable
    device: "net_af_packet2,iface=pair0"
    role: wan
    addresses: [169.254.77.{n}/30]
    mtu: 1500
tunnels:
  - name: pair
    port: cable
    local: 169.254.77.{n}
    remote: 169.254.77.{m}
    peer_name: site-a
    security: {security}
    standby: true
    standby_beat: {beat}
    standby_wait: 1s
"""


class Member(Gateway):
    """The n-th gateway of the pair: site A's configuration, with the devices of its own namespace."""

    def __init__(self, n, lab, beat):
        super().__init__("a", lab.net, lab.log)
        self.n, self.beat = n, beat
        self.netns = f"{lab.net.gwa.rsplit('-', 1)[0]}-gwp{n}"
        self.sock, self.log_file = lab.net.dir / f"gw-p{n}.sock", lab.net.dir / f"gateway-p{n}.log"
        self.options = dict(lab.gwa.options, ack_mode="site")

    def write_config(self):
        base = super().write_config()
        text = base.read_text()
        home = self.net.dir / f"pair-{self.n}"
        home.mkdir(mode=0o700, exist_ok=True)
        for was, now in ((f"iface={'lana' if 'iface=lana' in text else 'tapa'}", "iface=lan"), ("iface=wana", "iface=wan"),
                         ("    role: lan\n", "    role: lan\n    mac: 02:52:57:aa:00:01\n"), ("    role: wan\n", "    role: wan\n    mac: 02:52:57:aa:00:02\n"),
                         (f"journal_dir: {self.net.dir}", f"journal_dir: {home}"), (f"rwy-{self.net.id}-a", f"rwy-{self.net.id}-p{self.n}"),
                         ("tunnels:\n", _PORT.format(n=self.n, m=3 - self.n, beat=self.beat, security=self.options["security"]))):
            assert was in text, was
            text = text.replace(was, now, 1)
        path = self.net.dir / f"gateway-p{self.n}.yaml"
        path.write_text(text)
        return path

    def state(self):
        """As /v1/standby tells it; "" while it does not answer."""
        code, _, _ = self._cli("status")
        return self.ask("standby")["standby"]["state"] if code == 0 else ""

    def until(self, *states, seconds=30):
        """Waits for one of the states. A process that was replaced is started again, as systemd would."""
        def there():
            if self.child is not None and self.child.poll() == REPLACED:
                self.start()
            return self.alive() and self.state() in states
        proc.wait_for(f"gateway {self.n} of the pair is {' or '.join(states)}", there, seconds, 0.05)

    def pause(self, on):
        """SIGSTOP or SIGCONT."""
        self.child.send_signal(signal.SIGSTOP if on else signal.SIGCONT)


class Pair:
    def __init__(self, lab, beat):
        self.lab, self.members = lab, [Member(n, lab, beat) for n in (1, 2)]

    def build(self):
        net = self.lab.net
        self.lab.gwa.stop()
        net.bridge(net.gwa, False)
        for switch, first in (("fl", "tapa"), ("fw", "wana")):
            _switch(net.gwa, switch)
            sh(IP, "-n", net.gwa, "link", "set", first, "master", switch, "up")
        for g in self.members:
            _namespace(g.netns)
            _plug(net.gwa, "fl", f"fl-p{g.n}", g.netns, "lan")
            _plug(net.gwa, "fw", f"fw-p{g.n}", g.netns, "wan")
        one, two = (g.netns for g in self.members)
        sh(IP, "-n", one, "link", "add", "pair0", "type", "veth", "peer", "name", "pair0", "netns", two)
        self.cable(True)

    def cable(self, up):
        """Plugs the cable between the two in, or out."""
        for g in self.members:
            sh(IP, "-n", g.netns, "link", "set", "pair0", "up" if up else "down")

    def close(self):
        net = self.lab.net
        for g in self.members:
            if g.alive():
                g.pause(False)
            proc.kill(g.child)
        for dev in ("fl", "fw", *(f"{x}-p{g.n}" for g in self.members for x in ("fl", "fw"))):
            sh(IP, "-n", net.gwa, "link", "del", dev, check=False)
        for g in self.members:
            sh(IP, "netns", "del", g.netns, check=False)
        self.lab.changed()


@contextlib.contextmanager
def pair(lab, beat="20ms"):
    """(active, standby, the pair), which run and know each other. Hosts keep their routes."""
    p = Pair(lab, beat)
    try:
        p.build()
        active, standby = p.members
        active.start()
        active.until("alone")
        standby.start()
        standby.until("ready")
        active.until("paired")
        lab.a.run("ip neigh flush dev eth0")  # the pair's MAC address
        yield active, standby, p
    finally:
        p.close()
