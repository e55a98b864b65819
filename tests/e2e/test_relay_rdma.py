# SPDX-License-Identifier: Apache-2.0
# The relays' own segment by RDMA: relays in guests, with Soft-RoCE between them (lab/inside.py).
from lab import needs
from lab.inside import inside
from lab.proc import ns_argv, start, stop, wait_for
from test_proxy import RELAY, apart, rping

PORTS = (7174, 7427, 18515)


def no_rnr(i):
    """No message met an empty receive queue."""
    for g in i.guests:
        c = g.rxe_counters()
        assert c["rcvd_pkts"] and not c["rcvd_rnr_err"] and not c["send_rnr_err"] and not c["retry_rnr_exceeded_err"], c


def readable(lab, i, rounds=20):
    """Whether what rping writes, "rdma-ping-N: ABC...", can be read on the line between the relays."""
    pcap = lab.net.dir / "mid.pcap"
    dump = start([*ns_argv(lab.net.wan), "tcpdump", "-Z", "root", "-U", "-n", "-i", "w2a", "-s", "0", "--immediate-mode", "-w", pcap, "udp port 4791"],
                 lab.net.dir / "tcpdump.log")
    try:
        wait_for("tcpdump listens", lambda: pcap.exists() and pcap.stat().st_size >= 24, 10, 0.1)
        before = [r.carrier()["tx_datagrams"] for r in i.relays]
        rping(lab, rounds)
        assert all(r.carrier()["tx_datagrams"] >= b + rounds for r, b in zip(i.relays, before))
        wait_for("tcpdump has it", lambda: pcap.stat().st_size > 100 * rounds, 10, 0.2)
    finally:
        stop(dump)
    return b"rdma-ping-" in pcap.read_bytes()


@needs(gateway=True, relay=PORTS, timeout=300)
def test_relay_by_rdma(lab):
    """The relays speak RDMA to each other from the start: rping -V, and ib_write_bw with 4 queue pairs. No relay's NIC says RNR.
    Without keys, so what hosts write can be read on the line."""
    apart(lab)
    with inside(lab, carrier="rdma") as i:
        i.mid.set(rtt_ms=5)
        i.until("rdma")
        assert readable(lab, i, 30)
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


class Copies:
    """Copies of a file from A to B by rcopy, one after the other until end(); a checksum for each. On a slow machine a copy takes
    longer than on a fast one, and so does what happens meanwhile."""

    def __init__(self, lab):
        self.lab = lab
        lab.a.run("rm -f /tmp/t/stop; dd if=/dev/urandom of=/tmp/t/src bs=1M count=4")
        self.server = lab.serve("rcopy -p 7427", port=7427, cm=True)
        self.client = lab.a.start(f"n=0; until [ -e /tmp/t/stop ]; do rcopy /tmp/t/src {RELAY[4]}:/tmp/t/dst-$n -p 7427 || exit 1; n=$((n + 1)); done; echo copies=$n")
        self.running()

    def running(self):
        self.lab.wait_traffic(200, seconds=60)

    def end(self, limit=150):
        self.lab.a.run("touch /tmp/t/stop")
        r = self.client.wait(limit)
        self.server.kill()
        assert r.ok, r
        n = int(r.out.rpartition("copies=")[2])
        want = self.lab.a.run("sha256sum </tmp/t/src; rm /tmp/t/src").out
        got = self.lab.b.run("for f in /tmp/t/dst-*; do sha256sum <$f; rm $f; done", timeout=120).out
        assert n and got == n * want, (n, want, got)


@needs(gateway=True, relay=PORTS, timeout=300)
def test_relay_rdma_move(lab):
    """Files are copied while the relays' tunnel moves to RDMA, to TCP, to RDMA and back to native, on request of either end: equal
    checksums, and no connection was lost."""
    apart(lab)
    with inside(lab) as i:
        i.mid.set(rtt_ms=5)
        copies = Copies(lab)
        for r, carrier in ((i.a, "rdma"), (i.b, "tcp"), (i.b, "rdma"), (i.a, "native")):
            r.move(carrier)
            i.until(carrier)
            copies.running()
        copies.end()
        for r in i.relays:
            c = r.carrier()
            assert c["moves_to_rdma"] == 2 and c["tx_datagrams"] and c["rx_datagrams"] and not c["fallbacks"] and not c["refused_malformed"], c
        no_rnr(i)


@needs(gateway=True, relay=PORTS, timeout=300)
def test_relay_rdma_dies(lab):
    """The line is cut while files are copied: natively from there on, with the reason; by RDMA again when it is back. Then a relay
    is killed: the other one notices, and both go by RDMA when it is back. Equal checksums."""
    apart(lab)
    with inside(lab, carrier="rdma") as i:
        i.until("rdma")
        copies = Copies(lab)
        i.mid.ctl("set", "both", "loss=100%")
        i.until("native")
        said = [r.carrier() for r in i.relays]
        assert all(c["wanted"] == "rdma" and c["fallbacks"] == 1 for c in said) and any(c["problem"] for c in said), said
        copies.running()
        i.mid.set()
        i.until("rdma", 60)
        copies.running()
        copies.end()
        no_rnr(i)
        i.b.kill()
        wait_for("relay A sends natively", lambda: i.a.carrier()["sending"] == "native", 30, 0.3)
        i.b.start()
        i.until("rdma", 60)
        rping(lab, 10)


@needs(gateway=True, relay=PORTS, timeout=300)
def test_relay_rdma_keys(lab):
    """With keys, and a new one each second under load: what hosts write cannot be read on the line between the relays (without keys it
    can: test_relay_by_rdma). Equal checksums over moves."""
    apart(lab)
    with inside(lab, carrier="rdma", security="keys", rekey="1s") as i:
        i.mid.set(rtt_ms=5)
        i.until("rdma")
        assert not readable(lab, i)
        copies = Copies(lab)
        wait_for("five new keys under load", lambda: all(r.carrier()["key_updates"] >= 5 for r in i.relays), 60, 0.5)
        i.a.move("native")
        i.until("native")
        copies.running()
        i.b.move("rdma")
        i.until("rdma")
        copies.running()
        copies.end()
        for r in i.relays:
            c = r.carrier()
            lab.log(f"{r.side}: {c}")
            assert c["moves_to_rdma"] == 2 and not c["fallbacks"] and not c["refused_malformed"] and not c["refused_forged"], c
        no_rnr(i)
