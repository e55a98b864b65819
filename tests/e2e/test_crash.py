# SPDX-License-Identifier: Apache-2.0
# Custody: whatever dies, a transfer ends byte-exact or its QP reports an error; never wrong data,
# never a hang. Afterwards a new connection works. QP timeout 18 with 7 retries: a host gives up
# after some 9 s.
import time

from lab import ci, each, needs, short

EXACT, QP_ERROR = 0, 3  # exit codes of rwy_ncclish


def under_way(lab, extra="--timeout 18"):
    lab.wan(rtt_ms=20, loss=0.5)
    t = lab.nccl_start(qps=4, steps=200, extra=extra)
    lab.wait_traffic(1000)
    return t


def exact_or_error(lab, t):
    r = t.wait()
    assert r.client.code in (EXACT, QP_ERROR), r
    # 143: it was told to stop, since its client had reported the error
    assert r.server.code in (EXACT, QP_ERROR, 143), r
    lab.wait_path()
    again = lab.nccl(qps=2, steps=8)
    assert again.ok, f"afterwards: {again}"
    return r


def silent(gateway, seconds=0.4):
    """Waits until a gateway has accepted nothing from its hosts for this time; the hosts' RoCE
    timers are 1 s here."""
    taken, since = None, time.monotonic()
    while time.monotonic() - since < seconds:
        now = gateway.ask("counters", "--all")["counters"]
        now = sum(c["value"] for c in now if c["name"] == "accepted")
        if now != taken:
            taken, since = now, time.monotonic()
        time.sleep(0.05)


@short(again=True, only="far")
@needs(gateway=True, timeout=120)
@each(which=["far", "near"])
def test_gateway_killed(lab, which):
    """SIGKILL of a gateway during a transfer, and its restart."""
    t = under_way(lab)
    gateway = lab.gwb if which == "far" else lab.gwa
    gateway.kill()
    gateway.start()
    exact_or_error(lab, t)


@ci(only="near")
@needs(gateway=True, timeout=120)
@each(which=["near", "both", "machine"])
def test_custody_lost(lab, which):
    """A gateway dies with acknowledged data while the hosts wait for each other: an error, no hang.

    With its machine the journal is lost, too: only the far gateway knows of the connection."""
    t = under_way(lab)
    lab.outage(3, wait=False)
    silent(lab.gwa)  # all that the sender may have outstanding is in custody now, and acknowledged
    gateways = lab.gateways if which == "both" else [lab.gwa]
    for g in gateways:
        g.kill()
        if which == "machine":
            g.forget()
    for g in gateways:
        g.start()
    r = exact_or_error(lab, t)
    assert QP_ERROR in (r.client.code, r.server.code), f"what was lost cannot have arrived: {r}"


@needs(gateway=True, timeout=120)
def test_both_gateways_killed(lab):
    """SIGKILL of both gateways during a transfer, and their restart."""
    t = under_way(lab)
    for g in lab.gateways:
        g.kill()
    for g in lab.gateways:
        g.start()
    exact_or_error(lab, t)


@ci
@needs(timeout=120)
def test_outage(lab):
    """3 s without WAN during a transfer: shorter than the hosts' retries, so the transfer
    completes."""
    t = under_way(lab)
    lab.outage(3)
    r = t.wait()
    assert r.ok, r


@needs(timeout=120)
def test_outage_rcopy(lab):
    """3 s without WAN during rcopy: equal checksums."""
    lab.wan(rtt_ms=20, loss=0.5)
    lab.a.run("dd if=/dev/urandom of=/tmp/t/src bs=1M count=24")
    server = lab.serve("rcopy -p 7427", port=7427, cm=True)
    copy = lab.a.start(f"rcopy /tmp/t/src {lab.b.ip4}:/tmp/t/dst -p 7427")
    lab.wait_traffic(1000)
    lab.outage(3)
    done = copy.wait(60)
    server.kill()
    assert done.ok, done
    sums = [h.run(f"sha256sum <{f}; rm {f}").out for h, f in ((lab.a, "/tmp/t/src"), (lab.b, "/tmp/t/dst"))]
    assert sums[0] == sums[1], sums
