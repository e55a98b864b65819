# SPDX-License-Identifier: Apache-2.0
# perftest programs over a bad WAN: every operation, size, QP count, MTU, address family and
# bootstrap. The tests assert that they finish and that no host had to retransmit; benchmarks have
# the figures.
from lab import BAD_WAN, TIMEOUT, ci, each, needs, short

OPS = ["send", "write", "read", "atomic"]


def finishes(lab, tool, **how):
    lab.wan(**BAD_WAN)
    p = lab.perftest(tool, timeout=TIMEOUT, **how)
    assert p.ok, p.text
    repeated = lab.host_retransmits()
    assert not repeated, repeated


def sized(op, size):
    return {} if op == "atomic" else {"size": size}


@ci
@short(only="write")
@each(op=OPS)
def test_bw(lab, op):
    """ib_OP_bw, one QP, TCP bootstrap."""
    finishes(lab, f"ib_{op}_bw", iters=200, **sized(op, 65536))


@each(op=OPS)
def test_lat(lab, op):
    """ib_OP_lat."""
    finishes(lab, f"ib_{op}_lat", iters=50, **sized(op, 64))


@each(op=OPS)
def test_cm(lab, op):
    """Connection by rdma_cm (-R)."""
    finishes(lab, f"ib_{op}_bw", iters=200, cm=True, **sized(op, 16384))


@each(op=["send", "write", "read"], size=[1, 3, 255, 256, 1023, 1024, 1025, 4096, 65535, 1048576])
def test_size(lab, op, size):
    """Message sizes from 1 byte to 1 MiB, whole packets and not."""
    finishes(lab, f"ib_{op}_bw", size=size, iters=16 if size > 65536 else 100)


@each(op=OPS)
def test_qps(lab, op):
    """16 QPs."""
    finishes(lab, f"ib_{op}_bw", qps=16, iters=40, **sized(op, 16384))


@each(op=["send", "write", "read"], qps=[1, 16])
def test_bidirectional(lab, op, qps):
    """Both directions at once."""
    finishes(lab, f"ib_{op}_bw", qps=qps, iters=100 // qps + 6, bidir=True, size=32768)


@ci
@needs(mtu=4200)
@each(op=["write"])
def test_mtu4096(lab, op):
    """RoCE MTU 4096 over the 1500-byte underlay."""
    finishes(lab, f"ib_{op}_bw", size=65536, iters=100, mtu=4096)


@needs(mtu=4200)
@each(op=["send", "read", "atomic"])
def test_mtu4096_more(lab, op):
    """RoCE MTU 4096, the other operations."""
    finishes(lab, f"ib_{op}_bw", iters=100, mtu=4096, **sized(op, 65536))


@each(mtu=[256, 512, 1024])
def test_mtu(lab, mtu):
    """Smaller path MTUs."""
    finishes(lab, "ib_write_bw", size=16384, iters=50, mtu=mtu)


@ci(only="write")
@each(op=["write", "read"])
def test_ipv6(lab, op):
    """IPv6 GIDs, TCP bootstrap."""
    finishes(lab, f"ib_{op}_bw", ip=6, size=65536, iters=100)


@each(op=["send", "atomic"])
def test_ipv6_more(lab, op):
    """IPv6 GIDs, the other operations."""
    finishes(lab, f"ib_{op}_bw", ip=6, iters=100, **sized(op, 65536))
