#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reaction of the end-to-end tests' lab to failing guests, with simulated guests: one that does not
boot is booted again, once; a test that failed while a guest's network device hung is repeated once,
and no other test is."""
import contextlib
import io
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import cases  # noqa: E402
from lab import dsl, guest, lab, runner  # noqa: E402
from lab.proc import LabError  # noqa: E402


class FakeHost:
    """Boots at the boot-th attempt."""

    def __init__(self, boots_at=1):
        self.tries, self.boots_at, self.calls = 0, boots_at, []

    def boot(self):
        self.tries += 1

    def ready(self, _timeout):
        if self.tries < self.boots_at:
            raise LabError("guest x: did not boot within 60 s")

    def setup(self):
        self.calls.append("setup")

    def halt(self):
        self.calls.append("halt")


def test_boot_again():
    said = []
    self = types.SimpleNamespace(booted_again=0, say=said.append)
    self._boot_end = lambda h: lab.Lab._boot_end(self, h)
    fine, late = FakeHost(), FakeHost(2)
    lab.Lab._boot(self, [fine, late])
    assert (fine.calls, late.calls) == (["setup"], ["halt", "setup"]) and late.tries == 2
    assert self.booted_again == 1 and len(said) == 1 and "did not boot" in said[0] and "booted again" in said[0], said
    never, other = FakeHost(3), FakeHost()
    try:
        lab.Lab._boot(self, [never, other])
    except LabError:
        assert never.tries == 2 and never.calls[-1] == other.calls[-1] == "halt", (never.calls, other.calls)
    else:
        raise AssertionError("a guest that never boots is no host")


def test_set_of_relays():
    tests = runner.discover()
    chosen = {t.name for t in tests if runner.matches(t, "proxy")}
    assert chosen == {t.name for t in tests if "relay" in t.name} and len(chosen) > 30, chosen


class FakeLab:
    """Its network device hangs in the attempts named in `hangs` (from 0)."""
    gateways = ()

    def __init__(self, hangs):
        self.hangs, self.attempts, self.reboots, self.said, self.booted_again = hangs, -1, 0, [], 0

    def watch(self):
        self.attempts += 1

    def hung(self):
        return ["b"] if self.attempts in self.hangs else []

    def reboot(self):
        self.reboots += 1

    def say(self, text):
        self.said.append(text)

    def log_files(self):
        return []

    def nothing(self, *args, **kw):
        pass

    wan = use = counters_mark = describe = capture_start = capture_stop = settle = nothing


def run(hangs, fails, twice=False, gateways=()):
    """(the counts, the lab) of one test that fails in the attempts `fails`."""
    fake = FakeLab(hangs)
    fake.gateways = gateways

    def func(_lab):
        assert fake.attempts not in fails, "as told"
    args = types.SimpleNamespace(native=False, capture=False, patience=1, verbose=False, twice=twice)
    r = runner.Runner(args)
    r.out = lambda _test: runner.OUT
    r.lab, r.started = fake, 0
    r.keep = fake.nothing
    with contextlib.redirect_stdout(io.StringIO()):
        r.run_one(runner.Test("made_up", func, {}, dict(runner.DEFAULT_NEEDS), False))
    return r.counts, fake


def test_hung():
    counts, fake = run(hangs={0}, fails={0})
    assert counts["passed"] == 1 and counts["failed"] == 0 and fake.reboots == 1, counts
    assert len(fake.said) == 1 and "host b hung" in fake.said[0] and "as told" in fake.said[0], fake.said
    counts, fake = run(hangs={0, 1}, fails={0, 1, 2})  # again: it failed
    assert counts["failed"] == 1 and fake.reboots == 1, (counts, fake.reboots)
    # for other reasons: it failed, whatever the result of the attempt with captures
    counts, fake = run(hangs=set(), fails={0})
    assert counts["failed"] == 1 and fake.reboots == 0 and not fake.said, counts
    counts, fake = run(hangs={0}, fails=set())  # and passed nevertheless
    assert counts["passed"] == 1 and fake.reboots == 0, counts


def test_twice():
    """With --twice the second run is the verdict."""
    for fails, verdict, attempts in ((set(), "passed", 1), ({0}, "passed", 2), ({0, 1}, "failed", 2)):
        counts, fake = run(hangs=set(), fails=fails, twice=True)
        assert counts == {"passed": 0, "failed": 0, "skipped": 0, verdict: 1} and fake.attempts == attempts - 1, (fails, counts, fake.attempts)


def test_gateways_after_a_failure():
    """The next test, or the same one again, begins with new gateways that know no connection of before."""
    for fails, want in ((set(), []), ({0, 1}, ["kill", "forget"] * 2)):
        calls = []
        gateway = types.SimpleNamespace(died=lambda: False, kill=lambda: calls.append("kill"), forget=lambda: calls.append("forget"))
        counts, _ = run(hangs=set(), fails=fails, gateways=(gateway,))
        assert calls == want, (fails, calls, counts)


def test_case_options():
    """An option may depend on the case, and a test that may be refused is skipped then."""
    def func(_lab, mode):
        ran.append(mode)
    dsl.needs(gateway=True, if_accepted=True, ack_mode=lambda mode, **_: mode)(func)
    tests = [runner._test(func, "made_up", {"mode": m}) for m in ("near", "causal")]
    assert [t.needs["options"] for t in tests] == [{"ack_mode": "near"}, {"ack_mode": "causal"}]
    ran, fake = [], FakeLab(())
    fake.gwa = types.SimpleNamespace(refuses=lambda mtu, ack_mode: "no such mode" if ack_mode == "causal" else None)
    r = runner.Runner(types.SimpleNamespace(native=False, capture=False, patience=1, verbose=False, twice=False))
    r.lab, r.started = fake, 0
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for t in tests:
            r.run_one(t)
    assert ran == ["near"] and r.counts == {"passed": 1, "failed": 0, "skipped": 1} and "no such mode" in out.getvalue(), (ran, r.counts)


def test_console():
    """A search covers the output since watch()."""
    with tempfile.TemporaryDirectory() as folder:
        g = guest.Guest("x", "ns", "tap", "mac", Path(folder), lambda text: None)
        assert not g.hung()
        g.serial_log.write_text("[ 12.3] NETDEV WATCHDOG: eth0 (virtio_net): transmit queue 0 timed out\n")
        assert g.hung()
        g.watch()
        assert not g.hung()
        with open(g.serial_log, "a") as f:
            f.write("[ 99.1] virtio_net virtio0 eth0: TX timeout on queue: 0, sq: output.0\n")
        assert g.hung()


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
