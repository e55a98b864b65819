#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_api.py BUILD: the roceway command and the local API, with the simulated gateway of
# tests/component/api/server.c.
import http.client
import json
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cases

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
ROOT = Path(__file__).resolve().parents[2]
CLI, SERVER = BUILD / "bin/roceway", BUILD / "tests/api_server"
WIDTH = 100
TABLES = ["status", "health", "flows", "recorder", "tunnels", "memory", "counters", "counters --all", "counters --workers", "ports", "neighbours", "siblings", "standby", "reservations", "workers", "tenant", "offload"]


class Server:
    def __init__(self, *options, path=None):
        self.dir = tempfile.TemporaryDirectory()
        self.path = path or self.dir.name + "/run/g.sock"
        self.options = options

    def __enter__(self):
        self.proc = subprocess.Popen([SERVER, self.path, *self.options], cwd=ROOT, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.proc.stdout.readline() != "ready\n":
            raise RuntimeError(self.proc.communicate()[1])
        return self

    def __exit__(self, *exc):
        out, err = self.proc.communicate("", timeout=20)
        assert self.proc.returncode == 0, err
        assert not os.path.exists(self.path), "the socket is left behind"
        self.dir.cleanup()

    def request(self, url, method="GET", body=None, raw=False):
        c = http.client.HTTPConnection("gateway")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.settimeout(20)
        c.sock.connect(self.path)
        c.request(method, url, body)
        r = c.getresponse()
        text = r.read() if raw else r.read().decode()
        c.close()
        return r.status, r.headers, text

    def get(self, url, want=200):
        status, headers, text = self.request(url)
        assert status == want, (url, status, text)
        assert headers["Content-Type"] == "application/json", headers["Content-Type"]
        return json.loads(text)

    def cli(self, line, want=0):
        return cli(["--socket", self.path, *line.split()], want)


def cli(words, want=0, env=None):
    r = subprocess.run([CLI, *words], capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})
    assert r.returncode == want or want is None, (words, r.returncode, r.stdout, r.stderr)
    if want == 0:
        assert r.stderr == "", (words, r.stderr)
    return r


def fits(text):
    for line in text.splitlines():
        assert len(line) <= WIDTH, (len(line), line)
        assert line == line.rstrip(), repr(line)


# --- the API -------------------------------------------------------------------------------------------


def test_index_lists_pages_and_each_answers():
    with Server() as s:
        pages = s.get("/v1")["pages"]
        assert len(pages) >= 11
        for p in pages:
            if "GET" not in p["methods"] or p["path"].endswith("NAME"):
                continue
            # a capture has no end of its own: cli_capture.py
            status, _, text = s.request(p["path"] + ("?check=1" if p["path"] == "/v1/capture" else ""))
            assert status == 200, (p, status, text)
            if p["path"] != "/metrics":
                json.loads(text)


def test_socket_mode():
    with Server() as s:
        st = os.stat(s.path)
        assert stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600, oct(st.st_mode)


def test_errors_are_json_with_status():
    cases = [("/", 404), ("/v1/nothing", 404), ("/v1/status/", 404), ("/v1/flows?limit=0", 400), ("/v1/flows?limit=1001", 400),
             ("/v1/flows?limit=1x", 400), ("/v1/flows?limit=", 400), ("/v1/flows?limit=-1", 400), ("/v1/flows?qpn=0x1000000", 400),
             ("/v1/flows?local=10.1", 400), ("/v1/flows?remote=x", 400), ("/v1/flows?state=odd", 400), ("/v1/flows?foo=1", 400),
             ("/v1/flows?limit=1&limit=2", 400), ("/v1/flows?cursor=9.0.0", 400), ("/v1/flows?cursor=0.0", 400),
             ("/v1/flows?cursor=0.0.64", 400), ("/v1/flows?sort=", 400), ("/v1/flows?sort=tx_bytes", 400), ("/v1/flows?sort=recent&cursor=0.0.0", 400), ("/v1/flows?cursor=0.0.0x", 400), ("/v1/flows?cursor=99999999999999.0.0", 400),
             ("/v1/counters?nonzero=2", 400), ("/v1/status?x", 400), ("/v1/" + "a" * 3000, 404), ("/v1/%00", 404)]
    with Server() as s:
        for url, want in cases:
            assert s.get(url, want)["error"], url
        # words that are no UTF-8, or are cut within a letter
        for url, want, words in (("/v1/flows?%ff=1", 400, "unknown parameter ?: "), ("/v1/flows?x" + "%c3%a4" * 40 + "=1", 400, "unknown parameter x??"),
                                 ("/v1/tenants/x" + "%c3%a4" * 40, 404, "no tenant x??"), ("/v1/tenants/" + "%c3%a4" * 20, 404, "no tenant ääää")):
            assert s.get(url, want)["error"].startswith(words), (url, s.get(url, want))
        for method in "POST", "PUT", "DELETE", "PATCH", "OPTIONS":
            status, headers, text = s.request("/v1/status", method, "x" * 5000 if method == "POST" else None)
            assert status == 405 and headers["Allow"] == "GET, HEAD" and json.loads(text)["error"], (method, status)
        status, headers, text = s.request("/v1/status", "HEAD")
        assert status == 200 and text == "" and int(headers["Content-Length"]) > 100
        assert s.get("/v1/status")["state"] == "running"


# --- drain ---------------------------------------------------------------------------------------------


def test_drain_stops_the_gateway():
    with Server("owed=1000000", "workers=2") as s:
        assert s.get("/v1/drain")["state"] == "off"
        out = s.cli("drain").stdout
        assert re.search(r"^draining: 6 flows, \d", out) and "drained: 0 flows, 0 B left\nthe gateway stops\n" in out, out
        end = time.monotonic() + 20
        while os.path.exists(s.path):
            assert time.monotonic() < end, "the gateway goes on"
            time.sleep(0.01)
        assert "cannot reach the gateway" in s.cli("drain", 1).stderr


def test_drain_shows_rate_and_time():
    with Server("owed=1000000") as s:
        said = [json.loads(line) for line in s.cli("drain --keep --json").stdout.splitlines()]
        assert said[0]["state"] == "draining" and said[0]["eta_seconds"] is None and said[0]["bytes_left"] > 0, said[0]
        assert said[-1]["state"] == "drained" and said[-1]["rate_bytes_per_second"] > 0 and said[-1]["eta_seconds"] == 0, said[-1]
        assert said[-1]["then"] == "keep" and said[-1]["by"] == "operator", said[-1]


def test_drain_keep_and_cancel():
    with Server("owed=5000", "workers=2") as s:
        assert "stays drained" in s.cli("drain --keep").stdout
        assert "stays drained" in s.cli("drain").stdout and s.get("/v1/drain")["then"] == "keep", "a look changes it"
        status = s.get("/v1/status")
        assert (status["state"], status["drain"]["state"]) == ("draining", "drained"), status
        text = s.cli("status").stdout
        assert re.search(r"^state +drained until roceway drain --cancel, the drain began [\d.]+ m?s ago$", text, re.M), text
        assert re.search(r"^started +2023-\S+Z, 1 d 3 h ago$", text, re.M), text
        assert s.cli("top --count 1").stdout.startswith("site-a: drained, up for 1 d 3 h"), "top"
        ready = s.get("/readyz", 503)
        assert [(c["name"], c["detail"]) for c in ready["checks"] if not c["ok"]] == [("state", "draining")], ready
        assert s.get("/livez")["ok"]
        metrics = s.request("/metrics")[2]
        assert "\nroceway_crl_expires_seconds 1900000001\n" in metrics
        assert "\nroceway_running 1\n" in metrics and "\nroceway_draining 1\n" in metrics
        d = s.get("/v1/drain")
        assert (d["state"], d["workers_drained"], d["flows_left"], d["bytes_left"]) == ("drained", 2, 0, 0), d
        assert s.cli("drain --cancel").stdout == "the gateway serves again\n"
        assert s.get("/v1/status")["state"] == "running" and s.get("/v1/status")["drain"] is None
        assert s.get("/v1/drain")["end"] == "cancelled"
        assert "not being drained" in s.cli("drain --cancel", 1).stderr


def test_drain_gives_up():
    with Server("owed=5000", "owes=1") as s:
        r = s.cli("drain --timeout 1", 1)
        assert "not drained in time: the gateway serves on" in r.stderr, r.stderr
        assert "3 flows" in r.stdout, r.stdout
        assert s.get("/v1/status")["state"] == "running"
        assert s.get("/v1/drain")["end"] == "timed out"


def test_drain_cancelled_by_another():
    with Server("owed=5000", "owes=1") as s:
        p = subprocess.Popen([CLI, "--socket", s.path, "drain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert p.stdout.readline().startswith("draining: 3 flows")
        s.cli("drain --cancel")
        assert p.wait(20) == 1 and "was cancelled" in p.stderr.read()
        p.stdout.close()
        p.stderr.close()


def test_drain_waits_for_a_worker_that_hangs():
    with Server("workers=2", "stuck=1") as s:
        s.cli("drain --timeout 1", 1)


def test_drain_bad_input():
    with Server("owed=5000", "owes=1") as s:
        for line, want in ("drain --timeout x", "expected seconds"), ("drain --timeout 0", "expected seconds from 1 on"), ("drain --timeout 00", "from 1 on"), ("drain --cancel --keep", "no other option"), ("drain --timeout", "timeout"), ("drain --keep --hand-over", "exclude"), ("drain --cancel --hand-over", "no other option"):
            assert want in s.cli(line, 2).stderr, line
        for url, method in ("/v1/drain?keep=2", "POST"), ("/v1/drain?timeout=-1", "POST"), ("/v1/drain?timeout=86401", "POST"), ("/v1/drain?timeout=0", "POST"), ("/v1/drain?x=1", "POST"), ("/v1/drain?keep=1", "DELETE"), ("/v1/drain?keep=1&hand_over=1", "POST"):
            assert s.request(url, method)[0] == 400, url
        assert s.request("/v1/drain?hand_over=1", "POST")[0] == 409
        assert "no standby has everything" in s.cli("drain --hand-over", 1).stderr
        assert s.request("/v1/drain", "DELETE")[0] == 409
        assert s.get("/v1/drain")["state"] == "off"


def test_garbage_does_not_end_it():
    with Server() as s:
        for junk in b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100000, b"":
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(s.path)
                try:
                    c.sendall(junk)
                except OSError:
                    pass
        idle = [socket.socket(socket.AF_UNIX) for _ in range(8)]
        for c in idle:
            c.connect(s.path)
        assert s.get("/livez")["ok"] is True
        for c in idle:
            c.close()


def test_flows_by_pages_are_all_flows_once():
    for limit, sparse in (1, 0), (63, 0), (64, 1), (65, 0), (1000, 0), (1000, 1):
        flows = 150 if limit == 1 else 3000
        with Server(f"flows={flows}", "workers=2", f"sparse={sparse}") as s:
            seen, url = [], f"/v1/flows?limit={limit}"
            page = s.get(url)
            while True:
                assert len(page["flows"]) <= limit and page["total"] == 2 * flows
                seen += [f["local_qpn"] for f in page["flows"]]
                if page["next"] is None:
                    break
                page = s.get(url + "&cursor=" + page["next"])
            assert len(seen) == 2 * flows and len(set(seen)) == 2 * flows, (limit, len(seen), len(set(seen)))


def by_activity(s, url):
    """All flows, the most active first."""
    out, cursor = [], ""
    while cursor is not None:
        page = s.get(url + cursor)
        cursor = page["next"] and "&cursor=" + page["next"]
        out += page["flows"]
    return sorted(out, key=lambda f: -f["last_seconds"])


def test_flows_by_activity():
    def qpns(flows):
        return [f["local_qpn"] for f in flows]
    for flows, workers, sparse in ((1, 1, 0), (3000, 2, 0), (3000, 2, 1)):
        with Server(f"flows={flows}", f"workers={workers}", f"sparse={sparse}") as s:
            every = by_activity(s, "/v1/flows?limit=1000")
            for limit in 1, 2, 3, 100, 1000:
                page = s.get(f"/v1/flows?sort=recent&limit={limit}")
                assert (page["total"], page["matching"], page["next"]) == (len(every), len(every), None)
                assert qpns(page["flows"]) == qpns(every[:limit]), limit
            failed = [f for f in every if f["state"] == "failed"]
            page = s.get("/v1/flows?sort=recent&state=failed&limit=50")
            assert qpns(page["flows"]) == qpns(failed[:50]) and page["matching"] == len(failed)
            for limit in "3", "1000", "1001", "2500", "all":
                said = json.loads(s.cli(f"flows --json --limit {limit}").stdout)
                assert said["matching"] == len(every) and qpns(said["flows"]) == qpns(every[:None if limit == "all" else int(limit)]), limit
    with Server("flows=0") as s:
        assert s.get("/v1/flows?sort=recent")["flows"] == []


def test_flow_timers():
    with Server("flows=2") as s:
        flows = s.get("/v1/flows")["flows"]
        assert [f["requester_patience_seconds"] for f in flows] == [17, None], flows
        assert {f["requester_retry"] for f in flows} == {7} and {f["requester_timeout_max_seconds"] for f in flows} == {1}
        assert "requester_patience_seconds     null" in s.cli("flows --detail").stdout


def test_flow_filters():
    with Server("flows=300") as s:
        assert [f["local_qpn"] for f in s.get("/v1/flows?qpn=20")["flows"]] == [20]
        assert [f["local_qpn"] for f in s.get("/v1/flows?qpn=0x14")["flows"]] == [20]
        assert {f["state"] for f in s.get("/v1/flows?state=failed&limit=1000")["flows"]} == {"failed"}
        one = s.get("/v1/flows?local=10.1.0.7&remote=10.2.0.7")["flows"]
        assert len(one) == 1 and one[0]["local"] == "10.1.0.7"
        assert s.get("/v1/flows?local=10.1.0.7&remote=10.2.0.8")["flows"] == []
        v6 = ":".join(["fdfd"] * 8)
        assert len(s.get(f"/v1/flows?local={v6}&limit=1000")["flows"]) == 60
        assert len(s.get("/v1/flows?tunnel=site-b&limit=1000")["flows"]) == 300
        assert s.get("/v1/flows?tunnel=")["flows"] == []  # those without a tunnel
        assert len(s.get("/v1/flows?tenant=&limit=1000")["flows"]) == 300 and s.get("/v1/flows?tenant=(removed)")["flows"] == []


def test_many_flows_in_bounded_requests():
    with Server("flows=100000") as s:
        page, requests, found = s.get("/v1/flows?qpn=100015"), 1, []
        while True:
            found += page["flows"]
            if page["next"] is None:
                break
            page, requests = s.get("/v1/flows?qpn=100015&cursor=" + page["next"]), requests + 1
        assert len(found) == 1 and found[0]["local_qpn"] == 100015 and 5 <= requests <= 10, (len(found), requests)


def test_counters():
    with Server("tunnels=2", "workers=2") as s:
        every = s.get("/v1/counters")["counters"]
        names = {(c["group"], c["name"]) for c in every}
        for header, macro, group in ((ROOT / "engine/counters.h", "ENG_COUNTERS", "engine"),
                                     (ROOT / "wan/stats.h", "WAN_COUNTERS", "tunnel"),
                                     (ROOT / "gateway/counters.h", "GW_COUNTERS", "gateway")):
            text = header.read_text().split(f"#define {macro}(X)")[1].split("struct ")[0]
            listed = re.findall(r"X\((\w+),", text)
            assert len(listed) > 20
            for name in listed:
                assert (group, name) in names, (group, name)
        assert all(c["help"] for c in every)
        told = re.findall(r"`((?!ib)[a-z]+_[a-z0-9_]+)`", (ROOT / "docs/what-crosses.md").read_text())
        assert len(told) > 15 and set(told) <= {name for _, name in names}, set(told) - {name for _, name in names}
        some = s.get("/v1/counters?nonzero=1")["counters"]
        assert 0 < len(some) < len(every) and all(c["value"] for c in some)
        value = {(c["group"], c["name"], c.get("tunnel")): c["value"] for c in some}
        assert value["engine", "drop_icrc", None] == 14 and value["gateway", "drop_tx_full", None] == 2 << 40
        assert value["tunnel", "lost", "site-b"] == 84 and value["overlay", "drop_vxlan_nested", None] == 2
        overlay = [c["name"] for c in every if c["group"] == "overlay"]
        assert len(set(overlay)) == len(overlay) and {"vxlan_decapsulated", "drop_tenant_acl_denied", "arp_heard", "drop_arp_forged",
                                                      "vxlan_ecn_ce", "host_moved"} <= set(overlay), overlay
        each = s.get("/v1/counters?workers=1&nonzero=1")["counters"]
        assert sorted(c["value"] for c in each if c["name"] == "drop_icrc") == [7, 7]
        assert {c["worker"] for c in each if c["group"] == "engine"} == {0, 1}


def parse_metrics(text):
    """A strict parser of the text format: {(name, labels): value}; HELP and TYPE come first and
    once."""
    typed, helped, samples, current = {}, set(), {}, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if m := re.fullmatch(r"# HELP ([a-z_:][a-z0-9_:]*) (\S.*)", line):
            current = m[1]
            assert current not in helped, line
            helped.add(current)
        elif m := re.fullmatch(r"# TYPE ([a-z_:][a-z0-9_:]*) (counter|gauge)", line):
            assert m[1] == current and current not in typed, line
            typed[current] = m[2]
        else:
            m = re.fullmatch(r'([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="[^"\\\n]*",?)*)\})? (\S+)', line)
            assert m and m[1] == current and current in typed, line
            assert (m[1], m[2]) not in samples, line
            assert not re.search(r"qpn", m[2] or ""), line
            samples[m[1], m[2]] = float(m[3])
            assert samples[m[1], m[2]] >= 0
    for name, kind in typed.items():
        assert name.startswith("roceway_") and name.endswith("_total") == (kind == "counter"), name
        assert any(n == name for n, _ in samples), f"{name} has no sample"
    return samples


def test_metrics():
    with Server("tunnels=64", "workers=4") as s:
        status, headers, text = s.request("/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers
        m = parse_metrics(text)
        assert m["roceway_engine_drop_icrc_total", None] == 28
        assert m["roceway_tunnel_lost_total", 'tunnel="site-b"'] == 168
        assert m["roceway_tunnel_rtt_seconds", 'tunnel="site-b"'] == 0.020123456
        assert m["roceway_port_rx_missed_total", 'port="lan"'] == 3
        assert m["roceway_port_queue_rules", 'port="wan"'] == 4 and m["roceway_port_queue_rules_installed", 'port="wan"'] == 2
        assert m["roceway_worker_seconds_total", 'worker="3",mode="busy"'] == 30
        assert m["roceway_gateway_drop_tx_full_total", None] == 4 << 40
        assert s.cli("metrics").stdout.split("roceway_engine_")[0] == text.split("roceway_engine_")[0]


def test_health():
    with Server() as s:
        for page in "/livez", "/readyz", "/healthz":
            assert s.get(page)["ok"] is True
        s.cli("health")
        # the bound that the engines have, which may be less than memory.custody_total
        assert s.get("/v1/status")["custody_max_bytes"] == 77 << 20
        assert "\nroceway_custody_limit_bytes 80740352\n" in s.request("/metrics")[2]
        assert "custody        31 MiB of at most 77 MiB" in s.cli("status").stdout
    with Server("tunnels=2") as s:  # the second one is down
        assert s.get("/readyz")["ok"] is True
        bad = [c["name"] for c in s.get("/healthz", 503)["checks"] if not c["ok"]]
        assert bad == ["tunnels"], bad
        assert "BAD" in s.cli("health", 1).stdout
    with Server("down=1") as s:
        s.get("/livez")
        s.get("/readyz", 503)
    with Server() as s:  # without a tunnel it carries nothing
        s.cli("tunnel del site-b")
        s.get("/livez")
        for page in "/readyz", "/healthz":
            bad = [(c["name"], c["detail"]) for c in s.get(page, 503)["checks"] if not c["ok"]]
            assert bad == [("tunnels", "0 of 0 up")], bad
        s.cli("health", 1)


def test_since_when_a_tunnel_is_down():
    with Server("tunnels=2", "workers=2") as s:
        down = s.get("/v1/status")["tunnels_down"]
        assert [d["name"] for d in down] == ["name-of-30-characters-abc-001"] and 190 <= down[0]["seconds"] < 250, down
        up, down = s.get("/v1/tunnels")["tunnels"]
        assert (up["state"], down["state"]) == ("up", "down")
        assert 7200 <= up["since_seconds"] < 7260 and 190 <= down["since_seconds"] < 250, (up, down)
        assert (up["since"], down["since"]) == ("2023-11-16T00:00:00Z", "2023-11-16T01:56:50Z"), (up, down)
        for line in s.cli("status").stdout, s.cli("tunnels").stdout:
            assert re.search(r"name-of-30-characters-abc-001:? down for 3 min \d+ s, since 2023-11-1\dT[\d:]+Z$", line, re.M), line
            assert "site-b down" not in line and "site-b: down" not in line
    with Server() as s:
        assert s.get("/v1/status")["tunnels_down"] == [] and "down" not in s.cli("status").stdout + s.cli("tunnels").stdout


def test_a_stuck_worker():
    with Server("workers=3", "stuck=1") as s:
        for page in "/v1/flows", "/v1/tunnels", "/v1/counters", "/metrics":
            assert s.get(page, 503)["error"] == "worker 1 does not answer"
        assert s.get("/v1/status")["workers_answering"] == 2
        assert [w["answering"] for w in s.get("/v1/workers")["workers"]] == [True, False, True]
        s.get("/livez", 503)
        r = s.cli("flows", 1)
        assert r.stderr == "roceway: the gateway answers: worker 1 does not answer\n" and r.stdout == "", r


def test_stale_socket_is_replaced_but_nothing_else():
    with tempfile.TemporaryDirectory() as d:
        path = d + "/x"
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(path)
        dead.close()
        with Server(path=path) as s:
            s.get("/livez")
            second = subprocess.run([SERVER, path], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            assert second.returncode == 1 and "another gateway answers" in second.stderr, second
            s.get("/livez")
        Path(path).write_text("precious")
        third = subprocess.run([SERVER, path], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert third.returncode == 1 and "is no socket" in third.stderr and Path(path).read_text() == "precious"
        long = subprocess.run([SERVER, d + "/" + "a" * 110], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert long.returncode == 1 and "too long" in long.stderr


# --- the command ---------------------------------------------------------------------------------------


def test_tables_fit():
    for options in ([], ["tunnels=20", "flows=200", "workers=4", "offload=1"], ["flows=0"]):
        with Server(*options) as s:
            for line in TABLES:
                if line == "health" and options and options[0] == "tunnels=20":
                    continue
                r = s.cli(line)
                assert r.stdout, line
                fits(r.stdout)
            for line in "flows --detail --limit 5", "tunnels --detail", "ports --detail":
                fits(s.cli(line).stdout)


def test_tables_lose_nothing():
    with Server("flows=5", "tunnels=2") as s:
        text = s.cli("flows").stdout
        assert text.count("fd") == 8 * 2 or "fdfd" in text
        assert re.sub(r"\s", "", text).count("10.2.0.3") == 1
        assert re.search(r"^10\.1\.0\.0 +16 +10\.2\.0\.0 +16776960 +idle +0 B +1\.12 TiB +31 MiB +path +9\d s$", text, re.M), text
        assert re.search(r"^10\.1\.0\.1 +17 +10\.2\.0\.1 +\? +learning", text, re.M), text
        assert re.search(r"^site-b +up +192\.0\.2\.2 +udp +20\.1 ms +0\.0120 % +loss +9\.50 Gbps", s.cli("tunnels").stdout, re.M)
        assert "1 d 3 h" in s.cli("status").stdout
    with Server("workers=2") as s:
        text = s.cli("ports").stdout
        assert re.search(r"^wan .* 192\.0\.2\.1/24 +2/4 ", text, re.M) and re.search(r"^lan .* - +1\.23G ", text, re.M), text
        assert "\nport wan: queue rules are missing: no such pattern\n" in text, text


def test_addresses_stay_whole():
    """An IPv4 address is on one line where the table fits so, and no number of an address is ever split."""
    with Server("flows=200", "tunnels=20", "workers=4") as s:
        assert re.search(r" 192\.0\.2\.2 ", s.cli("tunnels").stdout)
        for line in "tunnels", "tunnels --paths", "flows --limit all":
            for piece in re.findall(r"\bf[ed:]+[^ \n]*", s.cli(line).stdout):
                assert piece.endswith(":") or piece in ("fdfd", "fefe") or re.search(r":f[de]f[de]$", piece), (line, piece)
    with Server() as s:
        text = s.cli("links").stdout
        assert re.search(r"^0{12}1234 +established +10\.1\.0\.2 +17 +10\.1\.0\.1 +4711 +10\.2\.0\.2 +18 +5 +0$", text, re.M), text
        assert "asked_by" in s.cli("links --detail").stdout


def test_json_is_the_apis():
    with Server("flows=250", "workers=2") as s:
        for name, page in (("tunnels", "/v1/tunnels?workers=1"), ("ports", "/v1/ports"), ("neighbours", "/v1/neighbours"),
                           ("siblings", "/v1/siblings"),
                           ("reservations", "/v1/reservations"),
                           ("workers", "/v1/workers"), ("memory", "/v1/memory"), ("offload", "/v1/offload")):
            said, asked = json.loads(s.cli(name + " --json").stdout), s.get(page)
            for t in said.get("tunnels", []) + asked.get("tunnels", []):
                assert t.pop("since_seconds") > 0  # changes between reads
            assert said == asked, name
        lan, wan = s.get("/v1/ports")["ports"]
        assert lan["queue_rules"] is None and wan["queue_rules"] == {"rules": 4, "installed": 2, "why": "no such pattern"}, wan
        assert json.loads(s.cli("status --json").stdout).keys() == s.get("/v1/status").keys()
        assert json.loads(s.cli("health --json").stdout)["ok"] is True
        flows = json.loads(s.cli("flows --json --limit all").stdout)
        assert len(flows["flows"]) == 500 and flows["total"] == 500 and flows["next"] is None
        assert len(json.loads(s.cli("--json flows --limit 300").stdout)["flows"]) == 300
        assert len(json.loads(s.cli("--json counters").stdout)["counters"]) < len(json.loads(s.cli("counters --all --json").stdout)["counters"])
        json.loads(s.cli("version --json").stdout)


def test_links():
    with Server() as s:
        said = s.get("/v1/links")
        assert said["open"] == 1 and said["links"][0]["alias_qpn"] == 4711, said
        assert said["links"][0]["link"] == "0000000000001234" and said["links"][0]["state"] == "established", said
        text = s.cli("links").stdout
        assert "4711" in text and "10.2.0.2" in text, text
        assert "alias_qpn" in s.cli("links --detail").stdout and json.loads(s.cli("links --json").stdout)["open"] == 1
        assert "--controller or ROCEWAY_CONTROLLER tells" in s.cli("links --network", want=2).stderr
        counters = {c["name"]: c["value"] for c in s.get("/v1/counters")["counters"] if c["group"] == "relay"}
        assert counters["refused_acl"] == 3, counters


def test_map():
    with Server() as s:  # without relay in its file
        assert s.get("/v1/map") == {"map": []}
        assert "no relay" in s.cli("map add x listen=10.1.0.1 port=1 target=10.2.0.2", want=1).stderr
        assert "no relay" in s.cli("map del x", want=1).stderr
        for wrong in ("map add", "map add x", "map add x=1 y=2", "map del", "map del x y", "map grow x", "map add x port"):
            s.cli(wrong, want=2)
        assert "TARGET" in s.cli("map").stdout


def test_siblings():
    with Server() as s:
        assert s.get("/v1/siblings") == {"siblings": []}
        assert "roceway_sibling" not in s.request("/metrics")[2]
    with Server("siblings=1") as s:
        assert s.get("/v1/siblings")["siblings"] == [
            {"name": "gw-a2", "state": "up", "address": "10.1.0.102", "mac": "02:00:00:00:01:02", "mac_known": True, "weight": 3, "pairs": 4,
             "from": "gateway", "packets": 12345},
            {"name": "gw-a3", "state": "lost", "address": "10.1.0.103", "mac": None, "mac_known": False, "weight": 0, "pairs": 0,
             "from": "controller", "packets": 0}]
        text = s.cli("siblings").stdout
        assert re.search(r"^gw-a2 +up +10\.1\.0\.102 +02:00:00:00:01:02 +gateway +4 +12\.3k$", text, re.M), text
        assert re.search(r"^gw-a3 +lost +10\.1\.0\.103 +not known +controller +0 +0$", text, re.M), text
        fits(s.cli("siblings --detail").stdout)
        metrics = s.request("/metrics")[2]
        assert 'roceway_sibling_packets_total{sibling="gw-a2"} 12345' in metrics and 'roceway_sibling_up{sibling="gw-a3"} 0' in metrics


def test_standby():
    with Server() as s:
        assert s.get("/v1/standby") == {"standby": None} and s.get("/v1/status")["standby"] is None
        assert "not one of a pair" in s.cli("standby").stdout and "standby" not in s.cli("status").stdout
        assert "roceway_standby" not in s.request("/metrics")[2]
        assert "standby" not in [c["name"] for c in s.get("/healthz")["checks"]]
    with Server("conf=conf/samples/pair.yaml") as s:
        j = s.get("/v1/standby")["standby"]
        assert 90 <= j.pop("seconds") < 150 and j.pop("since").startswith("2023-11-16T"), j
        by = j.pop("serves_by")
        assert 120 <= by.pop("seconds") < 180 and by.pop("at").startswith("2023-11-16T") and by == {"by": "silent", "meaning": "the other gateway is silent"}, by
        assert j == {"tunnel": "pair", "state": "paired", "meaning": "it serves; the standby has all that hosts have ACKs for", "other": "ready", "witness": "site-b",
                     "serves": True, "site": True, "degraded": False, "flows": 3, "bytes": 1 << 20, "epoch": 7, "lost_by": None}, j
        assert s.get("/v1/status")["standby"]["state"] == "paired"
        text = s.cli("standby").stdout
        assert re.search(r"^state +paired for .*\nmeaning +it serves; .*\nother +ready\ntunnel +pair\nwitness +site-b\nserves +yes\nepoch +7\nsince +2 min \d+ s ago, silent: the other gateway is silent\nsite +in effect", text, re.M), text
        assert "lost" not in text, text
        fits(text)
        assert re.search(r"^standby +paired for 9\d\.\d s, the other gateway is ready$", s.cli("status").stdout, re.M)
        metrics = s.request("/metrics")[2]
        assert 'roceway_standby_state{state="paired"} 1' in metrics and 'roceway_standby_state{state="alone"} 0' in metrics
        assert "roceway_standby_degraded 0" in metrics and "roceway_standby_serves 1" in metrics and "roceway_standby_bytes 1048576" in metrics
        checks = {c["name"]: c for c in s.get("/healthz", 503)["checks"]}
        assert checks["standby"]["ok"] and not checks["tunnels"]["ok"], checks  # the second tunnel is down
    with Server("conf=conf/samples/pair.yaml", "losing=1") as s:  # for 90 seconds
        check = {c["name"]: c for c in s.get("/healthz", 503)["checks"]}["standby"]
        assert not check["ok"] and "the witness does not answer" in check["detail"], check
        assert "the witness does not answer" in " ".join(s.cli("standby").stdout.split())
    with Server("conf=conf/samples/pair.yaml", "down=1") as s:
        checks = {c["name"]: c for c in s.get("/healthz", 503)["checks"]}
        assert not checks["standby"]["ok"], checks
        assert "stuck: a copy could not be made, or the standby refused it" in " ".join(s.cli("standby").stdout.split())
        assert {c["name"]: c["ok"] for c in s.get("/readyz", 503)["checks"]}["standby"]  # it serves all the same
        assert "could not take over" in s.cli("standby").stdout and "roceway_standby_degraded 1" in s.request("/metrics")[2]
        assert "NO TAKEOVER WITHOUT LOSS" in s.cli("status").stdout
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / "site.yaml"
        path.write_text((ROOT / "conf/samples/gateway.yaml").read_text().replace("ack_mode: near ", "ack_mode: site "))
        with Server(f"conf={path}") as s:
            check = {c["name"]: c for c in s.get("/healthz")["checks"]}["standby"]
            assert check["ok"] and "it is as `near`" in check["detail"], check


def test_reservations():
    with Server() as s:
        assert s.get("/v1/reservations") == {"reservations": []}
        assert "JOB" in s.cli("reservations --interval 0.1").stdout
        assert "roceway_job" not in s.request("/metrics")[2]
    with Server("siblings=1") as s:
        assert s.get("/v1/reservations")["reservations"][0] == {
            "job": "train", "vni": 0, "source": "10.1.0.10", "destination": "10.2.0.10", "source_qpn": 0, "destination_qpn": 0, "tunnel": "b1",
            "rate_bps": 6521740, "priority": 0, "enforced": True, "sent_bytes": 100000, "sent_guaranteed_bytes": 100000, "waiting": True,
            "limited": True}
        text = s.cli("reservations --interval 0.2").stdout
        row = re.search(r"^train +0 +10\.1\.0\.10 +10\.2\.0\.10 +b1 +0 +- +6\.52 Mbps +([\d.]+) ([kM])bps +at its rate$", text, re.M)
        assert row and 0 < float(row[1]) * {"k": 1e3, "M": 1e6}[row[2]] <= 8 * 100_000 / 0.2, text  # 100 kB in 0.2 s or more
        assert re.search(r"10\.2\.0\.10 QP 77 +b1 +3 +46 .*NOT ENFORCED$", text, re.M), text
        fits(text)
        fits(s.cli("reservations --detail").stdout)
        metrics = s.request("/metrics")[2]
        assert 'roceway_job_planned_bits_per_second{job="train"} 13043480' in metrics, metrics[-2000:]  # of both pairs
        assert re.search(r'^roceway_job_sent_bytes_total{job="train"} [1-9]\d*00000$', metrics, re.M), metrics[-2000:]
        for wrong in "0", "61", "nan", "1s", "":
            r = s.cli(f"reservations --interval={wrong}", 2)
            assert "--interval: expected seconds from 0.1 to 60" in r.stderr, (wrong, r)


def test_memory():
    with Server("flows=50", "workers=2") as s:
        page = s.get("/v1/memory?limit=3")
        assert [w["waiting"] for w in page["workers"]] == [0, 1]
        kinds = {k["kind"]: k for k in page["workers"][0]["kinds"]}
        assert kinds["answers"]["buffers"] == 4000 and kinds["fec"]["buffers"] == 3 and kinds["unpaired"]["max_bytes"] == 6 << 20, kinds
        assert page["tenants"][0]["tenant"] == "" and page["tenants"][0]["reserved_bytes"] == 2 * (5 << 20), page["tenants"][0]
        for group in "hosts", "connections":  # those that hold most, of both workers
            held = [o["bytes"] for o in page[group]]
            assert len(held) == 3 and held == sorted(held, reverse=True) and held[0] == held[1], (group, held)
        assert all(o["held_bytes"] == 31 << 20 < o["most_bytes"] and o["bytes"] > o["held_bytes"] for o in page["connections"]), page["connections"]
        assert page["hosts"][0]["bytes"] == 49 * 2560 and page["connections"][0]["answers_bytes"] == 49 << 10
        assert s.get("/v1/memory?limit=0")["hosts"] == []
        text = s.cli("memory --limit 2").stdout
        assert re.search(r"^unpaired +2k +\S+ MiB +12 MiB ", text, re.M), text
        assert 'roceway_memory_buffers{kind="answers"} 8000' in s.request("/metrics")[2]


def test_offload():
    with Server() as s:
        assert s.cli("offload").stdout == "no port has offload: everything is in software\n"
        assert s.get("/v1/offload") == {"ports": [], "rules": []}
    with Server("offload=1") as s:
        page = s.get("/v1/offload")
        assert page["ports"] == [{"name": "lan0", "backend": "tc", "device": "enp1s0f0np0", "vxlan_device": "rwy-vxlan", "error": "",
                                  "hardware": 2, "kernel": 2, "software": 2}]
        drop, soft, vlan, vxlan, vni, left = page["rules"]
        assert drop["match"] == "vni 5001 to vtep 192.0.2.1 ipv4 src 10.1.0.66/32 roce port 49152-65535", drop
        assert (drop["action"], drop["where"], drop["why"], drop["packets"], drop["acl_rule"]) == ("drop", "hardware", "", 1234567, 3)
        assert "dst fd00::/64 opcode 0x0a-0x0b qp 1" in soft["match"] and soft["packets"] is None and "RDMA" in soft["why"], soft
        assert vlan["action"] == "to-vlan 101 dst mac 00:00:00:00:00:00" and "src mac" in vlan["match"], vlan
        assert vxlan["match"].startswith("vlan 101") and vxlan["action"].startswith("to-vxlan vni 5001 vtep 192.0.2.11") and vxlan["stale"], vxlan
        assert vni["match"] == "any vni to vtep 192.0.2.1" and vni["tenant"] == "" and vni["what"] == "unknown-vni", vni
        assert left["action"] == "software" and left["match"] == "" and left["why"], left
        text = s.cli("offload").stdout
        assert re.search(r"^lan0 +tc +enp1s0f0np0 rwy-vxlan +2 +2 +2", text, re.M), text
        assert "acl 3" in text and "kernel (stale)" in text, text
        assert "MATCH" not in s.cli("offload --summary").stdout
        assert s.get("/v1/offload?tenant=nobody", 404)["error"] == "no tenant nobody"


def test_flow_options():
    with Server("flows=250") as s:
        assert "100 of 250 shown, the most recently active (more: --limit N, --limit all); 250 flows in all\n" in s.cli("flows").stdout
        assert "\n250 shown; 250 flows in all\n" in s.cli("flows --limit=all").stdout
        assert "\n83 shown; 250 flows in all\n" in s.cli("flows --state failed").stdout
        assert "\n9 of 84 shown" in s.cli("flows --state idle --limit 9").stdout
        assert "1 shown" in s.cli("flows --qpn 0x14").stdout
        assert "1 shown" in s.cli("flows --local 10.1.0.7 --remote=10.2.0.7").stdout
        assert "expected learning" in s.cli("flows --state odd", 2).stderr
        for line in "flows --qpn 0x1000000", "flows --local 10.1.0.0/24", "recorder --kind bogus", "recorder --vni x", "memory --limit x":
            assert s.cli(line, 2).stderr.startswith("roceway: "), line
        s.cli("flows --tunnel nope", 1)  # rightly said; there is none


def test_names_that_nothing_has():
    """One line, a status that is not 0, and nothing on standard output; a name may have any letter."""
    with Server("flows=20", "offload=1") as s:
        for name in "nope", "a/b", "a&b=c", "a b?x#y", "a%2Fb", "..", ".", "../status", "x" * 64:
            for words, want in ((["flows", "--tunnel", name], "the gateway answers: no tunnel "), (["flows", "--tunnel", name, "--limit", "all"], "the gateway answers: no tunnel "),
                                (["flows", "--tenant", name], "the gateway answers: no tenant "), (["offload", "--tenant", name], "the gateway answers: no tenant "),
                                (["why", "10.1.0.7", "10.2.0.7", "--tenant", name], "the gateway answers: no tenant "),
                                (["tunnel", "del", name], "no tunnel "), (["tunnel", "set", name, "rate=5Gbps"], "no tunnel "),
                                (["tenant", "show", name], "the gateway answers: no tenant "), (["tenant", "show", name, "--yaml"], "the gateway answers: no tenant "),
                                (["tenant", "del", name], "no tenant "), (["tenant", "set", name, "limit=5Gbps"], "no tenant ")):
                if "=" in name and words[0] in ("tunnel", "tenant") and words[1] != "show":
                    continue  # KEY=VALUE is no name
                r = cli(["--socket", s.path, *words], 1)
                assert r.stdout == "" and r.stderr == f"roceway: {want}{name}\n", (words, r)
        for words in ["tunnel", "add", "a/b", "rate=5Gbps"], ["tenant", "add", "a/b", "vni=5"]:
            r = cli(["--socket", s.path, *words], 1)
            assert r.stderr.count("\n") == 1 and "letters, digits, `.`, `_`, `-`" in r.stderr, r
        r = cli(["--socket", s.path, "capture", "-w", "/dev/null", "tenant", "nope"], 1)
        assert "no tenant has this name" in r.stderr, r
        r = cli(["--socket", s.path, "map", "del", "a/b"], 1)
        assert r.stderr == "roceway: this is no relay: see roceway-proxy\n", r
        for page in "/v1/tunnels/", "/v1/tenants/", "/v1/map/":
            assert s.request(page, "DELETE")[0] == 404, page


def test_watch():
    with Server() as s:
        assert re.fullmatch(r"all \d+ that match are 0 \(--all shows them\)\n", s.cli("counters drop_tenant").stdout), s.cli("counters drop_tenant").stdout
        r = s.cli("counters drop_nosuch", 1)
        assert r.stdout == "" and r.stderr == "roceway: no counter has drop_nosuch in its name or place\n", r
        r = s.cli("counters drop_nosuch --watch 50ms --count 1", 1)
        assert r.stdout == "" and r.stderr == "roceway: no counter has drop_nosuch in its name or place\n", r
        r = s.cli("counters drop_nosuch --json", 1)
        assert json.loads(r.stdout)["counters"] == [] and r.stderr == "roceway: no counter has drop_nosuch in its name or place\n", r
        assert json.loads(s.cli("counters drop_tenant --json").stdout)["counters"] == []
        text = s.cli("counters --watch 50ms --count 2").stdout
        fits(text)
        assert text.count("PER SECOND") == 2 and re.search(r"^engine +lan_rx_packets +\d+ +\+1000 ", text, re.M), text
        lines = s.cli("counters lan_rx --json --watch 50ms --count 2").stdout.splitlines()
        assert len(lines) == 2
        for line in lines:
            d = json.loads(line)
            assert d["seconds"] >= 0.05 and {c["name"] for c in d["counters"]} == {"lan_rx_packets", "lan_rx_bytes"}
        for bad in "counters --watch x", "counters --watch 1", "counters --watch 0s", "counters --count 3", "counters --watch 1s --count 0":
            s.cli(bad, 2)


def test_usage_errors():
    cases = [(["flws"], "did you mean flows?"), (["tunels"], "did you mean tunnels?"), (["xyzzy"], "roceway help lists them"),
             (["flows", "--limt", "1"], "did you mean --limit?"), (["flows", "--limit"], "needs a value: N"),
             (["status", "--json=1"], "takes no value"), (["status", "extra"], "one word too many"), (["tunnel"], "roceway: tunnel: expected add, set or del"), (["flows", "-x"], "no option -x"),
             (["--limit", "1", "flows"], "no option --limit"), (["help", "flws"], "did you mean flows?"),
             (["flows", "--limit", "0"], "expected a number from 1 on"), (["flows", "--limit", "1x"], "expected a number")]
    for words, want in cases:
        r = cli(words, 2)
        assert want in r.stderr and r.stderr.count("\n") == 1 and r.stdout == "", (words, r)
    for words in (["capture", "-w", "x"], ["anonymise", "x", "y"], ["report"], ["completion", "bash"], ["metrics"], ["help"], ["top"]):
        r = cli([*words, "--json"], 2)
        assert f"{words[0]} has no JSON" in r.stderr and not r.stdout, (words, r)
        assert "--json" not in cli([words[0], "-h"]).stdout and "--json" not in cli(["list-commands", words[0]]).stdout, words
    assert "exclude each other" in cli(["tenant", "show", "--yaml", "--json"], 2).stderr
    assert cli([], 2).stdout.startswith("roceway [OPTIONS] COMMAND")


def test_unreachable():
    for path in "/nonexistent/x.sock", "/dev/null", "/" + "a" * 200:
        r = cli(["--socket", path, "status"], 1)
        assert r.stderr.startswith(f"roceway: cannot reach the gateway at {path}: ") and r.stderr.count("\n") == 1, r.stderr
    r = cli(["status"], 1, {"ROCEWAY_SOCKET": "/nonexistent/env.sock"})
    assert "/nonexistent/env.sock: No such file or directory" in r.stderr, r.stderr


def test_not_a_gateway():
    with tempfile.TemporaryDirectory() as d, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(d + "/x")
        listener.listen()
        for answer, want in ((b"HTTP/1.0 200 OK\r\n\r\n[1]", "is no JSON object"), (b"HTTP/1.0 500 No\r\n\r\noops", "HTTP status 500"),
                             (b"hello\r\n", "cannot reach")):
            p = subprocess.Popen([CLI, "--socket", d + "/x", "status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            c, _ = listener.accept()
            c.recv(4096)
            c.sendall(answer)
            c.close()
            out, err = p.communicate(timeout=20)
            assert p.returncode == 1 and want in err and out == "", (answer, err)


def test_help_tells_every_command_and_option():
    names = cli(["list-commands"]).stdout.split()
    assert len(names) == len(set(names)) and {"status", "flows", "metrics", "version"} <= set(names)
    overview = cli(["help"]).stdout
    fits(overview)
    doc = (ROOT / "docs/cli.md").read_text()
    with Server() as s:
        for p in s.get("/v1")["pages"]:
            assert f"`{p['path']}" in doc, f"docs/cli.md does not tell {p['path']}"
    for name in names:
        assert re.search(rf"^  {name} ", overview, re.M), name
        assert re.search(rf"\b{name}\b", doc), f"docs/cli.md does not tell {name}"
        text = cli([name, "-h"]).stdout
        fits(text)
        assert text == cli(["help", name]).stdout == cli([name, "--help"]).stdout
        for opt in cli(["list-commands", name]).stdout.split():
            assert re.search(rf"^  {opt}\b", text, re.M), (name, opt)
    assert cli(["version"]).stdout == cli(["--version"]).stdout == f"roceway {(ROOT / 'VERSION').read_text().strip()}\n"


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
