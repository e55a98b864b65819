# SPDX-License-Identifier: Apache-2.0
# Finds tests, orders them so that the lab changes seldom, runs each under a time limit, and prints
# a line for each.
import argparse
import contextlib
import fcntl
import fnmatch
import importlib.util
import inspect
import os
import shutil
import signal
import socket
import sys
import termios
import threading
import time
import traceback
import tty
from dataclasses import dataclass, field
from pathlib import Path

from .lab import Lab
from .paths import BIN, OUT, ROOT
from .proc import LabError

TESTS = ROOT / "tests/e2e"
CAPTURED_MAX = 3  # failed tests that run again with captures
SETUP_MAX = 300  # s until the lab is ready for a test; a guest may have to boot twice
BROKEN_MAX = 3  # consecutive failures to set up the lab, before giving up
DEFAULT_NEEDS = {"mtu": 1500, "gateway": False, "native": False, "timeout": 60, "if_accepted": False, "options": {}}


class TestTimeout(Exception):
    pass


class Skip(Exception):
    pass


@dataclass
class Test:
    name: str
    func: object
    kwargs: dict
    needs: dict
    sets: tuple = ()  # that it belongs to: names of options, see parse()
    log: list = field(default_factory=list)

    @property
    def doc(self):
        return (inspect.getdoc(self.func) or "").split("\n")[0]

    def setup_key(self):
        return (self.needs["native"], self.needs["mtu"], sorted(self.needs["options"].items()))


def discover():
    tests = []
    for path in sorted(TESTS.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, func in vars(module).items():
            if name.startswith("test_") and inspect.isfunction(func):
                tests += [_test(func, name[5:], case) for case in getattr(func, "cases", [{}])]
    return tests


def _test(func, name, case):
    label = ",".join(str(v) if isinstance(v, str) else f"{k}={v}" for k, v in case.items())
    needs = getattr(func, "needs", DEFAULT_NEEDS)
    options = {k: v(**case) if callable(v) else v for k, v in needs["options"].items()}
    return Test(f"{name}[{label}]" if case else name, func, case, dict(needs, options=options),
                func.sets(**case) if hasattr(func, "sets") else ())


MARKS = ("short", "again", "ci")  # options, and marks of tests (dsl.py)
# Words that stand for others in a pattern: `make e2e T=proxy` is all that goes through relays.
SETS = {"proxy": "relay"}


def matches(test, pattern):
    return any(SETS.get(p, p) in test.name or fnmatch.fnmatch(test.name, p) for p in pattern.split("|"))


class Runner:
    def __init__(self, args):
        self.args = args
        self.mode = "native" if args.native else "gateway"
        self.lab, self.current = None, None
        self.captured = self.broken = 0
        self.hung = []  # hosts whose network device hung in the last attempt
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def log(self, text):
        line = f"{time.monotonic() - self.started:8.3f} {text}"
        if self.current:
            self.current.log.append(line)
        if self.args.verbose:
            print(line, flush=True)

    def run(self, tests):
        self.started = time.monotonic()
        tests = sorted(tests, key=Test.setup_key)
        todo = [t for t in tests if not (t.needs["gateway"] and self.args.native)]
        for t in tests:
            if t not in todo:
                self.report(t, "skipped", 0, "needs gateways")
        if todo:
            with self.booted():
                for t in todo:
                    if self.broken < BROKEN_MAX:
                        self.run_one(t)
                    else:
                        self.report(t, "failed", 0, f"not run: the lab itself failed {BROKEN_MAX} times in a row")
            if self.lab.booted_again:
                print(f"lab: guests booted again: {self.lab.booted_again}, see above", flush=True)
        c = self.counts
        print(f"{c['passed']} passed, {c['failed']} failed" + (f", {c['skipped']} skipped" if c["skipped"] else ""))
        return 1 if c["failed"] else 0

    @contextlib.contextmanager
    def booted(self):
        self.lab = Lab(self.log)
        self.lab.plain_wan = self.args.native and not self.args.impair
        self.lab.scale = self.args.scale
        try:
            self.lab.boot()
            print(f"lab: two hosts up in {time.monotonic() - self.started:.1f} s ({self.mode})", flush=True)
            yield
        finally:
            self.lab.close()

    def run_one(self, test):
        """Runs a test, reports it, and runs a failed one again with captures, which does not change
        the verdict. A test that failed while a guest's network device hung means nothing: it runs
        again once, and that counts. With --twice the second run counts for any test."""
        verdict, why, seconds = self.attempt(test, self.args.capture)
        if verdict == "failed" and self.hung:
            self.lab.say(f"{test.name}: the network device of host {' and '.join(self.hung)} hung ({why.strip().splitlines()[0] if why else ''}): "
                         "all booted again, the test is run again")
            verdict, why, seconds = self.attempt(test, self.args.capture, reboot=True)
        if verdict == "failed" and self.args.twice and not self.broken:
            print(f"once {test.name:<52} {seconds:6.1f} s\n     {why.strip()[:1500]}", flush=True)
            verdict, why, seconds = self.attempt(test, True)
            self.report(test, verdict, seconds, why)
            if verdict == "passed":
                print(f"     {test.name} failed once: it passed when it ran again", flush=True)
            print(f"     evidence: {os.path.relpath(self.out(test))}/", flush=True)
            return
        self.report(test, verdict, seconds, why)
        if verdict != "failed":
            return
        if not self.args.capture and self.captured < CAPTURED_MAX and not self.broken:
            self.captured += 1
            again, why, seconds = self.attempt(test, True)
            print(f"     again, with captures: {again} {seconds:.1f} s {why.strip().splitlines()[0] if why else ''}", flush=True)
        print(f"     evidence: {os.path.relpath(self.out(test))}/", flush=True)

    def attempt(self, test, capture, reboot=False):
        self.current, begin = test, time.monotonic()
        marks = {p: p.stat().st_size for p in self.lab.log_files()}
        verdict, why = "passed", ""
        limit = SETUP_MAX * self.args.patience
        try:
            self.broken += 1
            with time_limit(limit):
                if reboot:
                    self.lab.reboot()
                self.lab.watch()
                self.lab.wan()
                self.skip_refused(test)
                self.lab.use("native" if test.needs["native"] else self.mode, test.needs["mtu"], **test.needs["options"])
            self.broken = 0
            limit = test.needs["timeout"] * self.args.patience
            with time_limit(limit):
                if capture:
                    shutil.rmtree(self.out(test) / "again", ignore_errors=True)
                    self.lab.capture_start(self.out(test) / "again")
                self.lab.counters_mark()
                test.func(self.lab, **test.kwargs)
                for g in self.lab.gateways:
                    assert not g.died(), f"gateway {g.side} ended by itself: exit {g.child.returncode}"
        except Skip as e:
            verdict, why = "skipped", str(e)
        except TestTimeout:
            verdict, why = "failed", f"not done after {limit:g} s"
        except Exception as e:  # any exception of a test is its verdict
            verdict, why = "failed", f"{type(e).__name__}: {e}" if str(e) else _failed_line(e)
            self.log(traceback.format_exc())
        seconds = time.monotonic() - begin
        self.hung = self.lab.hung() if verdict == "failed" else []
        try:
            self.wind_up(test, verdict)
        except LabError as e:
            verdict, why = "failed", f"{why}; then the lab: {e}"
        if verdict == "failed":
            self.keep(test, marks, capture)
        test.log, self.current = [], None
        return verdict, why, seconds

    def skip_refused(self, test):
        """Skips a test of something that this gateway does not have."""
        if test.needs["if_accepted"] and self.mode == "gateway" and not test.needs["native"]:
            why = self.lab.gwa.refuses(mtu=test.needs["mtu"], **test.needs["options"])
            if why:
                self.broken = 0
                raise Skip(f"the gateway refuses its configuration: {why.splitlines()[0]}")

    def wind_up(self, test, verdict):
        if verdict == "failed":
            self.lab.describe()
        self.lab.capture_stop()
        self.lab.settle()
        if verdict == "failed" and self.mode == "gateway":
            for g in self.lab.gateways:
                g.kill()  # the next test begins with new ones,
                g.forget()  # which ask no queue pair that is gone

    def report(self, test, verdict, seconds, why=""):
        self.counts[verdict] += 1
        mark = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}[verdict]
        print(f"{mark} {test.name:<52} {seconds:6.1f} s", flush=True)
        if why:
            print("     " + why.strip().replace("\n", "\n     ")[:1500], flush=True)

    def out(self, test):
        return OUT / "".join(c if c.isalnum() or c in "._-=" else "_" for c in test.name).strip("_")

    def keep(self, test, marks, captured):
        """Keeps the evidence of a failed attempt under build/e2e/NAME/: log, consoles, gateways;
        that of the second attempt, with captures, under again/."""
        out = self.out(test) / "again" if captured else self.out(test)
        if not captured:
            shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / "log.txt").write_text("\n".join(test.log) + "\n")
        for p in self.lab.log_files():
            with open(p, "rb") as f:
                f.seek(marks.get(p, 0) if p.suffix == ".log" else 0)
                (out / p.name).write_bytes(f.read())


def _failed_line(e):
    frame = traceback.extract_tb(e.__traceback__)[-1]
    return f"{type(e).__name__} in {Path(frame.filename).name}:{frame.lineno}: {frame.line}"


@contextlib.contextmanager
def time_limit(seconds):
    def late(*_):
        raise TestTimeout
    old = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def shell(args):
    """Boots, sets the WAN if asked, and connects this terminal to a guest's console."""
    lab = Lab(print if args.verbose else None)
    try:
        lab.boot()
        lab.use("native" if args.native else "gateway", args.mtu)
        lab.wan(rtt_ms=args.rtt, loss=args.loss)
        host = lab.b if args.shell == "b" else lab.a
        other = lab.a if host is lab.b else lab.b
        print(f"Host {host.name.upper()} ({host.ip4}, {host.ip6}); the other is {other.ip4}, {other.ip6}. Its console: "
              f"socat -,raw,echo=0 {other.serial_sock}\nNamespaces {lab.net.gwa} {lab.net.wan} {lab.net.gwb}; files in "
              f"{lab.net.dir}. Ctrl-] ends the lab.")
        sys.stdout.flush()
        _console(host.serial_sock)
    finally:
        lab.close()
    return 0


def _console(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(path))
    s.sendall(b"\n")

    def show():
        while data := s.recv(4096):
            os.write(1, data)
    threading.Thread(target=show, daemon=True).start()
    interactive = os.isatty(0)
    old = termios.tcgetattr(0) if interactive else None
    try:
        if interactive:
            tty.setraw(0)
        while (data := os.read(0, 1024)) and b"\x1d" not in data:
            s.sendall(data)
    finally:
        if interactive:
            termios.tcsetattr(0, termios.TCSADRAIN, old)
            print()


def need_root():
    """The lab makes namespaces and taps: starts again under sudo if necessary."""
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            sys.exit("run: the lab needs root (or sudo)")
        os.execvp("sudo", ["sudo", "-E", sys.executable, *sys.argv])


def exit_on_signals():
    """SIGTERM and SIGHUP end a run like Ctrl-C, through the clean-up. (SIGINT too, where a shell
    ignored it.)"""
    def end(signum, _frame):
        raise KeyboardInterrupt(signum)
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, end)


def parse(argv):
    p = argparse.ArgumentParser(prog="tests/e2e/run", description="End-to-end tests on two QEMU hosts with Soft-RoCE.")
    p.add_argument("-k", metavar="PATTERN", help="only tests whose name contains (or matches) it; several: 'a|b'; `proxy`: all with relays")
    p.add_argument("--short", action="store_true", help="the set that `make check` runs")
    p.add_argument("--again", action="store_true", help="those that it runs again after a small change")
    p.add_argument("--ci", action="store_true", help="what CI runs besides")
    p.add_argument("--list", action="store_true", help="print the tests and stop")
    p.add_argument("--native", action="store_true", help="without gateways and impairments: checks the tests themselves")
    p.add_argument("--impair", action="store_true", help="with --native: keep the tests' WAN impairments")
    p.add_argument("--capture", action="store_true", help="capture both LANs and WAN ends from the first run on (default: when a failed test is run again)")
    p.add_argument("--twice", action="store_true", help="a test that fails runs once more, with captures, and that counts (make check computes beside)")
    p.add_argument("--patience", type=float, default=1, metavar="X", help="multiply all tests' time limits")
    p.add_argument("--scale", type=float, default=1, metavar="X", help="tests that count to 100,000 and the like (promise) do X times as much")
    p.add_argument("-v", "--verbose", action="store_true", help="print every command and its output")
    p.add_argument("--shell", nargs="?", const="a", choices=["a", "b"], help="boot the lab and open a shell in a host")
    p.add_argument("--rtt", type=float, default=0, help="--shell: WAN round-trip time in ms")
    p.add_argument("--loss", type=float, default=0, help="--shell: WAN loss in percent")
    p.add_argument("--mtu", type=int, default=1500, help="--shell: MTU of the hosts")
    return p.parse_args(argv)


def main(argv):
    args = parse(argv)
    tests = [t for t in discover() if (not args.k or matches(t, args.k)) and all(s in t.sets for s in MARKS if getattr(args, s))]
    if args.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # --list | head
        for t in tests:
            print(f"{t.name:<52} {t.sets[-1] if t.sets else '':<5} {t.doc}")
        return 0
    need_root()
    exit_on_signals()
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two labs at once on a small machine spoil each other's figures
        try:
            if args.shell:
                return shell(args)
            if not tests:
                print("no test matches")
                return 2
            if not args.native and not (BIN / "roceway-gateway").exists():
                print(f"{BIN}/roceway-gateway is not built; --native runs without it")
                return 2
            return Runner(args).run(tests)
        except KeyboardInterrupt:
            print("\ninterrupted", flush=True)
            return 130
        except LabError as e:
            print(f"the lab failed: {e}", flush=True)
            print("0 passed, 1 failed", flush=True)
            return 1
