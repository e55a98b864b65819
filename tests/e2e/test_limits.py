# SPDX-License-Identifier: Apache-2.0
# `roceway flows` names what limits a host's rate. The tests sample it while a transfer runs.
import contextlib
import threading
import time

from lab import needs
from lab.proc import ns_argv, sh


def sampled(lab, seconds=5, size=65536, extra=""):
    """[limits that gateway A names for the flow of ib_write_bw] while it runs for `seconds`, and
    perftest's result."""
    def ours():
        """By their ends: earlier tests' flows are there, too, and a QPN may be used again."""
        said = lab.gwa.ask("flows", "--local", lab.a.ip4, "--remote", lab.b.ip4)["flows"]
        return {(f["local_qpn"], f["remote_qpn"]): f for f in said}

    before, result = {k: f["tx_bytes"] for k, f in ours().items()}, []
    t = threading.Thread(target=lambda: result.append(lab.perftest("ib_write_bw", size=size, seconds=seconds, timeout=22, extra=extra)))
    t.start()
    flows = []
    while t.is_alive():
        moved = [f for k, f in ours().items() if f["tx_bytes"] != before.get(k, 0)]
        if moved:
            flows.append(min(moved, key=lambda f: f["idle_seconds"]))
        time.sleep(0.1)
    t.join()
    assert result and result[0].ok, result
    return [f for f in flows if f["tx_bytes"] > 100000], result[0]


def most(flows):
    said = [f["limit"] for f in flows if f["limit"]]
    return max(set(said), key=said.count), said


@needs(gateway=True, rate="40Mbps", cc="fixed", timeout=90)
def test_limit_path(lab):
    """A tunnel of 40 Mbit/s: `path`, then `memory` or `near-source` once so much waits that ACKs
    are withheld."""
    lab.wan(rtt_ms=20)
    flows, p = sampled(lab)
    what, said = most(flows)
    lab.log(f"limits: {said}; {p.bw:.1f} MB/s")
    assert what in ("path", "memory", "near-source"), said
    assert "path" in said, said


@contextlib.contextmanager
def slow_host(lab, rate):
    """Limits what host B accepts from its gateway."""
    tc = [*ns_argv(lab.net.gwb), "tc", "qdisc"]
    sh(*tc, "replace", "dev", "tapb", "root", "tbf", "rate", rate, "burst", "20k", "limit", "4m")
    try:
        yield
    finally:
        sh(*tc, "del", "dev", "tapb", "root")


@needs(gateway=True, end_to_end="window", timeout=90)
def test_limit_far_host(lab):
    """The far host accepts 16 Mbit/s: `host`, and the far gateway holds little of what waits
    (RATE)."""
    lab.wan(rtt_ms=40)
    with slow_host(lab, "16mbit"):
        flows, p = sampled(lab, 6)
    said = [f["limit"] for f in flows]
    bound = [f for f in flows if f["remote_window"]]
    lab.log(f"limits: {said}; {p.bw:.1f} MB/s; the far host takes {[f['remote_drain_Bps'] for f in bound]} bytes/s, "
            f"under way at most {[f['remote_window'] for f in bound]}")
    assert "host" in said, said
    drains = sorted(f["remote_drain_Bps"] for f in bound if f["remote_drain_Bps"])
    assert 1e6 < drains[len(drains) // 2] < 4e6, drains
    assert bound[-1]["remote_window"] < 1e6, bound[-1]


@needs(gateway=True, timeout=90)
def test_limit_window(lab):
    """Only the host itself is slow, with one message of 1 KiB outstanding: `window`."""
    lab.wan(rtt_ms=20)
    flows, p = sampled(lab, size=1024, extra="-t 1")
    what, said = most(flows)
    lab.log(f"limits: {said}; {p.bw:.1f} MB/s")
    assert what == "window", said
