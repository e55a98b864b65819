# SPDX-License-Identifier: Apache-2.0
# The gateway of site A in a guest (room.py), whose WAN port is a tap: its driver (net_tap) has rte_flow by tc flower, which the kernel of a
# lab machine may lack and the guest's has.
#
#   guest: tapa lan | tap gw - brw - eth1
import contextlib
import re

from . import image
from .inside import ROOM
from .room import RoomGateway, RoomGuest, room, serving

TAP = "rgwan"


class TapGuest(RoomGuest):
    kind, number = "tap", 0x0b

    def archive(self, kdir):
        return image.tap_initramfs(kdir)

    def setup(self):
        """Some of the modules are there already."""
        self.run(f"""set -e; while read -r m; do insmod $m || true; done </etc/modules.tap; {ROOM.format(self.rundir)}
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


class TapGateway(RoomGateway):
    def changed(self, text):
        return self.with_device(text, 1, f"net_tap0,iface={TAP}")


@contextlib.contextmanager
def gateway_on_tap(lab):
    """(guest, gateway): the gateway in its guest, with its tunnel up."""
    with room(lab, TapGuest(lab.net, lab.log)) as guest:
        gw = TapGateway(lab, guest)
        with serving(lab, gw, "ports", "tunnels --detail", "counters --workers",
                     started=lambda: guest.run(f"set -e; ip link set {TAP} master brw; ip link set {TAP} up")):
            yield guest, gw
