#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# carrier_grid.py [BUILD] [OUT.csv]: goodput of the carriers over RTT x loss x burst, for the
# planner's model (docs/controller-planning.md).
#
# TCP is the kernel's own (cubic and bbr, four connections) between two network namespaces with
# wanem between them, in real time. Native is the gateway's wan/ and cc/ in the simulator rwywan
# (congestion control auto), in virtual time, also where a policer limits UDP to a share of the
# link. QUIC is the gateway's, too, in virtual time over the same lines (bench_quic.c, bbr2); it is
# UDP, so a policer meets it likewise. Needs root. SECONDS=5 and WARM=4 for a TCP cell (at least 100
# and 75 round trips), RATE=200 Mbit/s, ONLY=native|quic|tcp, RTTS=5,20,50,100,200 ms.
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
OUT = sys.argv[2] if len(sys.argv) > 2 else f"{BUILD}/bench/carrier_grid.csv"
RATE = int(os.environ.get("RATE", 200)) * 10**6
SECONDS = float(os.environ.get("SECONDS", 5))
WARM = float(os.environ.get("WARM", 4))
STREAMS = 4
RTTS_MS = [int(x) for x in os.environ.get("RTTS", "5,20,50,100,200").split(",")]
LOSSES = [(0, 1), (1e-4, 1), (1e-3, 1), (1e-2, 1), (3e-2, 1), (1e-1, 1), (1e-3, 8), (1e-2, 8), (3e-2, 8)]
SHARES = [1.0, 0.5, 0.1]  # shares of the link that UDP may use
ONLY = os.environ.get("ONLY")
CA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "ca", "roceway-ca")
TAG = f"rwycg{os.getpid()}"
NS = [f"{TAG}a", f"{TAG}w", f"{TAG}b"]

# One process for both ends. It counts what arrives at the sink from the end of the warm-up on.
SINK = r"""
import socket, sys, threading, time
n, warm, secs = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
srv = socket.create_server(("10.9.0.2", 5001), backlog=16)
print("listening", flush=True)
got = [0] * n
def drain(i, c):
    buf = bytearray(1 << 20)
    while True:
        k = c.recv_into(buf)
        if not k:
            return
        got[i] += k
conns = [srv.accept()[0] for _ in range(n)]
for i, c in enumerate(conns):
    threading.Thread(target=drain, args=(i, c), daemon=True).start()
time.sleep(warm)
a, t = sum(got), time.monotonic()
time.sleep(secs)
print(int((sum(got) - a) * 8 / (time.monotonic() - t)), flush=True)
import os; os._exit(0)
"""
SOURCE = r"""
import socket, sys, threading
cc, n = sys.argv[1], int(sys.argv[2])
def run():
    c = socket.socket()
    c.setsockopt(socket.IPPROTO_TCP, 13, cc.encode())
    c.connect(("10.9.0.2", 5001))
    data = bytes(1 << 18)
    try:
        while True:
            c.sendall(data)
    except OSError:
        pass
ts = [threading.Thread(target=run) for _ in range(n)]
[t.start() for t in ts]
[t.join() for t in ts]
"""


def sh(*a, **k):
    return subprocess.run(a, check=True, capture_output=True, text=True, **k).stdout


def net(ns, *a):
    return sh("ip", "netns", "exec", ns, *a)


def build_net():
    for ns in NS:
        sh("ip", "netns", "add", ns)
    for ns, here, there, addr in ((NS[0], "e0", "wa", "10.9.0.1/24"), (NS[2], "e0", "wb", "10.9.0.2/24")):
        sh("ip", "link", "add", here, "netns", ns, "type", "veth", "peer", "name", there, "netns", NS[1])
        net(ns, "ip", "addr", "add", addr, "dev", here)
        net(ns, "ip", "link", "set", here, "up")
        # wanem does not accept super-frames
        net(ns, "ip", "link", "set", here, "gso_max_segs", "1")
        net(NS[1], "sysctl", "-qw", f"net.ipv6.conf.{there}.disable_ipv6=1")
        net(NS[1], "ip", "link", "set", there, "up")
        # As the carrier does: room for one bandwidth-delay product per connection.
        net(ns, "sysctl", "-qw", "net.ipv4.tcp_wmem=4096 1048576 16777216", "net.ipv4.tcp_rmem=4096 1048576 33554432",
            "net.ipv4.tcp_no_metrics_save=1")


def drop_net():
    for ns in NS:
        subprocess.run(["ip", "netns", "del", ns], capture_output=True)


def tcp_cell(cc, rtt_ms, loss, burst):
    bdp = int(RATE / 8 * rtt_ms / 1000)
    w = subprocess.Popen(
        ["ip", "netns", "exec", NS[1], f"{BUILD}/bin/wanem", "--a", "wa", "--b", "wb", "--delay", f"{rtt_ms / 2}ms", "--rate", f"{RATE // 1000}kbit",
         "--queue", str(max(bdp, 65536)), "--loss", f"{loss * 100:g}%", "--burst", str(burst)], stderr=subprocess.PIPE, text=True)
    try:
        if "ready" not in w.stderr.readline():
            raise SystemExit("wanem: " + w.stderr.read())
        sink = subprocess.Popen(["ip", "netns", "exec", NS[2], sys.executable, "-c", SINK, str(STREAMS),
                                 str(max(WARM, rtt_ms / 10)), str(max(SECONDS, rtt_ms * 0.075))],
                                stdout=subprocess.PIPE, text=True)
        sink.stdout.readline()
        src = subprocess.Popen(["ip", "netns", "exec", NS[0], sys.executable, "-c", SOURCE, cc, str(STREAMS)])
        bps = int(sink.stdout.readline())
        src.send_signal(signal.SIGKILL)
        src.wait()
        sink.wait()
        return bps
    finally:
        w.terminate()
        w.wait()


def median(run, *cell):
    """Of three seeds, since some runs have a slow stretch."""
    return sorted(run(*cell, seed) for seed in (1, 2, 3))[1]


def udp_path(rtt_ms, share):
    """What is left of the link: bit/s, bytes of queue; and how many round trips are measured, after as many that are not."""
    rate = int(RATE * share)
    # A policer has hardly any queue; the link has one of a bandwidth-delay product.
    bdp = rate / 8 * rtt_ms / 1000
    return rate, max(65536, int(bdp if share == 1 else bdp / 10)), max(60, int(4000 / rtt_ms))


def quic_run(folder, rtt_ms, loss, burst, share, seed):
    rate, queue, n = udp_path(rtt_ms, share)
    words = (folder, rate, rtt_ms * 1000, loss * 1e6, burst, queue, n, n, seed)
    o = subprocess.run([f"{BUILD}/tests/bench/bench_quic", *map(str, words)], capture_output=True, text=True)
    if o.returncode:
        raise SystemExit(o.stderr)
    return int(json.loads(o.stdout)["goodput_bps"])


def native_run(rtt_ms, loss, burst, share, seed):
    rate, queue, n = udp_path(rtt_ms, share)
    o = subprocess.run(
        [f"{BUILD}/tests/sim/rwywan", "--json", f"seed={seed}", "overhead=42", f"rate={rate}", f"rtt={rtt_ms}ms", f"loss={loss * 100:g}%", f"burst={burst}", f"queue={queue}",
         "cc=auto", "ccrate=0", "arrival=back", "mtu=1472", "size=1MiB", f"rtts={2 * n}", f"skip={n}"],
        capture_output=True, text=True)
    if not o.stdout:
        raise SystemExit(o.stderr)
    return int(json.loads(o.stdout)["goodput_bps"])


def main():
    os.makedirs(os.path.dirname(OUT), exist_ok=True)
    with open(OUT, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow("carrier,algorithm,link_bps,share_ppm,rtt_us,loss_ppm,burst,goodput_bps".split(","))

        def put(carrier, alg, share, rtt, loss, burst, bps):
            out.writerow([carrier, alg, RATE, int(share * 10**6), rtt * 1000, int(loss * 10**6 + 0.5), burst, bps])
            f.flush()
            print(carrier, alg, share, rtt, loss, burst, f"{bps / 1e6:.1f}", flush=True)

        def udp(carrier, alg, run, *first):
            for rtt in RTTS_MS:
                for loss, burst in LOSSES:
                    for share in SHARES:
                        put(carrier, alg, share, rtt, loss, burst, median(run, *first, rtt, loss, burst, share))

        if ONLY in (None, "native"):
            udp("native", "auto", native_run)
        if ONLY in (None, "quic"):
            with tempfile.TemporaryDirectory() as folder:
                for words in ("init",), ("issue", "site-a", "gateway"), ("issue", "site-b", "gateway"):
                    sh(CA, folder, *words)
                udp("quic", "bbr2", quic_run, folder)
        if ONLY not in (None, "tcp"):
            return
        build_net()
        try:
            for rtt in RTTS_MS:
                for loss, burst in LOSSES:
                    for cc in ("cubic", "bbr"):
                        put("tcp", cc, 1.0, rtt, loss, burst, tcp_cell(cc, rtt, loss, burst))
        finally:
            drop_net()


main()
