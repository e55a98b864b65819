# SPDX-License-Identifier: Apache-2.0
# Relays in guests, with a Soft-RoCE device for the network between them, which no kernel of a lab machine has: a third cable,
# `mid`, with a WAN of its own. The relays on this machine stop meanwhile.
#
#   gwa: tapa (host A) - br-lana - rla | relay guest RA | rwa - br-wana - wana
#                                      |                | rma - br-mida - wan2a      wan: w2a, w2b: the emulated WAN of `mid`
#   the same at site B. In the guest the interfaces have the names that Gateway.write_config() knows; `mid` has 203.0.113.1 or .2.
import contextlib

from . import image, proc
from .gateway import DEFAULTS, Gateway, certificates
from .guest import Guest
from .net import IP, MTU_MAX, QUEUE
from .proc import LabError, sh
from .wan import Wan

MEMORY = "memory: {buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}\n"  # starts in seconds
ASIDE = {"a": "192.168.1.1", "b": "192.168.2.1"}
# What DPDK wants: its run folder, a root folder that not all may write, and taps. {}: the run folder.
ROOM = "mkdir -p /dev/net /var/run {0}; chmod 755 /; chmod 700 {0}; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200"
BOOT_MAX = 180  # s: its archive is ten times a host's


class RelayGuest(Guest):
    memory = 768

    def __init__(self, side, net, log):
        super().__init__(f"r{side}", net.gwa if side == "a" else net.gwb, None, None, net.dir, log)
        self.side, self.site = side, "ab".index(side) + 1

    def nics(self):
        return [(f"r{kind}{self.side}", f"52:54:00:00:{self.site:02x}:{i:02x}") for i, kind in enumerate("lwm")]

    def archive(self, kdir):
        return image.relay_initramfs(kdir)

    def setup(self):
        """Names, the driver of the relay's taps, and the RDMA device of `mid`, with a plain queue as the hosts'."""
        self.run(f"""set -e; ip link set eth0 name tap{self.side}; ip link set eth1 name wan{self.side}; ip link set eth2 name mid
            for d in tap{self.side} wan{self.side} mid; do ip link set $d mtu 1500 up; done
            while read -r m; do insmod $m; done </etc/modules.relay; {ROOM.format(self.rundir)}
            tc qdisc replace dev mid root pfifo limit 20000; ip addr add 203.0.113.{self.site}/24 dev mid
            rdma link add rxe0 type rxe netdev mid""")

    def rxe_counters(self):
        r = self.run("grep . /sys/class/infiniband/rxe0/ports/1/hw_counters/*")
        return {k.rsplit("/", 1)[1]: int(v) for k, _, v in (line.partition(":") for line in r.out.splitlines())}


class InsideGateway(Gateway):
    """A relay, or another `program`, that runs in a guest."""
    program = "roceway-proxy"

    def __init__(self, side, net, log, guest, options):
        super().__init__(side, net, log)
        self.guest, self.options, self.job = guest, options, None

    def start(self, wait=True):
        path = self.write_config()
        self.guest.put(path.read_bytes(), str(path))
        if self.options["security"] == "keys":
            self._put_certificates()
        self.job = self.guest.start(f"{self.program} --config {path} 2>&1")
        if wait:
            self.wait_ready()

    def _put_certificates(self):
        folder = certificates(self.net)
        self.guest.run(f"mkdir -p {folder}")
        for name in ("ca.pem", "crl.pem", f"site-{self.side}.pem", f"site-{self.side}.key"):
            self.guest.put((folder / name).read_bytes(), f"{folder}/{name}")
            self.guest.run(f"chmod 600 {folder}/{name}")

    def alive(self):
        return self.job is not None and not self.job.done.is_set()

    def wait_ready(self, seconds=120):
        proc.wait_for(f"relay {self.side}: ready", lambda: not self.alive() or " ready" in self.said(), seconds, 0.2)
        if not self.alive():
            raise LabError(f"relay {self.side}: ended: {self.job.out.decode(errors='replace')[-800:]}")

    def _cli(self, *words, timeout=20):
        r = self.guest.start("roceway --socket " + " ".join(f"'{w}'" for w in (self.sock, *words))).wait(timeout)
        return r.code, r.out, r.err

    def said(self):
        return self.job.out.decode(errors="replace") if self.job else ""

    def kill(self):
        """SIGKILL; start() begins it anew."""
        self.job.kill()
        self.job.done.wait(10)


def bridge(ns, name, *devs):
    sh(IP, "-n", ns, "link", "add", name, "type", "bridge", "mcast_snooping", "0", "ageing_time", "0", "forward_delay", "0", "stp_state", "0")
    for d in devs:
        sh(IP, "-n", ns, "link", "set", d, "master", name)
    sh(IP, "-n", ns, "link", "set", name, "mtu", MTU_MAX, "up")


class Inside:
    def __init__(self, lab, **options):
        self.lab, self.net, self.log = lab, lab.net, lab.log
        self.mid = Wan(lab.net, lab.log, devs=("w2a", "w2b"), name="wanem-mid")
        options = {**DEFAULTS, "relay": lab.gwa.options["relay"], "security": "none", "rdma": True, "eal_mb": 128, "memory": MEMORY, **options}
        self.guests = [RelayGuest(side, lab.net, lab.log) for side in "ab"]
        self.a, self.b = self.relays = [InsideGateway(g.side, lab.net, lab.log, g, options) for g in self.guests]

    def _cables(self):
        for g in self.guests:
            s = g.side
            sh(IP, "-n", g.netns, "link", "add", f"wan2{s}", "type", "veth", "peer", "name", f"w2{s}", "netns", self.net.wan)
            for ns, dev in ((g.netns, f"wan2{s}"), (self.net.wan, f"w2{s}")):
                sh(IP, "-n", ns, "link", "set", dev, "mtu", MTU_MAX, "up")
            for (tap, _), name, dev in zip(g.nics(), ("lan", "wan", "mid"), (f"tap{s}", f"wan{s}", f"wan2{s}")):
                sh(IP, "-n", g.netns, "tuntap", "add", "dev", tap, "mode", "tap")
                sh(IP, "-n", g.netns, "link", "set", tap, "mtu", MTU_MAX, "txqueuelen", QUEUE, "up")
                bridge(g.netns, f"br-{name}{s}", dev, tap)
            # The site's machine has an address of its own there: programs' TCP goes by it
            # (tcp.py), since the relay carries none.
            host = self.lab.a if s == "a" else self.lab.b
            sh(IP, "-n", g.netns, "addr", "add", f"{ASIDE[s]}/32", "dev", f"br-lan{s}")
            sh(IP, "-n", g.netns, "route", "add", f"{host.ip4}/32", "dev", f"br-lan{s}", "src", ASIDE[s])

    def build(self):
        self.lab.gateways_stop()
        self._cables()
        self.mid.start()
        for g in self.guests:
            g.boot()
        for g in self.guests:
            g.ready(BOOT_MAX)
            g.setup()
        for r in self.relays:
            r.start(wait=False)
        for r in self.relays:
            r.wait_ready()
        proc.wait_for("the tunnel is up", lambda: all(t["state"] == "up" for r in self.relays for t in r.ask("tunnels")["tunnels"]), 60, 0.5)
        for h in (self.lab.a, self.lab.b):
            h.run("ip neigh flush dev eth0")  # it still knows the relay on this machine
            for address in (h.gw4, h.gw6):
                r = h.start(f"until ping -c 1 -W 1 {address}; do usleep 50000; done").wait(30)
                if not r.ok:
                    raise LabError(f"{h.name} cannot reach its relay: {r.text.strip()[-300:]}")
            h.run(f"ip route replace {ASIDE[h.site]}/32 dev eth0 src {h.ip4}")

    def close(self):
        for r in self.relays:
            if r.alive():
                for what in ("tunnels --detail", "links", "counters"):
                    self.log(f"[relay {r.side}] roceway {what}: {r._cli(*what.split())[1]}")
            if r.job:
                self.log(f"[relay {r.side}]\n{r.said()[-6000:]}")
        for g in self.guests:
            if g.qemu:
                g.halt()
            for name in ("lan", "wan", "mid"):
                sh(IP, "-n", g.netns, "link", "del", f"br-{name}{g.side}", check=False)
            for dev in (f"wan2{g.side}", *(tap for tap, _ in g.nics())):
                sh(IP, "-n", g.netns, "link", "del", dev, check=False)
        self.mid.stop()
        self.lab.changed()

    def both(self, carrier):
        """True if both relays send by this carrier."""
        return all(r.carrier()["sending"] == carrier for r in self.relays)

    def until(self, carrier, seconds=40):
        proc.wait_for(f"both relays send by {carrier}", lambda: self.both(carrier), seconds, 0.3)


@contextlib.contextmanager
def inside(lab, **options):
    """Relays in guests, with these options besides the lab's defaults; without keys unless they say so."""
    i = Inside(lab, **options)
    try:
        i.build()
        yield i
    finally:
        i.close()
