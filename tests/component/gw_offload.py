#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Offload without hardware: the real gateway with `offload` on ports whose driver lacks rte_flow,
and on a kernel interface that may or may not support tc filters. Every rule is shown with its place
and reason; tenants are added and removed nevertheless; nothing remains afterwards.
tests/e2e/test_offload.py tests a kernel with flower. Needs root. Argument: the build folder."""
import json
import sys

import gw_lone as lone

TENANTS = """tenants:
  - name: red
    vni: 5001
    vlan: 101
    prefixes: [{prefix: 10.7.0.0/24, at: vtep}, {prefix: 10.7.1.0/24, at: vlan}, {prefix: 10.8.0.0/24, at: far}]
    vteps: [10.1.0.11]
    hosts:
      - {address: 10.7.0.5, mac: "02:00:00:00:00:05", vtep: 10.1.0.11}
      - {address: 10.7.1.6, mac: "02:00:00:00:00:06"}
    acl:
      - {action: deny, source: 10.7.0.66/32, destination: 0.0.0.0/0}
      - {action: deny, source: 10.7.0.0/24, destination: 0.0.0.0/0, operations: [write]}"""


class Gateway(lone.Gateway):
    def __init__(self, folder, offload):
        super().__init__(folder, lan=", " + offload, more=TENANTS)

    def rules(self):
        return json.loads(self.cli("offload", "--json"))


def changes(g, wrong):
    """Rules follow a change; `wrong`: values that a rule must not have."""
    before = g.rules()
    acl = [r for r in before["rules"] if r["what"] == "acl" and r["acl_rule"] == 0]
    assert acl and acl[0]["tenant"] == "red" and "src 10.7.0.66/32" in acl[0]["match"], before
    assert any(r["acl_rule"] == 1 and "opcode" in r["match"] for r in before["rules"]), before
    assert any(r["what"] == "unknown-vni" for r in before["rules"]), before
    assert not [r for r in before["rules"] if wrong(r)], before
    # between the two sides as workers do it: the ACL allows one direction
    forward = [r for r in before["rules"] if r["what"] == "forward"]
    assert sorted(bool(r["why"] and "denies" in r["why"]) for r in forward) == [False, True], forward
    assert ["10.7.1.6" in r["match"].split("src")[1].split()[0] for r in forward if "denies" not in (r["why"] or "")] == [True], forward
    g.cli("tenant", "add", "blue", "vni=5002", "prefix=10.7.0.0/24@vtep", "vtep=10.1.0.12")
    more = g.rules()
    assert [r for r in more["rules"] if r["tenant"] == "blue"] and not [r for r in more["rules"] if wrong(r)], more
    g.cli("tenant", "del", "red")
    less = g.rules()
    assert {r["tenant"] for r in less["rules"]} == {"blue", ""}, less
    assert "unknown-vni" in g.cli("offload")


def test_rte_flow(folder):
    """af_packet has no rte_flow: all rules are in software, with the driver's message."""
    with Gateway(folder, "offload: rte_flow") as g:
        port = g.rules()["ports"][0]
        assert (port["name"], port["backend"], port["hardware"], port["kernel"]) == ("lan", "rte_flow", 0, 0) and port["software"] > 5, port
        changes(g, lambda r: r["where"] != "software" or not r["why"])
        whys = {r["why"] for r in g.rules()["rules"]}
        assert any("not supported" in w or "not implemented" in w for w in whys), whys


def test_tc(folder):
    """In the kernel if possible, otherwise in software with the kernel's message; removed
    afterwards."""
    with Gateway(folder, "offload: tc, offload_device: lan0") as g:
        port = g.rules()["ports"][0]
        assert port["backend"] == "tc" and port["hardware"] == 0 and port["device"] == "lan0", port
        if port["kernel"] + port["software"] == 0:  # this kernel has no place for filters
            assert port["error"], port
            g.cli("tenant", "del", "red")
        else:
            changes(g, lambda r: r["where"] == "hardware" or (r["where"] == "software") != bool(r["why"]))
    left = lone.inside("tc", "filter", "show", "dev", "lan0", "ingress").stdout
    assert "flower" not in left, left
    assert "rwy-vxlan" not in lone.inside("ip", "link").stdout


def test_no_device(folder):
    """A device that does not exist: reported, and everything works without it."""
    with Gateway(folder, "offload: tc, offload_device: nothere0") as g:
        port = g.rules()["ports"][0]
        assert "nothere0" in port["error"], port
        assert "nothere0" in g.text()
        g.cli("tenant", "del", "red")


sys.exit(lone.run(test_rte_flow, test_tc, test_no_device))
