# SPDX-License-Identifier: Apache-2.0
"""What the workloads share: runs of rwydc, and rows that stand beside the path's limit and native."""
import json
import subprocess

TUNNEL = 0.967  # of a tunnel's wire: payload of 4 KiB packets (Ethernet, IP and UDP, its header, RoCE)
PLAIN = 0.980  # of a host's link
# RoCE as it is, with the best that its user can set: NIC timers that follow their configuration,
# and DCQCN or none.
NATIVE = {"native": "mode=native rto=1s", "native, no DCQCN": "mode=native rto=1s dcqcn=off"}
# A reserved path, whose rate the gateways know, and one whose rate they find.
GATEWAYS = {"reserved": "", "auto": "cc=auto"}


def rwydc(build, words, train=False):
    """The result of a run. A violation is an error: its figures would mean nothing."""
    argv = ["nice", f"{build}/tests/sim/rwydc", *(["train"] if train else []), "--json", *words.split()]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=3600)
    if r.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {r.stderr}")
    return json.loads(r.stdout)


def arms(name, unit, limit, run, row, goal=None, at_most=True, more="", auto=True):
    """Rows of gateways and native: run(words) is the figure, `goal` that of the gateways. Where
    native reaches it, too, the goal does not tell, and the row says so. auto=False: the goal is for
    a reserved path; what is over in some 25 round trips is over before `auto` knows the rate."""
    native = {n: run(w) for n, w in NATIVE.items()}
    best = (min if at_most else max)(v for v in native.values() if v is not None)
    reached = goal is not None and (best <= goal if at_most else best >= goal)
    text = more + ("; native reaches the goal, too: it does not tell" if reached else "")
    for n, w in GATEWAYS.items():
        v = run(w)
        yield row(f"{name}, {n}", v, unit, reference=limit, reference_name="limit", goal=goal if auto or n == "reserved" else None, at_most=at_most, conditions=text.lstrip("; "))
    for n, v in native.items():
        yield row(f"{name}, {n}", v, unit, reference=limit, reference_name="limit", conditions=more)


def step(build, words):
    """Seconds of a training step (rwydc train); infinite if it did not end."""
    out = rwydc(build, words, train=True)
    return out["step_s"] if out["done"] else float("inf")


def message(bytes_, wan, rtt):
    """Seconds of a message between two sites, alone on a WAN of this rate."""
    return bytes_ * 8 / (wan * TUNNEL) + rtt / 2


def shares(build, name, words, site, limit, row, text, goal=0.99):
    """Rows of a training step: the share of one site's speed (`site`, s) that is left. The goal
    counts where the bytes allow it."""
    return arms(name, "share", limit, lambda w: site / step(build, f"{words} {w}"), row, goal=goal if limit >= goal else None, at_most=False,
                more=f"{text}, step of one site {site:.2f} s; bytes allow {100 * limit:.2f} %")
