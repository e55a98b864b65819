#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The QUIC carrier's end (tests/quic_peer) against gtlsclient and gtlsserver of Debian's ngtcp2-client and ngtcp2-server: handshake, loss, new keys, an
address that changes, Retry, Version Negotiation, certificates with something wrong; and tshark decrypts it with a log of the keys, which the other
program writes.

They speak HTTP/3, our end counts bytes. The same end against quic-go, another implementation, with the records of docs/carriers.md in both
directions under loss (tests/component/quic/records.go), where Debian's packages for it are installed (tools/setup/install --long). Argument: the build folder; all goes over 127.0.0.1.
"""
import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
PEER = os.path.join(BUILD, "tests", "quic_peer")
CA = os.path.join(ROOT, "tools", "ca", "roceway-ca")
CLIENT, SERVER = "/usr/bin/gtlsclient", "/usr/sbin/gtlsserver"
GO_PATH = "/usr/share/gocode"
QUIC_GO = os.path.join(GO_PATH, "src/github.com/lucas-clemente/quic-go")
RECORDS = 4000
READY = 60


def ca(folder, *words):
    subprocess.run((CA, folder) + words, check=True)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Ours:
    """Our end; a thread reads its lines."""

    def __init__(self, folder, mode, cert, name, port, *more):
        self.proc = subprocess.Popen((PEER, mode, folder, cert, name, str(port)) + more, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        self.wait("ready")

    def read(self):
        for line in self.proc.stdout:
            self.lines.append(line.strip())

    def wait(self, word):
        end = time.monotonic() + READY
        while not any(line.startswith(word) for line in list(self.lines)):
            assert self.proc.poll() is None and time.monotonic() < end, (word, self.lines)
            time.sleep(0.01)
        return next(line for line in self.lines if line.startswith(word))

    def end(self):
        """Its counters."""
        self.proc.stdin.close()
        assert self.proc.wait(READY) == 0, self.lines
        self.thread.join()
        return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", self.lines[-1])}

    def kill(self):
        self.proc.kill()
        self.proc.wait()
        self.thread.join()
        self.proc.stdout.close()
        with contextlib.suppress(OSError):
            self.proc.stdin.close()


@contextlib.contextmanager
def ours(*words):
    o = Ours(*words)
    try:
        yield o
    finally:
        o.kill()


def read(folder):
    with open(os.path.join(folder, "other.log"), errors="replace") as f:
        return f.read()


def until(what, true):
    end = time.monotonic() + READY
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@contextlib.contextmanager
def other(folder, *words, log=None):
    """A program of theirs; read() gives what it says."""
    env = dict(os.environ, **({"SSLKEYLOGFILE": log} if log else {}))
    with open(os.path.join(folder, "other.log"), "w") as out:
        p = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, cwd=folder)
    try:
        yield p
    finally:
        p.kill()
        p.wait()


def client(folder, port, *words, cert="them", log=None):
    """gtlsclient, which asks for a page that never comes."""
    keys = ("--cert=%s/%s.pem" % (folder, cert), "--key=%s/%s.key" % (folder, cert)) if cert else ()
    return other(folder, CLIENT, "--no-quic-dump", "--no-http-dump", "--sni=us", *keys, *words, "127.0.0.1", str(port), "https://us/page", log=log)


def server(folder, port, *words, cert="them"):
    return other(folder, SERVER, "--no-quic-dump", "--verify-client", *words, "127.0.0.1", str(port), "%s/%s.key" % (folder, cert),
                 "%s/%s.pem" % (folder, cert))


def served(folder, *words, more=(), then=lambda: True, log=None):
    """A handshake with gtlsclient and some of its bytes, and what else must happen; our counters."""
    port = free_port()
    with ours(folder, "serve", "us", "them", port, *more) as o, client(folder, port, *words, log=log):
        o.wait("opened")
        o.wait("receives")
        until("gtlsclient: " + read(folder)[-500:], then)
        assert not any(line.startswith("closed") for line in o.lines), o.lines
        n = o.end()
    assert n["opened"] == 1 and n["refused_certificate"] == 0 and n["received"] > 0 and n["drop_token"] == 0, n
    return n


def test_client(folder):
    n = served(folder, then=lambda: "QUIC handshake has been confirmed" in read(folder))
    assert n["tx_retries"] == 0 and n["tx_versions"] == 0, n


def test_client_loss(folder):
    """A fifth of what it sends and receives is lost."""
    served(folder, "--tx-loss=0.2", "--rx-loss=0.2", "--handshake-timeout=30s")


def test_client_retry(folder):
    assert served(folder, more=("retry",))["tx_retries"] >= 1


def test_client_version(folder):
    """It asks for a version that nobody has, is told ours, and takes it."""
    assert served(folder, "--version=0x1a2a3a4a", "--preferred-versions=v1")["tx_versions"] >= 1


def test_client_key_update(folder):
    """New keys of its own making: what comes after is read, and answered with new ones."""
    n = served(folder, "--key-update=100ms", then=lambda: re.search(r"pkt rx .*type=1RTT k=1", read(folder)))
    assert n["drop_packet"] == 0, n


def test_client_migrates(folder):
    n = served(folder, "--change-local-addr=100ms", then=lambda: "Changing local address" in read(folder) and "PATH_RESPONSE" in read(folder))
    assert n["migrated"] >= 1, n


def refused(folder, cert, said):
    port = free_port()
    with ours(folder, "serve", "us", "them", port) as o, client(folder, port, cert=cert):
        line = o.wait("closed")
        assert re.search(said, line), line
        n = o.end()
    assert n["opened"] == 0 and n["refused_certificate"] == 1, n


def test_client_without_certificate(folder):
    refused(folder, None, "the peer has no certificate")


def test_client_foreign(folder):
    refused(folder, "foreign", "issuer is unknown")


def test_client_wrong_name(folder):
    refused(folder, "else", "not for the name `them`")


def connected(folder, *words):
    port = free_port()
    with server(folder, port, *words), ours(folder, "connect", "us", "them", port) as o:
        o.wait("opened")
        n = o.end()
    assert n["opened"] == 1, n


def test_server(folder):
    connected(folder)


def test_server_retry(folder):
    connected(folder, "--validate-addr")


def test_server_loss(folder):
    connected(folder, "--tx-loss=0.2", "--rx-loss=0.2")


def test_server_foreign(folder):
    port = free_port()
    with server(folder, port, cert="foreign"), ours(folder, "connect", "us", "them", port) as o:
        assert "issuer is unknown" in o.wait("closed")
        n = o.end()
    assert n["opened"] == 0 and n["refused_certificate"] == 1, n


@contextlib.contextmanager
def capture(path):
    """What passes 127.0.0.1, as pcap; needs root."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("lo", 0))
    s.settimeout(0.1)
    frames, on = [], [True]

    def run():
        while on[0]:
            with contextlib.suppress(TimeoutError):
                frame, address = s.recvfrom(65536)
                if address[2] != 4:  # PACKET_OUTGOING: each frame is seen twice
                    frames.append((time.time(), frame))

    t = threading.Thread(target=run)
    t.start()
    try:
        yield
    finally:
        on[0] = False
        t.join()
        s.close()
        with open(path, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for at, frame in frames:
                f.write(struct.pack("<IIII", int(at), int(at % 1 * 1000000), len(frame), len(frame)) + frame)


def test_tshark(folder):
    """Wireshark reads the connection with the keys that gtlsclient wrote down, and nothing of it without."""
    pcap, log = os.path.join(folder, "quic.pcap"), os.path.join(folder, "secrets")
    with capture(pcap):
        served(folder, log=log)
    seen = {}
    for keys in "", log:
        r = subprocess.run(("tshark", "-r", pcap, "-o", "tls.keylog_file:" + keys, "-Y", "quic", "-T", "fields", "-e", "quic.stream.stream_id",
                            "-e", "tls.handshake.certificate"), capture_output=True, text=True, timeout=READY)
        assert r.returncode == 0, r.stderr
        seen[keys] = [sum(bool(line.split("\t")[i].strip()) for line in r.stdout.splitlines() if "\t" in line) for i in (0, 1)]
    assert seen[""] == [0, 0] and seen[log][0] >= 1 and seen[log][1] >= 1, seen


# --- another implementation, and our records --------------------------------------------------


def go_build(folder):
    """The program with quic-go; None: not installed."""
    if not shutil.which("go") or not os.path.isdir(QUIC_GO):
        return None
    out = os.path.join(folder, "records")
    env = dict(os.environ, GO111MODULE="off", GOPATH=GO_PATH, GOFLAGS="", GOCACHE=os.path.join(folder, "go-cache"))
    subprocess.run(("go", "build", "-o", out, os.path.join(ROOT, "tests/component/quic/records.go")), check=True, env=env)
    return out


def records(folder, serve, loss, n=RECORDS, cert="them"):
    """HELLO, WISH and n datagrams in each direction on all streams, of which each end checks every byte and the order."""
    port, go = free_port(), os.path.join(folder, "records")
    words = lambda mode: (go, mode, folder, cert, "us", str(port), str(n), str(loss))  # noqa: E731
    with contextlib.ExitStack() as all_of:
        if serve:
            all_of.enter_context(other(folder, *words("serve")))
            until("quic-go: " + read(folder), lambda: "ready" in read(folder))
        o = all_of.enter_context(ours(folder, "connect" if serve else "serve", "us", "them", port, "records=%d" % n))
        if not serve:
            all_of.enter_context(other(folder, *words("connect")))
        o.wait("done sent=%d got=%d streams=64" % (n, n))
        until("quic-go is done", lambda: "done sent=%d got=%d" % (n, n) in read(folder))
        assert "wish count=1 carrier=quic detour=quic" in o.lines, o.lines
        assert re.search(r"^wish count=[01] carrier=2 detour=1$", read(folder), re.M)
        count = o.end()
    assert count["opened"] == 1 and count["drop_malformed"] == 0, count


def go_client(folder):
    records(folder, False, 0)


def go_client_loss(folder):
    """A twentieth, then a fifth of what it sends and receives is lost."""
    for loss in 50, 200:
        records(folder, False, loss, RECORDS * 50 // loss)


def go_server(folder):
    records(folder, True, 0)


def go_server_loss(folder):
    for loss in 50, 200:
        records(folder, True, loss, RECORDS * 50 // loss)


def go_client_foreign(folder):
    """Its certificate is of another CA: refused, and named."""
    port = free_port()
    with ours(folder, "serve", "us", "them", port, "records=1") as o:
        with other(folder, os.path.join(folder, "records"), "connect", folder, "foreign", "us", str(port), "1", "0"):
            assert "issuer is unknown" in o.wait("closed")
        count = o.end()
    assert count["opened"] == 0 and count["refused_certificate"] == 1, count


def make(folder):
    ca(folder, "init")
    for name in "us", "them", "else":
        ca(folder, "issue", name, "gateway")
    foreign = os.path.join(folder, "foreign-ca")
    ca(foreign, "init")
    ca(foreign, "issue", "them", "gateway")
    for end in "pem", "key":
        shutil.copy(os.path.join(foreign, "them." + end), os.path.join(folder, "foreign." + end))


def main():
    want = sys.argv[2] if len(sys.argv) > 2 else ""
    if not os.path.exists(CLIENT) or not os.path.exists(SERVER):
        print("install ngtcp2-client and ngtcp2-server: tools/setup/install")
        return 1
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        kinds = ("test_", "go_client", "go_server")
        if not go_build(folder):
            print("skipped: quic-go is not installed: tools/setup/install --long", flush=True)
            kinds = kinds[:1]
            failed += bool(os.environ.get("ROCEWAY_LONG"))
        for name, t in list(globals().items()):
            if not name.startswith(kinds) or want not in name:
                continue
            began = time.monotonic()
            try:
                t(folder)
                passed += 1
                print("ok %s %.1f s" % (name, time.monotonic() - began), flush=True)
            except Exception as e:  # noqa: BLE001: any failure is a failed test
                failed += 1
                print("not ok %s: %s: %s\n%s" % (name, type(e).__name__, e, read(folder)[-1500:]), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
