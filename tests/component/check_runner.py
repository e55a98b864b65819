#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `make check` need not run again (tests/passed.py): a test whose program and files are as they were when it passed, and no
other; a test that failed; and everything with FULL=1. The second run of tests/check, and its lanes."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import cases  # noqa: E402
import passed  # noqa: E402


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def runs(build, program, **env):
    """Number of runs of the program by run-unit so far, and the last line of its output."""
    out = subprocess.run([ROOT / "tests/run-unit", "--no-scripts", build, program], capture_output=True, text=True, cwd=ROOT,
                         env={**os.environ, "FULL": "", "ROCEWAY_LONG": "", **env}).stdout
    log = build / "log"
    return len(log.read_text()) if log.exists() else 0, out.splitlines()[-1]


def test_only_what_changed():
    with tempfile.TemporaryDirectory() as d:
        build = Path(d)
        body = f"printf x >> {build}/log; echo '3 passed, 0 failed'\n"
        p = script(build / "tests/unit/test_made_up", body)
        assert runs(build, p) == (1, "3 passed, 0 failed")
        assert runs(build, p) == (1, "3 passed, 0 failed")  # counted, not run
        assert runs(build, p, FULL="1") == (2, "3 passed, 0 failed")
        assert runs(build, p, ROCEWAY_LONG="1") == (3, "3 passed, 0 failed")  # long cases are other tests
        script(p, body + "# changed\n")
        assert runs(build, p)[0] == 4
        script(p, body + "exit 1\n")
        assert [runs(build, p)[0] for _ in range(2)] == [5, 6]  # failed tests run again
        assert runs(build, p)[1] == "3 passed, 1 failed"


def test_whole_programs_run_again():
    """A test of tests/component that fails runs once more, and is not taken for one that passed before; other tests do not."""
    with tempfile.TemporaryDirectory() as d:
        build = Path(d)
        first_fails = f"printf x >> {build}/log; [ $(wc -c < {build}/log) -gt %u ] || {{ echo why; exit 1; }}\necho '3 passed, 0 failed'\n"
        p = script(build / "tests/component/test_made_up", first_fails % 1)
        assert runs(build, p) == (2, "3 passed, 0 failed")
        assert runs(build, p) == (3, "3 passed, 0 failed")
        script(p, first_fails % 5)
        assert runs(build, p) == (5, "0 passed, 1 failed")
        os.remove(build / "log")
        assert runs(build, script(build / "tests/unit/test_made_up", first_fails % 1)) == (1, "0 passed, 1 failed")


def test_stage_out_of_time():
    """SIGTERM, as of a stage's time limit: what is not done is named, with what it said."""
    with tempfile.TemporaryDirectory() as d:
        p = script(Path(d) / "tests/component/test_made_up", f"echo so far; touch {d}/began; exec sleep 60\n")
        with subprocess.Popen([ROOT / "tests/run-unit", "--no-scripts", d, p], stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True) as run:
            until = time.monotonic() + 60
            while not os.path.exists(f"{d}/began"):
                assert time.monotonic() < until
                time.sleep(0.02)
            os.killpg(run.pid, signal.SIGTERM)
            out = run.communicate()[0]
    assert run.returncode == 1 and "FAIL test_made_up: not done after" in out and "    so far" in out, out


def inputs(test, build="build"):
    return {os.path.relpath(f, ROOT) for f in passed.Passed(build).inputs(test)}


def test_inputs():
    """Files that tests open are among their inputs; other files are not."""
    assert {"conf/samples/gateway.yaml", "docs/configuration.md"} <= inputs("build/tests/unit/test_conf")
    assert {"tests/unit/rxe/read.txt", "tests/unit/rxe/write.txt"} <= inputs("build/tests/unit/test_rxe")
    assert "tests/lib/provider/network.py" in inputs("build/tests/unit/test_provider")
    api = inputs("tests/component/controller_api.py")
    assert {"controller/openapi.yaml", "tests/component/ctlr/harness.py", "tests/component/ctlr/networks.py", "conf/samples/controller.yaml",
            "tools/ca/roceway-ca", "tests/component/controller_api.py"} <= api
    assert not [f for f in api if f.startswith("engine/") or f.endswith("roceway-gateway")], api
    assert {"docs/cli.md", "docs/what-crosses.md", "engine/counters.h", "wan/stats.h", "gateway/counters.h"} <= inputs("tests/component/cli_api.py")
    assert {"tests/e2e/lab/guest.py", "tests/e2e/lab/runner.py"} <= inputs("tests/component/e2e_runner.py")
    assert "controller/page/style.css" in inputs("tests/component/controller_page.py")


def test_every_file_that_a_program_opens():
    """Files of the tree that a C test opens by path."""
    for source in sorted((ROOT / "tests/unit").glob("test_*.c")):
        for path in re.findall(r'"((?:conf|docs|tests)/[\w/.-]+\.(?![ch]")\w+)"', source.read_text()):
            if (ROOT / path).exists():
                assert path in inputs(f"build/tests/unit/{source.stem}"), (source, path)


def check():
    loader = importlib.machinery.SourceFileLoader("check", str(ROOT / "tests/check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
    loader.exec_module(module)
    return module


def test_cases_of_quick_scripts():
    """Each part of a name that make check chooses cases by is in the name of one."""
    loader = importlib.machinery.SourceFileLoader("run_unit", str(ROOT / "tests/run-unit"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_unit", loader))
    loader.exec_module(module)
    for script, parts in module.QUICK.items():
        names = re.findall(r"\btest_\w+", "".join((ROOT / d / script).read_text() for d in ("tests/unit", "tests/component") if (ROOT / d / script).exists()))
        for part in parts:
            assert [n for n in names if part in n], (script, part)


def test_second_run():
    """Short after changes of a few files; complete after many changes, or if no run has passed."""
    c = check()
    was = {f"engine/{i}.c": "1" for i in range(100)}
    assert not c.is_second(None, was)
    assert c.is_second(was, {**was, "engine/1.c": "2", "engine/new.c": "1"})
    assert not c.is_second(was, {**was, **{f"engine/{i}.c": "2" for i in range(c.FEW + 1)}})
    names = [s.name for s in [*c.CHECK, *c.CI]]
    assert len(names) == len(set(names)) and {"lint", "plain", "asan", "tsan", "sim", "e2e"} <= set(names)


def lanes(stages):
    """(results by name, what was printed) of made-up stages."""
    c = check()
    made = [c.Stage(name, ["sh", "-c", script], 60, lane=getattr(c, lane), after=after) for name, script, lane, after in stages]
    c.BUILT = made[0]
    runner, out = c.Runner(None, False, True), io.StringIO()
    with contextlib.redirect_stdout(out):
        runner.run(made)
        c.summary(made, runner.results, 1)
    return runner.results, out.getvalue()


def test_lanes():
    """Both lanes at a time: each waits for a file that the other one makes. A stage waits for what it is after; all lines have their stage."""
    with tempfile.TemporaryDirectory() as d:
        meet = lambda mine, other: f"touch {d}/{mine}; until [ -e {d}/{other} ]; do sleep 0.01; done; echo '2 passed, 0 failed'"
        results, out = lanes([("first", "true", "WAITS", ""), ("hosts", meet("a", "b"), "WAITS", ""), ("whole", f"test -e {d}/c", "WAITS", "make"),
                              ("lint", meet("b", "a"), "COMPUTES", ""), ("make", f"touch {d}/c", "COMPUTES", "")])
    assert all(r.code == 0 for r in results.values()) and len(results) == 5, out
    assert results["hosts"].totals == [2, 0, 0] and results["whole"].totals == [1, 0, 0], out
    assert out.splitlines()[-1] == "7 passed, 0 failed" and "hosts       2 passed, 0 failed" in out.splitlines(), out


def test_stages_that_fail():
    """The others go on; without the first one there is none."""
    results, out = lanes([("first", "true", "WAITS", ""), ("bad", "exit 3", "COMPUTES", ""), ("good", "true", "COMPUTES", ""), ("after", "true", "WAITS", "bad")])
    assert [r.code for r in results.values()].count(0) == 3 and results["bad"].totals == [0, 1, 0] and out.endswith("3 passed, 1 failed\n"), out
    results, out = lanes([("first", "exit 1", "WAITS", ""), ("good", "true", "COMPUTES", "")])
    assert list(results) == ["first"] and "not run" in out and out.endswith("0 passed, 1 failed\n"), out


def test_failures_are_in_the_summary():
    """Whoever has only the end of a log sees which test failed, and how."""
    output = "\\n".join(["ok   fine", "FAIL test_x  1 failed", *(f"    line {i}" for i in range(30)), "     test_y failed once: it passed when it ran again", "1 passed, 1 failed"])
    _, out = lanes([("first", "true", "WAITS", ""), ("bad", f"printf '{output}\\n'; exit 1", "COMPUTES", "")])
    end = out[out.index("== summary"):].splitlines()
    assert "  bad: FAIL test_x  1 failed" in end and "  bad:     line 29" in end and "  bad:     line 19" not in end, out
    assert [line for line in end if "test_y failed once" in line], out


def test_real_hosts():
    """Each area has a test on real hosts in make check or CI; few run again."""
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    from lab import runner
    tests = runner.discover()
    short, again, ci = ({t.name for t in tests if s in t.sets} for s in ("short", "again", "ci"))
    for area in ("tenant", "carrier", "controller", "gateway_killed", "rping", "bw", "relay", "security"):
        assert [n for n in short if n.startswith(area)], area
    for area in ("capture", "outage", "custody_lost", "plan", "bw"):
        assert [n for n in ci if n.startswith(area)], area
    assert again and again < short < {t.name for t in tests} and len(again) <= 4 and not ci & short, again


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
