# SPDX-License-Identifier: Apache-2.0
# A pair of gateways at site A, ack mode `site`: whichever of the two dies, is stopped or is cut off
# during a transfer of real hosts, every byte arrives and no queue pair ends.
import threading

from lab import each, needs
from lab.pair import pair


def under_way(lab):
    lab.wan(rtt_ms=20, loss=0.5)
    t = lab.nccl_start(qps=4, steps=200, extra="--timeout 18")
    lab.wait_traffic(1000)
    return t


def active_killed(active, standby, p):
    active.kill()
    standby.until("alone")
    active.start()
    active.until("ready")
    standby.until("paired")


def standby_killed(active, standby, p):
    standby.kill()
    active.until("alone")
    standby.start()
    standby.until("ready")
    active.until("paired")


def zombie(active, standby, p):
    active.pause(True)
    standby.until("alone")
    active.pause(False)
    active.until("ready")
    standby.until("paired")


def cable_cut(active, standby, p):
    p.cable(False)
    one = next(g for g in (active, standby) if g.state() in ("alone", "losing", "paired"))
    one.until("alone")
    p.cable(True)
    one.until("paired")


EVENTS = {"active": active_killed, "standby": standby_killed, "zombie": zombie, "cable": cable_cut}


@needs(gateway=True, timeout=240)
@each(what=list(EVENTS))
def test_survive(lab, what):
    """A gateway of the pair dies, goes on later, or the cable is cut during a transfer: exact bytes.
    """
    with pair(lab) as (active, standby, p):
        t = under_way(lab)
        EVENTS[what](active, standby, p)
        r = t.wait()
        assert r.ok, r


@needs(gateway=True, timeout=300)
def test_survive_perftest(lab):
    """SIGKILL of the active gateway, and later of the other one, under ib_write_bw."""
    with pair(lab) as (active, standby, p):
        lab.wan(rtt_ms=20)
        for _ in range(2):
            results = []
            t = threading.Thread(target=lambda r=results: r.append(lab.perftest("ib_write_bw", size=65536, seconds=15, limit=60)))
            t.start()
            lab.wait_traffic(1000)
            active_killed(active, standby, p)
            active, standby = standby, active
            t.join()
            assert results[0].ok, results[0].text
