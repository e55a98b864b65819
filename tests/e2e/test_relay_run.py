# SPDX-License-Identifier: Apache-2.0
# roceway-run: hosts A and B have no route to each other, and the program on A names host B. No port of the relay is mapped.
from collections import Counter

from lab import TIMEOUT, each, needs, perftest, short, tcp
from test_proxy import RELAY, apart

OTHER = (9999,)  # a listen map that none of these programs uses
RUN = f"roceway-run --via {RELAY[4]} --via {RELAY[6]} --"


def counters(relay):
    """Those that are 0 are not in the answer."""
    return Counter({c["name"]: c["value"] for c in relay.ask("counters")["counters"]})


@short(only=4)
@each(ip=[4, 6])
@needs(gateway=True, relay=OTHER)
def test_relay_run_rping(lab, ip):
    """rping -V, 100 rounds."""
    apart(lab)
    r = lab.pair(f"rping -s -V -C 100 -a {lab.b.ip(ip)} -p 7174", f"{RUN} rping -c -V -C 100 -a {lab.b.ip(ip)} -p 7174", port=7174, cm=True)
    assert r.ok, r
    assert counters(lab.gwa)["asks"] >= 1


@needs(gateway=True, relay=OTHER, timeout=120)
def test_relay_run_rcopy(lab):
    """rcopy of a 4 MiB file: rsockets call librdmacm inside librdmacm."""
    apart(lab)
    lab.a.run("dd if=/dev/urandom of=/tmp/t/src bs=1M count=4")
    server = lab.serve("rcopy -p 7427", port=7427, cm=True)
    copy = lab.a.start(f"{RUN} rcopy /tmp/t/src {lab.b.ip4}:/tmp/t/dst -p 7427").wait(90)
    server.kill()
    assert copy.ok, copy
    sums = [h.run(f"sha256sum <{f}; rm {f}").out for h, f in ((lab.a, "/tmp/t/src"), (lab.b, "/tmp/t/dst"))]
    assert sums[0] == sums[1], sums


@each(ip=[4, 6])
@needs(gateway=True, relay=OTHER, timeout=90)
def test_relay_run_rstream(lab, ip):
    """rstream: 20 messages of 64 KiB each way, verified. Its private data leave no room for a trailer with IPv6."""
    apart(lab)
    how = f"-f {'ip' if ip == 4 else 'ipv6'} -T b -T v -S 65536 -I 20 -C 1"
    r = lab.pair(f"rstream -b {lab.b.ip(ip)} {how}", f"{RUN} rstream -s {lab.b.ip(ip)} {how}", port=7471, cm=True, timeout=60)
    assert r.ok, r


@each(ip=[4, 6])
@needs(gateway=True, relay=OTHER, timeout=90)
def test_relay_run_private(lab, ip):
    """Private data of 0 to 56 bytes arrive byte for byte, padded as the kernel pads; 57 are refused as natively. By a trailer and by
    one-time ports; by rdma_resolve_addr and rdma_create_ep."""
    apart(lab)
    before = counters(lab.gwa)
    sizes = [("connect", 0), ("connect", 28), ("ep", 40), ("connect", 41), ("connect", 56)]
    server = lab.serve(f"rwy_private listen 7500 {len(sizes)}", port=7500, cm=True)
    for way, n in sizes:
        r = lab.a.run(f"{RUN} rwy_private {way} {lab.b.ip(ip)} 7500 {n} 2>&1")
        assert f"peer={lab.b.ip(ip)} port=7500" in r.out and "answer=answer" in r.out, r
    got = [line for line in server.wait(10).out.splitlines() if line.startswith("len=")]
    assert got == ["len=56 data=" + (bytes(range(1, n + 1)) + bytes(56 - n)).hex() for _, n in sizes], got
    once = counters(lab.gwa)["once_used"] - before["once_used"]
    assert once == sum(n > (40 if ip == 4 else 28) for _, n in sizes), once
    r = lab.a.run(f"{RUN} rwy_private connect {lab.b.ip(ip)} 7500 57 2>&1; true")
    assert "connect: Invalid argument" in r.out, r


@needs(gateway=True, relay=OTHER, timeout=90)
def test_relay_run_errors(lab):
    """What the program and its operator are told: no relay there, not allowed, nobody listens, a wrong file."""
    apart(lab)
    to = f"{lab.b.ip4} 7500 0 2>&1; true"
    r = lab.a.run(f"roceway-run --via 10.1.0.99 rwy_private connect {to}")
    assert "no relay answers" in r.out and "address: No route to host" in r.out, r
    r = lab.a.run(f"roceway-run --via {lab.a.ip4} rwy_private connect {to}")  # a host that is no relay
    assert "no relay answers" in r.out and "address: No route to host" in r.out, r
    r = lab.a.run(f"{RUN} rwy_private ep 10.9.0.1 7500 0 2>&1; true")
    assert "access list" in r.out and "endpoint: Permission denied" in r.out, r
    r = lab.a.run(f"{RUN} rwy_private connect {to}")
    assert "connect: Connection refused" in r.out, r
    # The first relay is not there: the next one carries it.
    lab.a.run(f"echo 'redirect 10.2.0.0/24 via 10.1.0.99 else {RELAY[4]}' >/tmp/t/redirect.conf")
    r = lab.a.run("roceway-run --config /tmp/t/redirect.conf --check; true")
    assert "10.1.0.99 port 4795 order 1 weight 1: no answer" in r.out and f"{RELAY[4]} port 4795 order 2 weight 1: answers" in r.out, r
    r = lab.pair(f"rping -s -V -C 3 -a {lab.b.ip4} -p 7174", f"roceway-run --config /tmp/t/redirect.conf rping -c -V -C 3 -a {lab.b.ip4} -p 7174", port=7174, cm=True)
    assert r.ok, r
    lab.a.run("echo 'redirect 10.2.0.0/24 by 10.1.0.1' >/tmp/t/redirect.conf")
    r = lab.a.run("roceway-run --config /tmp/t/redirect.conf rping 2>&1; echo exit=$?")
    assert "/tmp/t/redirect.conf: line 1: expected `via`, found `by`" in r.out and "exit=2" in r.out, r


# --- without CM: librwyverbs -------------------------------------------------------------------
def by_verbs(lab, tool, how, qps=1, size=4096, iters=200):
    """A perftest pair without -R. Its TCP connection goes another way; its queue pairs go by the relays."""
    run = {"a": RUN, "b": "roceway-run --via 10.2.0.1 --"}
    opt = {h.name: perftest.options(gid=h.gid(4), dev=h.rxe, size=size, iters=iters, qps=qps, extra=how) for h in (lab.a, lab.b)}
    server = lab.serve(f"{run['b']} {tool} {opt['b']}", port=18515)
    with tcp.Passage(lab.net.gwa, ("10.1.0.1", 18515), lab.net.gwb, (lab.b.ip4, 18515)):
        client = lab.a.start(f"{run['a']} {tool} {opt['a']} 10.1.0.1").wait(60)
        if not client.ok:
            server.kill()
        return client, server.wait(15)


@short(only=("ib_write_bw", 1))
@each(tool=[("ib_write_bw", 1), ("ib_write_bw", 16), ("ib_send_bw", 1), ("ib_read_bw", 1)])
@needs(gateway=True, relay=OTHER, timeout=120)
def test_relay_run_perftest(lab, tool):
    """perftest without -R: the programs exchange queue pairs themselves, and both hosts' libraries tell their relay."""
    apart(lab)
    name, qps = tool
    before = [counters(g) for g in lab.gateways]
    client, server = by_verbs(lab, name, "", qps)
    assert client.ok and server.ok, (client, server)
    assert perftest.parse(client.out, True), client
    after = [counters(g) for g in lab.gateways]
    for b, a in zip(before, after):
        assert a["pairs_made"] - b["pairs_made"] == qps, (b, a)
    links = [{k["link"] for k in g.ask("links")["links"] if k["pair"]} for g in lab.gateways]
    assert len(links[0] & links[1]) >= qps, links


@each(qps=[1, 16])
@needs(gateway=True, relay=OTHER, timeout=150)
def test_relay_run_ncclish(lab, qps):
    """rwy_ncclish, shaped as NCCL: WRITEs and one with immediate a step, a receive for each; every byte is checked at both ends."""
    apart(lab)
    steps = lab.scaled(64, 4)
    before = [counters(g) for g in lab.gateways]
    opt = {h.name: f"rwy_ncclish --qps {qps} --steps {steps} --limit 90 --timeout {TIMEOUT} --device {h.rxe} --gid {h.gid(4)}" for h in (lab.a, lab.b)}
    server = lab.serve(f"roceway-run --via 10.2.0.1 -- {opt['b']}", port=18777)
    with tcp.Passage(lab.net.gwa, ("10.1.0.1", 18777), lab.net.gwb, (lab.b.ip4, 18777)):
        client = lab.a.start(f"{RUN} {opt['a']} 10.1.0.1").wait(105)
        if not client.ok:
            server.kill()
        served = server.wait(15)
    assert client.ok and served.ok, (client, served)
    for b, g in zip(before, lab.gateways):
        assert counters(g)["pairs_made"] - b["pairs_made"] >= qps
    again = lab.host_retransmits()
    assert not again, again


@needs(gateway=True, relay=OTHER, relay_ports="7000-7999", timeout=120)
def test_relay_run_verbs_refused(lab):
    """A relay that allows some ports only allows no pairs: the program's ibv_modify_qp fails, and its operator gets a line. The same
    where no relay answers."""
    apart(lab)
    before = counters(lab.gwb)
    for via, words in (("10.2.0.1", "access list"), ("10.2.0.99", "no relay answers")):
        server = lab.serve(f"roceway-run --via {via} -- ib_write_bw -F -x {lab.b.gid(4)} -d rxe0 -n 5", port=18515)
        with tcp.Passage(lab.net.gwa, ("10.1.0.1", 18515), lab.net.gwb, (lab.b.ip4, 18515)):
            client = lab.a.start(f"ib_write_bw -F -x {lab.a.gid(4)} -d rxe0 -n 5 10.1.0.1")
            said = server.wait(30)
            client.kill()
        assert not said.ok and words in said.text and "Failed to modify QP" in said.text, said
    assert counters(lab.gwb)["pairs_made"] == before["pairs_made"]
