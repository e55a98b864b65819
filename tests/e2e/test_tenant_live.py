# SPDX-License-Identifier: Apache-2.0
# Tenants that are added, changed and removed while another's traffic runs, by the local API and by
# SIGHUP; and gateways that die.
import time

from lab import CM_TIMER, TIMEOUT, each, needs
from lab.copy import Copy
from lab.proc import wait_for
from lab.tenant import Tenant

RED = Tenant("red", 5001)
BLUE = Tenant("blue", 5002, hosts=("c", "d"))
SLOW_RED = Tenant("red", 5001, more=("limit: 8Mbps",))  # 1 MB/s, so that a transfer takes its time
SLOW = Tenant("blue", 5002, hosts=("c", "d"), more=("limit: 8Mbps",))
# exit codes of rwy_ncclish; TOLD: to stop, because its client had reported the error
EXACT, QP_ERROR, TOLD = 0, 3, 143
LIMIT = 1_000_000  # bytes per second


def under_way(lab, name, packets=50):
    """Waits until a transfer of this tenant runs: so many packets of a connection are delivered."""
    wait_for(f"{name} sends", lambda: any(f["rx_packets"] + f["tx_packets"] > packets for f in lab.gwb.flows(name)), 40)


def reaches(lab, ends, seconds=1):
    return ends[0].start(f"ping -c 1 -W {seconds} {ends[1].ip4}").wait(seconds + 5).ok


@needs(gateway=True, timeout=240, tenants=(RED, SLOW))
def test_tenant_add_del(lab):
    """A tenant is removed, added and changed through the API during another's transfer, which loses
    no packet."""
    lab.wan(rtt_ms=20, loss=1)
    red, blue = lab.tenant("red"), Copy(lab, lab.tenant("blue"), 24)
    under_way(lab, "blue")
    try:
        for g in lab.gateways:
            g.tenant_del("red")
        assert not reaches(lab, red), "removed, and it goes on"
        for g in lab.gateways:
            g.tenant_add(RED)
        wait_for("red reaches its far host", lambda: reaches(lab, red), 20)
        for g in lab.gateways:
            g.tenant_set("red", weight=3)
            assert g.tenant("red")["weight"] == 3
        p = lab.perftest("ib_write_bw", ends=red, size=16384, iters=40, timeout=TIMEOUT)
        assert p.ok, p.text
        assert blue.running(), "blue was done before the changes were: they prove nothing"
        blue.check()
    finally:
        lab.changed()
    repeated = lab.host_retransmits(CM_TIMER, ends=lab.tenant("blue"))
    assert not repeated, repeated


def rate(gateway, name, seconds):
    """Bytes per second of a tenant to its hosts behind this gateway."""
    begin, from_ = time.monotonic(), gateway.tenant(name)["tx_bytes"]
    time.sleep(seconds)
    return (gateway.tenant(name)["tx_bytes"] - from_) / (time.monotonic() - begin)


@needs(gateway=True, timeout=240, tenants=(RED, BLUE))
def test_tenant_limit(lab):
    """A limit is set through the API during a transfer: the rate follows within a second, also when
    the limit goes; another tenant does not notice."""
    lab.wan(rtt_ms=20)
    red, blue = lab.tenant("red"), Copy(lab, lab.tenant("blue"), 2)
    run = lab.nccl_start(qps=1, steps=4000, extra=f"--timeout {TIMEOUT}", limit=60, ends=red)
    under_way(lab, "red", 200)
    free = rate(lab.gwb, "red", 2)
    try:
        lab.gwa.tenant_set("red", limit=f"{LIMIT * 8 // 1000}kbps")
        time.sleep(1)
        bound = rate(lab.gwb, "red", 2)
        lab.gwa.tenant_set("red", limit="none")
        time.sleep(1)
        again = rate(lab.gwb, "red", 2)
        lab.log(f"bytes/s: {free:.0f} free, {bound:.0f} limited to {LIMIT}, {again:.0f} afterwards")
        assert free > 1.5 * LIMIT, f"{free:.0f} bytes/s: too slow to see a limit of {LIMIT}"
        assert 0.5 * LIMIT < bound < 1.15 * LIMIT, f"{bound:.0f} bytes/s with a limit of {LIMIT}"
        assert again > 1.5 * LIMIT, f"{again:.0f} bytes/s without the limit"
        blue.check()
    finally:
        run.client.kill()
        lab.changed()
    repeated = lab.host_retransmits(CM_TIMER, ends=lab.tenant("blue"))
    assert not repeated, repeated


@needs(gateway=True, timeout=240, tenants=(SLOW_RED, SLOW))
def test_tenant_reload(lab):
    """SIGHUP with one changed and one new tenant: no connection is dropped, nothing repeated; a bad
    file changes nothing."""
    lab.wan(rtt_ms=20, loss=1)
    running = [Copy(lab, lab.tenant(n), 12) for n in ("red", "blue")]
    for n in ("red", "blue"):
        under_way(lab, n)
    changed = Tenant("red", 5001, more=("limit: 8Mbps", "weight: 7"))
    green = Tenant("green", 5003)
    for g in lab.gateways:
        g.reload(tenants=(changed, SLOW, green))
    for g in lab.gateways:
        wait_for("green is there", lambda g=g: any(t["name"] == "green" for t in g.ask("tenant", "show")["tenants"]), 10)
        assert g.tenant("red")["weight"] == 7
        g.reload(tenants=(changed, SLOW, Tenant("twice", 5002)))
    assert all(c.running() for c in running), "done before the reload was: it proves nothing"
    for c in running:
        c.check()
    for g in lab.gateways:
        names = {t["name"] for t in g.ask("tenant", "show")["tenants"]}
        assert names == {"red", "blue", "green"}, f"a VNI used twice, and {names}"
        assert "5002" in g.log_file.read_text(errors="replace"), "the refusal is not in the log"
    repeated = lab.host_retransmits(CM_TIMER)
    assert not repeated, repeated


@needs(gateway=True, timeout=240, tenants=(RED, BLUE))
@each(which=["far", "near"])
def test_tenant_gateway_killed(lab, which):
    """SIGKILL of a gateway with two tenants during transfers, and its restart: exact, or an error;
    then all works again."""
    lab.wan(rtt_ms=20, loss=0.5)
    names = ("red", "blue")
    running = {n: lab.nccl_start(qps=2, steps=100, extra="--timeout 18", ends=lab.tenant(n)) for n in names}
    for n in names:
        under_way(lab, n, 200)
    gateway = lab.gwb if which == "far" else lab.gwa
    gateway.kill()
    gateway.start()
    for n, t in running.items():
        r = t.wait()
        assert r.client.code in (EXACT, QP_ERROR), f"{n}: {r}"
        assert r.server.code in (EXACT, QP_ERROR, TOLD), f"{n}: {r}"
        lab.log(f"{n}: exit {r.client.code}, {r.server.code}")
    lab.wait_path()
    for n in names:
        again = lab.nccl(qps=2, steps=8, ends=lab.tenant(n))
        assert again.ok, f"{n} afterwards: {again}"
