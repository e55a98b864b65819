#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`roceway replay` at both ends of a veth pair, IPv4 and IPv6, with addresses that the kernel has, and with others. Needs root. Argument: the build folder.

    ha [eth0] -- [eth0] hb
"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cli_replay as captured  # noqa: E402

HA, HB = (f"rwy{os.getpid()}{c}" for c in "ab")
LIMIT = 100


def sh(*words):
    subprocess.run(words, check=True)


def topology():
    for ns in HA, HB:
        sh("ip", "netns", "add", ns)
        sh("ip", "-n", ns, "link", "set", "lo", "up")
    sh("ip", "-n", HA, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", HB)
    for ns, n in (HA, 1), (HB, 2):
        sh("ip", "-n", ns, "link", "set", "eth0", "up")
        sh("ip", "-n", ns, "addr", "add", f"10.9.0.{n}/24", "dev", "eth0")
        sh("ip", "-n", ns, "addr", "add", f"fd09::{n}/64", "dev", "eth0", "nodad")
        sh("ip", "-n", ns, "route", "add", f"fd99:{n % 2 + 1}::/32", "via", f"fd09::{n % 2 + 1}", "dev", "eth0")


def replay(netns, path, *words, form=("--json",)):
    return subprocess.Popen(("ip", "netns", "exec", netns, captured.ROCEWAY, "replay", path, "--interface", "eth0", *form, *words),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def both(path, a, b, *words):
    p = (replay(HA, path, "--as", captured.A, "--to", b, "--address", a, "--pair", "10.9.0.2:7470", *words),
         replay(HB, path, "--as", captured.B, "--to", a, "--address", b, "--pair", ":7470", *words))
    try:
        out = [q.communicate(timeout=LIMIT) for q in p]
    finally:
        for q in p:
            q.kill()
    assert [q.returncode for q in p] == [0, 0], out
    for (text, _), messages, peers in zip(out, (3, 2), (2, 3)):
        j = json.loads(text)
        (side,) = j["sides"]
        assert side["completed"] == messages * captured.COUNT and side["received"] == peers * captured.COUNT, j
        assert side["result"] == "as captured" and not any(side["differs"].values()), j
        assert not j["icrc_bad"] and not j["unknown_qpn"] and not j["stalled"], j


def table(path):
    """What people get fits 100 columns."""
    p = (replay(HA, path, "--as", captured.A, "--to", "10.9.0.2", "--pair", "10.9.0.2:7470", form=()),
         replay(HB, path, "--as", captured.B, "--to", "10.9.0.1", "--pair", ":7470", form=()))
    for text, err in [q.communicate(timeout=LIMIT) for q in p]:
        head = next(line for line in text.splitlines() if line.startswith("QPN"))
        assert "RESENT" in head and "RESULT" in head and all(len(line) <= 100 for line in text.splitlines()), (text, err)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.pcap")
        with open(path, "wb") as f:
            f.write(captured.pcap(captured.session()))
        try:
            topology()
            both(path, "10.9.0.1", "10.9.0.2")
            both(path, "10.9.0.77", "10.9.0.88", "--speed", "4")
            table(path)
            both(path, "fd09::1", "fd09::2")
            both(path, "fd09::77", "fd09::88", "--speed", "4")
            # Behind a router each, by the kernel's routes; the first address of the interface; two families.
            both(path, "fd99:1::5", "fd99:2::6", "--speed", "4")
            alone = replay(HA, path, "--as", captured.A, "--to", "fd09::2", "--address", "10.9.0.1", "--pair", ":7470")
            assert "are of two families" in alone.communicate(timeout=LIMIT)[1] and alone.returncode == 1
            alone = replay(HA, path, "--as", captured.A, "--to", "fd09::3", "--pair", ":7470")
            assert "does not answer neighbour solicitations" in alone.communicate(timeout=LIMIT)[1] and alone.returncode == 1
        finally:
            for ns in HA, HB:
                subprocess.run(("ip", "netns", "del", ns), stderr=subprocess.DEVNULL)
    print("8 passed, 0 failed")


if __name__ == "__main__":
    main()
