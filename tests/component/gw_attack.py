#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody in the WAN between two real gateways: forges and replays datagrams (tests/wan_attack), and reads what passes.

The world is that of gw_keys.py, with a second tunnel between the same gateways. `make e2e T=security_attacker` does the same with real
hosts and more datagrams. Needs root. Argument: the build folder.
"""
import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402
import gw_keys as keys  # noqa: E402

ATTACK = os.path.join(lab.BUILD, "tests", "wan_attack")
COUNT, A_SECOND = 60000, 15000
TOKEN = b"nobody in the WAN reads this: \x00\x01\x02\x03 4711"
SECOND = """  - name: near
    port: wan
    local: 192.0.2.1{n}
    remote: 192.0.2.1{m}
    udp_port: 4794
    prefixes: [10.{m}.0.20/32]
    security: none
    rate: 10Gbps
memory:"""
# What a tunnel does with a datagram that is not the peer's, or was taken before.
REFUSED = ("drop_short", "drop_version", "drop_crc", "drop_no_key", "drop_forged", "drop_unknown_tunnel", "drop_duplicate_pn", "drop_bad_frame")


def second(gateway, side):
    """A second tunnel, for another host address."""
    n, m = (1, 2) if side == "a" else (2, 1)
    with open(gateway.config) as f:
        text = f.read()
    text = text.replace("[192.0.2.%d/24," % n, "[192.0.2.%d/24, 192.0.2.1%d/24," % (n, n)).replace("memory:", SECOND.format(n=n, m=m), 1)
    with open(gateway.config, "w") as f:
        f.write(text)


def counters(folder, side):
    """Of both tunnels together."""
    found = {}
    for c in keys.api(folder, side, "counters")["counters"]:
        found[c["name"]] = found.get(c["name"], 0) + c["value"]
    return found


@contextlib.contextmanager
def attacker(count=COUNT):
    """Attacks in the block; gives a function that waits for the end: what was sent to each gateway."""
    proc = subprocess.Popen((ATTACK, drain.MID, "wa", "wb", "4793", str(count), str(A_SECOND)), stdout=subprocess.PIPE, text=True)

    def done():
        said = proc.communicate(timeout=lab.READY + 2 * count / A_SECOND)[0].splitlines()
        assert proc.returncode == 0 and said[0] == "ready", said
        return json.loads(said[-1])

    try:
        yield done
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()


class Talk:
    """A host that sends the token to the other site all the time, in UDP."""

    def __init__(self):
        with lab.inside(lab.HA):
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.on = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.on:
            with contextlib.suppress(OSError):
                self.sock.sendto(TOKEN * 8, ("10.2.0.2", 9))
            time.sleep(0.002)

    def stop(self):
        self.on = False
        self.thread.join()
        self.sock.close()


def unevenness(data):
    """Chi-square of the bytes' frequencies: about 255 where all are equally likely, with a deviation of about 23."""
    each = len(data) / 256
    return sum((n - each) ** 2 / each for n in (data.count(b) for b in range(256)))


def refused(before, after):
    return sum(after.get(k, 0) - before.get(k, 0) for k in REFUSED)


def test_attack(folder):
    """Forged and replayed datagrams of each kind under load, while keys change: counters, and nothing else."""
    with keys.world(folder, edit=second) as (a, b, _):
        for g in a, b:
            g.wait("tunnel=near state=up")
        load = drain.Load()
        try:
            load.more()
            before = [counters(folder, side) for side in "ab"]
            with attacker() as done:
                for _ in range(3):
                    load.more(500)
                sent = done()
            load.more()
            after = [counters(folder, side) for side in "ab"]
            sums = {}
            for i, (side, g) in enumerate((("a", a), ("b", b))):
                assert all(n > 1000 for n in (v for k, v in sent[i].items() if k not in ("full", "all"))), sent
                # what a busy worker lost before it saw it was no attack
                assert refused(before[i], after[i]) > sent[i]["all"] * 3 // 4, (sent[i], before[i], after[i])
                for t in keys.tunnel_list(folder, side):
                    assert t["state"] == "up" and t["peer_restarts"] == 0 and t["keys"]["state"] == "used", t
                    assert not (t["keys"]["ended"] or t["keys"]["refused"] or t["keys"]["failed"] or t["keys"]["problem"]), t
                for name in "conns_failed", "conns_lost", "drop_bad_frame", "drop_crc", "drop_version":
                    assert not after[i].get(name), (name, after[i])
                assert after[i]["key_updates_received"] > before[i]["key_updates_received"], after[i]
                sums[side] = refused(before[i], after[i])
            # nothing was taken that the peer had not sent
            for side, peer in ("a", "b"), ("b", "a"):
                taken = counters(folder, side)["rx_datagrams"]
                assert taken <= counters(folder, peer)["tx_datagrams"], side
            load.finish()
            for g in a, b:
                assert g.text().count("tunnel=far state=up") == 1 and "state=down" not in g.text(), g.text()
            print("   %d datagrams sent, %d refused" % (sent[0]["all"] + sent[1]["all"], sums["a"] + sums["b"]))
        finally:
            load.kill()


def test_attack_in_the_clear(folder):
    """The same attacker where a tunnel has no keys: what it makes up is believed. So the attack above is one."""
    with keys.world(folder, edit=second, clear=True) as (a, b, _):
        talk = Talk()
        try:
            with attacker(20000) as done:
                sent = done()
        finally:
            talk.stop()
        taken, had = counters(folder, "b")["rx_datagrams"], counters(folder, "a")["tx_datagrams"]
        assert taken > had + sent[1]["clear"] // 4, (taken, had, sent)


def payloads(frames):
    """Of UDP and TCP, whole."""
    for f in frames:
        if f[12:14] == b"\x08\x00" and f[23] in (6, 17):
            n = 42 if f[23] == 17 else 34 + (f[46] >> 4) * 4
            yield f[n:14 + int.from_bytes(f[16:18], "big")]


def test_nothing_to_read(folder):
    """What passes the WAN under load, by each carrier, has no payload, no host's address, and no bytes that are more frequent. In the clear it has."""
    known = (TOKEN, socket.inet_aton("10.1.0.2") + socket.inet_aton("10.2.0.2"))
    for clear in True, False:
        here = os.path.join(folder, "clear" if clear else "sealed")
        os.mkdir(here, 0o700)
        with keys.world(here, clear=clear) as (a, b, _):
            load, talk = drain.Load(), Talk()
            try:
                for carrier in ("native",) if clear else ("native", "tcp", "quic"):
                    if carrier != "native":
                        keys.move(here, carrier)
                    load.more(500)
                    sniffer = keys.Sniffer()
                    keys.until("frames pass", lambda s=sniffer: sum(map(len, s.frames)) > 2 << 20)
                    frames = sniffer.stop()
                    data = b"".join(payloads(frames))
                    assert len(data) > 1 << 20, len(data)
                    found = [k for k in known if k in data]
                    if clear:
                        assert found == list(known), found
                        continue
                    assert not found, (carrier, found)
                    if carrier == "native":  # the others have headers of their own in between
                        data = b"".join(d[16:] for d in keys.tunnel_datagrams(frames))
                        chi2 = unevenness(data)
                        assert chi2 < 255 + 8 * math.sqrt(2 * 255), chi2
                        print("   %d bytes, chi-square of 255 degrees: %.0f" % (len(data), chi2))
                load.finish()
            finally:
                talk.stop()
                load.kill()


if __name__ == "__main__":
    sys.exit(drain.main(globals()))
