#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real gateways with two workers each, and one address pair, which belongs to one worker: it has nearly
the whole rate of the tunnel, because the other worker sends nothing. In the network of gw_drain.py. Needs
root. Argument: the build folder."""
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import gw_drain as drain  # noqa: E402
import gw_smoke as lab  # noqa: E402

RATE = 2.5e6  # bytes per second: 20 Mbit/s
PART = 0.75   # of it; an equal part is a half
WINDOW = 1.0  # s


def wan_bytes(gateway, iface="wan0"):
    text = subprocess.run(("ip", "-j", "-s", "-n", gateway, "link", "show", iface), capture_output=True, text=True).stdout
    return json.loads(text)[0]["stats64"]["tx"]["bytes"]


def fix_rate(gateway):
    with open(gateway.config) as f:
        text = f.read()
    with open(gateway.config, "w") as f:
        f.write(text.replace("congestion_control: auto", "congestion_control: fixed").replace("rate: 10Gbps", "rate: 20Mbps"))


def rate_parts(folder):
    """The part of each worker at gateway A."""
    r = subprocess.run(("curl", "-s", "--unix-socket", os.path.join(folder, "a.sock"), "http://api/v1/tunnels?workers=1"),
                       capture_output=True, text=True, check=True)
    return [half["rate_part"] for half in json.loads(r.stdout)["tunnels"][0]["halves"]]


def test_one_pair_has_the_rate(folder):
    a, b = (lab.Gateway(folder, side, workers=2) for side in "ab")
    wan = drain.Wan(folder)
    fix_rate(a)
    fix_rate(b)
    load, most, end = None, 0, time.monotonic() + lab.READY
    try:
        b.start()
        a.start().wait("tunnel=far state=up")
        b.wait("tunnel=far state=up")
        load = drain.Load()
        while most < PART * RATE:
            began, before = time.monotonic(), wan_bytes(lab.GA)  # in this order the rate is too low at most
            while time.monotonic() - began < WINDOW:
                load.read()
            rate = (wan_bytes(lab.GA) - before) / (time.monotonic() - began)
            # The kernel counts headers, and the rate is kept to within some percent.
            assert rate < 1.25 * RATE, rate
            most = max(most, rate)
            assert time.monotonic() < end, "%.2f of the rate" % (most / RATE)
        parts = rate_parts(folder)
        assert len(parts) == 2 and max(parts) > PART, parts
        load.finish()
        for g in a, b:
            code, _ = g.stop()
            assert code == 0 and " error " not in g.text(), g.text()
    finally:
        if load:
            load.kill()
        a.kill()
        b.kill()
        wan.stop()


if __name__ == "__main__":
    sys.exit(drain.main(globals()))
