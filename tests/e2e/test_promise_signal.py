# SPDX-License-Identifier: Apache-2.0
# Programs that WRITE by one queue pair, and after its completion tell by another one that the data
# is there (rwy_signal). Native RDMA never breaks them. `near` does: a completion there means that
# the near gateway has the data. `far` promises no more, but breaks them seldom. `causal` and `end`
# must not.
from lab import TIMEOUT, each, needs
from lab.messages import said

LOSSY = {"rtt_ms": 20, "loss": 1}
MODES = ["near", "causal", "far", "end"]
KINDS = ["send", "write", "atomic", "read"]
SAFE = ("causal", "end")
ROUNDS = 100000
PORT = 7472
LIMIT = 600  # s; on two cores beside other work flags take 60, locks 270


def violations(lab, kind, rounds):
    """Runs a program; how many of its rounds found no data."""
    options = f"exec rwy_signal --kind {[*KINDS, 'lock'].index(kind)} --rounds {rounds} --timeout {TIMEOUT} --limit {LIMIT}"
    server = lab.serve(options, port=PORT, cm=True)
    client = lab.a.start(f"{options} {lab.b.ip4}").wait(LIMIT + 10)
    if not client.ok:
        server.kill()
    r = server.wait(20)
    assert client.ok and r.ok, (client, r)
    ends = [said(client), said(r)]
    assert ends[0]["rounds"] == rounds, ends
    found = sum(e["violations"] for e in ends)
    lab.say(f"{kind}: {found} violations in {rounds} rounds, {ends[0]['seconds']} s" + (f", {ends[0]['tries']} attempts" if kind == 'lock' else ''))
    return found


def check(lab, mode, kind):
    lab.wan(**LOSSY)
    found = violations(lab, kind, lab.scaled(ROUNDS, 2000))
    native = lab.mode == "native"
    if native or mode in SAFE:
        assert not found, f"{found} violations: completed data was not there"
    elif mode == "near":
        assert found, "no violation: this run shows nothing about the other modes"


@needs(timeout=LIMIT + 20, ack_mode=lambda mode, **_: mode, if_accepted=True)
@each(mode=MODES, kind=KINDS)
def test_promise_flags(lab, mode, kind):
    """100,000 rounds: WRITE on a QP, completion, then SEND, flag, ATOMIC or READ on another one."""
    check(lab, mode, kind)


@needs(timeout=LIMIT + 20, ack_mode=lambda mode, **_: mode, if_accepted=True)
@each(mode=MODES)
def test_promise_locks(lab, mode):
    """100,000 rounds: lock, read and release by one QP, WRITE what it protects by another one."""
    check(lab, mode, "lock")
