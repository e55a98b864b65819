# SPDX-License-Identifier: Apache-2.0
# Tenants in the lab: the tenant, its part of a gateway's configuration, and a host's membership,
# which is a Soft-RoCE device on the guest's own `vxlan` device (a VTEP), or on a VLAN of eth0. All
# tenants have the same addresses:
#
#   172.16.1.2, fd16:1::2 at site A, 172.16.2.2, fd16:2::2 at site B; the gateways' own are
#   172.16.1.1, fd16:1::1 and so on
from dataclasses import dataclass

from .host import Endpoint, underlay

NUMBER = {"a": 1, "b": 2}
FAR = {"a": "b", "b": "a"}


@dataclass(frozen=True, order=True)
class Tenant:
    """hosts: its host at each site; at: how each is attached, "vtep" or "vlan"; underlay: IP
    version between host and gateway; more: further keys of its configuration on both gateways, as
    YAML lines; here: ((site, lines), ...) for one gateway only."""
    name: str
    vni: int
    hosts: tuple = ("a", "b")
    at: tuple = ("vtep", "vtep")
    vlan: int = 0
    underlay: int = 4
    more: tuple = ()
    here: tuple = ()

    def yaml(self, site):
        """The entry of tenants[] for this site's gateway."""
        return "  - " + "\n    ".join(self.keys(site).splitlines()) + "\n"

    def keys(self, site):
        """Its keys alone."""
        here, far = NUMBER[site], NUMBER[FAR[site]]
        at = self.at[here - 1]
        lines = [f"name: {self.name}", f"vni: {self.vni}"] + ([f"vlan: {self.vlan}"] if at == "vlan" else [])
        lines += ["prefixes:"]
        lines += [f"  - {{prefix: {p}, at: {w}}}" for p, w in ((f"172.16.{here}.0/24", at), (f'"fd16:{here}::/64"', at),
                  (f"172.16.{far}.0/24", f"site-{FAR[site]}"), (f'"fd16:{far}::/64"', f"site-{FAR[site]}"))]
        lines += [f'vteps: ["{underlay(self.hosts[here - 1], self.underlay)}"]'] if at == "vtep" else []
        lines += [f'gateway_addresses: [172.16.{here}.1, "fd16:{here}::1"]', *self.more, *dict(self.here).get(site, ())]
        return "\n".join(lines) + "\n"


class Member(Endpoint):
    """A host as a member of a tenant."""

    def __init__(self, tenant, host):
        self.tenant, self.host = tenant, host
        self.name = f"{host.name}.{tenant.name}"
        self.site, n = host.site, NUMBER[host.site]
        self.vtep = tenant.at[n - 1] == "vtep"
        self.dev = tenant.name
        self.ip4, self.ip6 = f"172.16.{n}.2", f"fd16:{n}::2"
        self.gw4, self.gw6 = f"172.16.{n}.1", f"fd16:{n}::1"
        self.far4, self.far6 = f"172.16.{3 - n}.0/24", f"fd16:{3 - n}::/64"
        # rxe refuses a VLAN device; the device below it has the VLAN's addresses among its GIDs.
        self.rxe = f"rxe-{tenant.name}" if self.vtep else "rxe0"
        self.gids = {}
        self.run, self.start, self.put, self.get = host.run, host.start, host.put, host.get

    def up(self, mtu, peer=None):
        """Makes the device. The other side of it is the gateway or, for native runs, the other
        member's host."""
        v = self.tenant.underlay
        remote = peer.host.ip(v) if peer else (self.host.gw4 if v == 4 else self.host.gw6)
        # Without `dev eth0`, because with it the addresses become GIDs of rxe0, too, and rdma_cm
        # uses that device.
        make = (f"ip link add {self.dev} type vxlan id {self.tenant.vni} local {self.host.ip(v)} remote {remote} dstport 4789"
                + (" udp6zerocsumrx" if v == 6 else "")) if self.vtep else f"ip link add link eth0 name {self.dev} type vlan id {self.tenant.vlan}"
        via4, via6 = ("", "") if peer else (f"via {self.gw4}", f"via {self.gw6}")
        overhead = 0 if not self.vtep else 50 if v == 4 else 70
        self.run(f"""set -e; {make}; ip link set {self.dev} mtu {mtu - overhead} up
            ip addr add {self.ip4}/24 dev {self.dev}; ip addr add {self.ip6}/64 dev {self.dev} nodad
            ip route add {self.far4} {via4} dev {self.dev}; ip -6 route add {self.far6} {via6} dev {self.dev}
            {f"rdma link add {self.rxe} type rxe netdev {self.dev}" if self.vtep else ""}""")

    def down(self):
        self.run((f"rdma link del {self.rxe}; " if self.vtep else "") + f"ip link del {self.dev}", check=False)

    def renew(self):
        """Makes a new RDMA device, whose QPNs begin with the first one again."""
        dev = self.dev if self.vtep else "eth0"
        self.run(f"set -e; rdma link del {self.rxe}; rdma link add {self.rxe} type rxe netdev {dev}")
        self.gids = {}
