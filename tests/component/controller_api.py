#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# controller_api.py BUILD: the controller over SQLite and over three etcd nodes, compared with
# controller/openapi.yaml: tests reach every path, method and status of the file, with right and
# with wrong requests of gateways and operators.
import re
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from ctlr.harness import LOAD, ROOT, SPEC, Etcd, Gateway, seen, temporary, until  # noqa: E402
from ctlr.bodies import (  # noqa: E402, F401
    test_a_body_of_100_mb_is_not_read, test_a_body_with_one_thing_wrong_is_refused_with_its_name, test_a_client_that_does_not_read_is_cut_off,
    test_a_client_that_dribbles_is_cut_off, test_addresses_and_prefixes_are_what_they_say, test_parameters_are_held_to_as_well, BODIES)
from ctlr.failing_stores import a_replica_is_cut_off, full_store, store_is_down, two_replicas, two_replicas_and_a_job  # noqa: E402, F401
from ctlr.jobs import (  # noqa: E402, F401
    test_a_job_that_does_not_fit_any_more_is_broken_until_it_does, test_gateways_that_are_lost_at_once_are_one_step,
    test_jobs_are_planned_refused_and_withdrawn, test_many_broken_jobs_are_tried_in_turns, test_pairs_of_a_lost_gateway_go_elsewhere_in_one_step,
    test_two_jobs_name_one_pair)
from ctlr.roles import (  # noqa: E402, F401
    test_a_certificate_that_does_not_hold_is_refused, test_a_controller_that_cannot_start_says_why, test_a_gateway_is_itself_only, test_a_refused_certificate_leaves_the_one_before,
    test_addresses_of_a_certificate, test_every_path_wants_a_certificate_of_a_role_that_may, test_plain_http_without_tls_is_no_way_in,
    test_the_ca_knows_addresses_from_names, test_the_ca_refuses_what_would_spoil_it, test_the_program_says_the_same_paths_as_the_file)
from ctlr.sessions import (  # noqa: E402, F401
    test_a_tunnel_moves_to_quic_and_back, test_a_tunnel_moves_to_rdma_and_back_when_loss_appears, test_a_tunnel_moves_to_the_carrier_that_is_better,
    test_sessions_end_that_a_report_of_all_does_not_name, test_sessions_go_by_weight_and_both_directions_together)
from ctlr.tenants import (  # noqa: E402, F401
    test_a_tenant_whose_jobs_are_there_stays, test_of_many_who_want_one_vni_one_gets_it, test_tenants_that_clash_are_refused,
    test_tenants_without_a_vni_get_one_of_their_own, red)
from ctlr.world import BUILD, SHORT, SITE_B, World, in_store, keep_alive  # noqa: E402, F401
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
    test_a_plan_follows_what_is_measured, test_a_promise_is_for_all_jobs_together, test_bytes_with_a_deadline_become_a_rate, test_jobs_of_one_deadline_end_together)
from ctlr.relays import (  # noqa: E402, F401
    test_a_lost_relay_is_said_to_be_lost, test_a_relay_says_what_it_is_and_has_no_tenants, test_hosts_are_told_which_relays_and_when_that_changes, test_hosts_keep_leases, test_links_have_an_end_at_each_relay, test_relays_go_to_relays_and_gateways_to_gateways,
    test_a_stolen_certificate_of_a_host_is_noticed_and_ends, test_redirects_follow_load_and_family, test_wrong_relays_are_refused)
from ctlr.steering import test_a_path_that_a_network_lost_is_left, test_gateways_send_along_what_was_granted  # noqa: E402, F401
from ctlr.qps import (  # noqa: E402, F401
    test_named_queue_pairs_have_a_pair_of_gateways_each, test_queue_pairs_that_nobody_named_are_spread_as_they_are_reported)
from ctlr.ranks import (  # noqa: E402, F401
    test_a_dead_server_is_replaced_and_the_rest_stays, test_a_job_waits_for_its_containers_and_is_undone, test_a_report_of_failures_preempts_nobody_again,
    test_a_report_of_failures_waits_for_who_changes_the_tunnels, test_a_start_script_gets_the_ranks_of_its_container,
    test_figure_31_puts_the_middle_site_in_the_middle, test_splits_that_cannot_be_are_refused, test_table_3_gets_ranks_and_what_they_demand)
from ctlr.strangers import (  # noqa: E402, F401
    test_a_deadline_that_is_past_leaves_the_job_as_it_was, test_of_many_schedulers_one_gets_a_container, test_what_cannot_be_planned_changes_nothing)


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


def test_a_gateway_at_a_site_that_is_not_there_is_told(w):
    """A mistake in its configuration: no tenant is there, and no prefix."""
    def told():
        return [e["severity"] for e in w.op.get("/v1/events?limit=1000")["events"] if e.get("name") == "gw-a1" and "its site zz has no record" in e["text"]]
    w.sites()
    a, _ = w.gateways("gw-a1", "gw-b1")
    assert told() == []
    a.register(site="zz")
    assert told() == ["warning"]
    a.register(site="zz", version="0.1.1")
    assert told() == ["warning"]
    a.register(site="a")
    # a restart reads gateways before sites
    w.ctl.stop()
    w.ctl.start()
    w.connect()
    assert not any("has no record" in e["text"] for e in w.op.get("/v1/events?limit=1000")["events"])


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
