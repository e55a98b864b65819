# SPDX-License-Identifier: Apache-2.0
# Tenants through one pair of gateways, on real VTEPs and VLANs: data byte-exact, clashing addresses
# and QPNs, counters for each tenant. Changes while traffic runs: test_tenant_live.py. Forgeries:
# test_tenant_forged.py.
from lab import CM_TIMER, TIMEOUT, needs, short
from lab.copy import Copy
from lab.proc import wait_for
from lab.tenant import Tenant

LOSSY = {"rtt_ms": 20, "loss": 1}
RED = Tenant("red", 5001)
BLUE = Tenant("blue", 5002, hosts=("c", "d"))
RED6 = Tenant("red", 5001, underlay=6)
BLUE6 = Tenant("blue", 5002, hosts=("c", "d"), underlay=6)
TAGGED = Tenant("red", 5001, at=("vlan", "vtep"), vlan=101)
TAGGED_BLUE = Tenant("blue", 5002, hosts=("c", "d"), at=("vlan", "vlan"), vlan=102)
MIB = 1 << 20
SLOW = ("limit: 8Mbps",)  # so that transfers of a short test overlap


def copies(lab, mib):
    """rcopy in several tenants at once, {name: MiB}. The devices are new, so each has the same
    sequence of QPs."""
    for m in lab.members.values():
        m.renew()
    lab.counters_mark()
    made = {name: Copy(lab, lab.tenant(name), n, start=False) for name, n in mib.items()}
    for c in made.values():
        c.start()
    return made


def pairs(gateway, name):
    """{(local address, its QPN, remote address, its QPN)} of the paired connections of a tenant at a gateway."""
    return {(f["local"], f["local_qpn"], f["remote"], f["remote_qpn"]) for f in gateway.flows(name) if f["state"] in ("paired", "idle")}


def both(gateway, names):
    seen = {n: pairs(gateway, n) for n in names}
    return all(seen.values()) and seen


def quiet(lab, timer=CM_TIMER, ends=None):
    repeated = lab.host_retransmits(timer, ends=ends)
    assert not repeated, repeated


def clash(lab, red=3, blue=6):
    """rcopy of different sizes in both tenants at once: every byte right, same addresses, same
    QPNs, separate counters."""
    lab.wan(**LOSSY)
    mib = {"red": red, "blue": blue}
    before = {n: lab.gwa.tenant(n) for n in mib}
    running = copies(lab, mib)
    seen = wait_for("both tenants have a connection", lambda: both(lab.gwa, mib), 40)
    lab.log(f"connections at the same time: {seen}")
    assert seen["red"] == seen["blue"], f"these should be the same addresses and QPNs: {seen}"
    for c in running.values():
        c.check()
    for name, n in mib.items():
        took = lab.gwa.tenant(name)["accepted_bytes"] - before[name]["accepted_bytes"]
        assert n * MIB <= took < n * MIB * 1.2, f"{name}: {took} bytes for {n} MiB"
    quiet(lab)


@short
@needs(gateway=True, timeout=180, tenants=(Tenant("red", 5001, more=SLOW), Tenant("blue", 5002, hosts=("c", "d"), more=SLOW)))
def test_tenant_same_addresses(lab):
    """Two tenants on VTEPs with the same addresses and QPNs at the same time."""
    clash(lab, 2, 3)


@needs(gateway=True, timeout=180, tenants=(RED6, BLUE6))
def test_tenant_underlay6(lab):
    """The same, IPv6 underlay."""
    clash(lab)


@needs(gateway=True, timeout=180, tenants=(TAGGED, TAGGED_BLUE))
def test_tenant_vlan(lab):
    """VLAN-tagged hosts: one tenant's against VXLAN hosts of the other site, another tenant's
    tagged at both."""
    clash(lab)


@needs(timeout=180, tenants=(RED, BLUE))
def test_tenant_perftest(lab):
    """WRITE, SEND, READ, ATOMIC and inner IPv6 in a tenant, with random PSNs."""
    lab.wan(**LOSSY)
    ends = lab.tenant("red")
    for op, ip in (("write", 4), ("send", 6), ("read", 4), ("read", 6), ("atomic", 4)):
        how = {} if op == "atomic" else {"size": 16384}
        p = lab.perftest(f"ib_{op}_bw", ip=ip, ends=ends, iters=40, timeout=TIMEOUT, **how)
        assert p.ok, f"{op}, IPv{ip}: {p.text}"
    quiet(lab, timer=None)


@needs(gateway=True, timeout=180, tenants=(TAGGED, BLUE))
def test_tenant_vlan_perftest(lab):
    """The same between a tagged host and one behind a VTEP, both ways."""
    lab.wan(**LOSSY)
    a, b = lab.tenant("red")
    for op, ip, ends in (("write", 4, (a, b)), ("write", 6, (b, a)), ("read", 4, (a, b)), ("atomic", 4, (b, a))):
        how = {} if op == "atomic" else {"size": 16384}
        p = lab.perftest(f"ib_{op}_bw", ip=ip, ends=ends, iters=40, timeout=TIMEOUT, **how)
        assert p.ok, f"{op}, IPv{ip}, {ends[0].name} to {ends[1].name}: {p.text}"
    quiet(lab, timer=None)


@needs(gateway=True, timeout=180, tenants=(RED, BLUE))
def test_tenant_beside_plain(lab):
    """Two hosts without a tenant beside two tenants: none disturbs another."""
    lab.wan(**LOSSY)
    running = copies(lab, {"red": 2, "blue": 2})
    plain = Copy(lab, (lab.a, lab.b), 2, port=7428)
    for c in (plain, *running.values()):
        c.check()
    quiet(lab)
