# SPDX-License-Identifier: Apache-2.0
# `roceway capture` on both gateways while real hosts send over a lossy WAN (docs/capture.md).
import signal
import subprocess
import sys

from lab import BAD_WAN, TIMEOUT, ci, each, needs
from lab.paths import ROOT
from lab.proc import wait_for

sys.path.append(str(ROOT / "tests/lib"))
from captured import Capture, check_icrc, check_stages, tshark  # noqa: E402


BAD = "roceway.sealed || roceway.frame.bad || _ws.malformed || _ws.lua.error"  # what the dissector does not understand

HEADERS_MAX = 10  # of 75 damaged datagrams two or so are damaged in the 28 bytes of IP and UDP


class Both:
    """Captures at both gateways in a `with` block; afterwards `files` and `captures`, of A and B."""

    def __init__(self, lab):
        self.gateways, self.net = lab.gateways, lab.net
        self.files = [lab.net.dir / f"capture-{g.side}.pcapng" for g in lab.gateways]

    def __enter__(self):
        for f in self.files:
            f.unlink(missing_ok=True)
        self.procs = [subprocess.Popen([self.net.bin / "roceway", "--socket", g.sock, "capture", "-w", f], stdin=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True) for g, f in zip(self.gateways, self.files)]
        wait_for("the captures begin", lambda: all(f.exists() for f in self.files), 10)
        return self

    def __exit__(self, kind, *_):
        for p in self.procs:
            p.send_signal(signal.SIGINT)
        said = [p.communicate(timeout=30)[1] for p in self.procs]
        if not kind:
            assert not any(p.returncode for p in self.procs), said
            self.captures = [Capture(f) for f in self.files]


@ci(only="write")
@needs(gateway=True)
@each(op=["write", "read", "send"])
def test_capture(lab, op):
    """Each request that a gateway took is found in all its stages.

    Those that were lost on the WAN are there as often as they were sent. Nothing is unaccounted; tshark and the ICRC checker read
    every packet."""
    lab.wan(**BAD_WAN)
    with Both(lab) as both:
        p = lab.perftest(f"ib_{op}_bw", size=16384, seconds=4, timeout=TIMEOUT)
    assert p.ok, p.text
    for path, c in zip(both.files, both.captures):
        assert c.check_accounts() == 0, c.statistics
        check_icrc(path)
        # but damaged datagrams, which the gateway drops; or leaves to the kernel, if the damage is in their IP or UDP header
        bad = tshark(path, "-Y", f"({BAD}) && !(frame.comment contains \"decision=drop\")", "-T", "fields", "-e", "frame.number", "-e", "frame.comment")
        kernel = [line for line in bad.splitlines() if "decision=kernel" in line]
        assert len(kernel) == len(bad.splitlines()), bad[:1000]
        assert len(kernel) <= HEADERS_MAX, bad[:1000]
    a, b = both.captures
    whole, lost, rebuilt = check_stages(a, b, 20 if op == "read" else 50)
    lab.log(f"{whole} requests in all stages, {lost} of them sent again, {rebuilt} rebuilt by FEC")
