# SPDX-License-Identifier: Apache-2.0
# A pair of gateways at site A, ack mode `site`: whichever of the two dies, is stopped or is cut off
# during a transfer of real hosts, every byte arrives and no queue pair ends. So it is when one of
# a tunnel's two paths dies, loses much or becomes longer.
import contextlib
import threading

from lab import each, needs
from lab.messages import Messages
from lab.pair import pair
from lab.second import second_path


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


def accepted(gateway):
    """Requests, of each worker."""
    return [c["value"] for c in gateway.get("/v1/counters?workers=1")["counters"] if c["name"] == "accepted"]


@needs(gateway=True, workers=2, timeout=240)
@each(what=["active", "zombie", "cable"])
def test_survive_follower(lab, what):
    """The same where the hosts' queue pairs are at worker 1, which follows worker 0."""
    with pair(lab) as (active, standby, p):
        t = under_way(lab)
        assert accepted(active)[1] and not accepted(active)[0], accepted(active)
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


def write(lab):
    r = lab.nccl(qps=16, steps=16, extra="--timeout 18")
    assert r.ok, r


def send(lab):
    m = Messages(lab, conns=16, open=16, messages=100, size=8192, reply=1)
    m.wait()
    m.check_fine()


def read(lab):
    """rping: the server READs what the client has, and WRITEs it back; both compare."""
    r = lab.pair(f"rping -s -V -C 60 -S 60000 -a {lab.b.ip4} -p 7174", f"rping -c -V -C 60 -S 60000 -a {lab.b.ip4} -p 7174", port=7174, cm=True)
    assert r.ok, r


@contextlib.contextmanager
def again_and_again(lab, once):
    """One transfer after the other; at the end all must have been right."""
    over, wrong = threading.Event(), []

    def loop():
        while not over.is_set() and not wrong:
            try:
                once(lab)
            except Exception as e:  # a thread's own exception would only be printed
                wrong.append(repr(e))

    t = threading.Thread(target=loop)
    t.start()
    try:
        yield
    finally:
        over.set()
        t.join()
    assert not wrong, wrong


TRANSFERS = {"write": write, "send": send, "read": read}


@needs(gateway=True, timeout=300)
@each(op=list(TRANSFERS))
def test_survive_path(lab, op):
    """Of two paths the second one dies, then loses 30 %, then is 50 ms longer: exact bytes, no error of a queue pair."""
    with second_path(lab) as second:
        lab.wan(rtt_ms=30)
        second.set(rtt_ms=20)
        with again_and_again(lab, TRANSFERS[op]):
            lab.wait_traffic(500)
            assert second.paths()[1]["tx_bytes"] > 100000, second.paths()  # the shorter one has most
            for how in ({"loss": 100}, {"loss": 30}, {"rtt_ms": 70}):
                second.set(**dict({"rtt_ms": 20}, **how))
                if how.get("loss") == 100:
                    second.until("silent")
                lab.wait_traffic(1500, seconds=60)
            second.until("usable", "resting")  # both share this machine
        assert second.paths()[1]["silences"], second.paths()
        assert not [g.sum("conns_failed") for g in lab.gateways if g.sum("conns_failed")]
