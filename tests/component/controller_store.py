#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# controller_store.py BUILD: the controller over stores that fail. SQLite: a full or read-only disk,
# a deleted file, a missing or damaged store, or one of another program; etcd: out of space,
# compacted during an outage, a hanging node, all nodes gone and back, and a server with invalid
# answers. Acknowledged changes stay, refusals have a reason, and restarts are needed only where
# unavoidable.
import ctypes
import http.server
import json
import signal
import socketserver
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
import cases  # noqa: E402
from ctlr.harness import CA, Controller, Etcd, Gateway, temporary, until  # noqa: E402
from ctlr.ranks import pod, task  # noqa: E402

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
ONLY = sys.argv[2:]


class World:
    def __init__(self, directory, store, **more):
        self.ca = CA(Path(directory) / "ca")
        self.context = {n: self.ca.issue(n, r, *(["127.0.0.1"] if r == "controller" else []))
                        for n, r in (("ctl", "controller"), ("op", "operator"), ("gw-a1", "gateway"), ("gw-b1", "gateway"))}
        self.ctl = Controller(BUILD, self.ca, directory, store, **more)
        self.op = self.ctl.client(self.context["op"])

    def sites(self):
        return self.op.get("/v1/sites")["sites"]

    def put(self, name, want=None, size=1):
        return self.op.ask("PUT", f"/v1/sites/{name}", {"prefixes": [], "location": "x" * size}, want)

    def again(self):
        """A new connection, after a restart."""
        self.op.close()

    def said(self, text):
        return any(text in e["text"] for e in self.op.get("/v1/events?limit=1000")["events"])

    def restart(self):
        self.ctl.kill()
        self.ctl.start()
        self.again()


def ends(w, text):
    """It does not start, and prints the reason."""
    mark = w.ctl.log.stat().st_size
    try:
        w.ctl.start()
    except AssertionError:
        pass
    assert w.ctl.proc.wait(20) == 1
    log = w.ctl.log.read_text()[mark:]
    assert text in log, log


# --- SQLite ----------------------------------------------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, REC_PRIVATE, MS_RDONLY, MS_REMOUNT = 0x20000, 0x4000 | 0x40000, 1, 32


def mount(what, where, flags=0, data=None):
    if LIBC.mount(what, str(where).encode(), what, flags, data) < 0:
        raise OSError(ctypes.get_errno(), "mount")


class Disk:
    """A small separate disk."""

    def __init__(self, where, size):
        self.where = Path(where)
        self.where.mkdir()
        mount(b"tmpfs", where, 0, f"size={size}".encode())

    def read_only(self, on):
        mount(b"tmpfs", self.where, MS_REMOUNT | (MS_RDONLY if on else 0))

    def __enter__(self):
        return self

    def __exit__(self, *args):
        LIBC.umount2(str(self.where).encode(), 2)


def test_sqlite_on_a_disk_that_is_full():
    with temporary() as d, Disk(Path(d) / "disk", "6m") as disk:
        (disk.where / "filler").write_bytes(bytes(3 << 20))
        w = World(d, f"{{kind: sqlite, path: {disk.where}/c.db}}")
        n, status = 0, 201
        acl = [{"action": "deny", "source": f"10.1.{i >> 8}.{i & 255}/32", "destination": "any"} for i in range(1000)]
        w.put("a", 201)
        while status == 201 and n < 300:
            status, out = w.op.ask("PUT", f"/v1/tenants/t{n}", {"vni": 1 + n, "acl": acl, "sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/16", "at": "vtep"}]}}})
            n += status == 201
        assert status == 503 and "full" in out["error"] and "nothing has changed" in out["error"], (n, status, out)
        assert n >= 5 and len(w.op.get("/v1/tenants")["tenants"]) == n, n
        assert w.said("full")
        (disk.where / "filler").unlink()
        until(lambda: w.op.ask("GET", "/v1/health")[0] == 200)  # as soon as there is room
        w.put("b", 201)
        w.restart()
        assert sorted(t["name"] for t in w.op.get("/v1/tenants")["tenants"]) == sorted(f"t{i}" for i in range(n))
        assert [s["name"] for s in w.sites()] == ["a", "b"]
        w.ctl.stop()


def test_sqlite_on_a_disk_that_is_read_only():
    with temporary() as d, Disk(Path(d) / "disk", "16m") as disk:
        w = World(d, f"{{kind: sqlite, path: {disk.where}/c.db}}")
        w.put("a", 201)
        w.ctl.stop()
        disk.read_only(True)
        ends(w, "Read-only file system")
        disk.read_only(False)
        w.ctl.start()
        w.again()
        assert [s["name"] for s in w.sites()] == ["a"]
        w.put("b", 201)
        w.ctl.stop()


def test_sqlite_whose_file_is_deleted():
    with temporary() as d:
        w = World(d, f"{{kind: sqlite, path: {d}/c.db}}")
        w.put("a", 201)
        Path(d, "c.db").rename(Path(d, "elsewhere"))
        assert "nothing has changed" in w.put("b", 503)[1]["error"]
        assert [s["name"] for s in w.sites()] == ["a"]
        until(lambda: w.op.ask("GET", "/v1/health")[0] == 503)
        assert w.said("moved or deleted")
        Path(d, "elsewhere").rename(Path(d, "c.db"))
        until(lambda: w.op.ask("GET", "/v1/health")[0] == 200)
        w.put("b", 201)
        w.restart()
        assert [s["name"] for s in w.sites()] == ["a", "b"]
        w.ctl.stop()


def test_sqlite_that_is_damaged_or_no_store():
    with temporary() as d:
        w = World(d, f"{{kind: sqlite, path: {d}/c.db}}")
        for i in range(40):
            w.put(f"s{i}", 201, 120)
        w.ctl.stop()
        db = Path(d, "c.db")
        good = db.read_bytes()
        assert len(good) > 16384
        db.write_bytes(good[:4096] + b"\xa5" * (len(good) - 4096))
        ends(w, "malformed")
        db.write_bytes(good[:5000])
        ends(w, "malformed")
        db.write_bytes(b"something else altogether\n" * 1000)
        ends(w, "not a database")
        db.write_bytes(good)
        w.ctl.start()
        w.again()
        assert len(w.sites()) == 40
        # a second controller on the same file
        second = Controller.__new__(Controller)
        second.__dict__.update(w.ctl.__dict__, log=Path(d) / "second.log", config=Path(d) / "second.yaml")
        from ctlr.harness import free_port
        second.port = free_port()
        second.config.write_text(w.ctl.config.read_text().replace(str(w.ctl.port), str(second.port)).replace(str(w.ctl.page), str(free_port())))
        second.log.touch()
        mine = w.ctl
        w.ctl = second
        ends(w, "another process has it open")
        w.ctl = mine
        w.put("after", 201)
        w.ctl.stop()


# --- etcd --------------------------------------------------------------------------------------------------------------------------


def with_etcd(run, lease="2s", **more):
    with temporary() as d:
        etcd = Etcd(Path(d) / "etcd", **more)
        w = World(d, etcd.yaml(), lease=lease)
        try:
            run(w, etcd, d)
            w.ctl.stop()
        except BaseException:
            print(w.ctl.log.read_text()[-2500:])
            raise
        finally:
            w.ctl.kill()
            etcd.close()


def test_etcd_out_of_space():
    def run(w, etcd, d):
        w.put("a", 201)
        blob = "x" * 120000
        for i in range(200):
            if "space exceeded" in etcd.ctl(0, "put", "/blob", blob).stderr:
                break
        assert "NOSPACE" in etcd.ctl(0, "alarm", "list").stdout
        error = w.put("b", 503)[1]["error"]
        assert "full" in error and "nothing has changed" in error, error
        assert [s["name"] for s in w.sites()] == ["a"]
        time.sleep(2.5)  # two successful renewals of the replica's lease
        assert w.op.ask("GET", "/v1/health")[0] == 503
        events = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["what"] == "store"]
        assert len([t for t in events if "full" in t]) <= 2, events
        etcd.ctl(0, "del", "/blob")
        rev = json.loads(etcd.ctl(0, "get", "/blob", "-w", "json").stdout)["header"]["revision"]
        etcd.ctl(0, "compact", str(rev))
        for i in range(3):
            etcd.ctl(i, "defrag")
        etcd.ctl(0, "alarm", "disarm")
        until(lambda: w.op.ask("GET", "/v1/health")[0] == 200)
        w.put("b", 201)
        assert [s["name"] for s in w.sites()] == ["a", "b"]
    with_etcd(run, quota=8 << 20)


def tenant_of(vni, stays, changes):
    return {"vni": vni, "sites": {site: {"prefixes": [{"prefix": p, "at": "vtep"}]} for site, p in (("stays", stays), ("changes", changes))}}


def test_etcd_compacted_while_nobody_looked():
    """A replica hangs; meanwhile all nodes restart, records change, and the missed revisions are
    compacted."""
    def run(w, etcd, d):
        second = Controller(BUILD, w.ca, d, etcd.yaml(), name="ctl2")
        op2 = second.client(w.context["op"])
        for name in ("stays", "goes", "changes"):
            w.put(name, 201)
        w.op.put("/v1/tenants/t", tenant_of(5, "10.1.0.0/24", "10.2.0.0/24"), 201)
        w.op.put("/v1/tenants/v", tenant_of(6, "10.1.6.0/24", "10.2.6.0/24"), 201)
        # what changes hands meanwhile: from the first to the second by name and back, and from one that goes
        net = {name: f"10.{i}.0.0/16" for i, name in enumerate(("a-was", "z-was", "goes"), 60)}
        for name in net:
            w.op.put(f"/v1/sites/{name}", {"prefixes": [net[name]]}, None)
        for i, name in enumerate(("h", "h2"), 50):
            w.op.put(f"/v1/sites/{name}", {"prefixes": [f"10.{i}.0.0/16"]}, 201)

        def job(op, name, n, want):
            return op.put(f"/v1/jobs/{name}", task([("h", 16), ("h2", 8)], [pod(f"pod-{n}", 50, n)], hold_ms=3600000), want)
        for n, name in enumerate(("a-was", "z-was", "goes"), 1):
            job(w.op, name, n, 201)
        gw = Gateway(w.ctl.client(w.context["gw-a1"]), "gw-a1", "stays", 11)
        gw.register()
        until(lambda: op2.get("/v1/jobs") == w.op.get("/v1/jobs") and op2.get("/v1/gateways")["gateways"])
        second.proc.send_signal(signal.SIGSTOP)
        for i in range(3):
            etcd.kill(i)
        for i in range(3):
            etcd.start(i)
        until(lambda: w.op.ask("DELETE", "/v1/sites/goes")[0] == 200)
        w.op.put("/v1/sites/changes", {"prefixes": [], "location": "new"})
        w.op.delete("/v1/gateways/gw-a1")
        w.op.delete("/v1/tenants/t")
        w.op.put("/v1/tenants/u", tenant_of(5, "10.1.0.0/24", "10.2.0.0/24"), 201)
        w.op.put("/v1/tenants/v", tenant_of(7, "10.1.6.0/24", "10.2.7.0/24"))
        w.op.put("/v1/tenants/a", tenant_of(6, "10.1.6.0/24", "10.2.6.0/24"), 201)
        for name in ("a-was", "z-was"):
            w.op.put(f"/v1/sites/{name}", {"prefixes": []})
        for name, prefix in (("z-is", net["a-was"]), ("a-is", net["z-was"]), ("b-is", net["goes"])):
            w.op.put(f"/v1/sites/{name}", {"prefixes": [prefix]}, 201)
        w.op.delete("/v1/jobs/goes")
        for n, name in enumerate(("a-was", "z-was"), 11):
            job(w.op, name, n, 200)
        for n, name in enumerate(("z-is", "a-is", "b-is"), 1):
            job(w.op, name, n, 201)
        w.put("comes", 201)
        rev = json.loads(etcd.ctl(0, "get", "x", "-w", "json").stdout)["header"]["revision"]
        assert not etcd.ctl(0, "compact", str(rev)).returncode
        second.proc.send_signal(signal.SIGCONT)
        until(lambda: op2.get("/v1/sites") == w.op.get("/v1/sites"))
        assert op2.get("/v1/gateways") == w.op.get("/v1/gateways") == {"gateways": [], "next": None}
        assert op2.get("/v1/tenants") == w.op.get("/v1/tenants") and op2.get("/v1/jobs") == w.op.get("/v1/jobs")
        for prefix, owner in ((net["a-was"], "z-is"), (net["z-was"], "a-is"), (net["goes"], "b-is")):
            assert f"site {owner} has" in op2.put("/v1/sites/thief", {"prefixes": [prefix]}, 409)["error"]
        for n, owner in enumerate(("z-is", "a-is", "b-is"), 1):
            assert f"the job {owner} has" in job(op2, "thief", n, 409)["error"]
        gw = Gateway(second.client(w.context["gw-b1"]), "gw-b1", "changes", 12)
        gw.register()
        for vni, ends in ((5, ("10.1.0.1", "10.2.0.1")), (6, ("10.1.6.1", "10.2.6.1")), (7, ("10.1.6.1", "10.2.7.1"))):
            assert "no pair of gateways" in gw.open(ends, vni=vni)[0]["reason"], vni
        assert any("reading everything" in e["text"] for e in op2.get("/v1/events?limit=1000")["events"])
        op2.ask("PUT", "/v1/sites/last", {"prefixes": []}, 201)
        until(lambda: op2.get("/v1/sites") == w.op.get("/v1/sites"))
        second.stop()
    with_etcd(run)


def test_etcd_keeps_no_tunnel_without_its_gateways():
    """A gateway goes that has more tunnels than one change can remove; a record is left from before."""
    def run(w, etcd, d):
        def keys():
            return etcd.ctl(0, "get", "/roceway/tunnel/", "--prefix", "--keys-only").stdout.split()
        w.put("a", 201)
        w.put("b", 201)
        gws = [Gateway(w.ctl.client(w.context[f"gw-{n}1"]), f"gw-{n}1", n, 11 + i) for i, n in enumerate("ab")]
        [g.register() for g in gws]
        until(lambda: keys() == ["/roceway/tunnel/gw-a1/gw-b1"])
        far, tunnel = (etcd.ctl(0, "get", f"/roceway/{key}", "--print-value-only").stdout.strip() for key in ("gateway/gw-b1", "tunnel/gw-a1/gw-b1"))
        for i in range(0, 150, 75):
            etcd.put({f"/roceway/gateway/x{i + k}": far for k in range(75)})
        until(lambda: len(keys()) == 151)
        assert not etcd.ctl(0, "put", "/roceway/tunnel/gw-a1/nobody", tunnel).returncode
        until(lambda: len(keys()) == 151 and "/roceway/tunnel/gw-a1/nobody" not in keys())
        w.op.delete("/v1/gateways/gw-a1")
        until(lambda: not keys())
        # what this version cannot read stays with its tunnels
        assert not etcd.ctl(0, "put", "/roceway/gateway/newer", '{"registration": {"new": 1}}').returncode
        assert not etcd.ctl(0, "put", "/roceway/tunnel/gw-b1/newer", tunnel).returncode
        assert not etcd.ctl(0, "put", "/roceway/tunnel/gw-b1/nobody", tunnel).returncode
        until(lambda: "/roceway/tunnel/gw-b1/nobody" not in keys())
        assert keys() == ["/roceway/tunnel/gw-b1/newer"]
    with_etcd(run, lease="600s")


def large_jobs_move(w, *jobs, delete=False):
    """A gateway dies, or is deleted, that has part of jobs whose plans together are more than etcd takes in one change."""
    for name in ("a", "b"):
        w.op.put(f"/v1/sites/{name}", {"prefixes": [f"2001:db8:aaaa:{name * 4}::/64"]}, 201)
    context = {**w.context, "gw-a2": w.ca.issue("gw-a2", "gateway")}
    gws = [Gateway(w.ctl.client(context[name]), name, name[3], 10 + i) for i, name in enumerate(("gw-a1", "gw-a2", "gw-b1"))]
    [g.register() for g in gws]
    going = {g.name: True for g in gws}

    def run(g):
        while going[g.name]:
            g.renew()
            time.sleep(0.2)
    threads = {g.name: threading.Thread(target=run, args=(g,), daemon=True) for g in gws}
    [t.start() for t in threads.values()]
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 2)
    for k, n in enumerate(jobs):
        pairs = [{"source": f"2001:db8:aaaa:aaaa:bbbb:cccc:{4096 + k:x}:{4096 + i:x}", "destination": f"2001:db8:aaaa:bbbb:bbbb:cccc:{4096 + k:x}:{4096 + i:x}",
                  "bandwidth_bps": 1000} for i in range(n)]
        w.op.put(f"/v1/jobs/j{k}", {"pairs": pairs}, 201)
    assert all("gw-a1/gw-b1" in {r["pair"] for r in w.op.get(f"/v1/jobs/j{k}")["plan"]} for k in range(2))
    size = len(json.dumps(w.op.get("/v1/jobs"), separators=(",", ":")))
    print(f"    the two are {size} bytes")
    going["gw-a1"] = False
    threads["gw-a1"].join()
    if delete:
        w.op.delete("/v1/gateways/gw-a1")
        assert not [g for g in w.op.get("/v1/gateways")["gateways"] if g["name"] == "gw-a1"]
    until(lambda: all({r["pair"] for r in w.op.get(f"/v1/jobs/j{k}")["plan"]} == {"gw-a2/gw-b1"} for k in range(2)))
    assert all(w.op.get(f"/v1/jobs/j{k}")["state"] == "planned" for k in range(2))
    going.update({name: False for name in going})
    [t.join() for t in threads.values()]
    return size


def test_etcd_with_jobs_that_are_large():
    def run(w, etcd, d):
        assert large_jobs_move(w, 2400, 3300) > etcd.request
        assert not w.said("one by one")
    with_etcd(run)


def test_etcd_that_takes_less_than_usual():
    def run(w, etcd, d):
        assert 1000000 > large_jobs_move(w, 1400, 1400) > etcd.request
        until(lambda: w.said("one by one"))
    with_etcd(run, request=600 << 10)


def test_etcd_that_takes_no_removal_so_large():
    """A gateway is deleted while its jobs' new plans do not fit into the change: they follow."""
    def run(w, etcd, d):
        assert 1000000 > large_jobs_move(w, 1400, 1400, delete=True) > etcd.request
        until(lambda: not [k for k in etcd.ctl(0, "get", "/roceway/tunnel/", "--prefix", "--keys-only").stdout.split() if "gw-a1" in k])
    with_etcd(run, lease="600s", request=600 << 10)


def test_etcd_whose_node_hangs():
    """Any node, also the leader: changes are accepted and visible to their author; the node
    returns."""
    def run(w, etcd, d):
        for i in range(3):
            etcd.proc[i].send_signal(signal.SIGSTOP)
            try:
                for k in range(3):
                    until(lambda: w.put(f"s{i}{k}")[0] in (200, 201), 30)
                    w.op.get(f"/v1/sites/s{i}{k}")
            finally:
                etcd.proc[i].send_signal(signal.SIGCONT)
            until(lambda: not etcd.ctl(i, "get", "x").returncode)
        assert len(w.sites()) == 9
    with_etcd(run)


def test_etcd_has_keys_of_others():
    def run(w, etcd, d):
        for key, value in (("/roceway/", "x"), ("/roceway/gateway/", "x"), ("/roceway/gateway/a b", "{}"), ("/roceway/job/" + "x" * 100, "{}"),
                           ("/roceway/" + "y" * 5000, "z"), ("/roceway/job/j", '{"plan": [1, {"pair": 5}], "claims": 7, "until_ms": -1}'),
                           ("/roceway/tenant/t", '{"vni": "x", "sites": [1]}'), ("/roceway/site/s", "[" * 5000), ("/roceway/tunnel/a", "{}"),
                           ("/roceway/link/a/b", "{}"), ("/roceway/gateway/g", '{"registration": 1}'), ("/other", "x")):
            assert not etcd.ctl(0, "put", key, value).returncode
        w.put("mine", 201)
        w.restart()
        assert [s["name"] for s in w.sites()] == ["mine"]
        assert w.op.get("/v1/jobs") == {"jobs": []} and w.op.get("/v1/gateways")["gateways"] == []
        w.put("more", 201)
        assert w.said("left alone")
    with_etcd(run)


class Nonsense(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Claims to be etcd."""

    daemon_threads, block_on_close = True, False

    def __init__(self):
        self.how, self.asked = None, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked += 1
                outer.how(self)

            def answer(self, body, status=200, *headers):
                self.send_response(status)
                for h in headers:
                    self.send_header(*h)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, *args):
        pass


def endless(h):
    h.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n{\"kvs\": [")
    while True:
        h.wfile.write(b"{}," * 10000)


def drip(h):
    h.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        h.wfile.write(b" ")
        time.sleep(0.05)


def watch_of(lines):
    def how(h):
        if h.path != "/v3/watch":
            return h.answer(b'{"header": {"revision": "5"}, "ID": "7", "TTL": "3", "succeeded": true, "result": {"TTL": "3"}}')
        h.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + lines)
        h.wfile.flush()
    return how


KEY = "L3JvY2V3YXkvc2l0ZS94"  # /roceway/site/x
RANGES = [b"", b"nonsense", b"[]", b"null", b"{}", b'{"kvs": 5}', b'{"kvs": [5]}', b'{"header": [], "kvs": [{}]}', b'{"kvs": [{"key": 1}]}',
          b'{"kvs": [{"key": "!!!!"}]}', b'{"more": true, "kvs": [{}]}', b'{"more": true, "kvs": [{"key": "' + KEY.encode() + b'", "value": "e30="}]}',
          b'{"kvs": [{"key": "' + KEY.encode() + b'", "value": "not base64"}]}', b"[" * 100000, b'{"kvs": ' * 3000]
LINES = [b"\n", b"nonsense\n", b"{}\n", b'{"result": 5}\n', b'{"result": {"canceled": true}}\n', b'{"result": {"created": true}}\n',
         b'{"result": {"events": [5]}}\n', b'{"result": {"events": [{"type": 5, "kv": {"key": "!"}}]}}\n', b'{"result": {"canceled": true, "compact_revision": "9"}}\n',
         b'{"result": {"events": [{"kv": {"key": "' + KEY.encode() + b'", "value": "W10=", "mod_revision": "6"}}]}}\n' * 3, b"x" * (70 << 20)]


def test_etcd_that_answers_nonsense():
    """It waits, reports the reason, limits its requests, and ends on request."""
    hows = [lambda h, b=b: h.answer(b) for b in RANGES] + [endless, drip]
    hows += [lambda h: h.answer(b"", 302, ("Location", "http://127.0.0.1:1/")), lambda h: h.answer(b'{"error": 5, "code": "x"}', 500), lambda h: h.connection.close()]
    with temporary() as d:
        fake = Nonsense()
        fake.how = hows[0]
        ca = CA(Path(d) / "ca")
        ca.issue("ctl", "controller", "127.0.0.1")
        c = Controller.__new__(Controller)
        start, c.start = c.start, lambda: None
        c.__init__(BUILD, ca, d, f"{{kind: etcd, endpoints: [\"http://127.0.0.1:{fake.server_address[1]}\"]}}")
        import subprocess
        for how in hows + [watch_of(x) for x in LINES]:
            fake.how, fake.asked = how, 0
            c.proc = subprocess.Popen([c.program, "--config", c.config], stdin=subprocess.DEVNULL, stderr=c.log.open("a"))
            try:
                until(lambda: fake.asked >= 1)
                time.sleep(0.25)
                asked = fake.asked
                assert c.proc.poll() is None, "it is gone"
                assert asked < 60, asked
                c.proc.send_signal(signal.SIGTERM)
                assert c.proc.wait(30) in (0, 1), c.proc.returncode
            except BaseException:
                print(how, c.log.read_text()[-2000:])
                raise
            finally:
                c.proc.kill()
        fake.shutdown()


if __name__ == "__main__":
    tests = {k: v for k, v in globals().items() if k.startswith("test_") and (not ONLY or any(o in k for o in ONLY))}
    if LIBC.unshare(NEW_MOUNTS) < 0 or LIBC.mount(b"none", b"/", None, REC_PRIVATE, None) < 0:
        print("no mounts of our own (not root): what needs a small disk is left out")
        tests = {k: v for k, v in tests.items() if "disk" not in k}
    sys.exit(cases.run(tests))
