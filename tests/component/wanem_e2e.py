#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end test of wanem: the real binary between two veth pairs, in namespaces of its own.

    h1 [e0] ---- [wa] wanem [wb] ---- [e0] h2

The test sends raw Ethernet frames in h1, numbered and stamped, and receives them in h2. It checks
bounds only: never earlier than configured, and not later than wanem says that it was.
Needs root. Argument: the build folder. Prints TAP.
"""
import ctypes
import json
import math
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
WANEM = os.path.join(BUILD, "bin", "wanem")
TAG = "wnm%d" % os.getpid()
H1, MID, H2 = TAG + "h1", TAG + "m", TAG + "h2"
ETHERTYPE = 0x88B5  # for local experiments
HEAD = struct.Struct("!6s6sHIQ")  # Ethernet header, number, time sent
CLONE_NEWNET = 0x40000000
EARLY = 0.5e-3
LATE_MEDIAN = 0.004  # s, beside wanem's own lateness: on a busy machine any process is late sometimes

libc = ctypes.CDLL(None, use_errno=True)


def sh(*words):
    subprocess.run(words, check=True)


def socket_in(netns, ifname, protocol=ETHERTYPE):
    """A raw socket in another namespace."""
    back = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + netns, os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
        s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS: kernel's time of arrival
        s.bind((ifname, protocol))
        s.setblocking(False)
        return s
    finally:
        libc.setns(back, CLONE_NEWNET)
        os.close(back)
        os.close(there)


def topology():
    for ns in (H1, MID, H2):
        sh("ip", "netns", "add", ns)
        for what in ("all", "default"):  # no IPv6 messages of the kernel
            subprocess.run(("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.%s.disable_ipv6=1" % what),
                           stderr=subprocess.DEVNULL)
    for host, mid in ((H1, "wa"), (H2, "wb")):
        sh("ip", "-n", MID, "link", "add", mid, "type", "veth", "peer", "name", "e0", "netns", host)
        sh("ip", "-n", MID, "link", "set", mid, "mtu", "9000", "up")
        sh("ip", "-n", host, "link", "set", "e0", "mtu", "9000", "up")


def cleanup():
    for ns in (H1, MID, H2):
        subprocess.run(("ip", "netns", "del", ns), stderr=subprocess.DEVNULL)


class Wanem:
    def __init__(self, folder, *options):
        self.control = os.path.join(folder, "control")
        self.proc = subprocess.Popen(("ip", "netns", "exec", MID, WANEM, "--a", "wa", "--b", "wb", "--control",
                                      self.control) + options, stderr=subprocess.PIPE, text=True)
        line = self.proc.stderr.readline()
        if "ready" not in line:
            raise RuntimeError("wanem did not start: " + line)

    def ctl(self, *words):
        return subprocess.run((WANEM, "ctl", self.control) + words, capture_output=True, text=True)

    def set(self, direction, *settings):
        r = self.ctl("set", direction, *settings)
        assert r.stdout == "ok\n", r

    def stats(self):
        return json.loads(self.ctl("stats", "--json").stdout)

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        rest = self.proc.stderr.read()
        return self.proc.wait(5), rest


class Flow:
    """Numbered frames from one end to the other."""

    def __init__(self, tx, rx):
        self.tx, self.rx = tx, rx
        self.next = 0
        self.sent_at, self.got = {}, []  # number -> ns; (number, arrival ns, frame)

    def send(self, count, size=200, gap=0.0, start=None):
        due = start or time.monotonic()
        for _ in range(count):
            while gap and time.monotonic() < due:
                self.collect()
                time.sleep(max(0, min(gap, due - time.monotonic())))
            due += gap
            now = time.time_ns()
            frame = HEAD.pack(b"\x02\0\0\0\0\2", b"\x02\0\0\0\0\1", ETHERTYPE, self.next, now)
            self.sent_at[self.next] = now
            self.tx.send(frame + bytes(i & 0xFF for i in range(size - len(frame))))
            self.next += 1

    def collect(self):
        while True:
            try:
                frame, control, _, _ = self.rx.recvmsg(9100, 64)
            except BlockingIOError:
                return
            sec, nsec = struct.unpack("qq", control[0][2])
            self.got.append((HEAD.unpack_from(frame)[3], sec * 10**9 + nsec, frame))

    def settle(self, quiet=0.15):
        """Waits until no frame has come for a while."""
        count, since = len(self.got), time.monotonic()
        while time.monotonic() - since < quiet:
            time.sleep(0.01)
            self.collect()
            if len(self.got) != count:
                count, since = len(self.got), time.monotonic()

    def delays(self):
        return [(at - self.sent_at[n]) / 1e9 for n, at, _ in self.got if n in self.sent_at]

    def numbers(self):
        return [n for n, _, _ in self.got]


class Tests:
    def __init__(self, folder):
        self.count = self.failed = 0
        self.folder = folder
        self.h1, self.h2 = socket_in(H1, "e0"), socket_in(H2, "e0")

    def check(self, ok, what, detail=""):
        self.count += 1
        self.failed += not ok
        print("%s %d - %s%s" % ("ok" if ok else "not ok", self.count, what, " (%s)" % detail if detail else ""), flush=True)

    def flow(self):
        f = Flow(self.h1, self.h2)
        f.collect()
        f.got.clear()
        return f

    def check_delay(self, w, f, want, what):
        d = f.delays()
        late = max(s["late_ns"]["max"] for s in w.stats().values() if isinstance(s, dict) and "late_ns" in s) / 1e9
        # wanem counts from the kernel's arrival stamp, a wall clock that the host may step by about
        # 100 us.
        ok = d and min(d) >= want - EARLY and statistics.median(d) <= want + late + LATE_MEDIAN
        self.check(ok, what, "min %.3f median %.3f ms of %d, at most %.3f ms late" % (
            min(d) * 1e3, statistics.median(d) * 1e3, len(d), late * 1e3) if d else "none")

    def check_share(self, hits, n, p, what):
        dev = math.sqrt(n * p * (1 - p))
        self.check(abs(hits - n * p) <= 5 * dev + 1, what, "%d of %d, %.0f +- %.0f expected" % (hits, n, n * p, 5 * dev))

    def transparent(self, w):
        f = self.flow()
        f.send(500, gap=0.0002)
        for size in (60, 1514, 9014):
            f.send(20, size)
        f.settle()
        self.check(f.numbers() == list(range(f.next)), "a neutral link passes everything in order", "%d" % len(f.got))
        self.check({len(x[2]) for x in f.got[500:]} == {60, 1514, 9014}, "frame sizes up to 9014 bytes")
        self.check_delay(w, f, 0, "no delay asked")

    def delay(self, w):
        for ms in (2, 20):
            w.set("both", "delay=%dms" % ms)
            f = self.flow()
            f.send(600, gap=0.0005)
            f.settle()
            self.check(f.numbers() == list(range(600)), "delay=%dms: all delivered in order" % ms)
            self.check_delay(w, f, ms / 1e3, "delay=%dms: not earlier, not much later" % ms)

    def directions(self, w):
        w.set("both", "delay=1ms")
        w.set("b-to-a", "delay=15ms")
        there, back = self.flow(), Flow(self.h2, self.h1)
        back.collect()
        back.got.clear()
        there.send(200, gap=0.0005)
        back.send(200, gap=0.0005)
        there.settle()
        back.settle()
        self.check_delay(w, there, 0.001, "a-to-b has its own delay")
        self.check_delay(w, back, 0.015, "b-to-a has its own delay")

    def jitter(self, w):
        w.set("both", "delay=10ms", "jitter=5ms")
        f = self.flow()
        f.send(1500, gap=0.0003)
        f.settle()
        d = f.delays()
        self.check(f.numbers() == list(range(1500)), "jitter keeps the order")
        self.check(min(d) >= 0.005 and statistics.pstdev(d) > 0.0002, "jitter spreads the delay",
                   "deviation %.2f ms" % (statistics.pstdev(d) * 1e3))
        w.set("both", "keep-order=off")
        f = self.flow()
        f.send(1500, gap=0.0003)
        f.settle()
        self.check(sorted(f.numbers()) == list(range(1500)) and f.numbers() != list(range(1500)),
                   "keep-order=off: all delivered, out of order")
        w.set("both", "jitter=0", "keep-order=on", "delay=1ms")

    def loss(self, w):
        for text, p in (("1%", 0.01), ("0.2", 0.2)):
            w.set("both", "loss=" + text)
            before = w.stats()["a_to_b"]["counters"]["drop_loss"]
            f = self.flow()
            f.send(5000, 100, gap=0.00004)
            f.settle()
            lost = 5000 - len(f.got)
            self.check_share(lost, 5000, p, "loss=%s" % text)
            counted = w.stats()["a_to_b"]["counters"]["drop_loss"] - before
            self.check(counted == lost, "loss=%s: counted as drop_loss" % text, "%d, lost %d" % (counted, lost))
        w.set("both", "loss=5%", "burst=10")
        f = self.flow()
        f.send(8000, 100, gap=0.00004)
        f.settle()
        got = set(f.numbers())
        lost = 8000 - len(got)
        bursts = sum(n not in got and (n == 0 or n - 1 in got) for n in range(8000))
        self.check(bursts and 5 < lost / bursts < 20 and 100 < lost < 1000, "loss=5% burst=10: few long bursts",
                   "%d lost in %d bursts" % (lost, bursts))
        w.set("both", "loss=0", "burst=1")

    def mangle(self, w):
        w.set("both", "dup=5%")
        f = self.flow()
        f.send(4000, 100, gap=0.00004)
        f.settle()
        self.check_share(len(f.got) - 4000, 4000, 0.05, "dup=5%")
        w.set("both", "dup=0", "corrupt=10%", "corrupt-bits=3")
        f = self.flow()
        f.send(4000, 100, gap=0.00004)
        f.settle()
        bad, bits = 0, []
        for i, (_, _, frame) in enumerate(f.got):  # in order: the i-th is number i
            want = HEAD.pack(b"\x02\0\0\0\0\2", b"\x02\0\0\0\0\1", ETHERTYPE, i, f.sent_at[i])
            want += bytes(range(100 - len(want)))
            flips = sum(bin(a ^ b).count("1") for a, b in zip(frame, want))
            bad += flips > 0
            bits += [flips] if flips else []
        self.check(len(f.got) == 4000, "corruption loses nothing")
        self.check_share(bad, 4000, 0.1, "corrupt=10%")
        self.check(set(bits) == {1, 2, 3}, "1 to corrupt-bits bits are flipped")
        w.set("both", "corrupt=0", "reorder=2%", "reorder-delay=5ms")
        f = self.flow()
        f.send(3000, 100, gap=0.0001)
        f.settle()
        late = sum(d > 0.0055 for d in f.delays())
        self.check(sorted(f.numbers()) == list(range(3000)), "reorder loses nothing")
        self.check(late >= 20 and f.numbers() != list(range(3000)), "reorder=2%: some overtake", "%d late" % late)
        w.set("both", "reorder=0")

    def rate(self, w):
        w.set("both", "delay=0", "rate=4Mbit", "queue=100")
        f = self.flow()
        f.send(300, 1250)  # 2.5 ms each; sent at once
        f.settle()
        n = len(f.got)
        spent = (f.got[-1][1] - f.got[0][1]) / 1e9
        self.check(100 <= n < 290, "queue=100: the rest is dropped", "%d delivered" % n)
        self.check((n - 1) * 0.0025 - 0.02 <= spent <= (n - 1) * 0.0025 + 0.02, "rate=4Mbit", "%d frames in %.1f ms" % (n, spent * 1e3))
        st = w.stats()["a_to_b"]
        self.check(st["queue"]["max_packets"] == 100 and st["counters"]["drop_queue"] == 300 - n, "queue counters")
        w.set("both", "rate=unlimited")

    def outage(self, w):
        w.set("both", "delay=1ms")
        f = self.flow()
        w.ctl("outage", "on")
        f.send(100)
        time.sleep(0.05)
        w.ctl("outage", "off")
        f.send(100)
        f.settle()
        self.check(f.numbers() == list(range(100, 200)), "outage on, off")
        f = self.flow()
        start = time.time_ns()
        w.ctl("outage", "400ms")
        done = time.time_ns()
        f.send(400, gap=0.002)
        f.settle()
        first = f.sent_at[f.numbers()[0]]
        self.check(start + 400e6 <= first <= done + 600e6, "outage 400ms ends by itself", "after %.0f ms" % ((first - start) / 1e6))

    def live(self, w):
        f = self.flow()
        w.set("both", "delay=60ms")
        for step in ("delay=60ms", "delay=5ms", "delay=30ms", "rate=100Mbit", "rate=unlimited", "delay=1ms"):
            w.set("both", step)
            f.send(300, gap=0.0001)
        f.settle()
        self.check(f.numbers() == list(range(1800)), "changes while running lose and reorder nothing", "%d" % len(f.got))
        r = w.ctl("set", "both", "delay=1ms", "loss=300%")
        self.check(r.returncode == 1 and "loss" in r.stderr, "a wrong setting is refused", r.stderr.strip())
        self.check(w.ctl("frobnicate").returncode == 1, "an unknown command is refused")
        self.check("outage" in w.ctl("help").stdout, "help")
        self.check("a-to-b" in w.ctl("stats").stdout, "stats as a table")

    def vlan(self, w):
        s = socket_in(H2, "e0", 3)  # all protocols: the receiving kernel removes the tag as well
        s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: has the tag
        s.setblocking(True)
        s.settimeout(2)
        frame = HEAD.pack(b"\x02\0\0\0\0\2", b"\x02\0\0\0\0\1", ETHERTYPE, 0, 0) + bytes(60)
        before = w.stats()["a_to_b"]["counters"]["delivered_bytes"]
        self.h1.send(frame[:12] + b"\x81\0\x20\x64" + frame[12:])
        got, control, _, _ = s.recvmsg(9100, 256)
        tci = [struct.unpack_from("IIIHHHH", data)[5] for level, _, data in control if level == 263]
        size = w.stats()["a_to_b"]["counters"]["delivered_bytes"] - before
        self.check(got == frame and tci == [0x2064] and size == len(frame) + 4, "a tagged frame keeps its tag", "%r" % tci)
        s.close()

    def checksum(self, w):
        """The kernel leaves the UDP checksum to the veth; it must be complete after wanem."""
        sh("ip", "-n", H1, "addr", "add", "192.0.2.1/24", "dev", "e0")
        sh("ip", "-n", H1, "neigh", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:02", "dev", "e0")
        s = socket_in(H2, "e0", 0x0800)
        s.setblocking(True)
        s.settimeout(2)
        sh("ip", "netns", "exec", H1, sys.executable, "-c",
           "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'odd' * 33, ('192.0.2.2', 4791))")
        ip = s.recv(2000)[14:]
        s.close()
        data = ip[12:20] + struct.pack("!HH", 17, len(ip) - 20) + ip[20:] + bytes(len(ip) % 2)
        total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        self.check(total == 0xFFFF, "an offloaded UDP checksum is completed", "sum %#x" % total)

    def balance(self, w):
        w.set("both", "delay=1ms", "loss=3%", "burst=4", "dup=3%", "corrupt=3%", "reorder=3%", "jitter=500us",
              "rate=50Mbit", "queue=50kB")
        f = self.flow()
        f.send(4000, 300, gap=0.00003)
        f.settle()
        st = w.stats()["a_to_b"]
        c = st["counters"]
        drops = sum(v for k, v in c.items() if k.startswith("drop_") and k != "drop_rx_ring")
        self.check(c["drop_rx_ring"] == 0 and c["drop_tx"] == 0 and c["drop_offload"] == 0, "the kernel dropped nothing")
        self.check(c["in_packets"] + c["duplicated"] == c["delivered_packets"] + drops + st["held"]["packets"],
                   "every frame is accounted for", "%d in" % c["in_packets"])
        late = st["late_ns"]
        self.check(late["count"] == c["delivered_packets"] and late["min"] <= late["p50"] <= late["p99"] <= late["max"],
                   "lateness", "p50 %.0f p99 %.0f us" % (late["p50"] / 1e3, late["p99"] / 1e3))

    def same_seed(self):
        """Two runs with one seed lose the same frames; another seed loses others."""
        runs = []
        for seed in ("5", "5", "6"):
            w = Wanem(self.folder, "--seed", seed, "--a-to-b", "loss=10%", "--delay", "1ms")
            f = self.flow()
            f.send(500, 100, gap=0.00004)
            f.settle(0.1)
            w.stop()
            runs.append(f.numbers())
        self.check(runs[0] == runs[1], "the same seed loses the same frames", "%d lost" % (500 - len(runs[0])))
        self.check(runs[0] != runs[2], "another seed loses others")

    def interface_events(self):
        w = Wanem(self.folder)
        for state in ("down", "up"):
            sh("ip", "-n", MID, "link", "set", "wa", state)
            time.sleep(0.1)
        f = self.flow()
        f.send(20)
        f.settle()
        self.check(len(f.got) == 20, "an interface may go down and come back", "%d" % len(f.got))
        sh("ip", "-n", MID, "link", "del", "wa")
        try:
            code = w.proc.wait(5)
            self.check(code == 1 and "wa is gone" in w.proc.stderr.read(), "an interface that is removed ends it")
        except subprocess.TimeoutExpired:
            w.stop()
            self.check(False, "an interface that is removed ends it")

    def command_line(self):
        for args in (("--a", "x"), ("--a", "x", "--b", "y", "--loss", "150%"), ("--a", "x", "--b", "y", "--delay", "10"),
                     ("--a", "x", "--b", "y", "--nonsense"), ("--a", "x", "--b", "y", "--a-to-b", "speed=1")):
            r = subprocess.run((WANEM,) + args, capture_output=True, text=True)
            self.check(r.returncode == 2 and r.stderr.count("\n") == 1, "wrong arguments: " + " ".join(args), r.stderr.strip())
        r = subprocess.run((WANEM, "--a", "nosuchif0", "--b", "nosuchif1"), capture_output=True, text=True)
        self.check(r.returncode == 1 and "nosuchif0" in r.stderr, "an unknown interface")
        r = subprocess.run((WANEM, "-h"), capture_output=True, text=True)
        self.check(r.returncode == 0 and "--control" in r.stdout, "-h is help")
        r = subprocess.run(("ip", "netns", "exec", MID, WANEM, "--a", "wa", "--b", "wb", "--control", self.folder), capture_output=True, text=True)
        self.check(r.returncode == 1 and self.folder + ": Is a directory" in r.stderr, "a folder as control socket", r.stderr.strip())

    def idle(self, w):
        def cpu():
            with open("/proc/%d/stat" % w.proc.pid) as f:
                return sum(int(x) for x in f.read().rsplit(") ", 1)[1].split()[11:13])

        before = cpu()
        time.sleep(0.5)
        self.check(cpu() - before <= 2, "idle: it sleeps", "%d ticks" % (cpu() - before))

    def full_disk(self):
        """It says so when it happens, goes on with the link, and its status tells it."""
        w = Wanem(self.folder, "--pcap", "/dev/full", "--stats-interval", "50ms")
        lines = [w.proc.stderr.readline() for _ in range(3)]
        self.check(sum(l == "wanem: --pcap: No space left on device: the capture ends here\n" for l in lines) == 1, "a full disk is told", "".join(lines))
        with open("/dev/full", "w") as full:
            r = subprocess.run((WANEM, "ctl", w.control, "stats"), stdout=full, stderr=subprocess.PIPE, text=True)
        self.check(r.returncode == 1 and "cannot write to standard output" in r.stderr, "statistics that nobody gets fail", r.stderr)
        code, text = w.stop()
        self.check(code == 1 and "--pcap" not in text, "a capture that failed: exit 1", text.strip())

    def run(self):
        self.command_line()
        self.full_disk()
        pcap = os.path.join(self.folder, "out.pcap")
        w = Wanem(self.folder, "--seed", "11", "--pcap", pcap)
        for test in (self.transparent, self.delay, self.directions, self.jitter, self.loss, self.mangle, self.rate,
                     self.outage, self.live, self.vlan, self.checksum, self.balance, self.idle):
            test(w)
        c = w.stats()
        left = sum(c[d]["counters"]["delivered_packets"] for d in ("a_to_b", "b_to_a"))
        size = sum(c[d]["counters"]["delivered_bytes"] for d in ("a_to_b", "b_to_a"))
        code, text = w.stop()
        self.check(code == 0 and text.count("\n") == 1 and "a-to-b in" in text, "SIGTERM: exit 0 and a summary", text.strip())
        self.check(os.path.getsize(pcap) == 24 + 16 * left + size, "the capture has all that left")
        self.check(not os.path.exists(w.control), "the control socket is gone")
        self.same_seed()
        self.interface_events()
        print("1..%d" % self.count)
        return self.failed


def main():
    if os.geteuid():
        print("1..0 # SKIP needs root")
        return 0
    try:
        topology()
        with tempfile.TemporaryDirectory() as folder:
            return 1 if Tests(folder).run() else 0
    finally:
        for p in subprocess.run(("ip", "netns", "pids", MID), capture_output=True, text=True).stdout.split():
            os.kill(int(p), signal.SIGTERM)
        cleanup()


if __name__ == "__main__":
    sys.exit(main())
