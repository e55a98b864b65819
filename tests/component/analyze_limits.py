#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""analyze_limits.py BUILD: `roceway analyze` names the limit of each prepared capture (tests/lib/cap_scenes.c, cap_held.c), native and through gateways, and still does so when it is anonymised."""
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

BUILD = Path(sys.argv[1])
ROCEWAY = BUILD / "bin/roceway"
Capture = collections.namedtuple("Capture", "name path qpn expect held about")


def prepare(folder):
    folder.mkdir()
    r = subprocess.run([BUILD / "tests/captures", folder], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stderr
    return [Capture(*line.split("\t")) for line in r.stdout.splitlines()]


def words(path):
    """{QPN: the words of its findings} of flows with requests."""
    r = subprocess.run([ROCEWAY, "analyze", path, "--json"], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, (path, r.stderr)
    flows = [f for f in json.loads(r.stdout)["flows"] if f["counters"]["packets"]]
    return {f["qpn"]: [w["word"] for w in f["findings"]] for f in flows}


def compare(found):
    """found: [(capture, words of its queue pair)]"""
    wrong = [f"{c.name} ({c.about}): {c.expect} expected, found {w}" for c, w in found if w[:1] != [c.expect]]
    assert not wrong, "\n" + "\n".join(wrong)


def test_limits():
    captures = prepare(ROOM / "once")
    assert len(captures) >= 24 and sum(c.held == "held" for c in captures) >= 8, captures
    assert len({c.expect for c in captures}) >= 14, sorted({c.expect for c in captures})
    compare([(c, words(c.path).get(int(c.qpn), [])) for c in captures])


def test_same_again():
    one, two = prepare(ROOM / "one"), prepare(ROOM / "two")
    for a, b in zip(one, two, strict=True):
        assert Path(a.path).read_bytes() == Path(b.path).read_bytes(), a.name


def test_anonymised():
    found = []
    for c in prepare(ROOM / "named"):
        out = ROOM / "nameless.pcap"
        r = subprocess.run([ROCEWAY, "anonymise", c.path, out], capture_output=True, text=True, timeout=300)
        assert r.returncode == 0, (c.name, r.stderr)
        if out.stat().st_size > 24:  # VXLAN is left out
            before, after = words(c.path), words(out)
            assert sorted(before.values()) == sorted(after.values()), (c.name, before, after)
            assert not set(before) & set(after), (c.name, before, after)
            found.append(c)
    assert len(found) >= 20, found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as room:
        ROOM = Path(room)
        sys.exit(cases.run(globals()))
