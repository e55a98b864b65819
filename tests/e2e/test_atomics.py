# SPDX-License-Identifier: Apache-2.0
# Masses of ATOMICs and of small READs, more than a gateway has packet buffers, beside another
# program's WRITE: all are answered, nothing is dropped for lack of memory, and afterwards the
# buffers are free again.
import threading

from lab import TIMEOUT, each, needs, perftest
from lab.proc import wait_for

BUFFERS = 8192
FEW = 64  # buffers in receive rings and in the workers' hands, which vary
REPEAT = 256  # READ responses that are kept for a connection
QPS = 4
# No more posted than may be outstanding. With more, ib_atomic_bw over rxe soon stops for ever
# although its host has every answer, also without gateways; with this it seldom does. So the test
# does not require that it ends, but that all its requests were answered.
DEPTH = "-t 16 -o 16"
MEMORY = f"memory: {{buffers: {BUFFERS}, custody_total: 16MiB, custody_per_connection: 16MiB}}\n"


def free(g):
    return g.ask("status")["buffers_free"]


class Watch:
    """The fewest free buffers of each gateway while a block runs."""

    def __init__(self, gateways):
        self.least = {g.side: free(g) for g in gateways}
        self.gateways, self.ended = gateways, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.ended.wait(0.2):
            for g in self.gateways:
                self.least[g.side] = min(self.least[g.side], free(g))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def write_beside(lab, seconds, ends=None):
    """ib_write_bw of 16 KiB messages, few at a time: a thread, and the list that gets its result.
    """
    a, b = ends or (lab.a, lab.b)
    opt = [perftest.options(gid=h.gid(), dev=h.rxe, size=16384, seconds=seconds, timeout=TIMEOUT, extra="-t 8 -p 18600") for h in (a, b)]
    found = []
    t = threading.Thread(target=lambda: found.append(
        lab.pair(f"ib_write_bw {opt[1]}", f"ib_write_bw {opt[0]} {{server}}", 18600, timeout=seconds + 30, ends=(a, b))))
    t.start()
    return t, found


@needs(gateway=True, memory=MEMORY, timeout=120)
@each(op=["atomic", "read"])
def test_masses(lab, op):
    """Three times as many requests as there are buffers, on 4 QPs."""
    lab.wan(rtt_ms=2)
    before = {g.side: free(g) for g in lab.gateways}
    answered = lab.gwb.sum("tx_data")
    with Watch(lab.gateways) as w:
        t, written = write_beside(lab, 8)
        p = lab.perftest(f"ib_{op}_bw", qps=QPS, iters=3 * BUFFERS // QPS, limit=50, timeout=TIMEOUT, extra=DEPTH, **({} if op == "atomic" else {"size": 64}))
        t.join()
    lab.log(f"free buffers before {before}, least {w.least}, afterwards { {g.side: free(g) for g in lab.gateways} }")
    wait_for("all is delivered", lambda: lab.gwa.sum("accepted") == lab.gwa.sum("delivered"), 10)
    answers = lab.gwb.sum("tx_data") - answered
    lab.log(f"{answers} answers; it ended: {p.ok}")
    assert answers > 2 * BUFFERS, f"{answers} answers: too few to tell; {p.text}"
    assert all(f["responder_psn"] == f["responder_acked"] for f in lab.gwa.flows()), lab.gwa.flows()
    assert written and written[0].ok, written
    kept = REPEAT * QPS if op == "read" else 0
    for g in lab.gateways:
        assert w.least[g.side] > BUFFERS // 4, w.least
        wait_for(f"buffers of gateway {g.side}", lambda g=g: free(g) >= before[g.side] - kept - FEW, 10)
        assert not g.sum("drop_low_memory"), g.drops()
