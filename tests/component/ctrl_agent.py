#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# ctrl_agent.py BUILD: the gateway's end of the control center's API (gateway/agent/agent.h) against a small HTTPS server with
# certificates on both sides, which answers wrongly in every way that a controller, a network or a stranger can.
import atexit
import http.server
import json
import os
import queue
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlparse

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
PROGRAM = BUILD / "tests/ctrl_agent"
WAIT = 20  # seconds at most for what must come
CASE = sys.argv[3:] if sys.argv[2:3] == ["hostile"] else []  # hostile DIRECTORY WHAT WRONG: this one, in a process of its own
DIR = CASE[0] if CASE else tempfile.mkdtemp(prefix="rwy-agent-")
if not CASE:
    atexit.register(shutil.rmtree, DIR, True)


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=DIR)


def authority(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.pem")


def certificate(ca, name, subject, san="IP:127.0.0.1"):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
    Path(DIR, f"{name}.ext").write_text(f"subjectAltName={san}\n")
    openssl("x509", "-req", "-days", "2", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-extfile", f"{name}.ext",
            "-out", f"{name}.pem")


def path(name):
    return os.path.join(DIR, name)


class Controller:
    """Answers correctly, unless `wrong[what]` has another answer: (status, body bytes) or a
    function of the handler."""

    def __init__(self, cert="server", ttl=600):
        self.wrong, self.log, self.ttl, self.lease = {}, [], ttl, "0123456789abcdef"
        self.document, self.changed = {"generation": 1, "tenants": [], "tunnels": [], "assignments": []}, threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.answer(self, self.command, self.path, json.loads(body) if body else None)

            do_GET = do_PUT = do_POST = do

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *args):
                pass

            def get_request(self):
                conn, addr = self.socket.accept()
                conn.settimeout(30)
                return outer.tls.wrap_socket(conn, server_side=True, do_handshake_on_connect=False), addr

        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(path(cert + ".pem"), path(cert + ".key"))
        self.tls.load_verify_locations(path("ca.pem"))
        self.tls.verify_mode = ssl.CERT_REQUIRED
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def send(self, h, status, body=b""):
        h.send_response(status)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def answer(self, h, method, url, body):
        u = urlparse(url)
        what = {"": "register", "lease": "lease", "document": "document", "sessions": "sessions", "links": "links"}[u.path.split("/")[4] if u.path.count("/") > 3 else ""]
        self.log.append((what, body if body is not None else {k: int(v[0]) for k, v in parse_qs(u.query).items()}))
        wrong = self.wrong.get(what)
        if callable(wrong):
            wrong = wrong(h)
        if wrong:
            if wrong[0]:
                self.send(h, *wrong)
            return
        if what == "register":
            self.send(h, 200, json.dumps({"lease": self.lease, "ttl_ms": self.ttl, "generation": self.document["generation"]}).encode())
        elif what == "document":
            q = self.log[-1][1]
            with self.changed:
                self.changed.wait_for(lambda: self.document["generation"] > q["after"], q["wait_ms"] / 1000)
                doc = self.document
            self.send(h, *((200, json.dumps(doc).encode()) if doc["generation"] > q["after"] else (304,)))
        elif body.get("lease") != self.lease:
            self.send(h, 409, b'{"error": "a stale lease"}')
        elif what == "lease":
            self.send(h, 200, json.dumps({"ttl_ms": self.ttl, "generation": self.document["generation"]}).encode())
        elif what == "sessions":
            self.send(h, 200, json.dumps({"decisions": [{"id": s["id"], "tunnel": "t"} for s in body["sessions"]]}).encode())
        else:
            self.send(h, 200, b'{"revision": 0}')

    def publish(self, generation, tunnel=None):
        with self.changed:
            self.document = {**self.document, "generation": generation, "tunnels": [{"name": tunnel}] if tunnel else []}
            self.changed.notify_all()

    def seen(self, what, test=lambda b: True, n=1, since=0):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            if len([b for w, b in self.log[since:] if w == what and test(b)]) >= n:
                return
            time.sleep(0.01)
        raise AssertionError(f"no {what}: {self.log[-8:]}")


class Agent:
    def __init__(self, *controllers, cert="gw", ca="ca", generation=0):
        self.keep = path(f"keep-{os.getpid()}-{id(self)}/document.json")
        self.p = subprocess.Popen([PROGRAM, "gw1", path(ca + ".pem"), path(cert + ".pem"), path(cert + ".key"), str(generation), self.keep,
                                   *[c if isinstance(c, str) else c.url for c in controllers]],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events = queue.Queue()
        threading.Thread(target=lambda: [self.events.put(json.loads(x)) for x in self.p.stdout], daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.p.stdin.close()
        assert self.p.wait(WAIT) == 0, self.p.returncode

    def wait(self, event, test=lambda e: True):
        end, seen = time.monotonic() + WAIT, []
        while time.monotonic() < end:
            try:
                e = self.events.get(timeout=0.1)
            except queue.Empty:
                continue
            seen.append(e)
            if e["event"] == event and test(e):
                return e
        raise AssertionError(f"no {event}: {seen[-8:]}")

    def said(self, words):
        return self.wait("log", lambda e: words in e["text"])

    def status(self):
        self.p.stdin.write("status\n")
        self.p.stdin.flush()
        return self.wait("status")

    def until(self, test, wait=WAIT):
        end = time.monotonic() + wait
        while time.monotonic() < end:
            s = self.status()
            if test(s):
                return s
            time.sleep(0.02)
        raise AssertionError(s)


# --- correct answers ------------------------------------------------------------------------------


def test_by_the_book():
    c = Controller()
    with Agent(c) as a:
        assert a.wait("apply")["generation"] == 1
        c.seen("lease", lambda b: b["generation_running"] == 1 and b["boot_id"] == "boot" and b["load"]["rate_bps"] == 2)
        c.seen("sessions", lambda b: b["sessions"] == [{"id": "s1", "event": "opened"}])
        c.seen("sessions", lambda b: b["sessions"][0]["id"] == "s2" and b["all_part"] == 2 and b["all_last"])
        c.seen("links", n=2)
        c.seen("lease", n=4)
        w, first = c.log[0]
        assert w == "register" and first["boot_id"] == "boot" and first["site"] == "here" and first["wan"] == ["192.0.2.1:4793"], first
        c.publish(2, "t")
        assert a.wait("apply")["generation"] == 2
        assert json.loads(Path(a.keep).read_text())["generation"] == 2
        # The callback reports an applied document before the agent counts it.
        s = a.until(lambda s: s["generation"] == 2 and s["session_reports"] == 2 and s["link_reports"] >= 1)
        assert (s["state"], s["generation"], s["url"], s["failures"], s["registrations"], s["decisions"], s["ttl_ms"]) == (2, 2, c.url, 0, 1, 2, 600), s
    c.stop()


def test_refused_document():
    c = Controller()
    with Agent(c) as a:
        a.wait("apply")
        c.publish(2, "bad")
        c.seen("lease", lambda b: b.get("generation_refused") == 2 and b["refusal"] == "tunnel bad: it is bad" and b["generation_running"] == 1)
        s = a.status()
        assert (s["generation"], s["refused"], s["documents_refused"], s["state"]) == (1, 2, 1, 2), s
        assert json.loads(Path(a.keep).read_text())["generation"] == 1
        c.publish(3, "t")
        a.wait("apply", lambda e: e["generation"] == 3)
        c.seen("lease", lambda b: "generation_refused" not in b and b["generation_running"] == 3)
        c.publish(4, "later")  # a worker was not reached: the agent tries again, and succeeds
        a.wait("apply", lambda e: e["generation"] == 4)
        assert a.status()["documents_refused"] == 1
    c.stop()


def test_malformed_document():
    """No JSON, no generation, an old generation, half an answer: nothing is applied, and the agent
    continues."""
    c = Controller()
    with Agent(c) as a:
        a.wait("apply")
        for body, words in ((b"{", "expected a JSON object"), (b"[1]", "expected a JSON object"), (b"{}", "expected an object with `generation`"),
                            (b'{"generation": -1}', "expected an object with `generation`"), (b'{"generation": "7"}', "expected an object with"),
                            (b'{"generation": 1}', "expected a generation above 1, found 1"), (b'{"generation": 2, "generation": 3}', "expected a JSON object")):
            refused = a.status()["documents_refused"]
            mark = len(c.log)
            c.wrong["document"] = (200, body)
            c.publish(c.document["generation"])
            # the waiting poll ends by itself; then the wrong one comes
            a.until(lambda s: s["documents_refused"] > refused)
            assert words in a.status()["why"], a.status()
            del c.wrong["document"]
            c.seen("lease", lambda b: words in b.get("refusal", ""), since=mark)
        generation = c.document["generation"] + 1
        c.publish(generation, "t")
        a.wait("apply", lambda e: e["generation"] == generation)
        s = a.until(lambda s: s["generation"] == generation)  # its status follows its actions
        assert (s["failures"], s["state"], s["why"]) == (0, 2, ""), s
    c.stop()


def cut(h):
    """Sends half an answer, then closes the connection."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"generation\": 5, ")
    h.wfile.flush()
    h.connection.shutdown(socket.SHUT_RDWR)
    return (0,)


def test_half_answers():
    for what in "register", "lease", "document", "sessions", "links":
        c = Controller()
        c.wrong[what] = cut
        with Agent(c) as a:
            s = a.until(lambda s: s["failures"] >= 1)
            assert s["problem"].startswith({"register": "registration", "lease": "lease", "document": "document", "sessions": "session report",
                                            "links": "link report"}[what]), s
            del c.wrong[what]
            a.until(lambda s: s["state"] == 2 and s["generation"] == 1 and s["renewals"] and s["session_reports"] and s["link_reports"])
        c.stop()


def test_wrong_answers():
    """Valid JSON, but invalid content."""
    for what, body in (("register", b"{}"), ("register", b'{"lease": "x", "ttl_ms": 1, "generation": 0}'), ("register", b"nonsense"),
                       ("register", b'{"lease": "0123456789abcdef", "ttl_ms": 0, "generation": 0}'),
                       ("register", b'{"lease": "0123456789abcdef", "ttl_ms": 5, "generation": "0"}'), ("lease", b'{"ttl_ms": "x", "generation": 1}'),
                       ("lease", b"[]"), ("register", b" " * (2 << 20))):
        c = Controller()
        c.wrong[what] = (200, body)
        with Agent(c) as a:
            a.until(lambda s: s["failures"] >= 2)
            del c.wrong[what]
            a.until(lambda s: s["state"] == 2 and s["renewals"] >= 1 and s["generation"] == 1)
        c.stop()


def test_refused_reports():
    c = Controller()
    c.wrong["sessions"] = (400, b'{"error": "no such field", "field": "sessions[0].id"}')
    with Agent(c) as a:
        a.said("session report refused (400): no such field")
        s = a.until(lambda s: s["reports_refused"] == 2 and s["renewals"] >= 1)
        assert s["failures"] == 0 and s["state"] == 2, s
    c.stop()


# --- outages --------------------------------------------------------------------------------------


def test_away():
    c = Controller()
    with Agent(c) as a:
        a.wait("apply")
        port = c.server.server_address[1]
        # as if it were killed: open connections end, no new ones
        c.wrong = {k: cut for k in ("register", "lease", "document", "sessions", "links")}
        s = a.until(lambda s: s["state"] == 0 and s["failures"] >= 3)
        assert s["generation"] == 1 and s["retry_ms"] <= 400, s
        c.wrong = {}
        mark = len(c.log)
        a.wait("resync")
        a.until(lambda s: s["state"] == 2)
        c.seen("lease", lambda b: b["generation_running"] == 1, since=mark)
        c.seen("sessions", since=mark)  # reported again
        assert c.server.server_address[1] == port
    c.stop()
    with Agent("https://127.0.0.1:1", generation=9) as a:  # nobody ever
        s = a.until(lambda s: s["failures"] >= 3)
        assert (s["state"] != 2, s["generation"]) == (True, 9), s


def test_lease_lost():
    c = Controller()
    with Agent(c) as a:
        a.wait("apply")
        mark = len(c.log)
        c.lease = "fedcba9876543210"  # another process of the controller, without our lease
        c.seen("register", since=mark)
        s = a.until(lambda s: s["lease_lost"] == 1 and s["renewals"] > 1 and s["state"] == 2)
        assert s["failures"] == 0 and s["registrations"] == 2 and s["generation"] == 1, s
        c.wrong["lease"] = (404, b'{"error": "no such gateway"}')
        a.until(lambda s: s["failures"] >= 1)  # repeated failures: then it backs off
        del c.wrong["lease"]
        a.until(lambda s: s["state"] == 2)
    c.stop()


def test_store_lost():
    """A controller that has lost its generations: its document is accepted, in spite of an old
    number."""
    c = Controller()
    with Agent(c, generation=50) as a:
        c.seen("document", lambda q: q["after"] == 0)
        assert a.wait("apply")["generation"] == 1
        assert not [b for w, b in c.log if w == "lease" and b["generation_running"] == 50]
        c.seen("lease", lambda b: b["generation_running"] == 1)
    c.stop()
    c = Controller()
    c.document["generation"] = 60
    c.wrong["document"] = lambda h: (409, b'{"error": "never issued"}') if "after=50" in h.path else None
    with Agent(c, generation=50) as a:
        assert a.wait("apply")["generation"] == 60
    c.stop()


def test_failover():
    one, two = Controller(), Controller()
    with Agent(one, two) as a:
        a.wait("apply")
        assert not two.log
        one.wrong = {k: (503, b'{"error": "the store does not answer"}') for k in ("register", "lease", "document", "sessions", "links")}
        two.publish(2, "t")
        assert a.wait("apply")["generation"] == 2
        s = a.until(lambda s: s["state"] == 2)
        assert s["url"] == two.url and "the store does not answer" in s["problem"], s
        one.wrong = {}
        two.wrong = {k: cut for k in ("register", "lease", "document", "sessions", "links")}
        a.until(lambda s: s["state"] == 2 and s["url"] == one.url)
    one.stop()
    two.stop()
    three = Controller()
    with Agent("https://127.0.0.1:1", three) as a:  # the first does not exist
        a.wait("apply")
    three.stop()


# --- hostile ----------------------------------------------------------------------------------------------------------------------


def memory(a):
    """Largest memory of its process so far, MiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{a.p.pid}/status").read_text())[1]) >> 10


def body_of_100_mb(h):
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n" + b'{"generation": 9, "tenants": [')
    for _ in range(1600):
        h.wfile.write(b" " * 65536)


def body_without_end(h):
    h.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        h.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def headers_without_end(h):
    h.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        h.wfile.write(b"".join(b"X-%d: %s\r\n" % (i, b"y" * 1000) for i in range(60)))


def interim_without_end(h):
    while True:
        h.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def many_values(h):
    h.server.outer.send(h, 200, b'{"generation": 9, "tunnels": [' + b"{}," * (10 << 20) + b"{}]}")


def deep(h):
    h.server.outer.send(h, 200, b"[" * (1 << 20))


def redirect(h):
    h.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n")


HOSTILE = [(what, wrong) for what in ("register", "document")
           for wrong in (body_of_100_mb, body_without_end, headers_without_end, interim_without_end, many_values, deep, redirect)]


def hostile(what, wrong):
    """Whatever comes: a bound on memory, nothing applied, and on it goes when the answers are good again."""
    slow = b"__asan_init" in PROGRAM.read_bytes()
    c = Controller()
    c.server.outer = c
    c.wrong[what] = lambda h: wrong(h) or (0,)
    with Agent(c) as a:
        a.until(lambda s: s["failures"] + s["documents_refused"] >= (1 if slow else 2), 4 * WAIT)  # each may take as long as it is given
        s = a.status()
        assert s["generation"] == 0 and s["documents"] == 0, s
        assert memory(a) < (600 if slow else 150), (what, wrong.__name__, memory(a))
        del c.wrong[what]
        a.until(lambda s: s["state"] == 2 and s["generation"] == 1 and s["renewals"] >= 1, 4 * WAIT)
    c.stop()


def hostile_alone(what, wrong):
    """In a process of its own: what it writes without end keeps no other test's answers waiting."""
    r = subprocess.run([sys.executable, __file__, BUILD, "hostile", DIR, what, wrong.__name__], capture_output=True, text=True)
    assert r.returncode == 0, r.stdout + r.stderr


def test_answers_that_drip():
    """A document one byte at a time: the lease is renewed meanwhile; a lease's answer one byte at a
    time: the agent uses another controller."""
    def drip(h):
        h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not gone.is_set():
            h.wfile.write(b" ")
            gone.wait(0.05)
        return (0,)
    gone = threading.Event()
    one, two = Controller(), Controller()
    one.wrong["document"] = drip
    with Agent(one) as a:
        one.seen("document")
        mark = a.status()["renewals"]
        s = a.until(lambda s: s["renewals"] >= mark + 5)
        assert s["state"] == 2 and s["failures"] == 0, s
    one.wrong = {"lease": drip}
    with Agent(one, two) as a:
        s = a.until(lambda s: s["state"] == 2 and s["url"] == two.url)
        assert s["problem"].startswith("lease: "), s
    gone.set()
    one.stop()
    two.stop()


# --- attackers ------------------------------------------------------------------------------------


def test_certificates():
    for server, kw in (("alien", {}), ("elsewhere", {}), ("server", {"ca": "aliens"}), ("server", {"cert": "aliengw"})):
        c = Controller(server)
        with Agent(c, **kw) as a:
            s = a.until(lambda s: s["failures"] >= 2)
            assert s["registrations"] == 0 and s["problem"].startswith("registration: "), s
            assert not c.log, c.log
        c.stop()


def passes(name, run, *args):
    try:
        run(*args)
        return True
    except Exception:
        print(f"FAIL {name} {args}")
        traceback.print_exc(file=sys.stdout)
        return False


def main():
    if not PROGRAM.exists():
        print(f"{PROGRAM}: build it first")
        return 1
    if CASE:
        hostile(CASE[1], globals()[CASE[2]])
        return 0
    for ca in "ca", "aliens":
        authority(ca)
    certificate("ca", "server", "/CN=controller")
    certificate("ca", "elsewhere", "/CN=controller", "IP:192.0.2.1")
    certificate("ca", "gw", "/CN=gw1/OU=gateway")
    certificate("aliens", "alien", "/CN=controller")
    certificate("aliens", "aliengw", "/CN=gw1/OU=gateway")
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    with ThreadPoolExecutor(3) as beside:  # they mostly wait
        runs = [beside.submit(passes, "hostile", hostile_alone, *case) for case in HOSTILE if only in "hostile " + case[1].__name__]
        results = [passes(name, run) for name, run in sorted(globals().items()) if name.startswith("test_") and only in name]
        results += [r.result() for r in runs]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
