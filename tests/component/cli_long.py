#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_long.py BUILD: tables fit their width with the longest names and addresses that there are. A proxy in
# front of the made-up gateway (tests/component/api/server.c) makes all names and addresses of its answers so long.
import http.client
import http.server
import json
import re
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import cases

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
ROOT = Path(__file__).resolve().parents[2]
WIDTH, NAME, PORT = 100, 31, 11
ADDRESS = "fdfd:1111:2222:3333:4444:5555:6666:7777"
NAMES = ("name", "tunnel", "tenant", "job", "label", "peer", "gateway", "witness", "member", "site")
PROBLEM = "registration: Failed to connect to 198.18.0.1 port 7443 after 0 ms: Couldn't connect to server, and nobody knows why"
CONTROLLER = {"state": "away", "url": "https://192.0.2.10:7443", "since_seconds": 2.0, "name": "site-a", "site": "A", "member": "",
              "retry_seconds": 0.2, "generation": 7, "refused": 8, "refusal": "tunnels[3].prefixes[0]: 10.2.0.0/24 is a name of the gateway's own, "
              "which the document may not take", "tunnels": ["b" * NAME] * 9, "problem": PROBLEM, "counters": {"failures": 4}}


def lengthen(key, value, url):
    if isinstance(value, dict):
        return {k: lengthen(k, v, url) for k, v in value.items()}
    if isinstance(value, list):
        return [lengthen(key, v, url) for v in value]
    if not isinstance(value, str) or not value or key == "version":
        return value
    if re.fullmatch(r"\d+(\.\d+){3}|[0-9a-f]*:[0-9a-f:]*:[0-9a-f]+", value) and not re.fullmatch(r"(..:){5}..", value):
        return ADDRESS
    if re.fullmatch(r"[0-9a-f.:]+/\d+", value):
        return ADDRESS + "/128"
    if key == "port" or (key == "name" and "ports" in url):
        return (value + "-" * PORT)[:PORT]
    return (value + "-" + "n" * NAME)[:NAME] if key in NAMES and "health" not in url and "counters" not in url else value


def of_a_tenant(key, value):
    """Addresses, queue pairs and counts as a NIC's connection in a tenant has them."""
    if isinstance(value, dict):
        return {k: of_a_tenant(k, v) for k, v in value.items()}
    if isinstance(value, list):
        return [of_a_tenant(key, v) for v in value]
    if key in ("local_qpn", "remote_qpn"):
        return 14_680_064
    return {"tenant": "blue", "local": "172.16.1.20", "remote": "172.16.2.20"}.get(key, value)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        c = http.client.HTTPConnection("gateway")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(self.server.behind)
        c.request("GET", self.path)
        r = c.getresponse()
        status, text = r.status, json.dumps(CONTROLLER if self.path == "/v1/controller" else self.server.change(json.loads(r.read()), self.path)).encode()
        c.close()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Proxy(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def tables(*options, commands=None, change=lambda v, url: lengthen("", v, url)):
    """What each command prints: {command: text}."""
    commands = commands or ["status", "flows", "flows --detail", "recorder", "recorder --qpn 18", "tunnels", "tunnels --detail", "tunnels --paths", "memory",
                "counters", "ports", "ports --detail", "neighbours", "siblings", "siblings --detail", "standby", "reservations --interval 0.1",
                "workers", "tenant", "offload", "controller", "health", f"why {ADDRESS} {ADDRESS} 18 --interval 0"]
    out = {}
    with tempfile.TemporaryDirectory() as d:
        behind, path = d + "/run/g.sock", d + "/p.sock"
        server = subprocess.Popen([BUILD / "tests/api_server", behind, *options], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout.readline() == "ready\n"
            with Proxy(path, Handler) as proxy:
                proxy.behind, proxy.change = behind, change
                threading.Thread(target=proxy.serve_forever, daemon=True).start()
                for c in commands:
                    r = subprocess.run([BUILD / "bin/roceway", "--socket", path, *c.split()], capture_output=True, text=True, timeout=60)
                    assert not r.stderr or c.startswith("why"), (c, r.stderr)
                    out[c] = r.stdout
                proxy.shutdown()
        finally:
            server.communicate("", timeout=20)
    return out


def test_tables_fit():
    for options in ((), ("down=1", "workers=2"), ("siblings=1",), ("offload=1",)):
        for command, text in tables(*options).items():
            for line in text.splitlines():
                assert len(line) <= WIDTH, (options, command, len(line), line)


def test_ipv4_addresses_stay_whole():
    text = tables(commands=["flows"], change=lambda v, url: of_a_tenant("", v))["flows"]
    rows = re.findall(r"^blue +172\.16\.1\.20 +14680064 +172\.16\.2\.20 +14680064 ", text, re.M)
    assert len(rows) == 3 and all(len(line) <= WIDTH for line in text.splitlines()), text


def test_nothing_is_cut_off():
    out = tables("siblings=1")
    text = out["reservations --interval 0.1"]
    job = "".join(line[:9].strip() for line in text.splitlines() if line[:1] in "tn" and line[:9].strip())
    assert job == 2 * ("train-" + "n" * NAME)[:NAME], text
    assert f"local host {ADDRESS},\nremote host {ADDRESS}\n" in out["recorder --qpn 18"], out["recorder --qpn 18"]
    assert "\ncontroller     away for 2 s, document 8 REFUSED: see roceway controller\n" in out["status"], out["status"]
    words = " ".join(out["controller"].split())
    assert PROBLEM in words and CONTROLLER["refusal"] in words, out["controller"]


sys.exit(cases.run(globals()))
