# SPDX-License-Identifier: Apache-2.0
# `roceway analyze` names what limits a queue pair of Soft-RoCE, in captures of real hosts: natively
# and through gateways. tests/component/analyze_limits.py has more limits, of model hosts.
import json
import subprocess

from lab import each, needs, perftest
from lab.net import IP
from lab.proc import sh
from test_relay_errors import PORT

RTT = 20
LONG = 21  # local ACK timeout: 8.6 s, longer than any repair takes


def findings(lab, path):
    """The findings of the flow with most packets, as words; the first is the limit."""
    r = subprocess.run([lab.net.bin / "roceway", "analyze", path, "--json"], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stderr
    flow = max(json.loads(r.stdout)["flows"], key=lambda f: f["counters"]["packets"])
    lab.log(f"{flow['counters']}\n" + "\n".join(str(f) for f in flow["findings"]))
    return [f["word"] for f in flow["findings"]]


class Case:
    """What host A runs against host B while one LAN is captured."""

    def __init__(self, tool, where="tapa", wan=None, snap=384, ok=True, **how):
        self.tool, self.where, self.wan, self.snap, self.ok = tool, where, dict({"rtt_ms": RTT}, **(wan or {})), snap, ok
        self.how = {"timeout": LONG, **how}

    def run(self, lab):
        lab.wan(**self.wan)
        with lab.capture(self.where, self.snap) as path:
            p = lab.perftest(self.tool, limit=40 if self.ok else 20, **self.how)
            assert p.ok or not self.ok, p.text
        return findings(lab, path)


class Cut(Case):
    """The WAN is cut for good while the transfer runs."""

    def run(self, lab):
        lab.wan(**self.wan)
        with lab.capture(self.where, self.snap) as path:
            server, client = (f"{self.tool} {perftest.options(gid=h.gid(4), dev=h.rxe, **self.how)}" for h in (lab.b, lab.a))
            jobs = [lab.serve(server, port=18515), lab.a.start(f"{client} {lab.b.ip4}")]
            lab.wait_traffic(200)
            lab.wan(loss=100)
            jobs[1].done.wait(40)  # its timer fires eight times
            for job in jobs:
                job.kill()
                job.wait(10)
        return findings(lab, path)


class Narrow(Case):
    """Frames longer than 1000 bytes vanish behind host B's switch."""

    def run(self, lab):
        net = lab.net
        sh(IP, "-n", net.gwb, "link", "set", "tapb", "mtu", "1000")
        try:
            return super().run(lab)
        finally:
            sh(IP, "-n", net.gwb, "link", "set", "tapb", "mtu", "1500")


class Wrong:
    """A WRITE with an R_Key that host B does not have."""

    def run(self, lab):
        lab.wan(rtt_ms=RTT)
        with lab.capture("tapa") as path:
            job = lab.serve(f"rwy_errors listen {PORT} write-wrong-key", port=PORT, cm=True)
            lab.a.run(f"rwy_errors connect {lab.b.ip4} {PORT} write-wrong-key 2>&1; true", timeout=60)
            job.done.wait(5)
            job.kill()
            job.wait(5)
        return findings(lab, path)


# No `timeout`: Soft-RoCE's timer is not stopped by an ACK and repeats what was sent just now, so it is `timer` (lab.host_retransmits).
NATIVE = {
    "window": Case("ib_write_bw", size=4096, iters=200, extra="-t 4"),
    "read depth": Case("ib_read_bw", size=1024, iters=100, extra="-o 4"),
    "loss": Case("ib_write_bw", wan={"loss": 1}, size=65536, iters=100, timeout=17),
    "timer": Case("ib_write_bw", size=1024, iters=100, timeout=11, extra="-t 1"),
    "rnr": Case("ib_send_bw", size=4096, iters=400, extra="-r 1 -t 32"),
    "queue": Case("ib_write_bw", wan={"rate": "8Mbit"}, size=16384, iters=200),
    "icrc": Case("ib_write_bw", where="tapb", wan={"corrupt": 3}, snap=0, size=16384, iters=40, timeout=17),
    "idle": Case("ib_write_lat", size=64, iters=100),
    "mtu": Narrow("ib_write_bw", all_sizes=True, iters=5, timeout=14, ok=False),  # the short messages are answered
    "dead": Cut("ib_write_bw", size=16384, seconds=30, timeout=14, ok=False),
    "nak": Wrong(),
}
GATEWAY = {
    "read depth": NATIVE["read depth"],
    "rnr": Case("ib_send_bw", where="tapb", size=4096, iters=400, extra="-r 1 -t 32"),  # the far gateway repeats there
}


@each(limit=list(NATIVE))
@needs(native=True, timeout=150)
def test_analyze_native(lab, limit):
    """The limit of a transfer between two hosts without a gateway."""
    words = NATIVE[limit].run(lab)
    if limit == "loss":  # by NAK or, where a repeat was lost, too, by the timer: chance decides what takes longer
        assert words and words[0] in ("loss", "timeout"), words
    else:
        assert words[:1] == [limit], words


@each(limit=list(GATEWAY))
@needs(gateway=True, timeout=120)
def test_analyze_gateway(lab, limit):
    """The limit of a transfer through two gateways."""
    words = GATEWAY[limit].run(lab)
    assert words[:1] == [limit], words


@needs(gateway=True, ack_mode="end", timeout=120)
def test_analyze_gateway_window(lab):
    """In ack mode `end` an ACK takes a round trip, as natively."""
    words = NATIVE["window"].run(lab)
    assert words[:1] == ["window"], words


@needs(gateway=True, timeout=120)
def test_analyze_gateway_loss(lab):
    """What is lost between gateways is no limit that a host has."""
    words = NATIVE["loss"].run(lab)
    assert not {"loss", "timeout", "timer", "dead"} & set(words), words
