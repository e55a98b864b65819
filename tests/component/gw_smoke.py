#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Smoke test of roceway-gateway: the real binary on veth pairs, in namespaces of its own.

    ha [eth0] -- [lan0] ga [wan0] ======= [wan0] gb [lan0] -- [eth0] hb

First one gateway (its command line, its kernel side, its end), then two and best-effort traffic between the hosts.
RDMA is not here: that needs real hosts (tests/e2e). Needs root. Argument: the build folder.
"""
import array
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
GATEWAY = os.path.join(BUILD, "bin", "roceway-gateway")
TAG = "rgs%d" % os.getpid()
HA, GA, GB, HB = (TAG + n for n in ("ha", "ga", "gb", "hb"))
CLONE_NEWNET = 0x40000000
READY = 60  # s at most for what must come
SITES = {"a": (1, "b", 2), "b": (2, "a", 1)}
libc = ctypes.CDLL(None, use_errno=True)

CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway: {{name: "{tag}{side}", workers: {workers}, polling: adaptive, log_level: info, journal_dir: {folder}}}
eal:
  args: ["--in-memory", "--no-huge", "-m", "128"]
ports:
  - name: lan
    device: "net_af_packet0,iface=lan0"
    role: lan
    addresses: [10.{n}.0.1/24, "fd00:{n}::1/64"]
    mtu: 1500
    vlan: {vlan}
    priority_tags: {tags}
  - name: wan
    device: "net_af_packet1,iface=wan0"
    role: wan
    addresses: [192.0.2.{n}/24, "fd00:9::{n}/64"]
    mtu: 1500
tunnels:
  - name: far
    port: wan
    local: "{local}"
    remote: "{remote}"
    udp_port: 4793
    prefixes: [10.{m}.0.0/24, "fd00:{m}::/64"]
    security: none
    congestion_control: auto
    rate: 10Gbps
memory:
  buffers: 8192
  custody_per_connection: 8MiB
  custody_total: 16MiB
api:
  socket: {sock}
"""


def sh(*words):
    subprocess.run(words, check=True)


@contextlib.contextmanager
def inside(netns):
    """Sockets and files opened in the block belong to that namespace. Only this thread changes."""
    back = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + netns, os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(back, CLONE_NEWNET)
        os.close(back)
        os.close(there)


def no_offloads(netns, ifname):
    """A veth end leaves checksums to its peer, which is no kernel here: computes them."""
    with inside(netns), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in (0x17, 0x1F, 0x24):  # ETHTOOL_STXCSUM, _STSO, _SGSO
            value = array.array("I", [command, 0])
            request = struct.pack("16sP", ifname.encode(), value.buffer_info()[0])
            with contextlib.suppress(OSError):
                fcntl.ioctl(s, 0x8946, request)


def topology():
    for ns in (HA, GA, GB, HB):
        sh("ip", "netns", "add", ns)
        sh("ip", "-n", ns, "link", "set", "lo", "up")
    for host, gw in ((HA, GA), (HB, GB)):
        sh("ip", "-n", gw, "link", "add", "lan0", "type", "veth", "peer", "name", "eth0", "netns", host)
    sh("ip", "-n", GA, "link", "add", "wan0", "type", "veth", "peer", "name", "wan0", "netns", GB)
    for gw in (GA, GB):
        for dev in ("lan0", "wan0"):
            sh("ip", "-n", gw, "link", "set", dev, "up")
    for host, n, m in ((HA, 1, 2), (HB, 2, 1)):
        sh("ip", "-n", host, "link", "set", "eth0", "up")
        no_offloads(host, "eth0")
        sh("ip", "-n", host, "addr", "add", "10.%d.0.2/24" % n, "dev", "eth0")
        sh("ip", "-n", host, "addr", "add", "fd00:%d::2/64" % n, "dev", "eth0", "nodad")
        sh("ip", "-n", host, "route", "add", "10.%d.0.0/24" % m, "via", "10.%d.0.1" % n)
        sh("ip", "-n", host, "route", "add", "fd00:%d::/64" % m, "via", "fd00:%d::1" % n)


def cleanup():
    for ns in (HA, GA, GB, HB):
        subprocess.run(("ip", "netns", "del", ns), stderr=subprocess.DEVNULL)


def links(netns):
    out = subprocess.run(("ip", "-n", netns, "-br", "link"), capture_output=True, text=True).stdout
    return {line.split()[0].split("@")[0] for line in out.splitlines()}


def sysctl(netns, path):
    return subprocess.run(("ip", "netns", "exec", netns, "cat", "/proc/sys/net/" + path), capture_output=True,
                          text=True).stdout.strip()


class Gateway:
    program = GATEWAY

    def __init__(self, folder, side, v6_tunnel=False, workers=1, vlan=0, tags="off"):
        n, far, m = SITES[side]
        self.netns = GA if side == "a" else GB
        self.config = os.path.join(folder, side + ".yaml")
        self.log = os.path.join(folder, side + ".log")
        near, remote = ("fd00:9::%d", "fd00:9::%d") if v6_tunnel else ("192.0.2.%d", "192.0.2.%d")
        with open(self.config, "w") as f:
            f.write(CONFIG.format(tag=TAG, folder=folder, side=side, n=n, m=m, local=near % n, remote=remote % m, workers=workers,
                                  vlan=vlan, tags=tags, sock=os.path.join(folder, side + ".sock")))
        self.proc = None

    def start(self):
        with open(self.log, "w") as log:
            self.proc = subprocess.Popen(("ip", "netns", "exec", self.netns, self.program, "--config", self.config), stderr=log,
                                         stdout=log)
        return self

    def wait(self, text, seconds=READY):
        end = time.monotonic() + seconds
        while text not in self.text():
            assert self.proc.poll() is None, "gateway ended: " + self.text()
            assert time.monotonic() < end, "no `%s` in: %s" % (text, self.text())
            time.sleep(0.02)
        return self

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def stop(self):
        """Exit status and final counters."""
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        code = self.proc.wait(READY)
        last = [line for line in self.text().splitlines() if " stopped after " in line]
        return code, {k: int(v) for k, v in re.findall(r" ([a-z_]+)=(\d+)", last[-1] if last else "")}

    def kill(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


def icmp(netns, dst, count=5, gap=0.02, timeout=1.0):
    """Echo requests; {sequence: number of replies}."""
    v6 = ":" in dst
    ident = os.getpid() & 0xFFFF
    got = {}
    with inside(netns):
        s = (socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) if v6 else
             socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
    with s:
        s.settimeout(0.05)
        for seq in range(count):
            head = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, ident, seq)
            body = head + b"roceway smoke test"
            if not v6:
                total = sum(struct.unpack("!%dH" % (len(body) // 2), body))
                total = (total & 0xFFFF) + (total >> 16)
                total = (total & 0xFFFF) + (total >> 16)
                body = body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]
            s.sendto(body, (dst, 0))
            time.sleep(gap)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                p = s.recv(2048)
            except TimeoutError:
                if len(got) == count:
                    break
                continue
            p = p if v6 else p[(p[0] & 15) * 4:]
            kind, _, _, i, seq = struct.unpack_from("!BBHHH", p)
            if kind == (129 if v6 else 0) and i == ident:
                got[seq] = got.get(seq, 0) + 1
    return got


def ping(netns, dst, tries=20):
    """True if an echo returned in one of the attempts: the first ones may be lost to ARP."""
    return any(icmp(netns, dst, 1, timeout=0.3) for _ in range(tries))


def all_once(netns, dst, count=20):
    got = icmp(netns, dst, count)
    assert got == {i: 1 for i in range(count)}, "%s: replies by sequence number: %s" % (dst, got)


def transfer(a, b, dst, size):
    """TCP from namespace a to dst in namespace b; True if all bytes arrived."""
    family = socket.AF_INET6 if ":" in dst else socket.AF_INET
    with inside(b):
        server = socket.socket(family)
        server.bind((dst, 0))
        server.listen(1)
    with inside(a):
        client = socket.socket(family)
    data = hashlib.shake_256(dst.encode()).digest(size)
    got = bytearray()

    def receive():
        conn, _ = server.accept()
        conn.settimeout(5)
        with conn, contextlib.suppress(TimeoutError):
            while chunk := conn.recv(65536):
                got.extend(chunk)

    server.settimeout(5)
    t = threading.Thread(target=receive)
    t.start()
    with client, server:
        client.settimeout(5)
        client.connect((dst, server.getsockname()[1]))
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        t.join(8)
    return bytes(got) == data


# --- tests ----------------------------------------------------------------------------------


def run(*words):
    r = subprocess.run((GATEWAY,) + words, capture_output=True, text=True, timeout=READY)
    return r.returncode, r.stdout, r.stderr


def test_command_line(folder):
    good = Gateway(folder, "a").config
    bad = os.path.join(folder, "bad.yaml")
    with open(good) as f, open(bad, "w") as g:
        g.write(f.read().replace("mtu: 1500", "mtu: many", 1))
    assert run("--check", good)[0] == 0
    assert run("--check=" + good)[0] == 0
    assert run("--check", "--config", good)[0] == 0
    code, _, err = run("--check", bad)
    assert code == 2 and re.match(re.escape(bad) + r":\d+(:\d+)?: ", err), (code, err)
    code, _, err = run("--config", bad)
    assert code == 2 and re.match(re.escape(bad) + r":\d+(:\d+)?: ", err), (code, err)
    with open(good) as f, open(bad, "w") as g:
        g.write(f.read().replace("name: lan", "name: averylongname", 1))
    code, _, err = run("--check", bad)
    assert code == 2 and "averylongname" in err, err
    assert run("--check", os.path.join(folder, "absent.yaml"))[0] == 2
    for wrong in (("--confg", good), (), ("--config",), ("--config", good, "more"), ("-x",)):
        code, out, err = run(*wrong)
        assert code == 2 and "usage:" in err and not out, (wrong, code, err)
    code, out, _ = run("--version")
    assert code == 0 and re.fullmatch(r"roceway-gateway \d+\.\d+\.\d+\S*\n", out), out
    code, out, _ = run("--help")
    assert code == 0 and "--config" in out
    code, out, _ = run("--print-reference")
    assert code == 0 and "mtu" in out
    for word in "--print-reference", "--print-metrics":
        with open("/dev/full", "w") as full:
            assert subprocess.run((GATEWAY, word), stdout=full, stderr=subprocess.DEVNULL).returncode == 1, word


def test_full_journal(folder):
    """A file system without room for the journal: one line that says so."""
    small = os.path.join(folder, "small")
    os.mkdir(small, 0o700)
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", small), check=True)
    try:
        g = Gateway(folder, "a")
        with open(g.config) as f:
            text = f.read()
        with open(g.config, "w") as f:
            f.write(text.replace("journal_dir: " + folder, "journal_dir: " + small, 1))
        g.start()
        assert g.proc.wait(READY) == 1, g.text()
        assert re.search(r" error .*journal.*No space left on device", g.text()), g.text()
    finally:
        subprocess.run(("umount", "-l", small), check=True)


def test_start_failures(folder):
    """A gateway that cannot start prints the reason, exits with 1 and leaves nothing."""
    before = links(GA)
    for old, new, word in (("iface=lan0", "iface=nosuch0", "did not start: the reason is above"), ('"net_af_packet0,iface=lan0"', '"0000:ff:1f.7"', "port=lan device=0000:ff:1f.7 did not start: this machine has no PCI device"), ('"-m", "128"', '"-m", "16"', "error"), ("journal_dir: " + folder, "journal_dir: /dev/shm", "mode 0700, closed to others")):
        g = Gateway(folder, "a")
        with open(g.config) as f:
            text = f.read()
        with open(g.config, "w") as f:
            f.write(text.replace(old, new, 1))
        g.start()
        code = g.proc.wait(READY)
        assert code == 1 and word in g.text(), (code, g.text())
        assert links(GA) == before


def allmulti(ns, dev):
    """How many ask the interface for all multicast frames."""
    return json.loads(subprocess.check_output(("ip", "-n", ns, "-d", "-j", "link", "show", "dev", dev)))[0]["allmulti"]


def test_alone(folder):
    """One gateway: the kernel answers for its addresses, once; other namespaces do not; nothing
    remains at the end."""
    before = links(GA)
    assert sysctl(GA, "ipv4/conf/lan0/rp_filter") == "0"
    sh("ip", "-n", GB, "addr", "add", "192.0.2.9/24", "dev", "wan0")
    sh("ip", "-n", GB, "addr", "add", "fd00:9::9/64", "dev", "wan0", "nodad")
    g = Gateway(folder, "a").start()
    try:
        g.wait(" ready")
        assert {"rwy-lan", "rwy-wan"} <= links(GA)
        for ns, dst in ((HA, "10.1.0.1"), (HA, "fd00:1::1"), (GB, "192.0.2.1"), (GB, "fd00:9::1")):
            assert ping(ns, dst), dst
            all_once(ns, dst)
        assert allmulti(GA, "lan0") == allmulti(GA, "wan0") == 1, "a card with a filter would keep neighbor solicitations"
        sh("ip", "-n", HA, "route", "add", "192.0.2.0/24", "via", "10.1.0.1")
        assert not icmp(HA, "192.0.2.1", 1, timeout=0.2), "an address of the WAN answered on the LAN"
        with inside(GB):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect(("192.0.2.1", 4793))
        s.settimeout(0.3)
        s.send(b"who are you")
        try:
            s.recv(100)
            raise AssertionError("a stranger was answered")
        except TimeoutError:
            pass
        s.close()
        g.proc.send_signal(signal.SIGHUP)
        g.wait("tenants: added=0 changed=0 removed=0 same=0")
        assert "SECURITY: NONE" in g.text()
        code, counters = g.stop()
    finally:
        g.kill()
        sh("ip", "-n", GB, "addr", "flush", "dev", "wan0")
    assert code == 0, g.text()
    assert counters.get("drop_wan_stranger") == 1, counters
    assert links(GA) == before
    assert sysctl(GA, "ipv4/conf/lan0/rp_filter") == "0", "sysctl not put back"
    assert allmulti(GA, "lan0") == 0
    assert not [line for line in g.text().splitlines() if " error " in line], g.text()


def pair(folder, tcp=(("10.2.0.2", 1 << 20),), pings=("10.2.0.2",), **options):
    a, b = Gateway(folder, "a", **options).start(), Gateway(folder, "b", **options).start()
    try:
        for g in (a, b):
            g.wait(" ready")
        for g in (a, b):
            g.wait("state=up")
        for dst in pings:
            assert ping(HA, dst), "%s: %s" % (dst, a.text())
            all_once(HA, dst)
        for dst, size in tcp:
            assert transfer(HA, HB, dst, size), dst
        ends = [g.stop() for g in (a, b)]
    finally:
        for g in (a, b):
            g.kill()
    for (code, counters), g in zip(ends, (a, b)):
        assert code == 0, g.text()
        assert not [k for k in counters if k in ("drop_tx_full", "drop_no_mbuf", "drop_tx_too_long")], counters
    return ends


def test_pair(folder):
    ends = pair(folder, pings=("10.2.0.2", "fd00:2::2"), tcp=(("10.2.0.2", 4 << 20), ("fd00:2::2", 1 << 20)))
    assert ends[0][1]["tx_in_place"] > 1000, ends[0][1]


def test_pair_v6_tunnel_two_workers(folder):
    """An IPv6 underlay, and two workers with one receive queue: frames move between workers over
    rings."""
    ends = pair(folder, v6_tunnel=True, workers=2)
    assert any(c.get("handoff") for _, c in ends), ends


class Tagged:
    """A host on a VLAN, by raw frames (not every kernel has VLAN interfaces): answers ARP, sends UDP with
    this PCP, sees UDP with the PCP `hears`."""

    def __init__(self, netns, address, vlan, pcp, hears):
        self.address = socket.inet_aton(address)
        self.vlan, self.pcp, self.hears = vlan, pcp, hears
        with inside(netns):
            self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.s.bind(("eth0", 3))
        self.s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: the kernel takes tags off
        self.s.settimeout(0.02)
        self.mac = self.s.getsockname()[4]
        self.gateway = None
        self.seen = []

    def send(self, dst, ethertype, payload, pcp=0):
        self.s.send(dst + self.mac + struct.pack("!HHH", 0x8100, pcp << 13 | self.vlan, ethertype) + payload)

    def arp(self, op, mac, address, dst=b"\xff" * 6):
        self.send(dst, 0x0806, struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, op, self.mac, self.address, mac, address))

    def udp(self, to, payload):
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 1, 0x4000, 64, 17, 0, self.address,
                           socket.inet_aton(to))
        total = sum(struct.unpack("!10H", head))
        total = (total & 0xFFFF) + (total >> 16)
        head = head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:]
        self.send(self.gateway, 0x0800, head + struct.pack("!HHHH", 5000, 5000, 8 + len(payload), 0) + payload, self.pcp)

    def step(self):
        try:
            frame, control, _, _ = self.s.recvmsg(2048, 256)
        except TimeoutError:
            return
        if frame[6:12] == self.mac:
            return
        aux = [struct.unpack("=IIIHHHH", d) for level, kind, d in control if (level, kind) == (263, 8)]
        kind = struct.unpack_from("!H", frame, 12)[0]
        data = kind == 0x0800 and frame[23] == 17
        if self.vlan or data:  # the kernel's own frames have no priority tag
            assert aux[0][0] & 0x10, "untagged: " + frame.hex()  # TP_STATUS_VLAN_VALID
        assert aux[0][5] == (self.vlan | self.hears << 13 if data else self.vlan), (hex(aux[0][5]), frame.hex())
        if kind == 0x0806:
            op, mac, address, _, target = struct.unpack_from("!H6s4s6s4s", frame, 20)
            self.gateway = mac
            if op == 1 and target == self.address:
                self.arp(2, mac, address, mac)
        elif data:
            self.seen.append(frame[42:])


def tagged_pair(folder, vlan, tags):
    """Two hosts on tagged LANs: the PCP of a's frames is on those that reach b."""
    for host in (HA, HB):
        sh("ip", "-n", host, "addr", "flush", "dev", "eth0")
    gateways = [Gateway(folder, side, vlan=vlan, tags=tags).start() for side in "ab"]
    try:
        for g in gateways:
            g.wait("state=up")
        a, b = Tagged(HA, "10.1.0.2", vlan, 5, 0), Tagged(HB, "10.2.0.2", vlan, 0, 5)
        a.arp(1, bytes(6), socket.inet_aton("10.1.0.1"))
        sent = 0
        end = time.monotonic() + 5
        while len(b.seen) < 3 and time.monotonic() < end:
            a.step()
            b.step()
            if a.gateway:
                a.udp("10.2.0.2", b"number %d" % sent)
                sent += 1
        assert len(b.seen) >= 3 and all(p.startswith(b"number ") for p in b.seen), (sent, b.seen)
        a.s.close()
        b.s.close()
        assert [g.stop()[0] for g in gateways] == [0, 0]
    finally:
        for g in gateways:
            g.kill()


def test_pair_vlan(folder):
    tagged_pair(folder, 7, "off")


def test_pair_priority_tags(folder):
    """Untagged LANs that take their classes from the PCP of priority tags (VLAN 0)."""
    tagged_pair(folder, 0, "on")


class Systemd:
    """The other end of sd_notify(3)."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.s.bind(self.path)
        self.s.settimeout(READY)

    def next(self):
        """The next message as a mapping; without watchdog messages."""
        while True:
            m = dict(line.split("=", 1) for line in self.s.recv(4096).decode().splitlines())
            if "WATCHDOG" not in m:
                return m


def test_tunnel_told(folder):
    """A peer that does not exist, has another tunnel, starts, and stops: one log line each, and
    `roceway` shows since when."""
    a, b = Gateway(folder, "a"), Gateway(folder, "b")
    with open(b.config) as f:
        plain = f.read()
    with open(b.config, "w") as f:
        f.write(plain.replace("remote: \"192.0.2.1\"", "remote: \"192.0.2.7\""))

    def said(state):
        return [line for line in a.text().splitlines() if "tunnel: tunnel=far state=" + state in line]
    try:
        b.start().wait(" ready")
        a.start().wait('event="does not come up: ')
        assert re.search(r" warning tunnel: tunnel=far state=down remote=192\.0\.2\.2 local=192\.0\.2\.1 port=wan udp_port=4793 workers_up=0/1 "
                         r"sent=[1-9]\d* received=0 event=\"does not come up: no HELLO ", said("down")[0]), a.text()
        assert re.search(r"^ +far down for .* s, since ", roceway(folder, "status"), re.M)
        assert re.search(r"^far: down for .* s, since ", roceway(folder, "tunnels"), re.M)
        b.stop()
        with open(b.config, "w") as f:
            f.write(plain)
        b.start()
        a.wait("state=up")
        assert re.search(r" notice tunnel: tunnel=far state=up remote=192\.0\.2\.2 .* down_for=[1-9]", said("up")[0]), a.text()
        assert "far" not in roceway(folder, "status")
        assert b.stop()[0] == 0
        a.wait("up_for=")
        assert re.search(r" warning .* received=\d+ up_for=\d+\.\ds event=\"the peer is silent: ", said("down")[1]), a.text()
        assert len(said("up")) == 1 and len(said("down")) == 2, a.text()
        assert a.stop()[0] == 0
    finally:
        a.kill()
        b.kill()


def roceway(folder, *words, code=0):
    r = subprocess.run((os.path.join(BUILD, "bin", "roceway"), "--socket", os.path.join(folder, "a.sock")) + words, capture_output=True,
                       text=True, timeout=60)
    assert r.returncode == code, (words, r.returncode, r.stdout, r.stderr)
    return r.stdout if not code else r.stderr


def batch(word, nets):
    text = "".join("route %s 198.18.%d.%d/32 dev rwy-lan\n" % (word, i // 256, i % 256) for i in nets)
    subprocess.run(("ip", "-n", GA, "-batch", "-"), input=text, text=True, check=True)


def test_routes_come_faster_than_they_are_read(folder):
    """Events are lost, also while the tables are read again: the gateway knows all routes afterwards."""
    lost = 0
    for n in range(1, 6):
        g = Gateway(folder, "a")
        try:
            g.start()
            g.wait(" ready")
            g.proc.send_signal(signal.SIGSTOP)
            batch("add", range(500))
            more = threading.Thread(target=batch, args=("add", range(500, 1100)))
            more.start()
            time.sleep(0.003 * n)  # the gateway reads on at another moment each time
            g.proc.send_signal(signal.SIGCONT)
            more.join()
            g.wait("more than 1024 routes")
            lost += "reading the tables again" in g.text()
        finally:
            g.kill()  # its interface and the routes go with it
    assert lost


def test_too_many_routes(folder):
    """Routes that do not fit the table are told of, once until they fit."""
    g = Gateway(folder, "a")

    def told():
        return g.text().count("error neigh: more than 1024 routes by its interfaces: the others are not used")

    try:
        g.start()
        g.wait(" ready")
        batch("add", range(900))
        time.sleep(0.5)
        assert told() == 0, g.text()
        batch("add", range(900, 1200))
        g.wait("more than 1024 routes")
        batch("del", range(1100, 1200))
        batch("add", range(1100, 1150))
        time.sleep(0.5)
        assert told() == 1, g.text()
        batch("del", range(1000, 1150))
        for _ in range(20):  # once it has seen that they fit
            time.sleep(0.5)
            batch("add", range(1000, 1100))
            time.sleep(0.5)
            if told() == 2:
                break
            batch("del", range(1000, 1100))
        assert told() == 2, g.text()
        code, _ = g.stop()
    finally:
        g.kill()
    assert code == 0, g.text()


def test_reload(folder):
    """Tenants by file, by signal and by command; a refused file changes nothing; messages to
    systemd."""
    n = 400
    entry = "  - {{name: t{0}, vni: {1}, prefixes: [{{prefix: 10.1.0.0/24, at: vtep}}, {{prefix: 10.2.0.0/24, at: far}}]}}\n"
    many = "tenants:\n" + "".join(entry.format(i, i + 1) for i in range(n))
    g = Gateway(folder, "a", workers=2)
    with open(g.config) as f:
        plain = f.read()
    systemd = Systemd(folder)
    os.environ["NOTIFY_SOCKET"] = systemd.path
    try:
        g.start()
        assert systemd.next()["READY"] == "1"
    finally:
        del os.environ["NOTIFY_SOCKET"]

    def write(text):
        with open(g.config, "w") as f:
            f.write(text)

    def hup():
        g.proc.send_signal(signal.SIGHUP)
        m = systemd.next()
        assert m["RELOADING"] == "1" and int(m["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000, m
        m = systemd.next()
        assert m["READY"] == "1", m
        return m["STATUS"]

    try:
        write(plain + many)
        assert hup() == "forwarding"
        g.wait("tenants: added=%d changed=0 removed=0 same=0 generation=2 " % n)
        write(plain.replace("log_level: info", "log_level: notice") + many.replace("vni: 7,", "vni: 700, limit: 1Gbps,"))
        assert hup() == "forwarding"
        g.wait("tenants: added=0 changed=1 removed=0 same=%d generation=3 tunnels: added=0 changed=0 removed=0 same=1 log_level changed " % (n - 1))
        good = roceway(folder, "tenant", "show", "--yaml")
        assert good.count("- name:") == n and "limit: 1Gbps" in good
        for text, want in ((plain.replace("workers: 2", "workers: 1") + many, "for `workers`, which changes only with a restart"),
                           (plain + many.replace("vni: 9,", "vni: 8,"), "which is tenant `t7`'s too"), ("{", "expected YAML")):
            write(text)
            status = hup()
            assert "refused" in status and want in status, status
            assert want in roceway(folder, "reload", code=1)
            assert systemd.next()["RELOADING"] == "1" and want in systemd.next()["STATUS"]
        assert roceway(folder, "tenant", "show", "--yaml") == good
        assert "added: generation 4" in roceway(folder, "tenant", "add", "red", "vni=5001", "prefix=10.1.0.0/24@vtep")
        assert "changed: generation 5" in roceway(folder, "tenant", "set", "red", "limit=1Gbps")
        assert "removed: generation 6" in roceway(folder, "tenant", "del", "red")
        write(plain)
        assert "0 tenants added, 0 changed, %d removed" % n in roceway(folder, "reload")
        code, _ = g.stop()
    finally:
        g.kill()
    assert code == 0, g.text()
    refused = [line for line in g.text().splitlines() if " error " in line]
    assert len(refused) == 6 and all(" error reload: refused, nothing has changed: " in line for line in refused), refused


def main():
    tests = [test_command_line, test_full_journal, test_start_failures, test_alone, test_tunnel_told, test_routes_come_faster_than_they_are_read, test_too_many_routes, test_reload, test_pair, test_pair_v6_tunnel_two_workers,
             test_pair_vlan, test_pair_priority_tags]
    passed = failed = 0
    try:
        topology()
        with tempfile.TemporaryDirectory() as folder:
            for t in tests:
                began = time.monotonic()
                try:
                    t(folder)
                    passed += 1
                    print("ok %s %.1f s" % (t.__name__, time.monotonic() - began))
                except Exception as e:  # noqa: BLE001: any failure is a failed test
                    failed += 1
                    print("not ok %s: %s: %s" % (t.__name__, type(e).__name__, e))
    finally:
        cleanup()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
