# SPDX-License-Identifier: Apache-2.0
# READs over distance: the host that answers them is asked once, however long it takes. The tests
# assert counters, not rates.
from lab import needs

QPS = 4
READS = 8  # per QP
PACKETS = 1024  # of a READ of 1 MiB at RoCE MTU 1024
TIMEOUT = 18    # 1.07 s: longer than a host has to wait for its turn


@needs(gateway=True, timeout=90)
def test_read_asked_once(lab):
    """4 QPs with READs of 1 MiB at 20 ms, no loss: the far gateway's timer never fires, and few
    responses are useless."""
    names = ("local_ack_timeout_err", "drop_old_response", "implied_nak_seq_err")
    lab.wan(rtt_ms=20)
    before = {n: lab.gwb.sum(n) for n in names}
    p = lab.perftest("ib_read_bw", size=PACKETS * 1024, qps=QPS, iters=READS, timeout=TIMEOUT)
    assert p.ok, p.text
    said = {n: lab.gwb.sum(n) - before[n] for n in names}
    lab.log(f"far gateway: {said}; {p.bw:.1f} MB/s")
    assert said["local_ack_timeout_err"] == 0, said
    # After a response that the lab's own LAN loses, the rest of its READ is useless.
    most = QPS * READS * PACKETS // 100 + PACKETS * said["implied_nak_seq_err"]
    assert said["drop_old_response"] <= most, said
