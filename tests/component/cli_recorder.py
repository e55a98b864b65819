#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_recorder.py BUILD: roceway recorder, with the simulated gateway of tests/component/api/server.c
# (its story is in tests/component/api/recorder.c), and with files. Kinds are those of docs/recorder.md.
import ipaddress
import json
import re
import struct
import sys
import tempfile
from pathlib import Path

import cases

sys.argv = sys.argv[:2]
from cli_api import ROOT, Server, cli, fits  # noqa: E402

KINDS = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/recorder.md").read_text(), re.M)
HEAD, ENTRIES = 4096, 64


# --- the API -------------------------------------------------------------------------------------------


def test_page():
    with Server() as s:
        every = s.get("/v1/recorder")["entries"]
        assert 20 < len(every) < 100 and [e["number"] for e in every] == list(range(1, len(every) + 1))
        assert every[0]["kind"] == "start" and every[0]["local"] == "" and every[1]["tunnel"] == "site-b"
        times = [e["time"] for e in every]
        assert times == sorted(times) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", times[0])
        assert 50 < every[-1]["ago_seconds"] < every[0]["ago_seconds"] < 1000
        assert {e["kind"] for e in every} <= set(KINDS)
        fail = s.get("/v1/recorder?kind=fail")["entries"]
        assert len(fail) == 1 and fail[0]["text"] == "requester failed at PSN 5: retry count exceeded", fail
        assert (fail[0]["local"], fail[0]["remote"], fail[0]["side"], fail[0]["to"]) == ("10.1.0.2", "10.2.0.2", "requester", "remote operational error")
        state = [e for e in every if e["kind"] == "responder"][0]
        assert (state["from"], state["to"], state["psn"]) == ("waiting", "running", 17)


def test_filters():
    with Server("workers=2") as s:
        every = s.get("/v1/recorder")["entries"]
        times = [e["time"] for e in every]
        assert {e["worker"] for e in every} == {0, 1} and times == sorted(times)

        def same(url, keep):
            assert s.get("/v1/recorder?" + url)["entries"] and [(e["worker"], e["number"]) for e in s.get("/v1/recorder?" + url)["entries"]] == [(e["worker"], e["number"]) for e in every if keep(e)], url
        same("worker=1", lambda e: e["worker"] == 1)
        same("local=10.1.0.2", lambda e: e["local"] == "10.1.0.2")
        same("remote=10.2.0.0&worker=0", lambda e: e["remote"] == "10.2.0.0" and e["worker"] == 0)
        same("qpn=16", lambda e: e["local_qpn"] == 16)
        same("qpn=0xffff02", lambda e: e["remote_qpn"] == 0xffff02)
        same("vni=0", lambda e: e["local"])
        same("kind=tunnel", lambda e: e["kind"] == "tunnel")
        newest = s.get("/v1/recorder?limit=3")["entries"]
        assert [e["number"] for e in newest] == [e["number"] for e in every[-3:]]
        assert s.get("/v1/recorder?local=10.9.9.9")["entries"] == []


def test_a_worker_that_hangs_is_read():
    with Server("workers=2", "stuck=1") as s:
        assert {e["worker"] for e in s.get("/v1/recorder")["entries"]} == {0, 1}


def test_errors():
    with Server() as s:
        for url in "limit=0", "limit=10001", "worker=1", "worker=x", "qpn=16777216", "local=10.1", "kind=odd", "vni=16777216", "foo=1":
            assert s.get("/v1/recorder?" + url, 400)["error"], url


# --- the command ---------------------------------------------------------------------------------------


def test_table():
    with Server() as s:
        text = s.cli("recorder").stdout
        fits(text)
        assert re.search(r"^\d\d:\d\d:\d\d\.\d{6}  -  +-  -  +-  tunnel site-b: down$", text, re.M), text
        assert re.search(r"  10\.1\.0\.1 +\?  10\.2\.0\.1  16776961  responder enters", text), text
        assert re.search(r"\n\d+ entries, from \d{4}-\d\d-\d\d on\n$", text), text
        text = s.cli("recorder --local 10.1.0.2 --limit 3").stdout
        fits(text)
        assert text.startswith("local host 10.1.0.2, remote host 10.2.0.2\n\nTIME (UTC) ") and text.count("16776962") == 3
        assert s.cli("recorder --qpn 4711").stdout == "no entries\n"
        said = json.loads(s.cli("recorder --kind fail --json").stdout)
        assert said["entries"][0]["kind"] == "fail"
        assert "there is no kind odd" in s.cli("recorder --kind odd", 2).stderr
        for bad in "0", "x", "10001":
            assert "--limit: expected" in s.cli(f"recorder --limit {bad}", 2).stderr
    with Server("workers=2") as s:
        text = s.cli("recorder").stdout
        fits(text)
        assert "WORKER" in text


# --- files of processes that are gone ------------------------------------------------------------------


def entry(seq, kind, at, local="", remote="", local_qpn=0, remote_qpn=0, side=0, vni=0, was=0, to=0, psn=0, value=0, name=b""):
    def mapped(a):
        return b"\0" * 10 + b"\xff\xff" + ipaddress.ip_address(a).packed
    hosts = mapped(local) + mapped(remote) if local else name.ljust(32, b"\0")
    return struct.pack("<IIQ32sIIII", seq, value, at, hosts, local_qpn | (KINDS.index(kind) + 1) << 24, remote_qpn | side << 24, vni | was << 24, psn | to << 24)


def write(path, *workers, magic=b"10CERYWR"):
    """The file that engine/recorder.h describes; a worker is a list of entries from number 1 on."""
    head = struct.pack("<8sIIQQII64s32s", magic, len(workers), ENTRIES, 1_700_000_000 * 10**9, 100 * 10**9, 0, 77, b"site-a", b"0.1.0")
    with open(path, "wb") as f:
        f.write(head.ljust(HEAD, b"\0"))
        for entries in workers:
            f.write(struct.pack("<II", len(entries), ENTRIES).ljust(64, b"\0"))
            slots = [b"\0" * 64] * ENTRIES
            for i, e in enumerate(entries, 1):
                slots[i % ENTRIES] = e
            f.write(b"".join(slots))


def story(first=1):
    flow = {"local": "10.1.0.2", "remote": "10.2.0.2", "local_qpn": 18, "remote_qpn": 77, "side": 2}
    return [entry(1, "start", 10**9), entry(2, "tunnel", 2 * 10**9, to=1, name=b"b1"), entry(3, "begin", 3 * 10**9, **flow),
            entry(4, "timeout", 4 * 10**9, psn=9, value=1, **flow), entry(5, "fail", 5 * 10**9, psn=9, to=0x63, value=2, **flow)]


def test_file():
    with tempfile.TemporaryDirectory() as d:
        path = f"{d}/roceway-site-a.recorder.crash"
        write(path, story(), [entry(1, "start", 3 * 10**9 + 5000)])
        said = json.loads(cli(["recorder", "--file", path, "--json"]).stdout)["entries"]
        assert [(e["worker"], e["number"]) for e in said] == [(0, 1), (0, 2), (0, 3), (1, 1), (0, 4), (0, 5)], said
        assert said[-1]["text"] == "requester failed at PSN 9: retry count exceeded" and said[-1]["ago_seconds"] == 95
        assert said[-1]["time"] == "2023-11-14T22:13:25.000000Z" and said[3]["time"] == "2023-11-14T22:13:23.000005Z"
        assert said[1]["text"] == "tunnel b1: up"
        text = cli(["recorder", "--file", path, "--local", "10.1.0.2"]).stdout
        fits(text)
        assert text.startswith("local host 10.1.0.2, remote host 10.2.0.2\n") and "\n3 entries, from 2023-11-14 on\n" in text, text
        for words, n in ((["--worker", "1"], 1), (["--qpn", "77"], 3), (["--kind", "tunnel"], 1), (["--limit", "2"], 2), (["--vni", "0"], 3), (["--vni", "7"], 0), (["--remote", "10.9.9.9"], 0)):
            assert len(json.loads(cli(["recorder", "--file", path, "--json", *words]).stdout)["entries"]) == n, words
        for words in ["--local", "x"], ["--qpn", "16777216"], ["--vni", "x"], ["--kind", "odd"], ["--worker", "-1"]:
            assert cli(["recorder", "--file", path, *words], 2).stderr.startswith("roceway: --"), words
        r = cli(["recorder", "--file", path, "--worker", "2"], 1)
        assert r.stdout == "" and r.stderr == f"roceway: --worker: {path} has workers 0 to 1\n", r


def test_damaged_files():
    with tempfile.TemporaryDirectory() as d:
        path = f"{d}/x"
        # An entry that was being written when the process died, and bytes of nothing.
        broken = story()
        broken[3] = b"\0\0\0\0" + broken[3][4:]
        broken[4] = broken[4][:50] + b"\xff" * 14
        write(path, broken)
        said = json.loads(cli(["recorder", "--file", path, "--json"]).stdout)["entries"]
        assert [e["number"] for e in said] == [1, 2, 3, 5] and said[-1]["kind"] == "?", said
        whole = Path(path).read_bytes()
        for bad in b"", whole[:100], whole[:-1], b"\xff" * len(whole), whole[:8] + b"\xff" * 8 + whole[16:]:
            Path(path).write_bytes(bad)
            assert "not the file of a flight recorder" in cli(["recorder", "--file", path], 1).stderr
        assert "No such file" in cli(["recorder", "--file", f"{d}/none"], 1).stderr
        # A worker that never began.
        Path(path).write_bytes(whole[:HEAD] + b"\0" * (len(whole) - HEAD))
        assert cli(["recorder", "--file", path]).stdout == "no entries\n"


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
