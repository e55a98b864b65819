#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input for key exchanges (docs/security.md), at a real gateway: dates, peers without a certificate, half handshakes by the thousand,
peers that never finish, storms of KeyUpdates; the last three also for the TLS of the TCP carrier. And where key material is not: log, API, journal, captures, WAN, core dumps.

The world is that of gw_keys.py. Needs root. Arguments: the build folder, and a part of the names of the tests to run.
"""
import collections
import contextlib
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402
import gw_keys as keys  # noqa: E402
import gw_capture as capture  # noqa: E402

PORT, CARRIER = 4792, 4793
STORM = os.path.join(lab.BUILD, "tests", "tls_storm")
PEER, STRANGER, OWN = "192.0.2.99", "192.0.2.98", "192.0.2.11"
HALF = 10000 if os.environ.get("ROCEWAY_LONG") else 2000
# A tunnel of gateway A to a peer that this test plays in the WAN.
PLAYED = """  - name: played
    port: wan
    local: %s
    remote: %s
    udp_port: 4795
    prefixes: [10.9.0.0/24]
    security: none
    rate: 10Gbps
memory:""" % (OWN, PEER)


def played(gateway, side):
    if side == "b":
        return
    with open(gateway.config) as f:
        text = f.read()
    text = text.replace("[192.0.2.1/24,", "[192.0.2.1/24, %s/24," % OWN).replace("memory:", PLAYED, 1)
    with open(gateway.config, "w") as f:
        f.write(text)


@contextlib.contextmanager
def in_the_wan():
    """The addresses of the peer and of a stranger are the emulator's own."""
    lab.no_offloads(drain.MID, "wa")
    for a in PEER, STRANGER:
        lab.sh("ip", "-n", drain.MID, "addr", "add", a + "/24", "dev", "wa")
    try:
        yield
    finally:
        lab.sh("ip", "-n", drain.MID, "addr", "flush", "dev", "wa")


def connect(source, seconds=5, port=PORT):
    with lab.inside(drain.MID):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.settimeout(seconds)
    s.bind((source, 0))
    s.connect((OWN, port))
    return s


def tls(folder, certificate=None, alpn="roceway-keys/1", version=ssl.TLSVersion.TLSv1_3):
    """A client's TLS, with a certificate of the folder or without."""
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname = False
    c.minimum_version = c.maximum_version = version
    c.load_verify_locations(os.path.join(folder, "ca", "ca.pem"))
    c.set_alpn_protocols([alpn])
    if certificate:
        c.load_cert_chain(*(os.path.join(folder, "ca", "%s.%s" % (certificate, end)) for end in ("pem", "key")))
    return c


def client_hello(folder):
    out = ssl.MemoryBIO()
    t = tls(folder).wrap_bio(ssl.MemoryBIO(), out)
    with contextlib.suppress(ssl.SSLWantReadError):
        t.do_handshake()
    return out.read()


def closed(s):
    """Waits until the other end has closed it."""
    with contextlib.suppress(OSError):
        while s.recv(4096):
            pass
    s.close()


def count(folder, name):
    """A counter of all exchanges together."""
    return keys.counters(folder, "a").get(("keys", name), 0)


def told(folder):
    """Of A's played tunnel."""
    return next(t for t in keys.tunnel_list(folder, "a") if t["name"] == "played")["keys"]


# --- dates ----------------------------------------------------------------------------------


def issue_dated(folder, name, begin, end):
    """A certificate like the one that `name` has, with these dates."""
    here = os.path.join(folder, "ca")
    conf, key, csr = os.path.join(here, "ca.cnf"), os.path.join(here, name + ".key"), os.path.join(here, "dated.csr")
    for words in (("req", "-config", conf, "-new", "-key", key, "-subj", "/OU=gateway/CN=" + name, "-out", csr),
                  ("ca", "-config", conf, "-batch", "-notext", "-extensions", "server", "-startdate", begin, "-enddate", end, "-in", csr,
                   "-out", os.path.join(here, name + ".pem"))):
        subprocess.run(("openssl",) + words, check=True, capture_output=True, env=dict(os.environ, SAN="DNS:" + name))


def issue(folder):
    keys.ca(folder, "init")
    for name in keys.NAMES.values():
        keys.ca(folder, "issue", name, "gateway")


def test_expired(folder):
    issue(folder)
    issue_dated(folder, "gw-b", "20200101000000Z", "20200201000000Z")
    keys.refused(folder, "the peer's certificate: .*expired", "the peer ended the handshake")


def test_not_yet(folder):
    """The clock of one end is years behind, or a certificate is for later: refused, and named."""
    issue(folder)
    issue_dated(folder, "gw-b", "20490101000000Z", "20491201000000Z")
    keys.refused(folder, "the peer's certificate: .*not yet", "the peer ended the handshake")


# --- peers that do it wrong -----------------------------------------------------------------


def test_no_certificate(folder):
    with keys.world(folder, edit=played) as (a, _, _), in_the_wan():
        s = tls(folder).wrap_socket(connect(PEER))
        closed(s)  # with TLS 1.3 a client is done before the server has seen that there is none
        a.wait("the peer's exchange: the peer has no certificate")
        assert told(folder)["refused"] >= 1 and told(folder)["state"] == "wanted", told(folder)


def test_never_finishes(folder):
    """A peer with the right certificate that asks for nothing: its connection ends, and the reason is told."""
    with keys.world(folder, edit=played) as (a, _, _), in_the_wan():
        before = count(folder, "slow")
        s = tls(folder, "gw-b").wrap_socket(connect(PEER, 20))
        closed(s)
        a.wait("the peer did not finish the exchange in time")
        assert count(folder, "slow") == before + 1


def resources(pid, thread="rwy-keys"):
    """(bytes of memory besides packet buffers, files open, seconds of CPU of the thread: by default that with the key exchanges)."""
    memory = cpu = size = 0
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            if line.startswith("Size:"):
                size = int(line.split()[1])
            elif line.startswith("Anonymous:") and size < 64 << 10:  # packet buffers are in larger ones
                memory += int(line.split()[1]) * 1024
    for t in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, t)) as f:
            name, _, rest = f.read().partition("(")[2].rpartition(")")
        if name == thread:
            cpu += sum(map(int, rest.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return memory, len(os.listdir("/proc/%d/fd" % pid)), cpu


def memory_bound():
    """Bytes that half handshakes may take; freed memory stays for a while with a sanitizer."""
    with open(lab.GATEWAY, "rb") as f:
        return (128 if b"__asan_init" in f.read() else 4) << 20


def half(kind, hello, source, port=PORT):
    """One half handshake: nothing, junk, part of a ClientHello, all of it. None: refused while connecting."""
    try:
        s = connect(source, port=port)
        with contextlib.suppress(OSError):
            s.send((b"", os.urandom(300), hello[:len(hello) // 2], hello)[kind])
        return s
    except ConnectionError:
        return None


def flood(n, hello, held, look=lambda: None, port=PORT):
    for i in range(n):
        s = half(i % 4, hello, STRANGER if i % 10 == 9 else PEER, port)
        if s:
            held.append(s)
        if len(held) > 400:
            held.popleft().close()
        if i % 100 == 0:
            look()


def test_half_handshakes(folder):
    """By the thousand, from a peer's address and from a stranger's, held open as long as the gateway lets them: memory and CPU are bounded, each one is
    counted, and the other tunnel carries its load and renews its keys."""
    names = ("strangers", "full", "rate", "slow")
    with keys.world(folder, edit=played) as (a, _, _), in_the_wan():
        hello, held, load = client_hello(folder), collections.deque(), None
        before, refused = {name: count(folder, name) for name in names}, told(folder)["refused"]
        memory, files, cpu = resources(a.proc.pid)
        began, seen = time.monotonic(), []
        try:
            flood(HALF // 2, hello, held, lambda: seen.append(resources(a.proc.pid)))  # without load, which takes memory, too
            grown, opened = (max(s[i] for s in seen) - was for i, was in ((0, memory), (1, files)))
            load = drain.Load()
            load.more()
            far = keys.tunnel(folder, "a")["keys"]
            flood(HALF // 2, hello, held)
            load.more()
            cpu, took = resources(a.proc.pid)[2] - cpu, time.monotonic() - began
            keys.until("keys are renewed meanwhile", lambda: keys.tunnel(folder, "a")["keys"]["exchanges"] > far["exchanges"])
            t = keys.tunnel(folder, "a")
            assert t["state"] == "up" and all(t["keys"][k] == far[k] for k in ("refused", "failed", "ended")), (far, t)
            load.finish()
        finally:
            for s in held:
                s.close()
            if load:
                load.kill()
        n = {name: count(folder, name) - before[name] for name in names}
        taken = told(folder)["refused"] - refused
        assert n["strangers"] == HALF // 10, n
        assert n["rate"] + n["full"] + n["strangers"] + taken >= HALF * 9 // 10, (n, taken)
        assert taken <= 12 + 5 * (took + 10), (taken, took)  # 4 a second, and 12 at once
        assert grown < memory_bound() and opened < 16, (grown, opened)
        assert cpu < 1 + took / 2, (cpu, took)
        print("   %d in %.1f s: %s, taken up %d; CPU %.2f s, memory %+d KiB" % (HALF, took, n, taken, cpu, grown // 1024))


def carrier(folder):
    """What A's played tunnel tells of connections that are refused; most of it is of all tunnels together."""
    k = next(t for t in keys.tunnel_list(folder, "a") if t["name"] == "played")["carrier"]
    return {name: k["refused_" + name] for name in ("strangers", "slow", "early", "rate", "many", "tunnel", "full")}


def test_half_carrier(folder):
    """The same at the port of the TCP carrier, while the other tunnel goes by TCP in TLS: it does not notice."""
    with keys.world(folder, edit=played) as (a, _, _), in_the_wan():
        hello, held, load = client_hello(folder), collections.deque(), drain.Load()
        try:
            keys.move(folder, "tcp")
            load.more()
            before, far = carrier(folder), keys.tunnel(folder, "a")["carrier"]
            memory, files, cpu = resources(a.proc.pid, "rwy-carrier")
            began, seen = time.monotonic(), []
            flood(HALF, hello, held, lambda: seen.append(resources(a.proc.pid, "rwy-carrier")), CARRIER)
            cpu, took = resources(a.proc.pid, "rwy-carrier")[2] - cpu, time.monotonic() - began
            load.more()
            n = {name: count - before[name] for name, count in carrier(folder).items()}
            now = keys.tunnel(folder, "a")["carrier"]
            assert now["sending"] == "tcp" and now["fallbacks"] == far["fallbacks"] and now["opened"] == far["opened"], (far, now)
            load.finish()
        finally:
            for s in held:
                s.close()
            load.kill()
        waiting = 32  # whose tunnel is not known yet
        assert sum(n.values()) >= HALF - waiting - 400, n
        assert n["strangers"] == HALF // 10 and n["many"] > 0 and n["tunnel"] == n["full"] == 0, n
        grown, opened = (max(s[i] for s in seen) - was for i, was in ((0, memory), (1, files)))
        assert grown < 2 * memory_bound() and opened < waiting + 16, (grown, opened)
        assert cpu < 1 + took / 2, (cpu, took)  # the load's is in it
        print("   %d in %.1f s: %s, CPU %.2f s, memory %+d KiB, files %+d" % (HALF, took, n, cpu, grown // 1024, opened))


def storm(folder, alpn, port, n):
    here = os.path.join(folder, "ca")
    with lab.inside(drain.MID):
        r = subprocess.run((STORM, OWN, PEER, str(port), alpn, here + "/gw-b.pem", here + "/gw-b.key", here + "/ca.pem", str(n)),
                           capture_output=True, text=True, timeout=60)
    found = re.fullmatch(r"(\d+) of %d sent, (\d+) bytes came, .*\n" % n, r.stdout)
    assert r.returncode == 0 and found, r
    return int(found[1]), int(found[2])


def test_storms(folder):
    """The peer's own certificate, and a KeyUpdate after the other, each with the wish for one in return: the connection ends after a few,
    for little CPU and few answers; counted and named; the other tunnel carries its load and gets new keys."""
    with keys.world(folder, edit=played) as (a, _, _), in_the_wan():
        load = drain.Load()
        try:
            load.more()
            far, refused, early = keys.tunnel(folder, "a")["keys"], told(folder)["refused"], carrier(folder)["early"]
            cpu, began = [resources(a.proc.pid, t)[2] for t in ("rwy-keys", "rwy-carrier")], time.monotonic()
            for alpn, port in (("roceway-keys/1", PORT), ("roceway-tcp/1", CARRIER)):
                for i in range(5):
                    sent, came = storm(folder, alpn, port, 100000)
                    assert sent < 100000 and came < 8192, (alpn, sent, came)
            cpu = [resources(a.proc.pid, t)[2] - was for t, was in zip(("rwy-keys", "rwy-carrier"), cpu)]
            assert told(folder)["refused"] == refused + 5 and carrier(folder)["early"] == early + 5, (told(folder), carrier(folder))
            a.wait("the peer's exchange: TLS: Too many handshake packets")
            keys.until("keys are renewed meanwhile", lambda: keys.tunnel(folder, "a")["keys"]["exchanges"] > far["exchanges"])
            load.more()
            assert max(cpu) < 1 + (time.monotonic() - began) / 2, cpu
            load.finish()
        finally:
            load.kill()


def test_old_tls(folder):
    """TLS 1.2, which has renegotiation, is refused at both ports."""
    with keys.world(folder, edit=played) as (a, _, _), in_the_wan():
        refused, early = told(folder)["refused"], carrier(folder)["early"]
        for alpn, port in (("roceway-keys/1", PORT), ("roceway-tcp/1", CARRIER)):
            try:
                tls(folder, "gw-b", alpn, ssl.TLSVersion.TLSv1_2).wrap_socket(connect(PEER, port=port)).close()
                raise AssertionError("TLS 1.2 is accepted at port %d" % port)
            except (ssl.SSLError, ConnectionError):
                pass
        keys.until("both are counted", lambda: told(folder)["refused"] == refused + 1 and carrier(folder)["early"] == early + 1)


# --- where keys are not -----------------------------------------------------------------------


def regions(pid):
    """(begin, end, name, flags) of what is in memory."""
    head = None
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+\s*(.*)", line)
            if m:
                head = (int(m[1], 16), int(m[2], 16), m[4])
            elif line.startswith("Anonymous:"):
                anonymous = int(line.split()[1])
            elif line.startswith("VmFlags:") and anonymous and "rd" in line.split() and head[1] - head[0] < 1 << 30:  # a sanitizer's are larger
                yield *head, line.split()[1:]


def read(pid, begin, end):
    with open("/proc/%d/mem" % pid, "rb", 0) as f:
        f.seek(begin)
        try:
            return f.read(end - begin)
        except OSError:
            return b""


def key_windows(pid):
    """16 bytes each of what is in the memory for keys: wiped on fork, and not dumped."""
    for begin, end, _, flags in regions(pid):
        if "wf" not in flags:
            continue
        assert "dd" in flags, flags
        data = read(pid, begin, end)
        for at in range(0, len(data) - 15, 16):
            w = data[at:at + 16]
            if len(set(w)) > 12:
                yield w


def private_number(folder, name):
    """The secret number of a certificate's key, as GnuTLS and as other libraries have it in memory; and its base64."""
    path = os.path.join(folder, "ca", name + ".key")
    text = subprocess.run(("openssl", "ec", "-in", path, "-noout", "-text"), capture_output=True, text=True, check=True).stdout
    d = bytes.fromhex(re.search(r"priv:\s*((?:[0-9a-f:]+\s*)+)pub", text).group(1).replace(":", "").replace("\n", "").replace(" ", ""))[-32:]
    with open(path) as f:
        lines = [line for line in f.read().splitlines() if "-" not in line]
    return [d, d[::-1], lines[0].encode(), d.hex().encode()]


def dumped(pid):
    """What a core dump would have."""
    for begin, end, name, flags in regions(pid):
        if "dd" not in flags and not name.startswith("[v"):
            yield name, read(pid, begin, end)


def test_key_material(folder):
    """Keys of the tunnel are in their own memory and nowhere else that a core dump has; what the certificate's key is made of is in no log, journal,
    API, capture or WAN, and no core dump is written; and the environment cannot make GnuTLS write secrets down."""
    log, had = os.path.join(folder, "secrets"), resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (had[1], had[1]))
    os.environ["SSLKEYLOGFILE"] = log
    try:
        with keys.world(folder) as (a, b, _):
            load = drain.Load()
            try:
                load.more()
                sniffer, taken = keys.Sniffer(), os.path.join(folder, "a.pcapng")
                capturing = capture.begin(folder, "a", taken)
                keys.until("it captures", lambda: capture.size_of(taken))
                seen = set()
                for _ in range(3):  # keys change meanwhile
                    load.more(500)
                    seen.update(key_windows(a.proc.pid))
                assert len(seen) > 20, len(seen)
                keys.move(folder, "tcp")
                keys.move(folder, "quic")
                assert not os.path.exists(log), "GnuTLS writes secrets down"
                capture.end(capturing)
                private = private_number(folder, "gw-a")
                places = {"the WAN": b"".join(sniffer.stop())}
                for words in ("status", "tunnels", "counters", "health", "metrics", "flows", "recorder"):
                    r = subprocess.run((os.path.join(drain.BIN, "roceway"), "--socket", os.path.join(folder, "a.sock"), words), capture_output=True, timeout=60)
                    places["roceway " + words] = r.stdout
                for name in os.listdir(folder):
                    path = os.path.join(folder, name)
                    if name.endswith((".log", ".journal", ".recorder", ".pcapng")):
                        with open(path, "rb") as f:
                            places[name] = f.read()
                assert len(places["a.pcapng"]) > 1 << 20, len(places["a.pcapng"])
                assert {".log", ".journal", ".recorder"} <= {os.path.splitext(n)[1] for n in places}, list(places)
                some = sorted(seen)[::max(1, len(seen) // 16)]
                for place, data in places.items():
                    for k in some + private:
                        assert k not in data and k.hex().encode() not in data, place
                dump = list(dumped(a.proc.pid))
                for name, data in dump:
                    for k in some:
                        assert k not in data, "a key of the tunnel is in %s" % (name or "memory")
                # GnuTLS has the certificate's key in ordinary memory: so there is no core dump at all.
                assert any(d in data for _, data in dump for d in private[:2]), "this test looks for the wrong bytes"
                load.finish()
            finally:
                load.kill()
            other = subprocess.Popen(("sleep", "60"), cwd=folder)
            other.send_signal(signal.SIGABRT)
            if not os.WCOREDUMP(os.waitpid(other.pid, 0)[1]):
                print("   this machine writes no core dumps: that a gateway has none is not shown")
            other.returncode = -signal.SIGABRT
            a.proc.send_signal(signal.SIGABRT)
            _, status = os.waitpid(a.proc.pid, 0)
            a.proc.returncode = -signal.SIGABRT
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT and not os.WCOREDUMP(status), status
            print("   %d pieces of keys, %d KiB would be dumped" % (len(seen), sum(len(d) for _, d in dump) // 1024))
    finally:
        del os.environ["SSLKEYLOGFILE"]
        resource.setrlimit(resource.RLIMIT_CORE, had)


# Those of roceway-gateway.service, and CAP_NET_BIND_SERVICE.
KEPT = {1, 10, 12, 13, 14, 17, 21, 23}


def test_privileges(folder):
    """Each thread of a gateway that root started has the capabilities that it needs and no others, and no way to get them."""
    with keys.world(folder) as (a, _, _):
        for t in os.listdir("/proc/%d/task" % a.proc.pid):
            with open("/proc/%d/task/%s/status" % (a.proc.pid, t)) as f:
                said = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
            for name in "CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb":
                has = {c for c in range(64) if int(said[name], 16) >> c & 1}
                assert has <= KEPT, (said["Name"], name, has - KEPT)
            assert said["NoNewPrivs"] == "1", said["Name"]


if __name__ == "__main__":
    sys.exit(drain.main(globals()))
