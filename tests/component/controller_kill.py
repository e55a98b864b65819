#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# controller_kill.py BUILD [SEED [SECONDS]]: fifty clients write while the controller is killed at
# random times and restarted on the same store, over SQLite and over three etcd nodes (of which one
# is killed sometimes as well): acknowledged changes are there, no change is there partly, revisions
# and generations only grow, one generation is one document.
#
# controller_kill.py BUILD calm: the same load without a kill, ended under load: for sanitizers.
import os
import random
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
import cases  # noqa: E402
from ctlr.harness import CA, Controller, Etcd, temporary, until  # noqa: E402
from ctlr.load import PATIENCE, Alternating, Book, Crowd, Patient, Reader, same_everywhere, things  # noqa: E402

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
CALM = sys.argv[2:3] == ["calm"]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 and not CALM else int.from_bytes(os.urandom(3), "big")
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 4


class World:
    def __init__(self, directory, store, rng):
        self.book, self.context = Book(), {}
        ca = CA(Path(directory) / "ca")
        for name, role in [("ctl", "controller"), ("op", "operator"), ("sched", "scheduler"), *((f"g{i}", "gateway") for i in range(12))]:
            self.context[name] = ca.issue(name, role, *(["127.0.0.1"] if role == "controller" else []))
        self.ctl = Controller(BUILD, ca, directory, store)
        op = Patient(self.ctl, self.context["op"])
        for i, name in enumerate("ab"):
            op.ask("PUT", f"/v1/sites/{name}", {"prefixes": [f"10.{i + 1}.0.0/16"]}, (200, 201))  # 200: an answer was lost
        op.close()
        self.things = things(self, rng)

    def check(self):
        op = Patient(self.ctl, self.context["op"])
        health = op.ask("GET", "/v1/health", None, 200)[1]
        assert health["revision"] >= self.book.revision, (health, self.book.revision)
        for t in self.things:
            t.check(op)
        for t in self.things:
            if t.key == "g" and t.acked:
                self.book.saw_document(t.name, op.ask("GET", f"/v1/gateways/{t.name}/document", None, 200)[1])
        same_everywhere(op)
        op.close()


def rounds(w, rng, etcd=None):
    begin, n, book = time.monotonic(), 0, w.book
    while time.monotonic() - begin < SECONDS or n < 3:
        crowd, had = Crowd(w.things, w.ctl), book.acknowledged
        # A killed leader costs seconds, and more on a busy machine: each round has some
        # acknowledged changes.
        until(lambda: crowd.wrong or book.acknowledged > had + 10, PATIENCE)
        time.sleep(rng.uniform(0, 0.8))
        node = rng.randrange(3) if etcd and rng.random() < 0.4 else None
        if node is not None:
            etcd.kill(node)
            time.sleep(rng.uniform(0, 0.3))
        if rng.random() < 0.2:
            w.ctl.stop()
        else:
            w.ctl.kill()
        crowd.stop()
        if node is not None:
            etcd.start(node)
        w.ctl.start()
        w.check()
        n += 1
    print(f"{n} rounds: {book.acknowledged} changes acknowledged, {book.refused} refused, {book.unsure} unknown, revision {book.revision}", flush=True)
    assert n >= 2 and book.acknowledged > 10 * n, "hardly anything happened"


def calm(w, rng):
    def readers(n, *only):
        return [Reader(w, random.Random(rng.random()), *only) for _ in range(n)]
    crowd = Crowd(w.things + readers(8), w.ctl)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or w.book.acknowledged < 100:
        w.ctl.hup()
    crowd.stop()
    # few, so that threads rest between requests: otherwise a contended lock gives an order to
    # unordered events
    for one, path in (("j0", "/v1/jobs"), ("t0", "/v1/tenants")):
        slow = [t for t in w.things if t.name in ("g0", "g1")]
        for t in slow:
            t.pause = 0.3
        crowd = Crowd([t for t in w.things if t.name == one] + slow + readers(2, path), w.ctl)
        time.sleep(SECONDS / 2)
        crowd.stop()
    crowd = Crowd(w.things + readers(2), w.ctl)
    time.sleep(0.5)
    w.ctl.stop()
    crowd.stop()


def told(run):
    rng = random.Random(SEED)
    try:
        run(rng)
    except BaseException:
        print(f"seed {SEED}")
        raise


def test_sqlite():
    def run(rng):
        with temporary() as d:
            w = World(d, f"{{kind: sqlite, path: {d}/c.db}}", rng)
            try:
                calm(w, rng) if CALM else rounds(w, rng)
            except BaseException:
                print(w.ctl.log.read_text()[-2500:])
                raise
            w.ctl.kill()
            with closing(sqlite3.connect(f"{d}/c.db")) as db:
                assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                last, = db.execute("SELECT max(modified) FROM kv").fetchone()
                revision, = db.execute("SELECT revision FROM meta").fetchone()
                assert revision >= last, (revision, last)
    told(run)


def test_stop():
    """A controller that stops serves no records from before the changes that it acknowledges."""
    def run(rng):
        with temporary() as d:
            w = World(d, f"{{kind: sqlite, path: {d}/c.db}}", rng)
            for _ in range(10):
                crowd = Crowd([Alternating(w, i, rng) for i in range(30)], w.ctl)
                time.sleep(rng.uniform(0.2, 0.4))
                w.ctl.stop()
                crowd.stop()
                w.ctl.start()
            w.ctl.kill()
    told(run)


def test_etcd():
    def run(rng):
        with temporary() as d:
            etcd = Etcd(Path(d) / "etcd")
            w = World(d, etcd.yaml(), rng)
            try:
                calm(w, rng) if CALM else rounds(w, rng, etcd)
            except BaseException:
                print(w.ctl.log.read_text()[-2500:])
                raise
            w.ctl.kill()
            etcd.close()
    told(run)


if __name__ == "__main__":
    sys.exit(cases.run({k: v for k, v in globals().items() if k.startswith("test_")}))
