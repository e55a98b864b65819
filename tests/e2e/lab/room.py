# SPDX-License-Identifier: Apache-2.0
# A guest in which the gateway of site A runs, in the place of the one on this machine: what tap.py and pci.py share. Gateway B is as always.
#
#   gwa: tapa (host A) - br-lana - rla | guest | rwa - br-wana - wana
import contextlib
import re

from . import proc
from .gateway import DEFAULTS
from .guest import Guest
from .inside import BOOT_MAX, MEMORY, InsideGateway, bridge
from .net import IP, MTU_MAX, QUEUE
from .proc import sh


class RoomGuest(Guest):
    """The first NIC is that of the LAN, the second that of the WAN."""
    memory = 1024
    kind, number = "room", 0  # of the guest; the fifth byte of its NICs' MACs

    def __init__(self, net, log):
        super().__init__(self.kind, net.gwa, None, None, net.dir, log)

    def nics(self):
        return [(f"r{kind}a", f"52:54:00:00:{self.number:02x}:{i:02x}") for i, kind in enumerate("lw")]


class RoomGateway(InsideGateway):
    program = "roceway-gateway"

    def __init__(self, lab, guest):
        super().__init__("a", lab.net, lab.log, guest, {**DEFAULTS, **lab.gwb.options, "memory": MEMORY})

    def changed(self, text):
        """The configuration for the devices of this guest."""
        return text

    @staticmethod
    def with_device(text, port, device):
        return re.sub(rf'device: "net_af_packet{port},[^"]*"', f'device: "{device}"', text)

    def write_config(self):
        path = super().write_config()
        path.write_text(self.changed(path.read_text()))
        return path


def _cables(net, guest):
    for (tap, _), name, dev in zip(guest.nics(), ("lan", "wan"), ("tapa", "wana")):
        sh(IP, "-n", net.gwa, "tuntap", "add", "dev", tap, "mode", "tap")
        sh(IP, "-n", net.gwa, "link", "set", tap, "mtu", MTU_MAX, "txqueuelen", QUEUE, "up")
        bridge(net.gwa, f"br-{name}a", dev, tap)


def _uncable(net, guest):
    for dev in ("br-lana", "br-wana", *(tap for tap, _ in guest.nics())):
        sh(IP, "-n", net.gwa, "link", "del", dev, check=False)


@contextlib.contextmanager
def room(lab, guest):
    """The guest is booted and set up; gateway A is stopped, and none runs in the guest yet."""
    try:
        lab.gwa.stop()
        _cables(lab.net, guest)
        guest.boot()
        guest.ready(BOOT_MAX)
        guest.setup()
        yield guest
    finally:
        if guest.qemu:
            guest.halt()
        _uncable(lab.net, guest)
        lab.changed()


@contextlib.contextmanager
def serving(lab, gw, *asked, started=lambda: None):
    """The gateway runs in its room, with its tunnel up. `started` is called when it is ready; what `asked` says is logged at the end."""
    try:
        gw.start()
        started()
        proc.wait_for("the tunnel is up", lambda: all(t["state"] == "up" for t in gw.ask("tunnels")["tunnels"]), 60, 0.5)
        yield gw
    finally:
        if gw.alive():
            for what in asked:
                lab.log(f"[gateway in the guest] roceway {what}: {gw._cli(*what.split())[1]}")
        if gw.job:
            lab.log(f"[gateway in the guest]\n{gw.said()[-6000:]}")
            gw.kill()
