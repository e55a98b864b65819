# SPDX-License-Identifier: Apache-2.0
# The near gateway's answers on the wire between it and its host.
from lab import needs, pcap


@needs(gateway=True)
def test_near_ack(lab):
    """On an idle gateway the host has its ACK within 1 ms (p99), 20 ms from the far host, and never
    an RNR NAK."""
    lab.wan(rtt_ms=20)
    best = min(ack_p99(lab) for _ in range(3))  # other programs on this machine delay some runs
    assert best < 1e-3, f"p99 {best * 1e3:.3f} ms in the best of three runs"


def ack_p99(lab):
    with lab.capture("tapa") as wire:
        p = lab.perftest("ib_write_bw", size=1024, iters=600, timeout=22, extra="-t 1")
    assert p.ok, p.text
    delays = sorted(pcap.ack_delays(wire, lab.a.ip4))
    assert len(delays) >= 600
    assert not any(x.rnr_nak for x in pcap.roce(wire))
    p50, p99 = (delays[int(len(delays) * q)] for q in (0.5, 0.99))
    lab.log(f"ACK after: p50 {p50 * 1e3:.3f} ms, p99 {p99 * 1e3:.3f} ms, {len(delays)} of them")
    return p99
