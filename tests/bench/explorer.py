# SPDX-License-Identifier: Apache-2.0
"""Goal X: the fault explorer (docs/simulator.md) over seeds of new worlds, none of which may fail.
run-wan calls run(). SEEDS=N, FULL=1."""
import os
import re
import subprocess
import time

import report

# These are not the seeds of `make check`, which begin at 1.
FROM = 10_000_000
SEEDS = int(os.environ.get("SEEDS", 1_000_000 if os.environ.get("FULL") == "1" else 6000))


def run(build, only):
    """Rows, and the number of runs without a figure or with violations."""
    if only and not any(o.startswith("X") for o in only):
        return [], 0
    jobs = os.cpu_count() or 1
    begin = time.monotonic()
    r = subprocess.run([f"{build}/tests/sim/rwysim", "--seeds", str(SEEDS), "--from", str(FROM), "--jobs", str(jobs)], capture_output=True, text=True)
    seconds = time.monotonic() - begin
    m = re.search(r"(\d+) seeds, ([\d.]+) seeds a second, (\d+) violations", r.stdout)
    if not m:
        print(f"run-wan: rwysim: exit {r.returncode}\n{r.stderr[-2000:]}", flush=True)
        return [], 1
    wrong = int(m[3])
    if wrong:
        print(r.stdout, flush=True)
    cond = f"{m[1]} seeds from {FROM}, {jobs} jobs, {seconds:.0f} s: links, losses, ack modes, workloads, tenants, crashes, outages, QPNs used again, drawn from each"
    return [report.row("X violations", wrong, "seeds", None, None, 0, True, cond), report.row("X speed", float(m[2]), "seeds/s", None, None, None, False, cond)], int(wrong > 0)
