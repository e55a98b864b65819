# SPDX-License-Identifier: Apache-2.0
"""Runs of the benchmarks on memory-only ports: the CPU, the EAL's arguments, bench_fastpath."""
import json
import os
import re
import subprocess
import sys
import time

HUGE_NEEDED = 400  # pages of 2 MiB
TRIES = 3  # if other programs use the CPU all the time
# As conf/systemd/roceway-gateway.service: programs run here inherit it.
os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")


def idle_cpu():
    """The CPU, of those that this process may use, that did least in the last moment."""
    def busy():
        with open("/proc/stat") as f:
            rows = [line.split() for line in f if re.match(r"cpu\d", line)]
        return {int(r[0][3:]): sum(map(int, r[1:4] + r[6:9])) for r in rows}
    a = busy()
    time.sleep(0.3)
    b = busy()
    return min(os.sched_getaffinity(0), key=lambda c: (b.get(c, 0) - a.get(c, 0), -c))


def memory_args():
    with open("/proc/meminfo") as f:
        free = int(re.search(r"HugePages_Free:\s+(\d+)", f.read()).group(1))
    if free >= HUGE_NEEDED:
        return ["--in-memory"], "2 MiB pages"
    return ["--no-huge", "--no-shconf", "-m", "700"], "4 KiB pages"


def eal(cpu, memory, prefix, others=()):
    """others: CPUs of further workers."""
    return ["--lcores", ",".join(f"{i}@{c}" for i, c in enumerate((cpu, *others))), *memory, "--no-pci", f"--file-prefix={prefix}{os.getpid()}", "--log-level=error"]


def fastpath(build, cpu, memory, payload, qps, ms, overlay="plain", more=(), others=()):
    cmd = [f"{build}/tests/bench/bench_fastpath", *eal(cpu, memory, "rwyfp", others), "--",
           "--payload", str(payload), "--qps", str(qps), "--ms", str(ms), "--overlay", overlay, *more]
    for _ in range(TRIES):
        r = subprocess.run(cmd, stdout=subprocess.PIPE, text=True, timeout=60)
        if r.returncode:
            sys.exit(f"bench_fastpath: {' '.join(cmd)}: exit {r.returncode}\n{r.stdout}")
        f = json.loads(r.stdout)
        if f["slices"]:
            return f
    sys.exit(f"bench_fastpath: {' '.join(cmd)}: the CPU was taken away in each of {f['disturbed']} batches; nothing can be measured now")
