# SPDX-License-Identifier: Apache-2.0
# The world of a test of controller_api.py: one controller, its CA, and somebody of each role.
import contextlib
import json
import re
import sqlite3
import sys
import threading
import time
from pathlib import Path

from ctlr.harness import CA, Controller, Gateway, SLOW, until

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
SITE_A, SITE_B = {"prefixes": ["10.1.0.0/16"]}, {"prefixes": ["10.2.0.0/16"]}
SHORT = 2 * SLOW  # seconds, of what runs out
# Tests in which a lease runs out. In the others it lasts, however late a renewal comes.
EXPIRING = {
    "test_stale_leases_and_generations_are_refused", "test_sessions_go_by_weight_and_both_directions_together",
    "test_pairs_of_a_lost_gateway_go_elsewhere_in_one_step", "test_gateways_that_are_lost_at_once_are_one_step",
    "test_a_job_that_does_not_fit_any_more_is_broken_until_it_does", "test_gateways_have_time_to_come_back_after_a_start",
    "test_named_queue_pairs_have_a_pair_of_gateways_each", "test_queue_pairs_that_nobody_named_are_spread_as_they_are_reported",
    "test_a_lost_relay_is_said_to_be_lost", "test_hosts_keep_leases", "test_a_standby_that_is_lost_is_said_to_be", "pairs_and_replicas", "two_replicas", "two_replicas_and_a_job", "a_replica_is_cut_off"}
# Tests of clients that are too slow.
DRIBBLING = {"test_a_client_that_dribbles_is_cut_off", "test_a_client_that_does_not_read_is_cut_off"}
NAMES = {"name": "nobody", "site_a": "a", "site_b": "b", "source": "net", "first": "gw-a1", "second": "gw-b1", "host": "host-1", "id": "gw-a1:1"}


def duration(seconds):
    return f"{round(seconds * 1000)}ms"


class World:
    """One controller, its CA, and somebody of each role. `name`: of the test."""

    def __init__(self, name, directory, store, **more):
        self.lease, self.request = duration(SHORT if name in EXPIRING else 60), duration(SHORT if name in DRIBBLING else 30)
        more = {"lease": self.lease, "limits": f"{{request: {self.request}}}", **more}
        self.ca = CA(Path(directory) / "ca")
        self.context = {}
        for name, role in [("ctl", "controller"), ("op", "operator"), ("sched", "scheduler"), ("net", "network"), ("pod", "container"), ("gw-a1", "gateway"),
                           ("gw-a2", "gateway"), ("gw-b1", "gateway"), ("gw-b2", "gateway"), ("nobody", "gateway"), ("host-1", "host"), ("host-2", "host")]:
            self.context[name] = self.ca.issue(name, role, *(["127.0.0.1"] if role == "controller" else []))
        self.build = BUILD
        self.ctl = Controller(BUILD, self.ca, directory, store, **more)
        self.connect()

    def connect(self):
        for name, context in self.context.items():
            if name != "ctl":
                setattr(self, name.replace("-", "_"), self.ctl.client(context))

    def sites(self):
        self.op.put("/v1/sites/a", SITE_A, None)
        self.op.put("/v1/sites/b", SITE_B, None)

    def gateway(self, name, site, n, **more):
        return Gateway(getattr(self, name.replace("-", "_")), name, site, n, **more)

    def said(self, name, text):
        return any(e["name"] == name and text in e["text"] for e in self.op.get("/v1/events?limit=1000")["events"])

    def keep_alive(self, *gateways):
        return keep_alive(self, *gateways)

    def gateways(self, *names, **more):
        """Registered, with tunnels."""
        out = []
        for name in names:
            site = name[3]
            n = {"gw-a1": 11, "gw-a2": 12, "gw-b1": 21, "gw-b2": 22}[name]
            out.append(Gateway(getattr(self, name.replace("-", "_")), name, site, n, **more.get(name, {})))
            out[-1].register()
        ends = {n[3] for n in names}
        if len(ends) == 2:
            for g in out:
                peers = sum(1 for n in names if n[3] != g.name[3])
                until(lambda g=g, peers=peers: len(g.document()["tunnels"]) >= peers)
        return out


def url(path):
    return re.sub(r"\{(\w+)\}", lambda m: NAMES[m[1]], path) + ("?site=a" if path in ("/v1/routes", "/v1/redirects") else "")


def keep_alive(w, *gateways):
    """Renews their leases on separate connections until the returned function is called."""
    going = [True]
    def run(g):
        c = w.ctl.client(w.context[g.name])
        mine = Gateway(c, g.name, g.reg["site"], 0)
        mine.reg, mine.generation = g.reg, 0
        while going[0]:
            mine.lease = g.lease
            try:
                mine.renew()
            except (AssertionError, OSError):
                pass
            time.sleep(0.3)
    threads = [threading.Thread(target=run, args=(g,), daemon=True) for g in gateways]
    [t.start() for t in threads]
    def stop():
        going[0] = False
        [t.join() for t in threads]
    return stop


def in_store(w, key, change):
    """Changes a record while the controller is away. change: of the value, or None: it goes."""
    w.ctl.stop()
    with contextlib.closing(sqlite3.connect(w.ctl.config.parent / "c.db", isolation_level=None)) as db:
        (full, value), = db.execute("SELECT key, value FROM kv WHERE CAST(key AS TEXT) LIKE ?", ("%" + key,)).fetchall()
        if change:
            db.execute("UPDATE kv SET value = ? WHERE key = ?", (json.dumps(change(json.loads(value))).encode(), full))
        else:
            db.execute("DELETE FROM kv WHERE key = ?", (full,))
    w.ctl.start()
    w.connect()
