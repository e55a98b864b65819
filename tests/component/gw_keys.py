#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real gateways with keys (docs/security.md): new keys under load, restarts, certificates that are renewed, revoked or wrong.

The world is that of gw_drain.py: hosts are models, 20 ms and some loss. Needs root. Argument: the build folder.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import gw_smoke as lab  # noqa: E402
import gw_drain as drain  # noqa: E402

CA = os.path.join(lab.ROOT, "tools", "ca", "roceway-ca")
NAMES = {"a": "gw-a", "b": "gw-b"}


def ca(folder, *words):
    subprocess.run((CA, os.path.join(folder, "ca")) + words, check=True)


def configure(gateway, folder, side, **more):
    """Keys instead of `security: none`, with the certificates of the folder."""
    here = os.path.join(folder, "ca")
    keys = {"certificate": "%s/%s.pem" % (here, NAMES[side]), "key": "%s/%s.key" % (here, NAMES[side]), "ca": here + "/ca.pem",
            "crl": here + "/crl.pem", "rekey": "1s", "lifetime": "2s", "peer_name": NAMES["b" if side == "a" else "a"], **more}
    with open(gateway.config) as f:
        text = f.read()
    text = text.replace("security: none", "peer_name: " + keys.pop("peer_name"))
    with open(gateway.config, "w") as f:
        f.write(text + "keys: {%s}\n" % ", ".join("%s: %s" % item for item in keys.items()))


@contextlib.contextmanager
def world(folder, up=True, workers=1, of_a=None, of_b=None, edit=None, clear=False):
    """Two gateways; `of_a`, `of_b`: keys of their files that differ from what is right; `edit` changes a configuration before; `clear`: without keys."""
    if not os.path.exists(os.path.join(folder, "ca")):
        ca(folder, "init")
        for name in NAMES.values():
            ca(folder, "issue", name, "gateway")
    a, b, wan = lab.Gateway(folder, "a", workers=workers), lab.Gateway(folder, "b", workers=workers), drain.Wan(folder)
    for g, side, of in ((a, "a", of_a), (b, "b", of_b)):
        if edit:
            edit(g, side)
        if not clear:
            configure(g, folder, side, **(of or {}))
    try:
        b.start()
        a.start()
        if up:
            a.wait("tunnel=far state=up")
            b.wait("tunnel=far state=up")
        yield a, b, wan
    finally:
        a.kill()
        b.kill()
        wan.stop()


def api(folder, side, *words):
    r = subprocess.run((os.path.join(drain.BIN, "roceway"), "--socket", os.path.join(folder, side + ".sock"), *words, "--json"),
                       capture_output=True, text=True, timeout=60)
    return json.loads(r.stdout) if r.stdout else r.stderr


def tunnel_list(folder, side):
    return api(folder, side, "tunnels")["tunnels"]


def tunnel(folder, side):
    return tunnel_list(folder, side)[0]


def counters(folder, side):
    return {(c["group"], c["name"]): c["value"] for c in api(folder, side, "counters")["counters"]}


def until(what, true, seconds=lab.READY):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Sniffer:
    """Everything that crosses the WAN, as the emulator's first interface sees it."""

    def __init__(self):
        with lab.inside(drain.MID):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.sock.bind(("wa", 0))
        self.frames, self.on = [], True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        self.sock.settimeout(0.1)
        while self.on:
            with contextlib.suppress(TimeoutError):
                self.frames.append(self.sock.recv(4096))

    def stop(self):
        self.on = False
        self.thread.join()
        self.sock.close()
        return self.frames


def tunnel_datagrams(frames):
    for f in frames:
        if f[12:14] == b"\x08\x00" and f[23] == 17 and struct.unpack("!H", f[36:38])[0] in (4793, 4794):
            yield f[42:14 + struct.unpack("!H", f[16:18])[0]]


def test_load(folder):
    """Keys change under load, by phases and by new exchanges; each gateway is stopped and started. No queue pair ends."""
    with world(folder, workers=2) as (a, b, _):
        load = drain.Load()
        try:
            load.more()
            sniffer = Sniffer()
            load.more()
            until("key phases", lambda: counters(folder, "a").get(("tunnel", "key_updates_sent"), 0) > 6)
            until("new exchanges", lambda: tunnel(folder, "b")["keys"]["exchanges"] >= 3)
            datagrams = list(tunnel_datagrams(sniffer.stop()))
            assert len(datagrams) > 500, len(datagrams)
            # byte 3 of the header says which keys: 0 is for datagrams in the clear
            assert all(d[3] for d in datagrams), "in the clear: %d of %d" % (sum(not d[3] for d in datagrams), len(datagrams))
            for side in "ab":
                t, c = tunnel(folder, side), counters(folder, side)
                assert t["security"] == "keys" and t["keys"]["state"] == "used" and t["keys"]["cipher"] == "aes-128-gcm", t
                assert t["keys"]["peer_name"] == NAMES["b" if side == "a" else "a"] and not t["keys"]["problem"], t
                assert not c.get(("tunnel", "drop_forged")) and not c.get(("engine", "conns_failed")), c
            for g in a, b:
                code, end = g.stop()
                drain.restarted(g)
                assert code == 0 and "conns_failed" not in end and "conns_lost" not in end, end
                load.more()
            load.finish()
        finally:
            load.kill()
        for g in a, b:
            code, _ = g.stop()
            assert code == 0 and " error " not in g.text(), g.text()
            assert "SECURITY: NONE" not in g.text()


def test_kill(folder):
    """A gateway that is killed comes back with other keys; the other takes them although it has some."""
    with world(folder) as (a, _, _):
        a.proc.kill()
        a.proc.wait()
        a.start().wait("tunnel=far state=up")
        assert tunnel(folder, "b")["peer_restarts"] == 1
        load = drain.Load()
        try:
            load.more()
            load.finish()
        finally:
            load.kill()


def test_revoked(folder):
    """The certificate of a peer is revoked: its keys end at once, and it gets no others. A new certificate is taken without a restart."""
    with world(folder) as (a, b, _):
        load = drain.Load()
        try:
            load.more()
            shutil.copy(os.path.join(folder, "ca", "gw-b.pem"), os.path.join(folder, "old.pem"))
            ca(folder, "revoke", "gw-b")
            until("the tunnel is down", lambda: tunnel(folder, "a")["state"] == "down")
            took = time.time() - os.stat(os.path.join(folder, "ca", "crl.pem")).st_mtime
            assert took <= 1, took
            print("   down %.2f s after the list had changed" % took)
            keys = tunnel(folder, "a")["keys"]
            assert keys["state"] == "wanted" and keys["ended"] == 1 and "revoked" in keys["problem"], keys
            assert re.search(r' warning keys: tunnel=far state=wanted event="the peer\'s certificate: .*revoked', a.text()), a.text()
            until("it asks again and is refused", lambda: tunnel(folder, "a")["keys"]["refused"] + tunnel(folder, "a")["keys"]["failed"] > 1)
            assert tunnel(folder, "a")["state"] == "down"
            # the list of another CA of the same name revokes nothing here: it is refused, and the one before stays
            subprocess.run((CA, os.path.join(folder, "other"), "init"), check=True)
            good = shutil.copy(os.path.join(folder, "ca", "crl.pem"), os.path.join(folder, "good.pem"))
            shutil.copy(os.path.join(folder, "other", "crl.pem"), os.path.join(folder, "ca", "crl.pem"))
            a.wait("crl.pem: expected a revocation list that one of the CAs signed, found one of `CN=Roceway CA`")
            tries = tunnel(folder, "a")["keys"]["refused"] + tunnel(folder, "a")["keys"]["failed"]
            until("it is refused again", lambda: tunnel(folder, "a")["keys"]["refused"] + tunnel(folder, "a")["keys"]["failed"] > tries + 1)
            assert tunnel(folder, "a")["keys"]["state"] == "wanted"
            shutil.copy(good, os.path.join(folder, "ca", "crl.pem"))
            ca(folder, "issue", "gw-b", "gateway")
            b.proc.send_signal(signal.SIGHUP)
            until("the tunnel is up", lambda: tunnel(folder, "a")["state"] == "up")
            load.more()
            load.finish()
        finally:
            load.kill()


def test_list_that_ends(folder):
    """A revocation list that has ended still revokes, and log, health and metrics say so. `roceway-ca DIR crl` makes another one."""
    ca(folder, "init")
    for name in NAMES.values():
        ca(folder, "issue", name, "gateway")
    ca(folder, "revoke", "gw-b")
    ca(folder, "issue", "gw-b", "gateway")
    here = os.path.join(folder, "ca")
    subprocess.run(("openssl", "ca", "-config", here + "/ca.cnf", "-gencrl", "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z",
                    "-out", here + "/crl.pem"), env={**os.environ, "SAN": "DNS:none"}, check=True, capture_output=True)
    with world(folder) as (a, b, _):
        a.wait(" warning keys: crl=%s/crl.pem the revocation list ended on 2020-02-01T00:00:00Z; it is still used" % here)
        assert tunnel(folder, "a")["keys"]["crl_expires"] == "2020-02-01T00:00:00Z"
        r = drain.roceway(folder, "health")
        assert r.returncode == 0 and "note  keys      the revocation list ended on 2020-02-01T00:00:00Z" in r.stdout, r
        ca(folder, "crl")
        a.wait("crl=%s/crl.pem has changed: read again" % here)
        until("the new list is used", lambda: tunnel(folder, "a")["keys"]["crl_expires"] > "2026")
        assert "revocation list" not in drain.roceway(folder, "health").stdout
        assert tunnel(folder, "a")["state"] == "up"


def move(folder, carrier):
    r = drain.roceway(folder, "tunnel", "set", "far", "carrier=" + carrier)
    assert r.returncode == 0, r.stderr
    until("the tunnel goes by " + carrier, lambda: tunnel(folder, "a")["carrier"]["sending"] == carrier)
    until("so does the other end", lambda: tunnel(folder, "b")["carrier"]["sending"] == carrier)


def test_carriers(folder):
    """With keys TCP has TLS, and QUIC its own. The tunnel moves under load; a revoked certificate ends each."""
    with world(folder) as (a, b, _):
        load = drain.Load()
        try:
            load.more()
            sniffer = Sniffer()
            for carrier in "tcp", "quic", "tcp", "native", "quic":
                move(folder, carrier)
                load.more()
            firsts = {}
            for f in sniffer.stop():
                if f[12:14] == b"\x08\x00" and f[23] == 6:
                    ports, n = struct.unpack("!HH", f[34:38]), 34 + (f[46] >> 4) * 4
                    payload = f[n:14 + struct.unpack("!H", f[16:18])[0]]
                    if 4793 in ports and payload:
                        firsts.setdefault((f[26:34], ports), payload)
            assert len(firsts) >= 8 and all(p[:2] == b"\x16\x03" for p in firsts.values()), {k: v[:8] for k, v in firsts.items()}
            for g in a, b:
                assert "fallbacks" not in g.text() and "lost: back to native" not in g.text(), g.text()
            for carrier in "tcp", "quic":
                move(folder, carrier)
                load.more()
                ca(folder, "revoke", "gw-b")
                until("the tunnel is down", lambda: tunnel(folder, "a")["state"] == "down", 10)
                t = tunnel(folder, "a")
                assert t["carrier"]["sending"] == "native" and "revoked" in t["keys"]["problem"], t
                time.sleep(1)
                assert tunnel(folder, "a")["state"] == "down"
                ca(folder, "issue", "gw-b", "gateway")
                b.proc.send_signal(signal.SIGHUP)
                until("the tunnel goes by %s again" % carrier, lambda: tunnel(folder, "a")["carrier"]["sending"] == carrier)
                load.more()
            load.finish()
        finally:
            load.kill()


def detour_of(folder, side):
    return tunnel(folder, side)["carrier"]


def test_detour(folder):
    """A tenth is lost each way: what is lost goes by TCP in TLS, or by QUIC, new packets stay native; no host notices. One end alone has the
    policy first. Off again, the connections are closed."""
    with world(folder) as (_, _, wan):
        load, names = drain.Load(), {side: tunnel(folder, side)["name"] for side in "ab"}

        def ready(side, carrier):
            k = detour_of(folder, side)
            return k["detour"] == carrier and k["detour_state"] == "ready" and k["sending"] == "native"

        def policy(side, words):
            said = api(folder, side, "tunnel", "set", names[side], *words.split())
            assert isinstance(said, dict) and said["changed"] == 1, said

        def lose(share):
            subprocess.run((os.path.join(drain.BIN, "wanem"), "ctl", wan.sock, "set", "both", "loss=" + share), check=True, capture_output=True)
        try:
            load.more()
            for carrier in "tcp", "quic":
                policy("a", "detour=%s detour_after=1" % carrier)
                until("A lets it go by " + carrier, lambda: ready("a", carrier))
                assert detour_of(folder, "b")["detour_state"] == "off"
                before = detour_of(folder, "a")["detour_datagrams"]
                lose("10%")
                load.more(500)
                until("something takes the detour", lambda: detour_of(folder, "a")["detour_datagrams"] > before)
                policy("b", "detour=%s detour_after=1" % carrier)
                load.more(500)
                lose("0.5%")
                until("B has its connection, too", lambda: ready("b", carrier))
                for side in "a", "b":
                    policy(side, "detour=off")
                until("no connection is left", lambda: all(detour_of(folder, s)["%s_connections" % carrier] == 0 for s in "ab"))
                assert detour_of(folder, "a")["moves_to_tcp"] == detour_of(folder, "a")["moves_to_quic"] == 0
            load.finish()
        finally:
            load.kill()


def test_renewed(folder):
    """Both certificates and the CA are renewed under load, by SIGHUP; the tunnel is never down."""
    with world(folder) as (a, b, _):
        load = drain.Load()
        try:
            load.more()
            for name in NAMES.values():
                ca(folder, "issue", name, "gateway")
            for g in a, b:
                g.proc.send_signal(signal.SIGHUP)
                g.wait("notice reload: ")
            had = tunnel(folder, "a")["keys"]["exchanges"]
            until("an exchange with the new ones", lambda: tunnel(folder, "a")["keys"]["exchanges"] > had + 1)
            load.more()
            # what is wrong changes nothing
            with open(os.path.join(folder, "ca", "gw-a.pem"), "w") as f:
                f.write("junk\n")
            a.proc.send_signal(signal.SIGHUP)
            a.wait("reload: refused, nothing has changed")
            had = tunnel(folder, "a")["keys"]["exchanges"]
            until("an exchange with those before", lambda: tunnel(folder, "a")["keys"]["exchanges"] > had)
            load.more()
            load.finish()
        finally:
            load.kill()
        for g in a, b:
            assert g.text().count("state=up") == 1 and "state=down" not in g.text(), g.text()


def test_first_by_reload(folder):
    """A reload names the first certificates, and a carrier that needs them; later changes know them."""
    def give(gateway, side, *, peer=None):
        with open(gateway.config) as f:
            text = f.read().split("\nkeys: ")[0]
        text = re.sub("security: none|peer_name: [a-z-]+", "peer_name: " + (peer or NAMES["b" if side == "a" else "a"]), text)
        if "carrier: " not in text:
            text = text.replace("peer_name: ", "carrier: quic\n    peer_name: ")
        here = os.path.join(folder, "ca")
        with open(gateway.config, "w") as f:
            f.write(text.rstrip() + "\nkeys: {certificate: %s/%s.pem, key: %s/%s.key, ca: %s/ca.pem}\n" % (here, NAMES[side], here, NAMES[side], here))
        had = gateway.text().count("notice reload: ")
        gateway.proc.send_signal(signal.SIGHUP)
        until("reload in " + gateway.text(), lambda: gateway.text().count("notice reload: ") > had)

    def by_quic():
        return all(tunnel(folder, s)["carrier"]["sending"] == "quic" for s in "ab")

    with world(folder, clear=True, workers=2) as (a, b, _):
        give(a, "a")
        give(b, "b")
        until("keys", lambda: all(tunnel(folder, s)["keys"]["state"] == "used" for s in "ab"))
        until("QUIC", by_quic)
        # another name of the peer makes another tunnel, by the same QUIC port
        for name in ("gw-x", "gw-y", "gw-b"):
            give(a, "a", peer=name)
            assert tunnel(folder, "a")["carrier"]["wanted"] == "quic", tunnel(folder, "a")
        until("QUIC again", by_quic)
        r = subprocess.run((os.path.join(drain.BIN, "roceway"), "--socket", os.path.join(folder, "a.sock"), "tunnel", "set", "far", "rate=2Gbps"),
                           capture_output=True, text=True, timeout=60)
        assert r.returncode == 0, r.stderr


def refused(folder, said_by_a, said_by_b, of_a=None, of_b=None):
    with world(folder, up=False, of_a=of_a, of_b=of_b) as (a, b, _):
        for g, said in ((a, said_by_a), (b, said_by_b)):
            if said:
                until("`%s` in: %s" % (said, g.text()), lambda: re.search(said, g.text()))
        time.sleep(1)
        for side in "ab":
            t = tunnel(folder, side)
            assert t["state"] == "down" and t["keys"]["state"] == "wanted" and t["keys"]["problem"], t
            assert counters(folder, side).get(("tunnel", "rx_datagrams"), 0) == 0


def test_wrong_name(folder):
    refused(folder, "not for the name `gw-c`|not for `peer_name`", "the peer ended the handshake|not for the `peer_name`", of_a={"peer_name": "gw-c"})


def test_foreign_ca(folder):
    ca(folder, "init")
    for name in NAMES.values():
        ca(folder, "issue", name, "gateway")
    other = os.path.join(folder, "other")
    subprocess.run((CA, other, "init"), check=True)
    subprocess.run((CA, other, "issue", "gw-b", "gateway"), check=True)
    refused(folder, "issuer is unknown", "the peer ended the handshake",
            of_b={"certificate": other + "/gw-b.pem", "key": other + "/gw-b.key"})


def test_other_cipher(folder):
    refused(folder, "another `keys.cipher`", "another `keys.cipher`", of_b={"cipher": "aes-256-gcm"})


def test_one_end_without(folder):
    """One end with keys, the other without: nothing passes, and both say why."""
    with world(folder, up=False) as (a, b, _):
        b.kill()
        with open(b.config) as f:
            text = f.read()
        with open(b.config, "w") as f:
            f.write(text.replace("peer_name: gw-a", "security: none"))
        b.start()
        b.wait("SECURITY: NONE")
        until("a says it", lambda: "Connection refused" in a.text() or "no tunnel with keys" in a.text())
        time.sleep(1)
        assert tunnel(folder, "a")["state"] == tunnel(folder, "b")["state"] == "down"
        assert tunnel(folder, "b")["security"] == "none" and tunnel(folder, "b")["keys"]["state"] == "none"
        health = api(folder, "b", "health")
        assert any(c["name"] == "security" and "1 of 1" in c["detail"] for c in health["checks"]), health


def test_open_key_file(folder):
    """A key that others can read is refused at the start."""
    ca(folder, "init")
    for name in NAMES.values():
        ca(folder, "issue", name, "gateway")
    os.chmod(os.path.join(folder, "ca", "gw-a.key"), 0o644)
    a = lab.Gateway(folder, "a")
    configure(a, folder, "a")
    try:
        a.start()
        assert a.proc.wait(lab.READY) == 1
        assert re.search(r" error keys: .*gw-a\.key: expected a file that others can neither read nor write", a.text()), a.text()
    finally:
        a.kill()


if __name__ == "__main__":
    sys.exit(drain.main(globals()))
