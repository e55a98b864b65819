#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queue rules without hardware: the real gateway with two workers on ports whose driver has no rte_flow (af_packet), and
on a tap, whose driver makes rules by tc flower if the kernel has it. Each port says what its device has and why it lacks
the rest; a reload with another tunnel asks for more. test_gw_queues.c has a device with rte_flow, and gw_smoke.py
traffic by way of two workers without rules. Needs root. Argument: the build folder."""
import json
import sys

import gw_lone as lone

OTHER = '  - {name: more, port: wan, local: "fd00:9::1", remote: "fd00:9::2", prefixes: [10.3.0.0/24], security: none, rate: 1Gbps}'


class Gateway(lone.Gateway):
    def __init__(self, folder, device, **more):
        super().__init__(folder, workers=2, device=device, **more)

    def said(self, what):
        """The lines at info level with these words."""
        return [line for line in self.text().splitlines() if " info offload: port=wan " in line and what in line]

    def rules(self):
        lan, wan = json.loads(self.cli("ports", "--json"))["ports"]
        assert lan["queue_rules"] is None, lan
        return wan["queue_rules"]


def test_no_rte_flow(folder):
    with Gateway(folder, "net_af_packet1,iface=wan0,qpairs=2") as g:
        q = g.rules()
        assert (q["rules"], q["installed"]) == (2, 0) and q["why"], q
        assert len(g.said("has 0 of 2 queue rules: " + q["why"])) == 1, g.text()
        text = g.cli("ports")
        assert " 0/2 " in text and "port wan: queue rules are missing: " + q["why"] in text, text
        g.write(OTHER)
        g.cli("reload")
        q = g.rules()
        assert (q["rules"], q["installed"]) == (4, 0), q
        assert len(g.said("has 0 of 4 queue rules: " + q["why"])) == 1, g.text()
        metrics = g.cli("metrics")
        for line in 'roceway_port_queue_rules{port="wan"} 4', 'roceway_port_queue_rules_installed{port="wan"} 0':
            assert line + "\n" in metrics, metrics
        g.write("")
        g.cli("reload")
        assert g.rules()["rules"] == 2


def test_one_queue(folder):
    with Gateway(folder, "net_af_packet1,iface=wan0") as g:
        assert g.rules() == {"rules": 0, "installed": 0, "why": "the device has fewer receive queues than there are workers"}
        assert len(g.said("has no queue rules")) == 1, g.text()


def test_off(folder):
    with Gateway(folder, "net_af_packet1,iface=wan0,qpairs=2", wan=", queue_rules: off") as g:
        assert g.rules() == {"rules": 0, "installed": 0, "why": "`queue_rules` is off"}


def test_tap(folder):
    """With flower the device has both; without, the reason is the driver's. Nothing remains."""
    with Gateway(folder, "net_tap0,iface=rgqtap") as g:
        q = g.rules()
        assert q["rules"] == 2 and q["installed"] in (0, 2) and (q["installed"] == 2) == (q["why"] == ""), q
        assert len(g.said("queue rules")) == 1, g.text()
        if q["installed"]:
            assert len(g.said("each worker gets its own datagrams: queue rules=2")) == 1, g.text()
            print("this kernel has flower: rules are installed")
    assert "rgqtap" not in lone.inside("ip", "link").stdout


sys.exit(lone.run(test_no_rte_flow, test_one_queue, test_off, test_tap))
