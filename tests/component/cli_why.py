#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_why.py BUILD: roceway why: sentences about connections that a made-up API tells of.
import contextlib
import json
import os
import re
import socketserver
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, urlsplit

import cases

sys.argv = sys.argv[:2]
from cli_api import CLI, Server, cli, fits  # noqa: E402

A, B = "10.1.0.2", "10.2.0.2"
FLOW = {"worker": 0, "tenant": "", "vni": 0, "local": A, "remote": B, "local_qpn": 18, "remote_qpn": 77, "tunnel": "b1", "state": "paired", "error": "",
        "limit": "window", "ack_mode": "near", "tx_bytes": 0, "rx_bytes": 0, "custody_bytes": 0, "idle_seconds": 0.001, "last_seconds": 1,
        "requester_queue": 0, "requester_rate_Bps": 0, "requester_rtt_seconds": 0.0, "host_resent": 0, "rnr_naks": 0, "seq_naks": 0,
        "host_timeouts": 0, "naks_sent": 0, "withheld_seconds": 0.0, "withheld_times": 0, "impatient": False, "patience_seconds": 0.0,
        "remote_window": 0, "remote_drain_Bps": 0}
TUNNEL = {"name": "b1", "state": "up", "since": "2026-11-26T06:00:00Z", "rtt_seconds": 0.02, "loss_ratio": 0.0, "rate_bytes_per_second": 1.25e9, "congestion": {"by": "none"}}


def entry(kind, text, local_qpn=18, remote_qpn=77, number=1, side="responder", **more):
    return {"worker": 0, "number": number, "time": f"2026-11-26T07:03:{number:02}.000001Z", "ago_seconds": 100 - number, "kind": kind, "side": side, "local": A, "remote": B,
            "local_qpn": local_qpn, "remote_qpn": remote_qpn, "vni": 0, "tunnel": "", "from": "", "to": "", "psn": 0, "value": 0, "text": text, **more}


class Api:
    """Answers the pages that `why` asks. `grow`: what each look at the flows adds to them."""

    def __init__(self, flows=(), entries=(), tunnels=(), tunnel=TUNNEL, reservations=(), grow=None):
        self.flows, self.entries, self.tunnels, self.tunnel = [dict(f) for f in flows], list(entries), list(tunnels), tunnel
        self.reservations, self.grow, self.looks = list(reservations), grow or {}, 0

    def page(self, url):
        at, q = urlsplit(url), dict(parse_qsl(urlsplit(url).query))
        if at.path == "/v1/flows":
            found = [f for f in self.flows if f["tenant"] == q.get("tenant", f["tenant"]) and f["local"] == q["local"] and f["remote"] == q["remote"] and q.get("qpn", "0") in ("0", str(f["local_qpn"]), str(f["remote_qpn"]))]
            answer = json.loads(json.dumps({"total": len(self.flows), "matching": len(found), "flows": found, "next": None}))
            for f in self.flows:
                for key, by in self.grow.items():
                    f[key] = by[min(self.looks, len(by) - 1)] if isinstance(by, list) else f[key] + by
            self.looks += 1
            return answer
        if at.path == "/v1/recorder":
            if "kind" in q:
                return {"entries": [e for e in self.tunnels if e["kind"] == q["kind"]]}
            return {"entries": [e for e in self.entries if (e["local"], e["remote"]) == (q["local"], q["remote"])]}
        if at.path.startswith("/v1/tenants/"):
            return {"name": at.path.rsplit("/", 1)[1], "vni": 5001}
        return {"/v1/tunnels": {"tunnels": [self.tunnel] if self.tunnel else []}, "/v1/reservations": {"reservations": self.reservations}}[at.path]


@contextlib.contextmanager
def serving(api):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(api.page(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

        def address_string(self):
            return "unix"

    with tempfile.TemporaryDirectory() as d:
        server = socketserver.ThreadingUnixStreamServer(d + "/s", Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield d + "/s"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def why(api, *words, want=0, interval="0"):
    with serving(api) as path:
        r = cli(["--socket", path, "why", *(words or (A, B)), "--interval", interval], want)
    if want == 0:
        fits(r.stdout)
        return re.sub(r"\n   ", " ", r.stdout)
    return r


def flow(**more):
    return {**FLOW, **more}


# --- slow ----------------------------------------------------------------------------------------------


def test_each_limit():
    said = {"share": "waited for the limit of its tenant (", "window": "its own window", "path": "waited for the tunnel", "host": "the far host 10.2.0.2 took no more", "far": "the credit of the far gateway was used up",
            "memory": "custody memory is short: it holds 31 MiB", "read": "so that a READ behind its WRITEs is answered", "near-source": "this gateway's CNPs slowed it down",
            "drain": "was being drained", "": "no request of 10.1.0.2 was under way"}
    for limit, text in said.items():
        out = why(Api([flow(limit=limit, custody_bytes=31 << 20, remote_drain_Bps=125000000, remote_window=1 << 20)]))
        assert "At this moment " in out and text in out, (limit, out)
        for other in said:
            assert other == limit or said[other] not in out, (limit, other, out)
        assert ("takes 1 Gbps; 1 MiB may be on the way" in out) == (limit == "host"), out


def test_watched():
    api = Api([flow(ack_mode="end")], grow={"tx_bytes": 1000000, "limit": ["window"] * 15 + ["path"]})
    out = why(api, interval="0.2")
    assert re.search(r"10\.1\.0\.2 sends [\d.]+ Mbps to 10\.2\.0\.2, watched for \d+ ms\.", out), out
    n = [int(x) for x in re.findall(r"In (\d+) of 20 looks", out)]
    assert sum(n) == 20 and n == sorted(n, reverse=True) and len(n) == 2, out
    assert re.search(r"In ack mode `end` completions take a round trip, 20 ms: it has about [\d.]+ [KM]iB under way", out), out


def test_local_host():
    out = why(Api([flow(limit="", requester_queue=40, requester_rate_Bps=12500000, rnr_naks=7, host_timeouts=2, host_resent=9, seq_naks=1, naks_sent=3)]))
    for text in ("40 requests of 10.2.0.2 wait for it", "bound what it gets to 100 Mbps", "7 RNR NAKs of it: it posts receives too slowly", "2 times it did not answer in time",
                 "9 packets sent to it again", "1 sequence NAKs of it", "10.1.0.2 got 3 NAKs of this gateway"):
        assert text in out, (text, out)
    api = Api([flow(rnr_naks=1, rx_bytes=5)], grow={"rnr_naks": 2, "rx_bytes": 1000, "withheld_seconds": 0.01, "withheld_times": 1})
    out = why(api, interval="0.1")
    assert "39 RNR NAKs of it: it posts receives too slowly (38 just now)" in out, out
    assert "10.1.0.2 takes" in out and "its ACKs waited 19 times, for 190 ms in all, of which just now 190 ms" in out, out


def test_nothing_is_said_of_what_is_well():
    out = why(Api([flow()]))
    for text in "NAK", "wait for it", "ACKs waited", "refused", "failed", "congested", "go down", "gives up", "plan":
        assert text not in out, (text, out)


def test_path():
    tunnels = [entry("tunnel", "tunnel b1: down", tunnel="b1", to="down"), entry("tunnel", "tunnel c1: down", tunnel="c1", to="down"),
               entry("tunnel", "", tunnel="b1", to="the gateway at its other end restarted"), entry("tunnel", "", tunnel="b1", to="the gateway at its other end restarted")]
    bad = {**TUNNEL, "loss_ratio": 0.05, "congestion": {"by": "loss", "since": "2026-11-26T06:30:00Z"}}
    out = why(Api([flow(limit="path")], tunnels=tunnels, tunnel=bad, reservations=[{"source": A, "destination": B, "limited": True, "rate_bps": 8000000, "job": "train"}]))
    for text in "loss 5.00 %", "congested persistently, by loss", "saw the tunnel go down once", "restart 2 times", "plan bounds it: 8 Mbps of job train":
        assert text in out, (text, out)
    out = why(Api([flow(limit="path")], tunnel={**TUNNEL, "state": "down"}))
    assert "Tunnel b1 is down since 2026-11-26T06:00:00Z." in out


def test_states():
    out = why(Api([flow(state="learning", remote_qpn=0, impatient=True, ack_mode="end", patience_seconds=0.01)], [entry("turn_end", "pairing: no answer", remote_qpn=0)]))
    assert "(QPN not known)" in out and "not paired yet" in out and "gives up after 10 ms" in out and "pairing: no answer" in out, out
    assert "have disconnected" in why(Api([flow(state="closing")]))


# --- dead ----------------------------------------------------------------------------------------------


def test_local_host_was_silent():
    entries = [entry("timeout", "no answer", number=n, side="requester") for n in range(1, 8)] + \
              [entry("fail", "requester failed at PSN 5: retry count exceeded", number=8, side="requester", value=2)]
    out = why(Api([flow(state="failed", error="retry count exceeded")], entries))
    assert "It failed at 2026-11-26 07:03:08 UTC, 92 s ago: retry count exceeded." in out, out
    assert "10.1.0.2: it is down, its queue pair is gone" in out and "7 times that 10.1.0.2 did not answer in time, the first at 2026-11-26 07:03:01 UTC" in out
    assert "watched" not in out and "At this moment" not in out


def test_the_other_end_knows():
    out = why(Api([flow(state="failed")], [entry("fail", "responder failed at PSN 5: the far host did not answer: retry count exceeded", value=2)]))
    assert "`roceway why 10.2.0.2 10.1.0.2` there" in out and ": the far host did not answer" in out, out


FAR_FLOW = {**FLOW, "local": B, "remote": A, "local_qpn": 77, "remote_qpn": 18, "state": "failed", "error": "retry count exceeded"}


def far_entry(*words, **more):
    return {**entry(*words, local_qpn=77, remote_qpn=18, side="requester", **more), "local": B, "remote": A}


def test_ask_the_other():
    near = Api([flow(state="failed")], [entry("fail", "responder failed at PSN 5: the far host did not answer: retry count exceeded", value=2)])
    far = Api([FAR_FLOW], [far_entry("timeout", "no answer", number=n) for n in range(1, 8)] +
              [far_entry("fail", "requester failed at PSN 5: retry count exceeded", number=8, value=2)])
    with serving(far) as there, serving(near) as here:
        words = ["--socket", here, "why", A, B, "--interval", "0"]
        out = cli([*words, "--other", there]).stdout
        fits(out)
        out = re.sub(r"\n   ", " ", out)
        mine, theirs = out.split(f"The other gateway, {there}:")
        assert "The other gateway says why, below." in mine and "7 times" not in mine, mine
        assert "7 times that 10.2.0.2 did not answer in time" in theirs and "it is down, its queue pair is gone" in theirs and "retry count exceeded" in theirs, theirs
        both = json.loads(cli([*words, "--json", "--other", there]).stdout)
        assert both["other"]["flow"]["local"] == B and len(both["other"]["entries"]) == 8 and both["flow"]["local"] == A, both
        assert json.loads(cli([*words, "--json"]).stdout)["other"] is None
        # By the environment; the other one does not ask again.
        env = {**os.environ, "ROCEWAY_OTHER": there}
        r = subprocess.run([CLI, *words], capture_output=True, text=True, env=env, timeout=60)
        assert r.returncode == 0 and r.stdout.count("The other gateway,") == 1, r
        # By ssh, whose shell gets each word as one.
        with tempfile.TemporaryDirectory() as d:
            with open(d + "/ssh", "w") as f:
                f.write(f'#!/bin/sh\necho "$@" >{d}/said\nwhile [ "$1" != roceway ]; do shift; done\nshift\neval exec {CLI} --socket {there} "$@"\n')
            os.chmod(d + "/ssh", 0o755)
            env = {**os.environ, "PATH": d + ":" + os.environ["PATH"]}
            r = subprocess.run([CLI, *words, "--other", "gw@site-b"], capture_output=True, text=True, env=env, timeout=60)
            assert r.returncode == 0 and "The other gateway, gw@site-b:" in r.stdout and "7 times that" in r.stdout, r
            with open(d + "/said") as f:
                assert f.read() == f"-o BatchMode=yes -o ConnectTimeout=5 -- gw@site-b roceway why --json --other= {B} {A} 18 --interval 0 --entries 10\n"
            near.flows[0]["tenant"] = "red; rm"
            r = subprocess.run([CLI, *words, "--other", "gw@site-b", "--tenant", "red; rm"], capture_output=True, text=True, env=env, timeout=60)
            assert r.returncode == 0 and "cannot be given to ssh" in r.stderr, r
            near.flows[0]["tenant"] = ""
        # It is not there, has no such connection, or is this one: what is known here is told all the same.
        far.flows, far.entries = [], []
        for where, said in (("/nonexistent/s", "gives no answer"), (there, "gives no answer"), (here, "is the gateway of 10.1.0.2 itself")):
            r = subprocess.run([CLI, *words, "--other", where], capture_output=True, text=True, timeout=60)
            assert r.returncode == 0 and said in r.stderr and "there, or `--other` here" in re.sub(r"\n   ", " ", r.stdout), r


def test_own_cause():
    out = why(Api([flow(state="failed")], [entry("fail", "responder failed at PSN 5: its tunnel was removed", value=66)]))
    assert "somebody removed the tunnel" in out, out


def test_forgotten_or_overwritten():
    out = why(Api([], [entry("fail", "requester failed at PSN 5: RNR retry count exceeded", side="requester", value=3), entry("begin", "another", local_qpn=1, remote_qpn=2)]), A, B, "77")
    assert "no such connection now" in out and "posted no receives" in out and "another" not in out, out
    out = why(Api([flow(state="failed", error="remote access error")]))
    assert "It failed: remote access error. The recorder no longer has when" in out, out
    out = why(Api([flow()], [entry("fail", "responder failed at PSN 5: x", value=64), entry("lost", "the local queue pair is ended: y", value=4)]))
    assert "An earlier connection of these queue pairs failed at" in out and "had to be ended" in out, out


def test_refused():
    out = why(Api([], [entry("refused", "refused at PSN 0: request of a connection that CM did not open", local_qpn=0, number=n) for n in (1, 2)]))
    assert "Requests were refused (2 entries), the last 98 s ago: request of a connection that CM did not open." in out, out


# --- which connection ----------------------------------------------------------------------------------


def test_which():
    two = [flow(), flow(local_qpn=19, remote_qpn=78)]
    r = why(Api(two), want=1)
    assert "2 connections match: say the QPN of either end, or the tenant" in r.stderr and re.search(r"19 +78  paired", r.stdout), r
    assert "(QPN 19)" in why(Api(two), A, B, "78") and "(QPN 18)" in why(Api(two), A, B, "0x12")
    entries = [entry("begin", "mine"), entry("begin", "before pairing", local_qpn=0), entry("begin", "other", local_qpn=19, remote_qpn=78), entry("begin", "other", local_qpn=0, remote_qpn=78)]
    out = why(Api(two, entries), A, B, "77")
    assert "mine" in out and "before pairing" in out and "other" not in out, out
    # Two tenants with the same addresses and QPNs.
    two = [flow(), flow(tenant="red", vni=5001)]
    entries = [entry("begin", "plain"), {**entry("begin", "of red"), "vni": 5001}]
    assert re.search(r"^red +18 +77  paired", why(Api(two), want=1).stdout, re.M)
    out = why(Api(two, entries), A, B, "--tenant", "red")
    assert "of red" in out and "plain" not in out, out
    assert "10.1.0.2 (QPN 18) and 10.2.0.2" in why(Api([flow()]), B, A)
    assert "no connection of 10.1.0.2 and 10.9.9.9, and no entry" in why(Api([flow()]), A, "10.9.9.9", want=1).stderr
    # Forgotten: the recorder has VNIs.
    gone = [entry("fail", "of the plain LAN"), entry("fail", "of red", vni=5001)]
    for tenant, has, not_has in ("red", "of red", "of the plain LAN"), ("", "of the plain LAN", "of red"):
        out = why(Api([], gone), A, B, "--tenant", tenant)
        assert has in out and not_has not in out, (tenant, out)
    assert "and no entry of one" in why(Api([], gone[:1]), A, B, "--tenant", "red", want=1).stderr
    # Forgotten, and named the wrong way round.
    assert "It failed at" in why(Api([], [entry("fail", "requester failed: x")]), B, A)
    with Server() as s:
        assert "It failed at" in s.cli("why 10.1.0.2 10.2.0.2 18 --interval 0").stdout


def test_json():
    with serving(Api([flow()], [entry("begin", "x", number=n) for n in range(1, 30)])) as path:
        said = json.loads(cli(["--socket", path, "--json", "why", A, B, "--interval", "0", "--entries", "4"]).stdout)
        assert said["flow"]["local_qpn"] == 18 and [e["number"] for e in said["entries"]] == [26, 27, 28, 29] and all(s.endswith(".") for s in said["sentences"])
        assert "TIME" not in cli(["--socket", path, "why", A, B, "--interval", "0", "--entries", "0"]).stdout
    with serving(Api([], [entry("fail", "requester failed: x")])) as path:
        assert json.loads(cli(["--socket", path, "--json", "why", A, B]).stdout)["flow"] is None


def test_usage():
    for words in [], [A], [A, "x"], [A, B, "0"], [A, B, "16777216"], [A, B, "1x"], [A, B, "1", "2"], [A, B, "--interval", "61"], [A, B, "--interval", "x"], [A, B, "--entries", "-1"], [A, B, "--entries", "1001"]:
        r = cli(["why", *words], 2)
        assert "expected" in r.stderr and r.stderr.count("\n") == 1, (words, r)
    assert "cannot reach" in cli(["--socket", "/nonexistent/s", "why", A, B], 1).stderr


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
