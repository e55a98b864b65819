#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""roceway capture on two real gateways under load and loss: every packet in all its stages, in the clear, accounted; and what goes wrong.

The world is that of gw_drain.py and gw_keys.py. Needs root. Argument: the build folder.
"""
import collections
import contextlib
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402
import gw_keys as keys  # noqa: E402

sys.path.insert(0, os.path.join(lab.ROOT, "tests", "lib"))
from captured import Capture, check_icrc, check_stages, tshark  # noqa: E402

ROCEWAY = os.path.join(drain.BIN, "roceway")


def begin(folder, side, path, *words, **more):
    with contextlib.suppress(OSError):
        os.unlink(path)
    return subprocess.Popen((ROCEWAY, "--socket", os.path.join(folder, side + ".sock"), "capture", "-w", path, *words),
                            stderr=subprocess.PIPE, text=True, **more)


def end(proc, code=0):
    if proc.poll() is None:
        proc.send_signal(signal.SIGINT)
    said = proc.communicate(timeout=lab.READY)[1]
    assert proc.returncode == code, (proc.returncode, said)
    return said


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def both(folder, load):
    """Captures at both gateways while the load runs; the two files, read."""
    paths = [os.path.join(folder, side + ".pcapng") for side in "ab"]
    procs = [begin(folder, side, path, "--seconds", "3", "opcode write") for side, path in zip("ab", paths)]
    while any(proc.poll() is None for proc in procs):
        load.more(500)
    for proc in procs:
        end(proc)
    return [Capture(p) for p in paths]


def test_stages(folder):
    """In the clear. tshark, the ICRC and the two captures agree; nothing is unaccounted."""
    with drain.running(folder, workers=2) as (_, _, _, load):
        a, b = both(folder, load)
        for c in a, b:
            assert c.check_accounts() == 0, c.statistics
            assert c.names == ["lan lan-in", "lan lan-out", "wan wan-in", "wan wan-out"]
            assert "tunnel name=far" in c.comments[0] and "security=none" in c.comments[0], c.comments
            assert re.search("flow tenant= local=10.[12].0.2 remote=10.[12].0.2 local_qpn=0x", c.comments[1]), c.comments
        whole, lost, rebuilt = check_stages(a, b)
        print("   %d packets in all stages, %d lost on the WAN and sent again, %d rebuilt" % (whole, lost, rebuilt))
        assert rebuilt <= keys.counters(folder, "b").get(("tunnel", "rebuilt"), 0)
        for side in "ab":
            path = os.path.join(folder, side + ".pcapng")
            check_icrc(path)
            seen = tshark(path, "-c", "5000", "-T", "fields", "-e", "frame.comment", "-e", "_ws.malformed", "-e", "_ws.lua.error").splitlines()
            assert len(seen) > 500, len(seen)
            assert all(line.startswith("stage=") and line.endswith("\t\t") for line in seen), [s for s in seen if not s.endswith("\t\t")][:5]


def test_keys(folder):
    """With keys the WAN stages are in the clear: the same packets, which the dissector reads."""
    with keys.world(folder) as (_, _, _):
        load = drain.Load()
        try:
            load.more()
            a, b = both(folder, load)
            rebuilt = check_stages(a, b)[2]
            assert rebuilt <= keys.counters(folder, "b").get(("tunnel", "rebuilt"), 0)
            for side in "ab":
                path = os.path.join(folder, side + ".pcapng")
                assert not tshark(path, "-c", "5000", "-Y", "roceway.sealed || _ws.malformed || roceway.frame.bad || _ws.lua.error")
                for stage in "wan-in", "wan-out":
                    rows = tshark(path, "-c", "5000", "-Y", "roceway.seq && infiniband && frame.comment contains \"stage=%s\"" % stage,
                                  "-T", "fields", "-e", "infiniband.bth.psn").splitlines()
                    assert len(rows) > 10, (side, stage, len(rows))
            load.finish()
        finally:
            load.kill()


def test_limits(folder):
    """Filter, snap length, count, rate, ring of files, and a pipe."""
    with drain.running(folder) as (_, _, _, load):
        path = os.path.join(folder, "x.pcapng")

        def run(*words, files=False):
            proc = begin(folder, "a", path, *words)
            while proc.poll() is None:
                load.more(200)
            said = proc.communicate()
            assert proc.returncode == 0, said
            return None if files else Capture(path)

        c = run("-c", "500", "-s", "64", "stage", "lan-in", "and", "opcode", "write")
        assert len(c.packets) == 500 and all(len(p.data) <= 64 <= p.wire for p in c.packets)
        assert all(p.stage == "lan-in" and 6 <= p.data[42] <= 11 for p in c.packets)
        c = run("--seconds", "2", "--rate", "100")
        assert 50 <= len(c.packets) <= 300, len(c.packets)
        assert c.check_accounts() > 0
        assert keys.counters(folder, "a")[("gateway", "capture_over_rate")] > 0
        run("-c", "5000", "--ring", "2", "--size", "1", files=True)
        names = sorted(n for n in os.listdir(folder) if re.match(r"x\.\d+\.pcapng$", n))
        assert len(names) == 2 and names[0] != "x.00001.pcapng", names
        for n in names:
            each = Capture(os.path.join(folder, n))
            assert each.packets and len(each.names) == 4 and len(each.bytes) <= 1 << 20
        live = begin(folder, "a", "-", "-c", "300", stdout=subprocess.PIPE)
        sink = subprocess.Popen(("tshark", "-n", "-r", "-", "-T", "fields", "-e", "frame.number"), stdin=live.stdout,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while live.poll() is None:
            load.more(200)
        live.stdout.close()
        assert len(sink.communicate(timeout=lab.READY)[0].split()) == 300
        live.communicate()


def test_trigger(folder):
    """Only connections with an event, with their packets from before."""
    with drain.running(folder) as (_, _, _, load):
        path = os.path.join(folder, "x.pcapng")
        proc = begin(folder, "a", path, "--trigger", "retransmit", "stage", "wan-out", "and", "opcode", "write")
        keys.until("a file begins", lambda: size_of(path) > 0)

        def full():
            load.more(500)
            return size_of(path) > 100000
        keys.until("an event", full)
        said = end(proc)
        assert re.search(r"of \d+ connections? with an event", said), said
        of = collections.defaultdict(list)
        for p in Capture(path).packets:
            of[p.words.get("conn")].append(p)
        assert of
        for conn, packets in of.items():
            first = next((i for i, p in enumerate(packets) if "retransmit" in p.events), None)
            assert first is not None, "%s: no event" % conn
        assert any("retransmit" not in packets[0].events for packets in of.values()), "nothing from before"


def refused(folder, *words, side="a", code=1):
    r = subprocess.run((ROCEWAY, "--socket", os.path.join(folder, side + ".sock"), "capture", *words), capture_output=True, text=True, timeout=60)
    assert r.returncode == code, (words, r)
    return r.stderr


def test_bad_input(folder):
    with drain.running(folder) as (a, _, _, load):
        path = os.path.join(folder, "x.pcapng")
        said = refused(folder, "-w", path, "drop and hots 10.0.0.1")
        lines = said.splitlines()
        assert len(lines) == 3 and lines[0].startswith("roceway: filter: expected tenant"), said
        assert lines[1][lines[2].index("^"):].startswith("hots"), said
        assert not os.path.exists(path), "a wrong filter leaves a file"
        assert "no tenant has this name" in refused(folder, "-w", path, "tenant nobody")
        assert "--write" in refused(folder, code=2)
        for words in (["--trigger", "thunder"], ["--snap", "0"], ["--count", "x"], ["--size", "5"], ["--from-interface", "lo", "--rate", "5"]):
            assert refused(folder, "-w", path, *words, code=2).startswith("roceway: "), words
        assert "cannot reach" in refused(folder, "-w", path, side="nobody")
        assert "cannot write" in refused(folder, "-w", os.path.join(folder, "none", "x"))
        first = begin(folder, "a", path)
        keys.until("it begins", lambda: size_of(path) > 0)
        assert "another capture runs" in refused(folder, "-w", path + "2")
        # a client that dies leaves room for the next one
        first.kill()
        first.communicate()
        proc = begin(folder, "a", path, "-c", "100")
        keys.until("packets", lambda: load.more(200) or proc.poll() is not None)
        assert proc.returncode == 0, proc.communicate()
        proc.communicate()
        # one that reads nothing stops nobody: what it misses is counted
        slow = begin(folder, "a", "-", stdout=subprocess.PIPE)  # nobody reads the pipe
        lost = keys.counters(folder, "a").get(("gateway", "capture_lost"), 0)
        keys.until("it is too slow", lambda: load.more(500) or keys.counters(folder, "a").get(("gateway", "capture_lost"), 0) > lost)
        slow.kill()
        slow.wait()
        slow.stdout.close()
        slow.stderr.close()
        full_disk(folder, load)
        # the gateway stops
        proc = begin(folder, "a", path, "drop")
        keys.until("it begins", lambda: size_of(path) > 0)
        load.finish()
        assert a.stop()[0] == 0, a.text()
        said = proc.communicate(timeout=lab.READY)[1]
        assert proc.returncode in (0, 1) and "packets written" in said, (proc.returncode, said)
        Capture(path)


def full_disk(folder, load):
    """The file ends with a whole packet; the gateway goes on."""
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    lab.sh("mount", "-t", "tmpfs", "-o", "size=256k", "none", disk)
    try:
        path = os.path.join(disk, "x.pcapng")
        proc = begin(folder, "a", path)
        keys.until("the disk is full", lambda: load.more(500) or proc.poll() is not None)
        said = proc.communicate()[1]
        assert proc.returncode == 1 and "No space left" in said and said.count("roceway: ") == 1, said
        assert Capture(path).packets
    finally:
        lab.sh("umount", disk)


def test_interface(folder):
    """Without a gateway: a kernel interface, by libpcap."""
    path = os.path.join(folder, "x.pcap")
    words = ("ip", "netns", "exec", lab.HA, ROCEWAY, "capture", "--from-interface", "eth0", "-w", path, "-c", "3", "icmp6 or arp or ip")
    proc = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    keys.until("packets", lambda: lab.icmp(lab.HA, "10.1.0.77", 1, timeout=0.1) is None or proc.poll() is not None)
    assert proc.returncode == 0 and "3 packets written" in proc.communicate()[1]
    assert len(subprocess.run(("tshark", "-n", "-r", path), capture_output=True, text=True).stdout.splitlines()) == 3
    r = subprocess.run(words[:-1] + ("wrong filter",), capture_output=True, text=True)
    assert r.returncode == 1 and "filter of libpcap" in r.stderr, r


if __name__ == "__main__":
    sys.exit(drain.main(globals()))
