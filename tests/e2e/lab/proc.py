# SPDX-License-Identifier: Apache-2.0
# Child processes that cannot outlive the lab, and waiting for a condition with a time limit.
import ctypes
import signal
import subprocess
import time

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


class LabError(Exception):
    """The lab itself failed: a process did not start, a guest did not answer."""


class Unreachable(LabError):
    """A host does not reach another one, or its gateway."""


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def start(argv, log, **kw):
    """Starts a child (only the main thread may call it); its output goes to the file `log`."""
    with open(log, "ab") as out:
        return subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                start_new_session=True, preexec_fn=_die_with_parent, **kw)


def stop(child, seconds=5.0):
    """SIGTERM, then SIGKILL after `seconds`. True if SIGTERM was enough."""
    if child is None or child.poll() is not None:
        return True
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        kill(child)
        return False


def kill(child):
    if child is not None and child.poll() is None:
        child.kill()
        child.wait(10)


def sh(*argv, timeout=20, check=True):
    """Runs a short command on this machine and returns its stdout."""
    r = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    if check and r.returncode:
        raise LabError(f"{' '.join(map(str, argv))}: exit {r.returncode}: {r.stderr.strip() or r.stdout.strip()}")
    return r.stdout


def wait_for(what, cond, seconds, every=0.05):
    """Polls `cond` until it is true; after `seconds` a LabError that names `what`."""
    end = time.monotonic() + seconds
    while True:
        got = cond()
        if got:
            return got
        if time.monotonic() > end:
            raise LabError(f"{what}: not within {seconds:g} s")
        time.sleep(every)


def settled(path, quiet=0.3, seconds=5):
    """Waits until a file has not grown for a while."""
    end, size, since = time.monotonic() + seconds, -1, 0
    while time.monotonic() < end:
        if path.stat().st_size != size:
            size, since = path.stat().st_size, time.monotonic()
        elif time.monotonic() - since > quiet:
            return
        time.sleep(0.05)


def ns_argv(netns):
    return ["/usr/sbin/ip", "netns", "exec", netns]

