#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile packets to two real gateways, from a host on the LAN and from attackers on the WAN.

    ha [eth0] -- [lan0] ga [wan0] ======= [wan0] gb [lan0] -- [eth0] hb

After each class of packets: exactly the named counters changed, at the attacked gateway and at no
other; there is no new flow; no packet reached the other LAN; and a valid connection from before
still carries a WRITE and its ACK. The test acts as both hosts, on raw sockets. It also makes
packets and ICRCs, from the standards, not with roce/. Needs root. Argument: the build folder.
"""
import array
import contextlib
import ctypes
import fcntl
import http.client
import ipaddress
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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


# --- packets ------------------------------------------------------------------------------------

IPS = {side: ("10.%d.0.2" % n, "fd00:%d::2" % n) for side, n in (("a", 1), ("b", 2))}
EXT = {**{op: 16 for op in (0x06, 0x0A, 0x0C)}, 0x0B: 20, **{op: 4 for op in (0x03, 0x05, 0x09, 0x16, 0x17)}, 0x12: 12,
       **{op: 4 for op in (0x0D, 0x0F, 0x10, 0x11)}, 0x13: 28, 0x14: 28}
RC = [op for op in range(0x18) if op != 0x15]
NO_PAYLOAD = {0x0C, 0x11, 0x12, 0x13, 0x14}
KNOWN = set(RC) | set(range(0x20, 0x2C)) | set(range(0x40, 0x56)) | {0x64, 0x65, 0x81} | {0xA0 + op for op in RC}


def csum(data):
    s = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def addr(text):
    return ipaddress.ip_address(text).packed


def ip_packet(src, dst, payload, proto=17, ttl=64, options=b"", frag=0x4000, tos=0, length=None, ext6=b""):
    """An IP packet with right lengths and checksum, or the given length."""
    if ":" in src:
        n = len(ext6) + len(payload) if length is None else length
        return struct.pack(">IHBB", 6 << 28 | tos << 20, n, proto, ttl) + addr(src) + addr(dst) + ext6 + payload
    n = 20 + len(options) + len(payload) if length is None else length
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, tos, n & 0xFFFF, 7, frag, ttl, proto, 0)
    head += addr(src) + addr(dst) + options
    return head[:10] + struct.pack(">H", csum(head)) + head[12:] + payload


def fix_ip4(p):
    hlen = max((p[0] & 15) * 4, 20)
    head = p[:10] + b"\0\0" + p[12:hlen]
    return p[:10] + struct.pack(">H", csum(head)) + p[12:]


def udp(payload, dport=4791, sport=49152, length=None):
    return struct.pack(">4H", sport, dport, 8 + len(payload) if length is None else length, 0) + payload


def icrc(ip):
    """IBA annex A17: over the packet without its last four bytes, with variant fields as ones."""
    p = bytearray(ip[:-4])
    hlen = 40 if p[0] >> 4 == 6 else (p[0] & 15) * 4
    if hlen == 40 and p[0] >> 4 == 6:
        p[0] |= 15
    for i in ([1, 2, 3, 7] if p[0] >> 4 == 6 else [1, 8, 10, 11]) + [hlen + 6, hlen + 7, hlen + 12]:
        p[i] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(p)))


def sealed(ip):
    return ip[:-4] + icrc(ip)


def bth(op, qpn, psn, ack=False, flags=0, pad=0):
    return struct.pack(">BBHII", op, flags | pad << 4, 0xFFFF, qpn, (0x80000000 if ack else 0) | psn & 0xFFFFFF)


def ext_of(op, size=0, syndrome=0x1F):
    if op in (0x06, 0x0A, 0x0B, 0x0C):
        return struct.pack(">QII", 0x1000, 0x77, size) + (bytes(4) if op == 0x0B else b"")
    if op in (0x0D, 0x0F, 0x10, 0x11, 0x12):
        return struct.pack(">I", syndrome << 24 | 1) + (bytes(8) if op == 0x12 else b"")
    return bytes(EXT.get(op, 0))


def roce(side, op, qpn, psn, payload=b"", ack=False, v6=False, ext=None, flags=0, pad=None, tail=b"", host=None, syndrome=0x1F,
         **ip):
    """From the host on this side to the other's. A valid packet unless an argument changes it;
    `tail` follows the payload."""
    src, dst = IPS[side][v6], IPS["ab".replace(side, "")][v6]
    if host:
        src, dst = ("%s%d" % (a[:-1], host) for a in (src, dst))
    pad = -len(payload) % 4 if pad is None else pad
    ext = ext_of(op, len(payload), syndrome) if ext is None else ext
    body = bth(op, qpn, psn, ack, flags, pad) + ext + payload + (tail or bytes(-len(payload) % 4)) + bytes(4)
    return sealed(ip_packet(src, dst, udp(body), **ip))


class Pkt:
    """A RoCE packet as seen on a LAN."""

    def __init__(self, ip):
        hlen = 40 if ip[0] >> 4 == 6 else (ip[0] & 15) * 4
        self.ip, self.v6 = ip, ip[0] >> 4 == 6
        b = ip[hlen + 8:]
        self.op, self.qpn, self.psn, self.ack = b[0], int.from_bytes(b[5:8], "big"), int.from_bytes(b[9:12], "big"), b[8] >> 7
        self.syndrome, self.payload = b[12] if 0x0D <= self.op <= 0x12 else None, b[12 + EXT.get(self.op, 0):-4]
        self.good = icrc(ip) == ip[-4:]


# --- hosts and gateways -------------------------------------------------------------------------


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


# --- from a host --------------------------------------------------------------------------------


def victim(v6=False, payload=b"x" * 24, **how):
    """A valid packet to a queue pair that does not exist: it would open a flow."""
    return roce("a", 0x0A, 0x777, 5, payload, v6=v6, **how)


def cut_frame(lab):
    """The frame ends before the length in its IP header."""
    for v6, head in ((False, 20), (True, 40)):
        p = victim(v6)
        kind = 0x86DD if v6 else 0x0800
        lab.attack({"gw_drop_bad_ip": head, "drop_rx_truncated": len(p) - head},
                   lambda: lab.a.send([p[:n] for n in range(len(p))], ethertype=kind))


def cut_packet(lab):
    """IP lengths are right, but the packet is truncated: UDP's length wrong, then right."""
    for v6 in (False, True):
        body = victim(v6)[40 if v6 else 20:]
        ips = IPS["a"][v6], IPS["b"][v6]
        cut = [ip_packet(*ips, body[:n]) for n in range(len(body))]
        lab.attack({"drop_bad_udp_length": len(cut)}, lambda: lab.a.send(cut))
        # a truncated WRITE fits its opcode in steps of four from the size with a RETH and an ICRC
        cut = [ip_packet(*ips, udp(body[8:n])) for n in range(8, len(body)) if n < 8 + 12 + 16 + 4 or n % 4]
        lab.attack({"drop_bad_length": len(cut)}, lambda: lab.a.send(cut))


def ip_lengths(lab):
    p = victim()
    bad = [fix_ip4(p[:2] + struct.pack(">H", n) + p[4:]) for n in range(20)]
    lab.attack({"gw_drop_bad_ip": 20}, lambda: lab.a.send(bad))
    long = [fix_ip4(p[:2] + struct.pack(">H", len(p) + n) + p[4:]) for n in (1, 2, 100, 1500, 65535 - len(p))]
    long += [q[:4] + struct.pack(">H", len(q) - 40 + n) + q[6:] for q in [victim(True)] for n in (1, 8, 65535 - len(q) + 40)]
    lab.attack({"drop_rx_truncated": len(long)}, lambda: lab.a.send(long))
    words = [fix_ip4(bytes([0x40 | n]) + p[1:]) for n in range(5)]
    version = [bytes([n << 4 | 5]) + p[1:] for n in range(16) if n != 4]
    lab.attack({"gw_drop_bad_ip": len(words) + len(version)}, lambda: lab.a.send(words + version, ethertype=0x0800))
    version = [bytes([n << 4]) + victim(True)[1:] for n in range(16) if n != 6]
    lab.attack({"gw_drop_bad_ip": len(version)}, lambda: lab.a.send(version, ethertype=0x86DD))


def udp_lengths(lab):
    for v6 in (False, True):
        p, at = victim(v6), 44 if v6 else 24
        right = struct.unpack(">H", p[at:at + 2])[0]
        bad = [sealed(p[:at] + struct.pack(">H", n) + p[at + 2:]) for n in (*range(0, right), right + 1, right + 4, 65535)]
        lab.attack({"drop_bad_udp_length": len(bad)}, lambda: lab.a.send(bad))


def ip_checksum(lab):
    p = victim()
    bad = [p[:10] + struct.pack(">H", struct.unpack(">H", p[10:12])[0] ^ 1 << n) + p[12:] for n in range(16)]
    other = ip_packet(*(IPS[s][0] for s in "ab"), udp(b"other", 9))
    bad += [other[:10] + bytes([other[10] ^ 1]) + other[11:]]
    lab.attack({"drop_bad_ip": 17}, lambda: lab.a.send(bad))


def payloads(lab):
    """Payloads that do not fit the opcode, with otherwise right lengths and ICRC."""
    bad = []
    for op in RC:
        for v6 in (False, True):
            size = EXT.get(op, 0)
            bad += [roce("a", op, 0x777, 1, ext=bytes(n), v6=v6) for n in range(0, size, 4)]
            bad += [roce("a", op, 0x777, 1, b"p" * n, v6=v6, pad=0, tail=b"q" * t) for n, t in ((0, 1), (0, 2), (4, 3))]
            if op in NO_PAYLOAD:
                bad += [roce("a", op, 0x777, 1, b"p" * n, v6=v6) for n in (1, 4, 64)]
            else:
                bad += [roce("a", op, 0x777, 1, b"", v6=v6, pad=3)]
            if op in (0x00, 0x01, 0x06, 0x07, 0x0D, 0x0E):
                bad += [roce("a", op, 0x777, 1, b"p" * n, v6=v6) for n in (0, 1, 2, 3, 1023)]
            if op in (0x02, 0x03, 0x08, 0x09, 0x0F, 0x16):
                bad += [roce("a", op, 0x777, 1, b"", v6=v6)]
    # FIRST, MIDDLE and LAST without payload are also in the first line, if they have no other error
    lab.attack({"drop_bad_length": len(bad)}, lambda: lab.a.send(bad))


def wrong_icrc(lab):
    for v6 in (False, True):
        p, head = victim(v6), 40 if v6 else 20
        checked = [i for i in range(head + 8 + 12, len(p))]                 # RETH, payload, ICRC
        checked += [head + 8 + i for i in (2, 3, 5, 6, 7, 8, 9, 10, 11)]  # BTH except opcode, flags and variant fields
        checked += [head, head + 1]                                      # UDP source port
        bad = [p[:i] + bytes([p[i] ^ 1 << rng.randrange(8)]) + p[i + 1:] for i in checked]
        bad += [p[:-4] + x for x in (bytes(4), b"\xff" * 4, p[-4:][::-1])]
        bad += [p[:head + 9] + bytes([p[head + 9] ^ 0x80]) + p[head + 10:]]  # solicited event
        lab.attack({"drop_icrc": len(bad)}, lambda: lab.a.send(bad))


def opcodes(lab):
    # Upper three bits of an opcode: RC, UC, RD, UD, CNP, XRC, a manufacturer's own
    counter = ["drop_uncarried_unknown", "drop_unknown_opcode", "drop_rd", "drop_unknown_opcode", "drop_unknown_opcode",
               "drop_xrc", "drop_vendor_opcode", "drop_vendor_opcode"]
    bad = [op for op in range(256) if op not in KNOWN]
    expect = {name: sum(counter[op >> 5] == name for op in bad) for name in counter}
    lab.attack(expect, lambda: lab.a.send([roce("a", op, 0x777, 1, b"p" * 64, v6=bool(op & 1), ext=b"") for op in bad]))
    # RD and XRC are known but not carried: with enough bytes after the BTH they are not too short
    rd = [roce("a", 0x55, 0x777, 1, ext=bytes(12)), roce("a", 0x44, 0x777, 1, b"data", ext=bytes(12)),
          roce("a", 0xA4, 0x777, 1, b"data", ext=bytes(4)), roce("a", 0xAA, 0x777, 1, b"data", ext=bytes(20))]
    lab.attack({"drop_rd": 2, "drop_xrc": 2}, lambda: lab.a.send(rd))
    cnp = [roce("a", 0x81, q, 0, ext=bytes(16)) for q in (0, 1, 0x777, 0xFFFFFF)]
    lab.attack({"rp_cnp_handled": len(cnp)}, lambda: lab.a.send(cnp))


def bth_version(lab):
    bad = [victim(v6, flags=n) for n in range(1, 16) for v6 in (False, True)]
    lab.attack({"drop_bad_bth": len(bad)}, lambda: lab.a.send(bad))


def fragments(lab):
    """The kernel under net_af_packet keeps IPv4 fragments to join them (the engine's own check:
    test_roce_parse). IPv6 fragments arrive."""
    p = victim()
    pieces = [fix_ip4(p[:6] + struct.pack(">H", f) + p[8:]) for f in (0x2000, 0x6000, 0xA000, 1, 0x2001, 0x1FFF)]
    pieces += [ip_packet(*(IPS[s][0] for s in "ab"), p[20:20 + n], frag=0x2000) for n in (4, 8, 16, 24)]
    lab.attack({}, lambda: lab.a.send(pieces))
    body, ips = victim(True)[40:], (IPS["a"][1], IPS["b"][1])
    first = [ip_packet(*ips, body, proto=44, ext6=b"\x11\0\0" + bytes([m]) + b"\1\2\3\4") for m in (0, 1)]
    lab.attack({"drop_ip_fragment": 2}, lambda: lab.a.send(first))
    later = [ip_packet(*ips, body, proto=44, ext6=b"\x11\0\0" + bytes([m]) + b"\1\2\3\4") for m in (8, 9)]
    lab.attack({"dgrams": 2}, lambda: lab.a.send(later), seen=2)


def options(lab):
    p = victim()
    bad = [fix_ip4(bytes([0x4F]) + p[1:2] + struct.pack(">H", n) + p[4:] + bytes(20)) for n in (20, 24, 56, 59)]
    lab.attack({"gw_drop_bad_ip": len(bad)}, lambda: lab.a.send(bad))
    cut = [fix_ip4(bytes([0x40 | n]) + p[1:]) for n in range(6, 16)]  # options where UDP was: another port, or none
    lab.attack({"dgrams": 10}, lambda: lab.a.send(cut), seen=10)
    ends = [ip_packet(*(IPS[s][0] for s in "ab"), b"", options=b"\1" * n) for n in (4, 20, 40)]
    lab.attack({"drop_bad_udp_length": 3}, lambda: lab.a.send(ends))


def ip6_extensions(lab):
    body = victim(True)[40:]
    ips = IPS["a"][1], IPS["b"][1]
    opts = b"\x11\0\1\4" + bytes(4)
    bad = [ip_packet(*ips, body, proto=p, ext6=opts) for p in (0, 43, 60)]
    bad += [ip_packet(*ips, body, proto=0, ext6=b"\x3c\0\1\4" + bytes(4) + opts)]
    bad += [ip_packet(*ips, body, proto=60, ext6=(b"\x3c\0\1\4" + bytes(4)) * 9)]          # too many
    bad += [ip_packet(*ips, b"", proto=0, ext6=b"\x11" + bytes([n]) + bytes(6)) for n in (1, 9, 255)]  # past the end
    bad += [ip_packet(*ips, b"", proto=p, ext6=bytes(n)) for p in (0, 43, 44, 60) for n in range(8)]
    bad += [ip_packet(*ips, b"", proto=44, ext6=b"\x3c\0\0\1" + bytes(4) + opts)]          # UDP's header is in the next fragment
    lab.attack({"drop_bad_ip": len(bad)}, lambda: lab.a.send(bad))


def mapped(lab):
    """IPv6 packets with IPv4-mapped addresses (RFC 4291, 2.5.5.2), which are no IPv4 hosts'."""
    v4 = ["::ffff:" + IPS[s][0] for s in "ab"]
    v6 = [IPS[s][1] for s in "ab"]
    body = victim(True)[40:]
    bad = [sealed(ip_packet(src, dst, body)) for src, dst in (v4, (v4[0], v6[1]), (v6[0], v4[1]))]
    bad += [ip_packet(*v4, udp(b"other", 9)), ip_packet(*v4, b"tcp", proto=6)]
    lab.attack({"gw_drop_bad_ip": len(bad)}, lambda: lab.a.send(bad))


def unknown_qpn(lab):
    """Answers for queue pairs that do not exist, from either side."""
    for host, at in ((lab.a, "a"), (lab.b, "b")):
        bad = [roce(host.side, 0x11, q, 9, syndrome=s, v6=v6) for s in range(256) for q, v6 in ((0x777, False), (0, True))]
        bad += [roce(host.side, op, q, 9, b"d" * 64, v6=v6) for op in (0x0D, 0x0E, 0x0F, 0x10) for q in (2, 0xFFFFFF)
                for v6 in (False, True)]
        bad += [roce(host.side, 0x12, 0x778, 9), roce(host.side, 0x10, 0x778, 9)]
        lab.attack({"drop_unknown_qpn": len(bad)}, lambda: host.send(bad), at=at)


def foreign_source(lab):
    """A host takes an address of the other site, or one that no LAN port leads to. Errors of
    routers, which may have any address, pass."""
    to = IPS["b"]
    sources = ("10.2.0.9", "203.0.113.5", "0.0.0.0"), ("fd00:2::9", "2001:db8::5")
    bad = [sealed(ip_packet(src, to[v6], udp(bth(0x0A, 0x777, 5, True, 0, 0) + bytes(16) + bytes(28))))
           for v6 in (0, 1) for src in sources[v6]]
    bad += [ip_packet(src, to[v6], udp(b"hello", 9)) for v6 in (0, 1) for src in sources[v6]]
    lab.attack({"drop_lan_foreign_source": len(bad)}, lambda: lab.a.send(bad))
    lab.attack({"drop_lan_foreign_source": 20}, lambda: lab.a.send(bad[:1] * 20))
    # between others: what was decided for one address is not used for the next
    mixed = [p for _ in range(3) for p in (bad[0], ip_packet("10.1.0.77", to[0], udp(b"hello", 9)))]
    lab.attack({"drop_lan_foreign_source": 3, "dgrams": 3}, lambda: lab.a.send(mixed), seen=3)
    errors = [ip_packet("203.0.113.5", to[0], b"\3\4" + bytes(6) + victim()[:28], proto=1)]
    lab.attack({"dgrams": 1}, lambda: lab.a.send(errors), seen=1)


def ghost_acks(lab):
    """Unexpected answers on an existing connection: B's, to A's queue pair."""
    for v6, flow in lab.lasting.items():
        q, psn = flow["qp"]["peer"], flow["psn"]
        ghosts = [roce("b", 0x11, q, psn + n, syndrome=s, v6=v6) for s in range(256) for n in (0, 5, 0x400000)]
        ghosts += [roce("b", 0x11, q, psn - n, syndrome=s, v6=v6) for s in (0x1F, 0x20, 0x60, 0x61, 0x63) for n in (1, 2, 900)]
        lab.attack({"drop_ghost_ack": len(ghosts)}, lambda: lab.b.send(ghosts), at="b")
        old = [roce("b", op, q, psn + n, b"d" * 256 if op != 0x12 else b"", v6=v6) for op in (0x0D, 0x0E, 0x0F, 0x10, 0x12)
               for n in (-1, 0, 7)]
        lab.attack({"drop_old_response": len(old)}, lambda: lab.b.send(old), at="b")


def psn_window(lab):
    """Other PSNs than the expected one. One far off may belong to a new queue pair: the far host is
    asked, and denies it."""
    for v6, flow in lab.lasting.items():
        q, psn = flow["qpn"], flow["psn"]
        epsn = flow["qp"]["epsn"]
        for off in (1, 2, 100, 0x3FFF, 0x4000, 0x7FFFFF, -1, -2, -100, -0x10000, -0x7FFFFF):
            lab.a.send([roce("a", 0x0A, q, psn + off & 0xFFFFFF, b"wrong", ack=True, v6=v6)])
            for h in (lab.a, lab.b):
                h.pump(0.03)
        assert flow["qp"]["epsn"] == epsn, "the host took a packet that was never due"
        lab.works()


def sequences(lab):
    """Opcodes out of sequence, inconsistent lengths: that connection ends, and no other."""
    wrong = [(0x01, b"m" * 1024), (0x02, b"l"), (0x07, b"m" * 1024), (0x08, b"l"), (0x00, b"f" * 1000)]
    for op, payload in wrong:
        flow = lab.connect()
        p = roce("a", op, flow["qpn"], flow["psn"], payload)
        lab.attack({"drop_bad_sequence": 1, "naks_sent": 1}, lambda: lab.a.send([p]))
    flow = lab.connect()
    p = roce("a", 0x0A, flow["qpn"], flow["psn"], b"four", ext=struct.pack(">QII", 0, 0, 5))
    lab.attack({"drop_bad_sequence": 1, "naks_sent": 1}, lambda: lab.a.send([p]))


GSI = struct.pack(">II", 0x80010000, 1)


def mad(attr, body=b"", tid=1, mgmt=7, version=1, cls=2, method=3):
    return struct.pack(">BBBBHHQHHI", version, mgmt, cls, method, 0, 0, tid, attr, 0, 0) + body.ljust(232, b"\0")


def cm(side, data, **how):
    return roce(side, 0x64, 1, 0, data, ext=how.pop("ext", GSI), **how)


def cm_req(comm, qpn, psn, side="a"):
    gids = [addr("::ffff:" + IPS[s][0]) for s in (side, "ab".replace(side, ""))]
    body = struct.pack(">IIQQII", comm, 0, 0x1061B58, 0x11, 0, 0) + struct.pack(">IIII", qpn << 8 | 16, 16, 0xA0, psn << 8 | 0xA7)
    return mad(0x10, body + struct.pack(">HBBHH", 0xFFFF, 0x37, 0xF0, 0, 0) + gids[0] + gids[1] + struct.pack(">IBBBB", 0, 0, 64, 0, 152))


def cm_rep(comm, remote, qpn, psn):
    return mad(0x13, struct.pack(">IIIIII4B", comm, remote, 0, qpn << 8, 0, psn << 8, 16, 16, 0x78, 0xE0))


def cm_ids(attr, local, remote, more=b""):
    return mad(attr, struct.pack(">II", local, remote) + more)


def bad_mads(lab):
    """A malformed CM MAD is counted and dropped; other management is carried unchecked."""
    sizes = [n for n in range(0, 300) if n != 256]
    lab.attack({"drop_bad_cm": len(sizes)}, lambda: lab.a.send([cm("a", cm_req(1, 2, 3).ljust(300, b"z")[:n]) for n in sizes]),
               seen=0)
    # other management classes, methods and versions are carried unchecked
    other = [mad(0x10, mgmt=c) for c in range(256) if c != 7] + [mad(0x10, version=v) for v in (0, 2, 255)]
    other += [mad(0x10, cls=v) for v in (0, 1, 3)] + [mad(0x10, method=m) for m in (1, 2, 0x81)]
    lab.attack({}, lambda: lab.a.send([cm("a", m) for m in other]), seen=len(other))
    keys = [struct.pack(">II", 0, 1), struct.pack(">II", 0x80010000, 2), struct.pack(">II", 0xFFFFFFFF, 0)]
    lab.attack({}, lambda: lab.a.send([cm("a", cm_req(1, 2, 3), ext=k) for k in keys]), seen=3)


def stray_mads(lab):
    """Valid messages about connections that do not exist, replayed ones, unknown attributes, random
    bodies."""
    stray = [cm_rep(9, 8, 0x50, 1)] * 50 + [cm_ids(0x15, 9, 8, struct.pack(">I", 0x50 << 8))] * 50
    stray += [cm_ids(a, 9, 8) for a in (0x11, 0x12, 0x14, 0x16)] * 10
    n = len(stray)
    lab.attack({"cm_messages": n}, lambda: lab.a.send([cm("a", m) for m in stray]), seen=n, at_other={"cm_messages": n})
    odd = [mad(a, rng.randbytes(232)) for a in (0, 1, 0x0F, 0x17, 0x18, 0x19, 0x1A, 0x20, 0xFFFF)]
    odd += [mad(a, b"\xff" * 232) for a in range(0x11, 0x17)]
    lab.attack({"cm_messages": len(odd)}, lambda: lab.a.send([cm("a", m) for m in odd]), seen=len(odd),
               at_other={"cm_messages": len(odd)})
    # REQ twice, then REP 30 times: one connection, learned once
    req, rep = cm("a", cm_req(0x51, 0x61, 7)), cm("b", cm_rep(0x52, 0x51, 0x62, 8))
    lab.attack({"cm_messages": 2}, lambda: lab.a.send([req, req]), seen=2, at_other={"cm_messages": 2})
    done = {"cm_messages": 30, "cm_connections": 1, "conns_opened": 2}
    lab.attack(done, lambda: lab.b.send([rep] * 30), at="b", seen=30, at_other=done, flows=1)


def not_roce(lab):
    other = lambda v6=0, **how: ip_packet(*(IPS[s][v6] for s in "ab"), udp(b"hello", 9), **how)
    lab.attack({"drop_ttl": 4}, lambda: lab.a.send([other(ttl=t, v6=v) for t in (0, 1) for v in (0, 1)]))
    lab.attack({"dgrams": 2}, lambda: lab.a.send([other(ttl=2), other(ttl=2, v6=1)]), seen=2)
    lost = [ip_packet("10.1.0.2", d, udp(b"x", 9)) for d in ("10.9.9.9", "10.1.0.77", "0.0.0.0", "255.255.255.255", "127.0.0.1",
                                                             "224.0.0.5")]
    lost += [ip_packet("fd00:1::2", d, udp(b"x", 9)) for d in ("fd00:9::9", "::", "::1", "ff02::1")]
    lost += [ip_packet("10.1.0.2", "10.9.9.9", victim()[20:])]
    lab.attack({"drop_lan_no_route": len(lost)}, lambda: lab.a.send(lost))


def frames(lab):
    """Ethernet: other addresses, other types, tags, invalid ARP and ND."""
    p = victim()
    tags = [lab.a.frame(p)[:12] + struct.pack(">HH", k, t) + lab.a.frame(p)[12:] for k in (0x8100, 0x88A8)
            for t in (1, 7, 4095, 0xE005)]
    lab.attack({"drop_rx_vlan": len(tags)}, lambda: [lab.a.raw(t) for t in tags])
    kinds = [lab.a.frame(p, ethertype=t) for t in (0x8915, 0x88CC, 0x8847, 0x0600, 0x0000, 0xFFFF)]
    lab.attack({"drop_rx_not_ip": len(kinds)}, lambda: [lab.a.raw(k) for k in kinds])
    lab.attack({"drop_rx_not_ours": 2}, lambda: [lab.a.raw(f) for f in (lab.a.frame(p, dst=b"\2\0\0\0\0\x99"),
                                                                       lab.a.frame(p, src=lab.a.peer))])
    arp = struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + lab.a.mac + addr("10.1.0.2") + bytes(6) + addr("10.1.0.1")
    odd = [arp[:n] for n in range(len(arp))] + [rng.randbytes(28) for _ in range(50)]
    odd += [arp[:6] + struct.pack(">H", n) + arp[8:] for n in (0, 3, 9, 0xFFFF)]
    odd += [arp[:14] + addr(ip) + arp[18:] for ip in ("10.1.0.1", "10.2.0.2", "0.0.0.0", "255.255.255.255")]
    nd = [struct.pack(">BBH", k, 0, 0) + rng.randbytes(n) for k in (133, 134, 135, 136, 137) for n in (0, 4, 20, 28, 60)]
    odd_nd = [ip_packet("fd00:1::2", "fd00:1::1", x, proto=58, ttl=255) for x in nd]
    lab.attack({}, lambda: (lab.a.send(odd, ethertype=0x0806), lab.a.send(odd, ethertype=0x0806, dst=b"\xff" * 6),
                            lab.a.send(odd_nd)))
    lab.attack({}, lambda: lab.a.send([victim(), victim(True), b"", b"\x45", rng.randbytes(1400)], dst=b"\xff" * 6),
               allow=("gw_drop_bad_ip", "drop_rx_truncated"))


def jumbo(lab):
    """Larger than the LAN's MTU and than any path MTU."""
    big = [roce("a", 0x0A, 0x777, 5, bytes(n)) for n in (4097, 5000, 8900)]
    lab.attack({}, lambda: lab.a.send(big), allow=("drop_bad_length", "drop_rx_segments", "drop_rx_truncated"))
    other = [ip_packet("10.1.0.2", "10.2.0.2", udp(bytes(n), 9)) for n in (1472, 1473, 3000, 8900)]
    before = len(lab.b.seen)
    lab.a.send(other)
    lab.b.pump(0.3)
    assert len(lab.b.seen) >= before + 1 and all(len(p) <= 1500 for p in lab.b.seen[before:] if isinstance(p, bytes))
    lab.works()


def noise(lab):
    """Random bytes after headers with more and more valid fields."""
    bad = [rng.randbytes(rng.randrange(1, 1400)) for _ in range(800)]
    bad += [b"\x45" + rng.randbytes(rng.randrange(19, 300)) for _ in range(400)]
    bad += [ip_packet(*(IPS[s][v6] for s in "ab"), rng.randbytes(rng.randrange(0, 400)), proto=rng.choice((0, 43, 44, 60, 17)))
            for _ in range(800) for v6 in (0, 1)]
    bad += [ip_packet(*(IPS[s][v6] for s in "ab"), udp(rng.randbytes(rng.randrange(0, 400)))) for _ in range(800) for v6 in (0, 1)]
    n = lab.gw["a"].flows()
    lab.a.send(bad)
    lab.a.send(bad, ethertype=0x0800)
    lab.a.send(bad, ethertype=0x86DD)
    lab.b.pump(0.3)
    assert lab.gw["a"].flows() == n
    lab.works()


def half_open(lab):
    """Thousands of first packets to queue pairs that do not exist: limited, without effect on other
    flows."""
    g = lab.gw["a"]
    lab.connect()
    memory = [x.rss() for x in lab.gw.values()]
    before, n = g.counters(), g.flows()
    flood = [roce("a", 0x0A, 0x100000 + i, i, bytes(64), host=3) for i in range(3000)]
    lab.a.send(flood)
    lab.a.send(flood)
    lab.b.pump(0.3)
    got = changes(before, g.counters())
    most = range(HALF_OPEN_MAX * 7 // 8, (HALF_OPEN_MAX + 1) * 7 // 8 + 2)  # the rest is for other hosts
    opened = got["conns_opened"]
    assert g.flows() - n in most and opened in most, (n, g.flows(), got)
    assert got["drop_half_open"] >= 2 * (3000 - opened), got
    assert len([p for p in lab.b.seen if isinstance(p, Pkt) and p.qpn >= 0x100000]) >= 1
    lab.works()
    for before_, x in zip(memory, lab.gw.values()):
        assert x.rss() < before_ + (16 << 20), "memory grew from %d to %d" % (before_, x.rss())


# --- from the WAN -------------------------------------------------------------------------------


def datagram(d):
    """A datagram with a valid CRC."""
    d = d[:16] + bytes(4) + d[20:]
    return d[:16] + struct.pack(">I", zlib.crc32(d)) + d[20:]


def tunnel_ip(d, src="192.0.2.1", dst="192.0.2.2", sport=4793, dport=4793, **ip):
    return ip_packet(src, dst, udp(d, dport, sport), **ip)


def capture(lab, seconds=0.6):
    """UDP payloads from gateway a to gateway b."""
    out = []
    lab.wan_b.drain()
    flow = lab.lasting[False]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert lab.write(flow)
        while (frame := lab.wan_b.recv()) is not None:
            if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[26:30] == addr("192.0.2.1"):
                size = struct.unpack(">H", frame[38:40])[0]
                out.append(frame[42:34 + size])
    assert out
    return out


def strangers(lab):
    d = capture(lab)
    for src in ("192.0.2.77", "10.1.0.2", "0.0.0.0", "192.0.2.2", "255.255.255.255"):
        bad = [tunnel_ip(x, src=src) for x in d[-8:]] + [tunnel_ip(rng.randbytes(rng.randrange(0, 1400)), src=src)
                                                         for _ in range(400)]
        lab.attack({"drop_wan_stranger": len(bad)}, lambda: lab.wan_a.send(bad), at="b", allow=("drop_rx_not_ours",))
    away = [tunnel_ip(x, dst=dst) for x in d[-4:] for dst in ("192.0.2.3", "10.2.0.2", "10.2.0.1", "1.2.3.4", "192.0.2.1")]
    lab.attack({"drop_wan_not_ours": len(away)}, lambda: lab.wan_a.send(away), at="b", allow=("drop_rx_not_ours",))
    ports = [tunnel_ip(x, dport=p) for x in d[-4:] for p in (0, 1, 4792, 4794, 4791, 65535)]
    lab.attack({}, lambda: lab.wan_a.send(ports), at="b", allow=("drop_rx_not_ours",))
    # RoCE directly from the WAN to a host, as without a gateway
    lab.attack({"drop_wan_not_ours": 2}, lambda: lab.wan_a.send([victim(), victim(True)]), at="b", allow=("drop_rx_not_ours",))


def wan_headers(lab):
    x = tunnel_ip(capture(lab, 0.2)[-1])
    bad = [fix_ip4(bytes([0x40 | n]) + x[1:]) for n in range(5)]
    lab.attack({"gw_drop_bad_ip": 5}, lambda: lab.wan_a.send(bad), at="b", allow=("drop_rx_not_ours",))
    bad = [x[:24] + struct.pack(">H", n) + x[26:] for n in (0, 7, len(x) - 19, 65535)]
    lab.attack({"drop_bad_udp": len(bad)}, lambda: lab.wan_a.send(bad), at="b", allow=("drop_rx_not_ours",))
    lab.attack({"gw_drop_bad_ip": 20, "drop_rx_truncated": len(x) - 20}, lambda: lab.wan_a.send([x[:n] for n in range(len(x))],
                                                                                       ethertype=0x0800), at="b",
               allow=("drop_rx_not_ours",))


def wan_forged(lab):
    """From the right address: wrong index, checksum, length, version, random bytes."""
    d = next(x for x in capture(lab) if x[0] == 0x20 and len(x) > 100)
    hit = lambda expect, bad: lab.attack({"wan_" + k: v for k, v in expect.items()}, lambda: lab.wan_a.send(map(tunnel_ip, bad)),
                                         at="b", allow=("drop_rx_not_ours",))
    hit({"drop_unknown_tunnel": 1000}, [datagram(d[:4] + rng.randbytes(4) + d[8:]) for _ in range(1000)])
    flips = [d[:i] + bytes([d[i] ^ 1 << rng.randrange(8)]) + d[i + 1:] for i in range(8, len(d))]
    hit({"drop_crc": len(flips)}, flips)
    hit({"drop_short": 21}, [d[:n] for n in range(21)])
    hit({"drop_crc": len(d) - 21}, [d[:n] for n in range(21, len(d))])
    hit({"drop_version": 240 + 14}, [datagram(bytes([n]) + d[1:]) for n in range(256) if n not in (0x20, 0x21)])
    hit({"drop_version": 252}, [datagram(d[:1] + bytes([n]) + d[2:]) for n in range(4, 256)])
    hit({"drop_unknown_tunnel": 255}, [datagram(d[:2] + bytes([n]) + d[3:]) for n in range(1, 256)])
    g = lab.gw["b"]
    before = g.counters()
    junk = [rng.randbytes(rng.randrange(0, 1400)) for _ in range(2000)]
    lab.wan_a.send(map(tunnel_ip, junk))
    end = time.monotonic() + 20
    while True:
        got = changes(before, g.counters())
        dropped = sum(v for k, v in got.items() if k.startswith("wan_drop_"))
        if dropped == len(junk):
            break
        assert dropped < len(junk) and time.monotonic() < end, got
        time.sleep(0.05)
    lab.works()


def wan_replayed(lab):
    """Earlier datagrams again: their data is known, and an old HELLO resets nothing."""
    d = lab.captured + capture(lab)
    data, hello = [x for x in d if x[0] == 0x20], [x for x in d if x[0] == 0x21]
    assert data and hello
    data = (data * 2000)[:2000]
    lab.attack({"wan_drop_duplicate_pn": len(data)}, lambda: lab.wan_a.send(map(tunnel_ip, data)), at="b", allow=("drop_rx_not_ours",))
    hello = (hello * 500)[:500]
    lab.attack({}, lambda: lab.wan_a.send(map(tunnel_ip, hello)), at="b", allow=("drop_rx_not_ours",))
    g = lab.gw["b"]
    assert g.text().count("state=up") == 1 and "state=down" not in g.text(), g.text()


def wan_hello(lab):
    """HELLOs that the peer never sent: other epochs, other tunnels, short and random ones."""
    h = next(x for x in lab.captured if x[0] == 0x21)
    hit = lambda expect, bad: lab.attack({"wan_" + k: v for k, v in expect.items()}, lambda: lab.wan_a.send(map(tunnel_ip, bad)),
                                         at="b", allow=("drop_rx_not_ours",))
    epochs = [datagram(h[:20 + 16] + rng.randbytes(16) + h[20 + 32:]) for _ in range(500)]
    hit({}, epochs)
    hit({"drop_unknown_tunnel": 300}, [datagram(h[:20 + 8] + rng.randbytes(8) + h[20 + 16:]) for _ in range(300)])
    hit({"drop_bad_frame": 67}, [datagram(h[:20 + n]) for n in range(1, 68)])  # with 68 bytes, an older gateway's
    hit({"drop_bad_frame": 2}, [datagram(h[:20 + 2] + b"\0\0" + h[20 + 4:]), datagram(h[:20 + 48] + bytes(4) + h[20 + 52:])])
    assert lab.gw["b"].text().count("state=up") == 1 and "state=down" not in lab.gw["b"].text(), lab.gw["b"].text()


def wan_frames(lab):
    """Right address, index, number and CRC, but invalid frames."""
    g = lab.gw["b"]
    d = [x for x in capture(lab) if x[0] == 0x20][-1]
    pn = struct.unpack(">Q", d[8:16])[0]
    head = lambda n: d[:8] + struct.pack(">Q", n) + bytes(4)
    kinds = [0x00, 0x09, 0x0A, 0x0F, *range(0x1B, 0x20), 0x20, 0x7F, 0xFF]
    # No valid frame by chance behind padding (0x00).
    bad = [datagram(head(pn + 5000 + i) + bytes([kinds[i % len(kinds)], 0xFF]) + rng.randbytes(rng.randrange(0, 200))) for i in range(1000)]
    short = [(2, 14), (3, 14), (4, 8), (5, 11), (6, 11), (7, 3), (8, 3), (0x10, 8), (0x11, 17), (0x12, 13), (0x18, 0), (0x1A, 9)]
    bad += [datagram(head(pn + 9000 + i) + bytes([k]) + b"\1" * n) for i, (k, n) in enumerate(short)]
    lab.attack({"wan_drop_bad_frame": len(bad)}, lambda: lab.wan_a.send(map(tunnel_ip, bad)), at="b", allow=("drop_rx_not_ours",))
    # numbers beyond all sent ones
    far = [datagram(head(n) + b"\1") for n in (1 << 62, (1 << 64) - 1)]
    lab.attack({"wan_drop_bad_frame": 2}, lambda: lab.wan_a.send(map(tunnel_ip, far)), at="b", allow=("drop_rx_not_ours",))
    assert g.text().count("state=up") == 1, g.text()


# --- program --------------------------------------------------------------------------------------

TESTS = [cut_frame, cut_packet, ip_lengths, udp_lengths, ip_checksum, payloads, wrong_icrc, opcodes, bth_version, fragments, options, foreign_source,
         ip6_extensions, mapped, unknown_qpn, ghost_acks, psn_window, sequences, bad_mads, stray_mads, not_roce, frames, jumbo, noise,
         strangers, wan_headers, wan_forged, wan_replayed, wan_hello, wan_frames, half_open]


def main():
    if os.geteuid():
        print("skipped: needs root")
        return 0
    only = sys.argv[2:]
    passed = failed = 0
    lab = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        try:
            lab = Lab.__new__(Lab)
            lab.gw = {}
            lab.__init__(folder)
            lab.wan_b.drain()
            lab.start()
            lab.captured = []
            while (frame := lab.wan_b.recv()) is not None:
                if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[26:30] == addr("192.0.2.1"):
                    lab.captured.append(frame[42:34 + struct.unpack(">H", frame[38:40])[0]])
            for t in TESTS:
                if only and t.__name__ not in only:
                    continue
                began = time.monotonic()
                try:
                    t(lab)
                    passed += 1
                    print("ok %s %.1f s" % (t.__name__, time.monotonic() - began), flush=True)
                except AssertionError as e:
                    failed += 1
                    print("not ok %s: line %d: %s" % (t.__name__, e.__traceback__.tb_next.tb_lineno, e), flush=True)
            ends = [g.stop() for g in lab.gw.values()]
            good = ends == [0, 0]
            passed, failed = passed + good, failed + (not good)
            print("%s end %s%s" % ("ok" if good else "not ok", ends, "" if good else "".join(g.text()[-2000:] for g in lab.gw.values())))
        finally:
            if lab:
                lab.close()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
