#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# host_agent.py BUILD: roceway-host-agent with a real controller and with a file, relays that answer, are silent, lie and come back;
# and a program with librwyredirect, whose next connection goes by what the agent wrote.
import atexit
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import cases  # noqa: E402
from ctlr.harness import CA, SLOW, Controller, Gateway, until  # noqa: E402

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
AGENT, RUN, LIBRARY = BUILD / "bin/roceway-host-agent", BUILD / "bin/roceway-run", BUILD / "lib/librwyredirect.so"
PROBE = round(100 * SLOW)  # ms


class Relay:
    """What answers at a relay's ask_port, on an address of the loopback."""

    def __init__(self, address, port=0):
        self.address, self.asked, self.lie, self.alive = address, [], None, True
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.bind((address, port))
        self.port = self.s.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            said, who = self.s.recvfrom(500)
            assert len(said) == 64 and said[:5] == b"RwyA\1", said
            if not self.alive:
                continue
            self.asked.append(said[5])
            answer = bytearray(said)
            answer[5] |= 0x80
            answer[44:46] = struct.pack(">H", 4790)
            if self.lie:
                self.lie(answer, who)
            else:
                self.s.sendto(answer, who)

    def connections(self):
        """How often a program asked."""
        return self.asked.count(1)


class Agent:
    def __init__(self, d, text, fresh=True):
        self.d, self.written = Path(d), Path(d) / "redirect.conf"
        if fresh:
            self.written.unlink(missing_ok=True)
        (self.d / "agent.conf").write_text(f"{text}\nwrite {self.written}\nprobe {PROBE}\n")
        self.log = self.d / "agent.log"
        self.proc = subprocess.Popen([AGENT, "--config", self.d / "agent.conf"], stderr=self.log.open("a"), stdin=subprocess.DEVNULL)
        atexit.register(self.proc.kill)

    def lines(self):
        if not self.written.exists():
            return None
        return [line for line in self.written.read_text().splitlines() if not line.startswith("#")]

    def becomes(self, *lines):
        try:
            until(lambda: self.lines() == list(lines), 20 * SLOW)
        except AssertionError:
            raise AssertionError(f"{self.lines()} instead of {lines}\n{self.log.read_text()[-2000:]}") from None

    def says(self, words):
        until(lambda: words in self.log.read_text(), 20 * SLOW)

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        assert self.proc.wait(20) == 0, self.log.read_text()[-2000:]


def temporary():
    return tempfile.TemporaryDirectory(prefix="rwy-host-")


# A program that connects when it is told to, by rdma_create_ep: without RDMA devices it gets no further than the relay.
PROGRAM = """
import ctypes, socket, struct, sys
lib = ctypes.CDLL(sys.argv[1], use_errno=True)
class Info(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int) for n in ("flags", "family", "qp_type", "port_space", "src_len", "dst_len")] + \\
               [("src", ctypes.c_void_p), ("dst", ctypes.c_char_p), ("src_name", ctypes.c_void_p), ("dst_name", ctypes.c_void_p), ("route_len", ctypes.c_size_t),
                ("route", ctypes.c_void_p), ("connect_len", ctypes.c_size_t), ("connect", ctypes.c_void_p), ("next", ctypes.c_void_p)]
to = struct.pack("=H", socket.AF_INET) + struct.pack(">H", 7174) + socket.inet_aton("10.2.0.7") + bytes(8)
at = ctypes.create_string_buffer(to, 16)
for line in sys.stdin:
    info = Info(family=socket.AF_INET, qp_type=2, port_space=0x106, dst_len=16)
    info.dst = ctypes.cast(at, ctypes.c_char_p)
    ep = ctypes.c_void_p()
    lib.rdma_create_ep(ctypes.byref(ep), ctypes.byref(info), None, None)
    print("tried", flush=True)
"""


class Program:
    def __init__(self, policy):
        env = {k: v for k, v in os.environ.items() if k != "ROCEWAY_VIA"}
        self.proc = subprocess.Popen([sys.executable, "-c", PROGRAM, LIBRARY], env={**env, "ROCEWAY_REDIRECT": str(policy)}, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        atexit.register(self.proc.kill)

    def connect(self):
        """Seconds that it took."""
        start = time.monotonic()
        self.proc.stdin.write("connect\n")
        self.proc.stdin.flush()
        assert self.proc.stdout.readline() == "tried\n"
        return time.monotonic() - start


def by_whom(program, *relays):
    before = [r.connections() for r in relays]
    took = program.connect()
    asked = [i for i, r in enumerate(relays) if r.connections() > before[i]]
    assert len(asked) == 1, (asked, before, [r.connections() for r in relays])
    return asked[0], took


# --- its own file -----------------------------------------------------------------------------------


def test_bad_configurations():
    good = "controller https://192.0.2.1:7443\nca /x\ncertificate /x\nkey /x\nsite a\n"
    with temporary() as d:
        f = Path(d) / "agent.conf"
        for text, words in (
                ("", "expected `controller` or `policy`, found none"), (good + "policy /x\n", "found both"), ("controller http://x\n", ":1: expected https://HOST:PORT, found `http://x`"),
                ("controller https://x/y\n", "https://HOST:PORT"), ("\n\ncolour red\n", ":3: expected controller, ca,"), ("ca\n", ":1: expected a path from the root, found nothing"),
                ("ca x\n", "a path from the root, found `x`"), ("ca /x\nca /y\n", ":2: expected each word once, found `/y`"), ("ca /x /y\n", "one value, found `/y`"),
                ("site a/b\n", "a name of at most 31"), ("site " + "x" * 32 + "\n", "a name of at most 31"), ("probe 49\n", "milliseconds from 50 to 60000, found `49`"),
                ("probe -100\n", "milliseconds"), ("probe 1e3\n", "milliseconds"), ("after-lease never\n", "`keep` or `drop`, found `never`"),
                (good.replace("site a\n", ""), "expected `site` beside `controller`, found nothing"), (good.replace("key /x\n", ""), "expected `key`"),
                (good + "write /etc/roceway/redirect.conf\n", "another file than the operator's"), ("policy /x\nwrite /x\n", "another file than the operator's"),
                ("controller " + " ".join(f"https://192.0.2.{i}" for i in range(9)) + "\n", "at most 8 controllers"), ("#" * 600000, "a file of at most 524288 bytes"),
                ("\nsite a\0\n", ":2: expected text, found a zero byte"), ("policy /" + "x" * 5000 + "\n", "a shorter path")):
            f.write_text(text)
            for word in ("--check", "--config"):
                r = subprocess.run([AGENT, word, f], capture_output=True, text=True, timeout=20)
                assert r.returncode == 2 and words in r.stderr and len(r.stderr.splitlines()) == 1 and str(f) in r.stderr, (text[:40], r)
        f.write_text(good + "name h-1 # this one\nafter-lease drop\nprobe 60000\n")
        r = subprocess.run([AGENT, "--check", f], capture_output=True, text=True)
        assert r.returncode == 0 and r.stdout == f"{f}: good\n", r
        f.write_text("policy /etc/roceway/relays.conf\n")
        assert subprocess.run([AGENT, "--check", f], capture_output=True).returncode == 0
        sample = (Path(__file__).resolve().parents[2] / "conf/samples/host-agent.conf")
        assert subprocess.run([AGENT, "--check", sample], capture_output=True).returncode == 0
    said = [subprocess.run([AGENT, word], capture_output=True, text=True) for word in ("-h", "--help")]
    assert said[0].returncode == 0 and said[0].stdout == said[1].stdout != "", said
    for words in ((), ("--colour",), ("--check", "/a", "--config", "/b"), ("--check", "/a", "b")):
        assert subprocess.run([AGENT, *words], capture_output=True).returncode == 2, words
    for path, words in (("/nothing", "No such file"), ("/", "Is a directory"), ("/dev/zero", "a file of at most 524288 bytes")):
        r = subprocess.run([AGENT, "--check", path], capture_output=True, text=True, timeout=20)
        assert r.returncode == 2 and r.stderr.startswith(path + ": ") and words in r.stderr, r


def test_a_file_that_cannot_be_written_is_told_once():
    with temporary() as d:
        (Path(d) / "policy").write_text("redirect 10.2.0.0/24 via 127.0.0.1\n")
        (Path(d) / "redirect.conf").mkdir()
        a = Agent(d, f"policy {d}/policy", fresh=False)
        a.says("redirect.conf: Is a directory")
        time.sleep(1)  # several turns
        assert a.log.read_text().count("Is a directory") == 1, a.log.read_text()
        a.written.rmdir()
        a.says("redirect.conf is written again")
        a.becomes("redirect 10.2.0.0/24 via 127.0.0.1,weight=1,port=4795,down")
        a.stop()


# --- a file of the operator ---------------------------------------------------------------------------


def test_a_relay_that_dies_is_skipped_at_the_next_connection():
    one, two = Relay("127.0.0.11"), Relay("127.0.0.12")
    with temporary() as d:
        policy = Path(d) / "relays.conf"
        policy.write_text(f"redirect 10.2.0.0/24 via 127.0.0.11,port={one.port} else 127.0.0.12,port={two.port}\n")
        a = Agent(d, f"policy {policy}")
        line = f"redirect 10.2.0.0/24 via 127.0.0.11,weight=1,port={one.port}%s else 127.0.0.12,weight=1,port={two.port}%s"
        a.becomes(line % ("", ""))
        assert "relays.conf" in a.written.read_text().splitlines()[0] and a.written.stat().st_mode & 0o777 == 0o644
        p = Program(a.written)
        assert by_whom(p, one, two)[0] == 0
        one.alive = False
        a.becomes(line % (",down", ""))
        who, took = by_whom(p, one, two)
        assert who == 1 and took < 1 * SLOW, (who, took)  # it did not wait for the dead one
        one.alive = True
        a.becomes(line % ("", ""))
        assert by_whom(p, one, two)[0] == 0
        # nobody left: the library tries all the same
        one.alive = two.alive = False
        a.becomes(line % (",down", ",down"))
        one.alive = True
        assert by_whom(p, one, two)[0] == 0
        # another policy; then one that is wrong: the one before stays, in a line
        new = Path(d) / "new"
        new.write_text(f"redirect 10.2.0.0/16 via 127.0.0.12,port={two.port},weight=7\n")
        two.alive = True
        new.rename(policy)
        a.becomes(f"redirect 10.2.0.0/16 via 127.0.0.12,weight=7,port={two.port}")
        assert by_whom(p, one, two)[0] == 1
        new.write_text("redirect everything\n")
        new.rename(policy)
        a.says("relays.conf:1: expected a prefix, found `everything`")
        assert a.lines() == [f"redirect 10.2.0.0/16 via 127.0.0.12,weight=7,port={two.port}"]
        assert a.log.read_text().count("everything") == 1
        a.stop()
        assert a.written.exists()  # programs go on


def test_a_long_line():
    """What the agent writes is longer than what it reads."""
    one = Relay("127.0.0.11")
    with temporary() as d:
        policy = Path(d) / "relays.conf"
        policy.write_text(f"redirect 10.2.0.0/24 via 127.0.0.11,port={one.port} else" + " 127.0.0.13" * 250 + "\n")
        a = Agent(d, f"policy {policy}")
        until(lambda: a.lines() and "127.0.0.13,weight=1,port=4795,down" in a.lines()[0], 20 * SLOW)
        assert len(a.lines()[0]) > 4096 > len(policy.read_text())
        assert by_whom(Program(a.written), one)[0] == 0
        a.stop()


def test_what_is_no_answer_does_not_count():
    one, other = Relay("127.0.0.13"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind(("127.0.0.14", 0))

    def id_changed(b, who):
        b[15] ^= 1
        one.s.sendto(b, who)

    def asks_back(b, who):
        b[5] &= 0x7f
        one.s.sendto(b, who)

    lies = [id_changed, asks_back, lambda b, who: one.s.sendto(b[:63], who), lambda b, who: one.s.sendto(b"x" * 64, who), lambda b, who: other.sendto(b, who)]
    with temporary() as d:
        policy = Path(d) / "relays.conf"
        policy.write_text(f"redirect 10.2.0.0/24 via 127.0.0.13,port={one.port}\n")
        a = Agent(d, f"policy {policy}")
        line = f"redirect 10.2.0.0/24 via 127.0.0.13,weight=1,port={one.port}"
        a.becomes(line)
        for lie in lies:
            one.lie = lie
            a.becomes(line + ",down")
            one.lie = None
            a.becomes(line)
        # any answer is a sign of life, also that of a relay which does not know the question
        def unknown(b, who):
            b[6] = 8
            one.s.sendto(b, who)
        one.lie = unknown
        time.sleep(8 * PROBE / 1000)
        assert a.lines() == [line]
        a.stop()


# --- a controller ---------------------------------------------------------------------------------------


class World:
    def __init__(self, d, lease="60s"):
        self.d, self.ca = Path(d), CA(Path(d) / "ca")
        self.context = {n: self.ca.issue(n, role, *a) for n, role, a in (
            ("ctl", "controller", ["127.0.0.1"]), ("op", "operator", []), ("r1", "gateway", []), ("r2", "gateway", []), ("far", "gateway", []), ("host-1", "host", []))}
        self.lease = lease
        self.ctl = Controller(BUILD, self.ca, d, f"{{kind: sqlite, path: {d}/c.db}}", lease=lease)
        self.op = self.ctl.client(self.context["op"])
        self.relay = {"r1": Relay("127.0.0.21"), "r2": Relay("127.0.0.22"), "far": Relay("127.0.0.23")}
        self.op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/24"]}, 201)
        self.op.put("/v1/sites/b", {"prefixes": ["10.2.0.0/24"]}, 201)
        self.gw = {n: Gateway(self.ctl.client(self.context[n]), n, "b" if n == "far" else "a", i + 11) for i, n in enumerate(self.relay)}
        for n, g in self.gw.items():
            g.reg["capabilities"]["relay"] = {"addresses": [self.relay[n].address], "ask_port": self.relay[n].port, "redirect_port": 4790, "links_max": 100}
            g.register()

    def agent(self, more="", urls=None, name="host-1", **kw):
        urls = urls or [f"https://127.0.0.1:{self.ctl.port}"]
        return Agent(self.d, f"controller {' '.join(urls)}\nca {self.ca.dir}/ca.pem\ncertificate {self.ca.dir}/{name}.pem\nkey {self.ca.dir}/{name}.key\n"
                             f"name {name}\nsite a\n{more}", **kw)

    def line(self, first="", second="", weights=(100, 100)):
        r = [self.relay["r1"], self.relay["r2"]]
        return (f"redirect 10.2.0.0/24 via {r[0].address},weight={weights[0]},port={r[0].port}{first} {r[1].address},weight={weights[1]},port={r[1].port}{second}")

    def hosts(self):
        return {h["name"]: h for h in self.op.get("/v1/hosts")["hosts"]}


def test_the_controller_says_it_and_hears_what_is_down():
    with temporary() as d:
        w = World(d)
        a = w.agent()
        a.becomes(w.line())
        p = Program(a.written)
        until(lambda: w.hosts().get("host-1", {}).get("generation"))
        h = w.hosts()["host-1"]
        assert h["state"] == "up" and h["site"] == "a" and h["down"] == [] and h["generation"] > 0, h
        assert f"Generation {h['generation']} of https://127.0.0.1:{w.ctl.port}, site a." in a.written.read_text()
        # the relay's server dies: the host notices before the controller does, and tells it
        w.relay["r1"].alive = False
        a.becomes(w.line(",down"))
        until(lambda: w.hosts()["host-1"]["down"] == ["127.0.0.21"])
        who, took = by_whom(p, *w.relay.values())
        assert who == 1 and took < 1 * SLOW, (who, took)
        w.relay["r1"].alive = True
        a.becomes(w.line())
        until(lambda: w.hosts()["host-1"]["down"] == [])
        # the operator changes it, and it is there at once
        w.op.put("/v1/sites/a", {"prefixes": ["10.1.0.0/24"], "relays": [{"gateway": "r2", "weight": 5}, {"gateway": "r1", "weight": 1, "order": 2}]})
        r1, r2 = w.relay["r1"], w.relay["r2"]
        a.becomes(f"redirect 10.2.0.0/24 via 127.0.0.22,weight=5,port={r2.port} else 127.0.0.21,weight=1,port={r1.port}")
        assert by_whom(p, *w.relay.values())[0] == 1
        # no relay any more: programs connect directly
        w.op.delete("/v1/gateways/far")
        a.becomes()
        a.stop()
        w.ctl.stop()


def test_another_controller_and_none():
    """Of two the first does not answer; then none does: programs go by what was said last."""
    with temporary() as d:
        w = World(d)
        dead = socket.socket()
        dead.bind(("127.0.0.1", 0))
        a = w.agent(urls=[f"https://127.0.0.1:{dead.getsockname()[1]}", f"https://127.0.0.1:{w.ctl.port}"])
        a.becomes(w.line())
        w.ctl.kill()
        w.relay["r2"].alive = False
        a.becomes(w.line("", ",down"))  # relays are asked all the same
        w.ctl.start()
        w.op.close()
        until(lambda: w.hosts().get("host-1", {}).get("down") == ["127.0.0.22"], 60 * SLOW)
        a.stop()
        w.ctl.stop()


def test_after_the_lease():
    with temporary() as d:
        w = World(d, lease=f"{round(2000 * SLOW)}ms")
        stop = threading.Event()

        def renew():
            while not stop.wait(0.5 * SLOW):
                for g in w.gw.values():
                    g.renew()
        t = threading.Thread(target=renew)
        t.start()
        try:
            a = w.agent("after-lease drop")
            a.becomes(w.line())
            until(lambda: w.hosts().get("host-1"))
        finally:
            stop.set()
            t.join()
        w.ctl.kill()
        until(lambda: a.lines() is None, 60 * SLOW)  # the operator's own file counts now
        a.says("the lease has run out")
        a.stop()
        (Path(d) / "redirect.conf").write_text("redirect 10.9.0.0/24 via 10.1.0.1\n")
        a = w.agent("after-lease keep", fresh=False)
        a.says("lease:")
        time.sleep(5 * SLOW)
        assert a.lines() == ["redirect 10.9.0.0/24 via 10.1.0.1"]  # of the agent before it
        a.stop()


def test_a_wrong_certificate_is_told():
    with temporary() as d:
        w = World(d)
        a = w.agent(name="r1")
        a.says("403")
        assert a.lines() is None
        a.stop()
        a = w.agent("", name="host-1")
        a.becomes(w.line())
        a.stop()
        text = (w.d / "agent.conf").read_text().replace("site a", "site nowhere").replace(f"write {a.written}\nprobe {PROBE}\n", "")
        a = Agent(d, text)
        a.says("there is no site nowhere")
        assert a.lines() is None
        a.stop()
        w.ctl.stop()


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
