# SPDX-License-Identifier: Apache-2.0
# `roceway replay --sim` of what real hosts sent (docs/replay.md).
import json
import subprocess

from lab import BAD_WAN, TIMEOUT, needs

ITERS, SIZE = 100, 16384
BAD = ("--sim", "--json", "--rtt", "40ms", "--loss", "1%", "--seed", "7")


def replay(lab, wire):
    r = subprocess.run([lab.net.bin / "roceway", "replay", wire, *BAD], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stdout + r.stderr
    return json.loads(r.stdout)


@needs(gateway=True)
def test_replay_sim(lab):
    """Each WRITE of ib_write_bw is found in a capture at its host and played exactly, twice the same."""
    lab.wan(**BAD_WAN)
    with lab.capture("tapa") as wire:
        p = lab.perftest("ib_write_bw", size=SIZE, iters=ITERS, timeout=TIMEOUT)
    assert p.ok, p.text
    one, two = replay(lab, wire), replay(lab, wire)
    assert one == two
    found = one["capture"]
    assert found["connections"] == 1 and found["messages"] == ITERS, found
    assert not any(found[lost] for lost in ("headless", "unpaired", "partial", "missing", "reused", "unanswered")), found
    (busy,) = (s for s in one["sides"] if s["messages"])
    assert busy["requests"].startswith(f"{lab.a.ip4} "), busy
    assert busy["completed"] == ITERS and busy["bytes"] == ITERS * SIZE and busy["result"] == "as captured", busy
    assert not any(busy["differs"].values()) and one["wan_lost_a"] > 0, one


@needs(gateway=True)
def test_replay_sim_nccl(lab):
    """An NCCL-shaped session: four queue pairs set up over TCP, WRITEs with immediate data one way, and short words back."""
    lab.wan(**BAD_WAN)
    with lab.capture("tapa") as wire:
        r = lab.nccl(4, 16)
    assert r.ok, r
    one, two = replay(lab, wire), replay(lab, wire)
    assert one == two
    found = one["capture"]
    assert found["connections"] == 4 and found["messages"] > 4 * 16, found
    assert not any(found[lost] for lost in ("headless", "unpaired", "partial", "missing", "reused", "unanswered")), found
    busy = [s for s in one["sides"] if s["messages"]]
    assert len(busy) == 8, one["sides"]
    for s in busy:
        assert s["completed"] == s["messages"] and s["result"] == "as captured" and not any(s["differs"].values()), s
