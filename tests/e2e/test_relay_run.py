# SPDX-License-Identifier: Apache-2.0
# roceway-run: hosts A and B have no route to each other, and the program on A names host B. No port of the relay is mapped.
from collections import Counter

from lab import TIMEOUT, ci, each, needs, perftest, tcp
from lab.copy import Copy
from test_proxy import RELAY, apart

OTHER = (9999,)  # a listen map that none of these programs uses
RUN = f"roceway-run --via {RELAY[4]} --via {RELAY[6]} --"


def counters(relay):
    """Those that are 0 are not in the answer."""
    return Counter({c["name"]: c["value"] for c in relay.ask("counters")["counters"]})


@ci(only=4)
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
    Copy(lab, (lab.a, lab.b), mib=4, run=RUN).check(90)


def rsockets(lab, tool, ip):
    """rstream writes by rsend(), riostream by riowrite(): 20 messages of 64 KiB each way, verified."""
    how = f"-f {'ip' if ip == 4 else 'ipv6'} -T b -T v -S 65536 -I 20 -C 1"
    r = lab.pair(f"{tool} -b {lab.b.ip(ip)} {how}", f"{RUN} {tool} -s {lab.b.ip(ip)} {how}", port=7471, cm=True, timeout=60)
    assert r.ok, r


@each(tool=["rstream", "riostream"], ip=[4, 6])
@needs(gateway=True, relay=OTHER, timeout=90)
def test_relay_run_rsockets(lab, tool, ip):
    """The programs of rsockets. Their private data leave no room for a trailer with IPv6."""
    apart(lab)
    rsockets(lab, tool, ip)


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
    assert "/tmp/t/redirect.conf:1: expected `via`, found `by`" in r.out and "exit=2" in r.out, r


# --- perftest ----------------------------------------------------------------------------------
TOOLS = [(tool, qps) for tool in ("ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw") for qps in (1, 16)]


def sizes(tool):
    """An ATOMIC has 8 bytes, and perftest refuses to be told."""
    return {"iters": 200} if tool == "ib_atomic_bw" else {"iters": 200, "size": 4096}


def by_cm(lab, tool, qps):
    """A perftest pair with -R: the client's library of rdma_cm asks its relay."""
    opt = {h.name: perftest.options(gid=h.gid(4), dev=h.rxe, qps=qps, cm=True, **sizes(tool)) for h in (lab.a, lab.b)}
    r = lab.pair(f"{tool} {opt['b']}", f"{RUN} {tool} {opt['a']} {lab.b.ip4}", port=18515, cm=True, timeout=60)
    assert r.ok and perftest.parse(r.client.out, True), r


def by_verbs(lab, server, client, port, at="10.1.0.1"):
    """Runs the programs without -R; their queue pairs go by the relays (librwyverbs). Their TCP connection does not: host A reaches
    host B's port at the address `at`."""
    job = lab.serve(f"roceway-run --via 10.2.0.1 -- {server}", port=port)
    with tcp.Passage(lab.net.gwa, (at, port), lab.net.gwb, (lab.b.ip4, port)):
        c = lab.a.start(f"{RUN} {client} {at}").wait(105)
        if not c.ok:
            job.kill()
        s = job.wait(15)
    assert c.ok and s.ok, (c, s)
    return c


def verbs_perftest(lab, tool, qps, **where):
    opt = [perftest.options(gid=h.gid(4), dev=h.rxe, qps=qps, **sizes(tool)) for h in (lab.b, lab.a)]
    c = by_verbs(lab, *(f"{tool} {o}" for o in opt), 18515, **where)
    assert perftest.parse(c.out, True), c


def ncclish(lab, qps, steps=64, **where):
    steps = lab.scaled(steps, 4)
    opt = [f"rwy_ncclish --qps {qps} --steps {steps} --limit 90 --timeout {TIMEOUT} --device {h.rxe} --gid {h.gid(4)}" for h in (lab.b, lab.a)]
    by_verbs(lab, *opt, 18777, **where)


@each(tool=TOOLS)
@needs(gateway=True, relay=OTHER, timeout=120)
def test_relay_run_perftest_cm(lab, tool):
    """perftest with -R, by librwyredirect."""
    apart(lab)
    asks = counters(lab.gwa)["asks"]
    by_cm(lab, *tool)
    assert counters(lab.gwa)["asks"] - asks >= 1


@ci(only=("ib_write_bw", 1))
@each(tool=TOOLS)
@needs(gateway=True, relay=OTHER, timeout=120)
def test_relay_run_perftest(lab, tool):
    """perftest without -R: the programs exchange queue pairs themselves, and both hosts' libraries tell their relay."""
    apart(lab)
    name, qps = tool
    before = [counters(g) for g in lab.gateways]
    verbs_perftest(lab, name, qps)
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
    before = [counters(g) for g in lab.gateways]
    ncclish(lab, qps)
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
