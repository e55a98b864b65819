# SPDX-License-Identifier: Apache-2.0
# Two sites with two gateways each, and hosts with one route: A's through a1, B's through b2.
# Packets of flows that another gateway carries are handed to it, so that both directions of a
# connection use one pair of gateways. Captures on all gateways' LAN ports prove it.
import itertools
import threading

from lab import needs, pcap
from lab.fleet import Fleet, fleet, host_addresses
from lab.proc import settled, wait_for

PAIRS = list(itertools.product(host_addresses(1), host_addresses(2)))
SOME = PAIRS[::3]  # a part of them, where 16 transfers would take too long


def one_route(f):
    """Gives each host one route, as every host has, instead of routes by pair of addresses."""
    for host, site, gateway in ((f.lab.a, 1, "a1"), (f.lab.b, 2, "b2")):
        host.run(f"ip rule flush; ip rule add pref 32766 table main; ip route replace 10.{3 - site}.0.0/24 via {f.gateways[gateway].lan} dev eth0; "
                 "ip neigh flush dev eth0")


def write(f, pair, **how):
    return f.lab.perftest("ib_write_bw", ends=(f.end(f.lab.a, pair[0]), f.end(f.lab.b, pair[1])), **how)


def siblings(gateway):
    return {s["name"]: s for s in gateway.ask("siblings")["siblings"]}


def known(f):
    """True if each gateway has its sibling, with its MAC address."""
    return all([(s["state"], s["mac_known"]) for s in siblings(g).values()] == [("up", True)] for g in f.gateways.values())


def carriers(f, files):
    """{(source, destination): gateways that passed its packets to the host}, and the same for
    packets that came from a gateway instead of the host."""
    of_mac = {next(p["mac"] for p in g.ask("ports")["ports"] if p["name"] == "lan"): name for name, g in f.gateways.items()}
    given, handed = {}, {}
    for path in files.values():
        for p in pcap.roce(path):
            if p.smac in of_mac:
                (handed if p.dmac in of_mac else given).setdefault((p.src, p.dst), set()).add((of_mac[p.smac], of_mac.get(p.dmac)))
    return {k: {a for a, _ in v} for k, v in given.items()}, handed


def transfers(f, pairs, directory):
    files = f.capture(f.lab.net.dir / directory)
    for pair in pairs:
        r = write(f, pair, size=16384, iters=20, limit=30)
        assert r.ok, (pair, r.text)
    for path in files.values():
        settled(path)
    f.lab.capture_stop()
    return carriers(f, files)


def by_one_pair(f, pairs, given, handed):
    """{pair: (gateway at A, gateway at B)}: one gateway passed each direction to its host, and only
    the hosts' next hop handed packets on."""
    by = {}
    for x, y in pairs:
        assert len(given.get((y, x), ())) == len(given.get((x, y), ())) == 1, ((x, y), given.get((y, x)), given.get((x, y)))
        a, b = by[x, y] = (*given[y, x], *given[x, y])
        assert handed.get((x, y), set()) == (set() if a == "a1" else {("a1", a)}), ((x, y), a, handed.get((x, y)))
        assert handed.get((y, x), set()) == (set() if b == "b2" else {("b2", b)}), ((y, x), b, handed.get((y, x)))
    return by


@needs(native=True, timeout=500)
def test_sibling_plan(lab):
    """A job's 16 connections spread 3 to 1 at both sites, both directions on the pair of the plan,
    though all packets of a site come to one gateway. Without the job, and without the controller,
    pairs follow the weights, equally at both sites."""
    with fleet(lab) as f:
        lab.wan(rtt_ms=5)
        one_route(f)
        job = {"name": "train", "pairs": [{"source": x, "destination": y, "bandwidth_bps": 20_000_000} for x, y in PAIRS]}
        by = {(r["source"], r["destination"]): tuple(r["pair"].split("/")) for r in f.ask("POST", "/v1/jobs", body=job)["plan"]}
        assert len(by) == 16, by
        assert [sum(gws[end].endswith("1") for gws in by.values()) for end in (0, 1)] == [12, 12], by
        wait_for("each gateway knows its sibling's pairs", lambda: known(f) and all(
            [s["pairs"] for s in siblings(g).values()] == [4 if g.n == 1 else 12] for g in f.gateways.values()), 20, 0.2)
        given, handed = transfers(f, PAIRS, "sibling")
        assert by_one_pair(f, PAIRS, given, handed) == by
        assert siblings(f.gateways["a1"])["a2"]["packets"] > 0 and siblings(f.gateways["b2"])["b1"]["packets"] > 0
        assert siblings(f.gateways["a2"])["a1"]["packets"] == 0, "handed on twice"
        f.ask("DELETE", "/v1/jobs/train", want=(200, 204))
        wait_for("nothing is assigned", lambda: all(not s["pairs"] for g in f.gateways.values() for s in siblings(g).values()), 20, 0.2)
        f.processes["controller-1"].kill()
        by = by_one_pair(f, SOME, *transfers(f, SOME, "sibling-rule"))
        lab.log(f"by the rule: {sorted(by.values())}")
        assert not lab.host_retransmits(timer=2), "retransmissions"


@needs(native=True, timeout=400)
def test_sibling_returns(lab):
    """A gateway is away and its pairs use the others. It comes back during a transfer, which stays
    and does not notice."""
    with fleet(lab) as f:
        lab.wan(rtt_ms=5)
        one_route(f)
        wait_for("each gateway knows its sibling", lambda: known(f), 20, 0.2)
        by = by_one_pair(f, SOME, *transfers(f, SOME, "sibling-before"))
        pair = next(p for p, gws in by.items() if gws[0] == "a2")
        a1 = f.gateways["a1"]
        f.gateways["a2"].kill()
        wait_for("a2 is lost", lambda: f.up() == 3 and siblings(a1)["a2"]["state"] == "lost", 20, 0.2)
        handed = siblings(a1)["a2"]["packets"]
        results = []
        t = threading.Thread(target=lambda: results.append(write(f, pair, size=65536, seconds=20, limit=60)))
        t.start()
        lab.wait_traffic(100)
        f.gateways["a2"].start()
        wait_for("a2 is back", lambda: f.up() == 4 and known(f), 20, 0.2)
        lab.wait_traffic(200)
        assert siblings(a1)["a2"]["packets"] == handed, "what is under way was moved"
        t.join()
        assert results[0].ok, results[0].text
        assert not lab.host_retransmits(timer=2), "retransmissions"
        wait_for("the other site's gateways have their tunnels to a2", lambda: all(len(g.tunnels()) == 2 for g in f.gateways.values()), 20, 0.2)
        assert by_one_pair(f, [pair], *transfers(f, [pair], "sibling-after"))[pair] == by[pair]


@needs(native=True, timeout=400)
def test_sibling_file(lab):
    """The same without a control center: each gateway's file names its sibling and both tunnels. A
    sibling that does not answer is lost."""
    f = Fleet(lab)
    try:
        f.build()
        for g in f.gateways.values():
            far = [x for x in f.gateways.values() if x.name[0] != g.name[0]]
            near = next(x for x in f.gateways.values() if x.name[0] == g.name[0] and x is not g)
            g.more = f"siblings:\n  - {{name: {near.name}, address: {near.lan}, weight: 1}}\ntunnels:\n" + "".join(
                f"  - {{name: {x.name}, peer: {x.name}, port: wan, local: {g.wan}, remote: {x.wan}, prefixes: [10.{3 - g.site}.0.0/24], "
                "security: none}\n" for x in far)
            g.start()
        wait_for("all tunnels are up", lambda: all(len(g.tunnels()) == 2 for g in f.gateways.values()), 20, 0.2)
        wait_for("siblings know each other", lambda: known(f), 20, 0.2)
        one_route(f)
        lab.wan(rtt_ms=5)
        by = by_one_pair(f, SOME, *transfers(f, SOME, "sibling-file"))
        lab.log(f"by the file: {sorted(by.values())}")
        f.gateways["a2"].kill()
        wait_for("a2 is lost", lambda: siblings(f.gateways["a1"])["a2"]["state"] == "lost", 30, 0.5)
        f.gateways["a2"].start()
        wait_for("a2 is back", lambda: known(f), 30, 0.5)
    finally:
        f.close()
