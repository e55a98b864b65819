# SPDX-License-Identifier: Apache-2.0
"""The memory of the fast path: what a landing cost beside the one before it.

tests/bench/history/fastpath.jsonl has one line a figure: commit (the subject of the commit that was measured), machine (CPU model and page
size: figures of other machines are not compared), row, cycles a packet, to_reference and to_csum (those cycles over the cycles of a fixed
loop of the same run, and over testpmd csum's), load (of the machine, when it was measured) and bench (what measured: other benchmarks'
figures are not compared). `to_reference` is what is compared.
"""
import json
import re
import subprocess
from pathlib import Path

FILE = Path(__file__).parent / "history" / "fastpath.jsonl"
BENCH = 1  # one more when bench_fastpath or its fixed loop measures something else
WORSE = 1.05
REASON = re.compile(r"^Fastpath: *\S", re.M)


def read(path=FILE):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def latest(rows, machine):
    """{row: the last figure of this machine}"""
    return {r["row"]: r for r in rows if r["machine"] == machine and r["bench"] == BENCH}


def compare(now, last):
    """[(row, figure now, figure then or None, change as a factor or None)]"""
    return [(r["row"], r, last.get(r["row"]), r["to_reference"] / last[r["row"]]["to_reference"] if r["row"] in last else None) for r in now]


def best(one, other):
    """Of two runs each row's better figure: what other programs do only adds."""
    return [min(a, b, key=lambda r: r["to_reference"]) for a, b in zip(one, other)]


def verdict(changes, reasons):
    """What to say at the end, and whether that is a failure."""
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
    """`Fastpath:` lines of the commits since the history was written last."""
    since = _git("log", "-1", "--format=%H", "--", str(FILE))
    bodies = _git("log", "--format=%b", f"{since}..HEAD" if since else "-1")
    return [line for line in bodies.splitlines() if REASON.match(line)]


def record(rows, path=FILE):
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
