# SPDX-License-Identifier: Apache-2.0
# The near gateway's answers on the wire between it and its host.
from lab import needs, pcap


RTT_MS = 20


@needs(gateway=True)
def test_near_ack(lab):
    """The near gateway acknowledges, not the far host: half of the ACKs come within a quarter of the
    round trip. The host never gets an RNR NAK."""
    lab.wan(rtt_ms=RTT_MS)
    with lab.capture("tapa") as wire:
        p = lab.perftest("ib_write_bw", size=1024, iters=600, timeout=22, extra="-t 1")
    assert p.ok, p.text
    delays = sorted(pcap.ack_delays(wire, lab.a.ip4))
    assert len(delays) >= 600
    assert not any(x.rnr_nak for x in pcap.roce(wire))
    p50, p99 = (delays[int(len(delays) * q)] * 1e3 for q in (0.5, 0.99))
    lab.log(f"ACK after: p50 {p50:.3f} ms, p99 {p99:.3f} ms, {len(delays)} of them")
    assert p50 < RTT_MS / 4, f"half of the ACKs need {p50:.3f} ms"
