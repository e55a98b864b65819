#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# controller_wait.py BUILD: requests that wait at the controller, many at a time: all of them are told what changes, those that are done at once
# do not wait with them, clients go away meanwhile, changes come while somebody begins to wait, the controller stops; clients that never
# finish shaking hands, and clients that come back.
import json
import os
import re
import signal
import socket
import ssl
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from ctlr.harness import CA, Controller, Gateway, temporary, until  # noqa: E402

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
MANY = 200


class World:
    def __init__(self, directory):
        self.ca = ca = CA(Path(directory) / "ca")
        self.context = {"op": None}
        ca.issue("ctl", "controller", "127.0.0.1")
        for name, role in [("op", "operator"), *((f"gw-a{i}", "gateway") for i in range(8))]:
            self.context[name] = ca.issue(name, role)
        self.ctl = Controller(BUILD, ca, directory, f"{{kind: sqlite, path: {directory}/c.db}}", limits="{request: 2s}", lease="30s")
        self.op = self.ctl.client(self.context["op"])
        self.site(0)

    def site(self, n):
        return self.op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/16", f"10.2.{n % 250}.0/24"]}, None)

    def generation(self):
        return self.op.get("/v1/routes?site=a")["generation"]

    def metric(self, name):
        self.op.get("/metrics")
        return float(re.search(rf"^roceway_controller_{name} (.*)$", self.op.text.decode(), re.M)[1])


class Poll:
    """A request on a connection of its own, whose answer is read later."""

    def __init__(self, w, name="op"):
        self.s = w.context[name].wrap_socket(socket.create_connection(("127.0.0.1", w.ctl.port), 20), server_hostname="127.0.0.1")

    def ask(self, path):
        self.s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def routes(self, after, wait_ms=60000):
        self.ask(f"/v1/routes?site=a&after={after}&wait_ms={wait_ms}")

    def answer(self, seconds=30):
        """(status, body)"""
        self.s.settimeout(seconds)
        text = b""
        while b"\r\n\r\n" not in text:
            more = self.s.recv(65536)
            assert more, f"closed after {text!r}"
            text += more
        head, body = text.split(b"\r\n\r\n", 1)
        status = int(head.split()[1])
        length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1]) if status != 304 else 0
        while len(body) < length:
            body += self.s.recv(65536)
        return status, json.loads(body) if body else None

    def close(self):
        self.s.close()


def polls_of(w, n, after):
    """Each asks as soon as it is connected: the controller cuts off one that does not."""
    polls = []
    for _ in range(n):
        polls.append(Poll(w))
        polls[-1].routes(after)
    return polls


def waiting(w, n):
    until(lambda: w.metric("requests_waiting") == n)


def test_many_wait_and_all_are_told(w):
    g = w.generation()
    polls = polls_of(w, MANY, g)
    waiting(w, MANY)
    gone, polls = polls[:MANY // 4], polls[MANY // 4:]
    for p in gone:  # not detected before there is something to send
        p.close()
    assert w.op.get("/v1/health") and w.metric("requests_waiting") == MANY
    w.site(1)
    for p in polls:
        status, routes = p.answer()
        assert status == 200 and routes["generation"] > g, (status, routes)
    waiting(w, 0)
    # the connections still work
    g = w.generation()
    for p in polls:
        p.routes(g, 50)
    assert [p.answer()[0] for p in polls] == [304] * len(polls)
    for p in polls:
        p.close()
    until(lambda: w.metric("connections") == 1)


def test_what_changes_while_one_begins_to_wait_is_told(w):
    """Nothing is lost between a poll's check and its wait: each poll of a reader ends because of a
    change."""
    last, going, wrong = [0], [True], []

    def reader():
        p, g = Poll(w), 0
        while going[0] or g < last[0]:
            p.routes(g, 20000)
            status, routes = p.answer()
            if status != 200 or routes["generation"] <= g:
                wrong.append((status, g, routes))
                return
            g = routes["generation"]

    readers = [threading.Thread(target=reader) for _ in range(8)]
    for t in readers:
        t.start()
    for n in range(150):
        w.site(n)
    going[0] = False
    last[0] = w.generation()
    w.site(200)  # for those that saw it and polled again
    for t in readers:
        t.join(15)
    assert not wrong and not any(t.is_alive() for t in readers), wrong


def test_many_who_wait_for_the_store_are_answered_once(w):
    """Repeated registrations of a few gateways at once, each with another start: all wait for a
    transaction, often the same one."""
    wrong = []

    def gateway(i):
        g = Gateway(w.ctl.client(w.context[f"gw-a{i}"]), f"gw-a{i}", "a", 10 + i)
        try:
            for n in range(25):
                g.register(boot_id=f"b{n}")
                g.renew()
                g.renew(409, boot_id="b-other")
        except Exception:
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=gateway, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong, wrong[0]
    assert w.metric("registrations_total") == 200 and w.metric("requests_waiting") == 0


def test_a_newer_poll_of_a_gateway_ends_the_older_one(w):
    """Also if the older one's client is gone."""
    g = Gateway(w.ctl.client(w.context["gw-a0"]), "gw-a0", "a", 10)
    g.register()
    after = g.document()["generation"]
    path = f"/v1/gateways/gw-a0/document?after={after}&wait_ms=60000"
    polls = [Poll(w, "gw-a0") for _ in range(20)]
    for i, p in enumerate(polls):
        p.ask(path)
        waiting(w, 1)
        if i % 2:
            p.close()
        elif i:
            assert polls[i - 2].answer()[0] == 304
    w.site(2)
    g.document(after, 20000)
    waiting(w, 0)


def test_who_waits_when_it_stops_is_told(w):
    g = w.generation()
    polls = polls_of(w, 50, g)
    waiting(w, 50)
    w.ctl.proc.send_signal(signal.SIGTERM)
    assert [p.answer()[0] for p in polls] == [503] * 50
    assert w.ctl.proc.wait(20) == 0


def hello():
    """The first flight of a handshake."""
    context = ssl.create_default_context()
    inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(inside, outside, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outside.read()


def threads(w):
    """{thread: (its processor time in ticks, how often it slept)}"""
    out = {}
    for task in Path(f"/proc/{w.ctl.proc.pid}/task").iterdir():
        f = (task / "stat").read_text().rsplit(")", 1)[1].split()
        slept = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)
        out[task.name] = int(f[11]) + int(f[12]), int(slept[1])
    return out


def test_clients_that_shake_hands_for_ever_cost_little(w):
    """Clients that send nothing, half of the first flight, or all of it, and then nothing: they are
    cut off, and until then the thread that serves them pauses between two looks."""
    first = hello()
    open_ = [socket.create_connection(("127.0.0.1", w.ctl.port), 20) for _ in range(30)]
    for i, s in enumerate(open_):
        s.sendall([b"", first[:60], first][i % 3])
    for s in open_[2::3]:  # the controller has computed its part of the handshake
        s.settimeout(20)
        s.recv(1)
    before = threads(w)
    time.sleep(0.7)
    spent = {t: (ticks - before[t][0], slept - before[t][1]) for t, (ticks, slept) in threads(w).items() if t in before}
    # a thread that polls them in a loop without a pause never sleeps
    busy = max(spent.values())
    assert busy[1] >= 20 or not busy[0], spent
    until(lambda: w.metric("slow_clients_total") == len(open_))
    for s in open_:
        s.settimeout(5)
        try:
            while s.recv(65536):
                pass
        except ConnectionError:
            pass
    until(lambda: w.metric("connections") == 1)


def test_who_comes_back_is_known_by_its_ticket_but_not_when_revoked(w):
    def connect(session=None):
        s = w.context["gw-a0"].wrap_socket(socket.create_connection(("127.0.0.1", w.ctl.port), 20), server_hostname="127.0.0.1", session=session)
        s.sendall(b"GET /v1/gateways/gw-a0 HTTP/1.1\r\nHost: x\r\n\r\n")
        status = int(s.recv(4096).split()[1])
        reused, session = s.session_reused, s.session
        s.close()
        return status, reused, session

    Gateway(w.ctl.client(w.context["gw-a0"]), "gw-a0", "a", 10).register()
    status, reused, session = connect()
    assert (status, reused) == (200, False)
    status, reused, session = connect(session)
    assert (status, reused) == (200, True)
    w.ca.run("revoke", "gw-a0")
    w.ctl.hup()
    assert until(lambda: connect(session)[:2] == (403, True))
    assert connect()[:2] == (403, False)


def run(name):
    with temporary() as d:
        w = World(d)
        try:
            globals()[name](w)
            if w.ctl.proc.poll() is None:
                w.ctl.stop()
            print(f"[  PASSED  ] 1 test: {name}", flush=True)
            return True
        except Exception:
            traceback.print_exc()
            print(f"[  FAILED  ] 1 test: {name}\n--- its log\n" + w.ctl.log.read_text()[-2500:], flush=True)
            return False
        finally:
            w.ctl.kill()


results = [run(n) for n in list(globals()) if n.startswith("test_") and (not sys.argv[2:] or any(o in n for o in sys.argv[2:]))]
print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
sys.exit(0 if all(results) else 1)
