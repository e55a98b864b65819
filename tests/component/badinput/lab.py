# SPDX-License-Identifier: Apache-2.0
# Two gateways with a host each, whose LAN and WAN tests write to: for gw_badinput.py.
import contextlib
import ctypes
import http.client
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time

from badinput.packets import Pkt, roce

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
GATEWAY = os.path.join(BUILD, "bin", "roceway-gateway")
TAG = "rbi%d" % os.getpid()
HA, GA, GB, HB = (TAG + n for n in ("ha", "ga", "gb", "hb"))
HALF_OPEN_MAX = 40
libc = ctypes.CDLL(None, use_errno=True)
rng = random.Random(1)
CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway: {{name: "{tag}{side}", workers: 1, polling: adaptive, log_level: info, journal_dir: {folder}, drain_timeout: 0s}}
eal:
  args: ["--in-memory", "--no-huge", "-m", "128"]
ports:
  - {{name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [10.{n}.0.1/24, "fd00:{n}::1/64"], mtu: 1500}}
  - {{name: wan, device: "net_af_packet1,iface=wan0", role: wan, addresses: [192.0.2.{n}/24], mtu: 1500}}
tunnels:
  - name: far
    port: wan
    local: 192.0.2.{n}
    remote: 192.0.2.{m}
    prefixes: [10.{m}.0.0/24, "fd00:{m}::/64"]
    security: none
connections: {{half_open_max: {half}}}
memory: {{buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}}
api: {{socket: {sock}}}
"""
# Counters that change by themselves or with any packet, good or bad.
NOISE = {"rx_packets", "tx_packets", "to_engine_lan", "to_engine_wan", "to_kernel", "from_kernel", "tx_in_place", "tx_chained",
         "tx_copied", "neigh_misses", "lan_rx_packets", "lan_rx_bytes", "lan_tx_packets", "lan_tx_bytes", "roce_rx",
         "tx_datagrams", "tx_bytes", "rx_datagrams", "rx_bytes", "acks_sent", "acks_received", "tx_data", "rx_data", "pto",
         "tx_retransmit", "retransmit_lost", "retransmit_probe", "retransmit_copy", "retransmit_moved", "retransmit_detour", "spurious_retransmit", "lost", "rx_duplicate", "dgram_sent", "dgram_received"}


def sh(*words):
    subprocess.run(words, check=True)


@contextlib.contextmanager
def inside(netns):
    back, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/run/netns/" + netns, os.O_RDONLY)
    try:
        if libc.setns(there, 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(back, 0x40000000)
        os.close(back)
        os.close(there)


class Wire:
    """A raw socket on an interface."""

    def __init__(self, netns, ifname):
        with inside(netns):
            self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.s.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        self.s.bind((ifname, 3))
        self.mac = self.s.getsockname()[4]
        self.peer = None

    def frame(self, payload, ethertype=None, dst=None, src=None):
        if ethertype is None:
            ethertype = 0x86DD if payload[:1] and payload[0] >> 4 == 6 else 0x0800
        return (dst or self.peer) + (src or self.mac) + struct.pack(">H", ethertype) + payload

    def raw(self, frame):
        for _ in range(200):
            try:
                self.s.send(frame)
                return
            except OSError:  # ENOBUFS
                time.sleep(0.001)

    def send(self, packets, **how):
        """Paced: the gateway's receive ring is small, and packets beyond it are lost uncounted."""
        for i, p in enumerate(packets):
            self.raw(self.frame(p, **how))
            if i % 64 == 63:
                time.sleep(0.002)

    def recv(self, timeout=0.0):
        if not select.select([self.s], [], [], timeout)[0]:
            return None
        frame, where = self.s.recvfrom(65535)
        return b"" if where[2] == 4 else frame  # PACKET_OUTGOING

    def drain(self):
        while self.recv() is not None:
            pass


class Host(Wire):
    """A host with one responder: queue pairs by number, each with the PSN it expects, and its peer.
    """

    def __init__(self, side, netns):
        super().__init__(netns, "eth0")
        self.side, self.qps, self.seen = side, {}, []

    def pump(self, seconds=0.0, until=None):
        """Reads all packets; answers requests to our queue pairs as a host does."""
        end = time.monotonic() + seconds
        while True:
            frame = self.recv(max(0.0, min(0.02, end - time.monotonic())))
            if frame:
                self.take(frame)
            if until and until():
                return True
            if frame is None and time.monotonic() >= end:
                return False

    def take(self, frame):
        kind = struct.unpack(">H", frame[12:14])[0]
        ip = frame[14:]
        if kind not in (0x0800, 0x86DD) or len(ip) < 28 or frame[0] & 1 or (kind == 0x86DD and ip[6] == 58):
            return  # ARP, ND and the like
        if ip[0] >> 4 == 4:
            ip = ip[:struct.unpack(">H", ip[2:4])[0]]
        proto, dport = (ip[6], ip[42:44]) if ip[0] >> 4 == 6 else (ip[9], ip[22:24])
        p = Pkt(ip) if proto == 17 and dport == b"\x12\xb7" and len(ip) >= 44 else None
        if p and p.qpn in self.qps and 0x0C > p.op:
            self.respond(p)
        self.seen.append(p or ip)

    def respond(self, p):
        qp = self.qps[p.qpn]
        ahead = (p.psn - qp["epsn"] + 0x800000 & 0xFFFFFF) - 0x800000
        assert p.good, "bad ICRC on the LAN"
        if ahead == 0:
            qp["epsn"] = p.psn + 1 & 0xFFFFFF
            qp["got"].append(bytes(p.payload))
        if ahead > 0 or p.ack:
            psn = (qp["epsn"] if ahead > 0 else qp["epsn"] - 1) & 0xFFFFFF
            self.send([roce(self.side, 0x11, qp["peer"], psn, v6=p.v6, host=qp["host"], syndrome=0x60 if ahead > 0 else 0x1F)])


class Gateway:
    def __init__(self, folder, side):
        n, m = (1, 2) if side == "a" else (2, 1)
        self.side, self.netns = side, GA if side == "a" else GB
        self.config, self.log, self.sock = (os.path.join(folder, side + x) for x in (".yaml", ".log", ".sock"))
        with open(self.config, "w") as f:
            f.write(CONFIG.format(tag=TAG, folder=folder, side=side, n=n, m=m, half=HALF_OPEN_MAX, sock=self.sock))
        with open(self.log, "w") as log:
            self.proc = subprocess.Popen(("ip", "netns", "exec", self.netns, GATEWAY, "--config", self.config), stderr=log,
                                         stdout=log)

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def wait(self, text, seconds=15):
        end = time.monotonic() + seconds
        while text not in self.text():
            assert self.proc.poll() is None, "gateway ended: " + self.text()
            assert time.monotonic() < end, "no `%s` in: %s" % (text, self.text())
            time.sleep(0.02)

    def ask(self, page, seconds=30):
        """Of the API, without a program: it is asked some hundred times. On a busy machine a worker may not answer at once."""
        end = time.monotonic() + seconds
        while True:
            status, out = self.ask_once(page)
            if status == 200:
                return out
            assert status == 503 and time.monotonic() < end, out

    def ask_once(self, page):
        assert self.proc.poll() is None, "gateway %s ended with %s: %s" % (self.side, self.proc.returncode, self.text()[-3000:])
        c = http.client.HTTPConnection("gateway")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.settimeout(20)
        c.sock.connect(self.sock)
        c.request("GET", page)
        r = c.getresponse()
        out = json.loads(r.read())
        c.close()
        return r.status, out

    def counters(self):
        """By name; the tunnel's begin with wan_, the application's with gw_ if the engine has one
        of that name."""
        out = {}
        for c in self.ask("/v1/counters")["counters"]:
            name = "wan_" + c["name"] if c["group"] == "tunnel" else c["name"]
            if c["group"] != "port":
                out["gw_" + name if name in out else name] = c["value"]
        return out

    def flows(self):
        return self.ask("/v1/flows?limit=1")["total"]

    def rss(self):
        with open("/proc/%d/statm" % self.proc.pid) as f:
            return int(f.read().split()[1]) * 4096

    def stop(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        return self.proc.wait(10)

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


def watched(c):
    return {k: v for k, v in c.items() if k not in NOISE and k.removeprefix("wan_") not in NOISE}


def changes(before, after):
    a, b = watched(before), watched(after)
    return {k: b[k] - a[k] for k in b if b[k] != a[k]}


class Lab:
    def __init__(self, folder):
        self.folder, self.gw = folder, {}
        for ns in (HA, GA, GB, HB):
            sh("ip", "netns", "add", ns)
            for knob in ("all", "default"):
                sh("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.%s.accept_dad=0" % knob,
                   "net.ipv6.conf.%s.router_solicitations=0" % knob)
        for host, gw in ((HA, GA), (HB, GB)):
            sh("ip", "-n", gw, "link", "add", "lan0", "type", "veth", "peer", "name", "eth0", "netns", host)
        sh("ip", "-n", GA, "link", "add", "wan0", "type", "veth", "peer", "name", "wan0", "netns", GB)
        for ns, dev in ((HA, "eth0"), (HB, "eth0"), (GA, "lan0"), (GB, "lan0"), (GA, "wan0"), (GB, "wan0")):
            if dev == "eth0":
                sh("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=1")
            sh("ip", "-n", ns, "link", "set", dev, "mtu", "9000" if dev != "wan0" else "1500", "up")
        self.a, self.b = Host("a", HA), Host("b", HB)
        self.wan_a, self.wan_b = Wire(GA, "wan0"), Wire(GB, "wan0")
        self.wan_a.peer, self.wan_b.peer = self.wan_b.mac, self.wan_a.mac
        for host, netns in ((self.a, GA), (self.b, GB)):
            with inside(netns), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
                s.bind(("lan0", 0))
                host.peer = s.getsockname()[4]
        self.next_qpn = 0x100

    def start(self):
        self.gw = {side: Gateway(self.folder, side) for side in "ab"}
        for g, host, n in ((self.gw["a"], self.a, 1), (self.gw["b"], self.b, 2)):
            g.wait(" ready")
            for ip in [t % (n, h) for t in ("10.%d.0.%d", "fd00:%d::%d") for h in (2, 3, 4, 5)]:
                sh("ip", "-n", g.netns, "neigh", "replace", ip, "lladdr", ":".join("%02x" % x for x in host.mac), "dev",
                   "rwy-lan", "nud", "permanent")
        for g in self.gw.values():
            g.wait("state=up")
        self.lasting = {v6: self.connect(v6) for v6 in (False, True)}

    def close(self):
        for g in self.gw.values():
            g.kill()
        for ns in (HA, GA, GB, HB):
            subprocess.run(("ip", "netns", "del", ns), stderr=subprocess.DEVNULL)

    # a valid connection from A to B

    def connect(self, v6=False, host=None):
        qpn = self.next_qpn
        self.next_qpn += 2
        qp = {"peer": qpn + 1, "epsn": rng.randrange(1 << 24), "got": [], "host": host}
        self.b.qps[qpn] = qp
        flow = {"qpn": qpn, "psn": qp["epsn"], "v6": v6, "qp": qp, "host": host}
        assert self.write(flow, 5), "a new connection does not work: %s" % self.gw["a"].text()[-800:]
        return flow

    def write(self, flow, seconds=2.0):
        """A WRITE ONLY with AckReq, with retransmissions as of a host. True if it arrived once and
        A has its ACK."""
        psn, flow["psn"] = flow["psn"], flow["psn"] + 1 & 0xFFFFFF
        delivered = self.gw["a"].counters()["delivered"]
        payload = rng.randbytes(rng.randrange(1, 700))
        packet = roce("a", 0x0A, flow["qpn"], psn, payload, ack=True, v6=flow["v6"], host=flow["host"])
        padded = payload + bytes(-len(payload) % 4)
        del flow["qp"]["got"][:], self.a.seen[:]

        def acked():
            self.b.pump()
            return any(isinstance(p, Pkt) and p.op == 0x11 and p.qpn == flow["qp"]["peer"] and p.psn == psn and
                       p.syndrome == 0x1F for p in self.a.seen) and flow["qp"]["got"]

        end, gap = time.monotonic() + seconds, 0.4
        while time.monotonic() < end:
            self.a.send([packet])
            if self.a.pump(gap, acked):
                return flow["qp"]["got"] == [padded] and self.is_delivered(delivered + 1)
            gap = min(gap * 2, 1)
        return False

    def is_delivered(self, n, seconds=10):
        """Gateway A has heard of so many: nothing of a good connection is on its way when an attack begins."""
        end = time.monotonic() + seconds
        while self.gw["a"].counters()["delivered"] < n:
            if time.monotonic() > end:
                return False
        return True

    def works(self):
        assert all(self.write(f) for f in self.lasting.values()), "the good connection does not go on"

    # one class of packets

    def attack(self, expect, send, at="a", at_other=None, seen=0, flows=0, settle=15, allow=()):
        """Runs send(); `expect`: change of counters of gateway `at`; `seen`: packets that reach the
        other host."""
        g, other = self.gw[at], self.gw["ab".replace(at, "")]
        for h in (self.a, self.b):
            h.pump()
            del h.seen[:]
        before, before_other, n = g.counters(), other.counters(), g.flows()
        send()
        moved = lambda: {k: v for k, v in changes(before, g.counters()).items() if k not in allow}
        moved_other = lambda: {k: v for k, v in changes(before_other, other.counters()).items() if k not in allow}
        end = time.monotonic() + settle
        while time.monotonic() < end:
            for h in (self.a, self.b):
                h.pump(0.03)
            if moved() == expect and moved_other() == (at_other or {}) and len((self.b if at == "a" else self.a).seen) == seen:
                break
        for h in (self.a, self.b):
            h.pump(0.03)
        got = moved()
        assert got == expect, "counters of gateway %s: %s, should be %s" % (at, got, expect)
        got = moved_other()
        assert got == (at_other or {}), "counters of the other gateway: %s" % got
        arrived = (self.b if at == "a" else self.a).seen
        assert len(arrived) == seen, "%d packets reached the other host, should be %d" % (len(arrived), seen)
        assert g.flows() == n + flows, "%d flows, %d before" % (g.flows(), n)
        self.works()
