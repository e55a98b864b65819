# SPDX-License-Identifier: Apache-2.0
# The controller moves a tunnel to QUIC under load and away from it, by what gateways have registered and measured: 2 Mbit/s natively
# (as where a network limits UDP but for QUIC's port), 200 over TCP with cubic, 100 by QUIC with bbr2. Cubic fills a good path and gets
# 5 Mbit/s of one with 3 % loss over 50 ms; bbr2 does not mind.
from lab import needs
from lab.fleet import fleet
from lab.load import Load
from lab.proc import wait_for
from test_controller_path import by, goes_by

OFFERS = "bandwidth: 2Mbps\n  tcp_bandwidth: 200Mbps\n  tcp_congestion_control: cubic\n  quic_bandwidth: 100Mbps"
GOOD, BAD = {"rtt_ms": 10, "loss": 0}, {"rtt_ms": 50, "loss": 3}


def registered(f):
    """{gateway: bit/s of QUIC}, as they have registered it."""
    return {g["name"]: g["capabilities"]["quic"]["bandwidth_bps"] for g in f.ask("GET", "/v1/gateways")["gateways"]}


def measured(f):
    """{gateway: what it measured by QUIC}"""
    return {m["gateway"]: m for m in f.ask("GET", "/v1/links")["measured"] if m["carrier"] == "quic"}


@needs(native=True, timeout=400)
def test_controller_quic(lab):
    """0 % over 10 ms, 3 % over 50 ms, and back, under load: by TCP, by QUIC, by TCP. What both gateways measure by QUIC is what the path
    does. Every byte is compared, no host repeats anything, and no carrier is lost."""
    with fleet(lab, per_site=1, offers=(OFFERS,)) as f:
        assert set(registered(f).values()) == {10**8}, registered(f)
        lab.wan(**GOOD)
        f.routes({})
        goes_by(f, "tcp", 40)
        load = Load(lab, steps=12)
        lab.wait_traffic(100, seconds=60)
        lab.wan(**BAD)
        goes_by(f, "quic", 90)
        lab.wait_traffic(500, seconds=90)
        wait_for("both measure the path by QUIC", lambda: len(measured(f)) == 2 and measured(f)["a1"]["loss_ppm"] > 10_000, 40, 0.5)
        links = measured(f)
        lab.log(f"{links}")
        assert all(50_000 <= m["rtt_us"] < 1_000_000 and m["rtt_min_us"] <= m["rtt_us"] for m in links.values()), links
        assert links["a1"]["loss_ppm"] < 90_000, links  # 3 % are lost
        assert by(f, "quic")
        lab.wan(**GOOD)
        goes_by(f, "tcp", 120)  # TCP's last measurement counts for a minute
        load.stop()
        lab.log(f"{load.runs} runs, {load.files} files")
        for g in f.gateways.values():
            c = g.carrier()
            assert (c["moves_to_tcp"], c["moves_to_quic"], c["fallbacks"]) == (2, 1, 0), c
        assert load.files and load.runs
        assert not lab.host_retransmits(timer=2, qps=2)
