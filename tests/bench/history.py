# SPDX-License-Identifier: Apache-2.0
"""The history of the fast path: its cost compared with the last recorded one.

tests/bench/history/fastpath.jsonl has one line per figure: commit (the subject of the measured
commit), machine (the CPU's name, family and model, and the page size; only figures of one machine
are compared), row, cycles per packet, to_reference and to_csum (these cycles over those of a fixed
loop of the same run, and over testpmd csum's), load (of the machine at that time) and bench (version
of the benchmark; only figures of one version are compared). The comparison uses `to_reference`.
"""
import json
import re
import subprocess
from pathlib import Path

FILE = Path(__file__).parent / "history" / "fastpath.jsonl"
BENCH = 1  # incremented when bench_fastpath or its fixed loop measures something else
WORSE = 1.05
REASON = re.compile(r"^Fastpath: *\S", re.M)


def read(path=FILE):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def latest(rows, machine):
    """{row: the last figure of this machine}"""
    return {r["row"]: r for r in rows if r["machine"] == machine and r["bench"] == BENCH}


def compare(now, last):
    """[(row, present figure, earlier figure or None, change as a factor or None)]"""
    return [(r["row"], r, last.get(r["row"]), r["to_reference"] / last[r["row"]]["to_reference"] if r["row"] in last else None) for r in now]


def best(one, other):
    """The better figure of two runs for each row, since other programs can only add."""
    return [min(a, b, key=lambda r: r["to_reference"]) for a, b in zip(one, other)]


def verdict(changes, reasons):
    """The text for the end of the run, and whether it is a failure."""
    worse = [f"{name} {100 * (x - 1):+.1f} %" for name, _, _, x in changes if x and x > WORSE]
    if not any(x for *_, x in changes):
        return "fastpath: nothing to compare with on this kind of machine: --record begins its history", False
    if not worse:
        return f"fastpath: no row is more than {100 * (WORSE - 1):.0f} % slower than at the last landing", False
    said = "; ".join(worse)
    if reasons:
        return f"fastpath: slower: {said}: {'; '.join(reasons)}", False
    return f"fastpath: slower than at the last landing: {said}. Mend it, or say why: a line `Fastpath: REASON` in the commit's body", True


def table(changes):
    yield f"{'since the last landing':32} {'cycles':>8} {'then':>8} {'of fixed loop':>14} {'then':>8} {'change':>8}"
    for name, now, then, x in changes:
        yield (f"{name:32} {now['cycles']:8.0f} {then['cycles'] if then else 0:8.0f} {now['to_reference']:14.4f} "
               f"{then['to_reference'] if then else 0:8.4f} {f'{100 * (x - 1):+.1f} %' if x else 'new':>8}")


# --- git ------------------------------------------------------------------------------------------------------


def _git(*words):
    r = subprocess.run(["git", "-C", str(FILE.parent.parent), *words], capture_output=True, text=True)
    return r.stdout.strip() if r.returncode == 0 else ""


def subject():
    return _git("log", "-1", "--format=%s")


def reasons():
    """The `Fastpath:` lines of the commits since the last entry of the history."""
    since = _git("log", "-1", "--format=%H", "--", str(FILE))
    bodies = _git("log", "--format=%b", f"{since}..HEAD" if since else "-1")
    return [line for line in bodies.splitlines() if REASON.match(line)]


def record(rows, path=FILE):
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
