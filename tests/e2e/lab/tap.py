# SPDX-License-Identifier: Apache-2.0
# The gateway of site A in a guest, whose WAN port is a tap: its driver (net_tap) has rte_flow by tc flower, which the kernel of a lab
# machine may lack and the guest's has. Gateway B is as always, on this machine.
#
#   gwa: tapa (host A) - br-lana - rla | guest: tapa lan | tap gw - brw - eth1 | rwa - br-wana - wana
import contextlib
import re

from . import image, proc
from .gateway import DEFAULTS
from .guest import Guest
from .inside import BOOT_MAX, InsideGateway
from .pci import cables, uncable

TAP = "rgwan"
_MEMORY = "memory: {buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}\n"  # starts in seconds


class TapGuest(Guest):
    memory = 1024

    def __init__(self, net, log):
        super().__init__("tap", net.gwa, None, None, net.dir, log)

    def nics(self):
        return [(f"r{kind}a", f"52:54:00:00:0b:{i:02x}") for i, kind in enumerate("lw")]

    def archive(self, kdir):
        return image.tap_initramfs(kdir)

    def setup(self):
        """Some of the modules are there already."""
        self.run(f"""set -e; while read -r m; do insmod $m || true; done </etc/modules.tap; mkdir -p /dev/net /var/run {self.rundir}
            chmod 755 /; chmod 700 {self.rundir}; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
            ip link set eth0 name tapa; ip link set tapa mtu 1500 up
            ip link add brw type bridge mcast_snooping 0 forward_delay 0 stp_state 0
            ip link set eth1 mtu 1500 master brw; ip link set eth1 up; ip link set brw up""")

    def filters(self):
        """{UDP port: (queue, packets)} of the tap's flower filters."""
        text, found = self.run(f"tc -s filter show dev {TAP} parent 1:").out, {}
        for part in re.split(r"\nfilter ", text):
            port, queue = re.search(r"dst_port (\d+)", part), re.search(r"queue_mapping (\d+)", part)
            sent = re.search(r"Sent \d+ bytes (\d+) pkt", part)
            if port and queue and sent:
                found[int(port[1])] = (int(queue[1]), int(sent[1]))
        return found


class TapGateway(InsideGateway):
    program = "roceway-gateway"

    def write_config(self):
        path = super().write_config()
        path.write_text(re.sub(r'device: "net_af_packet1,[^"]*"', f'device: "net_tap0,iface={TAP}"', path.read_text()))
        return path


@contextlib.contextmanager
def gateway_on_tap(lab):
    """(guest, gateway): the gateway of site A in its guest, in the place of the one on this machine, with its tunnel up."""
    guest = TapGuest(lab.net, lab.log)
    gw = TapGateway("a", lab.net, lab.log, guest, {**DEFAULTS, **lab.gwb.options, "memory": _MEMORY})
    try:
        lab.gwa.stop()
        cables(lab.net, guest)
        guest.boot()
        guest.ready(BOOT_MAX)
        guest.setup()
        gw.start()
        guest.run(f"set -e; ip link set {TAP} master brw; ip link set {TAP} up")
        proc.wait_for("the tunnel is up", lambda: all(t["state"] == "up" for t in gw.ask("tunnels")["tunnels"]), 60, 0.5)
        yield guest, gw
    finally:
        if gw.alive():
            for what in ("ports", "tunnels --detail", "counters --workers"):
                lab.log(f"[gateway in the guest] roceway {what}: {gw._cli(*what.split())[1]}")
        if gw.job:
            lab.log(f"[gateway in the guest]\n{gw.said()[-6000:]}")
            gw.kill()
        if guest.qemu:
            guest.halt()
        uncable(lab.net, guest)
        lab.changed()
