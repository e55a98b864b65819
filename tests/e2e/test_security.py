# SPDX-License-Identifier: Apache-2.0
# Tunnels with keys (docs/security.md). All other tests have them, too; here keys change, end, or are refused.
import collections
import json
import shutil
import subprocess
import sys
import time

from lab import each, needs, short
from lab.copy import Copy
from lab.gateway import ca, certificates, issue_dated, issue_foreign
from lab.paths import BUILD
from lab.proc import ns_argv, sh, wait_for

# What a tunnel does with a datagram that is not the peer's, or was taken before.
REFUSED = ("drop_short", "drop_version", "drop_crc", "drop_no_key", "drop_forged", "drop_unknown_tunnel", "drop_duplicate_pn", "drop_bad_frame")


def tunnel(gateway):
    return gateway.ask("tunnels")["tunnels"][0]


def counters(gateway):
    return collections.Counter({(c["group"], c["name"]): c["value"] for c in gateway.ask("counters")["counters"]})


def said_since(gateway, mark):
    """What its log has after so many bytes."""
    return gateway.log_file.read_bytes()[mark:].decode(errors="replace")


def log_size(gateway):
    return gateway.log_file.stat().st_size


def summed(gateway):
    """Of all tunnels together."""
    found = collections.Counter()
    for c in gateway.ask("counters", "--all")["counters"]:
        if "port" not in c:
            found[c["name"]] += c["value"]
    return found


@short
@needs(gateway=True, rekey="2s", timeout=120)
def test_security_rekey(lab):
    """New keys every 2 s at 20 ms and 1 % loss under load, and files with checksums: nothing is lost or refused."""
    lab.wan(rtt_ms=20, loss=1)
    copies = [Copy(lab, (lab.a, lab.b), mib=24), Copy(lab, (lab.b, lab.a), mib=24, port=7428)]
    p = lab.perftest("ib_write_bw", size=65536, seconds=4, timeout=18, limit=60)
    for copy in copies:
        copy.check()
    assert p.ok, p
    for g in (lab.gwa, lab.gwb):
        c = counters(g)
        assert c[("tunnel", "key_updates_sent")] >= 3 and c[("tunnel", "key_updates_received")] >= 3, c
        assert not c[("tunnel", "drop_forged")] and not c[("tunnel", "drop_no_key")], c
        assert tunnel(g)["keys"]["state"] == "used", tunnel(g)
    lab.log(f"{p.bw:.1f} MB/s with new keys every 2 s")


def gone(t):
    return t["keys"]["state"] == "wanted" and t["state"] == "down"


@needs(gateway=True, timeout=120)
def test_security_revoked(lab):
    """B's certificate is revoked under load: the tunnel is gone within a second, and hosts wait as in an outage. With a new certificate it goes on."""
    lab.wan(rtt_ms=20)
    copy = Copy(lab, (lab.a, lab.b), mib=16)
    lab.wait_traffic(200)
    keep = lab.net.dir / "keep"
    shutil.rmtree(keep, ignore_errors=True)
    shutil.copytree(lab.net.dir / "ca", keep)
    try:
        ca(lab.net, "revoke", "site-b")
        wait_for("the tunnel is gone", lambda: gone(tunnel(lab.gwa)), 5, 0.02)
        took = time.time() - (lab.net.dir / "ca" / "crl.pem").stat().st_mtime
        t = tunnel(lab.gwa)
        assert gone(t) and t["keys"]["ended"] == 1 and "revoked" in t["keys"]["problem"], t
        time.sleep(1)
        assert tunnel(lab.gwa)["state"] == "down" and tunnel(lab.gwb)["keys"]["problem"], tunnel(lab.gwb)
        ca(lab.net, "issue", "site-b", "gateway")
        lab.gwb.reload()
        wait_for("the tunnel is up", lambda: tunnel(lab.gwa)["state"] == "up" and tunnel(lab.gwb)["state"] == "up", 20, 0.05)
        copy.check()
        assert took <= 1, f"{took:.2f} s"
        lab.log(f"gone {took:.2f} s after the list had changed")
    finally:
        shutil.rmtree(lab.net.dir / "ca")
        keep.rename(lab.net.dir / "ca")


@needs(gateway=True, timeout=60)
def test_security_wrong_name(lab):
    """A expects another name than B's certificate has: nothing passes, and both ends say it. With the right one it does."""
    lab.gwa.reload(peer_name="site-c")
    wait_for("A names it", lambda: "not for" in tunnel(lab.gwa)["keys"]["problem"], 20, 0.1)
    wait_for("B names it", lambda: tunnel(lab.gwb)["keys"]["problem"], 20, 0.1)
    assert lab.a.run(f"ping -c 3 -W 1 {lab.b.ip4} >/dev/null 2>&1 && echo passed; true").out.strip() != "passed"
    t = tunnel(lab.gwa)
    assert t["state"] == "down" and t["keys"]["exchanges"] == 0 and t["rx_datagrams"] == 0, t
    lab.gwa.reload(peer_name=None)
    wait_for("the tunnel is up", lambda: tunnel(lab.gwa)["state"] == "up", 20, 0.1)


def restart_b(lab, cert):
    """Site B's gateway with another certificate."""
    lab.gwb.stop()
    lab.gwb.options = dict(lab.gwb.options, cert=cert)
    lab.gwb.start()


@needs(gateway=True, timeout=90)
@each(wrong=["foreign", "expired", "early"])
def test_security_bad_certificate(lab, wrong):
    """B's certificate is of another CA, or its time is over, or has not come: no tunnel, and both ends say it. With the right one there is."""
    issue_foreign(lab.net, "foreign")
    issue_dated(lab.net, "expired", "20200101000000Z", "20200201000000Z")
    issue_dated(lab.net, "early", "20490101000000Z", "20491201000000Z")
    said = {"foreign": "issuer is unknown", "expired": "expired", "early": "not yet"}[wrong]
    restart_b(lab, wrong)
    wait_for("A names it", lambda: said in tunnel(lab.gwa)["keys"]["problem"], 20, 0.1)
    wait_for("B names it", lambda: "the peer ended the handshake" in tunnel(lab.gwb)["keys"]["problem"], 20, 0.1)
    assert lab.a.run(f"ping -c 3 -W 1 {lab.b.ip4} >/dev/null 2>&1 && echo passed; true").out.strip() != "passed"
    assert tunnel(lab.gwa)["state"] == "down", tunnel(lab.gwa)
    restart_b(lab, None)
    wait_for("the tunnel is up", lambda: tunnel(lab.gwa)["state"] == "up", 20, 0.1)


# A TLS client without a certificate, in B's place.
NOBODY = """
import socket, ssl, sys
c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
c.check_hostname = False
c.load_verify_locations(sys.argv[1])
c.set_alpn_protocols(["roceway-keys/1"])
s = socket.create_connection(("192.0.2.1", 4792), 10, ("192.0.2.2", 0))
try:
    t = c.wrap_socket(s)
    t.recv(100)
except OSError as e:
    print(e)
"""


@needs(gateway=True, timeout=90)
def test_security_no_certificate(lab):
    """Somebody with B's address and no certificate asks for keys: refused, named, counted."""
    mark = log_size(lab.gwa)
    lab.gwb.stop()
    sh("ip", "-n", lab.net.gwb, "addr", "add", "192.0.2.2/24", "dev", "wanb")
    try:
        r = subprocess.run([*ns_argv(lab.net.gwb), sys.executable, "-c", NOBODY, certificates(lab.net) / "ca.pem"], capture_output=True, text=True, timeout=30)
        wait_for("A names it", lambda: "the peer has no certificate" in said_since(lab.gwa, mark), 10, 0.1)
        assert tunnel(lab.gwa)["keys"]["refused"] >= 1 and "certificate" in r.stdout.lower(), (tunnel(lab.gwa), r)
    finally:
        sh("ip", "-n", lab.net.gwb, "addr", "flush", "dev", "wanb")
        lab.gwb.start()
    wait_for("the tunnel is up", lambda: tunnel(lab.gwa)["state"] == "up", 20, 0.1)


@needs(gateway=True, ack_mode="far", timeout=120)
def test_security_revoked_far(lab):
    """B's certificate is revoked while hosts wait for the far end's ACKs (`far`): their queue pairs wait as in an outage, for ten times their own
    timers, and nothing is called done that is not. With a new certificate they go on, byte-exact."""
    lab.wan(rtt_ms=20)
    keep = lab.net.dir / "keep"
    shutil.rmtree(keep, ignore_errors=True)
    shutil.copytree(lab.net.dir / "ca", keep)
    try:
        t = lab.nccl_start(qps=4, steps=200, extra="--timeout 14")
        lab.wait_traffic(1000)
        ca(lab.net, "revoke", "site-b")
        wait_for("the tunnel is gone", lambda: tunnel(lab.gwa)["state"] == "down", 5, 0.02)
        time.sleep(0.5)  # what was under way arrives
        done = lab.rxe_delta(lab.b)["rcvd_pkts"]
        time.sleep(5)
        assert lab.rxe_delta(lab.b)["rcvd_pkts"] - done < 1000 and "revoked" in tunnel(lab.gwa)["keys"]["problem"], tunnel(lab.gwa)
        ca(lab.net, "issue", "site-b", "gateway")
        lab.gwb.reload()
        r = t.wait()
        assert r.ok, r
    finally:
        shutil.rmtree(lab.net.dir / "ca")
        keep.rename(lab.net.dir / "ca")


@needs(gateway=True, rekey="2s", second=True, timeout=300)
def test_security_attacker(lab):
    """Somebody in the WAN sends a million datagrams: replayed, changed, cut, of another tunnel, of keys of before, made up. Files and queue pairs notice
    nothing, and the gateways count them."""
    lab.wan(rtt_ms=20, loss=0.1)
    count = lab.scaled(1_000_000, 20000)
    before, marks = [summed(g) for g in (lab.gwa, lab.gwb)], [log_size(g) for g in (lab.gwa, lab.gwb)]
    attack = subprocess.Popen([BUILD / "tests/wan_attack", lab.net.wan, "wa", "wb", "4793", str(count), "15000"], stdout=subprocess.PIPE, text=True)
    try:
        while attack.poll() is None:
            copies = [Copy(lab, (lab.a, lab.b), mib=8), Copy(lab, (lab.b, lab.a), mib=8, port=7428)]
            for copy in copies:
                copy.check()
        said = attack.communicate()[0].splitlines()
    finally:
        attack.kill()
        attack.wait()
    assert attack.returncode == 0, said
    sent = json.loads(said[-1])
    after = [summed(g) for g in (lab.gwa, lab.gwb)]
    total = [0, 0]
    for i, g in enumerate((lab.gwa, lab.gwb)):
        refused = sum(after[i][k] - before[i][k] for k in REFUSED)
        assert refused > sent[i]["all"] * 0.7, (refused, sent[i], after[i])
        for t in g.ask("tunnels")["tunnels"]:
            assert t["state"] == "up" and t["peer_restarts"] == 0, t
            assert not (t["keys"]["ended"] or t["keys"]["refused"] or t["keys"]["failed"] or t["keys"]["problem"]), t
        assert "state=down" not in said_since(g, marks[i]), g.log_file
        assert not any(after[i][k] - before[i][k] for k in ("drop_bad_frame", "drop_crc", "drop_version")), after[i]
        total = [total[0] + sent[i]["all"], total[1] + refused]
    for g, peer in ((lab.gwa, lab.gwb), (lab.gwb, lab.gwa)):
        assert summed(g)["rx_datagrams"] <= summed(peer)["tx_datagrams"]
    lab.log(f"{total[0]} sent, {total[1]} refused")


@needs(gateway=True, security="none", timeout=60)
def test_security_none(lab):
    """In the clear it works as well, and nobody can overlook it."""
    r = lab.a.run(f"ping -c 3 -i 0.2 -W 2 {lab.b.ip4} >/dev/null && echo passed; true")
    assert r.out.strip() == "passed", r
    for g in (lab.gwa, lab.gwb):
        assert tunnel(g)["security"] == "none" and g.ask("status")["tunnels_in_clear"] == 1
        assert "SECURITY: NONE" in g.log_file.read_text(), g.log_file
        assert any(c["name"] == "security" and "1 of 1" in c["detail"] for c in g.ask("health")["checks"])
