# SPDX-License-Identifier: Apache-2.0
# The lab's hosts: guests with an address on the LAN and a Soft-RoCE device. A test sends from and
# to endpoints: a host itself, or its membership in a tenant (tenant.py).
import ipaddress
import json

from . import image, proc
from .guest import Guest
from .proc import LabError

SITES = {"a": "ac", "b": "bd"}  # hosts of each site; c and d boot only if a test needs them
MACS = {n: f"52:54:00:00:00:0{i}" for i, n in enumerate("abcd", 1)}


def site_of(host):
    return "a" if host in SITES["a"] else "b"


def underlay(host, version=4):
    """A host's address on the LAN."""
    site = site_of(host)
    n, at = "ab".index(site) + 1, 2 + SITES[site].index(host)
    return f"10.{n}.0.{at}" if version == 4 else f"fd00:{n}::{at}"


class Endpoint:
    """An endpoint has a name, ip4, ip6, an RDMA device `rxe`, and a guest's run() and start()."""
    rxe = "rxe0"

    def ip(self, version=4):
        return self.ip4 if version == 4 else self.ip6

    @property
    def port_dir(self):
        return f"/sys/class/infiniband/{self.rxe}/ports/1"

    def gid(self, version=4):
        """The index of the RoCEv2 GID with this endpoint's address."""
        if not self.gids:
            out = self.run(f"cd {self.port_dir}/gids; grep -v -E '^[0:]+$' /dev/null *").out
            for index, _, gid in (line.partition(":") for line in out.splitlines()):
                addr = ipaddress.IPv6Address(gid)
                self.gids[str(addr.ipv4_mapped or addr)] = int(index)
        return self.gids[self.ip(version)]

    def rxe_counters(self):
        return counters_of([self])[self.name]


def counters_of(ends):
    """{name: {counter: value}} of the endpoints' RDMA devices. All hosts read at once, with one
    program each, because they are slow."""
    jobs = [(e.name, e.start(f"grep . {e.port_dir}/hw_counters/*")) for e in ends]
    found = {}
    for name, job in jobs:
        r = job.wait(20)
        if not r.ok:
            raise LabError(f"{name}: no counters: {r.text.strip()[-200:]}")
        found[name] = {k.rsplit("/", 1)[1]: int(v) for k, _, v in (line.partition(":") for line in r.out.splitlines())}
    return found


class Host(Guest, Endpoint):
    """A guest and its place in the topology."""

    def __init__(self, name, net, log):
        self.site = site_of(name)
        n, far = (1, 2) if self.site == "a" else (2, 1)
        super().__init__(name, net.gwa if self.site == "a" else net.gwb, f"tap{name}", MACS[name], net.dir, log)
        self.ip4, self.ip6 = underlay(name), underlay(name, 6)
        self.gw4, self.gw6 = f"10.{n}.0.1", f"fd00:{n}::1"
        self.far4, self.far6 = f"10.{far}.0.0/24", f"fd00:{far}::/64"
        self.gids = {}

    def setup(self):
        """Sets addresses and Soft-RoCE, once after boot. The queue is a plain one, since fq_codel
        drops part of a burst of 16 QPs, and the tests count every repeated packet as lost on the
        WAN."""
        self.run(f"""set -e; ip link set eth0 mtu 1500 up; ip addr add {self.ip4}/24 dev eth0
            ip addr add {self.ip6}/64 dev eth0 nodad; tc qdisc replace dev eth0 root pfifo limit 20000; rdma link add rxe0 type rxe netdev eth0; mkdir -p /tmp/t""")

    def _device_counts(self):
        """Packets that came out of its device, went into it, and arrived in the guest. A LabError if
        the cable is out."""
        tap = json.loads(proc.sh(*proc.ns_argv(self.netns), "ip", "-j", "-s", "link", "show", "dev", self.tap))[0]
        if "UP" not in tap["flags"]:
            raise LabError(f"{self.tap} is down")
        inside = int(self.run("cat /sys/class/net/eth0/statistics/rx_packets").out)
        return tap["stats64"]["rx"]["packets"], tap["stats64"]["tx"]["packets"], inside

    def device_dead(self):
        """Whether its network device stands still: pings do not come out of it, or packets that go
        in do not arrive. Who answers the pings does not matter."""
        try:
            before = self._device_counts()
            self.run(f"ping -c 3 -W 1 {self.gw4}; ip neigh flush dev eth0; ping -c 3 -W 1 {self.gw4}", check=False)
            out, into, arrived = (b - a for a, b in zip(before, self._device_counts()))
        except LabError:
            return False
        return not out or (into > 0 and not arrived)

    def describe_device(self):
        """Logs what its network device did."""
        self.run("ip -s -s link show dev eth0; ip neigh; tc -s qdisc show dev eth0; grep virtio /proc/interrupts; dmesg | tail -n 30", check=False)

    def modules(self):
        """Loads the modules of kernel clients, once."""
        self.run("""set -e; [ -d /sys/module/nvme_rdma ] || while read -r m; do
            o=; [ ${m##*/} != brd.ko ] || o="rd_nr=1 rd_size=32768"; insmod $m $o; done </etc/modules.later""", timeout=60)

    def program(self, path):
        """Puts a program of this machine, with its libraries, into the guest, once; returns the words that start it."""
        folder = f"/run/{path.name}"
        if not self.run(f"ls {folder}/{path.name} 2>/dev/null; true").out:
            self.run(f"mkdir -p {folder}")
            self.put(image.program_archive(path), f"{folder}/tar", timeout=120)
            self.run(f"cd {folder} && gunzip -c tar | tar -x && rm tar", timeout=120)
        return f"LD_LIBRARY_PATH={folder} {folder}/{path.name}"

    def fio(self):
        """The words that start fio."""
        return self.program(image.FIO)

    def route(self, native, mtu):
        """Sets the route to the other site: through the gateway, or on the link for native runs."""
        via4, via6 = ("", "") if native else (f"via {self.gw4}", f"via {self.gw6}")
        self.run(f"""set -e; ip link set eth0 mtu {mtu}; ip route replace {self.far4} {via4} dev eth0
            ip -6 route replace {self.far6} {via6} dev eth0; ip neigh flush dev eth0""")
        self.gids = {}
