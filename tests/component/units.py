#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The systemd units, by a real systemd: it runs as PID 1 in namespaces of its own, over a copy of this machine's files that is thrown away, with its own
interfaces and its own part of the control groups. So units start, reload, restart and stop as on a machine, with their sandbox.

Not tried: VFIO and hugepages, which would be this machine's; resource limits by control groups, which need the version 2 hierarchy's controllers; and
systemd's own notes of what a kernel lacks. Needs root and systemd. Arguments: the build folder, and a part of the names of the tests to run.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
UNITS = ROOT / "conf/systemd"
WAIT = 90
# The kernel of the machine is everybody's: units that would change it are not there.
BOOT = """
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs {top}
mkdir {top}/up {top}/work {top}/root
mount -t overlay overlay -o lowerdir=/,upperdir={top}/up,workdir={top}/work {top}/root
cd {top}/root
mount -t proc proc proc
mount -o bind,ro proc/sys proc/sys
mount -o bind proc/sys/net proc/sys/net
mount -t sysfs -o ro sysfs sys
for d in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs $d; done
for d in null zero full random urandom tty; do touch dev/$d; mount --bind /dev/$d dev/$d; done
mkdir dev/net dev/shm dev/pts
touch dev/console dev/net/tun
mount --bind /dev/net/tun dev/net/tun
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t cgroup2 cgroup2 sys/fs/cgroup
for d in etc lib usr/lib; do rm -rf $d/systemd/system/*.target.wants $d/systemd/system/default.target; done
mkdir -p usr/local/lib/roceway etc/roceway
cp {build}/bin/roceway-gateway {build}/bin/roceway-proxy {build}/bin/roceway-controller {build}/bin/roceway-host-agent usr/local/sbin/
cp {build}/bin/roceway usr/local/bin/
cp {units}/roceway-prepare usr/local/lib/roceway/
cp {units}/*.service {build}/units/roceway-proxy.service etc/systemd/system/
cp -r {etc}/. etc/roceway/
echo roceway-controller:x:64990: >>etc/group # as the package makes it: its user reads the key, and no other
echo roceway-controller:x:64990:64990::/:/usr/sbin/nologin >>etc/passwd
chgrp 64990 etc/roceway/ctl.key
chmod 640 etc/roceway/ctl.key
echo units-test >etc/hostname
: >etc/machine-id
for i in lan0 wan0; do ip link add $i type veth peer name far-$i; ip link set $i up; ip link set far-$i up; done
ip link set lo up
mkdir old
pivot_root . old
umount -l old
exec env -i container=units-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target --log-target=journal --show-status=no </dev/null
"""
GATEWAY = """gateway: {name: a, drain_timeout: 0s}
eal: {args: ["--in-memory", "--no-huge", "-m", "128"]}
ports:
  - {name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [10.1.0.1/24], mtu: 1500}
  - {name: wan, device: "net_af_packet1,iface=wan0", role: wan, addresses: [192.0.2.1/24], mtu: 1500}
tunnels:
  - {name: b, port: wan, local: 192.0.2.1, remote: 192.0.2.2, prefixes: [10.2.0.0/24], security: none}
memory: {buffers: 8192, custody_per_connection: 8MiB, custody_total: 16MiB}
"""
RELAY = "relay: {addresses: [10.1.0.1], allow: [{from: 10.1.0.0/24, to: 10.2.0.0/24, ports: 1-65535}]}\n"
CONTROLLER = """controller: {name: ctl}
listen: {address: "127.0.0.1:7443"}
tls: {ca: /etc/roceway/ca.pem, certificate: /etc/roceway/ctl.pem, key: /etc/roceway/ctl.key}
store: {kind: sqlite, path: /var/lib/roceway/controller.db}
"""


def until(what, true):
    end = time.monotonic() + WAIT
    while not (out := true()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return out


class Machine:
    """A booted systemd. Its processes die with it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.group = Path("/sys/fs/cgroup") / ("unified" if Path("/sys/fs/cgroup/unified").is_dir() else "") / ("rwy-units-%d" % os.getpid())

    def __enter__(self):
        top, etc = self.folder / "top", self.folder / "etc"
        top.mkdir()
        etc.mkdir()
        (etc / "gateway.yaml").write_text(GATEWAY)
        (etc / "proxy.yaml").write_text(GATEWAY + RELAY)
        (etc / "controller.yaml").write_text(CONTROLLER)
        (etc / "host-agent.conf").write_text("policy /etc/roceway/relays.conf\n")
        (etc / "relays.conf").write_text("redirect 10.2.0.0/24 via 10.1.0.254\n")
        for words in (("init",), ("issue", "ctl", "controller", "127.0.0.1")):
            subprocess.run((ROOT / "tools/ca/roceway-ca", self.folder / "ca", *words), check=True, capture_output=True)
        for name in "ca.pem", "ctl.pem", "ctl.key":
            (etc / name).write_bytes((self.folder / "ca" / name).read_bytes())
        self.group.mkdir()
        self.log = open(self.folder / "log", "w+")
        script = BOOT.format(top=top, build=BUILD, units=UNITS, etc=etc)
        self.proc = subprocess.Popen(("sh", "-c", 'echo $$ >%s/cgroup.procs && exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --cgroup --uts --ipc --net sh -c "$0"'
                                      % self.group, script), stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.pid = until("systemd starts", self.child)
        until("systemd runs", lambda: self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded"))
        self.run("systemctl", "start", "systemd-journald.service", "systemd-journald.socket")
        return self

    def child(self):
        assert self.proc.poll() is None, (self.folder / "log").read_text()
        for pid in Path("/proc/%d/task/%d/children" % (self.proc.pid, self.proc.pid)).read_text().split():
            if os.readlink("/proc/%s/exe" % pid).endswith("/systemd"):
                return int(pid)
        return 0

    def __exit__(self, *exc):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.proc.wait(WAIT)
        self.log.close()
        until("its control groups are empty", self.groups_gone)

    def groups_gone(self):
        for d, _, _ in os.walk(self.group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(d)
        return not self.group.exists()

    def run(self, *argv, check=True, of=None):
        """In the machine; of: with the files that this process sees."""
        who = ("nsenter", "-t", str(of or self.pid), "-m", "-p" if not of else "-n", "-n", "-u", "-i") + (() if of else ("-C",)) + ("-r", "-w")
        r = subprocess.run(who + argv, capture_output=True, text=True, timeout=WAIT, check=False)
        assert not check or r.returncode == 0, (argv, r, self.journal())
        return r

    def journal(self):
        return self.run("journalctl", "--no-pager", "-n", "60", check=False).stdout

    def show(self, unit, what):
        return self.run("systemctl", "show", "-P", what, unit).stdout.strip()

    def main_pid(self, unit):
        """Of the process, as this machine counts."""
        inner = self.show(unit, "MainPID")
        for p in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                said = re.search(r"^NSpid:\s+(\d+)\s+(\d+)$", (p / "status").read_text(), re.M)
                if said and said[2] == inner and os.readlink(p / "ns/pid") == os.readlink("/proc/%d/ns/pid" % self.pid):
                    return int(said[1])
        return 0

    def start(self, unit):
        self.run("systemctl", "start", unit)
        assert self.show(unit, "ActiveState") == "active", self.journal()
        return until("its process", lambda: self.main_pid(unit))


def status(pid):
    return dict(line.split(":\t", 1) for line in Path("/proc/%d/status" % pid).read_text().splitlines() if ":\t" in line)


def capabilities(text):
    return {c for c in range(64) if int(text, 16) >> c & 1}


def writable(m, pid, folder):
    """Whether the process, with its files and its capabilities, could make a file there."""
    r = m.run("touch", folder + "/rwy-units-test", check=False, of=pid)
    return r.returncode == 0


def check_files(m, pid, may, may_not):
    for folder in may:
        assert writable(m, pid, folder), folder
    for folder in may_not:
        assert not writable(m, pid, folder), folder


def test_gateway(m):
    """It starts in its sandbox and is ready; then all that an operator does with it."""
    pid = m.start("roceway-gateway")
    said = status(pid)
    # CAP_NET_BIND_SERVICE is for those who start it by hand
    assert capabilities(said["CapBnd"]) == capabilities(said["CapEff"]) == {1, 12, 13, 14, 17, 21, 23}, said
    assert said["NoNewPrivs"] == "1" and said["Seccomp"] == "2" and int(said["Seccomp_filters"]) > 1, said
    check_files(m, pid, ("/run/roceway", "/var/lib/roceway", "/tmp"), ("/", "/usr/bin", "/etc/roceway", "/boot", "/var/lib", "/var/spool", "/run", "/root"))
    assert m.run("ls", "/root", check=False, of=pid).stdout == "" and not Path("/var/lib/roceway/rwy-units-test").exists()
    (Path("/proc/%d/root/tmp" % m.pid) / "others").touch()
    assert "others" not in m.run("ls", "/tmp", of=pid).stdout, "it sees others' /tmp"
    assert m.run("stat", "-c", "%a", "/run/roceway/dpdk").stdout == "700\n" and "EAL: Error" not in m.journal()
    out = m.run("roceway", "status").stdout
    assert "running" in out and "2, 2 up" in out and "sandbox" not in out, out
    assert m.show("roceway-gateway", "StatusText") == "forwarding"


def test_gateway_reload(m):
    """ExecReload= checks the file first; the groups of the API change without CAP_CHOWN; a wrong file changes nothing."""
    pid = m.start("roceway-gateway")
    conf = Path("/proc/%d/root/etc/roceway/gateway.yaml" % m.pid)
    conf.write_text(GATEWAY + "api: {operator_group: audio}\n")
    m.run("systemctl", "reload", "roceway-gateway")
    ask = ("setpriv", "--reuid=65534", "--regid=65534", "--groups=29", "roceway", "status")
    until("members of the group may", lambda: m.run(*ask, check=False).returncode == 0)
    conf.write_text(GATEWAY + "api: {operator_group: no-such-group}\n")
    assert m.run("systemctl", "reload", "roceway-gateway", check=False).returncode != 0
    assert m.run(*ask).returncode == 0 and m.main_pid("roceway-gateway") == pid
    conf.write_text(GATEWAY)
    m.run("systemctl", "reload", "roceway-gateway")
    until("they may not", lambda: m.run(*ask, check=False).returncode == 1)


def test_gateway_watchdog_and_crash(m):
    """The watchdog is fed; a killed gateway is started again and finds its journal."""
    pid = m.start("roceway-gateway")
    fed = m.show("roceway-gateway", "WatchdogTimestampMonotonic")
    until("the watchdog is fed", lambda: m.show("roceway-gateway", "WatchdogTimestampMonotonic") != fed)
    journal = "stat", "-c", "%a %i", "/run/roceway/journal"
    before = m.run(*journal).stdout
    os.kill(pid, signal.SIGKILL)
    until("it runs again", lambda: m.main_pid("roceway-gateway") not in (0, pid))
    until("it is ready", lambda: m.show("roceway-gateway", "ActiveState") == "active")
    assert int(m.show("roceway-gateway", "NRestarts")) >= 1 and before.startswith("700 ") and m.run(*journal).stdout == before
    m.run("systemctl", "stop", "roceway-gateway")
    assert m.show("roceway-gateway", "Result") == "success" and m.run(*journal).stdout == before, "the journal is gone"
    # twice in a row, as after an upgrade
    m.start("roceway-gateway")
    m.run("systemctl", "restart", "roceway-gateway")
    assert m.show("roceway-gateway", "ActiveState") == "active"


def test_gateway_filter_of_the_unit(m):
    """What the unit refuses before the gateway's own filter is there: its ExecStartPre= has the same."""
    unit = Path("/proc/%d/root/etc/systemd/system/roceway-gateway.service.d" % m.pid)
    unit.mkdir()
    (unit / "try.conf").write_text("[Service]\nExecStartPre=-/bin/sh -c 'mount -t tmpfs x /tmp; echo mount=$$?; unshare -n true; echo unshare=$$?; "
                                   "chown 1 /run/roceway; echo chown=$$?'\n")
    m.run("systemctl", "daemon-reload")
    m.run("systemctl", "restart", "roceway-gateway")
    said = dict(re.findall(r"\b(mount|unshare|chown)=(\d+)$", m.journal(), re.M))
    shutil.rmtree(unit)
    m.run("systemctl", "daemon-reload")
    assert set(said) == {"mount", "unshare", "chown"} and "0" not in said.values(), said


def test_relay(m):
    """The relay's unit is the gateway's with other names. It needs the gateway's place here, so that one stops."""
    m.run("systemctl", "stop", "roceway-gateway")
    pid = m.start("roceway-proxy")
    said = status(pid)
    assert capabilities(said["CapBnd"]) == {1, 12, 13, 14, 17, 21, 23} and said["NoNewPrivs"] == "1" and said["Seccomp"] == "2", said
    check_files(m, pid, ("/run/roceway", "/var/lib/roceway"), ("/", "/usr/bin", "/etc/roceway", "/var/lib", "/run"))
    assert "running" in m.run("roceway", "status").stdout and m.run("roceway", "links").returncode == 0
    m.run("systemctl", "reload", "roceway-proxy")
    m.run("systemctl", "stop", "roceway-proxy")
    assert m.show("roceway-proxy", "Result") == "success"


def test_controller(m):
    """A user of its own, no capability, its store and nothing else to write."""
    pid = m.start("roceway-controller")
    said = status(pid)
    assert said["CapBnd"] == said["CapEff"] == "0" * 16 and said["Uid"].split()[0] not in ("0", "65534") and said["NoNewPrivs"] == "1" and said["Seccomp"] == "2", said
    db = m.run("stat", "-L", "-c", "%U %a", "/var/lib/roceway/controller.db").stdout.split()
    assert db[0] not in ("root", "nobody") and int(db[1], 8) & 0o077 == 0, db
    # as its root would: these are read-only to whoever
    check_files(m, pid, ("/var/lib/roceway",), ("/usr/bin", "/etc/roceway", "/var/spool", "/run", "/root"))
    m.run("systemctl", "reload", "roceway-controller")
    until("it has read its CA again", lambda: "CA and revocation list read again" in m.journal())
    m.run("systemctl", "restart", "roceway-controller")
    assert m.show("roceway-controller", "ActiveState") == "active"
    m.run("systemctl", "stop", "roceway-controller")
    assert m.show("roceway-controller", "Result") == "success"


def test_host_agent(m):
    """It writes its file and nothing else, and the file stays when it is stopped."""
    pid = m.start("roceway-host-agent")
    said = status(pid)
    assert said["CapBnd"] == said["CapEff"] == "0" * 16 and said["NoNewPrivs"] == "1" and said["Seccomp"] == "2", said
    check_files(m, pid, ("/run/roceway-host",), ("/", "/usr/bin", "/etc/roceway", "/var/lib", "/run/systemd", "/root"))
    words = "redirect 10.2.0.0/24 via 10.1.0.254,weight=1,port=4795"
    until("its file", lambda: words in m.run("cat", "/run/roceway-host/redirect.conf", check=False).stdout)
    until("nobody answers at that relay", lambda: words + ",down" in m.run("cat", "/run/roceway-host/redirect.conf").stdout)
    m.run("systemctl", "restart", "roceway-host-agent")
    assert m.show("roceway-host-agent", "ActiveState") == "active"
    m.run("systemctl", "stop", "roceway-host-agent")
    assert m.show("roceway-host-agent", "Result") == "success"
    assert words in m.run("cat", "/run/roceway-host/redirect.conf").stdout


def test_both_on_one_machine(m):
    """They share /var/lib/roceway, whoever was there first, and each starts again."""
    for _ in range(2):
        for unit in "roceway-gateway", "roceway-controller":
            pid = m.start(unit)
            check_files(m, pid, ("/var/lib/roceway",), ())
        for unit in "roceway-gateway", "roceway-controller":
            m.run("systemctl", "stop", unit)


def test_prepare(m):
    """With nothing to prepare it succeeds; a number that is none is a fault with a line."""
    m.run("systemctl", "start", "roceway-prepare")
    assert m.show("roceway-prepare", "Result") == "success"
    m.run("systemctl", "stop", "roceway-prepare")
    Path("/proc/%d/root/etc/default/roceway-gateway" % m.pid).write_text("HUGEPAGES_2M=many\n")
    assert m.run("systemctl", "start", "roceway-prepare", check=False).returncode != 0
    assert "expected a number of hugepages, found many" in m.journal()


def test_verify(m):
    """systemd-analyze knows every line."""
    r = m.run("systemd-analyze", "verify", "--man=no", *("/etc/systemd/system/" + u for u in sorted([*(p.name for p in UNITS.glob("*.service")), "roceway-proxy.service"])), check=False)
    assert r.returncode == 0 and "roceway" not in r.stderr, r
    for unit, most in ("roceway-gateway", 42), ("roceway-controller", 16), ("roceway-host-agent", 30), ("roceway-prepare", 47):
        out = m.run("systemd-analyze", "security", "--no-pager", unit, check=False).stdout
        level = re.search(r"exposure level for %s\.service: ([\d.]+)" % unit, out)
        assert level and float(level[1]) * 10 <= most, (unit, level)


def main():
    if not Path("/lib/systemd/systemd").exists() or " cgroup2 " not in Path("/proc/mounts").read_text():
        print("no systemd, or no control groups of version 2, on this machine: not tried\n0 passed, 0 failed")
        return 0
    want = sys.argv[2] if len(sys.argv) > 2 else ""
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, Machine(folder) as m:
        for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_") and want in n]:
            began = time.monotonic()
            try:
                test(m)
                passed += 1
                print("ok %s %.1f s" % (name, time.monotonic() - began), flush=True)
            except Exception:
                failed += 1
                print("not ok %s" % name, flush=True)
                traceback.print_exc()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
