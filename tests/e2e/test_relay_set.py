# SPDX-License-Identifier: Apache-2.0
# The same set of programs by each carrier of the relays' own segment: by the listen map, by
# librwyredirect, by librwyverbs. The kernel's clients are in test_relay_kernel.py.
import contextlib

from lab import CM_TIMER, each, needs
from lab.copy import Copy
from lab.inside import ASIDE, inside
from lab.proc import wait_for
from test_carrier import both
from test_proxy import PORTS, apart, rping, ucmatose
from test_relay_run import TOOLS, by_cm, ncclish, rsockets, verbs_perftest


def listed(lab):
    """By the listen map."""
    for ip in (4, 6):
        rping(lab, 20, ip)
    ucmatose(lab)
    for src, dst in ((lab.a, lab.b), (lab.b, lab.a)):
        Copy(lab, (src, dst), mib=4, to=src.gw4).check(90)


def the_set(lab, at, steps=64):
    """`at`: the address by which host A reaches host B's TCP ports; `steps` of rwy_ncclish."""
    parts = [("listen map", listed, (lab,), {})]
    parts += [(tool, rsockets, (lab, tool, 4), {}) for tool in ("rstream", "riostream")]
    parts += [(f"{tool} -R, {qps}", by_cm, (lab, tool, qps), {}) for tool, qps in TOOLS]
    parts += [(f"{tool}, {qps}", verbs_perftest, (lab, tool, qps), {"at": at}) for tool, qps in TOOLS]
    parts += [(f"rwy_ncclish, {qps}", ncclish, (lab, qps, steps), {"at": at}) for qps in (1, 16)]
    for name, part, words, more in parts:
        lab.log(f"the set: {name}")
        part(*words, **more)


def stayed(relays, carrier):
    for r in relays:
        c = r.carrier()
        assert c["sending"] == carrier and not c["fallbacks"] and not c["refused_malformed"], c


@each(carrier=["native", "tcp", "quic"])
@needs(gateway=True, relay=PORTS, carrier=lambda carrier: carrier, timeout=400)
def test_relay_set(lab, carrier):
    """rping, ucmatose, rcopy, rstream, riostream, perftest with and without -R, rwy_ncclish."""
    apart(lab)
    wait_for(f"both relays send by {carrier}", lambda: both(lab, carrier), 20, 0.1)
    the_set(lab, "10.1.0.1")
    stayed(lab.gateways, carrier)
    again = lab.host_retransmits(timer=CM_TIMER, qps=16)
    assert not again, again


@contextlib.contextmanager
def by_rdma(lab):
    """Relays that speak RDMA to each other, at 20 ms, and do so until the end."""
    with inside(lab, carrier="rdma") as i:
        i.mid.set(rtt_ms=20)
        i.until("rdma")
        yield i
        stayed(i.relays, "rdma")


@needs(gateway=True, relay=PORTS, timeout=600)
def test_relay_set_rdma(lab):
    """The same set between relays that speak RDMA to each other."""
    apart(lab)
    with by_rdma(lab):
        the_set(lab, ASIDE["a"], steps=8)  # a relay in a guest carries 0.5 MB/s
