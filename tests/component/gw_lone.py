# SPDX-License-Identifier: Apache-2.0
"""One real gateway in a network namespace of its own, whose tunnel has nobody at the other end: for scripts about what it says of its
devices. Needs root."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
NS = "rgl%d" % os.getpid()
LIMIT = 20  # s, for the start and for the end

CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway: {{name: lone, workers: {workers}, log_level: info, journal_dir: {folder}}}
eal: {{args: ["--in-memory", "--no-huge", "-m", "128"]}}
memory: {{buffers: 4096, custody_per_connection: 2MiB, custody_total: 4MiB}}
api: {{socket: {sock}}}
ports:
  - {{name: lan, device: "net_af_packet0,iface=lan0", role: lan, addresses: [10.1.0.1/24]{lan}}}
  - {{name: wan, device: "{device}", role: wan, addresses: [192.0.2.1/24, "fd00:9::1/64"]{wan}}}
tunnels:
  - {{name: far, port: wan, local: 192.0.2.1, remote: 192.0.2.2, prefixes: [10.2.0.0/24], security: none, rate: 1Gbps}}
{more}
"""


def inside(*words, **kw):
    return subprocess.run(("ip", "netns", "exec", NS, *words), capture_output=True, text=True, **kw)


class Gateway:
    """lan, wan: more keys of the ports; device: of the WAN port; more: lines behind its tunnel."""

    def __init__(self, folder, workers=1, lan="", device="net_af_packet1,iface=wan0", wan="", more=""):
        self.folder, self.sock, self.log = folder, folder + "/g.sock", folder + "/log"
        self.words = {"folder": folder, "sock": self.sock, "workers": workers, "lan": lan, "device": device, "wan": wan}
        self.write(more)

    def write(self, more):
        with open(self.folder + "/g.yaml", "w") as f:
            f.write(CONFIG.format(more=more, **self.words))

    def __enter__(self):
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(("ip", "netns", "exec", NS, BUILD + "/bin/roceway-gateway", "--config", self.folder + "/g.yaml"),
                                          stdout=log, stderr=log)
        end = time.monotonic() + LIMIT
        while "main: ready" not in self.text():
            assert self.child.poll() is None and time.monotonic() < end, self.text()
            time.sleep(0.05)
        return self

    def __exit__(self, *exc):
        self.child.send_signal(signal.SIGTERM)
        try:
            code = self.child.wait(LIMIT)
        except subprocess.TimeoutExpired:
            where = self.threads()
            self.child.kill()
            self.child.wait()
            raise AssertionError("it does not end:\n%s\n%s" % (where, self.text()[-1500:])) from None
        assert exc[0] or code == 0, (code, self.text())

    def threads(self):
        """Each thread's name, state and system call, and where it waits in the kernel."""
        lines, tasks = [], "/proc/%d/task" % self.child.pid
        for t in sorted(os.listdir(tasks)):
            words = []
            for what in "comm", "wchan", "syscall", "stack":
                with contextlib.suppress(OSError), open(f"{tasks}/{t}/{what}") as f:
                    words.append(" ".join(f.read().split())[:300])
            with contextlib.suppress(OSError), open(f"{tasks}/{t}/stat") as f:
                words.append("state " + f.read().rsplit(")", 1)[1].split()[0])
            lines.append(t + ": " + " | ".join(words))
        return "\n".join(lines)

    def text(self):
        with open(self.log) as f:
            return f.read()

    def cli(self, *words):
        r = subprocess.run((BUILD + "/bin/roceway", "--socket", self.sock, *words), capture_output=True, text=True, timeout=20)
        assert r.returncode == 0, (words, r.stdout, r.stderr, self.text()[-800:])
        return r.stdout


def run(*tests):
    """Runs each test with a folder of its own, in a namespace with lan0 and wan0. Returns the exit code."""
    if os.geteuid() != 0:
        print("skipped: needs root\n0 passed, 0 failed")
        return 0
    failed = 0
    subprocess.run(("ip", "netns", "add", NS), check=True)
    try:
        for dev in "lan0", "wan0":
            inside("ip", "link", "add", dev, "type", "veth", "peer", "name", dev + "p", check=True)
            inside("ip", "link", "set", dev, "up", check=True)
            inside("ip", "link", "set", dev + "p", "up", check=True)
        for test in tests:
            folder = tempfile.mkdtemp(prefix="rgl")
            try:
                test(folder)
            except Exception:  # any exception is a failure
                failed += 1
                print(f"FAIL {test.__name__}")
                traceback.print_exc(file=sys.stdout)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        subprocess.run(("ip", "netns", "del", NS))
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0
