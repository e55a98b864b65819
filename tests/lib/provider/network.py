#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# A network's controller for tests/unit/test_provider.c and ctlr/networks.py: the REST contract of
# docs/controller-planning.md over sites a and b, in memory. Prints its port. What makes it
# misbehave is in the sites' names: "slow", "garbage", "huge", "broken", "nosuch"; a tunnel called
# "contested" loses 60 of pe-1's 100 Gbit/s to somebody else just before it is made. POST
# /test/behave: {"paths": HOW, "tunnels": HOW, "more": [EDGE, NAME, BPS], "forget": TUNNEL,
# "steer": [EDGE, NAME, {...}], "lose": [TUNNEL, EDGE, NAME], "others": [EDGE, NAME, BPS]}, HOW one of
# the above, "refuse", "late" (done, but nothing is said) or "". What is slow or late waits until the client
# has given up: whose timer is shorter does not depend on the machine.
import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlparse

G = 10**9
PATHS = {("pe-1", "p"): dict(bandwidth=100 * G, delay_us=10020, jitter_us=50, loss_ppm=0),
         ("pe-2", "q"): dict(bandwidth=50 * G, delay_us=12000, jitter_us=60, loss_ppm=1)}
TUNNELS = {}
OTHERS = {}
BEHAVE = {"paths": "", "tunnels": ""}
CALLS = []
CHANGE = threading.Lock()


def left(key, but=None):
    mine = sum(leg["bandwidth_bps"] for n, t in TUNNELS.items() if n != but for leg in t["legs"] if (leg["edge"], leg["path"]) == key)
    return PATHS[key]["bandwidth"] - OTHERS.get(key, 0) - mine


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def answer(self, status, doc=None, raw=None):
        body = raw if raw is not None else json.dumps(doc).encode() if doc is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def until_gone(self):
        self.connection.settimeout(60)
        try:
            self.connection.recv(1)
        except OSError:
            pass

    def bad(self, what):
        how = BEHAVE[what]
        if how == "slow":
            self.until_gone()
        elif how == "garbage":
            self.answer(200, raw=b'{"paths": [{"edge": "pe-1", "name": "p", "free_bps": -1, "delay_us": 1}]}')
        elif how == "broken":
            self.answer(500, raw=b"<html>")
        elif how == "refuse":
            self.answer(409, {"error": "taken meanwhile"})
        return how in ("garbage", "broken", "refuse")

    def do_POST(self):
        doc = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "more" in doc:
            edge, name, bps = doc.pop("more")
            PATHS[edge, name] = dict(bandwidth=bps, delay_us=15000, jitter_us=100, loss_ppm=0)
        if "steer" in doc:
            edge, name, steer = doc.pop("steer")
            PATHS[edge, name]["steer"] = steer
        if "lose" in doc:
            tunnel, *which = doc.pop("lose")
            TUNNELS[tunnel]["legs"] = [leg for leg in TUNNELS[tunnel]["legs"] if [leg["edge"], leg["path"]] != which]
        if "others" in doc:
            edge, name, bps = doc.pop("others")
            OTHERS[edge, name] = bps
        TUNNELS.pop(doc.pop("forget", None), None)
        BEHAVE.update(doc)
        self.answer(200, {})

    def do_GET(self):
        u = urlparse(self.path)
        q = {k: v[0] for k, v in parse_qs(u.query).items()}
        if u.path == "/test/tunnels":
            return self.answer(200, TUNNELS)
        if u.path == "/test/calls":
            return self.answer(200, CALLS)
        CALLS.append("GET " + self.path)
        if u.path.startswith("/v1/tunnels/"):
            there = TUNNELS.get(unquote(u.path.rsplit("/", 1)[1]))
            return None if self.bad("tunnels") else self.answer(200 if there else 404, there or {"error": "no such tunnel"})
        if self.bad("paths"):
            return None
        if u.path != "/v1/paths" or set(q) != {"first", "second"}:
            return self.answer(400, {"error": "what?"})
        if "slow" in q.values():
            self.until_gone()
        if "garbage" in q.values():
            return self.answer(200, raw=b'{"paths": [{"edge": "pe-1", "name": "p", "free_bps": -1, "delay_us": 1}]}')
        if "huge" in q.values():
            return self.answer(200, raw=b" " * (2 << 20))
        if "broken" in q.values():
            return self.answer(500, raw=b"<html>")
        if (q["first"], q["second"]) != ("a", "b"):
            return self.answer(404, {"error": "no such site"})
        return self.answer(200, {"paths": [{"edge": e, "name": n, "free_bps": left((e, n)), "delay_us": p["delay_us"], "jitter_us": p["jitter_us"],
                                     "loss_ppm": p["loss_ppm"], **({"steer": p["steer"]} if "steer" in p else {})} for (e, n), p in PATHS.items()]})

    def gone(self):
        """Its client has given up, and may say something else meanwhile: what it said before does not count."""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def put(self, name, doc):
        """(status, body), or None."""
        with CHANGE:
            if self.gone():
                return None
            if name.split("~")[0] == "contested" and not OTHERS:
                OTHERS["pe-1", "p"] = 60 * G
            for leg in doc["legs"]:
                if leg["bandwidth_bps"] > left((leg["edge"], leg["path"]), but=name):
                    return 409, {"error": f"{leg['edge']}/{leg['path']}: taken meanwhile"}
            new = name not in TUNNELS
            TUNNELS[name] = doc
            return 201 if new else 200, {}

    def do_PUT(self):
        doc = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = unquote(self.path.rsplit("/", 1)[1])
        CALLS.append("PUT " + name)
        if self.bad("tunnels"):
            return None
        if set(doc) != {"first", "second", "shape", "legs"} or doc["shape"] not in ("same-path", "multi-path"):
            return self.answer(400, {"error": "what is this?"})
        said = self.put(name, doc)
        if said and said[0] != 409 and BEHAVE["tunnels"] == "late":
            self.until_gone()
        return self.answer(*said) if said else None

    def do_DELETE(self):
        name = unquote(self.path.rsplit("/", 1)[1])
        CALLS.append("DELETE " + name)
        if self.bad("tunnels"):
            return
        with CHANGE:
            if self.gone():
                return
            had = TUNNELS.pop(name, None)
        self.answer(204 if had else 404)


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # clients that close early are part of the test


srv = Server(("127.0.0.1", 0), Handler)
print(srv.server_address[1], flush=True)
sys.stdin.close()
srv.serve_forever()
