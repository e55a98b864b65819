# SPDX-License-Identifier: Apache-2.0
"""The output of every benchmark: rows in build/bench/NAME.json and a table of at most 100 columns.

A row has name, value and unit; with a reference also reference, reference_name and ratio (value /
reference); with a goal also goal and ok; and conditions, a sentence. A missed goal is reported, but
it is no failure.
"""
import json
import os
import re
import sys
from pathlib import Path

WIDTH = 100


def about(script):
    """The comment at the head of a script: what it is, and how it is called."""
    lines = Path(script).read_text().splitlines()[2:]
    return "\n".join(line[2:] for line in lines[:next(i for i, line in enumerate(lines) if not line.startswith("#"))])


def arguments(script, options=(), names=False):
    """(build, set of the options given, names) of a benchmark's command line: a folder that has been
    built, then options, and names if the benchmark takes any. With --help, or on a mistake, it says
    what the script's head says and ends."""
    given = sys.argv[1:]
    if "-h" in given or "--help" in given:
        print(about(script))
        sys.exit(0)
    chosen = {a for a in given if a in options}
    build, *words = [a for a in given if a not in options] or [""]
    unknown = next((a for a in (build, *words) if a.startswith("-")), None) or next(iter([] if names else words), None)
    wrong = f"{unknown}: no such option" if unknown else ""
    if not wrong and (not build or not Path(build, "tests", "sim").is_dir()):
        wrong = f"{build or 'BUILD'}: nothing is built there; run make first"
    if wrong:
        print(f"{Path(script).name}: {wrong}\n\n{about(script)}", file=sys.stderr)
        sys.exit(2)
    return build, chosen, words


def cpu_model():
    """The name, and the numbers that tell generations apart: virtual machines name only the brand."""
    with open("/proc/cpuinfo") as f:
        cpu = dict(re.findall(r"^(\S.*?)\s*: *(.*)$", f.read().split("\n\n")[0], re.M))
    numbers = [f"{k} {cpu[word]}" for k, word in (("family", "cpu family"), ("model", "model")) if word in cpu]
    return cpu.get("model name", os.uname().machine) + (f" ({' '.join(numbers)})" if numbers else "")


def row(name, value, unit, reference=None, reference_name=None, goal=None, at_most=False, conditions=""):
    """`at_most`: the goal is an upper limit."""
    ratio = value / reference if reference else None
    ok = None if goal is None else (value <= goal if at_most else value >= goal)
    return {"name": name, "value": round(value, 4), "unit": unit,
            "reference": None if reference is None else round(reference, 4), "reference_name": reference_name,
            "ratio": None if ratio is None else round(ratio, 4), "goal": goal, "ok": ok, "conditions": conditions}


def _num(v):
    if v is None:
        return ""
    if isinstance(v, bool):
        return "yes" if v else "NO"
    return f"{v:.0f}" if abs(v) >= 1000 else f"{v:.1f}" if abs(v) >= 100 else f"{v:.2f}"


def table(rows, out=sys.stdout):
    head = ("", "value", "unit", "reference", "", "ratio", "goal", "ok")
    lines = [head] + [(r["name"], _num(r["value"]), r["unit"], _num(r["reference"]), r["reference_name"] or "", _num(r["ratio"]),
                       _num(r["goal"]), _num(r["ok"])) for r in rows]
    left = (0, 2, 4)
    width = [max(len(l[i]) for l in lines) for i in range(len(head))]
    over = sum(width) + 2 * (len(width) - 1) - WIDTH
    if over > 0:  # names are shortened, figures are not
        width[0] -= over
    for l in lines:
        cells = [c[:w].ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(l, width))]
        print("  ".join(cells).rstrip(), file=out)


def write(build, name, rows):
    path = Path(build) / "bench" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
    return path
