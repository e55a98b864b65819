#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_report.py BUILD: roceway report, against the simulated gateway of tests/component/api/server.c
# with conf/samples/gateway.yaml.
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import cases

sys.argv = sys.argv[:2]
from cli_api import CLI, ROOT, Server, cli  # noqa: E402
from cli_recorder import story, write  # noqa: E402


def unpack(path):
    with tarfile.open(path) as t:
        assert all(m.name.split("/")[0] == "roceway-report" for m in t.getmembers()), t.getnames()
        return {m.name.removeprefix("roceway-report/"): t.extractfile(m).read().decode(errors="replace") for m in t.getmembers() if m.isfile()}


def report(server, folder, *words, want=0, env=None):
    r = subprocess.run([CLI, "--socket", server, "report", "--interval", "0", *words], cwd=folder, capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})
    assert r.returncode == want, (r.returncode, r.stdout, r.stderr)
    return r


def test_everything():
    with tempfile.TemporaryDirectory() as d:
        conf = Path(d) / "gateway.yaml"
        text = (ROOT / "conf/samples/gateway.yaml").read_text()
        conf.write_text(text + "# 'etcd_password' : hunter2\n# {user: a, Password: hunter3}\n# url: https://me:hunter4@host/\n")
        with Server(f"conf={conf}") as s:
            name = report(s.path, d, want=0).stdout.strip()
            assert re.fullmatch(r"roceway-report-site-a-\d{8}T\d{6}Z\.tar\.gz", name), name
            assert stat.S_IMODE((Path(d) / name).stat().st_mode) == 0o600
            files = unpack(Path(d) / name)
            assert json.loads(files["recorder.json"])["entries"][0]["kind"] == "start"
            for part in ("status", "health", "tunnels", "flows", "tenants", "memory", "ports", "neighbours", "siblings", "workers", "offload", "controller", "standby", "reservations", "links", "map", "counters-1", "counters-2"):
                assert isinstance(json.loads(files[part + ".json"]), dict), part
            assert "roceway_tunnel_up" in files["metrics.txt"] and "Linux" in files["kernel.txt"]
            kept = files["configuration.yaml"]
            assert kept.startswith(text) and "hunter" not in "".join(files.values())
            assert kept.count("removed") == 3 and "https://removed@host/" in kept
            other = Path(d) / "other.tar.gz"
            assert report(s.path, d, "--output", str(other)).stdout.strip() == str(other) and "status.json" in unpack(other)
            r = report(s.path, d, "--output", f"{d}/none/x.tar.gz", want=1)
            assert "cannot write" in r.stderr


def test_recorders_of_processes_that_are_gone():
    with tempfile.TemporaryDirectory() as d:
        conf, journal = Path(d) / "gateway.yaml", Path(d) / "journal"
        conf.write_text((ROOT / "conf/samples/gateway.yaml").read_text().replace("/run/roceway/journal", str(journal)))
        journal.mkdir()
        write(journal / "roceway-site-a.recorder.crash", story())
        (journal / "roceway-site-a.recorder.last").write_text("damaged")
        with Server(f"conf={conf}") as s:
            r = report(s.path, d)
            assert "roceway-site-a.recorder.last: not the file of a flight recorder" in r.stderr
            files = unpack(Path(d) / r.stdout.strip())
            assert [e["kind"] for e in json.loads(files["roceway-site-a.recorder.crash.json"])["entries"]] == ["start", "tunnel", "begin", "timeout", "fail"]


def test_without_a_gateway():
    before = set(Path("/tmp").glob("roceway-report-*"))
    with tempfile.TemporaryDirectory() as d:
        name = report(f"{d}/none.sock", d, want=1).stdout.strip()
        files = unpack(Path(d) / name)
        assert "does not answer" in files["missing.txt"] and "cpuinfo.txt" in files and "status.json" not in files
    assert set(Path("/tmp").glob("roceway-report-*")) <= before, "a folder is left behind"


def test_a_gateway_that_goes():
    """It answers at first: the report has what it said, and the exit status tells that this is not all."""
    with tempfile.TemporaryDirectory() as d, Server() as s:
        out, tmp = Path(d) / "x.tar.gz", Path(d) / "tmp"
        tmp.mkdir()
        p = subprocess.Popen([CLI, "--socket", s.path, "report", "--interval", "1", "--output", out], stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp)})
        end = time.monotonic() + 30
        while not list(tmp.glob("roceway-report-*/drain.json")):
            assert p.poll() is None and time.monotonic() < end
            time.sleep(0.01)
        s.proc.stdin.close()  # it ends
        s.proc.stdin = None
        s.proc.wait(20)
        said = p.communicate(timeout=30)[1]
        files = unpack(out)
        assert p.returncode == 1 and "cannot reach the gateway" in said and "does not answer" in files["missing.txt"], (p.returncode, said)
        assert "counters-1.json" in files and "counters-2.json" not in files


def test_interrupt_and_full_disk():
    """Nothing is left behind, neither the folder nor a part of the file, and one line says why."""
    with tempfile.TemporaryDirectory() as d, Server() as s:
        tmp, out = Path(d) / "tmp", Path(d) / "x.tar.gz"
        tmp.mkdir()
        env = {**os.environ, "TMPDIR": str(tmp)}
        for sig in signal.SIGINT, signal.SIGTERM:
            p = subprocess.Popen([CLI, "--socket", s.path, "report", "--interval", "60", "--output", out], stderr=subprocess.PIPE, text=True, env=env)
            end = time.monotonic() + 30
            while not list(tmp.glob("roceway-report-*/counters-1.json")):
                assert p.poll() is None and time.monotonic() < end
                time.sleep(0.01)
            p.send_signal(sig)
            said = p.communicate(timeout=30)[1]
            assert p.returncode == 1 and said == "roceway: interrupted\n", (p.returncode, said)
            assert not out.exists() and not list(tmp.iterdir())
        r = report(s.path, d, "--output", "/dev/full", want=1, env=env)
        assert r.stderr == "roceway: cannot write /dev/full: No space left on device\n" and not r.stdout, r
        assert Path("/dev/full").is_char_device() and not list(tmp.iterdir())
        for size in 8, 12, 16, 20, 24:  # it becomes full in one part or in another
            small = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size}k tmpfs "$0" && "$@"; code=$?; ls -A "$0"; exit $code', tmp]
            if subprocess.run([*small, "true"], capture_output=True).returncode:
                break  # not root
            r = subprocess.run([*small, CLI, "--socket", s.path, "report", "--interval", "0", "--output", tmp / "x"], capture_output=True, text=True, timeout=60)
            assert r.returncode == 1 and r.stdout == "" and "No space left on device" in r.stderr, r
        r = report(s.path, d, want=1, env={"TMPDIR": d + "/none"})
        assert f"cannot make {d}/none/roceway-report-" in r.stderr, r


def program(folder, name, text):
    (folder / name).write_text("#!/bin/sh\n" + text)
    (folder / name).chmod(0o755)


def test_log_on_a_full_disk():
    """A log that does not fit fails as any other part does; one whose program is killed is named."""
    with tempfile.TemporaryDirectory() as d:
        folder, out = Path(d), Path(d) / "x.tar.gz"
        env = {**os.environ, "PATH": f"{d}:{os.environ['PATH']}", "TMPDIR": d}
        words = [CLI, "--socket", f"{d}/none.sock", "report", "--interval", "0", "--output", out]
        program(folder, "journalctl", "yes line | head -c 3000000; exit 0\n")
        size = 2000000  # more than any other part
        r = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        assert r.returncode == 1 and not out.exists(), r
        assert re.search(r"roceway: cannot write the report's parts in .*: File too large\n", r.stderr), r
        assert not list(folder.glob("roceway-report-*")), "a folder is left behind"
        program(folder, "journalctl", "echo a line; kill -9 $$\n")
        r = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env)
        files = unpack(out)
        assert files["log.txt"] == "a line\n" and "log.txt: journalctl was killed by a signal\n" in files["missing.txt"], files["missing.txt"]


BAD_CLOSE = """
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int close(int fd)
{
	char link[64], path[512];
	const char *bad = getenv("BAD_CLOSE");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, path, sizeof(path) - 1);
	const int rc = (int)syscall(SYS_close, fd);
	path[n > 0 ? n : 0] = 0;
	if (rc || !bad || !strstr(path, bad))
		return rc;
	errno = EDQUOT;
	return -1;
}
"""


def test_files_that_are_there():
    """A failure leaves the older file as it was; a symbolic link stays one; the mode is the new file's."""
    with tempfile.TemporaryDirectory() as d, Server() as s:
        old, link, away = Path(d) / "old.tar.gz", Path(d) / "link.tar.gz", Path(d) / "away.tar.gz"
        old.write_text("older")
        old.chmod(0o644)
        link.symlink_to("old.tar.gz")
        away.symlink_to("none/x")
        program(Path(d), "tar", "head -c 100000 /dev/zero; exit 2\n")
        r = report(s.path, d, "--output", str(link), want=1, env={"PATH": f"{d}:{os.environ['PATH']}"})
        assert r.stderr == f"roceway: cannot write {link}: tar failed\n" and not r.stdout, r
        assert link.is_symlink() and old.read_text() == "older"
        (Path(d) / "tar").unlink()
        lib = Path(d) / "bad_close.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-include", "stdio.h", "-x", "c", "-o", lib, "-"], input=BAD_CLOSE, text=True, check=True, timeout=60)
        bad = {"LD_PRELOAD": str(lib), "BAD_CLOSE": "old.tar.gz", "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
        for name in old, link:
            r = report(s.path, d, "--output", str(name), want=1, env=bad)
            assert r.stderr == f"roceway: cannot write {name}: Disk quota exceeded\n" and not r.stdout, r
        assert link.is_symlink() and old.read_text() == "older"
        r = report(s.path, d, "--output", str(away), want=1)
        assert r.stderr == f"roceway: cannot write {away}: No such file or directory\n" and away.is_symlink(), r
        assert report(s.path, d, "--output", str(link)).stdout == f"{link}\n"
        assert link.is_symlink() and "status.json" in unpack(old) and stat.S_IMODE(old.stat().st_mode) == 0o600
        assert {p.name for p in Path(d).iterdir()} == {"old.tar.gz", "link.tar.gz", "away.tar.gz", "bad_close.so"}


def test_wrong_usage():
    for words in (["--interval", "-1"], ["--interval", "nan"], ["--interval", "1x"], ["more"], ["--output"]):
        assert cli(["report", *words], 2).stderr.startswith("roceway: ")


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
