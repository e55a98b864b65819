# SPDX-License-Identifier: Apache-2.0
# A controller with a lab CA, over SQLite or etcd; requests with a role's certificate, checked
# against controller/openapi.yaml.
import atexit
import base64
import fcntl
import http.client
import itertools
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
SPEC = yaml.safe_load((ROOT / "controller/openapi.yaml").read_text())
# Times that are themselves tested (a lease that runs out, an answer that is late) are so many times
# longer on a machine that others use.
SLOW = min(8, max(1, os.getloadavg()[0] / (os.cpu_count() or 1) / 4))


# --- the OpenAPI file ------------------------------------------------------------------------------------

def resolve(node):
    while isinstance(node, dict) and "$ref" in node:
        for i, part in enumerate(node["$ref"].split("/")):
            at = SPEC if i == 0 else at[part]
        node = at
    return node


def properties(schema):
    """All properties of a schema and of its parts; whether others are allowed."""
    schema = resolve(schema)
    props, more = dict(schema.get("properties", {})), schema.get("additionalProperties", True)
    for part in schema.get("allOf", []):
        p, m = properties(part)
        props.update(p)
        more = more if m is True else m
    return props, more


def valid(v, schema, at="body"):
    """The error in v, or None."""
    schema = resolve(schema)
    if v is None:
        return None if schema.get("nullable") else f"{at}: null"
    for part in schema.get("allOf", []):
        part = resolve(part)
        bad = valid(v, {k: x for k, x in part.items() if k != "additionalProperties"}, at)
        if bad:
            return bad
    kind = schema.get("type")
    want = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}.get(kind)
    if want and (not isinstance(v, want) or (kind == "integer" and isinstance(v, bool))):
        return f"{at}: expected {kind}, found {v!r}"
    if "enum" in schema and v not in schema["enum"]:
        return f"{at}: {v!r} is none of {schema['enum']}"
    if kind == "integer" and not schema.get("minimum", v) <= v <= schema.get("maximum", v):
        return f"{at}: {v} is out of range"
    if kind == "string" and ("pattern" in schema and not re.fullmatch(schema["pattern"], v)):
        return f"{at}: {v!r} does not match"
    if isinstance(v, list):
        for i, x in enumerate(v):
            bad = valid(x, schema.get("items", {}), f"{at}[{i}]")
            if bad:
                return bad
    if isinstance(v, dict):
        props, more = properties(schema)
        for key in schema.get("required", []):
            if key not in v:
                return f"{at}.{key}: missing"
        for key, x in v.items():
            if key not in props and more is False:
                return f"{at}.{key}: not in the file"
            bad = valid(x, props.get(key, more if isinstance(more, dict) else {}), f"{at}.{key}")
            if bad:
                return bad
    return None


def template(path):
    """The path of the file that matches this one; exact ones first."""
    for t in sorted(SPEC["paths"], key=lambda t: t.count("{")):
        if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", re.escape(t).replace(r"\{", "{").replace(r"\}", "}")), path):
            return t
    return None


seen = set()  # (template, method, status) that tests have reached


def hold_to_file(method, path, status, body, headers):
    t = template(path.split("?")[0])
    if t is None or method.lower() not in SPEC["paths"][t]:
        assert status in (404, 405, 401, 403), (method, path, status)
        assert body is None or valid(body, SPEC["components"]["schemas"]["Error"]) is None, body
        if t:
            seen.add((t, method, status))
        return
    answers = SPEC["paths"][t][method.lower()]["responses"]
    assert str(status) in answers, f"{method} {t}: {status} is not in the file: {body}"
    seen.add((t, method, status))
    content = resolve(answers[str(status)]).get("content", {})
    if "application/json" in content:
        assert headers["Content-Type"] == "application/json", headers["Content-Type"]
        bad = valid(body, content["application/json"]["schema"])
        assert bad is None, f"{method} {path}: {status}: {bad}"


# --- certificates ------------------------------------------------------------------------------------------

class CA:
    def __init__(self, directory):
        self.dir = Path(directory)
        self.run("init")

    def run(self, *words):
        subprocess.run([ROOT / "tools/ca/roceway-ca", self.dir, *words], check=True, capture_output=True, text=True)

    def issue(self, name, role, *addresses):
        self.run("issue", name, role, *addresses)
        return self.context(name)

    def context(self, name=None, ca=None):
        c = ssl.create_default_context(cafile=str((ca or self).dir / "ca.pem"))
        if name:
            c.load_cert_chain(self.dir / f"{name}.pem", self.dir / f"{name}.key")
        return c


ports = itertools.count(os.getpid() * 101 % 20000)  # seldom where another process is
PORTS = Path(tempfile.gettempdir()) / "rwy-test-ports"
mine = []  # locks of ports, as long as this process lives


def free_port():
    """Below those that the kernel gives to connections, which could take it before a server has it. It stays this process's own: a server
    that is killed and started again finds it free, and no script beside this one gets it."""
    PORTS.mkdir(exist_ok=True)
    while True:
        port = 10000 + next(ports) % 20000
        lock = open(PORTS / str(port), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
            mine.append(lock)
            return port
        except OSError:
            lock.close()


# --- stores --------------------------------------------------------------------------------------------------

class Etcd:
    """Three nodes."""

    def __init__(self, directory, quota=1 << 30, request=1536 << 10):
        self.dir, self.quota, self.request = Path(directory), quota, request
        self.urls = [f"http://127.0.0.1:{free_port()}" for _ in range(3)]
        self.peers = [f"http://127.0.0.1:{free_port()}" for _ in range(3)]
        self.proc = [None] * 3
        for i in range(3):
            self.start(i)
        end = time.monotonic() + 60
        while any(self.ctl(i, "get", "x").returncode for i in range(3)):
            assert time.monotonic() < end, "etcd does not start"
            time.sleep(0.1)

    def start(self, i):
        cluster = ",".join(f"n{k}={p}" for k, p in enumerate(self.peers))
        self.proc[i] = subprocess.Popen(
            ["etcd", "--name", f"n{i}", "--data-dir", self.dir / f"n{i}", "--listen-client-urls", self.urls[i], "--advertise-client-urls", self.urls[i],
             "--listen-peer-urls", self.peers[i], "--initial-advertise-peer-urls", self.peers[i], "--initial-cluster", cluster,
             "--heartbeat-interval", str(round(50 * SLOW)), "--election-timeout", str(round(500 * SLOW)), "--quota-backend-bytes", str(self.quota), "--max-request-bytes", str(self.request)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        atexit.register(self.proc[i].kill)

    def ctl(self, i, *words):
        return subprocess.run(["etcdctl", f"--endpoints={self.urls[i]}", *words], capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"})

    def put(self, records):
        """Many at once: at most 128."""
        def text(s):
            return base64.b64encode(s.encode()).decode()
        puts = [{"requestPut": {"key": text(k), "value": text(v)}} for k, v in records.items()]
        with urllib.request.urlopen(self.urls[0] + "/v3/kv/txn", json.dumps({"success": puts}).encode(), 60) as r:
            assert json.loads(r.read())["succeeded"]

    def kill(self, i):
        if self.proc[i]:
            self.proc[i].kill()
            self.proc[i].wait()
            self.proc[i] = None

    def close(self):
        for i in range(3):
            self.kill(i)

    def yaml(self):
        return "{kind: etcd, endpoints: [" + ", ".join(f'"{u}"' for u in self.urls) + "]}"


class Wires:
    """The way from one controller to the nodes of an etcd, which can be cut."""

    def __init__(self, etcd):
        self.cut, self.open, self.urls = False, set(), []
        for url in etcd.urls:
            s = socket.create_server(("127.0.0.1", free_port()))
            self.urls.append(f"http://127.0.0.1:{s.getsockname()[1]}")
            threading.Thread(target=self.serve, args=(s, int(url.rsplit(":", 1)[1])), daemon=True).start()

    def yaml(self):
        return Etcd.yaml(self)

    def serve(self, listening, port):
        while True:
            near = listening.accept()[0]
            try:
                far = None if self.cut else socket.create_connection(("127.0.0.1", port))
            except OSError:
                far = None
            if far is None:
                near.close()
                continue
            self.open |= {near, far}
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    def carry(self, a, b):
        try:
            while not self.cut and (data := a.recv(65536)):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def set(self, cut):
        self.cut = cut
        for s in list(self.open) if cut else ():
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


# --- the controller --------------------------------------------------------------------------------------------

class Controller:
    def __init__(self, build, ca, directory, store, name="ctl", lease="2s", extra="", limits="{}"):
        self.port, self.page = free_port(), free_port()
        self.ca = ca
        self.config = Path(directory) / f"{name}.yaml"
        self.config.write_text(
            f"controller: {{name: {name}, log_level: info}}\n"
            f"listen: {{address: \"127.0.0.1:{self.port}\", page: \"127.0.0.1:{self.page}\"}}\n"
            f"tls: {{ca: {ca.dir}/ca.pem, certificate: {ca.dir}/ctl.pem, key: {ca.dir}/ctl.key, crl: {ca.dir}/crl.pem}}\n"
            f"store: {store}\ngateways: {{lease: {lease}}}\nlimits: {limits}\n{extra}")
        self.log = Path(directory) / f"{name}.log"
        self.program = Path(build) / "bin/roceway-controller"
        self.start()

    def start(self):
        self.proc = subprocess.Popen([self.program, "--config", self.config], stdin=subprocess.DEVNULL, stderr=self.log.open("a"))
        atexit.register(self.proc.kill)
        end = time.monotonic() + 60  # wait for an etcd without a leader
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end and self.proc.poll() is None, self.log.read_text()
                time.sleep(0.02)

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        assert self.proc.wait(20) == 0, self.log.read_text()[-3000:]

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def hup(self):
        def looked():
            return self.log.read_text(errors="replace").count("CA or revocation list cannot be read") + \
                self.log.read_text(errors="replace").count("CA and revocation list read again")
        before = looked()
        self.proc.send_signal(signal.SIGHUP)
        until(lambda: looked() > before)

    def client(self, context):
        return Client(self, context)


class Client:
    """A client with a certificate: one connection, kept open."""

    def __init__(self, controller, context):
        self.controller, self.context, self.c = controller, context, None

    def connect(self):
        self.c = http.client.HTTPSConnection("127.0.0.1", self.controller.port, context=self.context, timeout=60)
        return self.c

    def close(self):
        if self.c:
            self.c.close()
        self.c = None

    def ask(self, method, path, body=None, want=None):
        """Sends a request and checks the answer against the file: (status, body). body: a value, or
        raw bytes."""
        if not self.c:
            self.connect()
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        try:
            self.c.request(method, path, data, {"Content-Type": "application/json"} if data else {})
            r = self.c.getresponse()
            text = r.read()
        except Exception:
            self.close()
            raise
        out = json.loads(text) if r.headers.get("Content-Type") == "application/json" and text else None
        if r.headers.get("Connection") == "close":
            self.close()
        if path.startswith(("/v1", "/metrics")):
            hold_to_file(method, path, r.status, out, r.headers)
        if want is not None:
            assert r.status == want, (method, path, r.status, out if out is not None else text)
        self.headers, self.text = r.headers, text
        return r.status, out

    def get(self, path, want=200):
        return self.ask("GET", path, None, want)[1]

    def put(self, path, body, want=200):
        return self.ask("PUT", path, body, want)[1]

    def post(self, path, body, want=200):
        return self.ask("POST", path, body, want)[1]

    def delete(self, path, want=200):
        return self.ask("DELETE", path, None, want)[1]


def registration(site, n, boot="b1", bandwidth=10**10, tcp=True):
    caps = {"rocev2": {"bandwidth_bps": bandwidth, "cnp": True}}
    if tcp:
        caps["tcp"] = {"bandwidth_bps": bandwidth // 2, "algorithms": ["bbr", "cubic"]}
    return {"boot_id": boot, "site": site, "version": "0.1.0", "lan": [f"10.{n}.0.1"], "wan": [f"192.0.2.{n}:4793"],
            "ports": [{"name": "lan", "speed_bps": bandwidth}], "capabilities": caps}


LOAD = {"sessions": 0, "rate_bps": 0, "cpu_ppm": 0, "custody_ppm": 0}


class Gateway:
    """A gateway's client of the API."""

    def __init__(self, client, name, site, n, **more):
        self.client, self.name, self.reg = client, name, registration(site, n, **more)

    def path(self, rest=""):
        return f"/v1/gateways/{self.name}{rest}"

    def register(self, want=200, **change):
        self.reg.update(change)
        out = self.client.put(self.path(), self.reg, want)
        if want == 200:
            self.lease, self.generation = out["lease"], out["generation"]
        return out

    def renew(self, want=200, **change):
        body = {"lease": self.lease, "boot_id": self.reg["boot_id"], "generation_running": self.generation, "load": LOAD, **change}
        return self.client.post(self.path("/lease"), body, want)

    def document(self, after=0, wait_ms=0, want=200):
        out = self.client.get(self.path(f"/document?after={after}&wait_ms={wait_ms}"), want)
        if want == 200:
            self.generation = out["generation"]
        return out

    def open(self, *pairs, vni=0):
        out = self.client.post(self.path("/sessions"), {"sessions": [
            {"id": f"{s}-{d}".replace(":", "."), "event": "opened", "vni": vni, "source": s, "destination": d} for s, d in pairs]})
        return out["decisions"]


class Member(Gateway):
    """One of a pair."""

    def __init__(self, client, name, site, n, member, **more):
        super().__init__(client, name, site, n, boot=f"boot-{member}", **more)
        self.member = member
        self.reg["pair"], self.configuration = {"member": member}, "0123456789abcdef"

    def say(self, state, other=None, epoch=1, served=None, lost=None, age_ms=5, want=200, **change):
        self.said = {"member": self.member, "configuration": self.configuration, "state": state, "epoch": epoch, "age_ms": age_ms, **({"other": other} if other else {}),
                     **{k: {"by": v, "age_ms": age_ms} for k, v in (("served", served), ("lost", lost)) if v}}
        return self.renew(want, pair=self.said, **change)

    def document(self, after=0, wait_ms=0, want=200):
        out = self.client.get(self.path(f"/document?after={after}&wait_ms={wait_ms}&member={self.member}"), want)
        if want == 200:
            self.generation = out["generation"]
        return out


def until(what, seconds=60):
    """Asks until it is so."""
    end = time.monotonic() + seconds
    while True:
        out = what()
        if out:
            return out
        assert time.monotonic() < end, "it never becomes so"
        time.sleep(0.05)


def temporary():
    return tempfile.TemporaryDirectory(prefix="rwy-ctlr-")
