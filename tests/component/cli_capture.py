#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cli_capture.py BUILD: roceway capture and tools/extcap against the simulated gateway of tests/component/api/server.c, which has no
packets: the stream and its ends, refusals, files, and what Wireshark asks an extcap program. gw_capture.py has packets."""
import contextlib
import json
import os
import re
import resource
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time

import cases

sys.argv = sys.argv[:2]
from bad_captures import pcapng, session  # noqa: E402
from cli_api import CLI, ROOT, Server, cli  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/lib"))
from captured import Capture  # noqa: E402

EXTCAP = ROOT / "tools/extcap/roceway-extcap"
END = 30  # seconds at most for what must come


def until(true):
    end = time.monotonic() + END
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def begin(s, path, *words):
    if os.path.exists(path):
        os.unlink(path)
    p = subprocess.Popen([CLI, "--socket", s.path, "capture", "-w", path, *words], stderr=subprocess.PIPE, text=True)
    until(lambda: os.path.exists(path) and os.path.getsize(path) or p.poll() is not None)
    return p


def tshark(path, *words):
    return subprocess.run(["tshark", "-n", "-r", path, *words], capture_output=True, text=True, timeout=60)


def refused(s, *words, want=1):
    r = cli(["--socket", s.path, "capture", *words], want)
    assert r.stderr.startswith("roceway: ") and not r.stdout, r
    return r.stderr


def test_file():
    with Server() as s, tempfile.TemporaryDirectory() as d:
        path = d + "/x.pcapng"
        r = subprocess.run([CLI, "--socket", s.path, "capture", f"-w{path}", "--seconds", "1"], capture_output=True, text=True, timeout=60)
        assert (r.returncode, r.stdout, r.stderr) == (0, "", "0 packets written, 0 lost\n"), r
        assert os.stat(path).st_mode & 0o777 == 0o600
        said = subprocess.run(["capinfos", path], capture_output=True, text=True, check=True, timeout=60).stdout
        for words in ("Number of interfaces in file: 4", "Name = lan lan-in", "Name = wan wan-out", "tunnel name=site-b", "local_qpn=0x10", "Roceway"):
            assert words in said, (words, said)
        assert tshark(path).returncode == 0


def test_ends():
    """By an interrupt, a client that dies, a gateway that stops; one at a time, and the next one can begin."""
    with tempfile.TemporaryDirectory() as d:
        path = d + "/x.pcapng"
        with Server() as s:
            p = begin(s, path)
            assert "another capture runs" in refused(s, "-w", d + "/y")
            assert s.request("/v1/status")[0] == 200, "the API waits for the capture"
            p.send_signal(signal.SIGINT)
            assert p.wait(END) == 0
            p.communicate()
            p = begin(s, path)
            p.kill()
            p.communicate()
            p = begin(s, path, "--seconds", "1")
            assert p.communicate(timeout=END)[1] == "0 packets written, 0 lost\n" and p.returncode == 0
            assert s.request("/v1/capture?seconds=1", "HEAD")[0] == 200
            p = begin(s, path)
        said = p.communicate(timeout=END)[1]
        assert p.returncode in (0, 1) and said.endswith("0 packets written, 0 lost\n"), (p.returncode, said)
        assert tshark(path).returncode == 0


def test_refusals():
    with Server() as s, tempfile.TemporaryDirectory() as d:
        path = d + "/x"
        said = refused(s, "-w", path, "drop", "and", "hots 10.0.0.1").splitlines()
        assert len(said) == 3 and said[1][said[2].index("^"):] == "hots 10.0.0.1", said
        assert "no tenant has this name" in refused(s, "-w", path, "tenant nobody")
        assert not os.path.exists(path), "a wrong filter leaves a file"
        for words in ([], ["-w", path, "--snap", "0"], ["-w", path, "-c", "x"], ["-w", path, "--size", "5"], ["-w", path, "--keep", "5"],
                      ["-w", path, "--trigger", "thunder"], ["-w", path, "--trigger", ","], ["-w", "-", "--ring", "3"], ["-w"], ["-x"],
                      ["-w", path, "--from-interface", "lo", "--rate", "5"]):
            refused(s, *words, want=2)
        assert "cannot write" in refused(s, "-w", d + "/none/x", "--seconds", "1")
        assert s.get("/v1/capture?snap=0", 400)["error"] and s.get("/v1/capture?rate=x", 400)["error"]
        wrong = s.get("/v1/capture?filter=drop%20x", 400)
        assert wrong["at"] == 5 and wrong["error"].startswith("filter: "), wrong
        assert s.get("/v1/capture?check=1&filter=not%20drop")["filter"] == "good"
    r = cli(["--socket", "/nonexistent/x", "capture", "-w", "/dev/null"], 1)
    assert "cannot reach the gateway" in r.stderr
    r = cli(["capture", "--from-interface", "nosuch0", "-w", "/dev/null"], 1)
    assert "nosuch0" in r.stderr


class Gateway(socketserver.ThreadingUnixStreamServer):
    """One that has very many packets: it answers each request with a capture."""
    daemon_threads = True

    def __init__(self, path, sessions=200):
        self.body = body = pcapng(session() * sessions)

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while self.rfile.readline().strip():
                    pass
                self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % len(body))
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

        super().__init__(path, Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def written(said):
    return [int(n) for n in re.search(r"(\d+) packets written, (\d+) lost$", said, re.M).groups()]


def test_tenants_of_filters():
    """A filter that names a tenant keeps nothing of it. The leak checker of the sanitizers' build ends the server with an error if it does."""
    with Server() as s:
        assert s.request("/v1/tenants/red", "PUT", "{vni: 5001, prefixes: [{prefix: 10.1.0.0/24, at: vtep}, {prefix: 10.2.0.0/24, at: site-b}], vteps: [10.1.0.2]}")[0] == 201
        for _ in range(3):
            assert s.get("/v1/capture?check=1&filter=tenant%20red")["filter"] == "good"


def test_full_disk():
    """The file ends with a whole packet, and the counts are those of the file."""
    with tempfile.TemporaryDirectory() as d, Gateway(d + "/s") as g:
        whole, small = d + "/whole", d + "/small"

        def capture(path, limit):
            return subprocess.run([CLI, "--socket", d + "/s", "capture", "-w", path], capture_output=True, text=True, timeout=60,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))

        r = capture(whole, resource.RLIM_INFINITY)
        all_packets = written(r.stderr)[0]
        assert r.returncode == 0 and all_packets == len(session()) * 200 and written(r.stderr)[1] == 0, r
        r = capture(small, os.path.getsize(whole) // 2)
        assert r.returncode == 1 and r.stderr.startswith(f"roceway: cannot write {small}: File too large\n"), r
        has, lost = written(r.stderr)
        assert 0 < has < all_packets and lost > 0, r
        a = subprocess.run([CLI, "analyze", small, "--json"], capture_output=True, text=True, timeout=60)
        assert a.returncode == 0 and not a.stderr and json.loads(a.stdout)["packets"] == has, (has, a.stderr)
        os.symlink("/dev/full", d + "/full")
        r = capture(d + "/full", resource.RLIM_INFINITY)
        assert r.returncode == 1 and "No space left on device" in r.stderr and written(r.stderr)[0] == 0, r
        g.shutdown()


def block_ends(body):
    """Where each block of a pcapng ends, and whether it is a packet."""
    at, ends = 0, {}
    while at < len(body):
        kind, length = struct.unpack_from("<II", body, at)
        at += length
        ends[at] = kind == 6
    return ends


def test_pieces():
    """Files of several pieces, on a disk and in memory: each byte, or, if the disk is full, whole blocks of them."""
    for shm in (None, "/dev/shm"):
        with tempfile.TemporaryDirectory() as d, tempfile.TemporaryDirectory(dir=shm) as to, Gateway(d + "/s", 6000) as g:
            ends = block_ends(g.body)
            assert len(g.body) > 4 << 20, len(g.body)
            for limit in (None, 1 << 20, (1 << 20) + 1, (1 << 20) + 4096, (2 << 20) - 1, 3000000):
                end = resource.RLIM_INFINITY if limit is None else limit
                path = f"{to}/{limit}"
                r = subprocess.run([CLI, "--socket", d + "/s", "capture", "-w", path], capture_output=True, text=True, timeout=60,
                                   preexec_fn=lambda end=end: resource.setrlimit(resource.RLIMIT_FSIZE, (end, end)))
                has, lost = written(r.stderr)
                with open(path, "rb") as f:
                    got = f.read()
                assert g.body.startswith(got) and len(got) in ends, (limit, len(got))
                if limit is None:
                    assert r.returncode == 0 and got == g.body and (has, lost) == (len(session()) * 6000, 0), r
                else:
                    assert r.returncode == 1 and "File too large" in r.stderr and lost > 0, (limit, r)
                    assert 0 < len(got) <= limit, (limit, len(got))
                    assert has == sum(packet for e, packet in ends.items() if e <= len(got)), (limit, has)
            g.shutdown()


def full_interface(burst):
    """A capture whose disk becomes full; burst: the packets that it finds at a time."""
    with tempfile.TemporaryDirectory() as d, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        path = d + "/x.pcap"
        p = subprocess.Popen([CLI, "capture", "--from-interface", "lo", "-w", path, "udp port 4791"], stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000)))
        end = time.monotonic() + END
        try:
            while p.poll() is None:
                assert time.monotonic() < end
                p.send_signal(signal.SIGSTOP)
                for _ in range(burst):
                    s.sendto(bytes(999), ("127.0.0.1", 4791))
                p.send_signal(signal.SIGCONT)
                time.sleep(0.001 * burst)
            said = p.communicate()[1]
        finally:
            p.kill()
        if "permission" in said or "permitted" in said:
            return  # not root
        has, lost = written(said)
        assert p.returncode == 1 and "File too large" in said and has >= 0 and lost > 0, said
        assert os.stat(path).st_mode & 0o777 == 0o600
        a = subprocess.run([CLI, "analyze", path, "--json"], capture_output=True, text=True, timeout=60)
        assert a.returncode == 0 and not a.stderr and json.loads(a.stdout)["packets"] == has, (has, a)


def test_full_disk_interface():
    full_interface(1)
    full_interface(50)  # libpcap finds the disk full, before the command asks it to write


def test_quiet_interface():
    """Without a packet it ends in time and by a signal, and the file has its header."""
    new = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*new, "true"], capture_output=True, timeout=60).returncode:
        return  # not root
    for sig in None, signal.SIGINT, signal.SIGTERM:
        with tempfile.TemporaryDirectory() as d:
            path = d + "/x.pcap"
            p = subprocess.Popen([*new, CLI, "capture", "--from-interface", "lo", "-w", path, *([] if sig else ["--seconds", "1"])], stderr=subprocess.PIPE, text=True)
            try:
                end = time.monotonic() + END
                while sig and not (os.path.exists(path) and os.path.getsize(path)):
                    assert p.poll() is None and time.monotonic() < end, p.poll()
                    time.sleep(0.01)
                if sig:
                    p.send_signal(sig)
                said = p.communicate(timeout=END)[1]
            finally:
                p.kill()
            assert p.returncode == 0 and written(said) == [0, 0], (sig, said)
            assert os.path.getsize(path) == 24, sig


def stopped(p):
    """Ends the command; what it says it wrote and lost."""
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=END)[1]
    assert p.returncode == 0, said
    return written(said)


def check_order(c):
    """Each packet has both its stages, and those of a stage are in their order."""
    for stage in "lan-in", "wan-out":
        times = [p.time for p in c.packets if p.stage == stage]
        assert times == sorted(times), stage
    ids = [{p.id for p in c.packets if p.stage == stage} for stage in ("lan-in", "wan-out")]
    assert len(ids[0]) > 100 and len(ids[0] ^ ids[1]) <= 2, [len(i) for i in ids]


def test_packets():
    """Whole packets at a rate: in the file, or counted."""
    with Server("packets=5000") as s, tempfile.TemporaryDirectory() as d:
        path = d + "/x.pcapng"
        p = begin(s, path)
        until(lambda: os.path.getsize(path) > 3 << 20)
        # a part of a slot comes without more behind it
        has, lost = stopped(p)
        c = Capture(path)
        assert c.check_accounts() == lost == 0 and len(c.packets) == has, (has, lost)
        check_order(c)
        p = begin(s, path, "-c", "1000", "--ring", "2", "--size", "1")
        assert p.wait(END) == 0
        ring = [Capture(d + "/" + n) for n in sorted(os.listdir(d)) if n != "x.pcapng"]
        assert len(ring) == 2 and sum(len(c.packets) for c in ring) == 1000 and all(len(c.bytes) <= 1 << 20 for c in ring), ring
        out = subprocess.run([CLI, "--socket", s.path, "capture", "-w", "-", "-c", "300"], stdout=subprocess.PIPE, timeout=END, check=True).stdout
        with open(path, "wb") as f:
            f.write(out)
        assert len(Capture(path).packets) == 300
        body = s.request("/v1/capture?count=300", raw=True)[2]  # any other client has it there
        with open(path, "wb") as f:
            f.write(body)
        assert len(Capture(path).packets) == 300


def test_full_disk_in_memory():
    """As test_full_disk(), of a gateway that gives the stream in memory."""
    with Server("packets=2000") as s, tempfile.TemporaryDirectory() as d:
        path = d + "/x"
        r = subprocess.run([CLI, "--socket", s.path, "capture", "-w", path], capture_output=True, text=True, timeout=60,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        assert r.returncode == 1 and r.stderr.startswith(f"roceway: cannot write {path}: File too large\n"), r
        has, lost = written(r.stderr)
        assert has > 0 and lost > 0 and len(Capture(path).packets) == has, (has, lost)


def begin_standing(s, path):
    """A command that has written a part and stands still, until packets have no room."""
    p = begin(s, path)
    until(lambda: os.path.getsize(path) > 1 << 20)
    p.send_signal(signal.SIGSTOP)
    until(lambda: re.search(r"capture_lost\s+[1-9]", s.cli("counters").stdout))
    return p


def test_reader_stands():
    """A command that stands still, and whose capture is ended: another one can begin."""
    with Server("packets=20000") as s, tempfile.TemporaryDirectory() as d:
        path = d + "/x.pcapng"
        p = begin_standing(s, path)
        assert s.request("/v1/capture", "DELETE")[0] in (200, 204)
        until(lambda: subprocess.run([CLI, "--socket", s.path, "capture", "-w", d + "/y", "-c", "1"], stderr=subprocess.DEVNULL, timeout=60).returncode == 0)
        p.send_signal(signal.SIGCONT)
        p.communicate(timeout=END)
        assert Capture(path).packets


def test_slow_reader():
    """A command that does not run for a while: workers do not wait, what has no room is counted; one that is killed leaves nothing."""
    with Server("packets=20000") as s, tempfile.TemporaryDirectory() as d:
        path = d + "/x.pcapng"
        p = begin_standing(s, path)
        p.send_signal(signal.SIGCONT)
        has, lost = stopped(p)
        c = Capture(path)
        assert c.check_accounts() == lost > 0 and len(c.packets) == has, (has, lost)
        p = begin(s, path)
        p.send_signal(signal.SIGSTOP)
        p.kill()
        p.communicate()
        p = begin(s, path, "-c", "100")
        assert p.wait(END) == 0 and written(p.communicate()[1]) == [100, 0]


def extcap(s, *words, code=0):
    env = {**os.environ, "ROCEWAY_SOCKET": s.path, "ROCEWAY_COMMAND": str(CLI)}
    r = subprocess.run([EXTCAP, *words], capture_output=True, text=True, timeout=60, env=env)
    assert r.returncode == code, (words, r)
    return r.stdout


def test_extcap():
    with Server() as s, tempfile.TemporaryDirectory() as d:
        text = extcap(s, "--extcap-interfaces", "--extcap-version=4.0")
        interface = re.search(r"^interface \{value=(\S+)\}\{display=Roceway site-a\}$", text, re.M)[1]
        assert "{value=roceway-ssh}" in text and text.startswith("extcap {version=")
        assert extcap(s, "--extcap-dlts", "--extcap-interface", interface) == "dlt {number=1}{name=EN10MB}{display=Ethernet}\n"
        assert "{call=--filter}" in extcap(s, "--extcap-config", "--extcap-interface", interface)
        assert "{call=--host}" in extcap(s, "--extcap-config", "--extcap-interface", "roceway-ssh")
        fifo = d + "/fifo"
        os.mkfifo(fifo)
        env = {**os.environ, "ROCEWAY_SOCKET": s.path, "ROCEWAY_COMMAND": str(CLI)}
        p = subprocess.Popen([EXTCAP, "--capture", "--extcap-interface", interface, "--fifo", fifo, "--filter", "drop or stage lan-in", "--snap", "200"],
                             env=env, stderr=subprocess.PIPE, text=True)
        with open(fifo, "rb") as f:
            head = f.read(12)
            assert head[:4] == b"\x0a\x0d\x0d\x0a" and head[8:] == b"\x4d\x3c\x2b\x1a", head
            p.send_signal(signal.SIGTERM)
            f.read()
        assert p.wait(END) == 0, p.communicate()
        p.communicate()
        extcap(s, "--capture", "--extcap-interface", "nosuch", "--fifo", "/dev/null", code=1)
        extcap(s, "--capture", "--extcap-interface", "roceway-ssh", "--fifo", "/dev/null", "--host=-oProxyCommand=x", code=1)
        # by ssh: the same command there
        ssh = d + "/ssh"
        with open(ssh, "w") as f:
            f.write('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\neval "exec $3"\n')
        os.chmod(ssh, 0o755)
        env["PATH"] = d + ":" + env["PATH"]
        with open(d + "/x", "wb") as out:
            p = subprocess.Popen([EXTCAP, "--capture", "--extcap-interface", "roceway-ssh", "--fifo", d + "/x", "--host", "op@gw", "--socket", s.path],
                                 env=env, stdout=out, stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.getsize(d + "/x") > 100)
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=END)
        # Wireshark's own look at it
        home = d + "/home"
        os.makedirs(home + "/.config/wireshark/extcap")
        os.makedirs(home + "/.local/lib/wireshark/extcap")
        for where in (".config/wireshark/extcap", ".local/lib/wireshark/extcap"):
            os.symlink(EXTCAP, f"{home}/{where}/roceway-extcap")
        env["HOME"] = home
        r = subprocess.run(["tshark", "-D"], capture_output=True, text=True, timeout=60, env=env)
        assert "(Roceway site-a)" in r.stdout, r.stdout + r.stderr


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
