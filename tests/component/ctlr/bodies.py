# SPDX-License-Identifier: Apache-2.0
# Bodies and clients with something wrong, each way that controller/openapi.yaml allows: tests of controller_api.py.
import re
import socket
import ssl
import time
from pathlib import Path

from ctlr.harness import LOAD, SPEC, registration, seen, until
from ctlr.world import BUILD, url


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
    ("POST", "/v1/gateways/{name}/sessions", "nobody", "SessionReport", {"lease": "0123456789abcdef", "all_part": 1, "all_last": True, "sessions": [
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
