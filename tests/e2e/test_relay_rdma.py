# SPDX-License-Identifier: Apache-2.0
# The relays' own segment by RDMA: relays in guests, with Soft-RoCE between them (lab/inside.py).
from lab import needs
from lab.inside import inside
from test_proxy import RELAY, apart

PORTS = (7174, 7427, 18515)


def rping(lab, rounds):
    r = lab.pair(f"rping -s -V -C {rounds} -a {lab.b.ip4} -p 7174", f"rping -c -V -C {rounds} -a {RELAY[4]} -p 7174", port=7174, cm=True, timeout=60)
    assert r.ok, r


def no_rnr(i):
    """No message met an empty receive queue."""
    for g in i.guests:
        c = g.rxe_counters()
        assert c["rcvd_pkts"] and not c["rcvd_rnr_err"] and not c["send_rnr_err"] and not c["retry_rnr_exceeded_err"], c


@needs(gateway=True, relay=PORTS, timeout=300)
def test_relay_by_rdma(lab):
    """The relays speak RDMA to each other from the start: rping -V, and ib_write_bw with 4 queue pairs. No relay's NIC says RNR."""
    apart(lab)
    with inside(lab, carrier="rdma") as i:
        i.mid.set(rtt_ms=5)
        i.until("rdma")
        rping(lab, 30)
        server = lab.serve("ib_write_bw -F -R -d rxe0 -s 16384 -n 100 -q 4", port=18515, cm=True)
        client = lab.a.start(f"ib_write_bw -F -R -d rxe0 -s 16384 -n 100 -q 4 {RELAY[4]}").wait(100)
        if not client.ok:
            server.kill()
        assert client.ok and server.wait(15).ok, client
        for r in i.relays:
            c = r.carrier()
            lab.log(f"{r.side}: {c}")
            assert c["sending"] == "rdma" and c["rdma_connections"] >= 4 and not c["fallbacks"] and not c["refused_malformed"], c
            assert c["tx_datagrams"] > 500 and c["rx_datagrams"] > 500, c
        no_rnr(i)
