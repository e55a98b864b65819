# SPDX-License-Identifier: Apache-2.0
# Gateways of two workers that steer by queue pair: two hosts use both workers, whether CM or TCP
# connects their queue pairs. Without CM a host is asked for its first requests once more.
from lab import BAD_WAN, TIMEOUT, ci, each, needs

QPS = 8


def busy(gateway):
    """Requests that each worker has taken into custody."""
    return [c["value"] for c in gateway.get("/v1/counters?workers=1")["counters"] if c["name"] == "accepted"]


@ci(only="write")
@needs(gateway=True, workers=2, steering="qp")
@each(op=["write", "send", "read", "atomic"])
def test_workers(lab, op):
    """ib_OP_bw with 8 QPs, by rdma_cm, then by TCP; then rping."""
    lab.wan(**BAD_WAN)
    size = {} if op == "atomic" else {"size": 16384}
    before = busy(lab.gwa)
    p = lab.perftest(f"ib_{op}_bw", qps=QPS, iters=100, cm=True, timeout=TIMEOUT, **size)
    assert p.ok, p.text
    took = [n - b for n, b in zip(busy(lab.gwa), before)]
    assert min(took) >= 100 * QPS // 4, took
    repeated = lab.host_retransmits()
    assert not repeated, repeated
    before = busy(lab.gwa)
    p = lab.perftest(f"ib_{op}_bw", qps=QPS, iters=100, timeout=TIMEOUT, **size)
    assert p.ok, p.text
    took = [n - b for n, b in zip(busy(lab.gwa), before)]
    assert min(took) >= 100 * QPS // 4, took
    r = lab.pair(f"rping -s -V -C 20 -a {lab.b.ip4} -p 7174", "rping -c -V -C 20 -a {server} -p 7174", port=7174, cm=True, timeout=60)
    assert r.ok, r.text
    repeated = lab.host_retransmits()
    assert sum(repeated.values()) <= 2 * QPS, repeated

