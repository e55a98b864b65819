#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_tenant.py BUILD: tenants by the roceway command and the local API, with the simulated gateway
# of tests/component/api/: the set, its checks and its transactions are real, workers and engines
# are not.
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cases
from cli_api import CLI, ROOT, Server, cli, fits

RED = """vni: 5001
vlan: 101
prefixes: [{prefix: 10.1.0.0/24, at: vtep}, {prefix: 10.2.0.0/24, at: site-b}]
vteps: [10.1.0.11]
guarantee: 1Gbps
"""
WORDS = "vni=5001 vlan=101 prefix=10.1.0.0/24@vtep prefix=10.2.0.0/24@site-b vtep=10.1.0.11 guarantee=1Gbps"


def ask(s, method, name, body=None, want=200):
    status, headers, text = s.request("/v1/tenants/" + name, method, body)
    assert status == want, (method, name, body, status, text)
    assert headers["Content-Type"] == "application/json", headers["Content-Type"]
    return json.loads(text)


def refused(s, method, name, body, want, words):
    before = s.request("/v1/tenants?yaml=1")[2]
    answer = ask(s, method, name, body, want)
    assert words in answer["error"], (words, answer)
    assert s.request("/v1/tenants?yaml=1")[2] == before, "something changed"
    return answer


# --- the API -------------------------------------------------------------------------------------------


def test_add_change_remove():
    with Server("workers=2") as s:
        assert s.get("/v1/tenants") == {"published": 1, "running": 1, "tenants": [], "next": None}
        a = ask(s, "PUT", "red", RED, 201)
        assert (a["name"], a["generation"], a["published"], a["running"], a["added"]) == ("red", 2, 2, 2, 1), a
        assert 0 < a["took_seconds"] < 5, a
        a = ask(s, "PATCH", "red", '{"limit": "5Gbps"}')
        assert (a["generation"], a["changed"], a["same"]) == (3, 1, 0), a
        t = ask(s, "GET", "red")
        assert t["config"]["limit"] == "5Gbps" and t["config"]["guarantee"] == "1Gbps" and t["config"]["vni"] == 5001, t
        assert t["config"]["gateway_mac"] == "02:52:57:00:13:89" and t["config"]["proxy_arp"] is False, t
        assert t["limit_Bps"] == 625000000 and t["generation"] == 3 and t["accepted"] == 200 and t["flows"] == 16, t
        assert set(t["drops"]) >= {"unknown_vni", "foreign_vtep", "forged_source", "no_route", "acl_denied"}, t
        a = ask(s, "PATCH", "red", '{"limit": "5Gbps"}')
        assert (a["generation"], a["changed"]) == (3, 0), a
        ask(s, "PUT", "blue", json.dumps({**t["config"], "name": "blue", "vni": 5002, "vlan": 0, "gateway_mac": "02:52:57:00:13:8a"}), 201)
        listed = s.get("/v1/tenants")
        assert [x["name"] for x in listed["tenants"]] == ["blue", "red"] and "config" not in listed["tenants"][0]
        a = ask(s, "DELETE", "red")
        assert (a["removed"], a["same"]) == (1, 1), a
        ask(s, "GET", "red", want=404)
        assert [x["name"] for x in s.get("/v1/tenants")["tenants"]] == ["blue"]


def test_refusals_change_nothing():
    with Server() as s:
        ask(s, "PUT", "red", RED, 201)
        e = refused(s, "PUT", "blue", RED.replace("5001", "x"), 400, "expected an integer from 1 to 16777215 for `vni`, found `x`")
        assert (e["line"], e["column"]) == (1, 6), e
        refused(s, "PUT", "blue", "", 400, "found an empty text")
        refused(s, "PUT", "blue", "[1]", 400, "expected a mapping of keys")
        refused(s, "PUT", "blue", "vni: 5", 400, "expected `prefixes`")
        refused(s, "PUT", "blue", "name: red\n" + RED, 400, "expected `blue` for `name`, found `red`")
        refused(s, "PUT", "bl%20ue", RED, 400, "expected a tenant's name")
        refused(s, "PUT", "b" * 32, RED, 400, "expected a tenant's name")
        refused(s, "PUT", "red", RED, 409, "there is a tenant of this name already")
        refused(s, "PUT", "blue", RED, 409, "another tenant has this VNI: red")
        refused(s, "PUT", "blue", RED.replace("5001", "5002"), 409, "another tenant has this VLAN: red")
        refused(s, "PUT", "blue", RED.replace("5001", "5002").replace("vlan: 101", "").replace("1Gbps", "9.5Gbps"), 409,
                "the sum of all guarantees is above the tunnel's rate")
        refused(s, "PATCH", "red", "limt: 5Gbps", 400, "expected `limit` or another known key of tenants[], found `limt`")
        refused(s, "PATCH", "red", "{limit: 10Mbps}", 400, "expected at least `guarantee`, 1Gbps, for `limit`")
        refused(s, "PATCH", "red", "prefixes: [{prefix: 10.1.0.0/24, at: site-c}]", 400, "perhaps `site-b`")
        refused(s, "PATCH", "blue", "limit: 5Gbps", 404, "no tenant blue")
        refused(s, "DELETE", "blue", None, 404, "no tenant blue")
        refused(s, "DELETE", "x" * 3000, None, 404, "no tenant")
        refused(s, "PATCH", "red", "x" * ((1 << 20) + 1), 413, "expected at most 1048576 bytes")
        refused(s, "PATCH", "red", "# " + "x" * ((1 << 20) - 2), 400, "found an empty text")
        for method, url, allow in (("POST", "/v1/tenants", "GET, HEAD"), ("POST", "/v1/tenants/red", "GET, HEAD, PUT, PATCH, DELETE"),
                                   ("GET", "/v1/reload", "POST"), ("PUT", "/v1/reload", "POST")):
            status, headers, text = s.request(url, method)
            assert status == 405 and headers["Allow"] == allow and json.loads(text)["error"], (method, url, headers["Allow"])
        for url in "/v1/tenants/", "/v1/tenants/red/x", "/v1/tenants/NAME":
            assert s.get(url, 404)["error"]
        for url in "/v1/tenants?limit=0", "/v1/tenants?limit=1001", "/v1/tenants?yaml=2", "/v1/tenants/red?yaml=x", "/v1/tenants?foo=1":
            assert s.get(url, 400)["error"]


def test_stuck_worker():
    with Server("workers=2", "stuck=1") as s:
        refused(s, "PUT", "red", RED, 503, "worker 1 does not answer")


def test_pages():
    with Server() as s:
        names = sorted(f"t{i}" for i in range(250))
        for i, name in enumerate(names):
            ask(s, "PUT", name, f"vni: {i + 1}\nprefixes: [{{prefix: 10.1.0.0/24, at: vtep}}]", 201)
        for limit in 1, 83, 250, 1000:
            seen, after = [], ""
            while after is not None:
                page = s.get(f"/v1/tenants?limit={limit}&after={after}")
                assert 0 < len(page["tenants"]) <= limit
                seen += [t["name"] for t in page["tenants"]]
                after = page["next"]
            assert seen == names, limit
        assert [t["name"] for t in json.loads(s.cli("tenant show --json").stdout)["tenants"]] == names
        fits(s.cli("tenant show").stdout)


# --- the command -----------------------------------------------------------------------------------------


def test_command():
    with Server("workers=2") as s:
        assert s.cli("tenant show").stdout.endswith("\n0 tenants, generation 1\n")
        assert s.cli("tenant show --yaml").stdout == "tenants: []\n"
        assert re.fullmatch(r"tenant red added: generation 2, [0-9.]+ [mu]?s\n", s.cli("tenant add red " + WORDS).stdout)
        assert s.cli("tenant set red limit=40Mbps guarantee=none").stdout.startswith("tenant red changed: generation 3, ")
        assert s.cli("tenant set red limit=40Mbps").stdout.startswith("tenant red is as it was: generation 3, ")
        assert json.loads(s.cli("tenant set red limit=5Gbps --json").stdout)["changed"] == 1
        for line in "tenant", "tenant show", "tenant show red":
            out = s.cli(line).stdout
            assert "red" in out and "5001" in out, out
            fits(out)
        assert json.loads(s.cli("tenant show red --json").stdout)["config"]["limit"] == "5Gbps"
        assert s.cli("tenant del red").stdout.startswith("tenant red removed: generation 5, ")
        assert json.loads(s.cli("tenant show --json").stdout)["tenants"] == []


def test_words_are_the_file():
    words = ["vni=5001", "vlan=101", "prefix=10.1.0.0/24@vtep", "prefix=10.1.1.0/24@vlan", "prefix=fd00:2::/64@site-b", "vtep=10.1.0.11",
             "vtep=fd00::5", "vtep_learning=false", "host=10.1.0.5@02:00:00:00:00:05@10.1.0.11", "host=10.1.1.6@02:00:00:00:00:06",
             "gateway_address=10.1.0.1", "gateway_mac=0a:00:00:00:00:01", "proxy_arp=true",
             "rule={action: deny, source: 10.1.0.66/32, operations: [write]}", "rule={action: allow}", "acl_default=deny", "ack_mode=end",
             "guarantee=1Gbps", "limit=5Gbps", "weight=3", "priority=7", "dscp=26", "dscp_congested=8", "memory_percent=0.5"]
    yaml = """name: red
vni: 5001
vlan: 101
prefixes:
  - {prefix: 10.1.0.0/24, at: vtep}
  - {prefix: 10.1.1.0/24, at: vlan}
  - {prefix: "fd00:2::/64", at: site-b}
vteps: [10.1.0.11, "fd00::5"]
hosts:
  - {address: 10.1.0.5, mac: "02:00:00:00:00:05", vtep: 10.1.0.11}
  - {address: 10.1.1.6, mac: "02:00:00:00:00:06"}
gateway_addresses: [10.1.0.1]
gateway_mac: "0a:00:00:00:00:01"
proxy_arp: true
acl:
  - {action: deny, source: 10.1.0.66/32, operations: [write]}
  - {action: allow}
acl_default: deny
ack_mode: end
guarantee: 1Gbps
limit: 5Gbps
weight: 3
priority: 7
dscp: 26
dscp_congested: 8
memory_percent: 0.5
"""
    with Server() as s, tempfile.TemporaryDirectory() as d:
        cli(["--socket", s.path, "tenant", "add", "red", *words])
        assert sorted(s.cli("tenant show red --yaml").stdout.splitlines()) == sorted(yaml.splitlines()), s.cli("tenant show red --yaml").stdout
        shown = s.cli("tenant show red --yaml").stdout
        s.cli("tenant set red vteps=10.1.0.11,10.1.0.12 acl=[]")
        assert "vteps: [10.1.0.11, 10.1.0.12]\n" in s.cli("tenant show red --yaml").stdout
        assert "acl:" not in s.cli("tenant show red --yaml").stdout
        path = d + "/red.yaml"
        Path(path).write_text(shown)
        s.cli(f"tenant set red --file {path}")
        assert s.cli("tenant show red --yaml").stdout == shown
        s.cli("tenant del red")
        r = subprocess.run([CLI, "--socket", s.path, "tenant", "add", "red", "--file", "-"], input=shown, capture_output=True, text=True)
        assert r.returncode == 0, r
        assert s.cli("tenant show red --yaml").stdout == shown
        Path(path).write_text(shown.replace("weight: 3", "weight: 0"))
        r = s.cli(f"tenant set red --file {path}", 1)
        assert r.stderr.startswith(f"roceway: {path}:") and "from 1 to 1000" in r.stderr, r.stderr


def test_command_errors():
    usage = [("tenant foo", "tenant foo: expected show, add, set or del"), ("tenant add", "expected the tenant's NAME"),
             ("tenant add vni=5", "expected the tenant's NAME"), ("tenant add red", "expected KEY=VALUE or --file"),
             ("tenant set red 5", "expected KEY=VALUE"), ("tenant set red limit=", "expected KEY=VALUE"),
             ("tenant set red =5", "expected KEY=VALUE"), ('tenant set red limit="5', "without quotes"),
             ("tenant set red prefix=10.1.0.0/24", "expected prefix=prefix@at"), ("tenant set red prefix=1@2@3", "expected prefix="),
             ("tenant set red host=10.1.0.5", "expected host=address@mac[@vtep]"), ("tenant set red prefix=", "expected KEY=VALUE"),
             ("tenant set red a=1 --file x", "either --file or KEY=VALUE"), ("tenant show a b", "one word too many"),
             ("tenant del a b", "one word too many"), ("tenant del a --file x", "one word too many"),
             ("tenant show --file x", "--file is not for tenant show"), ("tenant add a --yaml", "--yaml is not for tenant add"),
             ("tenant --limit 5", "no option --limit"), ("reload now", "one word too many for reload"), ("tenat", "did you mean tenant?")]
    said = [("tenant show green", "the gateway answers: no tenant green"), ("tenant show gre/en", "the gateway answers: no tenant gre/en"), ("tenant del green", "no tenant green"),
            ("tenant set green limit=5Gbps", "no tenant green"), ("tenant set red limt=5Gbps", "expected `limit` or another known key"),
            ("tenant set red limit=5", "expected a rate from 8kbps to 1Tbps, or `none` for `limit`, found `5`"),
            ("tenant set red rule={action:deny", "expected YAML"), ("tenant add blue vni=5001 prefix=10.1.0.0/24@vtep", "another tenant has this VNI: red"),
            ("tenant add blue vni=5002 prefix=10.1.0.0/24@site", "perhaps `site-b`, found `site`"),
            ("tenant add blue --file /nonexistent", "cannot read /nonexistent: No such file or directory")]
    with Server() as s:
        s.cli("tenant add red " + WORDS)
        before = s.cli("tenant show --yaml").stdout
        for lines, code in (usage, 2), (said, 1):
            for line, want in lines:
                r = s.cli(line, code)
                assert want in r.stderr and r.stderr.count("\n") == 1 and r.stdout == "", (line, r)
        assert s.cli("tenant show --yaml").stdout == before


def config(s, tenants, **changes):
    text = (ROOT / "conf/samples/gateway.yaml").read_text().replace("/run/roceway/gateway.sock", s)
    text = re.sub(r"^  metrics: .*\n", "", text, flags=re.M)
    for old, new in changes.items():
        text = text.replace(old + ":", new + ":", 1)
    return text + tenants


def test_tunnels():
    """Tunnels by the command: added, changed, removed, refused; a tenant's prefix prevents the
    removal of its tunnel."""
    with Server("workers=2") as s:
        def names():
            return [(t["name"], t["from"]) for t in s.get("/v1/tunnels")["tunnels"]]
        c = "tunnel add site-c port=wan local=192.0.2.1 remote=192.0.2.3 security=none peer_name=site-c prefixes=10.3.0.0/24,fd00:3::/64"
        assert re.fullmatch(r"tunnel site-c added: [0-9.]+ [mun]?s\n", s.cli(c).stdout)
        assert names() == [("site-b", "gateway"), ("site-c", "gateway")]
        t = s.get("/v1/tunnels")["tunnels"][1]
        assert t["prefixes"] == ["10.3.0.0/24", "fd00:3::/64"] and t["udp_port"] == 4793, t
        assert "there already" in s.cli(c, 1).stderr
        assert "tunnel site-c changed" in s.cli("tunnel set site-c rate=5Gbps dscp=26").stdout
        assert "tunnel site-c is as it was" in s.cli("tunnel set site-c rate=5Gbps").stdout
        assert s.get("/v1/tunnels")["tunnels"][1]["rate_max_bytes_per_second"] == 625000000
        assert " udp " in s.cli("tunnels").stdout
        assert "tunnel site-c changed" in s.cli("tunnel set site-c carrier=tcp").stdout
        assert "tunnel site-c is as it was" in s.cli("tunnel set site-c carrier=tcp rate=5Gbps").stdout
        k = s.get("/v1/tunnels")["tunnels"][1]["carrier"]
        assert (k["sending"], k["wanted"], k["tcp_connections"], k["tcp_congestion_control"], k["fallbacks"]) == ("tcp", "tcp", 4, "cubic", 3), k
        assert re.search(r"site-c +\S+ +\S+ +tcp ", s.cli("tunnels").stdout)
        assert "tunnel site-c changed" in s.cli("tunnel set site-c carrier=quic").stdout
        assert re.search(r"site-c +\S+ +\S+ +quic ", s.cli("tunnels").stdout)
        k = s.get("/v1/tunnels")["tunnels"][1]["carrier"]
        assert (k["sending"], k["tcp_connections"], k["quic_connections"], k["quic_refused_certificate"]) == ("quic", 0, 4, 0), k
        assert "tunnel site-c changed" in s.cli("tunnel set site-c carrier=native").stdout
        assert "tunnel site-c changed" in s.cli("tunnel set site-c detour=tcp detour_after=1").stdout
        assert "tunnel site-c is as it was" in s.cli("tunnel set site-c detour=tcp detour_after=1").stdout
        k = s.get("/v1/tunnels")["tunnels"][1]["carrier"]
        assert (k["sending"], k["detour"], k["detour_after"], k["detour_state"], k["detour_datagrams"]) == ("native", "tcp", 1, "ready", 44), k
        assert re.search(r"site-c +\S+ +\S+ +udp\+tcp ", s.cli("tunnels").stdout)
        assert "tunnel site-c changed" in s.cli("tunnel set site-c detour=off").stdout
        k = s.get("/v1/tunnels")["tunnels"][1]["carrier"]
        assert (k["detour"], k["detour_state"]) == ("off", "off"), k
        assert re.search(r"site-c +\S+ +\S+ +udp ", s.cli("tunnels").stdout)
        s.cli("tunnel add site-d port=wan local=192.0.2.1 remote=192.0.2.5 security=none prefixes=10.4.0.0/24 tcp_congestion_control=bbr")
        assert "`bbr` is not in this kernel" in s.cli("tunnel set site-d carrier=tcp rate=1Gbps", 1).stderr
        assert s.get("/v1/tunnels")["tunnels"][2]["rate_max_bytes_per_second"] == 1250000000  # nothing has changed
        s.cli("tunnel del site-d")
        for line, want in (("set site-c remote=192.0.2.4", "only rate, carrier, detour, DSCP, thresholds, prefixes and paths"),
                           ("set site-c carrier=sctp", "expected"), ("set site-c tcp_connections=17", "expected"), ("set site-c detour_after=0", "expected"), ("set site-c detour=udp", "expected"), ("set site-c tcp_port=4799", "only rate, carrier"),
                           ("set site-c rate=5", "expected a rate"), ("set site-x rate=5Gbps", "no tunnel site-x"), ("del site-x", "no tunnel site-x"),
                           ("set site-c prefixes=10.2.0.0/24", "expected each prefix once"),
                           ("add d port=lan local=192.0.2.1 remote=192.0.2.4 security=none", "expected the name of a port of role `wan`"),
                           ("add d port=wan local=192.0.2.1 remote=192.0.2.3 security=none", "expected other UDP ports than tunnel `site-c`"),
                           ("add d port=wan local=192.0.2.1 remote=192.0.2.4", "expected `peer_name`")):
            r = s.cli("tunnel " + line, 1)
            assert want in r.stderr and r.stderr.count("\n") == 1, r.stderr
            assert len(names()) == 2
        # what is refused moves no tunnel
        for line in "remote=192.0.2.4", "prefixes=10.2.0.0/24":
            s.cli(f"tunnel set site-c carrier=tcp {line}", 1)
            assert s.get("/v1/tunnels")["tunnels"][1]["carrier"]["wanted"] == "native", line
        for line in "tunnel", "tunnel add", "tunnel add x", "tunnel del x y", "tunnel set x y", "tunnel show x":
            s.cli(line, 2)
        s.cli("tenant add red vni=5 prefix=10.1.0.0/24@vtep prefix=10.9.0.0/24@site-c")
        assert "tenant red has prefixes behind it" in s.cli("tunnel del site-c", 1).stderr
        s.cli("tenant set red guarantee=4Gbps")
        assert "the sum of all guarantees is above the tunnel's rate" in s.cli("tunnel set site-c rate=3Gbps", 1).stderr
        assert s.get("/v1/tunnels")["tunnels"][1]["rate_max_bytes_per_second"] == 625000000
        s.cli("tenant del red")
        assert "tunnel site-c removed" in s.cli("tunnel del site-c").stdout
        assert names() == [("site-b", "gateway")]
        s.cli(c)  # its number is free again
        s.cli("tunnel del site-b")
        assert names() == [("site-c", "gateway")]
        assert "site-b" not in s.cli("tunnels").stdout and "site-b" not in s.request("/metrics")[2]


def test_controller():
    with tempfile.TemporaryDirectory() as d:
        path, sock = Path(d + "/g.yaml"), d + "/run/g.sock"
        path.write_text(config(sock, "\ncontroller: {urls: ['https://192.0.2.10:7443'], ca: /c, certificate: /d, key: /k, site: s}\n"))
        with Server(f"conf={path}", path=sock) as s:
            out = s.cli("controller").stdout
            fits(out)
            for want in ("controller    https://192.0.2.10:7443", "state         registered for 2 h", "lease         3", "generation    17 runs",
                         "refused       18: tunnel site-c: expected an address", "           4  documents"):
                assert want in out, (want, out)
            assert json.loads(s.cli("controller --json").stdout)["generation"] == 17
    with Server() as s:
        assert "no controller" in s.cli("controller").stdout
        assert s.get("/v1/controller") == {"state": "none", "urls": []}


def test_reload_tunnels():
    with tempfile.TemporaryDirectory() as d:
        path, sock = Path(d + "/g.yaml"), d + "/run/g.sock"
        path.write_text(config(sock, ""))
        with Server("workers=2", f"conf={path}", path=sock) as s:
            path.write_text(path.read_text().replace("remote: 192.0.2.2", "remote: 192.0.2.9").replace("tunnels:\n", "tunnels:\n"
                            "  - {name: n, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none, prefixes: [10.7.0.0/24]}\n"))
            assert json.loads(s.cli("reload --json").stdout)["tunnels"] == {"added": 2, "changed": 0, "removed": 1, "same": 0}
            assert sorted(t["name"] for t in s.get("/v1/tunnels")["tunnels"]) == ["n", "site-b"]
            assert re.search(r"^note +security +1 of 2 tunnels without keys \(`security: none`\)$", s.cli("health", None).stdout, re.M)
            path.write_text(path.read_text().replace("rate: 10Gbps", "rate: 9Gbps").replace("log_level: info", "log_level: debug"))
            assert s.cli("reload").stdout.endswith("\ntunnels: 0 added, 1 changed, 0 removed, 1 as before\nthe log level has changed\n")
            path.write_text(path.read_text().replace("rate: 9Gbps", "rate: 8Gbps"))
            assert json.loads(s.cli("reload --json").stdout)["tunnels"] == {"added": 0, "changed": 1, "removed": 0, "same": 1}


def test_reload():
    with tempfile.TemporaryDirectory() as d:
        path, sock = Path(d + "/g.yaml"), d + "/run/g.sock"
        entry = "  - name: {}\n    vni: {}\n    prefixes:\n      - {{prefix: 10.1.0.0/24, at: vtep}}\n"
        path.write_text(config(sock, "\ntenants:\n" + entry.format("red", 1) + entry.format("blue", 2)))
        with Server("workers=2", f"conf={path}", path=sock) as s:
            assert [t["name"] for t in s.get("/v1/tenants")["tenants"]] == ["blue", "red"]
            out = s.cli("reload").stdout
            assert re.fullmatch(re.escape(f"{path}: 0 tenants added, 0 changed, 0 removed, 2 as before: generation 2, ") + r"[0-9.]+ [mu]?s\ntunnels: 0 added, 0 changed, 0 removed, 1 as before\n", out), out
            s.cli("tenant add green vni=3 prefix=10.1.0.0/24@vtep")
            shown = s.cli("tenant show --yaml").stdout
            path.write_text(config(sock, "\n" + entry.format("red", 7).join(["tenants:\n", entry.format("white", 2)])))
            out = s.cli("reload").stdout
            assert "1 tenant added, 1 changed, 2 removed, 0 as before: generation 4" in out, out
            path.write_text(config(sock, "\n" + shown))
            r = json.loads(s.cli("reload --json").stdout)
            assert (r["added"], r["changed"], r["removed"], r["file"], r["log_level_changed"]) == (2, 1, 1, str(path), False), r
            assert s.cli("tenant show --yaml").stdout == shown
            # refused: nothing changes
            good = path.read_text()
            for text, want in ((good.replace("workers: 1 ", "workers: 2 "), "for `workers`, which changes only with a restart, found `2`"),
                               (good.replace("vni: 3", "vni: 1"), "which is tenant `"), (good + "  - 1\n", "mappings for `tenants`"),
                               ("", "empty text")):
                path.write_text(text)
                r = s.cli("reload", 1)
                assert want in r.stderr and str(path) in r.stderr and r.stderr.count("\n") == 1, r.stderr
                assert s.cli("tenant show --yaml").stdout == shown
            path.write_text(good.replace("log_level: info", "log_level: debug"))
            assert json.loads(s.cli("reload --json").stdout)["log_level_changed"] is True
            path.unlink()
            assert "No such file or directory" in s.cli("reload", 1).stderr


def test_flows_of_tenants():
    with tempfile.TemporaryDirectory() as d:
        path, sock = Path(d + "/g.yaml"), d + "/run/g.sock"
        name = "a-name-of-thirty-one-characters"
        text = "\ntenants:\n" + "".join(f"  - {{name: {n}, vni: {i + 1}, prefixes: [{{prefix: 10.1.0.0/24, at: vtep}}]}}\n"
                                        for i, n in enumerate([name, "b", "c"]))
        path.write_text(config(sock, text))
        with Server("flows=5", f"conf={path}", path=sock) as s:
            assert [f["tenant"] for f in s.get("/v1/flows")["flows"]] == ["", name, "b", "", ""]
            assert len(s.get("/v1/flows?tenant=b")["flows"]) == 1
            out = s.cli("flows").stdout
            assert "TENANT" in out, out
            fits(out)
            assert "1 shown" in s.cli("flows --tenant b").stdout
            s.cli("tenant del b")
            assert [f["tenant"] for f in s.get("/v1/flows")["flows"]] == ["", name, "(removed)", "", ""]
    with Server("flows=5") as s:
        assert "TENANT" not in s.cli("flows").stdout


def test_tenants_of_the_control_center():
    """Nobody changes them here: their document would not know. What goes into the file leaves them out."""
    with Server() as s:
        ask(s, "PUT", "blue", RED.replace("5001", "5002").replace("vlan: 101", "vlan: 102"), 201)
        ask(s, "PUT", "red", RED, 201)
        both = s.cli("tenant show --yaml").stdout
    with open(ROOT / "conf/samples/gateway.yaml") as f, tempfile.NamedTemporaryFile("w", suffix=".yaml") as g:
        g.write(re.sub(r"^tenants:.*\n((#| ).*\n)*", "", f.read(), flags=re.M) + both)
        g.flush()
        with Server("conf=" + g.name, "own_tenants=1") as s:
            assert {t["name"]: t["from"] for t in s.get("/v1/tenants")["tenants"]} == {"blue": "gateway", "red": "controller"}
            for words in "set red limit=1Gbps", "del red":
                r = s.cli("tenant " + words, 1)
                assert r.stderr == "roceway: tenant red is the control center's\n", r
            refused(s, "PUT", "red", RED, 409, "there is a tenant of this name already")
            assert "limit" not in ask(s, "GET", "red")["config"] or ask(s, "GET", "red")["config"]["limit"] == "none"
            text = s.cli("tenant show --yaml").stdout
            assert "- name: blue\n" in text and "red" not in text, text
            assert "from" in s.cli("tenant show red").stdout
            s.cli("tenant del blue")
            assert s.cli("tenant show --yaml").stdout == "tenants: []\n"


def test_documented():
    """The examples of docs/cli.md about tenants run exactly as printed there."""
    text = (ROOT / "docs/cli.md").read_text()
    lines = re.findall(r"^    (roceway tenant (?:add|set|del) .+(?:\\\n.*)*)$", text.replace("\\\n", " "), re.M)
    assert len(lines) >= 3, lines
    with Server() as s:
        for line in lines:
            r = subprocess.run(["bash", "-c", line], capture_output=True, text=True,
                               env={**os.environ, "PATH": f"{CLI.parent}:{os.environ['PATH']}", "ROCEWAY_SOCKET": s.path})
            assert r.returncode == 0, (line, r.stderr)


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
