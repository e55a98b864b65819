#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flight recorder of real gateways, with queue pairs between two hosts (the world of gw_drain.py): what it has of
a connection that runs, of one whose host dies, and of a gateway that is killed. Needs root. Argument: the build folder.
"""
import json
import os
import re
import sys
import time

sys.dont_write_bytecode = True
import gw_drain as world  # noqa: E402
import gw_smoke as lab  # noqa: E402


def entries(folder, *words):
    r = world.roceway(folder, "recorder", "--json", "--limit", "10000", *words)
    assert r.returncode == 0, r
    return json.loads(r.stdout)["entries"]


def kinds(list_):
    return {e["kind"] for e in list_}


def recorder_file(folder, end):
    return os.path.join(folder, "roceway-%sa.recorder%s" % (lab.TAG, end))


def test_running(folder):
    with world.running(folder) as (a, _, _, load):
        seen = entries(folder)
        assert {"start", "tunnel", "begin", "pair", "responder", "requester"} <= kinds(seen), kinds(seen)
        # Some thousands of operations, and a loss in 200 datagrams of the WAN: packets leave no entries.
        assert load.done >= 2000 and len(seen) < 500, len(seen)
        flow = json.loads(world.roceway(folder, "flows", "--json").stdout)["flows"][0]
        mine = entries(folder, "--local", flow["local"], "--qpn", str(flow["remote_qpn"]))
        assert mine and all(flow["remote_qpn"] in (e["remote_qpn"], e["local_qpn"]) for e in mine)
        r = world.roceway(folder, "why", flow["local"], flow["remote"], str(flow["local_qpn"]))
        assert r.returncode == 0, r
        for text in "paired, last packet", " sends ", "Tunnel far: round trip", "TIME (UTC)":
            assert text in r.stdout, (text, r.stdout)
        r = world.roceway(folder, "why", flow["local"], flow["remote"])
        assert r.returncode == 1 and "%d connections match" % world.QPS in r.stderr, r
        load.finish()
        assert a.stop()[0] == 0
        # A stop in order: its record is kept, and is of no crash.
        a.start().wait("tunnel=far state=up")
        assert "did not stop in order" not in a.text()
        assert kinds(entries(folder, "--file", recorder_file(folder, ".last"))) >= {"start", "pair", "drain"}


def test_killed(folder):
    with world.running(folder) as (a, _, _, _):
        a.kill()
        # Before and after the next start.
        before = entries(folder, "--file", recorder_file(folder, ""))
        assert {"start", "tunnel", "pair"} <= kinds(before), kinds(before)
        a.start().wait("tunnel=far state=up")
        m = re.search(r"warning recorder: the process before did not stop in order: .*--file (\S+)", a.text())
        assert m and m.group(1) == recorder_file(folder, ".crash"), a.text()
        after = entries(folder, "--file", m.group(1))
        assert [e["text"] for e in after] == [e["text"] for e in before]
        # The new process took the connections up, and says so.
        assert any(e["kind"] == "sent" and e["to"] == "RESUME" for e in entries(folder))
        # What died with it, requests with ACKs or answers, ends its connection.
        assert all("in a gateway restart" in e["text"] or "could not be delivered" in e["text"] for e in entries(folder, "--kind", "fail"))


def test_hosts_die(folder):
    with world.running(folder) as (a, _, _, load):
        load.kill()
        end = time.monotonic() + lab.READY
        while not entries(folder, "--kind", "fail"):
            assert time.monotonic() < end, "nothing failed"
            time.sleep(0.2)
        fail = entries(folder, "--kind", "fail")[0]
        qpn = fail["remote_qpn"] or fail["local_qpn"]
        r = world.roceway(folder, "why", fail["local"], fail["remote"], str(qpn), "--interval", "0")
        assert r.returncode == 0 and re.search(r"It failed at \d{4}-\d\d-\d\d", r.stdout), r
        # The other gateway is asked too, about the same connection.
        both = world.roceway(folder, "why", fail["local"], fail["remote"], str(qpn), "--interval", "0", "--json", "--other", os.path.join(folder, "b.sock"))
        assert both.returncode == 0 and not both.stderr, both
        other = json.loads(both.stdout)["other"]
        assert other["entries"] and all((e["local"], e["remote"]) == (fail["remote"], fail["local"]) for e in other["entries"]), other
        a.wait('more="roceway why %s %s ' % (fail["local"], fail["remote"]))
        # The log has what came before, of some of them.
        a.wait("info recorder: worker=0 local=%s local_qpn=" % fail["local"])


if __name__ == "__main__":
    sys.exit(world.main(globals()))
