#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_top.py BUILD: roceway top in a terminal (a pty) and without one, against the simulated gateway
# of tests/component/api/server.c, which cli_api.py starts.
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

import cases

sys.argv = sys.argv[:2]
from cli_api import CLI, Server, cli  # noqa: E402

END = 30  # seconds at most for what must come


class Screen:
    """roceway top in a terminal, and what its screen shows: enough of a terminal for it."""

    def __init__(self, server, columns, lines, *options):
        self.columns, self.lines = columns, lines
        self.text = [""] * lines
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            time.sleep(0.05)
            os.execv(CLI, [str(CLI), "--socket", server.path, "top", *options])
        self.size(columns, lines)
        self.raw, self.row = "", 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.pid:  # never 0: that would be this test's own group
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def size(self, columns, lines):
        self.columns, self.lines = columns, lines
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def key(self, keys):
        os.write(self.fd, keys.encode())

    def read(self):
        """What is on the screen after the last ESC [H, if it was written whole."""
        if select.select([self.fd], [], [], 0.1)[0]:
            try:
                self.raw += os.read(self.fd, 65536).decode()
            except OSError:  # the program has ended
                return None
        whole = [p for p in self.raw.split("\x1b[H")[1:] if p.endswith("\x1b[J") or "\x1b[J" in p]
        if not whole:
            return ""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", whole[-1].split("\x1b[J")[0])

    def wait(self, good):
        end = time.monotonic() + END
        while time.monotonic() < end:
            text = self.read()
            if text is None:
                break
            if text and good(text):
                for line in text.split("\n"):
                    assert len(line) <= self.columns, (self.columns, line)
                assert text.count("\n") < self.lines, (self.lines, text)
                return text
        raise AssertionError(f"not shown: {text}")

    def ends(self):
        """Its exit code, and that it left the screen as it was."""
        end = time.monotonic() + END
        while time.monotonic() < end:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read()
                self.pid = 0
                assert self.raw.rstrip("\r\n").find("\x1b[?1049l") > 0 and "\x1b[?25h" in self.raw
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("it does not end")


def test_views_and_sizes():
    for columns in (80, 100):
        with Server() as s, Screen(s, columns, 24) as t:
            text = t.wait(lambda x: "TUNNEL" in x and "site-b" in x)
            assert "site-a: running for" in text and "20.1 ms" in text and "SENDINGv" in text and "q quit" in text
            t.key("2")
            text = t.wait(lambda x: "10.1.0.1" in x and "learning" in x)
            assert ("TENANT" in text) == (columns == 100), text
            t.key("3")
            t.wait(lambda x: "FROM HOSTS" in x and "0 of 0" in x)
            t.key("\t")
            t.wait(lambda x: "site-b" in x)
            t.key("q")
            assert t.ends() == 0


def test_filter_and_sort():
    with Server() as s, Screen(s, 100, 24, "--view", "flows", "--interval", "0.2") as t:
        t.wait(lambda x: "10.1.0.0 " in x and "10.1.0.1 " in x)
        t.key("/10.1.0.1")
        t.wait(lambda x: "filter: 10.1.0.1_" in x)
        t.key("\r")
        text = t.wait(lambda x: "flows with 10.1.0.1: 1 of 3" in x)
        assert "10.1.0.0 " not in text
        t.key("/\x1b")
        t.wait(lambda x: "3 of 3" in x)
        for _ in range(5):
            t.key("<")  # from SENDING to LOCAL
        text = t.wait(lambda x: "LOCALv" in x)
        assert text.index("10.1.0.0 ") < text.index("10.1.0.1 ")
        t.key("r")
        text = t.wait(lambda x: "LOCAL^" in x)
        assert text.index("10.1.0.1 ") < text.index("10.1.0.0 ")
        t.key(" ")
        t.wait(lambda x: "PAUSED" in x)
        t.key(" ")
        t.wait(lambda x: "PAUSED" not in x)
        t.key("\x1b[6~\x1b[A\x1b[5~")  # page down, up, page up
        t.wait(lambda x: "10.1.0.0 " in x)
        t.key("q")
        assert t.ends() == 0


def test_scroll_and_small_terminal():
    with Server() as s, Screen(s, 80, 6, "--view", "flows") as t:
        text = t.wait(lambda x: "3 of 3" in x)
        assert len(re.findall(r"^ *10\.1\.|^\S*10\.1\.", text, re.M)) == 1
        first = re.search(r"^(10\S+)", text, re.M).group(1)
        t.key("j")
        t.wait(lambda x: re.search(r"^10\S+", x, re.M) and re.search(r"^(10\S+)", x, re.M).group(1) != first)
        t.size(100, 24)
        t.wait(lambda x: "TENANT" in x)
        t.key("k")
        t.wait(lambda x: first in x)
        os.kill(t.pid, 15)
        assert t.ends() == 0


def test_gateway_that_ends():
    s = Server().__enter__()
    try:
        with Screen(s, 80, 24, "--interval", "0.2") as t:
            t.wait(lambda x: "site-b" in x)
            s.proc.kill()
            assert t.ends() == 1 and "does not answer" in t.raw, t.raw
    finally:
        s.proc.kill()
        s.proc.communicate()
        s.dir.cleanup()


def test_without_a_terminal():
    with Server() as s:
        for view in ("tunnels", "flows", "tenants"):
            text = s.cli(f"top --view {view}").stdout
            assert "\x1b" not in text and text.startswith("site-a: running")
            assert all(len(line) <= 100 for line in text.splitlines())
        both = [re.search(r"^site-b .*?(\S+)( +[\d.]+ (?:[KMGT]i)?B){2}$", s.cli("tunnels").stdout, re.M).group(1),
                re.search(r"^site-b .* (\S+)$", s.cli("top").stdout, re.M).group(1)]
        assert both[0] == both[1] == "10k", f"FLOWS: {both}"
        text = s.cli("top --count 2 --interval 0.1").stdout
        assert text.count("site-a: running") == 2


def test_wrong_usage():
    for words in (["--interval", "0"], ["--interval", "nan"], ["--interval", "1x"], ["--count", "0"], ["--count", "-1"], ["--view", "hosts"], ["--json"], ["extra"]):
        r = cli(["top", *words], 2)
        assert r.stderr.startswith("roceway: ") and not r.stdout, words
    r = cli(["--socket", "/nonexistent/x", "top"], 1)
    assert "cannot reach the gateway" in r.stderr


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
