#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`roceway replay` at two hosts with two real gateways between them.

    ha [eth0] -- [lan0] ga [wan0] -- [wa] wanem [wb] -- [wan0] gb [lan0] -- [eth0] hb

The capture is made by cli_replay.py. The two replays pair over TCP, which crosses the gateways, too. Needs root. Argument:
the build folder.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cli_replay as captured  # noqa: E402
import gw_drain as drain  # noqa: E402
import gw_smoke as lab  # noqa: E402

ROCEWAY = os.path.join(lab.BUILD, "bin", "roceway")
LIMIT = 120


def replay(netns, path, *words):
    return subprocess.Popen(("ip", "netns", "exec", netns, ROCEWAY, "replay", path, "--interface", "eth0", "--json", *words),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def roceway(folder, side, *words):
    return subprocess.run((ROCEWAY, "--socket", os.path.join(folder, side + ".sock"), *words), capture_output=True, text=True, timeout=LIMIT, check=True).stdout


def flows(folder):
    """How many connections have not been ended by CM, at each gateway."""
    found = [json.loads(roceway(folder, side, "flows", "--json"))["flows"] for side in "ab"]
    return [sum(f["state"] != "closing" for f in all_) for all_ in found]


def both(path, a=(), b=(), at=("10.1.0.2", "10.2.0.2")):
    """The results of the replays at ha and hb."""
    p = (replay(lab.HA, path, "--as", captured.A, "--to", at[1], "--pair", "10.2.0.2:7470", *a),
         replay(lab.HB, path, "--as", captured.B, "--to", at[0], "--pair", ":7470", *b))
    try:
        out = [q.communicate(timeout=LIMIT) for q in p]
    finally:
        for q in p:
            q.kill()
    assert [q.returncode for q in p] == [0, 0], out
    return [json.loads(text) for text, _ in out]


def check(results, cm=0):
    for j, messages, peers in zip(results, (3, 2), (2, 3)):
        (side,) = j["sides"]
        assert side["completed"] == messages * captured.COUNT and side["received"] == peers * captured.COUNT, j
        assert side["result"] == "as captured" and not any(side["differs"].values()), j
        assert not j["icrc_bad"] and not j["unknown_qpn"], j
        assert j["cm"] == cm and not j["cm_differ"], j
        print("late by %.3f ms in half of all, %.3f ms at most; %d packets sent again" % (
            side["late"]["p50"] * 1e3, side["late"]["max"] * 1e3, side["resent"]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wan = gateways = None
    with tempfile.TemporaryDirectory() as folder:
        path, by_cm = os.path.join(folder, "in.pcap"), os.path.join(folder, "cm.pcap")
        for name, frames in (path, captured.session()), (by_cm, captured.with_cm(captured.session())):
            with open(name, "wb") as f:
                f.write(captured.pcap(frames))
        try:
            drain.topology()
            wan = drain.Wan(folder)
            gateways = lab.Gateway(folder, "a"), lab.Gateway(folder, "b")
            for g in gateways:
                g.start()
            for g in gateways:
                g.wait("tunnel=far state=up")
            for host, n in ((lab.HA, 1), (lab.HB, 2)):
                assert lab.ping(host, "10.%d.0.1" % n)
            check(both(path))
            check(both(path, ("--speed", "4"), ("--speed", "4")))
            check(both(path, at=("fd00:1::2", "fd00:2::2")))
            before = flows(folder)
            check(both(by_cm), cm=1)
            check(both(by_cm, at=("fd00:1::2", "fd00:2::2")), cm=1)
            assert flows(folder) == before, "the gateways do not know that a connection has ended"
            for side, g in zip("ab", gateways):
                carried = roceway(folder, side, "counters", "conns_paired")
                assert re.search(r" conns_paired +3 ", carried), carried  # the others were known by CM
                code, _ = g.stop()
                assert code == 0 and " error " not in g.text(), g.text()
        finally:
            for g in gateways or ():
                g.kill()
            if wan:
                wan.stop()
            lab.cleanup()
            subprocess.run(("ip", "netns", "del", drain.MID), stderr=subprocess.DEVNULL)
    print("5 passed, 0 failed")


if __name__ == "__main__":
    main()
