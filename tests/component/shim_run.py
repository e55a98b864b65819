#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# shim_run.py BUILD: roceway-run without a relay: its words, messages and exit statuses, the environment of the program; and the
# symbols of the libraries, as programs look for them. With relays and hosts: tests/e2e/test_relay_run.py.
import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
RUN = BUILD / "bin/roceway-run"
VERBS, REDIRECT = BUILD / "lib/librwyverbs.so", BUILD / "lib/librwyredirect.so"


def run(*words, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ROCEWAY_VIA", "ROCEWAY_REDIRECT")}
    r = subprocess.run([RUN, *map(str, words)], capture_output=True, text=True, timeout=30, env={**clean, **env}, stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout, r.stderr


def test_environment():
    code, out, _ = run("--via", "192.0.2.1,weight=2", "--via", "192.0.2.2", "--", "env", LD_PRELOAD="/lib/x86_64-linux-gnu/libm.so.6")
    env = dict(line.split("=", 1) for line in out.splitlines())
    assert code == 0 and env["ROCEWAY_VIA"] == "192.0.2.1,weight=2 192.0.2.2", env
    first, second, before = env["LD_PRELOAD"].split(":")
    assert Path(first).samefile(REDIRECT) and Path(second).samefile(VERBS) and before.endswith("libm.so.6"), env
    # one inside another: the inner one decides
    code, out, _ = run("--via", "192.0.2.1", RUN, "--via", "192.0.2.3", "env")
    assert "ROCEWAY_VIA=192.0.2.3\n" in out, out
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("redirect 10.0.0.0/8 via 192.0.2.1\n")
        f.flush()
        code, out, _ = run("--via", "192.0.2.1", RUN, "--config", f.name, "env")
        assert f"ROCEWAY_REDIRECT={f.name}\n" in out and "ROCEWAY_VIA" not in out, out


def test_program():
    assert run("--via", "192.0.2.1", "sh", "-c", "exit 7")[0] == 7
    code, _, err = run("--via", "192.0.2.1", "no-such-program")
    assert code == 127 and "no-such-program: No such file" in err, err


def test_usage():
    for words in ((), ("--via",), ("--via", "192.0.2.1"), ("--colour", "red", "true"), ("--check", "--via", "192.0.2.1", "true")):
        code, out, err = run(*words)
        assert code == 2 and "usage: roceway-run" in err and not out, (words, code, err)
    code, out, err = run("--via", "192.0.2.1", "--config", "/dev/null", "--check")
    assert code == 2 and err == "roceway: --via and --config exclude each other\n", (code, err)
    assert subprocess.run([RUN, "--version"], stdout=open("/dev/full", "w"), check=False).returncode == 1
    assert run("-h")[:2] == run("--help")[:2] and run("--help")[:1] == (0,) and run("--version")[1].startswith("roceway-run ")


def test_bad_files():
    with tempfile.TemporaryDirectory() as d:
        f = Path(d) / "redirect.conf"
        for text, words in (("redirect 10.0.0.0/8\n", ":1: expected `via`, found nothing"), ("\n\nhello\n", ":3: expected redirect PREFIX"),
                            ("#" * 600000, "expected a file of at most 524288 bytes, found more"), ("# nothing\n", "no relay is known: " + str(f) + " has no line `redirect"),
                            ("\0redirect 10.0.0.0/8 via 192.0.2.1\n", ":1: expected text, found a zero byte"),
                            ("redirect 10.0.0.0/8 via 192.0.2.1\n\0", ":2: expected text, found a zero byte")):
            f.write_text(text)
            code, _, err = run("--config", f, "true")
            assert code == 2 and words in err and len(err.splitlines()) == 1, (text[:20], err)
        os.mkfifo(f"{d}/fifo")
        code, _, err = run("--config", f"{d}/fifo", "--check")
        assert code == 2 and "no relay is known" in err, err
        code, _, err = run("--config", f"{d}/none", "true")
        assert code == 2 and "No such file" in err, err
    code, _, err = run("--via", "relay.example", "true")
    assert code == 2 and "expected the address of a relay, found `relay.example`" in err, err


def test_check():
    code, out, _ = run("--via", "127.0.0.9,port=9", "--check")  # nobody is there, and the kernel says so at once
    assert code == 1 and "127.0.0.9 port 9 order 1 weight 1: no answer" in out, out


def test_symbols():
    """Programs find them by version, with dlvsym() too; what librwyverbs does not have it gets from libibverbs, as NCCL_IBVERBS_LIB needs."""
    libc = ctypes.CDLL(None)
    libc.dlvsym.restype = ctypes.c_void_p
    libc.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]

    class Info(ctypes.Structure):
        _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]

    def home(lib, name, version):
        at, info = libc.dlvsym(lib._handle, name.encode(), version.encode()), Info()
        assert at, (name, version)
        libc.dladdr(ctypes.c_void_p(at), ctypes.byref(info))
        return os.path.basename(info.file.decode())

    verbs = ctypes.CDLL(str(VERBS), os.RTLD_NOW | os.RTLD_LOCAL)
    for name in ("ibv_modify_qp", "ibv_query_qp", "ibv_destroy_qp"):
        assert home(verbs, name, "IBVERBS_1.1") == "librwyverbs.so", name
    for name in ("ibv_get_device_list", "ibv_open_device", "ibv_create_qp", "ibv_reg_mr", "ibv_query_gid"):
        assert home(verbs, name, "IBVERBS_1.1").startswith("libibverbs.so.1"), name
    assert home(verbs, "ibv_query_ece", "IBVERBS_1.10").startswith("libibverbs.so.1")
    redirect = ctypes.CDLL(str(REDIRECT), os.RTLD_NOW | os.RTLD_LOCAL)
    for name in ("rdma_resolve_addr", "rdma_create_ep", "rdma_connect", "rdma_get_cm_event", "rdma_destroy_id"):
        assert home(redirect, name, "RDMACM_1.0") == "librwyredirect.so", name
    # Nothing else of theirs is seen by the program.
    for lib, own in ((VERBS, 3), (REDIRECT, 5)):
        out = subprocess.run(["nm", "-D", "--defined-only", lib], capture_output=True, text=True, check=True).stdout
        assert sum(" T " in line for line in out.splitlines()) == own, out


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
