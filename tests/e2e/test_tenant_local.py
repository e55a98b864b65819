# SPDX-License-Identifier: Apache-2.0
# The two sides of one tenant at one site: a host behind a VTEP and one on the VLAN, through their
# gateway. test_tenant.py has two sites.
from lab import TIMEOUT, needs
from lab.copy import Copy
from lab.host import Endpoint
from lab.proc import wait_for
from lab.tenant import Tenant

RED, BLUE = Tenant("red", 5001), Tenant("blue", 5002, hosts=("c", "d"))
VLAN = 103
MIB = 1 << 20


class Tagged(Endpoint):
    """A host of site A on red's VLAN: 172.16.3.2, fd16:3::2. To it red's addresses are one subnet,
    so it resolves all of them."""
    rxe = "rxe0"  # rxe refuses a VLAN device; the one below has the VLAN's addresses among its GIDs

    def __init__(self, host):
        self.host, self.name = host, f"{host.name}.tagged"
        self.ip4, self.ip6 = "172.16.3.2", "fd16:3::2"
        self.gids = {}
        self.run, self.start, self.put, self.get = host.run, host.start, host.put, host.get

    def up(self):
        self.run(f"""set -e; ip link add link eth0 name tagged type vlan id {VLAN}; ip link set tagged up
            ip addr add {self.ip4}/16 dev tagged; ip addr add {self.ip6}/16 dev tagged nodad""")

    def down(self):
        self.run("ip link del tagged", check=False)


@needs(gateway=True, timeout=240, tenants=(RED, BLUE))
def test_tenant_both_sides(lab):
    """A host behind a VTEP and one on the VLAN, one tenant, one site: rcopy and perftest both ways,
    without the engine."""
    vtep, tagged = lab.tenant("red")[0], Tagged(lab.c)
    lab.members.pop(("blue", "a")).down()  # blue is there so that host c runs; its address on c would be that of red's host
    lab.gwa.tenant_set("red", *(f"prefix={p}" for p in ("172.16.1.0/24@vtep", "fd16:1::/64@vtep", "172.16.3.0/24@vlan", "fd16:3::/64@vlan",
                                                        "172.16.2.0/24@site-b", "fd16:2::/64@site-b")), vlan=VLAN, proxy_arp="true")
    tagged.up()
    try:
        # To the VLAN through the gateway's address, back by ARP and ND for the host itself.
        vtep.run(f"ip route add 172.16.3.0/24 via {vtep.gw4} dev red; ip -6 route add fd16:3::/64 via {vtep.gw6} dev red")
        wait_for("the two reach each other", lambda: all(vtep.run(f"ping {v} -c 1 -W 1 {a}", check=False).ok
                                                         for v, a in (("", tagged.ip4), ("-6", tagged.ip6))), 20)
        before = lab.gwa.ask("counters")
        local = lab.gwa.sum("tenant_local")
        for ends in ((vtep, tagged), (tagged, vtep)):
            Copy(lab, ends, 2).check()
            for op, ip in (("write", 4), ("read", 6), ("send", 4)):
                p = lab.perftest(f"ib_{op}_bw", ip=ip, ends=ends, iters=40, timeout=TIMEOUT, size=16384)
                assert p.ok, f"{op}, IPv{ip}, {ends[0].name} to {ends[1].name}: {p.text}"
        lab.log(f"counters: {before}\n{lab.gwa.ask('counters')}")
        assert lab.gwa.sum("tenant_local") - local > 2 * 2 * MIB / 1024
        assert not [f for f in lab.gwa.flows("red") if tagged.ip4 in (f["local"], f["remote"])], lab.gwa.flows("red")
        assert lab.gwa.sum("tx_payload_copied") == 0 and lab.gwa.sum("drop_tenant_bad") == 0
        # The tenant's ACL applies here, too: WRITE from VTEP to VLAN is denied; READ works.
        lab.gwa.tenant_set("red", rule="{action: deny, source: 172.16.1.0/24, destination: 172.16.3.0/24, operations: [write]}")
        denied = lab.gwa.sum("drop_tenant_acl_denied")
        assert not lab.perftest("ib_write_bw", ends=(vtep, tagged), iters=5, timeout=10, size=1024, limit=20).ok
        assert lab.gwa.sum("drop_tenant_acl_denied") > denied
        p = lab.perftest("ib_read_bw", ends=(vtep, tagged), iters=40, timeout=TIMEOUT, size=16384)
        assert p.ok, p.text
    finally:
        tagged.down()
        vtep.run("ip route del 172.16.3.0/24 dev red; ip -6 route del fd16:3::/64 dev red", check=False)
        lab.changed()  # red is not what the lab's options describe
