# SPDX-License-Identifier: Apache-2.0
# A tenant's host that knows everything about another tenant forges its packets (lab/forgery.py):
# nothing arrives, no state changes, every frame is one drop with a counter. The attacker is on the
# LAN of site A beside the victim's near host, with a MAC address of its own.
import logging
import signal
import time

from lab import frames, needs
from lab.copy import Copy
from lab.forgery import MARK, SPORT, Known, draw
from lab.host import MACS
from lab.proc import ns_argv, sh, wait_for
from lab.tenant import Tenant

SLOW = ("limit: 8Mbps",)  # so that the transfer still runs when it is stopped
RED = Tenant("red", 5001, more=SLOW)
BLUE = Tenant("blue", 5002, hosts=("c", "d"))
RED6 = Tenant("red", 5001, underlay=6, more=SLOW)
BLUE6 = Tenant("blue", 5002, hosts=("c", "d"), underlay=6)
# On a VLAN only the source MAC tells hosts apart, so it is configured.
TAGGED = Tenant("red", 5001, at=("vlan", "vtep"), vlan=101, more=SLOW, here=(("a", (f'hosts: [{{address: 172.16.1.2, mac: "{MACS["a"]}"}}]',)),))
SEED = 4711
RING = 256  # most frames on their way to the gateway: its port holds 512
BACKGROUND = ("drop_tenant_mac", "drop_wan_unresolved")  # guests' multicasts; the WAN's ARP. No forgery counts here.
QUIET_FLOW = ("local", "local_qpn", "remote", "remote_qpn", "state", "responder_psn", "responder_acked", "requester_una", "requester_nxt", "tx_packets", "rx_packets")


def knowledge(lab):
    """All about red, for a packet source beside host c."""
    v = lab.tenants[0].underlay
    red_a, red_b = lab.tenant("red")
    flows = [f for g in lab.gateways for f in g.flows("red")]
    lan_mac = sh(*ns_argv(lab.net.gwa), "cat", "/sys/class/net/lana/address").strip()
    def link(m): return frames.mac(m.run(f"cat /sys/class/net/{m.dev}/address").out.strip())
    # the gateway's MAC in a tenant, unless configured
    def own(t): return b"\x02\x52\x57" + t.vni.to_bytes(3, "big")
    return Known(mac=frames.mac(lab.c.mac), gw_mac=frames.mac(lan_mac), ip=frames.addr(lab.c.ip(v)),
                 gw_ip=frames.addr(lab.c.gw4 if v == 4 else lab.c.gw6), vni=lab.tenants[1].vni, inner_gw_mac=own(lab.tenants[1]),
                 v_vni=lab.tenants[0].vni, v_vlan=lab.tenants[0].vlan or 101, v_inner_gw_mac=own(lab.tenants[0]), v_mac=link(red_a),
                 v_ip=frames.addr(lab.a.ip(v)), v_far_ip=frames.addr(lab.b.ip(v)), src=frames.addr(red_a.ip4), dst=frames.addr(red_b.ip4),
                 qpns=sorted({f[k] for f in flows for k in ("local_qpn", "remote_qpn")}), psns=[f[k] for f in flows for k in ("responder_psn", "requester_nxt")])


def inject(lab, known, seed, count, wait=True):
    """Sends so many; {kind: frames}. wait: waits now and then until the gateway has taken them, so
    that no ring overflows."""
    wire, kinds = frames.Injector(lab.net.gwa, "atk"), {}
    taken, sent = lab.gwa.sum("rx_packets"), 0
    for kind, frame in draw(known, seed, count):
        wire.send(frame)
        kinds[kind] = kinds.get(kind, 0) + 1
        sent += 1
        if sent % RING == 0 or sent == count:
            for _ in range(200):
                if not wait or lab.gwa.sum("rx_packets") - taken >= sent:
                    break
                time.sleep(0.02)
            else:
                raise AssertionError(f"of {sent} frames the gateway has taken {lab.gwa.sum('rx_packets') - taken}")
    wire.close()
    return kinds


def arrived(path):
    """Forged packets in a capture."""
    data = path.read_bytes()
    return data.count(MARK) + data.count(SPORT.to_bytes(2, "big") + frames.ROCE.to_bytes(2, "big"))


def state(lab):
    """The state of red at both gateways, without the counters of refusals."""
    flows = [sorted(tuple(f[k] for k in QUIET_FLOW) for f in g.flows("red")) for g in lab.gateways]
    count = [{k: g.tenant("red")[k] for k in ("accepted", "delivered", "flows", "rx_packets", "tx_packets")} for g in lab.gateways]
    return flows, count


def scapy_agrees(known):
    """Another maker of packets reads a sample in the same way and computes the same ICRC."""
    logging.getLogger("scapy").setLevel(logging.ERROR)
    from scapy.contrib.roce import BTH
    from scapy.layers.l2 import Ether
    from scapy.layers.vxlan import VXLAN
    seen = 0
    for kind, frame in draw(known, SEED, 300):
        p = Ether(frame)
        if kind in ("victims_vni", "victims_vtep") and len(known.ip) == 4:
            assert p[VXLAN].vni == known.v_vni and p[BTH].haslayer(BTH), p.summary()
            icrc = p[BTH].icrc
            p[BTH].icrc = None
            assert Ether(bytes(p))[BTH].icrc == icrc, p.summary()
            seen += 1
    return seen


def forge(lab, count=20000, more=10000):
    lab.wan(rtt_ms=20)
    blue = Copy(lab, lab.tenant("blue"), 0.125)  # learned, idle
    blue.check()
    red = Copy(lab, lab.tenant("red"), 4)
    wait_for("red's transfer", lambda: any(f["rx_packets"] > 50 for f in lab.gwb.flows("red")), 40, 0.01)
    red.client.kill(signal.SIGSTOP)  # the connection stays, without packets on their way
    at_rest(lambda: state(lab))
    known = knowledge(lab)
    assert red.running() and known.qpns, "red's connection is gone before anybody attacked it"
    scapy_agrees(known)
    before, drops = state(lab), lab.gwa.drops()
    with lab.capture("tapa") as wire_a, lab.capture("tapb") as wire_b:
        kinds = inject(lab, known, SEED, count)
    moved = at_rest(lab.gwa.drops)
    after = state(lab)
    moved = {k: n - drops.get(k, 0) for k, n in moved.items() if n != drops.get(k, 0) and k not in BACKGROUND}
    lab.log(f"{count} frames: {kinds}\ndrops: {moved}")
    assert (arrived(wire_a), arrived(wire_b)) == (0, 0), "forged packets reached the victim's hosts"
    assert after == before, f"{before}\n{after}"
    assert sum(moved.values()) == count, f"{sum(moved.values())} drops for {count} frames: {moved}; sent {kinds}"
    # The same while the victim's transfer continues: every byte right.
    red.client.kill(signal.SIGCONT)
    with lab.capture("tapb") as wire_b:
        inject(lab, known, SEED + 1, more)
        red.check(90)
    assert arrived(wire_b) == 0
    assert lab.gwa.alive() and lab.gwb.alive()


def at_rest(look, seconds=30):
    """The result of `look` once it is equal twice."""
    last, end = look(), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.5)
        now = look()
        if now == last:
            return now
        last = now
    raise AssertionError(f"does not come to rest: {last}")


@needs(gateway=True, timeout=240, tenants=(RED, BLUE))
def test_tenant_forged(lab):
    """30,000 forged frames of every kind: none arrives, each is counted."""
    forge(lab)


@needs(gateway=True, timeout=240, tenants=(RED6, BLUE6))
def test_tenant_forged_underlay6(lab):
    """The same, IPv6 underlay."""
    forge(lab)


@needs(gateway=True, timeout=240, tenants=(TAGGED, BLUE))
def test_tenant_forged_vlan(lab):
    """The same against a victim on a VLAN, whose tag the attacker's port passes."""
    forge(lab)
