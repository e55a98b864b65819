#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may do what at the API's socket (docs/security.md, "The local API"), at a real gateway, by processes of other users and groups.

The world is that of gw_smoke.py. Needs root. Arguments: the build folder, and a part of the names of the tests to run.
"""
import contextlib
import http.client
import json
import os
import pickle
import re
import shutil
import socket
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402

NOBODY = 65534
# Groups that every Debian has, and that the user of these tests is not in.
READ, OPERATE, OTHER = ("audio", 29), ("video", 44), ("games", 60)
GROUPS = "  read_group: %s\n  operator_group: %s\n" % (READ[0], OPERATE[0])
# (uid, gid, supplementary groups) and their roles
ROOT = (0, 0, [])
OPERATORS = {"root": ROOT, "operator": (NOBODY, NOBODY, [OPERATE[1]]), "operator by primary group": (NOBODY, OPERATE[1], []),
             "operator and reader": (NOBODY, NOBODY, [READ[1], OPERATE[1]])}
READER, STRANGER = (NOBODY, NOBODY, [5, READ[1], OTHER[1]]), (NOBODY, NOBODY, [OTHER[1]])
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# All that readers may do. A page that is not here, or a method, is for operators.
READERS = {"/v1", "/v1/status", "/v1/flows", "/v1/recorder", "/v1/standby", "/v1/tunnels", "/v1/tenants", "/v1/tenants/NAME", "/v1/memory", "/v1/drain", "/v1/counters", "/v1/ports",
           "/v1/neighbours", "/v1/links", "/v1/map", "/v1/siblings", "/v1/reservations", "/v1/workers", "/v1/controller", "/v1/offload", "/metrics", "/livez",
           "/readyz", "/healthz"}
OPERATORS_ONLY = {"/v1/tunnels/NAME", "/v1/reload", "/v1/capture", "/v1/map/NAME"}


def as_user(user, fn):
    """What fn returns in a process of this user; an OSError is raised here."""
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            uid, gid, groups = user
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            out = fn()
        except OSError as e:
            out = e
        with os.fdopen(w, "wb") as f:
            pickle.dump(out, f)
        os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        out = pickle.load(f)
    os.waitpid(pid, 0)
    if isinstance(out, OSError):
        raise out
    return out


def connection(path):
    c = http.client.HTTPConnection("gateway", timeout=30)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(path)  # without a time limit it waits where the gateway's queue is full
    c.sock.settimeout(30)
    return c


def ask(path, method, url, body=None):
    c = connection(path)
    c.request(method, url, body)
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return r.status, text


def ask_as(user, path, method, url, body=None):
    return as_user(user, lambda: ask(path, method, url, body))


def cli(user, folder, *words):
    uid, gid, groups = user
    who = ("setpriv", "--reuid=%d" % uid, "--regid=%d" % gid, "--groups=%s" % ",".join(map(str, groups)) if groups else "--clear-groups")
    return subprocess.run(who + (os.path.join(folder, "roceway"), "--socket", os.path.join(folder, "a.sock")) + words, capture_output=True, text=True, timeout=60)


def counters(folder):
    listed = json.loads(ask(os.path.join(folder, "a.sock"), "GET", "/v1/counters")[1])["counters"]
    return {c["name"]: c["value"] for c in listed if c["group"] == "api"}


def rewrite(a, api):
    """The configuration with these lines in `api`."""
    folder = os.path.dirname(a.config)
    with open(a.config) as f:
        text = f.read()
    with open(a.config, "w") as f:
        f.write(text[:text.index("\napi:")].replace("journal_dir: %s}" % folder, "journal_dir: %s/journal}" % folder) + "\napi:\n%s%s" % ("" if "socket:" in api else "  socket: %s\n" % a.config.replace("a.yaml", "a.sock"), api))


@contextlib.contextmanager
def gateway(folder, api=GROUPS):
    os.chmod(folder, 0o755)
    shutil.copy(os.path.join(lab.BUILD, "bin", "roceway"), folder)
    a = lab.Gateway(folder, "a")
    rewrite(a, api)
    try:
        yield a.start().wait(" ready"), os.path.join(folder, "a.sock")
        code, _ = a.stop()
        assert code == 0, (code, a.text())
    finally:
        a.kill()


def until(what, true):
    end = time.monotonic() + lab.READY
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def pages(path):
    return json.loads(ask(path, "GET", "/v1")[1])["pages"]


def url_of(page):
    """A request that does nothing when it is allowed: the parameter is unknown."""
    return page["path"].replace("NAME", "x") + "?unknown=1"


# --- roles ------------------------------------------------------------------------------------


def test_every_page(folder):
    """Each method of each page, by each role: readers may GET what READERS names and nothing else; the table in GET /v1 says the same."""
    with gateway(folder) as (_, path):
        listed = pages(path)
        assert {p["path"] for p in listed} == READERS | OPERATORS_ONLY, "a new page: READERS or OPERATORS_ONLY has to name it"
        assert not READERS & OPERATORS_ONLY

        def status(user, page, method):
            return ask_as(user, path, method, url_of(page))[0]
        for page in listed:
            has = page["methods"].split()
            assert page["role"] == {m: "reader" if m == "GET" and page["path"] in READERS else "operator" for m in has}, page
            for method in METHODS:
                here = method in has or (method == "HEAD" and "GET" in has)
                for name, user in OPERATORS.items():
                    assert status(user, page, method) == (400 if here else 405), (name, method, page)
                may = method in ("GET", "HEAD") and page["path"] in READERS
                assert status(READER, page, method) == (405 if not here else 400 if may else 403), (method, page)
        assert_refused_by_kernel(STRANGER, path)
        assert [json.loads(ask_as(u, path, "GET", "/v1")[1])["role"] for u in (ROOT, OPERATORS["operator"], READER)] == ["operator", "operator", "reader"]


def assert_refused_by_kernel(user, path):
    try:
        ask_as(user, path, "GET", "/v1")
        raise AssertionError("%s may connect" % (user,))
    except PermissionError:
        pass


def test_strangers_that_connect(folder):
    """The kernel keeps users without a role out. If it did not, the gateway would: for every page, also for one that is not there."""
    with gateway(folder) as (a, path):
        os.chmod(path, 0o666)
        n = 0
        for page in pages(path):
            for method in METHODS:
                code, text = ask_as(STRANGER, path, method, url_of(page))
                assert code == 403 and (method == "HEAD" or "`audio`" in text and "`video`" in text), (page, method, code, text)
                n += 1
        for url in "/", "/v1/nothing":
            assert ask_as(STRANGER, path, "GET", url)[0] == 403, url
        assert counters(folder) == {"refused_strangers": n + 2, "refused_readers": 0, "refused_full": 0}, counters(folder)
        assert re.search(r"refused uid=65534 gid=65534 pid=\d+ role=nobody request=GET /v1 ", a.text())


def test_readers_change_nothing(folder):
    """What a reader sends has no effect, and what would tell of payload gives nothing; the same from an operator works, and is logged."""
    with gateway(folder) as (a, path):
        tenant = '{"vni": 77, "prefixes": [{"prefix": "10.1.0.0/24", "at": "vtep"}]}'
        code, text = ask_as(READER, path, "PUT", "/v1/tenants/red", tenant)
        assert code == 403 and json.loads(ask(path, "GET", "/v1/tenants")[1])["tenants"] == [], text
        assert ask_as(READER, path, "PUT", "/v1/tenants/red", tenant[:20] + " " * (1 << 19))[0] == 403
        for method, url in ("GET", "/v1/capture?seconds=1"), ("GET", "/v1/capture?check=1"), ("DELETE", "/v1/capture"), ("GET", "/v1/drain?told=1"):
            code, text = ask_as(READER, path, method, url)
            assert code == 403 and "`video` (api.operator_group)" in json.loads(text)["error"], (url, text)
        assert ask_as(READER, path, "POST", "/v1/drain")[0] == 403 and ask_as(READER, path, "POST", "/v1/reload")[0] == 403
        assert json.loads(ask_as(READER, path, "GET", "/v1/status")[1])["state"] == "running"
        code, text = ask_as(OPERATORS["operator"], path, "PUT", "/v1/tenants/red", tenant)
        assert code == 201, text
        a.wait(" request=PUT /v1/tenants/red status=201")
        assert re.search(r" api: uid=65534 pid=\d+ request=PUT /v1/tenants/red status=201$", a.text(), re.M), a.text()
        assert [t["name"] for t in json.loads(ask_as(READER, path, "GET", "/v1/tenants")[1])["tenants"]] == ["red"]
        assert ask_as(OPERATORS["operator"], path, "GET", "/v1/capture?check=1")[0] == 200
        assert ask_as(OPERATORS["operator"], path, "DELETE", "/v1/tenants/red")[0] == 200


def test_command(folder):
    """The command says in one line which group may do it, and exits with 1."""
    with gateway(folder):
        assert cli(READER, folder, "status").returncode == 0
        for user, words, want in ((READER, ("reload",), "user 65534 may only read: this is for root and members of group `video` (api.operator_group)"),
                                  (READER, ("capture", "-w", "/dev/null", "-c", "1"), "members of group `video` (api.operator_group)"),
                                  (STRANGER, ("status",), "only root and members of group `audio`, `video` may"),
                                  (STRANGER, ("capture", "-w", "-"), "only root and members of group `audio`, `video` may")):
            r = cli(user, folder, *words)
            assert r.returncode == 1 and want in r.stderr and r.stderr.count("\n") == 1 and r.stdout == "", (words, r)
        r = cli(OPERATORS["operator"], folder, "reload")
        assert r.returncode == 0, r


def test_log_is_bounded(folder):
    """Each refusal is counted; the log has the first ones, with user and request, and then one a second. A request cannot write lines of its own."""
    with gateway(folder) as (a, path):
        def many():
            for i in range(200):
                assert ask(path, "DELETE", "/v1/tenants/%%0Aforged%d" % i)[0] == 403
        began = time.monotonic()
        as_user(READER, many)
        took = time.monotonic() - began
        assert counters(folder)["refused_readers"] == 200
        lines = [line for line in a.text().splitlines() if "refused uid=" in line]
        assert 10 <= len(lines) <= 12 + took, (len(lines), took)
        assert all(re.search(r" api: refused uid=65534 gid=65534 pid=\d+ role=reader request=DELETE /v1/tenants/ forged\d+ not_logged=\d+$", line) for line in lines), lines
        assert not any(line.startswith("forged") for line in a.text().splitlines())


# --- the socket's file ------------------------------------------------------------------------


def acl(path):
    """(mode, gids that the access control list lets in)."""
    out = []
    with contextlib.suppress(OSError):
        data = os.getxattr(path, "system.posix_acl_access")
        for at in range(4, len(data), 8):
            tag, perm, gid = (int.from_bytes(data[at + i:at + i + n], "little") for i, n in ((0, 2), (2, 2), (4, 4)))
            if tag == 8 and perm == 6:
                out.append(gid)
    return stat.S_IMODE(os.stat(path).st_mode), sorted(out)


def test_reload(folder):
    """Groups change with a reload, for the file of the socket and for requests; an unknown group is refused, and nothing changes."""
    with gateway(folder, "") as (a, path):
        assert acl(path) == (0o600, []), acl(path)
        for user in READER, OPERATORS["operator"], STRANGER:
            assert_refused_by_kernel(user, path)
        r = cli(READER, folder, "status")
        assert r.returncode == 1 and "only root may: api.read_group and api.operator_group of its configuration name no group" in r.stderr, r

        def reloaded(api, want=200):
            rewrite(a, api)
            code, text = ask(path, "POST", "/v1/reload")
            assert code == want, (code, text)
            return text
        reloaded(GROUPS)
        assert acl(path) == (0o660, [READ[1], OPERATE[1]]), acl(path)
        assert ask_as(READER, path, "POST", "/v1/reload")[0] == 403 and ask_as(OPERATORS["operator"], path, "POST", "/v1/reload")[0] == 200

        def over_one_connection(parent):
            c = connection(path)
            while parent.recv(1):
                c.request("DELETE", "/v1/capture")
                r = c.getresponse()
                r.read()
                parent.sendall(b"%d" % r.status)
        with reader(over_one_connection) as other:
            other.sendall(b"x")
            assert other.recv(3) == b"403"
            reloaded("  operator_group: %d\n" % READ[1])
            other.sendall(b"x")
            assert other.recv(3) == b"404"  # allowed now: there is no capture
        assert acl(path) == (0o660, [READ[1]])
        assert_refused_by_kernel(OPERATORS["operator"], path)
        text = reloaded("  operator_group: no-such-group\n", 409)
        assert "expected the name or number of a group of this machine for `operator_group`, found `no-such-group`" in text, text
        assert acl(path) == (0o660, [READ[1]]) and ask_as(READER, path, "DELETE", "/v1/tenants/x")[0] == 404
        reloaded("")
        assert acl(path) == (0o600, []), acl(path)


@contextlib.contextmanager
def reader(fn):
    """fn(read, write) in a process of a reader, beside this one: (read, write) here, of the other ends."""
    there, here = socket.socketpair()
    pid = os.fork()
    if not pid:
        here.close()
        os.setgroups(READER[2])
        os.setresgid(READER[1], READER[1], READER[1])
        os.setresuid(READER[0], READER[0], READER[0])
        try:
            fn(there)
        finally:
            os._exit(0)
    there.close()
    here.settimeout(30)
    try:
        yield here
    finally:
        here.close()
        os.waitpid(pid, 0)


def test_without_lists(folder):
    """On a file system without access control lists everybody can connect; the gateway refuses, and the log says why it is so."""
    there = os.path.join(folder, "there")
    os.mkdir(there)
    lab.sh("mount", "-t", "ramfs", "-o", "mode=755", "ramfs", there)
    try:
        with gateway(folder, GROUPS.replace("  read", "  socket: %s/s\n  metrics: unix:%s/metrics\n  read" % (there, there))) as (a, _):
            path, metrics = os.path.join(there, "s"), os.path.join(there, "metrics")
            assert acl(path) == (0o666, []) and "everybody may connect, and is refused then" in a.text()
            assert ask_as(STRANGER, path, "GET", "/v1/status")[0] == 403
            assert ask_as(READER, path, "GET", "/v1/status")[0] == 200 and ask_as(READER, path, "POST", "/v1/reload")[0] == 403
            for _ in range(2):
                assert acl(metrics) == (0o660, []) and "%s cannot have an access control list (Operation not supported): groups may not connect" % metrics in a.text()
                for user in STRANGER, READER:  # no roles are behind it
                    assert_refused_by_kernel(user, metrics)
                assert ask_as(ROOT, metrics, "GET", "/metrics")[0] == 200
                assert ask_as(OPERATORS["operator"], path, "POST", "/v1/reload")[0] == 200
    finally:
        lab.sh("umount", there)


def test_metrics_socket(folder):
    """It has no roles but the groups: who may connect reads the metrics, and nothing else."""
    path = os.path.join(folder, "metrics")
    with gateway(folder, GROUPS + "  metrics: unix:%s\n" % path) as (a, _):
        assert acl(path) == (0o660, [READ[1], OPERATE[1]])
        for user in READER, OPERATORS["operator"], ROOT:
            assert ask_as(user, path, "GET", "/metrics")[0] == 200 and ask_as(user, path, "GET", "/v1/status")[0] == 404
            assert ask_as(user, path, "POST", "/v1/reload")[0] == 404
        assert_refused_by_kernel(STRANGER, path)
        rewrite(a, "  metrics: unix:%s\n" % path)
        assert ask(path.replace("metrics", "a.sock"), "POST", "/v1/reload")[0] == 200
        assert_refused_by_kernel(READER, path)


def test_one_group_for_both(folder):
    with gateway(folder, "  read_group: %d\n  operator_group: audio\n" % READ[1]) as (_, path):
        assert acl(path) == (0o660, [READ[1]])
        assert ask_as(READER, path, "POST", "/v1/reload")[0] == 200


def test_readers_leave_room(folder):
    """A reader that holds all the connections that it can get does not keep an operator out."""
    with gateway(folder) as (_, path):
        def hold(parent):
            held = [socket.socket(socket.AF_UNIX) for _ in range(60)]
            for s in held:
                s.connect(path)
            parent.sendall(b"x")
            parent.recv(1)
        with reader(hold) as other:
            assert other.recv(1) == b"x"
            until("those beyond the bound are closed", lambda: counters(folder)["refused_full"] >= 60 - 24)
            assert ask_as(OPERATORS["operator"], path, "GET", "/livez")[0] == 200


# --- the file of the configuration ------------------------------------------------------------


def test_check(folder):
    """An unknown group is one message with its line."""
    a = lab.Gateway(folder, "a")
    for group, good in (("audio", True), ("29", True), ("4294967294", True), ("no-such-group", False), ("4294967295", False), ("-1", False), ("nogroup", False)):
        rewrite(a, "  read_group: '%s'\n" % group)
        r = subprocess.run((lab.GATEWAY, "--check", a.config), capture_output=True, text=True)
        with open(a.config) as f:
            line = f.read().splitlines().index("  read_group: '%s'" % group) + 1
        assert (r.returncode == 0) == good, (group, r)
        assert good or re.fullmatch(r".*a\.yaml:%d:\d+: expected .*`read_group`.*\n" % line, r.stderr), r.stderr


if __name__ == "__main__":
    sys.exit(drain.main(globals(), lab.topology))
