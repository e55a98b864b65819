# SPDX-License-Identifier: Apache-2.0
# perftest command lines, and the results that perftest prints. It runs nothing.
import re
from dataclasses import dataclass, field


@dataclass
class Perf:
    """One perftest run. bw: MB/s (10^6), averages over the run; lat_us: typical latency; rows: every printed row."""
    ok: bool
    bw: float = 0.0
    lat_us: float = 0.0
    rows: list = field(default_factory=list)
    seconds: float = 0.0
    text: str = ""


def options(size=None, iters=None, seconds=None, qps=1, mtu=None, gid=None, cm=False, bidir=False, timeout=18, all_sizes=False,
            dev="rxe0", extra=""):
    """The options for both sides of a perftest program."""
    o = ["-F", "-d", dev, "-u", str(timeout)]
    if all_sizes:
        o.append("-a")
    if size is not None:
        o += ["-s", str(size)]
    if seconds is not None:
        o += ["-D", str(seconds), "-f", "1" if seconds > 3 else "0"]
    elif iters is not None:
        o += ["-n", str(iters)]
    if qps != 1:
        o += ["-q", str(qps)]
    if mtu is not None:
        o += ["-m", str(mtu)]
    if gid is not None:
        o += ["-x", str(gid)]
    if cm:
        o.append("-R")
    if bidir:
        o.append("-b")
    return " ".join(o + ([extra] if extra else []))


_ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+([\d.]+)(.*)$")


def parse(text, is_bw):
    """Rows (size, iterations, figure): MB/s average for *_bw, typical microseconds for *_lat."""
    rows = []
    for line in text.splitlines():
        m = _ROW.match(line)
        if not m:
            continue
        cols = [float(c) for c in m.group(4).split() if re.fullmatch(r"[\d.]+", c)]
        # bw: peak, average[MB/sec, 2^20], rate;  lat: min, max, typical, average, ...; -D prints only the average
        if is_bw and cols:
            rows.append((int(m.group(1)), int(m.group(2)), cols[0] * 1.048576))
        elif not is_bw:
            rows.append((int(m.group(1)), int(m.group(2)), cols[1] if len(cols) > 1 else float(m.group(3))))
    return rows
