# SPDX-License-Identifier: Apache-2.0
# The gateway of site A in a guest (room.py), on virtio-net PCI devices that vfio-pci has and DPDK's virtio driver uses, with hugepages. The
# guest's kernel is Debian's, which has no VFIO without an IOMMU (CONFIG_VFIO_NOIOMMU is not set): so the guest has an IOMMU, Intel's as
# QEMU emulates it, and its two devices are behind it.
#
#   guest: 0000:00:.. lan, 0000:00:.. wan
import re

from . import image
from .inside import ROOM
from .room import RoomGateway, RoomGuest, room, serving

_HUGEPAGES = 160  # of 2 MiB
_DEVICE = "basename $(dirname $(readlink -f /sys/class/net/{}/device))"


class PciGuest(RoomGuest):
    kind, number = "pci", 0x0a
    machine, kernel_args = "q35", " intel_iommu=on"
    first_devices = ("-device", "intel-iommu,intremap=on")
    nic_options = ",disable-legacy=on,iommu_platform=on"

    def archive(self, kdir):
        return image.pci_initramfs(kdir)

    def prepare(self, **more):
        """roceway-prepare, for this guest's two devices."""
        words = {"HUGEPAGES_2M": _HUGEPAGES, "VFIO_DEVICES": f"'{' '.join(self.devices)}'", "SYSFS": "/sys", **more}
        return self.start(" ".join(f"{k}={v}" for k, v in words.items()) + " sh /opt/rwy/roceway-prepare").wait(60)

    def setup(self):
        self.run(f"""set -e; while read -r m; do insmod $m; done </etc/modules.pci; {ROOM.format(self.rundir)}
            mkdir -p /dev/hugepages; mount -t hugetlbfs none /dev/hugepages""")
        self.devices = [self.run(_DEVICE.format(i)).out.strip() for i in ("eth0", "eth1")]

    def driver_of(self, device):
        return self.run(f"basename $(readlink /sys/bus/pci/devices/{device}/driver)").out.strip()


class PciGateway(RoomGateway):
    def changed(self, text):
        text = re.sub(r"  args: \[.*\]\n", '  cores: "0"\n', text)
        for port, device in enumerate(self.guest.devices):
            text = self.with_device(text, port, device)
        return text


def guest_of(lab):
    """The guest, booted; no device is bound yet."""
    return room(lab, PciGuest(lab.net, lab.log))


def gateway_in(lab, guest):
    """The gateway in the guest, ready and with its tunnel up."""
    return serving(lab, PciGateway(lab, guest), "tunnels --detail", "counters")
