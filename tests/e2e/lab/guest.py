# SPDX-License-Identifier: Apache-2.0
# One QEMU guest: starts it, and runs commands in it through its agent (tests/e2e/guest/rwy_agent.c
# has the frame format). It knows nothing about addresses or RDMA.
import os
import re
import signal
import socket
import struct
import threading
import time
from dataclasses import dataclass

from . import image, proc
from .proc import LabError

_HEAD = struct.Struct("<III")
_OFFLOADS = ",".join(f"{o}=off" for o in """csum gso host_tso4 host_tso6 host_ecn host_ufo
                     guest_csum guest_tso4 guest_tso6 guest_ecn guest_ufo""".split())


# A guest's kernel prints this when its network device does not send any more. That is QEMU's fault,
# not a test's.
_HUNG = re.compile(rb"NETDEV WATCHDOG|TX timeout on queue")


@dataclass
class Result:
    """The result of a command: exit code (128 + signal if killed, 124 if the lab's time limit ended
    it)."""
    cmd: str
    code: int
    out: str
    err: str
    seconds: float

    @property
    def ok(self):
        return self.code == 0

    @property
    def text(self):
        return self.out + self.err


class Job:
    """A command that runs in a guest."""

    def __init__(self, guest, jid, cmd):
        self.guest, self.id, self.cmd = guest, jid, cmd
        self.out, self.err = bytearray(), bytearray()
        self.code = None
        self.started, self.ended = time.monotonic(), None
        self.done = threading.Event()

    def kill(self, sig=signal.SIGKILL):
        if not self.done.is_set():
            self.guest._send("K", self.id, struct.pack("<I", sig))

    def wait(self, timeout):
        """The result of the command; after `timeout` seconds it is killed and the code is 124."""
        late = not self.done.wait(timeout)
        if late:
            self.kill()
            self.done.wait(5)
        code = 124 if late or self.code is None else self.code
        end = self.ended or time.monotonic()
        return self.guest._log(Result(self.cmd, code, self.out.decode(errors="replace"),
                                      self.err.decode(errors="replace"), end - self.started))


class Guest:
    memory = 512  # MiB
    machine, kernel_args, nic_options = "pc", "", ""
    first_devices = ()  # before its network devices

    def __init__(self, name, netns, tap, mac, rundir, log):
        self.name, self.netns, self.tap, self.mac = name, netns, tap, mac
        self.rundir, self.log = rundir, log
        self.serial_log = rundir / f"serial-{name}.log"
        self.serial_sock = rundir / f"serial-{name}.sock"
        self.qemu = self.sock = None
        self.watched = 0  # in the console's log: where watching begins
        self.jobs, self.next_id = {}, 1
        self.lock, self.hello = threading.Lock(), threading.Event()

    def nics(self):
        """(tap device, MAC address) of each of its interfaces."""
        return [(self.tap, self.mac)]

    def archive(self, kdir):
        return image.initramfs(kdir)

    def boot(self):
        """Starts QEMU and returns at once; ready() waits."""
        agent = self.rundir / f"agent-{self.name}.sock"
        for s in (agent, self.serial_sock):
            s.unlink(missing_ok=True)
        kdir = image.kernel()
        accel = os.environ.get("ROCEWAY_ACCEL", "tcg")
        accel = "tcg,thread=multi" if accel == "tcg" else accel
        self.hello.clear()
        self.qemu = proc.start([
            *proc.ns_argv(self.netns), "nice", "-n", "5", "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
            "-machine", self.machine, "-accel", accel, "-cpu", "max", "-m", str(self.memory), "-smp", os.environ.get("ROCEWAY_SMP", "1"),
            "-no-reboot", "-kernel", image.vmlinuz(kdir), "-initrd", self.archive(kdir),
            # no_timer_check: without enough of a busy machine the kernel finds that "IO-APIC + timer doesn't work!", and panics
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on tsc=reliable no_timer_check" + self.kernel_args,
            "-chardev", f"socket,id=ser,path={self.serial_sock},server=on,wait=off,logfile={self.serial_log},logappend=on",
            "-serial", "chardev:ser",
            *self.first_devices, "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={agent},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=rwy,nr=1",
            *(w for i, (tap, mac) in enumerate(self.nics()) for w in (
                "-netdev", f"tap,id=n{i},ifname={tap},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev=n{i},mac={mac},romfile=,rx_queue_size=1024,{_OFFLOADS}{self.nic_options}")),
        ], self.rundir / f"qemu-{self.name}.log")
        self.agent_path = agent
        proc.wait_for(f"guest {self.name}: QEMU", lambda: agent.exists() or self.qemu.poll() is not None, 10)
        if self.qemu.poll() is not None:
            raise LabError(f"guest {self.name}: QEMU ended: {(self.rundir / f'qemu-{self.name}.log').read_text()[-500:]}")
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(agent))
        threading.Thread(target=self._reader, args=(self.sock,), daemon=True, name=f"agent-{self.name}").start()

    def ready(self, timeout=30):
        if not self.hello.wait(timeout):
            raise LabError(f"guest {self.name}: did not boot within {timeout} s, see {self.serial_log}")

    def watch(self):
        """Starts watching for hung()."""
        self.watched = self.serial_log.stat().st_size if self.serial_log.exists() else 0

    def hung(self):
        """True if its network device has stopped sending since watch()."""
        if not self.serial_log.exists():
            return False
        with open(self.serial_log, "rb") as f:
            f.seek(self.watched)
            return bool(_HUNG.search(f.read()))

    def halt(self):
        proc.kill(self.qemu)
        if self.sock:
            self.sock.close()
        for job in list(self.jobs.values()):
            job.done.set()
        self.jobs.clear()

    def start(self, cmd, stdin=False):
        """Starts a command in the background."""
        with self.lock:
            job = Job(self, self.next_id, cmd)
            self.next_id += 1
            self.jobs[job.id] = job
        self._send("S" if stdin else "R", job.id, cmd.encode())
        return job

    def run(self, cmd, timeout=20, check=True):
        """Runs a command to its end. With `check` an exit code other than 0 is a LabError."""
        r = self.start(cmd).wait(timeout)
        if check and not r.ok:
            raise LabError(f"host {self.name}: {cmd}: exit {r.code}: {r.text.strip()[-400:]}")
        return r

    def put(self, data, path, timeout=60):
        """Writes bytes to a file in the guest."""
        job = self.start(f"cat > {path}", stdin=True)
        for at in range(0, len(data), 1 << 16):
            self._send("I", job.id, data[at:at + (1 << 16)])
        self._send("I", job.id, b"")
        if not job.wait(timeout).ok:
            raise LabError(f"host {self.name}: cannot write {path}: {job.err.decode(errors='replace')}")

    def get(self, path, timeout=60):
        """The bytes of a file in the guest."""
        job = self.start(f"cat {path}")
        if not job.done.wait(timeout) or job.code:
            raise LabError(f"host {self.name}: cannot read {path}")
        return bytes(job.out)

    def kill_all(self):
        """Ends every job; True if the guest still answers."""
        for job in list(self.jobs.values()):
            job.kill()
        for job in list(self.jobs.values()):
            job.done.wait(5)
        return self.qemu is not None and self.qemu.poll() is None and self.start("true").wait(10).ok

    def _log(self, r):
        self.log(f"[{self.name}] {r.cmd}\n    exit {r.code} after {r.seconds:.2f} s"
                 + "".join(f"\n    {line}" for line in r.text.rstrip().splitlines()[-60:]))
        return r

    def _send(self, kind, jid, data=b""):
        try:
            with self.lock:
                self.sock.sendall(_HEAD.pack(ord(kind), jid, len(data)) + data)
        except OSError as e:
            raise LabError(f"guest {self.name}: agent connection: {e}") from e

    def _reader(self, sock):
        stream = sock.makefile("rb")
        try:
            while True:
                head = stream.read(_HEAD.size)
                if len(head) < _HEAD.size:
                    return
                kind, jid, size = _HEAD.unpack(head)
                self._frame(chr(kind), jid, stream.read(size))
        except (OSError, ValueError):
            return

    def _frame(self, kind, jid, data):
        job = self.jobs.get(jid)
        if kind == "H":
            self.hello.set()
        elif job is None:
            return
        elif kind == "O":
            job.out += data
        elif kind == "E":
            job.err += data
        elif kind == "Z":
            status = struct.unpack("<I", data)[0]
            job.code = os.waitstatus_to_exitcode(status)
            job.code = 128 - job.code if job.code < 0 else job.code
            job.ended = time.monotonic()
            self.jobs.pop(jid, None)
            job.done.set()
