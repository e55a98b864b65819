# SPDX-License-Identifier: Apache-2.0
# Marks and parameters of the tests in a test file. The runner reads them.

# The WAN of the acceptance tests: 20 ms RTT, 1 % loss, 1 % reordering, 0.1 % duplication, 0.1 % corruption.
BAD_WAN = {"rtt_ms": 20, "loss": 1, "reorder": 1, "dup": 0.1, "corrupt": 0.1}
# QP timeout for tests that count retransmissions (69 s): longer than they take, see
# Lab.host_retransmits.
TIMEOUT = 24
CM_TIMER = 2.1  # seconds: QP timeout 19, which rdma_cm sets
PINGPONG_TIMER = 0.067  # QP timeout 14 of ibv_rc_pingpong


def needs(mtu=1500, gateway=False, native=False, timeout=60, if_accepted=False, **options):
    """Requirements of the test. mtu: the guests'; gateway=True: it is not run natively;
    native=True: it is always native; if_accepted=True: it is skipped where the gateway refuses the
    options; options: gateway configuration, a function of the case where cases differ."""
    def mark(f):
        f.needs = {"mtu": mtu, "gateway": gateway, "native": native, "timeout": timeout, "if_accepted": if_accepted, "options": options}
        return f
    return mark


def ci(f=None, *, only=None, sets=("ci",)):
    """Marks a test that CI runs. only: that of its cases. Above @short(only=...): the other
    cases."""
    if f is None:
        return lambda g: ci(g, only=only, sets=sets)
    before = getattr(f, "sets", lambda **case: ())
    f.sets = lambda **case: before(**case) or (sets if only is None or only in case.values() else ())
    return f


def short(f=None, *, again=False, only=None):
    """Marks a test that `make check` runs, and so does CI. again: also when it runs again after a
    small change. only: that of its cases."""
    return ci(f, only=only, sets=("short", "again") if again else ("short",))


def each(**lists):
    """Runs the test once for every combination: each(op=["send", "read"], qps=[1, 16])."""
    def mark(f):
        f.cases = [{}]
        for name, values in lists.items():
            f.cases = [dict(c, **{name: v}) for c in f.cases for v in values]
        return f
    return mark
