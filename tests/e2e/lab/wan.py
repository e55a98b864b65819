# SPDX-License-Identifier: Apache-2.0
# The emulated WAN between wa and wb: tools/wanem as a process, changed over its control socket
# while it runs. If the program is not built a kernel bridge replaces it, and impairments are
# refused.
import subprocess
import time

from . import proc
from .proc import LabError

CLEAN = {"delay": "0ms", "jitter": "0ms", "loss": "0%", "reorder": "0%", "dup": "0%", "corrupt": "0%", "rate": "unlimited"}


class Wan:
    def __init__(self, net, log, devs=("wa", "wb"), name="wanem"):
        self.net, self.log, self.devs, self.name = net, log, devs, name
        self.sock = net.dir / f"{name}.sock"
        self.child = None
        self.bridged = False

    def start(self):
        if not (self.net.bin / "wanem").exists():
            self.net.bridge(self.net.wan, True, *self.devs)
            self.bridged = True
            return
        self.sock.unlink(missing_ok=True)
        self.child = proc.start([*proc.ns_argv(self.net.wan), self.net.bin / "wanem", "--a", self.devs[0], "--b", self.devs[1], "--rt",
                                 "--control", self.sock], self.net.dir / f"{self.name}.log")
        proc.wait_for("wanem: control socket", lambda: self.sock.exists() or self.child.poll() is not None, 10)
        if self.child.poll() is not None:
            raise LabError(f"wanem ended: {(self.net.dir / f'{self.name}.log').read_text()[-500:]}")

    def set(self, rtt_ms=0, loss=0, reorder=0, dup=0, corrupt=0, jitter_ms=0, rate=None, **more):
        """Sets both directions: round-trip time in ms, the rest in percent, rate in wanem's form
        (None: no limit)."""
        want = dict(CLEAN, delay=f"{rtt_ms / 2:g}ms", jitter=f"{jitter_ms:g}ms", loss=f"{loss:g}%", reorder=f"{reorder:g}%",
                    dup=f"{dup:g}%", corrupt=f"{corrupt:g}%", rate=rate or "unlimited", **more)
        if self.bridged:
            if want != CLEAN and (rtt_ms > 0.2 or loss or reorder or dup or corrupt or rate or more):
                raise LabError("build/bin/wanem is not built: only a clean WAN is possible")
            return
        self.ctl("set", "both", *(f"{k}={v}" for k, v in want.items()))

    def outage(self, seconds, wait=True):
        """Cuts both directions for this time; returns when it is over, or at once."""
        if self.bridged:
            raise LabError("build/bin/wanem is not built: no outage")
        self.ctl("outage", f"{seconds:g}s")
        if wait:
            time.sleep(seconds)

    def ctl(self, *words):
        """Sends a raw control command; returns wanem's answer."""
        r = subprocess.run([self.net.bin / "wanem", "ctl", str(self.sock), *words], capture_output=True, text=True, timeout=10,
                           stdin=subprocess.DEVNULL)
        self.log(f"[{self.name}] {' '.join(words)}: {(r.stdout + r.stderr).strip()}")
        if r.returncode:
            raise LabError(f"wanem ctl {' '.join(words)}: {r.stderr.strip() or r.stdout.strip()}")
        return r.stdout

    def stop(self):
        proc.stop(self.child)
        self.child = None
        if self.bridged:
            self.net.bridge(self.net.wan, False)
            self.bridged = False
