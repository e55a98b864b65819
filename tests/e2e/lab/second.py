# SPDX-License-Identifier: Apache-2.0
# A second path of the lab's tunnel: another WAN port of both gateways, and a WAN of its own between
# them.
#
#   gwa: wan2a and wan: w2a      wan: w2b and gwb: wan2b
#        the second emulated WAN connects w2a and w2b
import contextlib

from . import proc
from .net import IP
from .proc import sh
from .wan import Wan


class Second(Wan):
    """set() as lab.wan() does it, but for the second path."""

    def __init__(self, lab):
        super().__init__(lab.net, lab.log, devs=("w2a", "w2b"), name="wanem-2")
        self.lab = lab

    def build(self):
        for side, g in (("a", self.lab.gwa), ("b", self.lab.gwb)):
            sh(IP, "-n", g.netns, "link", "add", f"wan2{side}", "type", "veth", "peer", "name", f"w2{side}", "netns", self.net.wan)
            for ns, dev in ((g.netns, f"wan2{side}"), (self.net.wan, f"w2{side}")):
                sh(IP, "-n", ns, "link", "set", dev, "mtu", 9000, "up")
        self.start()
        self.lab.gateways_stop()
        for g in self.lab.gateways:
            g.options = dict(g.options, second_path=True)
            g.start(wait=False)
        for g in self.lab.gateways:
            g.wait_ready()
        self.until("usable")

    def close(self):
        for g in self.lab.gateways:
            if g.alive():
                g.stop()
        self.stop()
        for side, g in (("a", self.lab.gwa), ("b", self.lab.gwb)):
            sh(IP, "-n", g.netns, "link", "del", f"wan2{side}", check=False)
        self.lab.changed()

    def paths(self):
        """Gateway A's paths, as /v1/tunnels has them."""
        return self.lab.gwa.ask("tunnels")["tunnels"][0]["paths"]

    def until(self, *states, seconds=30):
        """Waits until the second path is in one of these states, and the first one is usable."""
        proc.wait_for(f"the second path is {' or '.join(states)}",
                      lambda: self.paths()[0]["state"] == "usable" and self.paths()[1]["state"] in states, seconds, 0.1)


@contextlib.contextmanager
def second_path(lab):
    """The second path, which both gateways know and use."""
    s = Second(lab)
    try:
        s.build()
        lab.wait_path()
        yield s
    finally:
        s.close()
