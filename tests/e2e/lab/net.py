# SPDX-License-Identifier: Apache-2.0
# Namespaces, taps and cables of one lab run, and their removal, also after the run was killed.
#
#   gwa: tapa (host A), wana      wan: wa, wb      gwb: wanb, tapb (host B)
#        wana <-> wa and wb <-> wanb are veth pairs; the emulated WAN connects wa and wb.
#
# Between tapX and wanX is a gateway process or, for native runs, a kernel bridge. With several
# hosts at a site their taps are ports of a switch (a kernel bridge), and the gateway's LAN port is
# lanX.
import fcntl
import os
import shutil
import signal
import time
from pathlib import Path

from .host import SITES
from .paths import BIN
from .proc import sh

IP = "/usr/sbin/ip"
PREFIX = "rwy-"
RUN = Path("/run/roceway-lab")
MTU_MAX = 9000
QUEUE = 20000  # packets towards a guest: 16 QPs send 2048 at once, and a drop here would count as one of the WAN's


class Net:
    def __init__(self):
        RUN.mkdir(parents=True, exist_ok=True)
        clean_stale()
        self.id = f"{os.getpid():x}"
        self.dir = RUN / self.id
        self.dir.mkdir(mode=0o700, exist_ok=True)  # has the journals
        self.lock = open(self.dir / "lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.gwa, self.gwb, self.wan = (f"{PREFIX}{self.id}-{n}" for n in ("gwa", "gwb", "wan"))
        self.pipe = _janitor(self.id, self.lock)
        self._copy_programs()
        self._build()

    def _copy_programs(self):
        """The run's own copy of the programs, so that a build does not change them during the run.
        """
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        for p in ("roceway-gateway", "roceway-proxy", "roceway", "roceway-controller", "wanem"):
            if (BIN / p).exists():
                shutil.copy2(BIN / p, self.bin / p)

    def _build(self):
        for ns in (self.gwa, self.gwb, self.wan):
            sh(IP, "netns", "add", ns)
            # The cables carry other machines' frames: the kernel must not send on them by itself.
            sh(IP, "netns", "exec", ns, "sh", "-c", "cd /proc/sys/net && echo 1 >ipv6/conf/default/disable_ipv6"
               " && echo 0 >ipv4/ip_forward")
            sh(IP, "-n", ns, "link", "set", "lo", "up")
        for side, ns in (("a", self.gwa), ("b", self.gwb)):
            for host in SITES[side]:
                sh(IP, "-n", ns, "tuntap", "add", "dev", f"tap{host}", "mode", "tap")
                sh(IP, "-n", ns, "link", "set", f"tap{host}", "mtu", MTU_MAX, "txqueuelen", QUEUE, "up")
            sh(IP, "-n", ns, "link", "add", f"wan{side}", "type", "veth", "peer", "name", f"w{side}", "netns", self.wan)
        self.wan_mtu(MTU_MAX)

    def wan_mtu(self, mtu):
        """Sets the MTU of the whole WAN cable."""
        for side, ns in (("a", self.gwa), ("b", self.gwb)):
            sh(IP, "-n", ns, "link", "set", f"wan{side}", "mtu", mtu, "up")
            sh(IP, "-n", self.wan, "link", "set", f"w{side}", "mtu", mtu, "up")

    def bridge(self, ns, on, *devs):
        """Joins two devices of a namespace by a kernel bridge, or separates them again."""
        if not on:
            sh(IP, "-n", ns, "link", "del", "br0", check=False)
            return
        sh(IP, "-n", ns, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0", "ageing_time", "0",
           "forward_delay", "0", "stp_state", "0")
        for d in devs:
            sh(IP, "-n", ns, "link", "set", d, "master", "br0")
        sh(IP, "-n", ns, "link", "set", "br0", "mtu", MTU_MAX, "up", check=False)

    def switch(self, ns, on, gateway, *hosts):
        """Makes a LAN switch between these hosts' devices and the gateway's port `gateway`, or
        none. Hosts' ports are isolated: they reach only the gateway. `atk` is the far end of one
        more such port, for frames that no guest's kernel sends."""
        if not on:
            sh(IP, "-n", ns, "link", "del", "sw0", check=False)
            for dev in (gateway, "atk"):
                sh(IP, "-n", ns, "link", "del", dev, check=False)
            return
        sh(IP, "-n", ns, "link", "add", "sw0", "type", "bridge", "mcast_snooping", "0", "forward_delay", "0", "stp_state", "0")
        for dev, port in ((gateway, "sw-gw"), ("atk", "sw-atk")):
            sh(IP, "-n", ns, "link", "add", dev, "mtu", MTU_MAX, "type", "veth", "peer", "name", port, "mtu", MTU_MAX)
            sh(IP, "-n", ns, "link", "set", dev, "up")
        for port in (*hosts, "sw-gw", "sw-atk"):
            sh(IP, "-n", ns, "link", "set", port, "master", "sw0", "up")
            sh(IP, "-n", ns, "link", "set", port, "type", "bridge_slave", "isolated", "off" if port == "sw-gw" else "on")
        # The gateway's own addresses are in this namespace, too (on its tap): the switch must not answer ARP for them.
        sh(IP, "netns", "exec", ns, "sh", "-c", "for d in sw0 atk; do echo 8 >/proc/sys/net/ipv4/conf/$d/arp_ignore; done")
        sh(IP, "-n", ns, "link", "set", "sw0", "mtu", MTU_MAX, "up")

    def close(self):
        clean(self.id)
        os.close(self.pipe)


def clean(run_id):
    """Kills the processes in the run's namespaces, then deletes them and the run's directory."""
    mine = [ns for ns in _namespaces() if ns.startswith(f"{PREFIX}{run_id}-")]
    for sig in (signal.SIGTERM, signal.SIGKILL):
        pids = [int(p) for ns in mine for p in sh(IP, "netns", "pids", ns, check=False).split()]
        for pid in pids:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass
        if pids:
            time.sleep(0.2)
    for ns in mine:
        sh(IP, "netns", "del", ns, check=False)
    shutil.rmtree(RUN / run_id, ignore_errors=True)


def clean_stale():
    """Removes what dead runs left behind."""
    ids = {ns[len(PREFIX):].split("-")[0] for ns in _namespaces()} | {p.name for p in RUN.glob("*")}
    for run_id in ids:
        try:
            with open(RUN / run_id / "lock", "a") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass
        except BlockingIOError:
            continue  # alive
        clean(run_id)


def _namespaces():
    return [line.split()[0] for line in sh(IP, "netns", "list", check=False).splitlines() if line.startswith(PREFIX)]


def _janitor(run_id, lock):
    """Starts a process that cleans up when this one has ended, in whatever way. Returns the end of
    a pipe that stays open as long as this process lives."""
    rd, wr = os.pipe()
    os.set_inheritable(rd, False)
    if os.fork():
        os.close(rd)
        return wr
    os.setsid()
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)
    os.close(wr)
    lock.close()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.read(rd, 1)
    try:
        clean(run_id)
    finally:
        os._exit(0)
