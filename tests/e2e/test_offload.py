# SPDX-License-Identifier: Apache-2.0
# Offload by tc flower on a guest's real kernel. rwy_flower (tests/e2e/guest/rwy_flower.c) tests the
# gateway's own rules and backend with packets. Here the devices are made, and iproute2 reads the
# kernel's filters.
import json

from lab import needs

PORT, PEER = "swp", "swq"
SETUP = f"""set -e
ip link add {PORT} address 02:00:00:00:01:01 type veth peer name {PEER} address 02:00:00:00:02:02
sysctl -qw net.ipv6.conf.{PEER}.disable_ipv6=1 || true
ip addr add 192.0.2.1/24 dev {PORT}
ip link set {PORT} up; ip link set {PEER} up
ip neigh add 192.0.2.11 lladdr 02:00:00:00:02:02 dev {PORT}"""
CLEAN = f"ip link del {PORT}; ip link del rwy-vxlan; true"


def filters(host, name):
    """[(preference, protocol, keys, [action], packets)], from `tc -s -j`."""
    found = []
    for f in json.loads(host.get(f"/tmp/{name}.json") or b"[]"):
        o = f.get("options", {})
        if "keys" in o:
            actions = o["actions"]
            found.append((f["pref"], f["protocol"], o["keys"], actions, actions[0].get("stats", {}).get("packets", 0), o))
    return found


def one(found, **want):
    """The only filter with these keys."""
    hit = [f for f in found if all(f[2].get(k) == v for k, v in want.items())]
    assert len(hit) == 1, (want, len(hit), [f[2] for f in found])
    return hit[0]


def kinds(f):
    return [a["kind"] for a in f[3]]


@needs(timeout=120)
def test_offload_flower(lab):
    """Rules as tc flower filters in a kernel: what they drop, pass and forward; counters; changes;
    filters that an operator removes."""
    host = lab.a
    host.run(CLEAN, check=False)
    host.run(SETUP)
    try:
        r = host.run(f"rwy_flower {PORT} {PEER} /tmp", timeout=100, check=False)
        lab.log(r.text)
        bad = [line for line in r.out.splitlines() if line.startswith("FAIL")]
        assert r.ok and not bad, "\n".join(bad) or r.text[-800:]
        assert r.out.count("\nok  ") > 40, r.out
        port, vxlan = filters(host, "port"), filters(host, "vxlan")
        after = filters(host, "port-after") + filters(host, "vxlan-after")
    finally:
        host.run(CLEAN, check=False)
    lab.log(f"port: {port}\nvxlan: {vxlan}")
    # to a host of red's, in VXLAN only: its network is behind VTEPs
    f = one(vxlan, enc_key_id=5001, src_ip="10.1.0.66")
    assert f[1] == "ip" and f[2]["enc_dst_ip"] == "192.0.2.1" and f[2]["ip_proto"] == "udp" and f[2]["dst_port"] == 4791, f
    assert f[3][0]["control_action"]["type"] == "drop" and f[4] == 10 and f[5].get("not_in_hw"), f
    # the allow rule before the rule that denies ports
    f = one(vxlan, enc_key_id=5001, dst_ip="10.9.1.0/24")
    assert f[3][0]["control_action"]["type"] == "pass", f
    assert f[0] < one(vxlan, enc_key_id=5001, dst_ip="10.9.0.0/16")[0], vxlan
    f = one(port, vlan_id=101, dst_ip="10.9.0.0/16")
    assert f[1] == "802.1Q" and f[2]["vlan_ethtype"] == "ip" and f[4] == 10, f
    # forwarding, both ways
    f = one(vxlan, src_ip="10.1.0.5", dst_ip="10.3.0.7")
    assert kinds(f) == ["tunnel_key", "pedit", "csum", "vlan", "mirred"], kinds(f)
    assert f[2]["enc_src_ip"] == "192.0.2.11" and f[2]["src_mac"] == "02:00:00:00:00:0a", f
    f = one(port, src_ip="10.3.0.7", dst_ip="10.1.0.5")
    assert kinds(f) == ["vlan", "pedit", "csum", "tunnel_key", "mirred"], kinds(f)
    assert not any(f[2].get("enc_key_id") == 5002 and f[3][0]["control_action"]["type"] == "drop" and "dst_port" in f[2] for f in vxlan), "blue has no ACL"
    assert not after, after
