#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# controller_api.py BUILD: the controller over SQLite and over three etcd nodes, compared with
# controller/openapi.yaml: tests reach every path, method and status of the file, with right and
# with wrong requests of gateways and operators.
import contextlib
import json
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from ctlr.harness import CA, LOAD, ROOT, SLOW, SPEC, Controller, Etcd, Gateway, Member, Wires, registration, seen, temporary, until  # noqa: E402
from ctlr.networks import (  # noqa: E402, F401
    test_a_job_gets_tunnels_of_its_network, test_a_network_that_fails_leaves_nothing_behind, test_the_white_papers_job_over_its_three_sites,
    test_a_tunnel_that_a_network_lost_is_made_again, test_two_networks_between_two_sites_are_placed_together,
    test_what_was_granted_and_not_kept_is_given_back_after_a_crash, test_whatever_happens_the_network_has_what_the_jobs_say, two_replicas_and_a_network)
from ctlr.pairs import (  # noqa: E402, F401
    pairs_and_replicas, test_a_pair_is_one_gateway, test_each_measures_quic_for_itself, test_a_standby_that_is_lost_is_said_to_be, test_a_takeover_is_told, test_members_that_cannot_be_are_refused,
    test_pairs_are_there_again_after_a_restart, test_who_lies_is_found_out)
from ctlr.documents import test_pairs_of_all_jobs_fit_a_document  # noqa: E402, F401
from ctlr.permits import test_permits_go_to_the_gateways_of_both_sites, test_permits_of_all_tenants_fit_a_document, test_wrong_permits_are_refused  # noqa: E402, F401
from ctlr.shapes import (  # noqa: E402, F401
    test_jobs_of_one_pair_go_to_all_gateways, test_a_job_names_dscp_and_carrier, test_an_operator_sets_detours, test_a_job_preempts_those_of_a_lower_priority, test_a_refused_job_is_told_when_it_would_fit, test_bursts_become_a_rate,
    test_a_plan_follows_what_is_measured, test_a_promise_is_for_all_jobs_together, test_bytes_with_a_deadline_become_a_rate)
from ctlr.relays import (  # noqa: E402, F401
    test_a_lost_relay_is_said_to_be_lost, test_a_relay_says_what_it_is_and_has_no_tenants, test_hosts_are_told_which_relays_and_when_that_changes, test_hosts_keep_leases, test_links_have_an_end_at_each_relay, test_relays_go_to_relays_and_gateways_to_gateways,
    test_a_stolen_certificate_of_a_host_is_noticed_and_ends, test_redirects_follow_load_and_family, test_wrong_relays_are_refused)
from ctlr.steering import test_a_path_that_a_network_lost_is_left, test_gateways_send_along_what_was_granted  # noqa: E402, F401
from ctlr.qps import (  # noqa: E402, F401
    test_named_queue_pairs_have_a_pair_of_gateways_each, test_queue_pairs_that_nobody_named_are_spread_as_they_are_reported)
from ctlr.ranks import (  # noqa: E402, F401
    pod, table3,
    test_a_dead_server_is_replaced_and_the_rest_stays, test_a_job_waits_for_its_containers_and_is_undone, test_a_start_script_gets_the_ranks_of_its_container,
    test_figure_31_puts_the_middle_site_in_the_middle, test_splits_that_cannot_be_are_refused, test_table_3_gets_ranks_and_what_they_demand)
from ctlr.strangers import (  # noqa: E402, F401
    test_a_deadline_that_is_past_leaves_the_job_as_it_was, test_of_many_schedulers_one_gets_a_container, test_what_cannot_be_planned_changes_nothing)

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


# --- roles ----------------------------------------------------------------------------------------


def test_every_path_wants_a_certificate_of_a_role_that_may(w):
    who = {"gateway": "nobody", "operator": "op", "scheduler": "sched", "network": "net", "container": "pod", "host": "host_1"}
    nobody = w.ctl.client(w.ca.context())
    for path, methods in SPEC["paths"].items():
        for method in ("get", "put", "post", "delete"):
            if method not in methods:
                w.op.ask(method.upper(), url(path), None, 405)
                assert w.op.headers["Allow"], path
                continue
            nobody.ask(method.upper(), url(path), None, 401)
            for role, name in who.items():
                own = url(path).replace("nobody", name) if role == "container" else url(path)
                status, _ = w.__dict__[name].ask(method.upper(), own, None)
                assert (status == 403) == (role not in methods[method]["x-roles"]), (method, path, role, status)
            if method in ("get", "delete") and "400" in methods[method]["responses"]:
                client = w.__dict__[who[methods[method]["x-roles"][0]]]
                client.ask(method.upper(), url(path).split("?")[0] + "?nothing=1", None, 400)
    for path in ("/v2", "/v1", "/v1/gateways/", "/v1/gateways/a/b", "/v1/nothing", "/v1/sites/a b", "/v1/sites/" + "x" * 40, "/../etc/passwd"):
        w.op.ask("GET", path.replace(" ", "%20"), None, 404)


def test_the_program_says_the_same_paths_as_the_file(w):
    out = subprocess.run([BUILD / "bin/roceway-controller", "--endpoints"], capture_output=True, text=True, check=True).stdout
    mine = sorted(re.sub(r"\{[^}]*\}", "{}", line) for line in out.splitlines())
    file = sorted(f"{m.upper()} " + re.sub(r"\{[^}]*\}", "{}", p) for p, ms in SPEC["paths"].items() for m in ms if m in ("get", "put", "post", "delete"))
    assert mine == file, set(mine) ^ set(file)


def test_a_certificate_that_does_not_hold_is_refused(w):
    foreign = CA(w.ca.dir / "foreign")
    foreign.issue("op", "operator")
    c = w.ctl.client(foreign.context("op", ca=w.ca))
    assert "not from our CA" in c.get("/v1/health", 403)["error"]
    # another CA with the same name
    w.op.get("/v1/health")
    first = w.ctl.client(w.ca.issue("gone", "operator"))  # and another one, as when the first nears its end
    w.context["gone"] = w.ca.issue("gone", "operator")
    gone = w.ctl.client(w.context["gone"])
    near = w.ctl.client(w.ca.issue("not-gone", "operator"))
    for c in (first, gone, near):
        c.get("/v1/health")
    w.ca.run("revoke", "gone")
    gone.get("/v1/health")  # the controller does not know it
    w.ctl.hup()
    assert "revoked" in first.get("/v1/health", 403)["error"]
    assert "revoked" in gone.get("/v1/health", 403)["error"]  # on the existing connection
    gone.close()
    assert "revoked" in gone.get("/v1/sites", 403)["error"]
    near.get("/v1/health")
    w.op.get("/v1/health")
    # a copy by its number that is gone, and a NAME that is a number
    lost = w.ctl.client(w.ca.issue("lost", "operator"))
    number = (w.ca.dir / "serial.old").read_text().strip()
    other = w.ctl.client(w.ca.issue(number, "operator"))
    (w.ca.dir / "issued" / f"{number}.pem").unlink()
    w.ca.run("revoke", "lost")
    w.ctl.hup()
    assert "revoked" in lost.get("/v1/health", 403)["error"]
    other.get("/v1/health")
    # an unreadable list changes nothing
    crl = w.ca.dir / "crl.pem"
    good = crl.read_bytes()
    crl.write_bytes(b"rubbish")
    w.ctl.hup()
    w.op.get("/v1/health")
    gone.close()
    gone.get("/v1/health", 403)
    crl.write_bytes(good)
    w.ctl.hup()
    # a server's certificate, and one without a role
    w.ca.run("issue", "ctl2", "controller", "127.0.0.1")
    c = w.ctl.client(w.ca.context("ctl2"))
    assert "no role" in c.get("/v1/health", 403)["error"]
    events = w.op.get("/v1/events?limit=1000")["events"]
    assert any("revoked" in e["text"] for e in events) and any("not from our CA" in e["text"] for e in events)


def test_the_ca_knows_addresses_from_names(w):
    w.ca.run("issue", "ctl3", "controller", "10.0.0.7", "fd00::A:1", "::1", "2001:db8::10", "ctl.example", "beef", "7", "10.example")
    r = subprocess.run(["openssl", "x509", "-in", w.ca.dir / "ctl3.pem", "-noout", "-ext", "subjectAltName"], capture_output=True, text=True, check=True)
    assert r.stdout.split("\n")[1].strip().split(", ") == [
        "DNS:ctl3", "IP Address:10.0.0.7", "IP Address:FD00:0:0:0:0:0:A:1", "IP Address:0:0:0:0:0:0:0:1",
        "IP Address:2001:DB8:0:0:0:0:0:10", "DNS:ctl.example", "DNS:beef", "DNS:7", "DNS:10.example"], r.stdout


def test_a_refused_certificate_leaves_the_one_before(w):
    w.ca.run("issue", "ctl4", "controller", "10.0.0.7")
    before = {p: p.read_bytes() for p in w.ca.dir.rglob("*") if p.is_file() and p.name != "log"}
    try:
        w.ca.run("issue", "ctl4", "controller", "10.0.0.300")
    except subprocess.CalledProcessError as e:
        assert "bad ip address" in e.stderr and "roceway-ca: openssl ca failed" in e.stderr, e.stderr
    else:
        raise AssertionError("10.0.0.300")
    assert before == {p: p.read_bytes() for p in w.ca.dir.rglob("*") if p.is_file() and p.name != "log"}
    w.ca.run("issue", "ctl4", "controller", "10.0.0.30")
    w.ca.context("ctl4")  # key and certificate belong together


def test_the_ca_refuses_what_would_spoil_it(w):
    def files():
        return {p: p.read_bytes() for p in w.ca.dir.rglob("*") if p.is_file()}
    before = files()
    for words in (("issue", "ca", "gateway"), ("issue", "crl", "gateway"), ("issue", "a/b", "gateway"), ("issue", "a", "king"),
                  ("issue", "a", "controller", "no address"), ("issue", "a", "controller", "b,IP:10.0.0.1"), ("issue", "a", "controller", "g::1"),
                  ("issue", "a", "operator", "10.0.0.1"), ("revoke", "ca"), ("revoke", "nothing"), ("init",), ("init", "more"), ("list", "more")):
        try:
            w.ca.run(*words)
        except subprocess.CalledProcessError as e:
            assert e.stderr.startswith(("roceway-ca: ", "usage: ")), (words, e.stderr)
        else:
            raise AssertionError(words)
    assert before == files()
    assert subprocess.run([ROOT / "tools/ca/roceway-ca", w.ca.dir / "new", "init", "more"], capture_output=True).returncode == 2
    assert not (w.ca.dir / "new").exists()
    r = subprocess.run([ROOT / "tools/ca/roceway-ca", w.ca.dir, "issue", "a", "king"], capture_output=True, text=True)
    assert r.stderr == "roceway-ca: ROLE: expected one of controller, gateway, operator, scheduler, network, container or host, found `king`\n", r
    (w.ca.dir / "half/crl.pem.new").mkdir(parents=True)  # the last step of init fails
    half = [ROOT / "tools/ca/roceway-ca", w.ca.dir / "half", "init"]
    assert subprocess.run(half, capture_output=True).returncode == 1
    (w.ca.dir / "half/crl.pem.new").rmdir()
    assert subprocess.run(half, capture_output=True).returncode == 0
    shutil.rmtree(w.ca.dir / "half")
    r = subprocess.run([ROOT / "tools/ca/roceway-ca", w.ca.dir / "new", "list"], capture_output=True, text=True)
    assert r.returncode == 1 and r.stderr.startswith("roceway-ca: no CA in "), r.stderr


def test_addresses_of_a_certificate(w):
    """IPv6 addresses with letters are addresses, not DNS names. A refusal by openssl leaves key and certificate a pair."""
    w.ca.run("issue", "six", "controller", "2001:db8::fe10", "::1", "192.0.2.10", "ctl.example")
    text = subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", w.ca.dir / "six.pem"], capture_output=True,
                          text=True, check=True).stdout
    assert re.sub(r"\s+", " ", text).endswith(" DNS:six, IP Address:2001:DB8:0:0:0:0:0:FE10, IP Address:0:0:0:0:0:0:0:1, "
                                              "IP Address:192.0.2.10, DNS:ctl.example "), text
    before = {p.name: p.read_bytes() for p in w.ca.dir.glob("six*")}
    try:
        w.ca.run("issue", "six", "controller", "300.0.0.1")
    except subprocess.CalledProcessError:
        pass
    else:
        raise AssertionError("300.0.0.1")
    assert before == {p.name: p.read_bytes() for p in w.ca.dir.glob("six*")} and len(before) == 2, before


def test_a_gateway_is_itself_only(w):
    for method, rest in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/lease"), ("GET", "/document"), ("POST", "/sessions"), ("POST", "/links")]:
        out = w.gw_a1.ask(method, "/v1/gateways/gw-b1" + rest, registration("a", 1) if method in ("PUT", "POST") else None, 403)[1]
        assert "gw-a1's" in out["error"]
    w.net.put("/v1/links/a/b/other", {}, 403)
    w.net.delete("/v1/links/a/b/other", 403)


def test_plain_http_without_tls_is_no_way_in(w):
    with socket.create_connection(("127.0.0.1", w.ctl.port), 5) as s:
        s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        s.settimeout(5)
        try:
            assert b"200" not in s.recv(1000)
        except ConnectionError:
            pass
    with socket.create_connection(("127.0.0.1", w.ctl.port), 5) as s:
        c = ssl.create_default_context(cafile=w.ca.dir / "ca.pem")
        warnings.simplefilter("ignore")
        c.maximum_version = c.minimum_version = ssl.TLSVersion.TLSv1_1
        try:
            c.wrap_socket(s, server_hostname="127.0.0.1")
            raise AssertionError("TLS 1.1 was taken")
        except (ssl.SSLError, ConnectionError):
            pass


# --- bodies ---------------------------------------------------------------------------------------


def wrongs(value, schema):
    """(field, body): the value with one error each, by the schema."""
    from ctlr.harness import properties, resolve
    schema = resolve(schema)
    if isinstance(value, dict):
        props, more = properties(schema)
        if more is False:
            yield "", {**value, "no_such_field": 1}
        for key in schema.get("required", []):
            yield key, {k: v for k, v in value.items() if k != key}
        for key, v in value.items():
            sub = resolve(props.get(key, {}))
            for field, bad in wrongs(v, sub):
                yield key, {**value, key: bad}
    elif isinstance(value, list):
        yield "", {}
        if value:
            for _, bad in wrongs(value[0], schema.get("items", {})):
                yield "", [bad] + value[1:]
        if schema.get("minItems"):
            yield "", []
        if "maxItems" in schema and schema["maxItems"] < 5000 and value:
            yield "", value * (schema["maxItems"] // len(value) + 1)
    elif isinstance(value, bool):
        yield "", 1
        yield "", "true"
        yield "", None
    elif isinstance(value, int):
        for bad in (-1, 1.5, str(value), None, True, [value], 2**63 - 1, schema.get("maximum", 2**62) + 1, schema.get("minimum", 0) - 1):
            if isinstance(bad, int) and not isinstance(bad, bool) and schema.get("minimum", 0) <= bad <= schema.get("maximum", 2**63):
                continue
            yield "", bad
    elif isinstance(value, str):
        for bad in (1, None, {}, [value]):
            yield "", bad
        if "pattern" in schema or "enum" in schema:
            yield "", value + " /"
            yield "", ""
        if "maxLength" in schema:
            yield "", "1" * (schema["maxLength"] + 1)


BODIES = [
    ("PUT", "/v1/gateways/{name}", "nobody", "Registration", {**registration("a", 9), "pair": {"member": "one"}}),
    ("POST", "/v1/gateways/{name}/lease", "nobody", "Lease",
     {"lease": "0123456789abcdef", "boot_id": "b", "generation_running": 1, "generation_refused": 1, "refusal": "x", "load": LOAD,
      "pair": {"member": "one", "configuration": "0123456789abcdef", "state": "paired", "other": "ready", "epoch": 1, "age_ms": 1, "served": {"by": "silent", "age_ms": 1}, "lost": {"by": "stuck", "age_ms": 1}}}),
    ("POST", "/v1/gateways/{name}/sessions", "nobody", "SessionReport", {"lease": "0123456789abcdef", "sessions": [
        {"id": "1", "event": "opened", "vni": 1, "source": "10.1.0.5", "destination": "10.2.0.5", "source_qpn": 1, "destination_qpn": 2, "udp_port": 3,
         "tunnel": "t", "bytes": 1, "link": "00000000000000ff", "relay": "10.1.0.254"}]}),
    ("POST", "/v1/gateways/{name}/links", "nobody", "LinkReport", {"lease": "0123456789abcdef", "links": [
        {"peer": "x", "carrier": "tcp", "rtt_us": 1, "rtt_min_us": 1, "jitter_us": 1, "loss_ppm": 1, "burst": 1, "bandwidth_bps": 1, "age_ms": 1}]}),
    ("PUT", "/v1/links/{site_a}/{site_b}/{source}", "net", "LinkPush",
     {"class": "reserved", "bandwidth_bps": 1, "delay_us": 1, "jitter_us": 1, "loss_ppm": 1, "ttl_ms": 1000}),
    ("PUT", "/v1/detours/{first}/{second}", "op", "Detour", {"detour": "tcp", "detour_after": 1}),
    ("PUT", "/v1/sites/{name}", "op", "Site", {"prefixes": ["10.9.0.0/16"], "location": "x", "latitude_udeg": 1, "longitude_udeg": 1, "peers": ["b"],
                                               "weighting": "least", "relays": [{"gateway": "r", "order": 1, "weight": 2}]}),
    ("PUT", "/v1/jobs/{name}", "sched", "Job", {"granularity": "nic", "duration_ms": 5, "dscp": 1, "carrier": "native", "pairs": [
        {"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 1, "delay_us": 1, "jitter_us": 1}]}),
    ("POST", "/v1/jobs", "sched", "Job", {"name": "j", "ring": True, "ranks": [{"rank": 0, "address": "10.1.0.1", "stage": 0},
                                                                               {"rank": 1, "address": "10.2.0.1", "stage": 1}],
                                          "demand": {"bandwidth_bps": 1, "delay_us": 1, "jitter_us": 1}}),
    ("PUT", "/v1/jobs/{name}", "sched", "Job", {"split": {
        "pipeline": 2, "data": 1, "tensor": 1, "clusters": [{"site": "a", "ranks": 1, "first": 0}, {"site": "b", "ranks": 1, "first": 1}],
        "model": {"sequence_length": 1, "hidden_size": 1, "micro_batch_size": 1, "global_batch_size": 1, "element_bytes": 2, "step_us": 1000, "transfer_us": 10,
                  "sequence_parallel": False}, "delay_us": 1, "jitter_us": 1, "hold_ms": 1000, "master_port": 1}, "containers": [
        {"name": "p0", "node": "n", "zone": "r", "ranks": 1, "nics": [{"name": "eth0", "address": "10.1.0.1", "hca": "mlx5_0"}]}]}),
    ("POST", "/v1/hosts/{host}/lease", "host_1", "HostLease", {"boot_id": "b", "site": "a", "version": "1", "generation": 1, "down": ["10.1.0.254"]}),
    ("POST", "/v1/jobs/{name}/failures", "sched", "Failure", {"containers": ["p0"], "nodes": ["n0"]}),
    ("PUT", "/v1/tenants/{name}", "op", "Tenant", {"vni": 77, "acl_default": "deny", "weight": 2, "priority": 3, "retry": 9, "permits": [
        {"source": "10.1.0.1", "destination": "10.2.0.1", "source_qpn": 1, "destination_qpn": 2}], "sites": {"a": {
        "prefixes": [{"prefix": "10.1.0.0/24", "at": "vlan"}], "vlan": 7, "vtep_learning": False, "proxy_arp": False, "memory_percent": 1}}}),
    ("PUT", "/v1/gateways/{name}", "nobody", "Registration", {**registration("a", 9), "capabilities": {
        "rdma": {"bandwidth_bps": 1, "address": "203.0.113.1:4793", "qps": 4, "window_bytes": 1}}}),
]


def test_a_body_with_one_thing_wrong_is_refused_with_its_name(w):
    w.sites()
    before = [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs", "gateways", "links")]
    n = 0
    for method, path, who, schema, body in BODIES:
        client, p = w.__dict__[who], url(path)
        for field, bad in wrongs(body, SPEC["components"]["schemas"][schema]):
            status, out = client.ask(method, p, bad)
            assert status == 400, (method, p, bad, status, out)
            assert not field or "field" in out, (field, bad, out)
            n += 1
        for raw in (b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}x", b'{"vni":1,"vni":2}', b"\xff\xfe", b'{"a":"\x00"}', b"[" * 100000, b'{"a":' * 1000,
                    b'{"x":1e400}', b'{"x":99999999999999999999}'):
            client.ask(method, p, raw, 400)
            n += 1
    assert n > 500, n
    assert before == [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs", "gateways", "links")]


def test_addresses_and_prefixes_are_what_they_say(w):
    for bad in ("10.1.0.1/16", "10.1.0.0", "10.1.0.0/33", "10.1.0.0/-1", "10.1.0.0/016", "x/8", "::/129", "fd00::1/64", "/8", "10.1.0.0/ 8", "10.1/16",
                "::/0", "::/80", "::ffff:0:0/96", "::ffff:10.9.0.0/112"):
        assert w.op.put("/v1/sites/z", {"prefixes": [bad]}, 400)["field"] == "prefixes[0]", bad
        assert w.op.put("/v1/tenants/new", {"vni": 777, "sites": {"a": {"prefixes": [{"prefix": bad, "at": "vlan"}]}}}, 400), bad
    for bad in ("192.0.2.1", "192.0.2.1:0", "192.0.2.1:65536", "fd00::1:4793", "[192.0.2.1]:1", "[fd00::1]", "[fd00::1:1", "0.0.0.0:1", "224.0.0.1:1", ":1", "a:1"):
        out = w.nobody.put("/v1/gateways/nobody", {**registration("a", 1), "wan": [bad]}, 400)
        assert out["field"] == "wan[0]", (bad, out)


def test_parameters_are_held_to_as_well(w):
    for path, bad in [("/v1/gateways", "limit=0"), ("/v1/gateways", "limit=1001"), ("/v1/gateways", "limit=x"), ("/v1/gateways", "nothing=1"),
                      ("/v1/gateways", "limit=1&limit=2"), ("/v1/tunnels", "limit=-1"), ("/v1/sessions", "limit=1e3"), ("/v1/sessions", "gateway=a/b"),
                      ("/v1/events", "after=-1"), ("/v1/links", "limit="), ("/v1/routes", "site="), ("/v1/routes", "after=0"),
                      ("/v1/routes", "site=a&wait_ms=300001"), ("/v1/gateways", "limit%20after=1"), ("/v1/gateways", "=1"), ("/v1/gateways", "after=" + "x" * 200)]:
        w.op.get(f"{path}?{bad}", 400)
    w.nobody.get("/v1/gateways/nobody/document?after=x", 400)
    w.nobody.get("/v1/gateways/nobody/document?after=99999999999999999999999", 400)
    for path in ("/v1/routes", "/v1/redirects"):
        w.op.get(f"{path}?site=nosuch", 404)
    for bad in ("site=", "after=0", "site=a&wait_ms=300001", "site=a&after=-1"):
        w.host_1.get(f"/v1/redirects?{bad}", 400)
    w.op.get("/v1/hosts?limit=0", 400)
    w.op.get("/v1/relay-links?limit=0", 400)


def rss(w):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{w.ctl.proc.pid}/status").read_text())[1])


def test_a_body_of_100_mb_is_not_read(w):
    before = rss(w)
    for method, path, who, _, _ in BODIES:
        client, p = w.__dict__[who], url(path)
        # refused by its length alone
        c = client.connect()
        c.putrequest(method, p)
        c.putheader("Content-Length", str(100 << 20))
        c.endheaders()
        r = c.getresponse()
        assert r.status == 413, (method, p, r.status)
        seen.add((path, method, 413))
        r.read()
        client.close()
    # without a length: cut off at the limit
    c = w.op.connect()
    c.putrequest("PUT", "/v1/sites/z")
    c.putheader("Transfer-Encoding", "chunked")
    c.endheaders()
    sent = 0
    try:
        for _ in range(1600):
            c.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            sent += 65536
        c.send(b"0\r\n\r\n")
        assert c.getresponse().status == 413
    except (ConnectionError, ssl.SSLError):
        pass
    w.op.close()
    w.op.get("/v1/sites/z", 404)
    # kB; a sanitizer keeps freed memory for a while
    assert rss(w) - before < (400000 if b"__asan_init" in (BUILD / "bin/roceway-controller").read_bytes() else 60000), (before, rss(w))
    assert any("body" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])


def test_a_client_that_dribbles_is_cut_off(w):
    """limits.request is short here: headers that never end, a body that never ends, a connection that says nothing."""
    def dribble(head, drop):
        with socket.create_connection(("127.0.0.1", w.ctl.port), 5) as raw:
            s = w.context["op"].wrap_socket(raw, server_hostname="127.0.0.1") if head is not None else raw
            s.settimeout(0.2)
            if head:
                s.sendall(head)
            end = time.monotonic() + 20
            while time.monotonic() < end:
                try:
                    if drop:
                        s.sendall(drop)
                    if s.recv(1000) == b"":
                        return True
                except TimeoutError:
                    pass
                except (ConnectionError, ssl.SSLError):
                    return True
            return False
    assert dribble(b"GET /v1/health HTTP/1.1\r\n", b"x: y\r\n")
    assert dribble(b"PUT /v1/sites/z HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", b" ")
    assert dribble(b"", None)
    assert dribble(None, None)
    # the handshake a byte at a time
    tls, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = ssl.create_default_context(cafile=w.ca.dir / "ca.pem").wrap_bio(tls, out, server_hostname="127.0.0.1")
    try:
        hello.do_handshake()
    except ssl.SSLWantReadError:
        pass
    rest = iter(out.read())
    with socket.create_connection(("127.0.0.1", w.ctl.port), 5) as s:
        s.settimeout(0.3)
        end, cut = time.monotonic() + 20, False
        while not cut and time.monotonic() < end:
            try:
                s.sendall(bytes([next(rest)]))
                cut = s.recv(1) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                cut = True
        assert cut
    w.op.get("/v1/health")


def test_a_client_that_does_not_read_is_cut_off(w):
    """It requests much and reads nothing: the memory it holds is released."""
    w.ctl.stop()
    w.ctl.config.write_text(w.ctl.config.read_text().replace(f"request: {w.request}", "request: 300ms"))
    w.ctl.start()
    w.connect()
    for i in range(300):
        w.op.ask("GET", f"/v1/sites/{i}?no=1", None, 400)
        w.op.put("/v1/sites/z", {"prefixes": [], "location": "x" * 100 + str(i)}, None)
    def slow():
        w.op.get("/metrics")
        return int(re.search(rb"roceway_controller_slow_clients_total (\d+)", w.op.text)[1])
    before = slow()
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", w.ctl.port))
        s = w.context["op"].wrap_socket(raw, server_hostname="127.0.0.1")
        s.settimeout(0.5)
        try:
            for _ in range(400):
                s.sendall(b"GET /v1/events?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
        except (TimeoutError, ConnectionError, ssl.SSLError):
            pass
        until(lambda: slow() > before)
    assert any("to read an answer" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])


# --- configuration -----------------------------------------------------------------------------------------------------------


def test_sites_come_change_and_go(w):
    w.op.put("/v1/sites/s1", {"prefixes": ["10.31.0.0/16", "fd31::/64"], "location": "Somewhere", "latitude_udeg": -33000000}, 201)
    out = w.op.put("/v1/sites/s1", {"prefixes": ["10.31.0.0/16", "fd31::/64"], "location": "Somewhere", "latitude_udeg": -33000000}, 200)
    assert out["revision"] > 0
    assert w.op.get("/v1/sites/s1")["latitude_udeg"] == -33000000
    assert w.op.put("/v1/sites/s2", {"prefixes": ["10.31.0.0/16"]}, 409)["field"] == "prefixes[0]"
    assert w.op.put("/v1/sites/s2", {"prefixes": ["10.32.0.0/16", "10.32.0.0/16"]}, 400)["field"] == "prefixes[1]"
    assert w.op.put("/v1/sites/s2", {"prefixes": [], "name": "s3"}, 400)["field"] == "name"
    w.op.get("/v1/sites/s2", 404)
    w.op.put("/v1/sites/s1", {"prefixes": ["fd31::/64"]})
    w.op.put("/v1/sites/s2", {"prefixes": ["10.31.0.0/16"]}, 201)
    w.op.delete("/v1/sites/s1")
    w.op.delete("/v1/sites/s1", 404)
    w.op.delete("/v1/sites/s2")
    assert not [s for s in w.op.get("/v1/sites")["sites"] if s["name"].startswith("s")]


def red(vni=5001, **more):
    return {"vni": vni, "sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vtep"}], "vteps": ["10.1.0.11"], "vlan": 101},
                                  "b": {"prefixes": [{"prefix": "10.2.0.0/24", "at": "vtep"}], "vteps": ["10.2.0.11"]}}, **more}


def test_tenants_that_clash_are_refused(w):
    w.sites()
    w.op.put("/v1/tenants/red", red(guarantee="1Gbps"), 201)
    w.op.put("/v1/tenants/red", red(guarantee="1Gbps"), 200)
    blue = red()
    assert w.op.put("/v1/tenants/blue", blue, 409)["field"] == "vni"
    blue["vni"] = 5002
    assert w.op.put("/v1/tenants/blue", blue, 409)["field"] == "sites.a.vlan"
    blue["sites"]["a"]["vlan"] = 102
    w.op.put("/v1/tenants/blue", blue, 201)  # the same addresses: tenants may overlap
    assert w.op.put("/v1/tenants/blue", {**blue, "vni": 5001}, 409)["field"] == "vni"
    assert w.op.get("/v1/tenants/blue")["vni"] == 5002
    for bad in ({"sites": {}}, {"sites": {"a": {"prefixes": [{"prefix": "10.1.0.5/24", "at": "vtep"}]}}}, {"acl": [{"action": "perhaps"}]},
                {"guarantee": "1 parsec"}, {"weight": 0}, {"sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "gw-b1"}]}}},
                {"sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vlan"}], "vlan": 5000}}}):
        assert w.op.put("/v1/tenants/bad", {**red(7), **bad}, 400)["field"]
    assert w.op.put("/v1/tenants/bad", {"vni": 7, "sites": {"nowhere": {"prefixes": []}}}, 409)["field"] == "sites"
    w.op.get("/v1/tenants/bad", 404)
    assert "tenant" in w.op.delete("/v1/sites/a", 409)["error"]
    assert [t["name"] for t in w.op.get("/v1/tenants")["tenants"]] == ["blue", "red"]
    w.op.delete("/v1/tenants/red")
    w.op.delete("/v1/tenants/blue")
    w.op.delete("/v1/tenants/blue", 404)


def test_tenants_without_a_vni_get_one_of_their_own(w):
    w.sites()
    def tenant(i, **more):
        return {"sites": {"a": {"prefixes": [{"prefix": f"10.1.{i}.0/24", "at": "vlan"}], "vlan": 100 + i}}, **more}
    first = 1 << 23
    w.op.put("/v1/tenants/typed", tenant(0, vni=first + 2), 201)
    clients = [w.ctl.client(w.context["op"]) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: clients[i].put(f"/v1/tenants/t{i}", tenant(1 + i), 201), range(4)))
    def vnis():
        return {t["name"]: t["vni"] for t in w.op.get("/v1/tenants")["tenants"]}
    was = vnis()
    assert sorted(was.values()) == [first + i for i in range(5)] and was["typed"] == first + 2, was
    # it stays: put again as it was, and otherwise
    revision = w.op.put("/v1/tenants/t1", tenant(2), 200)["revision"]
    assert w.op.put("/v1/tenants/t1", tenant(2), 200)["revision"] == revision
    w.op.put("/v1/tenants/t1", tenant(2, priority=3), 200)
    assert vnis() == was
    # it is given back
    w.op.delete("/v1/tenants/t1")
    w.op.put("/v1/tenants/t9", tenant(9), 201)
    assert vnis()["t9"] == was["t1"]
    assert w.op.put("/v1/tenants/t8", tenant(8, vni=was["t0"]), 409)["field"] == "vni"
    # the space is exhausted: who names none is refused, and nothing changes; who names one is not
    w.ctl.stop()
    w.ctl.config.write_text(w.ctl.config.read_text() + f"tenants: {{first_vni: {first}, last_vni: {first + 4}}}\n")
    w.ctl.start()
    w.connect()
    before = w.op.get("/v1/tenants")
    out = w.op.put("/v1/tenants/t7", tenant(7), 409)
    assert out["field"] == "vni" and f"all VNIs from {first} to {first + 4} have tenants" in out["error"], out
    w.op.put("/v1/tenants/t0", tenant(1), 200)  # it keeps its own
    assert w.op.get("/v1/tenants") == before
    w.op.put("/v1/tenants/t7", tenant(7, vni=77), 201)
    w.op.delete("/v1/tenants/t3")
    w.op.put("/v1/tenants/t6", tenant(6), 201)
    assert vnis()["t6"] == was["t3"]


def test_of_many_who_want_one_vni_one_gets_it(w):
    w.sites()
    codes = []
    def put(i):
        c = w.ctl.client(w.context["op"])
        t = red(6000)
        del t["sites"]["a"]["vlan"]
        codes.append(c.ask("PUT", f"/v1/tenants/t{i}", t)[0])
    threads = [threading.Thread(target=put, args=(i,)) for i in range(12)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(codes) == [201] + [409] * 11, codes
    assert len(w.op.get("/v1/tenants")["tenants"]) == 1
    for i in range(12):
        w.op.ask("DELETE", f"/v1/tenants/t{i}")


# --- gateways ------------------------------------------------------------------------------------------------------------------


def test_a_gateway_registers_and_is_told_what_to_do(w):
    w.sites()
    w.op.put("/v1/tenants/red", red(), 201)
    a, b = w.gateways("gw-a1", "gw-b1")
    d = a.document()
    assert [t["name"] for t in d["tunnels"]] == ["gw-b1"], d
    t = d["tunnels"][0]
    assert (t["remote"], t["local"], t["prefixes"]) == ("192.0.2.21:4793", "192.0.2.11", ["10.2.0.0/16"])
    assert d["tenants"][0]["prefixes"] == [{"prefix": "10.1.0.0/24", "at": "vtep"}, {"prefix": "10.2.0.0/24", "at": "gw-b1"}], d["tenants"]
    a.client.get(a.path(f"/document?after={a.generation}"), 304)
    assert a.renew()["generation"] == a.generation
    g = w.op.get("/v1/gateways/gw-a1")
    assert (g["state"], g["generation_running"], g["load"]) == ("up", a.generation, LOAD)
    a.renew(generation_refused=a.generation, refusal="no such port")
    assert w.op.get("/v1/gateways/gw-a1")["refusal"] == "no such port"
    assert any("no such port" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    assert w.op.get("/v1/gateways")["gateways"][0]["name"] == "gw-a1"
    page = w.op.get("/v1/gateways?limit=1")
    assert page["next"] == "gw-a1" and w.op.get("/v1/gateways?after=gw-a1")["gateways"][0]["name"] == "gw-b1"
    assert "gateways are there" in w.op.delete("/v1/sites/a", 409)["error"]
    w.op.delete("/v1/tenants/red")
    assert a.document(a.generation, 5000)["tenants"] == []
    b.client.delete(b.path())
    assert a.document()["tunnels"] == []
    w.op.delete("/v1/gateways/gw-a1")
    w.op.delete("/v1/gateways/gw-a1", 404)
    w.op.get("/v1/gateways/gw-a1", 404)


def test_stale_leases_and_generations_are_refused(w):
    w.sites()
    a, = w.gateways("gw-a1")
    old = a.lease
    a.register()
    assert a.lease == old  # nothing is new, so nothing changes
    a.register(boot_id="b2")
    assert a.lease != old
    assert a.renew(409, lease=old)["field"] == "lease"
    assert a.renew(409, boot_id="b1")["field"] == "boot_id"
    assert a.renew(409, generation_running=a.generation + 10**9)["field"] == "generation_running"
    a.client.get(a.path(f"/document?after={a.generation + 10**9}"), 409)
    report = {"sessions": [{"id": "1", "event": "opened", "source": "10.1.0.1", "destination": "10.2.0.1"}]}
    a.client.post(a.path("/sessions"), {**report, "lease": old}, 409)
    a.client.post(a.path("/links"), {"lease": old, "links": [BODIES[3][4]["links"][0]]}, 409)
    a.renew()
    w.nobody.post("/v1/gateways/nobody/lease", {"lease": a.lease, "boot_id": "b", "generation_running": 0, "load": LOAD}, 404)
    w.nobody.post("/v1/gateways/nobody/sessions", report, 404)
    w.nobody.post("/v1/gateways/nobody/links", {"links": [BODIES[3][4]["links"][0]]}, 404)
    w.nobody.get("/v1/gateways/nobody/document", 404)
    assert any("stale lease" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    # it expires
    until(lambda: w.op.get("/v1/gateways/gw-a1")["state"] == "lost")
    assert "run out" in a.renew(409)["error"]
    a.client.post(a.path("/sessions"), report, 409)
    a.register()
    a.renew()
    assert w.op.get("/v1/gateways/gw-a1")["state"] == "up"


def test_a_poll_waits_for_what_changes(w):
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)
    out = []
    poll = Gateway(w.ctl.client(w.context["gw-a1"]), "gw-a1", "a", 11)
    generation = a.document()["generation"]
    t = threading.Thread(target=lambda: out.append(poll.client.ask("GET", poll.path(f"/document?after={generation}&wait_ms=20000"))))
    t.start()
    time.sleep(0.3)
    assert not out
    w.op.put("/v1/sites/b", {"prefixes": ["10.2.0.0/16", "10.3.0.0/16"]})
    t.join(60)
    status, d = out.pop()
    assert status == 200 and d["generation"] > generation and d["tunnels"][0]["prefixes"] == ["10.2.0.0/16", "10.3.0.0/16"]
    # it times out; another one takes its place
    assert poll.client.ask("GET", poll.path(f"/document?after={d['generation']}&wait_ms=200"))[0] == 304
    t = threading.Thread(target=lambda: out.append(poll.client.ask("GET", poll.path(f"/document?after={d['generation']}&wait_ms=60000"))))
    t.start()
    other = w.ctl.client(w.context["gw-a1"])

    def takes_its_place():
        """Once it waits, which is not visible from here."""
        assert other.ask("GET", poll.path(f"/document?after={d['generation']}&wait_ms=100"))[0] == 304
        return out
    until(takes_its_place)
    t.join(60)
    assert out.pop()[0] == 304
    # routes wait as well
    r = w.op.get("/v1/routes?site=a")
    assert w.op.ask("GET", f"/v1/routes?site=a&after={r['generation']}&wait_ms=100")[0] == 304
    t = threading.Thread(target=lambda: out.append(other.ask("GET", f"/v1/routes?site=a&after={r['generation']}&wait_ms=20000")))
    t.start()
    time.sleep(0.3)
    w.op.put("/v1/sites/b", SITE_B)
    t.join(60)
    assert out.pop()[0] == 200
    stop()


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


# --- sessions, links, jobs -----------------------------------------------------------------------------------------------------------


def test_sessions_go_by_weight_and_both_directions_together(w):
    w.sites()
    fast = {"bandwidth": 3 * 10**10}
    a1, a2, b1, b2 = gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{"gw-a1": fast})
    stop = keep_alive(w, *gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    pairs = [(f"10.1.1.{i}", f"10.2.1.{i}") for i in range(1, 17)]
    there = {d["id"]: d for d in a1.open(*pairs)}
    back = {d["id"]: d for d in b1.open(*[(d, s) for s, d in pairs])}
    for s, d in pairs:
        assert there[f"{s}-{d}"]["pair"].split("/") == back[f"{d}-{s}"]["pair"].split("/")[::-1]
    first = [d["pair"].split("/")[0] for d in there.values()]
    assert first.count("gw-a1") == 12 and first.count("gw-a2") == 4, first
    listed = w.op.get("/v1/sessions?limit=1000")["sessions"]
    assert len(listed) == 32
    assert len(w.op.get("/v1/sessions?gateway=gw-b1")["sessions"]) == 16
    page = w.op.get("/v1/sessions?limit=20")
    assert len(page["sessions"]) == 20 and len(w.op.get(f"/v1/sessions?after={page['next']}")["sessions"]) == 12
    x = w.op.get(f"/v1/sessions/{listed[0]['id']}/explain")
    assert [a["carrier"] for a in x["alternatives"] if a["chosen"]] == [x["decision"]["carrier"]]
    assert [p["pair"] for p in x["pairs"] if p["chosen"]], x["pairs"]
    w.op.get("/v1/sessions/gw-a1:none/explain", 404)
    routes = {(r["source"], r["destination"]): r["gateways"][0]["gateway"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r}
    for s, d in pairs:
        assert routes[s + "/32", d + "/32"] == there[f"{s}-{d}"]["pair"].split("/")[0]
    general = [r for r in w.op.get("/v1/routes?site=b")["routes"] if "source" not in r]
    assert [r["destination"] for r in general] == ["10.1.0.0/16"] and len(general[0]["gateways"]) == 2
    # existing sessions stay, and so does their other end
    for tunnel in ("gw-b1", "gw-b2"):
        s, d = f"10.1.2.{tunnel[-1]}", f"10.2.2.{tunnel[-1]}"
        here = {"id": tunnel, "event": "opened", "source": s, "destination": d, "tunnel": tunnel}
        assert a2.client.post(a2.path("/sessions"), {"sessions": [here]})["decisions"][0]["pair"] == f"gw-a2/{tunnel}"
        assert b1.open((d, s))[0]["pair"] == f"{tunnel}/gw-a2"
    # one gateway leaves: only its sessions move
    stop()
    stop = keep_alive(w, a1, a2, b1)
    until(lambda: w.op.get("/v1/gateways/gw-b2")["state"] == "lost")
    now = {s["id"]: s for s in w.op.get("/v1/sessions?gateway=gw-a1&limit=1000")["sessions"]}
    for s, d in pairs:
        was, is_ = there[f"{s}-{d}"]["pair"], now[f"gw-a1:{s}-{d}"]["pair"]
        assert is_ == was if was.endswith("gw-b1") else is_.endswith("/gw-b1"), (was, is_)
    assert [t["weight"] for t in a1.document()["tunnels"] if t["name"] == "gw-b2"] == [0]
    # closed, and not moved
    a1.client.post(a1.path("/sessions"), {"sessions": [{"id": f"{s}-{d}", "event": "load", "bytes": 7} for s, d in pairs]})
    assert w.op.get("/v1/sessions?gateway=gw-a1")["sessions"][0]["bytes"] == 7
    a1.client.post(a1.path("/sessions"), {"sessions": [{"id": f"{s}-{d}", "event": "closed"} for s, d in pairs]})
    assert not w.op.get("/v1/sessions?gateway=gw-a1")["sessions"]
    assert "no known site" in a1.open(("10.1.0.1", "10.99.0.1"))[0]["reason"]
    assert "one site" in a1.open(("10.1.0.1", "10.1.0.2"))[0]["reason"]
    for bad, field in [({"id": "1", "event": "opened"}, "source"), ({"id": "1", "event": "load"}, "bytes")]:
        good = {"id": "ok", "event": "opened", "source": "10.1.0.8", "destination": "10.2.0.8"}
        assert a1.client.post(a1.path("/sessions"), {"sessions": [good, bad]}, 400)["field"] == f"sessions[1].{field}"
    assert not [s for s in w.op.get("/v1/sessions?limit=1000")["sessions"] if s["id"].endswith(":ok")]
    stop()


def link(peer, carrier, **v):
    return {"peer": peer, "carrier": carrier, "rtt_us": 20000, "rtt_min_us": 20000, "jitter_us": 100, "loss_ppm": 0, "burst": 1, "bandwidth_bps": 0, "age_ms": 0, **v}


def test_a_tunnel_moves_to_the_carrier_that_is_better(w):
    """TCP has more capacity here; native loses its capability and gets it back."""
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)
    assert a.document()["tunnels"][0]["carrier"] == "native"
    a.client.post(a.path("/links"), {"lease": a.lease, "links": [link("gw-b1", "native"), link("nobody", "tcp")]})
    out = w.op.get("/v1/links")
    assert [(m["gateway"], m["peer"], m["rtt_us"]) for m in out["measured"]] == [("gw-a1", "gw-b1", 20000)]
    assert w.op.get("/v1/tunnels")["tunnels"][0]["rtt_us"] == 20000
    w.net.put("/v1/links/a/b/net", {"class": "deterministic", "bandwidth_bps": 10**9, "delay_us": 5000, "jitter_us": 10, "loss_ppm": 0, "ttl_ms": 60000})
    assert w.op.get("/v1/links")["pushed"][0]["source"] == "net"
    until(lambda: a.document()["tunnels"][0]["rate_bps"] < 2 * 10**9)  # guaranteed by the network
    s = a.open(("10.1.0.3", "10.2.0.3"))[0]
    x = w.op.get(f"/v1/sessions/gw-a1:{s['id']}/explain")
    assert x["inputs"]["class"] == "deterministic" and x["inputs"]["path"]["native"]["bandwidth_bps"]["source"] == "net"
    w.net.put("/v1/links/a/a/net", {"class": "internet", "bandwidth_bps": 1, "delay_us": 1, "jitter_us": 1, "loss_ppm": 1, "ttl_ms": 1000}, 400)
    w.net.put("/v1/links/a/nowhere/net", {"class": "internet", "bandwidth_bps": 1, "delay_us": 1, "jitter_us": 1, "loss_ppm": 1, "ttl_ms": 1000}, 409)
    w.net.delete("/v1/links/a/b/net")
    w.net.delete("/v1/links/a/b/net", 404)
    until(lambda: a.document()["tunnels"][0]["rate_bps"] > 10**10)
    for g, bandwidth in ((a, 10**12), (b, 16 * 10**11)):
        g.reg["capabilities"]["rocev2"]["bandwidth_bps"] = bandwidth
        g.register()
    until(lambda: a.document()["tunnels"][0]["rate_bps"] == 10**12)  # what a gateway takes
    b.reg["capabilities"] = {"tcp": b.reg["capabilities"]["tcp"]}
    b.register()
    until(lambda: a.document()["tunnels"][0]["carrier"] == "tcp" and b.document()["tunnels"][0]["carrier"] == "tcp")
    assert any("from native to tcp" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    stop()


def test_a_tunnel_moves_to_quic_and_back(w):
    """QUIC carries more than the rest where both gateways have registered it; by CUBIC at one end it does not bear loss."""
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)

    def carriers(want):
        until(lambda: all(g.document()["tunnels"][0]["carrier"] == want for g in (a, b)))

    def offers(g, **quic):
        g.reg["capabilities"] = {"rocev2": {"bandwidth_bps": 10**8, "cnp": True}, "tcp": {"bandwidth_bps": 10**8, "algorithms": ["cubic"]}}
        if quic:
            g.reg["capabilities"]["quic"] = quic
        g.register()

    for g in (a, b):
        offers(g)
    carriers("native")
    offers(a, bandwidth_bps=9 * 10**8)
    assert a.document()["tunnels"][0]["carrier"] == "native"  # one end alone
    offers(b, bandwidth_bps=9 * 10**8)
    carriers("quic")
    assert any("from native to quic" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    for g, peer in ((a, "gw-b1"), (b, "gw-a1")):
        g.client.post(g.path("/links"), {"lease": g.lease, "links": [link(peer, "quic", loss_ppm=10000)]})
    assert [m["loss_ppm"] for m in w.op.get("/v1/links")["measured"] if m["carrier"] == "quic"] == [10000, 10000]
    carriers("quic")  # bbr2 bears it
    offers(b, bandwidth_bps=9 * 10**8, congestion_control="cubic")
    carriers("native")
    b.reg["capabilities"]["quic"]["congestion_control"] = "reno"
    assert b.register(400)["field"] == "capabilities.quic.congestion_control"
    stop()


def with_rdma(g, n, bandwidth=9 * 10**9, port=4793):
    """RDMA sends more than the gateway natively: where it is possible it is better, not only first in order."""
    g.reg["capabilities"]["rocev2"]["bandwidth_bps"] = 7 * 10**9
    g.reg["capabilities"]["rdma"] = {"bandwidth_bps": bandwidth, "address": f"203.0.113.{n}:{port}", "qps": 4, "window_bytes": 8 << 20}
    g.register()


def test_a_tunnel_moves_to_rdma_and_back_when_loss_appears(w):
    """RDMA needs both gateways, a path that a network has promised, the bandwidth that its device sends, and hardly a loss."""
    promise = {"class": "reserved", "bandwidth_bps": 10**10, "delay_us": 1000, "jitter_us": 10, "loss_ppm": 0, "ttl_ms": 600000}
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)

    def tunnel(g):
        return g.document()["tunnels"][0]

    def carriers(want):
        until(lambda: tunnel(a)["carrier"] == want and tunnel(b)["carrier"] == want)

    def said():
        s = a.open(("10.1.0.3", "10.2.0.3"))[0]
        return {x["carrier"]: x for x in w.op.get(f"/v1/sessions/gw-a1:{s['id']}/explain")["alternatives"]}["rdma"]["limit"]

    def report(g, peer, **v):
        g.client.post(g.path("/links"), {"lease": g.lease, "links": [link(peer, "rdma", rtt_us=2000, rtt_min_us=2000, **v)]})

    assert tunnel(a)["carrier"] == "native" and "rdma" not in tunnel(a) and said() == "no-source"
    with_rdma(a, 1)
    until(lambda: said() == "no-source")  # one end alone
    assert "rdma" not in tunnel(a)  # a gateway that is older would refuse the document
    with_rdma(b, 2)
    until(lambda: "rdma" in tunnel(a))
    assert tunnel(a)["rdma"] == {"local": "203.0.113.1:4793", "remote": "203.0.113.2:4793"} and tunnel(a)["carrier"] == "native"
    assert tunnel(b)["rdma"] == {"local": "203.0.113.2:4793", "remote": "203.0.113.1:4793"} and said() == "not-reserved"
    w.net.put("/v1/links/a/b/net", promise)
    carriers("rdma")  # nothing is measured yet: what the network says counts
    report(a, "gw-b1")
    report(b, "gw-a1")
    assert any("from native to rdma" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])
    # one end measures loss: back at once, while the other one has measured none
    report(b, "gw-a1", loss_ppm=2000)
    began = time.monotonic()
    carriers("native")
    assert time.monotonic() - began < 3 * SLOW and said() == "go-back-n"
    assert any(x["gateway"] == "gw-b1" and x["carrier"] == "rdma" and x["loss_ppm"] == 2000 for x in w.op.get("/v1/links")["measured"])
    report(b, "gw-a1")
    carriers("rdma")  # clean, for long enough
    w.net.put("/v1/links/a/b/net", {**promise, "bandwidth_bps": 9 * 10**9})
    carriers("native")  # the device would send more than that
    assert said() == "narrow"
    # another port: the two cannot come together by RDMA
    with_rdma(b, 2, port=4794)
    until(lambda: "rdma" not in tunnel(a) and "rdma" not in tunnel(b))
    w.net.delete("/v1/links/a/b/net")
    stop()


def test_jobs_are_planned_refused_and_withdrawn(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{"gw-a1": {"bandwidth": 3 * 10**10}})
    stop = keep_alive(w, *gws)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    job = {"name": "j1", "pairs": [{"source": f"10.1.5.{i}", "destination": f"10.2.5.{i}", "bandwidth_bps": 10**8} for i in range(16)]}
    plan = w.sched.post("/v1/jobs", job, 201)
    first = [r["pair"].split("/")[0] for r in plan["plan"]]
    assert first.count("gw-a1") == 12 and first.count("gw-a2") == 4, first
    assert all(r["gateway_bps"] >= 10**8 and r["edge_bps"] >= r["gateway_bps"] for r in plan["plan"])
    w.sched.post("/v1/jobs", job, 200)  # the same again
    assert w.sched.post("/v1/jobs", {**job, "duration_ms": 5}, 409)["field"] == "name"
    # gateways and hosts get the same for both directions
    told = [(x["source"], x["destination"], g.name, x["tunnel"]) for g in gws for x in g.document()["assignments"]]
    assert len(told) == 32
    for r in plan["plan"]:
        a, b = r["pair"].split("/")
        assert (r["source"], r["destination"], a, b) in told and (r["destination"], r["source"], b, a) in told
    # each gateway knows its sibling, its tunnels and its pairs
    for g, other in ((gws[0], "gw-a2"), (gws[1], "gw-a1"), (gws[2], "gw-b2"), (gws[3], "gw-b1")):
        (s,) = g.document()["siblings"]
        assert s["name"] == other and s["state"] == "up" and len(s["tunnels"]) == 2, s
        assert {(p["source"], p["destination"]) for p in s["pairs"]} == {t[:2] for t in told if t[2] == other}
        for t in next(x for x in gws if x.name == other).document()["tunnels"]:
            assert {"peer": t["peer"], "weight": t["weight"]} in s["tunnels"], (t, s)
    routes = {(r["source"], r["destination"]): r["gateways"][0]["gateway"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r}
    for r in plan["plan"]:
        assert routes[r["source"] + "/32", r["destination"] + "/32"] == r["pair"].split("/")[0]
    opened = gws[0].open(*[(r["source"], r["destination"]) for r in plan["plan"]])
    assert [d["pair"] for d in opened] == [r["pair"] for r in plan["plan"]]
    # too much, and the largest demand that fits
    out = w.sched.post("/v1/jobs", {"name": "j2", "pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**12}]}, 409)
    assert 0 < out["fits"][0]["bandwidth_bps"] < 10**12, out
    w.sched.put("/v1/jobs/j1", {"pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**12}]}, 409)
    assert w.sched.get("/v1/jobs/j1")["plan"] == plan["plan"]  # the old plan stays
    w.sched.put("/v1/jobs/j1", {"pairs": job["pairs"][:2]}, 200)
    assert len(w.sched.get("/v1/jobs/j1")["plan"]) == 2
    ranks = [{"rank": i, "address": f"10.{1 + i // 4}.7.{i}", "stage": i // 4} for i in range(8)]
    w.sched.put("/v1/jobs/pp", {"ranks": ranks, "demand": {"bandwidth_bps": 10**8}}, 201)
    assert len(w.sched.get("/v1/jobs/pp")["plan"]) == 4
    w.sched.put("/v1/jobs/bad", {"ranks": ranks[:7], "demand": {"bandwidth_bps": 10**8}}, 400)
    w.sched.put("/v1/jobs/bad", {"ranks": ranks}, 400)
    w.sched.put("/v1/jobs/bad", {"pairs": job["pairs"], "tenant": "nobody"}, 409)
    # its bandwidth is free again after its withdrawal, or after its end time
    big = {"pairs": [{"source": "10.1.6.1", "destination": "10.2.6.1", "bandwidth_bps": 6 * 10**9}]}
    w.sched.put("/v1/jobs/big", {**big, "duration_ms": 1000}, 201)
    until(lambda: w.sched.ask("GET", "/v1/jobs/big")[0] == 404)
    for name in ("j1", "pp"):
        w.sched.delete(f"/v1/jobs/{name}")
    w.sched.delete("/v1/jobs/j1", 404)
    assert w.sched.get("/v1/jobs")["jobs"] == []
    assert all(not g.document()["assignments"] for g in gws)
    stop()


def test_two_jobs_name_one_pair(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, *gws)
    until(lambda: [t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"])

    def job(bps):
        return {"pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": bps}]}

    def told(g, jobs):
        status, out = g.client.ask("GET", g.path(f"/document?after={g.generation}&wait_ms=1000"))
        g.generation = out["generation"] if status == 200 else g.generation
        return status == 200 and sorted(x["job"] for x in out["assignments"]) == jobs

    def routed():
        return [r["source"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r] == ["10.1.5.1/32"]
    # whichever was first by name or by time: each is told, and the other one stays when it goes
    for first, second in (("j1", "j2"), ("j2", "j1")):
        w.sched.put(f"/v1/jobs/{first}", job(10**8), 201)
        [until(lambda g=g: told(g, [first])) for g in gws]
        w.sched.put(f"/v1/jobs/{second}", job(10**9), 201)
        [until(lambda g=g: told(g, ["j1", "j2"])) for g in gws]
        for name, left in ((first, [second]), (second, [])):
            assert routed()
            w.sched.delete(f"/v1/jobs/{name}")
            [until(lambda g=g: told(g, left)) for g in gws]
        assert not routed()
    # one that changes stays in the list
    w.sched.put("/v1/jobs/j1", job(10**8), 201)
    w.sched.put("/v1/jobs/j2", job(10**8), 201)
    w.sched.put("/v1/jobs/j1", {"pairs": [{"source": "10.1.5.9", "destination": "10.2.5.9", "bandwidth_bps": 10**8}]}, 200)
    assert sorted(r["source"] for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r) == ["10.1.5.1/32", "10.1.5.9/32"]
    stop()


def job_of(net, bps):
    return {"pairs": [{"source": f"10.1.{net}.{i}", "destination": f"10.2.{net}.{k}", "bandwidth_bps": bps} for i in range(4) for k in range(4)]}


def pairs_by_routes(a, b):
    """{(source, destination): (gateway at A, gateway at B)} of the answers to /v1/routes of both sites."""
    there, back = ({(r["source"][:-3], r["destination"][:-3]): r["gateways"][0]["gateway"] for r in said["routes"] if "source" in r} for said in (a, b))
    return {(x, y): (g, back[y, x]) for (x, y), g in there.items() if (y, x) in back}


def pairs_by_job(said):
    return {(r["source"], r["destination"]): tuple(r["pair"].split("/")) for r in said["plan"]}


def four(w):
    fast = {"bandwidth": 3 * 10**10}
    gws = w.gateways("gw-a1", "gw-a2", "gw-b1", "gw-b2", **{"gw-a1": fast, "gw-b1": fast})
    stop = {g.name: keep_alive(w, g) for g in gws}
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 4)
    return gws, stop


def test_pairs_of_a_lost_gateway_go_elsewhere_in_one_step(w):
    w.sites()
    (a1, a2, b1, b2), stop = four(w)
    before = pairs_by_job(w.sched.put("/v1/jobs/j1", job_of(5, 10**8), 201))
    assert len(before) == 16 and any(g == "gw-a2" for g, _ in before.values())
    some = sorted(before, key=lambda p: before[p])[1::2]  # the others have no session
    assert [d["pair"] for d in a2.open(*some)] == ["/".join(before[p]) for p in some]
    # hosts and the gateways at the other end poll
    said, documents, hosts = {}, [], w.ctl.client(w.context["op"])
    generation = w.op.get("/v1/routes?site=a")["generation"]
    peer = Gateway(w.ctl.client(w.context["gw-b1"]), "gw-b1", "b", 21)
    def watch():
        g = peer.document()["generation"]
        while not documents or any(t["weight"] for t in documents[-1]["tunnels"] if t["peer"] == "gw-a2"):
            documents.append(peer.document(after=g, wait_ms=20000))
            g = documents[-1]["generation"]
    threads = [threading.Thread(target=lambda: said.update(hosts.get(f"/v1/routes?site=a&after={generation}&wait_ms=20000"))),
               threading.Thread(target=watch)]
    [t.start() for t in threads]
    stop["gw-a2"]()
    [t.join() for t in threads]
    after = pairs_by_routes(said, w.op.get("/v1/routes?site=b"))
    assert set(after) == set(before)
    for p, gws in before.items():
        assert after[p] == gws if gws[0] != "gw-a2" else after[p][0] == "gw-a1", (p, gws, after[p])
    job = w.sched.get("/v1/jobs/j1")
    assert job["state"] == "planned" and "reason" not in job and pairs_by_job(job) == after
    mine = {p for p, gws in after.items() if gws[1] == "gw-b1"}
    assert {(x["destination"], x["source"]) for x in documents[-1]["assignments"] if x["tunnel"] == "gw-a1"} == mine
    assert len(documents[-1]["assignments"]) == len(mine)
    n = sum(gws[0] == "gw-a2" for gws in before.values())
    texts = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "j1"]
    assert f"{n} of its 16 pairs moved to other gateways" in texts, texts
    (s,) = a1.document()["siblings"]  # its sibling knows
    assert s["state"] == "lost" and {(p["source"], p["destination"]) for p in s["pairs"]} == set(), s
    # the gateway returns: nothing moves
    a2.register()
    assert a2.document()["assignments"] == []
    stop["gw-a2"] = keep_alive(w, a2)
    until(lambda: all(t["weight"] for t in b1.document()["tunnels"]))
    time.sleep(1.5)  # a tick of all parts
    assert pairs_by_job(w.sched.get("/v1/jobs/j1")) == after
    assert pairs_by_routes(w.op.get("/v1/routes?site=a"), w.op.get("/v1/routes?site=b")) == after
    # a removed gateway
    stop["gw-b2"]()
    w.op.delete("/v1/gateways/gw-b2")  # in the same step, too
    assert all(gws[1] == "gw-b1" for gws in pairs_by_job(w.sched.get("/v1/jobs/j1")).values())
    assert all(pairs_by_job(w.sched.get("/v1/jobs/j1"))[p] == gws for p, gws in after.items() if gws[1] == "gw-b1")
    assert len(pairs_by_routes(w.op.get("/v1/routes?site=a"), w.op.get("/v1/routes?site=b"))) == 16
    [stop[g]() for g in ("gw-a1", "gw-a2", "gw-b1")]


def test_gateways_that_are_lost_at_once_are_one_step(w):
    """The controller is stopped while two leases expire: it handles both at once."""
    w.ctl.stop()
    w.ctl.config.write_text(w.ctl.config.read_text().replace(f"lease: {w.lease}", f"lease: {duration(5 * SLOW)}"))
    w.ctl.start()
    w.connect()
    w.sites()
    gws, stop = four(w)
    before = pairs_by_job(w.sched.put("/v1/jobs/j1", job_of(5, 10**8), 201))
    for name in ("gw-a2", "gw-b2"):
        stop[name]()
    time.sleep(3.5 * SLOW)
    w.ctl.proc.send_signal(signal.SIGSTOP)
    time.sleep(2 * SLOW)
    w.ctl.proc.send_signal(signal.SIGCONT)
    until(lambda: {g["name"]: g["state"] for g in w.op.get("/v1/gateways")["gateways"]} ==
          {"gw-a1": "up", "gw-a2": "lost", "gw-b1": "up", "gw-b2": "lost"})
    moved = sum(gws != ("gw-a1", "gw-b1") for gws in before.values())
    texts = [e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e.get("name") == "j1" and "moved" in e["text"]]
    assert texts == [f"{moved} of its 16 pairs moved to other gateways"], texts
    assert set(pairs_by_job(w.sched.get("/v1/jobs/j1")).values()) == {("gw-a1", "gw-b1")}
    [stop[g]() for g in ("gw-a1", "gw-b1")]


def test_a_job_that_does_not_fit_any_more_is_broken_until_it_does(w):
    w.sites()
    gws, stop = four(w)
    a2 = gws[1]
    def routes():
        return pairs_by_routes(w.op.get("/v1/routes?site=a"), w.op.get("/v1/routes?site=b"))
    def state(name):
        return w.sched.get(f"/v1/jobs/{name}")["state"]
    small = pairs_by_job(w.sched.put("/v1/jobs/small", job_of(5, 10**8), 201))
    w.sched.put("/v1/jobs/big", job_of(6, 19 * 10**8), 201)
    big = pairs_by_job(w.sched.get("/v1/jobs/big"))
    stop["gw-a2"]()
    until(lambda: state("big") == "broken")
    said = w.sched.get("/v1/jobs/big")
    assert "a and b" in said["reason"], said["reason"]
    assert all(said["reason"] in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"] if e["name"] == "big" and "broken" in e["text"])
    lost = routes()
    assert len(lost) == 32 and all(g == "gw-a1" for g, _ in lost.values())
    assert all(pairs_by_job(said)[p] == gws for p, gws in big.items() if gws[0] == "gw-a1")
    rest = w.sched.get("/v1/jobs/small")["plan"]
    # it is still there after a restart
    w.ctl.stop()
    w.ctl.start()
    for c in vars(w).values():
        if hasattr(c, "close"):
            c.close()
    assert w.sched.get("/v1/jobs/big")["reason"] == said["reason"] and len(routes()) == 32
    # room again: only the broken one moves
    a2.register()
    stop["gw-a2"] = keep_alive(w, a2)
    until(lambda: state("big") == "planned")
    assert "reason" not in w.sched.get("/v1/jobs/big")
    assert any(g == "gw-a2" for g, _ in pairs_by_job(w.sched.get("/v1/jobs/big")).values())
    assert w.sched.get("/v1/jobs/small")["plan"] == rest and len(small) == 16
    # no gateway at B: no routes, no assignments; the plan is kept until one is there
    plans = [w.sched.get(f"/v1/jobs/{n}")["plan"] for n in ("small", "big")]
    for g in gws[2:]:
        g.renew()  # the first contact after a start has more time
        stop[g.name]()
    until(lambda: state("small") == state("big") == "broken" and not routes())
    until(lambda: all(g.document()["assignments"] == [] for g in gws[:2]))
    assert "no gateway" in w.sched.get("/v1/jobs/small")["reason"]
    for g in gws[2:]:
        g.register()
        stop[g.name] = keep_alive(w, g)
    until(lambda: state("small") == state("big") == "planned" and len(routes()) == 32)
    assert all(len(w.sched.get(f"/v1/jobs/{n}")["plan"]) == len(p) for n, p in zip(("small", "big"), plans))
    [end() for end in stop.values()]


def test_many_broken_jobs_are_tried_in_turns(w):
    """More than are tried in a second, and those of a high priority fit no more: the others come back."""
    w.sites()
    w.op.put("/v1/sites/c", {"prefixes": ["10.3.0.0/16"]}, 201)
    a, b = w.gateways("gw-a1", "gw-b1")
    c = w.gateway("gw-b2", "c", 31)
    c.register()
    stop = keep_alive(w, a, b, c)
    until(lambda: len([t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"]) == 3)
    for i in range(80):
        job = {"pairs": [{"source": f"10.1.7.{i}", "destination": f"10.{2 + i % 2}.7.{i}", "bandwidth_bps": 10**7}], "priority": 7 * (i % 2)}
        w.sched.put(f"/v1/jobs/j{i}", job, 201)

    def states(priority):
        return {j["state"] for j in w.sched.get("/v1/jobs")["jobs"] if j["job"]["priority"] == priority}
    assert states(0) == states(7) == {"planned"}
    for name in ("gw-b1", "gw-b2"):
        w.op.delete(f"/v1/gateways/{name}")
    until(lambda: states(0) == states(7) == {"broken"})
    b.register()
    until(lambda: states(0) == {"planned"})
    assert states(7) == {"broken"}
    c.register()
    until(lambda: states(7) == {"planned"})
    stop()


# --- other requests -------------------------------------------------------------------------------


def test_health_metrics_and_the_page(w):
    w.sites()
    w.op.put("/v1/sites/c", {"prefixes": []}, 201)
    h = w.op.get("/v1/health")
    assert h["ok"] and h["replica"] == "ctl" and h["store"] == "ok"
    w.op.get("/metrics")
    text = w.op.text.decode()
    for line in text.splitlines():
        assert line.startswith("# ") or re.fullmatch(r'roceway_controller_\w+(\{le="[^"]+"\})? [0-9.e+-]+', line), line
    assert "roceway_controller_requests_total" in text
    w.op.ask("GET", "/")
    assert w.op.text.startswith(b"<!doctype html>") and w.op.headers["Content-Type"].startswith("text/html")
    assert "default-src 'self'" in w.op.headers["Content-Security-Policy"] and w.op.headers["X-Content-Type-Options"] == "nosniff"
    import http.client
    c = http.client.HTTPConnection("127.0.0.1", w.ctl.page, timeout=20)
    for path, status in (("/", 200), ("/style.css", 200), ("/js/main.js", 200), ("/v1/gateways", 200), ("/nothing", 404)):
        c.request("GET", path)
        r = c.getresponse()
        r.read()
        assert r.status == status, (path, r.status)
    for method in ("PUT", "POST", "DELETE"):
        c.request(method, "/v1/sites/a", "{}")
        r = c.getresponse()
        r.read()
        assert r.status == 405, (method, r.status)
    after = w.op.get("/v1/events?limit=2")
    assert len(after["events"]) == 2 and w.op.get(f"/v1/events?limit=1&after={after['next']}")["events"][0]["id"] == 3


def test_all_is_there_again_after_a_restart(w):
    w.sites()
    w.op.put("/v1/tenants/red", red(), 201)
    a, b = w.gateways("gw-a1", "gw-b1")
    w.sched.put("/v1/jobs/j", {"pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**8}]}, 201)
    w.sched.put("/v1/jobs/of-red", {"tenant": "red", "pairs": [{"source": "10.1.0.5", "destination": "10.2.0.5", "bandwidth_bps": 10**8}]}, 201)
    before, doc = [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")], a.document()
    routes = w.op.get("/v1/routes?site=a")["routes"]
    assert {x["vni"] for x in doc["assignments"]} == {r["vni"] for r in routes if "source" in r} == {0, 5001}
    for how in (w.ctl.stop, w.ctl.kill):
        how()
        w.ctl.start()
        w.connect()
        a.client, b.client = w.gw_a1, w.gw_b1
        assert before == [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")]
        a.renew()  # its lease continues
        b.renew()
        assert a.document() == doc
        assert sorted(map(str, w.op.get("/v1/routes?site=a")["routes"])) == sorted(map(str, routes))
    w.sched.delete("/v1/jobs/of-red")
    w.op.delete("/v1/tenants/red")
    assert a.document()["generation"] > doc["generation"]
    w.sched.delete("/v1/jobs/j")


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


def test_a_promise_by_a_clock_that_is_ahead_counts(w):
    w.sites()
    gws = w.gateways("gw-a1", "gw-b1")
    w.net.put("/v1/links/a/b/net", {"class": "reserved", "bandwidth_bps": 10**10, "delay_us": 20000, "jitter_us": 100, "loss_ppm": 0, "ttl_ms": 86400000})
    in_store(w, "link/a/b/net", lambda v: {**v, "at_ms": v["at_ms"] + 3600000})
    for g, client in zip(gws, (w.gw_a1, w.gw_b1)):
        g.client = client
    stop = keep_alive(w, *gws)
    until(lambda: [t for t in w.op.get("/v1/tunnels")["tunnels"] if t["state"] == "up"])
    w.sched.put("/v1/jobs/j", {"pairs": [{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 10**8, "delay_us": 25000}]}, 201)
    stop()


def test_a_tenant_whose_jobs_are_there_stays(w):
    w.sites()
    w.op.put("/v1/tenants/red", red(), 201)
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)
    w.sched.put("/v1/jobs/of-red", {"tenant": "red", "pairs": [{"source": "10.1.0.5", "destination": "10.2.0.5", "bandwidth_bps": 10**8}]}, 201)
    until(lambda: a.document()["assignments"])
    assert "job of-red" in w.op.delete("/v1/tenants/red", 409)["error"]
    stop()
    # a store of before that: the job has no tenant, and the next one with its VNI does not get its reservations
    in_store(w, "tenant/red", None)
    a.client, b.client = w.gw_a1, w.gw_b1
    stop = keep_alive(w, a, b)
    w.op.put("/v1/tenants/blue", red(), 201)
    assert a.document()["assignments"] == [] and b.document()["assignments"] == []
    assert [r for r in w.op.get("/v1/routes?site=a")["routes"] if "source" in r] == []
    w.sched.delete("/v1/jobs/of-red")
    w.op.delete("/v1/tenants/blue")
    stop()


def test_gateways_have_time_to_come_back_after_a_start(w):
    """They retry at least every 30 s: a controller that was away longer than a lease does not
    consider all of them lost."""
    w.sites()
    w.gateways("gw-a1", "gw-b1")
    w.sched.put("/v1/jobs/j", {"pairs": [{"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**8}]}, 201)
    before = w.op.get("/v1/jobs")
    for grace in ("", ", grace: 0s"):
        w.ctl.kill()
        w.ctl.config.write_text(w.ctl.config.read_text().replace(f"lease: {w.lease}", f"lease: {w.lease}{grace}"))
        w.ctl.start()
        w.connect()
        if not grace:
            time.sleep(1.5 * SHORT)  # of which nothing shall come
            assert [g["state"] for g in w.op.get("/v1/gateways")["gateways"]] == ["up", "up"]
            assert w.op.get("/v1/jobs") == before
    until(lambda: [g["state"] for g in w.op.get("/v1/gateways")["gateways"]] == ["lost", "lost"])


def test_configuration_that_is_wrong_is_told_with_its_line(w):
    good = w.ctl.config.read_text()
    for old, new, line, what in [("name: ctl", "name: 'a b'", 1, "controller.name"), ("log_level: info", "log_level: loud", 1, "log_level"),
                                 (f"page: \"127.0.0.1:{w.ctl.page}\"", "page: \"192.0.2.1:80\"", 2, "loopback"), (f"lease: {w.lease}", "lease: 1ms", 5, "gateways.lease"),
                                 (f"lease: {w.lease}", "leese: 2s", 5, "leese"), ("tls: {ca:", "tls: {xa:", 3, "xa"), ("store: {", "store: {kind: paper, ", 4, "store.kind"),
                                 ("limits:", "tenants: {first_vni: 9, last_vni: 8}\nlimits:", 6, "`tenants.last_vni` is below first_vni"),
                                 ("limits:", "tenants: {first_vni: 0}\nlimits:", 6, "a number from 1 to 16777215"), ("gateways:", "getaways:", 5, "expected `gateways` or another known key, found `getaways`"),
                                 ("log_level: info", "log_level: info, loglevel: info", 1, "expected `log_level` or another known key of controller, found `loglevel`"),
                                 ("log_level: info", "log_level: info, name: b", 1, "expected each key once, found `name` again (first in line 1)"),
                                 ("gateways:", "store: {kind: sqlite}\ngateways:", 5, "found `store` again (first in line 4)")]:
        f = w.ctl.config.with_name("bad.yaml")
        assert old in good, old
        f.write_text(good.replace(old, new))
        r = subprocess.run([BUILD / "bin/roceway-controller", "--check", f], capture_output=True, text=True)
        assert r.returncode == 2 and f"bad.yaml:{line}:" in r.stderr and what in r.stderr, (new, r.stderr)
    r = subprocess.run([BUILD / "bin/roceway-controller", "--check", f.parent], capture_output=True, text=True)
    assert r.returncode == 2 and "cannot be read: Is a directory" in r.stderr, r
    f.write_text("")
    r = subprocess.run([BUILD / "bin/roceway-controller", "--check", f], capture_output=True, text=True)
    assert r.returncode == 2 and "bad.yaml:1:1: expected keys and their values" in r.stderr, r
    paths = ROOT / "conf/samples/jobs/three-sites.json"
    for text, line, what in [("{}", 1, "expected a list"), ("[7]", 1, "expected keys"), ("[{kind: static}]", 1, "providers[].name` is missing"),
                             ("[{name: n}]", 1, "providers[].kind` is missing"), ("[{name: 'a b', kind: static}]", 1, "providers[].name"),
                             ("[{name: n, kind: mpls}]", 1, "one of static http linux"), ("\n  - name: n\n    kind: static\n    url: x\n", 4, "providers[].url` of kind static"),
                             ("\n  - name: n\n    kind: static\n    file: /nonexistent\n", 2, "provider n: /nonexistent: cannot be read"),
                             ("\n  - {name: n, kind: http, url: 'ftp://x'}\n", 2, "url: has to begin"), ("[{name: n, kind: http, url: []}]", 1, "providers[].url"),
                             (f"[{{name: n, kind: static, file: {paths}, sites: [a]}}]", 1, "at least two sites"),
                             (f"[{{name: n, kind: static, file: {paths}, sites: [a, a]}}]", 1, "each name once"),
                             (f"[{{name: n, kind: static, file: {paths}, file: {paths}}}]", 1, "found `file` again"), ("[{name: n, name: m, kind: static}]", 1, "found `name` again"),
                             (f"[{{name: n, kind: static, file: {paths}, edges: pe-1}}]", 1, "a list of names"),
                             (f"\n  - {{name: n, kind: static, file: {paths}}}\n  - {{name: n, kind: static, file: {paths}}}\n", 3, "another name for each")]:
        f.write_text(good + "providers: " + text + "\n")
        r = subprocess.run([BUILD / "bin/roceway-controller", "--check", f], capture_output=True, text=True)
        at = good.count("\n") + line
        assert r.returncode == 2 and f"bad.yaml:{at}:" in r.stderr and what in r.stderr, (text, at, r.stderr)
    f.write_text(good + f"providers: [{{name: n, kind: static, file: {paths}, sites: [a, b], edges: [pe-1]}}, {{name: m, kind: http, url: 'https://h'}}]\n")
    assert subprocess.run([BUILD / "bin/roceway-controller", "--check", f]).returncode == 0
    # errors that appear only at the start: it reports them and ends
    f.write_text(good + "providers: [{name: n, kind: static, file: /nonexistent}]\n")
    r = subprocess.run([BUILD / "bin/roceway-controller", "--config", f], capture_output=True, text=True)
    assert r.returncode == 2 and "cannot be read" in r.stderr, r.stderr
    r = subprocess.run([BUILD / "bin/roceway-controller", "--check", ROOT / "conf/samples/controller.yaml"], capture_output=True, text=True)
    assert r.returncode == 0 and r.stdout.endswith("controller.yaml: good\n"), r
    for words, what in (((), "no configuration: --config FILE"), (("--check", f, "more"), "too many arguments")):
        r = subprocess.run([BUILD / "bin/roceway-controller", *words], capture_output=True, text=True)
        assert r.returncode == 2 and what in r.stderr, r
    for words in ("--endpoints", "--print-metrics"):
        with open("/dev/full", "w") as full:
            r = subprocess.run([BUILD / "bin/roceway-controller", words], stdout=full, stderr=subprocess.PIPE, text=True)
        assert r.returncode == 1 and r.stderr == "roceway-controller: cannot write to standard output\n", r


# --- stores that fail ------------------------------------------------------------------------------------------------------------------------


NEW = {"vni": 9, "sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vtep"}]}}}
WRITES = [("PUT", "/v1/sites/{name}", "op", {"prefixes": []}), ("DELETE", "/v1/sites/{name}", "op", None), ("PUT", "/v1/tenants/{name}", "op", NEW),
          ("DELETE", "/v1/tenants/{name}", "op", None), ("POST", "/v1/jobs", "sched", None), ("PUT", "/v1/jobs/{name}", "sched", None),
          ("DELETE", "/v1/jobs/{name}", "sched", None), ("PUT", "/v1/links/{site_a}/{site_b}/{source}", "net", BODIES[4][4]),
          ("DELETE", "/v1/links/{site_a}/{site_b}/{source}", "net", None), ("PUT", "/v1/detours/{first}/{second}", "op", {"detour": "tcp"}),
          ("DELETE", "/v1/detours/{first}/{second}", "op", None)]


def store_is_down(w, etcd):
    """All nodes are down: reads work, changes are refused, and when the nodes return all data is
    unchanged."""
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    stop = keep_alive(w, a, b)
    w.op.put("/v1/tenants/old", red(4001), 201)
    w.op.put("/v1/sites/old", {"prefixes": []}, 201)
    pair = {"source": "10.1.5.1", "destination": "10.2.5.1", "bandwidth_bps": 10**8}
    w.sched.put("/v1/jobs/old", {"pairs": [pair]}, 201)
    w.sched.put("/v1/jobs/task1", table3([pod("spare", 1, 7)]), 201)
    w.net.put("/v1/links/a/b/net", BODIES[4][4] | {"bandwidth_bps": 10**11, "ttl_ms": 86400000})
    w.op.put("/v1/detours/gw-a1/gw-b1", {"detour": "tcp"}, 200)
    before = [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")]
    for i in range(3):
        etcd.kill(i)
    for method, path, who, body in WRITES:
        name = "old" if method == "DELETE" else "new"
        if path == "/v1/jobs":
            body = {"name": "new", "pairs": [pair]}
        elif path.startswith("/v1/jobs") and method == "PUT":
            body = {"pairs": [pair]}
        p = path.replace("{name}", name).replace("{site_a}", "a").replace("{site_b}", "b").replace("{source}", "net")
        p = p.replace("{first}", "gw-a1").replace("{second}", "gw-b1")
        out = w.__dict__[who].ask(method, p, body, 503)[1]
        assert "store" in out["error"], out
    w.gw_a2.put("/v1/gateways/gw-a2", registration("a", 12), 503)
    w.op.delete("/v1/gateways/gw-b1", 503)
    w.sched.post("/v1/jobs/task1/failures", {"containers": ["pod-1"]}, 503)
    until(lambda: w.op.ask("GET", "/v1/health")[0] == 503)
    seen.add(("/v1/health", "GET", 503))
    until(lambda: [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")] == before)
    a.renew()
    a.open(("10.1.0.1", "10.2.0.1"))
    for i in range(3):
        etcd.start(i)
    until(lambda: w.op.ask("GET", "/v1/health")[0] == 200)
    assert before == [w.op.get("/v1/" + k) for k in ("sites", "tenants", "jobs")]
    w.op.put("/v1/sites/new", {"prefixes": []}, 201)
    stop()


def two_replicas(w, etcd, directory):
    """What one is told the other knows; a gateway goes from one to the other; one etcd node dies."""
    second = Controller(BUILD, w.ca, directory, etcd.yaml(), name="ctl2", lease=w.lease)
    op2 = second.client(w.context["op"])
    w.sites()
    until(lambda: [s["name"] for s in op2.get("/v1/sites")["sites"]] == ["a", "b"])
    a, b = w.gateways("gw-a1", "gw-b1")
    docs = [a.document(), b.document()]
    a2 = Gateway(second.client(w.context["gw-a1"]), "gw-a1", "a", 11)
    a2.reg, a2.lease, a2.generation = a.reg, a.lease, a.generation
    assert a2.document() == docs[0]
    a2.renew()
    until(lambda: w.op.get("/v1/gateways/gw-a1")["owner"] == "ctl2")
    etcd.kill(0)
    for i in range(5):
        until(lambda i=i: op2.ask("PUT", f"/v1/sites/x{i}", {"prefixes": []})[0] in (200, 201))
        until(lambda i=i: w.op.ask("GET", f"/v1/sites/x{i}")[0] == 200)
    etcd.start(0)
    # the replica of a gateway dies: the other one takes over
    second.kill()
    until(lambda: w.op.get("/v1/gateways/gw-a1")["state"] == "lost")
    a.register()
    assert w.op.get("/v1/gateways/gw-a1")["owner"] == "ctl"


def a_replica_is_cut_off(w, etcd, directory):
    """It sends its gateways to the other one, where they stay up. Then all replicas are cut off: nobody is lost."""
    wires = Wires(etcd)
    second = Controller(BUILD, w.ca, directory, wires.yaml(), name="ctl2", lease=w.lease)
    op2 = second.client(w.context["op"])
    until(lambda: w.said("ctl2", "is there"))
    w.sites()
    b, = w.gateways("gw-b1")
    a = Gateway(second.client(w.context["gw-a1"]), "gw-a1", "a", 11)
    m = Member(second.client(w.context["gw-a2"]), "gw-a2", "a", 12, "m1")
    for g in (a, m):
        until(lambda g=g: g.client.ask("PUT", g.path(), g.reg)[0] == 200)
        g.register()
    until(lambda: w.op.get("/v1/gateways/gw-a1")["owner"] == w.op.get("/v1/gateways/gw-a2")["owner"] == "ctl2")
    going = [True]

    def agent(g, at, context):
        """As a gateway's: it goes to the next controller after 503, and registers there."""
        known = [Gateway(c.client(context), g.name, "a", 0) for c in at]
        more = {"pair": {"member": "m1", "configuration": "0" * 16, "state": "alone", "epoch": 1, "age_ms": 5}} if isinstance(g, Member) else {}
        i, registered = 0, True
        while going[0]:
            k = known[i]
            try:
                if registered:
                    body = {"lease": g.lease, "boot_id": g.reg["boot_id"], "generation_running": 0, "load": LOAD, **more}
                    registered = k.client.ask("POST", g.path("/lease"), body)[0] == 200
                    i = (i + (not registered)) % len(at)
                else:
                    status, out = k.client.ask("PUT", g.path(), g.reg)
                    registered = status == 200
                    g.lease = out["lease"] if registered else g.lease
                    i = (i + (not registered)) % len(at)
            except OSError:
                i, registered = (i + 1) % len(at), False
            time.sleep(0.1)
    threads = [threading.Thread(target=agent, args=(g, at, w.context[g.name]), daemon=True)
               for g, at in ((a, (second, w.ctl)), (m, (second, w.ctl)), (b, (w.ctl, second)))]
    [t.start() for t in threads]

    def lost(op):
        return [e for e in op.get("/v1/events?limit=1000")["events"] if e["what"] == "gateway" and e["text"].startswith("lost")]
    wires.set(True)
    until(lambda: w.said("ctl2", "is gone"))
    until(lambda: {w.op.get(f"/v1/gateways/gw-{n}")["owner"] for n in ("a1", "a2", "b1")} == {"ctl"})
    assert "cut off" in a.client.ask("PUT", a.path(), a.reg, 503)[1]["error"]
    assert ("/v1/gateways/{name}/lease", "POST", 503) in seen
    time.sleep(SHORT + 1)  # more than a term
    assert not lost(w.op)
    wires.set(False)
    until(lambda: op2.get("/v1/gateways") and all(op2.get(f"/v1/gateways/gw-{n}")["owner"] == "ctl" for n in ("a1", "a2", "b1")))
    until(lambda: any("in touch" in e["text"] for e in op2.get("/v1/events?limit=1000")["events"]))
    # nobody has a store
    for i in range(3):
        etcd.kill(i)
    until(lambda: b.client.ask("PUT", b.path(), b.reg)[0] == 503)
    time.sleep(SHORT + 1)
    for i in range(3):
        etcd.start(i)
    until(lambda: w.op.ask("GET", "/v1/health")[0] == 200 and op2.ask("GET", "/v1/health")[0] == 200)
    time.sleep(SHORT + 1)
    assert not lost(w.op) and not lost(op2)
    assert {g["state"] for g in w.op.get("/v1/gateways")["gateways"]} == {"up"}
    going[0] = False
    [t.join() for t in threads]
    second.kill()


def two_replicas_and_a_job(w, etcd, directory):
    """A gateway is lost, another one removed: both replicas see it, one plan comes of it."""
    second = Controller(BUILD, w.ca, directory, etcd.yaml(), name="ctl2", lease=w.lease)
    op2 = second.client(w.context["op"])
    w.sites()
    gws, stop = four(w)
    before = pairs_by_job(w.sched.put("/v1/jobs/j1", job_of(5, 10**8), 201))
    until(lambda: op2.ask("GET", "/v1/jobs/j1")[0] == 200)
    def same(gone):
        plans = [pairs_by_job(op.get("/v1/jobs/j1")) for op in (w.op, op2)]
        routes = [pairs_by_routes(op.get("/v1/routes?site=a"), op.get("/v1/routes?site=b")) for op in (w.op, op2)]
        return plans[0] == plans[1] == routes[0] == routes[1] and not any(gone in gws for gws in plans[0].values()) and plans[0]
    stop["gw-a2"]()
    after = until(lambda: same("gw-a2"))
    assert len(after) == 16 and all(after[p] == gws for p, gws in before.items() if "gw-a2" not in gws)
    stop["gw-b2"]()
    w.op.delete("/v1/gateways/gw-b2")  # no replica's lease: both replicas make a plan
    last = until(lambda: same("gw-b2"))
    assert len(last) == 16 and all(last[p] == gws for p, gws in after.items() if "gw-b2" not in gws)
    for op in (w.op, op2):
        texts = [e["text"] for e in op.get("/v1/events?limit=1000")["events"] if e["name"] == "j1"]
        assert sum("pairs moved" in t for t in texts) == 2, texts
    [stop[g]() for g in ("gw-a1", "gw-b1")]
    second.kill()


def full_store(directory):
    w = World("full_store", directory, f"{{kind: sqlite, path: {directory}/full.db, max_size: 1MiB}}", limits="{body: 1MiB}")
    status, n = 201, 0
    while status == 201 and n < 100:
        status, out = w.op.ask("PUT", f"/v1/sites/f{n}", {"prefixes": [f"10.{n}.{i}.0/24" for i in range(64)], "location": "x" * 120})
        n += status == 201
        if status == 201 and n % 10 == 0:
            w.op.put(f"/v1/jobs/none{n}", {"pairs": [{"source": "10.1.0.1", "destination": "10.2.0.1", "bandwidth_bps": 1}]}, None)
        big = {"vni": 1000 + n, "sites": {f"f{n - 1}": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vlan"}], "vlan": 100 + n}}}
        big["acl"] = [{"action": "deny", "source": f"10.1.0.{i & 255}/32", "destination": "any"} for i in range(1000)]
        if status == 201:
            status, out = w.op.ask("PUT", f"/v1/tenants/t{n}", big)
    assert status == 503 and "full" in out["error"], (status, out, n)
    assert len(w.op.get("/v1/sites")["sites"]) == n
    w.op.delete("/v1/tenants/t1")  # room again
    w.op.put("/v1/sites/small", {"prefixes": []}, 201)
    w.ctl.stop()


def run(name, *args):
    try:
        globals()[name](*args)
        print(f"[  PASSED  ] 1 test: {name}", flush=True)
        return True
    except Exception:
        traceback.print_exc()
        print(f"[  FAILED  ] 1 test: {name}", flush=True)
        return False


def chosen(names):
    return [n for n in names if not sys.argv[2:] or any(o in n for o in sys.argv[2:])]


def sqlite_test(name):
    """A test with a store of its own in SQLite."""
    with temporary() as d:
        w = World(name, d, f"{{kind: sqlite, path: {d}/c.db}}")
        ok = run(name, w)
        try:
            w.ctl.stop()
        except AssertionError as e:
            ok = False
            print("it does not end well:", e)
        if not ok:
            print("--- its log\n" + w.ctl.log.read_text()[-2500:])
        return ok


def broken(only=()):
    results = []
    for name in ("store_is_down", "two_replicas", "a_replica_is_cut_off", "two_replicas_and_a_job", "two_replicas_and_a_network", "pairs_and_replicas"):
        if only and name not in only:
            continue
        with temporary() as d:
            etcd = Etcd(Path(d) / "etcd")
            w = World(name, d, etcd.yaml())
            args = (w, etcd) if name == "store_is_down" else (w, etcd, d)
            results.append(run(name, *args))
            if not results[-1]:
                print("--- its log\n" + w.ctl.log.read_text()[-2500:])
            w.ctl.kill()
            etcd.close()
    if not only or "full_store" in only:
        with temporary() as d:
            results.append(run("full_store", d))
    return results


def unmet():
    """Parts of the file that no test reached."""
    from ctlr.harness import resolve
    out = []
    for path, methods in SPEC["paths"].items():
        for method, op in methods.items():
            for status in op["responses"] if method in ("get", "put", "post", "delete") else []:
                if status == "405":  # among the methods that do not exist
                    continue
                if (path, method.upper(), int(status)) not in seen:
                    out.append(f"{method.upper()} {path} {status}")
    return out


def main():
    if sys.argv[2:3] == ["broken"]:
        results = broken(sys.argv[3:])
    else:
        with ThreadPoolExecutor(4) as pool:  # they mostly wait
            long = [] if sys.argv[2:] else [pool.submit(suite_etcd), pool.submit(broken)]
            short = [pool.submit(sqlite_test, n) for n in chosen(n for n in list(globals()) if n.startswith("test_"))]
            results = [r for f in long for r in f.result()] + [f.result() for f in short]
    if not sys.argv[2:]:
        missing = unmet()
        print("not met:", missing)
        results.append(not missing)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


def suite_etcd():
    """Runs those that write over one etcd one after the other, each with its own prefix."""
    results = []
    names = ["test_tenants_that_clash_are_refused", "test_of_many_who_want_one_vni_one_gets_it", "test_a_gateway_registers_and_is_told_what_to_do",
             "test_stale_leases_and_generations_are_refused", "test_a_poll_waits_for_what_changes", "test_sessions_go_by_weight_and_both_directions_together",
             "test_a_tunnel_moves_to_the_carrier_that_is_better", "test_jobs_are_planned_refused_and_withdrawn",
             "test_pairs_of_a_lost_gateway_go_elsewhere_in_one_step", "test_a_job_that_does_not_fit_any_more_is_broken_until_it_does",
             "test_all_is_there_again_after_a_restart", "test_a_job_gets_tunnels_of_its_network", "test_a_network_that_fails_leaves_nothing_behind",
             "test_what_was_granted_and_not_kept_is_given_back_after_a_crash", "test_the_white_papers_job_over_its_three_sites",
             "test_named_queue_pairs_have_a_pair_of_gateways_each", "test_table_3_gets_ranks_and_what_they_demand",
             "test_a_dead_server_is_replaced_and_the_rest_stays"]
    with temporary() as d:
        etcd = Etcd(Path(d) / "etcd")
        for i, name in enumerate(names):
            sub = Path(d) / str(i)
            sub.mkdir()
            w = World(name, sub, etcd.yaml()[:-1] + f", prefix: /t{i}/}}")
            results.append(run(name, w))
            if not results[-1]:
                print("--- its log\n" + w.ctl.log.read_text()[-2500:])
            w.ctl.kill()
        etcd.close()
    return results


sys.exit(main())
