# SPDX-License-Identifier: Apache-2.0
# A path becomes bad and good again under load, and the controller moves its tunnel to the carrier
# that carries more, and back. It knows only the gateways' measurements and their offers: 8 Mbit/s
# natively, 200 over TCP with cubic (as where a network limits UDP). Cubic fills a good path and
# gets 3 Mbit/s of one with 3 % loss over 100 ms; the native carrier gets 8 of both.
import itertools
import json
import re
import time

from lab import needs
from lab.fleet import fleet
from lab.load import Load
from lab.proc import ns_argv, sh, wait_for

OFFERED = 8  # Mbit/s, natively
OFFERS = f"bandwidth: {OFFERED}Mbps\n  tcp_bandwidth: 200Mbps\n  tcp_congestion_control: cubic"
GOOD, BAD = {"rtt_ms": 10, "loss": 0}, {"rtt_ms": 100, "loss": 3}
BETWEEN = [{"rtt_ms": 40, "loss": 1}, {"rtt_ms": 70, "loss": 2}]
REPORT = 5  # s between two reports of a gateway


def by(f, carrier):
    return all(g.carrier()["sending"] == carrier for g in f.gateways.values())


def mbps(f, windows):
    """Mbit/s to host B, with RoCE's headers, in the best of `n` windows of 3 s: between two
    transfers it gets little."""
    best = 0
    for _ in range(windows):
        had, at = f.gateways["b1"].sum("lan_tx_bytes"), time.monotonic()
        time.sleep(3)
        best = max(best, (f.gateways["b1"].sum("lan_tx_bytes") - had) * 8e-6 / (time.monotonic() - at))
    return best


def goes_by(f, carrier, seconds):
    """Waits until the controller has moved the tunnel; logs how long that took."""
    start = time.monotonic()
    wait_for(f"by {carrier}", lambda: by(f, carrier), seconds, 0.1)
    f.lab.log(f"by {carrier} {time.monotonic() - start:.1f} s later; the controller: {f.ask('GET', '/v1/tunnels')}, {f.ask('GET', '/v1/links')}")


def carries(f, most, seconds=60):
    """Waits for more than this many Mbit/s and returns them."""
    return wait_for(f"more than {most:.1f} Mbit/s", lambda: (lambda x: x > most and x)(mbps(f, 1)), seconds)


@needs(native=True, timeout=300)
def test_controller_path(lab):
    """0 % over 10 ms, 3 % over 100 ms, and back: a tunnel goes over TCP, natively, over TCP, each
    time to the carrier that measures best, and not once more."""
    with fleet(lab, per_site=1, offers=(OFFERS,)) as f:
        lab.wan(**GOOD)
        f.routes({})
        goes_by(f, "tcp", 20)
        load = Load(lab)
        lab.wait_traffic(500)
        rate = {"tcp, good": carries(f, 1.1 * OFFERED)}
        lab.wan(**BAD)  # too short to be worth a move
        time.sleep(1)
        lab.wan(**GOOD)
        time.sleep(2 * REPORT)
        assert by(f, "tcp"), "one bad second moved it"
        for step in BETWEEN:
            lab.wan(**step)
            time.sleep(2)
        lab.wan(**BAD)
        rate["tcp, bad"] = mbps(f, 2)
        goes_by(f, "native", 40)
        time.sleep(2)
        rate["native, bad"] = mbps(f, 3)
        for step in reversed(BETWEEN):
            lab.wan(**step)
            time.sleep(2)
        lab.wan(**GOOD)
        rate["native, good"] = mbps(f, 3)
        goes_by(f, "tcp", 90)  # TCP's last measurement counts for a minute
        rate["tcp, good again"] = carries(f, 1.1 * rate["native, good"])
        load.stop()
        lab.log(f"{load.runs} runs, {load.files} files; Mbit/s: { {k: round(v, 1) for k, v in rate.items()} }")
        assert load.files >= 2 and load.runs >= 2
        assert rate["native, bad"] > 1.1 * rate["tcp, bad"], rate
        assert rate["tcp, good"] > 1.1 * rate["native, good"], rate
        for g in f.gateways.values():
            c = g.carrier()
            assert (c["moves_to_tcp"], c["moves_to_native"], c["fallbacks"]) == (2, 1, 0), c
        assert not lab.host_retransmits(timer=2, qps=2)


def sent(said):
    """(now, bytes that the only class of `tc -s class show` has sent)"""
    (n,) = re.findall(r"Sent (\d+) bytes", said)
    return time.monotonic(), int(n)


def bucket(said):
    """The bytes that a class may send at once after a pause."""
    n, unit = re.search(r" burst (\d+)(K|M)?b", said).groups()
    return int(n) * {None: 1, "K": 1024, "M": 1 << 20}[unit]


@needs(native=True, timeout=200)
def test_controller_network(lab):
    """A job reserves 4 Mbit/s with the `linux` provider: the kernel limits a tunnel that its
    gateway does not pace to that rate, until the job ends."""
    paths = lab.net.dir / "paths.json"
    paths.write_text(json.dumps({"paths": [{"first": "site-a", "second": "site-b", "edge": "pe-1", "name": "p", "bandwidth_bps": 100_000_000,
                                            "delay_us": 5000, "interface": "wan", "remote": "192.0.2.0/24"}]}))
    more = f"providers:\n  - name: underlay\n    kind: linux\n    file: {paths}\n"
    with fleet(lab, per_site=1, offers=(OFFERS,), beside="a1", more=more) as f:
        def shaped():
            """The kernel's classes on the underlay interface; "": none."""
            return sh(*ns_argv(f.home), "tc", "-s", "class", "show", "dev", "wan").strip()

        lab.wan(**GOOD)
        f.routes({})
        goes_by(f, "tcp", 20)  # the kernel decides its rate, not the gateway
        load = Load(lab)
        free = carries(f, 1.1 * OFFERED)
        assert not shaped()
        said = f.ask("PUT", "/v1/jobs/held", body={"pairs": [{"source": lab.a.ip4, "destination": lab.b.ip4, "bandwidth_bps": 4_000_000}]})
        reserved = said["network"][0]["bandwidth_bps"]
        assert 4_000_000 <= reserved <= 5_000_000, said
        wait_for("the class", shaped, 10, 0.2)
        looks = [sent(shaped())]
        while len(looks) < 5:  # over TCP: later the controller finds that it would carry more natively, and moves it
            time.sleep(2)
            look = sent(shaped())
            if not by(f, "tcp"):
                break
            looks.append(look)
        assert len(looks) >= 3, looks
        best, said = max((b[1] - a[1]) * 8 / (b[0] - a[0]) for a, b in zip(looks, looks[1:])), shaped()
        lab.log(f"{free:.1f} Mbit/s, with {reserved * 1e-6:.2f} reserved {best * 1e-6:.2f} in the best window: {looks} {said}")
        assert int(re.search(r"overlimits (\d+)", said)[1]) > 100, said
        # By the kernel's own count of bytes sent, since hosts receive late and in lumps after a
        # loss. In any time at most rate x time plus the bucket once; the packet that empties it may
        # be a segment of 64 KiB for the card to cut.
        for a, b in itertools.combinations(looks, 2):
            assert b[1] - a[1] <= 1.01 * reserved / 8 * (b[0] - a[0]) + bucket(said) + 65536, (a, b, said)
        assert best >= 0.5 * reserved, looks
        f.ask("DELETE", "/v1/jobs/held", want=(200, 204))
        wait_for("no class", lambda: not shaped(), 10, 0.2)
        carries(f, 1.1 * OFFERED)
        load.stop()
