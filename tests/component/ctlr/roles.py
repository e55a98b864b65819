# SPDX-License-Identifier: Apache-2.0
# Certificates, roles and paths: tests of controller_api.py.
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import warnings

from ctlr.harness import CA, ROOT, SPEC, registration
from ctlr.world import BUILD, url


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
    # neither an unreadable list nor that of another CA changes anything
    crl = w.ca.dir / "crl.pem"
    good = crl.read_bytes()
    for bad in (b"rubbish", (foreign.dir / "crl.pem").read_bytes(), good + (foreign.dir / "crl.pem").read_bytes()):
        crl.write_bytes(bad)
        w.ctl.hup()
        w.op.get("/v1/health")
        gone.close()
        gone.get("/v1/health", 403)
    assert "crl.pem: expected a revocation list that one of the CAs signed, found one of `CN=Roceway CA`" in w.ctl.log.read_text()
    # one that has ended revokes as before, and that is said
    subprocess.run(["openssl", "ca", "-config", w.ca.dir / "ca.cnf", "-gencrl", "-crl_lastupdate", "20200101000000Z",
                    "-crl_nextupdate", "20200201000000Z", "-out", crl], env={**os.environ, "SAN": "DNS:none"}, check=True, capture_output=True)
    w.ctl.hup()
    gone.close()
    gone.get("/v1/health", 403)
    assert "the revocation list ended on 2020-02-01T00:00:00Z" in [e for e in w.op.get("/v1/events?limit=1000")["events"] if e["what"] == "tls"][-1]["text"]
    w.ca.run("crl")
    w.ctl.hup()
    assert [e for e in w.op.get("/v1/events?limit=1000")["events"] if e["what"] == "tls"][-1]["text"] == "CA and revocation list read again"
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
                  ("issue", "a", "operator", "10.0.0.1"), ("revoke", "ca"), ("revoke", "nothing"), ("init",), ("init", "more"), ("list", "more"), ("crl", "more")):
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
    if os.geteuid() == 0:
        for where in "", "/ca":  # a folder that he may not enter, and one that he cannot see
            with tempfile.TemporaryDirectory() as d:
                if where:
                    shutil.copytree(w.ca.dir, d + where)
                r = subprocess.run(["sh", "-s", d + where, "list"], stdin=(ROOT / "tools/ca/roceway-ca").open(), user=65534, capture_output=True, text=True, cwd="/")
                assert r.returncode == 1 and r.stderr == f"roceway-ca: {d}{where}: Permission denied\n", r


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


def test_a_controller_that_cannot_start_says_why(w):
    """Its key is open to others; its address is no address of this machine."""
    def said():
        out = subprocess.run([w.ctl.program, "--config", w.ctl.config], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
        assert out.returncode == 1, (out.returncode, out.stderr[-1000:])
        return out.stderr
    w.ctl.stop()
    key, text = w.ca.dir / "ctl.key", w.ctl.config.read_text()
    for mode in (0o644, 0o604, 0o660):
        key.chmod(mode)
        assert f"{key}: expected a file that others can neither read nor write (mode 0600 or 0640), found mode {mode:04o}" in said()
    key.chmod(0o640)
    w.ctl.config.write_text(text.replace(f"address: \"127.0.0.1:{w.ctl.port}", f"address: \"192.0.2.77:{w.ctl.port}"))
    assert f"cannot listen on 192.0.2.77:{w.ctl.port}: Cannot assign requested address" in said()
    w.ctl.config.write_text(text)
    w.ctl.start()
    w.connect()
    w.op.get("/v1/health")


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
