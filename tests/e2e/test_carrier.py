# SPDX-License-Identifier: Apache-2.0
# The TCP carrier: a tunnel moves to the kernel's TCP and back while hosts' traffic runs, and they
# do not notice.
import threading
import time

from lab import needs, short
from lab.copy import Copy
from lab.proc import ns_argv, sh, wait_for


def both(lab, carrier):
    """True if both ends send by this carrier."""
    return all(g.carrier()["sending"] == carrier for g in (lab.gwa, lab.gwb))


def move(lab, gateway, carrier, seconds=20):
    gateway.move(carrier)
    wait_for(f"both ends send by {carrier}", lambda: both(lab, carrier), seconds, 0.1)


def no_errors(lab):
    assert not lab.host_retransmits()
    for g in (lab.gwa, lab.gwb):
        c = g.carrier()
        assert not c["fallbacks"] and not c["refused_malformed"] and not c["refused_tunnel"], c


@needs(gateway=True, timeout=120)
def test_carrier_move(lab):
    """ib_write_bw both ways and a file with a checksum, at 20 ms and 1 % loss, while the tunnel
    moves to TCP and back, twice, on request of either end."""
    lab.wan(rtt_ms=20, loss=1)
    copy = Copy(lab, (lab.a, lab.b), mib=8)
    result = []
    t = threading.Thread(target=lambda: result.append(lab.perftest("ib_write_bw", size=65536, seconds=14, bidir=True, qps=2, timeout=18, limit=60)))
    t.start()
    time.sleep(2)
    for g in (lab.gwa, lab.gwb):
        move(lab, g, "tcp")
        time.sleep(2)
        move(lab, g, "native")
        time.sleep(1)
    t.join()
    copy.check()
    p = result[0]
    lab.log(f"{p.bw:.1f} MB/s; A: {lab.gwa.carrier()}; B: {lab.gwb.carrier()}")
    assert p.ok, p
    no_errors(lab)
    for g in (lab.gwa, lab.gwb):
        c = g.carrier()
        assert c["moves_to_tcp"] == 2 and c["moves_to_native"] == 2, c
        assert c["tx_datagrams"] > 1000 and c["rx_datagrams"] > 1000, c


@short
@needs(gateway=True, carrier="tcp", tcp_connections=2, timeout=90)
def test_carrier_dies(lab):
    """Over TCP from the start; then TCP is cut off: native from there on, and over TCP again when
    it passes. The file arrives."""
    lab.wan(rtt_ms=20)
    wait_for("both ends send by TCP", lambda: both(lab, "tcp"), 20, 0.1)
    copy = Copy(lab, (lab.a, lab.b), mib=24)
    lab.wait_traffic(500)
    rule = [*ns_argv(lab.net.gwb), "ip", "rule"]
    sh(*rule, "add", "pref", "10", "ipproto", "tcp", "blackhole")
    wait_for("natively again", lambda: both(lab, "native"), 20, 0.1)
    assert lab.gwa.carrier()["wanted"] == "tcp" and lab.gwa.carrier()["fallbacks"] == 1, lab.gwa.carrier()
    sh(*rule, "del", "pref", "10")
    wait_for("by TCP again", lambda: both(lab, "tcp"), 30, 0.1)
    copy.check()  # and none of its queue pairs had an error; connections of an earlier test may have one
