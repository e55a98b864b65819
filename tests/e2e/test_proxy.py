# SPDX-License-Identifier: Apache-2.0
# Relays: hosts A and B have no route to each other. Each connects to its relay's address, and the listen map says whom it means.
from lab import BAD_WAN, CM_TIMER, each, needs, short
from lab.copy import Copy
from test_carrier import move

PORTS = (7174, 7427, 7471)
RELAY = {4: "10.1.0.1", 6: "fd00:1::1"}  # beside host A


def apart(lab):
    """Takes the hosts' routes to each other; the next test gets them back."""
    lab.wan(**BAD_WAN)
    for h in (lab.a, lab.b):
        h.run(f"ip route del {h.far4}; ip -6 route del {h.far6}; true")
    r = lab.a.run(f"ip route get {lab.b.ip4} 2>&1; true")
    assert "unreachable" in r.out, r.out


def counters(relay):
    return {c["name"]: c["value"] for c in relay.ask("counters")["counters"]}


def rping(lab, rounds, ip=4):
    r = lab.pair(f"rping -s -V -C {rounds} -a {lab.b.ip(ip)} -p 7174", f"rping -c -V -C {rounds} -a {RELAY[ip]} -p 7174", port=7174, cm=True, timeout=60)
    assert r.ok, r


def ucmatose(lab):
    r = lab.pair("ucmatose -p 7471 -c 4 -C 10", f"ucmatose -s {RELAY[4]} -p 7471 -c 4 -C 10", port=7471, cm=True, timeout=60)
    assert r.ok, r


@short(only=4)
@each(ip=[4, 6])
@needs(gateway=True, relay=PORTS, timeout=90)
def test_relay_rping(lab, ip):
    """rping -V, 100 rounds."""
    apart(lab)
    rping(lab, 100, ip)


@each(direction=["a-b", "b-a"])
@needs(gateway=True, relay=PORTS, timeout=150)
def test_relay_rcopy(lab, direction):
    """rcopy of a 64 MiB file: equal checksums. rsockets have rkeys and addresses in their private data."""
    apart(lab)
    src, dst = (lab.a, lab.b) if direction == "a-b" else (lab.b, lab.a)
    Copy(lab, (src, dst), mib=lab.scaled(64, 8), to=src.gw4).check(120)


@each(carrier=["tcp", "quic"])
@needs(gateway=True, relay=PORTS, timeout=180)
def test_relay_move(lab, carrier):
    """rcopy of a 24 MiB file while the relays' tunnel moves to TCP or QUIC and back, on request of either end: equal checksums, and no
    host repeats anything."""
    apart(lab)
    before = [g.carrier() for g in lab.gateways]
    copy = Copy(lab, (lab.a, lab.b), mib=24, to=RELAY[4])
    lab.wait_traffic(500)
    for g in lab.gateways:
        move(lab, g, carrier)
        lab.wait_traffic(500)
        move(lab, g, "native")
        lab.wait_traffic(500)
    assert copy.running(), "the file was copied before the moves ended"
    copy.check(120)
    again = lab.host_retransmits(timer=CM_TIMER)
    assert not again, again
    for b, g in zip(before, lab.gateways):
        c = g.carrier()
        moves = f"moves_to_{carrier}"
        assert c[moves] - b[moves] == 2 and not c["fallbacks"], c


@needs(gateway=True, relay=PORTS, timeout=90)
def test_relay_ucmatose(lab):
    """ucmatose: four connections at a time, and their end."""
    apart(lab)
    ucmatose(lab)


@needs(gateway=True, relay=PORTS)
def test_relay_no_listener(lab):
    """Nobody listens at the target, or on the relay's port: the client gets the REJ that the real host gives."""
    apart(lab)
    said = {}
    # The relay refuses a port without entry itself, in the same words as host B refuses its own.
    for what, port in (("target", 7174), ("relay", 7999)):
        r = lab.a.run(f"rping -c -C 1 -a {RELAY[4]} -p {port} 2>&1; true")
        said[what] = [line.replace(str(port), "PORT") for line in r.out.splitlines() if "event" in line or "REJ" in line]
    assert said["target"] and said["target"] == said["relay"], said
    assert "REJECTED" in " ".join(said["target"]), said
    near = counters(lab.gwa)
    assert near["refused_no_map"] >= 1 and near["links_rejected"] >= 1, near


@needs(gateway=True, relay=PORTS)
def test_relay_map(lab):
    """An entry that comes and goes while the relay runs; wrong ones change nothing."""
    apart(lab)
    add = f"map add extra listen={RELAY[4]} port=9000 target={lab.b.ip4} target_port=7174".split()
    entries = len(lab.gwa.ask("map")["map"])
    for wrong in (["listen=10.1.0.9"], [f"target={RELAY[4]}"], ["port=7174"], ["port=0"], ["colour=red"]):
        keys = {w.split("=")[0] for w in wrong}
        words = [w for w in add if w.split("=")[0] not in keys] + wrong
        code, _, err = lab.gwa._cli(*words)
        assert code and err.strip(), (words, code, err)
    assert len(lab.gwa.ask("map")["map"]) == entries
    lab.gwa._do(*add)
    assert lab.gwa._cli(*add)[0] != 0  # twice
    r = lab.pair(f"rping -s -V -C 10 -a {lab.b.ip4} -p 7174", f"rping -c -V -C 10 -a {RELAY[4]} -p 9000", port=7174, cm=True)
    assert r.ok, r
    links = lab.gwa.ask("links")["links"]
    assert any(link["port"] == 7174 and link["in_packets"] for link in links), links
    assert {link["link"] for link in links} & {link["link"] for link in lab.gwb.ask("links")["links"]}
    lab.gwa._do("map", "del", "extra")
    assert lab.gwa._cli("map", "del", "extra")[0] != 0
    r = lab.a.run(f"rping -c -C 1 -a {RELAY[4]} -p 9000 2>&1; true")
    assert "REJECTED" in r.out, r.out
