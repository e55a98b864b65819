# SPDX-License-Identifier: Apache-2.0
# Sessions of real programs between two hosts, captured by `roceway capture` at gateway A and played again by `roceway replay`: in virtual
# time, and by two replays through the same gateways (docs/replay.md).
import json
import subprocess

import test_relay_kernel as kernel
from lab import TIMEOUT, each, needs
from lab.players import players
from lab.posted import beside, posted
from test_capture import Both

RTT = 20  # ms
LOSSES = ("cut", "headless", "unpaired", "partial", "missing", "reused", "unanswered")
LONGER = 1.5  # of the captured time in virtual time at most; with the path twice in each wait the NCCL-shaped session takes 2.4
CLOCK = 1e-5  # s: a capture's times as floating-point numbers


def sim(lab, path, away):
    r = subprocess.run([lab.net.bin / "roceway", "replay", path, "--sim", "--json", "--as", lab.a.ip4, "--rtt", f"{RTT}ms", "--away", away],
                       capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stderr[-500:] + r.stdout[-1500:]
    return json.loads(r.stdout)


def flow_of(side):
    """(where a side's requests go to, where its peer's go to), as in posted()."""
    ip, qpn, _, peer_ip, peer_qpn = side["requests"].split()
    return (ip, peer_ip, int(peer_qpn, 0)), (peer_ip, ip, int(qpn, 0))


def play(lab, path, away, before):
    """Plays it through the gateways: all messages are there, as they were and in their order, none before its time, and none before what it
    waited for. Returns the two sessions beside each other."""
    with players(lab) as p, Both(lab) as both:
        results = p.play(path, (lab.a.ip4, lab.b.ip4), "--away", f"{lab.b.ip4}={away}us")
    took, peers = {f.to: f.times[-1] - f.times[0] for f in before}, {}
    for j in results:
        for s in j["sides"]:
            assert s["result"] == "as captured" and s["completed"] == s["messages"] and s["received"] == s["expected"], s
            to, peer = flow_of(s)
            peers[to] = peer
            # a host that is late makes gaps longer, never shorter; only its first message may have been the latest of all
            assert not s["messages"] or s["time"] * took[to] + s["late"]["max"] > took[to] - CLOCK, (s, took[to])
    return beside(before, posted(both.files[0]), peers, {lab.b.ip4: away / 1e6})


def again(lab, name, captured, running=False):
    """Plays a capture of the whole session, or of one that was running when it began, in virtual time and through the gateways."""
    # while it was captured: a busy machine's gateways add to it
    away = round(1e6 * max(RTT / 1e3, lab.gwa.ask("tunnels")["tunnels"][0]["rtt_seconds"]))
    one, two = (sim(lab, captured, f"{lab.b.ip4}={away}us") for _ in range(2))
    assert one == two
    stretch = max(s["time"] for s in one["sides"])
    assert stretch < LONGER, one["sides"]
    found = one["capture"]
    lost = {w: found[w] for w in LOSSES if found[w]}
    assert not lost if not running else set(lost) <= {"partial", "unanswered"}, found
    path = captured.rename(captured.with_name("first.pcapng"))
    b = play(lab, path, away, posted(path))
    assert b.messages == found["messages"], (b, found)
    lab.say(f"{name}{' in mid-flow' if running else ''}, {away / 1e3:.1f} ms: {found['connections']} connections, {one['cm']} by CM, {b.messages} messages, "
            f"{b.bytes} bytes, all as captured, {b.causes} behind one of the peer; took {b.total:.4f} of the time, half of {b.gaps} gaps within "
            f"{100 * b.gap:.2f} %; in virtual time hash {one['hash']}, {stretch:.4f} of the time")
    return one


@needs(gateway=True, switch=True, timeout=700)
@each(begin=["whole", "running"])
def test_capture_replay_nfs(lab, begin):
    """NFS 4.2 over RDMA: SEND with invalidate, READs and WRITEs of the server, R_Keys that change; also a mount older than the capture."""
    lab.wan(rtt_ms=RTT)
    work = """set -e; cp /tmp/t/f /mnt/f; for i in 1 2 3 4; do echo $i >/mnt/new; mv /mnt/new /mnt/small$i; done; sync
        echo 3 >/proc/sys/vm/drop_caches; cat /mnt/small? | tr -d '\\n'; echo; sha256sum </mnt/f; sha256sum </tmp/t/f"""
    for h in (lab.a, lab.b):
        h.modules()
    try:
        kernel.nfs_up(lab, client=lab.a.ip4)
        lab.a.run("dd if=/dev/urandom of=/tmp/t/f bs=64k count=4 2>/dev/null")
        if begin == "running":
            kernel.mount(lab, lab.b.ip4)
        with Both(lab) as both:
            if begin == "whole":
                kernel.mount(lab, lab.b.ip4)
            r = lab.a.run(work, timeout=180).out.splitlines()
            assert r[0] == "1234" and r[1] == r[2], r
            lab.a.run("umount /mnt", timeout=60)
    finally:
        lab.a.run("umount -f /mnt 2>/dev/null; rm -f /tmp/t/f; true", timeout=60)
        kernel.nfs_down(lab)
    one = again(lab, "nfs", both.files[0], begin == "running")
    assert one["cm"] == (begin == "whole") and not one["cm_differ"], one


@needs(gateway=True, switch=True, timeout=400)
@each(begin=["whole", "running"])
def test_capture_replay_nvme(lab, begin):
    """NVMe over Fabrics: the admin queue and those of I/O; READs and WRITEs of the target; also a disk connected before the capture."""
    lab.wan(rtt_ms=RTT)
    for h in (lab.a, lab.b):
        h.modules()
    kernel.target_up(lab)
    try:
        disk = kernel.disk_up(lab, lab.b.ip4) if begin == "running" else None
        with Both(lab) as both:
            disk = disk or kernel.disk_up(lab, lab.b.ip4)
            r = lab.a.run(f"badblocks -w -s -b 1024 -c 16 -t 0x5a -t random {disk} 127 2>&1", timeout=240)
            assert "0/0/0 errors" in r.out and "errors)" in r.out, r
            kernel.disk_down(lab)
    finally:
        kernel.disk_down(lab)
        kernel.target_down(lab)
    one = again(lab, "nvme", both.files[0], begin == "running")
    assert one["cm"] >= 2 if begin == "whole" else not one["cm"], one


@needs(gateway=True, switch=True, timeout=200)
def test_capture_replay_perftest(lab):
    """ib_write_bw on two queue pairs, then ib_send_lat, then ib_read_lat set up by CM."""
    lab.wan(rtt_ms=RTT)
    with Both(lab) as both:
        p = lab.perftest("ib_write_bw", size=16384, iters=100, qps=2, timeout=TIMEOUT)
        s = lab.perftest("ib_send_lat", size=4096, iters=30, timeout=TIMEOUT)
        q = lab.perftest("ib_read_lat", size=4096, iters=30, cm=True, timeout=TIMEOUT)
    assert p.ok and q.ok and s.ok, p.text + q.text + s.text
    one = again(lab, "perftest", both.files[0])
    assert one["capture"]["connections"] >= 4 and one["cm"], one


@needs(gateway=True, switch=True, timeout=200)
@each(begin=["whole", "running"])
def test_capture_replay_nccl(lab, begin):
    """The NCCL-shaped workload: four queue pairs, WRITEs with immediate data, short words back, data both ways; also from its middle on."""
    lab.wan(rtt_ms=RTT)
    job = lab.nccl_start(4, 384, "--bidir --chunk 4096") if begin == "running" else None
    if job:
        lab.wait_traffic(200)
    with Both(lab) as both:
        r = (job or lab.nccl_start(4, 256, "--bidir --chunk 4096")).wait()
    assert r.ok, r
    one = again(lab, "nccl", both.files[0], begin == "running")
    assert one["capture"]["connections"] == 4, one
