# SPDX-License-Identifier: Apache-2.0
# RoCE of a tenant over distance: hosts on the kernel's own VXLAN devices through a pair of
# gateways, beside the same hosts with the kernel's encapsulation and a Linux bridge as forwarder,
# alternating over the same emulated WAN. Two references:
#   guests      VXLAN from guest to guest, a bridge between each guest and the WAN
#   forwarder   plain guests; a bridge with a kernel VXLAN device at each site encapsulates
# The third figure is the hosts without distance (kernel VXLAN, 0.2 ms). Where that is not well
# above one window per round trip, 6.5 MB/s, the hosts' processors are compared, and no gateway can
# be faster than they are. Rows begin with "vxlan path". Only ratios of one run are meaningful:
# hosts are emulated and share the machine.
import contextlib
import fcntl
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]
sys.dont_write_bytecode = True
import report  # noqa: E402
from lab.lab import Lab  # noqa: E402
from lab.net import IP  # noqa: E402
from lab.paths import OUT  # noqa: E402
from lab.proc import LabError, sh  # noqa: E402
from lab.runner import time_limit  # noqa: E402
from lab.tenant import Tenant  # noqa: E402

RED = Tenant("red", 5001)
RTT, LOSSES, GOAL = 20, (0, 1), 1.3
SIZE, TIMEOUT, LIMIT = 65536, 16, 30
WHO = {"guests": "kernel VXLAN guest to guest", "forwarder": "kernel VXLAN in the forwarder"}
CONDITIONS = ("ib_write_bw, 64 KiB, one QP, RoCE MTU 1024, QP timeout 16, 20 ms RTT, loss each way; Soft-RoCE hosts in QEMU; "
              "median of {rounds}, in turns; {cpu}")


def measure(lab, ends, loss, seconds, rtt=RTT):
    """MB/s; for a run that did not end: what had arrived by then."""
    lab.wan(rtt_ms=rtt, loss=loss)
    lab.counters_mark()
    begin = time.monotonic()
    with contextlib.suppress(LabError), time_limit(LIMIT + 30):
        p = lab.perftest("ib_write_bw", ends=ends, size=SIZE, seconds=seconds, timeout=TIMEOUT, limit=LIMIT)
        if p.ok:
            return p.bw
    lab.wan()
    lab.settle()
    d = lab.rxe_delta(ends[1])
    packets = d["rcvd_pkts"] - d["duplicate_request"] - d["out_of_seq_request"] - d["rcvd_seq_err"]
    return max(packets, 0) * 1024 / (time.monotonic() - begin) / 1e6


@contextlib.contextmanager
def forwarder(lab):
    """Bridges that encapsulate: the WAN's ends get addresses, and a vxlan device replaces them in
    the bridge."""
    sites = ((lab.net.gwa, "a", 1), (lab.net.gwb, "b", 2))
    for ns, side, n in sites:
        sh(IP, "-n", ns, "link", "set", f"wan{side}", "nomaster")
        sh(IP, "-n", ns, "addr", "add", f"192.0.2.{n}/24", "dev", f"wan{side}")
        sh(IP, "-n", ns, "link", "add", "vxf", "type", "vxlan", "id", "5001", "local", f"192.0.2.{n}", "remote", f"192.0.2.{3 - n}",
           "dstport", "4789")
        sh(IP, "-n", ns, "link", "set", "vxf", "mtu", "1500", "master", "br0", "up")
    lab.wait_path()
    try:
        yield
    finally:
        for ns, side, n in sites:
            sh(IP, "-n", ns, "link", "del", "vxf")
            sh(IP, "-n", ns, "addr", "del", f"192.0.2.{n}/24", "dev", f"wan{side}")
        lab.changed()


def turn(lab, seconds):
    """One measurement of all: {(who, loss): MB/s}"""
    got = {}

    def take(who, ends):
        for loss in LOSSES:
            got[who, loss] = measure(lab, ends, loss, seconds)
            print(f"  {who}, {loss} % loss: {got[who, loss]:.2f} MB/s", flush=True)
    lab.wan()
    lab.use("native", tenants=(RED,))
    got["near", 0] = measure(lab, lab.tenant("red"), 0, seconds, 0.2)
    print(f"  guests, 0.2 ms: {got['near', 0]:.2f} MB/s", flush=True)
    take("guests", lab.tenant("red"))
    lab.wan()
    lab.use("native")
    with forwarder(lab):
        take("forwarder", (lab.a, lab.b))
    lab.wan(rtt_ms=RTT)  # before the tunnel starts, since it would take a sudden 20 ms more for a queue
    lab.use("gateway", tenants=(RED,))
    take("roceway", lab.tenant("red"))
    return got


def rows(rounds=3, seconds=6):
    OUT.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):
        # for hosts and gateways: other programs must not disturb the comparison
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    with open(OUT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lab = Lab(None)
        try:
            lab.boot()
            turns = [turn(lab, seconds) for _ in range(rounds)]
        finally:
            lab.close()
    cond = CONDITIONS.format(rounds=rounds, cpu=report.cpu_model())
    mid = {k: statistics.median(t[k] for t in turns) for k in turns[0]}
    yield report.row("vxlan path, hosts at 0.2 ms", mid["near", 0], "MB/s", conditions=cond)
    for loss in LOSSES:
        for who, name in WHO.items():
            ours, ref = mid["roceway", loss], mid[who, loss]
            r = report.row(f"vxlan path, {loss} % loss, vs {who}", ours, "MB/s", ref or None, name, conditions=cond)
            r["goal"], r["ok"] = round(GOAL * ref, 4), ours >= GOAL * ref
            yield r
