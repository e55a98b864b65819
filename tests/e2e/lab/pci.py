# SPDX-License-Identifier: Apache-2.0
# The gateway of site A in a guest, on virtio-net PCI devices that vfio-pci has and DPDK's virtio driver uses, with hugepages. The
# guest's kernel is Debian's, which has no VFIO without an IOMMU (CONFIG_VFIO_NOIOMMU is not set): so the guest has an IOMMU, Intel's as
# QEMU emulates it, and its two devices are behind it. Gateway B is as always, on this machine.
#
#   gwa: tapa (host A) - br-lana - rla | guest: 0000:00:.. lan, 0000:00:.. wan | rwa - br-wana - wana
import contextlib
import re

from . import image, proc
from .gateway import DEFAULTS
from .guest import Guest
from .inside import BOOT_MAX, InsideGateway, bridge
from .net import IP, MTU_MAX, QUEUE
from .proc import sh

_MEMORY = "memory: {buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}\n"  # starts in seconds
_HUGEPAGES = 160  # of 2 MiB
_DEVICE = "basename $(dirname $(readlink -f /sys/class/net/{}/device))"


class PciGuest(Guest):
    memory = 1024
    machine, kernel_args = "q35", " intel_iommu=on"
    first_devices = ("-device", "intel-iommu,intremap=on")
    nic_options = ",disable-legacy=on,iommu_platform=on"

    def __init__(self, net, log):
        super().__init__("pci", net.gwa, None, None, net.dir, log)

    def nics(self):
        return [(f"r{kind}a", f"52:54:00:00:0a:{i:02x}") for i, kind in enumerate("lw")]

    def archive(self, kdir):
        return image.pci_initramfs(kdir)

    def prepare(self, **more):
        """roceway-prepare, for this guest's two devices."""
        words = {"HUGEPAGES_2M": _HUGEPAGES, "VFIO_DEVICES": f"'{' '.join(self.devices)}'", "SYSFS": "/sys", **more}
        return self.start(" ".join(f"{k}={v}" for k, v in words.items()) + " sh /opt/rwy/roceway-prepare").wait(60)

    def setup(self):
        self.run(f"""set -e; while read -r m; do insmod $m; done </etc/modules.pci; mkdir -p /dev/net /dev/hugepages /var/run {self.rundir}
            chmod 755 /; chmod 700 {self.rundir}; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200; mount -t hugetlbfs none /dev/hugepages""")
        self.devices = [self.run(_DEVICE.format(i)).out.strip() for i in ("eth0", "eth1")]

    def driver_of(self, device):
        return self.run(f"basename $(readlink /sys/bus/pci/devices/{device}/driver)").out.strip()


class PciGateway(InsideGateway):
    program = "roceway-gateway"

    def write_config(self):
        path = super().write_config()
        text = re.sub(r"  args: \[.*\]\n", '  cores: "0"\n', path.read_text())
        for i, device in enumerate(self.guest.devices):
            text = re.sub(rf'device: "net_af_packet{i},[^"]*"', f'device: "{device}"', text)
        path.write_text(text)
        return path


def cables(net, guest):
    for (tap, _), name, dev in zip(guest.nics(), ("lan", "wan"), ("tapa", "wana")):
        sh(IP, "-n", net.gwa, "tuntap", "add", "dev", tap, "mode", "tap")
        sh(IP, "-n", net.gwa, "link", "set", tap, "mtu", MTU_MAX, "txqueuelen", QUEUE, "up")
        bridge(net.gwa, f"br-{name}a", dev, tap)


def uncable(net, guest):
    for dev in ("br-lana", "br-wana", *(tap for tap, _ in guest.nics())):
        sh(IP, "-n", net.gwa, "link", "del", dev, check=False)


@contextlib.contextmanager
def guest_of(lab):
    """The guest, booted, in the place of gateway A, which is stopped; no gateway runs in it yet, and no device is bound."""
    g = PciGuest(lab.net, lab.log)
    try:
        lab.gwa.stop()
        cables(lab.net, g)
        g.boot()
        g.ready(BOOT_MAX)
        g.setup()
        yield g
    finally:
        if g.qemu:
            g.halt()
        uncable(lab.net, g)
        lab.changed()


@contextlib.contextmanager
def gateway_in(lab, guest):
    """The gateway of site A in the guest, ready and with its tunnel up."""
    options = {**DEFAULTS, **lab.gwb.options, "memory": _MEMORY}
    gw = PciGateway("a", lab.net, lab.log, guest, options)
    try:
        gw.start()
        proc.wait_for("the tunnel is up", lambda: all(t["state"] == "up" for t in gw.ask("tunnels")["tunnels"]), 60, 0.5)
        yield gw
    finally:
        if gw.alive():
            for what in ("tunnels --detail", "counters"):
                lab.log(f"[gateway in the guest] roceway {what}: {gw._cli(*what.split())[1]}")
        if gw.job:
            lab.log(f"[gateway in the guest]\n{gw.said()[-6000:]}")
            gw.kill()
