# SPDX-License-Identifier: Apache-2.0
# Two tunnels of a network, at two edges, 60 to 40: the provider `linux` holds each to what a job
# reserved and tells their datagrams by DSCP; the gateways send along both as it was granted.
import json
import re
import time

from lab import needs
from lab.fleet import fleet, host_addresses
from lab.perftest import options
from lab.proc import ns_argv, sh, wait_for

SOURCE, DESTINATION = host_addresses(1)[0], host_addresses(2)[0]
EDGES = {"pe-1": (6_000_000, 10), "pe-2": (4_000_000, 12)}  # bit/s that it has, DSCP that it looks at
DEMAND, LESS = 7_000_000, 5_000_000
SHARE, WITHIN = 0.6, 0.03


def network(path):
    path.write_text(json.dumps({"paths": [
        {"first": "site-a", "second": "site-b", "edge": edge, "name": "p", "bandwidth_bps": bps, "delay_us": 5000, "interface": "wan",
         "remote": "192.0.2.0/24", "steer": {"dscp": dscp}} for edge, (bps, dscp) in EDGES.items()]}))
    return f"providers:\n  - name: underlay\n    kind: linux\n    file: {path}\n"


def put(f, bps):
    said = f.ask("PUT", "/v1/jobs/split", body={"pairs": [{"source": SOURCE, "destination": DESTINATION, "bandwidth_bps": bps}]})
    assert said["state"] == "planned", said
    return {leg["edge"]: leg["bandwidth_bps"] for leg in said["network"][0]["legs"]}


def classes(f):
    """{edge: bytes that the kernel has sent in its class}: the tunnels in the network."""
    text = sh(*ns_argv(f.home), "tc", "-s", "class", "show", "dev", "wan")
    sent = {int(n): int(b) for n, b in re.findall(r"class htb 5257:(\d+) .*?Sent (\d+) bytes", text, re.S)}
    return {edge: sent[i] for i, edge in enumerate(EDGES, 1) if i in sent}


def paths(g):
    return g.ask("tunnels")["tunnels"][0]["paths"]


def states(g):
    return {p["label"]: p["state"] for p in paths(g)}


def measure(f, seconds=6):
    """{edge: bit/s}, and bit/s of what the first gateway sent by the tunnel's own path."""
    g = f.gateways["a1"]
    had, own, at = classes(f), paths(g)[0]["tx_bytes"], time.monotonic()
    time.sleep(seconds)
    now, took = classes(f), time.monotonic() - at
    rate = {e: 8 * (now[e] - had[e]) / took for e in now}
    own = 8 * (paths(g)[0]["tx_bytes"] - own) / took
    f.lab.log(", ".join(f"{e} {r / 1e6:.3f} Mbit/s" for e, r in rate.items()) + f", own {own / 1e6:.3f}, {states(g)}")
    return rate, own


def divides(f, legs):
    """All edges carry what was granted, 60 to 40, and the tunnel's own path next to nothing."""
    try:
        wait_for("the paths answer", lambda: all(states(g) == {"": "spare", "pe-1/p": "usable", "pe-2/p": "usable"} for g in f.gateways.values()), 20, 0.1)
    finally:
        f.lab.log(f"{[states(g) for g in f.gateways.values()]}")
    wait_for("they are granted", lambda: {p["label"].split("/")[0]: round(8 * p["rate_max_bytes_per_second"]) for p in paths(f.gateways["a1"])[1:]}
             == {e: bps // 8 * 8 for e, bps in legs.items()}, 10, 0.1)
    time.sleep(2)
    rate, own = measure(f)
    part = rate["pe-1"] / sum(rate.values())
    assert abs(part - SHARE) <= WITHIN * SHARE, (part, rate)
    assert sum(rate.values()) > 0.85 * sum(legs.values()), (rate, legs)
    assert all(rate[e] <= 1.03 * legs[e] for e in legs), (rate, legs)
    assert own < 0.03 * sum(rate.values()), own


def cut(f, dscp, on=True):
    """The network loses what goes through one of its tunnels, in both directions: a class of
    packets has a queue for none."""
    for side, ns in (("a", f.lab.net.gwa), ("b", f.lab.net.gwb)):
        dev, tc = f"wan{side}", (*ns_argv(ns), "tc")
        if not on:
            sh(*tc, "qdisc", "del", "dev", dev, "root")
            continue
        sh(*tc, "qdisc", "add", "dev", dev, "root", "handle", "1:", "htb")
        sh(*tc, "class", "add", "dev", dev, "parent", "1:", "classid", "1:1", "htb", "rate", "1mbit")
        sh(*tc, "qdisc", "add", "dev", dev, "parent", "1:1", "pfifo", "limit", "0")
        sh(*tc, "filter", "add", "dev", dev, "parent", "1:", "protocol", "ip", "u32", "match", "ip", "dsfield", hex(dscp << 2), "0xfc", "flowid", "1:1")


@needs(native=True, timeout=400)
def test_plan_paths(lab):
    """A job's data divides 60 to 40 over two tunnels of the network; one vanishes and the other
    carries on; another grant brings it back. No queue pair notices."""
    with fleet(lab, per_site=1, beside="a1", more=network(lab.net.dir / "paths.json")) as f:
        lab.wan(rtt_ms=5)
        a1, b1 = f.gateways["a1"], f.gateways["b1"]
        f.routes({(SOURCE, DESTINATION): (a1.lan, b1.lan)})
        ends = [f.end(h, x) for h, x in ((lab.a, SOURCE), (lab.b, DESTINATION))]
        opts = options(size=65536, seconds=100, timeout=18) + " -p 18600"
        server = lab.serve(f"ib_write_bw {opts} -x {ends[1].gid()}", 18600, host=lab.b)
        client = lab.a.start(f"ib_write_bw {opts} -x {ends[0].gid()} {lab.b.ip4}")
        lab.wait_traffic(200)
        legs = put(f, DEMAND)
        assert abs(legs["pe-1"] / sum(legs.values()) - SHARE) < 0.001, legs
        divides(f, legs)
        lab.log(sh(lab.net.bin / "roceway", "--socket", a1.sock, "tunnels", "--paths"))
        cut(f, EDGES["pe-1"][1])
        wait_for("one is silent", lambda: states(a1)["pe-1/p"] == "silent", 10, 0.02)
        rate, own = measure(f)
        assert rate["pe-2"] > 0.85 * legs["pe-2"] and rate["pe-1"] < 0.05 * legs["pe-1"] and own < 0.1 * legs["pe-2"], (rate, own)  # the others are asked all the time
        cut(f, EDGES["pe-1"][1], on=False)
        legs = put(f, LESS)
        divides(f, legs)
        wait_for("the controller hears what goes along", lambda: all(p["answers"] and p["rate_bps"] > 0.5 * legs[p["label"].split("/")[0]]
                 for p in f.ask("GET", "/v1/tunnels")["tunnels"][0]["along"]["a1"]), 12, 0.5)
        # the far gateway starts without a controller
        f.processes["controller-1"].kill()
        f.processes["controller-1"].wait()
        b1.stop()
        b1.start()
        wait_for("it has its paths from its own disk", lambda: states(b1) == {"": "spare", "pe-1/p": "usable", "pe-2/p": "usable"}, 20, 0.1)
        wait_for("they answer at the other end", lambda: states(a1) == {"": "spare", "pe-1/p": "usable", "pe-2/p": "usable"}, 20, 0.1)
        f.controller(0)
        wait_for("the controller knows both", lambda: f.up() == 2, 60, 0.2)
        f.ask("DELETE", "/v1/jobs/split", want=(200, 204))
        wait_for("the tunnel has one path", lambda: all(len(paths(g)) == 1 for g in f.gateways.values()), 10, 0.1)
        for job in (client, server):
            r = job.wait(120)
            assert r.ok, r.text
        assert not any(g.sum(c) for g in f.gateways.values() for c in ("conns_failed", "conns_lost"))
        for g in f.gateways.values():  # the tunnel was changed, not made anew
            assert not re.search(r"tunnels: added=\d+ changed=\d+ removed=[1-9]", g.log_file.read_text()), g.name
