#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real gateways with a tunnel of two paths, over two WAN links of which one dies, loses 30 %, and comes back under load.

    ha [eth0] -- [lan0] ga [wan0] -- [wa] wanem [wb] -- [wan0] gb [lan0] -- [eth0] hb
                           [wan1] -- [wc] wanem [wd] -- [wan1]

The hosts are models, as in gw_drain.py, which compares every byte. Needs root. Argument: the build folder.
"""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402

PORT = """  - name: wan2
    device: "net_af_packet2,iface=wan1"
    role: wan
    addresses: [198.51.100.{n}/24]
    mtu: 1500
tunnels:
"""
PATHS = """    paths:
      - {{port: wan2, local: 198.51.100.{n}, remote: 198.51.100.{m}, udp_port: 4893, source_port: 5000, dscp: 10, rate: 5Gbps}}
    path_probe: 5ms
memory:
"""


def topology():
    drain.topology()
    for gw, mid in ((lab.GA, "wc"), (lab.GB, "wd")):
        lab.sh("ip", "-n", gw, "link", "add", "wan1", "type", "veth", "peer", "name", mid, "netns", drain.MID)
        lab.sh("ip", "-n", gw, "link", "set", "wan1", "up")
        lab.sh("ip", "-n", drain.MID, "link", "set", mid, "up")


class Second:
    """The other WAN link: 10 ms round trip, no loss."""

    def __init__(self, folder):
        self.sock = os.path.join(folder, "second.sock")
        self.proc = subprocess.Popen(("ip", "netns", "exec", drain.MID, os.path.join(drain.BIN, "wanem"), "--a", "wc", "--b", "wd",
                                      "--delay", "5ms", "--control", self.sock), stderr=subprocess.DEVNULL)

    def set(self, *words):
        end = time.monotonic() + lab.READY
        while subprocess.run((os.path.join(drain.BIN, "wanem"), "ctl", self.sock, "set", "both", *words), capture_output=True).returncode:
            assert time.monotonic() < end, "wanem does not answer"
            time.sleep(0.02)

    def stop(self):
        self.proc.terminate()
        self.proc.wait()


def configure(gateway, side):
    n, _, m = lab.SITES[side]
    with open(gateway.config) as f:
        text = f.read()
    text = text.replace("tunnels:\n", PORT.format(n=n), 1).replace("memory:\n", PATHS.format(n=n, m=m), 1)
    with open(gateway.config, "w") as f:
        f.write(text)


@contextlib.contextmanager
def running(folder, workers=1):
    a, b = (lab.Gateway(folder, side, workers=workers) for side in "ab")
    wan, second = drain.Wan(folder), Second(folder)
    load = None
    try:
        for g, side in ((a, "a"), (b, "b")):
            configure(g, side)
        b.start()
        a.start().wait("tunnel=far state=up")
        b.wait("tunnel=far state=up")
        load = drain.Load()
        yield a, b, second, load
    finally:
        if load:
            load.kill()
        a.kill()
        b.kill()
        wan.stop()
        second.stop()


def roceway(folder, *words):
    return subprocess.run((os.path.join(drain.BIN, "roceway"), "--socket", os.path.join(folder, "a.sock")) + words, capture_output=True,
                          text=True, timeout=60)


def paths(folder):
    return json.loads(roceway(folder, "tunnels", "--json").stdout)["tunnels"][0]["paths"]


def until(load, what, true):
    """The load goes on meanwhile."""
    end = time.monotonic() + lab.READY
    while not true():
        assert time.monotonic() < end, what
        load.more(50)


def test_path_dies(folder, workers=1):
    with running(folder, workers) as (a, b, second, load):
        until(load, "both paths answer", lambda: [p["state"] for p in paths(folder)] == ["usable"] * 2)
        before = paths(folder)[1]
        load.more()
        now = paths(folder)[1]
        assert now["tx_bytes"] > before["tx_bytes"] + 100000, (before, now)  # the short path has most
        for words in (("loss=100%",), ("loss=30%",), ("loss=0%", "delay=30ms")):
            second.set(*words)
            if words[0] == "loss=100%":
                until(load, "path 1 is silent", lambda: paths(folder)[1]["state"] == "silent")
            load.more()
        until(load, "path 1 is back", lambda: paths(folder)[1]["state"] in ("usable", "resting"))  # both share this machine
        now = paths(folder)
        assert now[1]["silences"] and now[0]["tx_bytes"] > 100000, now
        # A path that is late on a busy machine is silent for a moment.
        table = roceway(folder, "tunnels", "--paths").stdout.splitlines()
        assert len(table) == 3 and "198.51.100.2" in table[2] and table[2].split()[:2] == ["far", "1"], table
        metrics = subprocess.run(("curl", "-s", "--unix-socket", os.path.join(folder, "a.sock"), "http://x/metrics"), capture_output=True,
                                 text=True).stdout
        assert re.search(r'^roceway_path_usable{tunnel="far",path="1"} [01]$', metrics, re.M), metrics[:2000]
        load.finish()
        for g in a, b:
            code, counters = g.stop()
            assert code == 0 and " error " not in g.text(), g.text()
            assert "conns_failed" not in counters and "conns_lost" not in counters, counters


def test_two_workers(folder):
    test_path_dies(folder, workers=2)


def test_live(folder):
    """Rate, DSCP and place of a path change under load, the path goes and comes, and its peer follows later. A wrong list is refused."""
    with running(folder) as (a, b, _, load):
        def patch(side, body):
            return subprocess.run(("curl", "-s", "-o", "/dev/stdout", "-w", "\n%{http_code}", "--unix-socket", os.path.join(folder, side + ".sock"),
                                   "-X", "PATCH", "--data", body, "http://x/v1/tunnels/far"), capture_output=True, text=True).stdout

        def both(at_a, at_b):
            for side, body in (("a", at_a), ("b", at_b)):
                r = patch(side, body)
                assert r.endswith("\n200"), (side, body, r)
                load.more(50)

        entry = '{port: wan2, local: 198.51.100.1, remote: 198.51.100.2, udp_port: 4893, source_port: 5000, dscp: 12, rate: 2Gbps}'
        load.more()
        for body, want in ((entry, 200), (entry.replace("198.51.100.1", "198.51.100.77"), 409), (entry.replace("4893", "80"), 400)):
            r = patch("a", "paths: [%s]" % body)
            assert r.endswith("\n%d" % want), (body, r)
        assert paths(folder)[1]["rate_max_bytes_per_second"] == 250000000, paths(folder)
        load.more()
        far = entry.replace("198.51.100.1,", "198.51.100.9,").replace("198.51.100.2", "198.51.100.1").replace("198.51.100.9", "198.51.100.2")
        both("paths: []", "paths: []")
        assert len(paths(folder)) == 1
        # it comes back, elsewhere: other ports
        both("paths: [%s]" % entry.replace("4893", "4993"), "paths: [%s]" % far.replace("4893", "4993"))
        until(load, "the path answers", lambda: paths(folder)[1]["state"] in ("usable", "resting"))
        spare = "own_path: spare\npaths: [%s]"
        both(spare % entry.replace("rate: 2Gbps", "label: pe-1/p"), spare % far)
        until(load, "the path answers there", lambda: [p["state"] for p in paths(folder)] == ["spare", "usable"])
        before = paths(folder)
        load.more()
        now = paths(folder)
        assert now[1]["label"] == "pe-1/p" and now[1]["tx_bytes"] > before[1]["tx_bytes"] + 100000, (before, now)
        assert "pe-1/p" in roceway(folder, "tunnels", "--paths").stdout
        both("own_path: always\npaths: []", "own_path: always\npaths: []")
        assert not any(g.text().count("tunnel=far removed") for g in (a, b))
        load.finish()
        code, counters = a.stop()
        assert code == 0 and "conns_failed" not in counters and "conns_lost" not in counters, counters


if __name__ == "__main__":
    sys.exit(drain.main(globals(), topology))
