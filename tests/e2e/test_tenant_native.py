# SPDX-License-Identifier: Apache-2.0
# The hosts' side of tenants without a gateway: RoCE over the kernel's own VXLAN devices, guest to
# guest, as a foreign packet dissector sees it. A failure here is the lab's fault.
from lab import needs
from lab.copy import Copy
from lab.dissect import fields
from lab.tenant import Tenant

RED = Tenant("red", 5001)
RED6 = Tenant("red", 5001, underlay=6)


def vxlan_runs(lab, ether_ip):
    ends = lab.tenant("red")
    with lab.capture("tapa") as wire:
        p = lab.perftest("ib_write_bw", ends=ends, size=65536, iters=20, timeout=22)
        assert p.ok, p.text
        Copy(lab, ends, mib=1).check()
    got = set(fields(wire, "infiniband.bth.opcode", "vxlan.vni", f"{ether_ip}.src"))
    assert {vni for _, vni, _ in got} == {"5001"}, got
    assert len(got) > 4, got


@needs(native=True, timeout=120, tenants=(RED,))
def test_tenant_native_vxlan4(lab):
    """ib_write_bw and rcopy over the guests' vxlan devices, IPv4 underlay."""
    vxlan_runs(lab, "ip")


@needs(native=True, timeout=120, tenants=(RED6,))
def test_tenant_native_vxlan6(lab):
    """The same, IPv6 underlay without UDP checksums."""
    vxlan_runs(lab, "ipv6")
