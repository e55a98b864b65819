#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# controller_page.py BUILD [--save DIR]: the controller's page in headless Chromium, on a controller with three sites, their gateways (as the
# API sees them), tenants, a job, sessions and measurements. Each view must show what the API knows, and text must stay text.
# --save writes a picture of each view (docs/page-*.png).
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import cases  # noqa: E402
from ctlr.harness import CA, Controller, Gateway, Member, temporary, until  # noqa: E402

SITES = {"hohhot": (1, 40_840_000, 111_750_000), "guiyang": (2, 26_650_000, 106_630_000), "shanghai": (3, 31_230_000, 121_470_000)}
LINKS = {("hohhot", "guiyang"): (38_000, 120), ("hohhot", "shanghai"): (27_000, 0), ("guiyang", "shanghai"): (31_000, 14_000)}
PAIRS = ["guiyang-1", "shanghai-2"]
EVIL = "<img src=x onerror=document.title='broken'>"
world = None


class World:
    """Controller, operator and gateways; nothing changes afterwards."""

    def __init__(self, build, directory):
        ca = CA(directory / "ca")
        ca.issue("ctl", "controller", "127.0.0.1")
        (directory / "paths.json").write_text(json.dumps({"paths": [
            {"first": "guiyang", "second": "shanghai", "edge": edge, "name": name, "bandwidth_bps": bps, "delay_us": 15_500, "jitter_us": 40}
            for edge, name, bps in (("pe-1", "north", 6 * 10**9), ("pe-1", "south", 3 * 10**9), ("pe-2", "east", 4 * 10**9))]}))
        self.controller = Controller(build, ca, directory, f"{{kind: sqlite, path: {directory}/store.db}}", lease="600s",
                                     extra=f"providers: [{{name: fibres, kind: static, file: {directory}/paths.json}}]\n")
        self.operator = self.controller.client(ca.issue("op", "operator"))
        self.gateways = {}
        for name, (n, lat, lon) in SITES.items():
            self.operator.put(f"/v1/sites/{name}", {"prefixes": [f"10.{n}.0.0/16"], "location": name.title(), "latitude_udeg": lat, "longitude_udeg": lon}, 201)
            for i in (1, 2):
                gw = f"{name}-{i}"
                more = {"bandwidth": (40 if i == 1 else 10) * 10**9}
                client = self.controller.client(ca.issue(gw, "gateway"))
                if gw in PAIRS:
                    self.gateways[gw] = self.pair(ca, gw, name, 10 * n + i, **more)
                    continue
                g = Gateway(client, gw, name, 10 * n + i, **more)
                g.register()
                g.document()
                g.renew(load={"sessions": 8 * i, "rate_bps": 3_200_000_000 * i, "cpu_ppm": 210_000 * i, "custody_ppm": 12_000})
                self.gateways[gw] = g
        for (a, b), (rtt, loss) in LINKS.items():
            for x, y in ((a, b), (b, a)):
                for g in (1, 2):
                    self.gateways[f"{x}-{g}"].client.post(f"/v1/gateways/{x}-{g}/links", {"links": [
                        {"peer": f"{y}-{i}", "carrier": "native", "rtt_us": rtt + 400 * i, "rtt_min_us": rtt, "jitter_us": 300, "loss_ppm": loss, "burst": 8 if loss > 1000 else 1,
                         "bandwidth_bps": 9_400_000_000, "age_ms": 100} for i in (1, 2)]})
        self.operator.put("/v1/links/hohhot/guiyang/carrier-net", {"class": "deterministic", "bandwidth_bps": 10**10, "delay_us": 19_000, "jitter_us": 50,
                                                                   "loss_ppm": 10, "ttl_ms": 600_000})
        self.operator.put("/v1/tenants/red", {"vni": 5001, "sites": {s: {"prefixes": [{"prefix": f"172.16.{n}.0/24", "at": "vtep"}]} for s, (n, _, _) in SITES.items()},
                                              "guarantee": "5Gbps", "weight": 2}, 201)
        self.operator.post("/v1/jobs", {"name": "train", "pairs": [{"source": f"10.1.0.{i}", "destination": f"10.2.0.{i}", "bandwidth_bps": 400_000_000} for i in range(1, 9)]}, 201)
        self.operator.post("/v1/jobs", {"name": "backup", "pairs": [{"source": "10.2.0.9", "destination": "10.3.0.9", "bandwidth_bps": 11 * 10**9, "delay_us": 20_000}]}, 201)
        self.operator.post("/v1/jobs", {"name": "rings", "granularity": "qp", "pairs": [
            {"source": "10.1.0.1", "destination": "10.2.0.1", "source_qpn": 700 + i, "destination_qpn": 800 + i, "bandwidth_bps": 10**8} for i in range(4)]}, 201)
        bulk = [{"source": f"10.1.1.{i}", "destination": f"10.3.1.{i}", "bandwidth_bps": 10**9} for i in range(8)]
        for i in range(10):
            if self.operator.ask("POST", "/v1/jobs", {"name": f"bulk{i}", "pairs": bulk})[0] == 409:
                break  # the gateways are full
        self.urgent = self.operator.post("/v1/jobs", {"name": "urgent", "pairs": bulk, "priority": 5, "preempt": True}, 201)
        self.operator.post("/v1/jobs", {"name": "weights", "pairs": [{"source": "10.1.0.40", "destination": "10.2.0.40", "bytes": 235 * 10**9}], "within_ms": 3600_000,
                                        "priority": 3, "dscp": 46}, 201)
        self.gateways["guiyang-1"].open(("10.2.0.9", "10.3.0.9"))
        self.gateways["hohhot-1"].open(*((f"10.1.0.{i}", f"10.3.0.{i}") for i in range(20, 32)))
        self.relays(ca)
        self.operator.put("/v1/sites/shanghai", {**self.site("shanghai"), "location": EVIL})

    def pair(self, ca, gw, site, n, **more):
        """Of one the standby took over and has no standby itself yet; the other one is whole."""
        one, two = (Member(self.controller.client(ca.context(gw)), gw, site, n, m, **more) for m in ("rack-1", "rack-2"))
        for m in one, two:
            m.register()
            m.document()
        one.say("paired", "ready", 6, served="granted")
        two.say("ready", "paired", 6)
        until(lambda: self.operator.get(f"/v1/gateways/{gw}")["pair"]["protected"])
        load = {"sessions": 9, "rate_bps": 4_100_000_000, "cpu_ppm": 230_000, "custody_ppm": 11_000}
        if gw == PAIRS[1]:
            two.say("alone", None, 7, served="silent", load=load)
            until(lambda: self.operator.get(f"/v1/gateways/{gw}")["pair"]["serves"] == "rack-2")
            return two
        one.say("paired", "ready", 6, served="granted", load=load)
        return one

    def relays(self, ca):
        """Two, with a link that both report, one that only one does yet, and a host."""
        for gw, (site, n) in {"relay-h": ("rented-a", 91), "relay-s": ("rented-b", 93)}.items():
            self.operator.put(f"/v1/sites/{site}", {"prefixes": [f"10.{n}.0.0/16"], "peers": ["rented-a", "rented-b"]}, 201)
            g = Gateway(self.controller.client(ca.issue(gw, "gateway")), gw, site, n)
            g.reg["capabilities"]["relay"] = {"addresses": [f"10.{n}.0.254"], "ask_port": 4795, "redirect_port": 4790, "links_max": 500}
            g.register()
            g.renew(load={"sessions": 1, "rate_bps": 10**9, "cpu_ppm": 1000, "custody_ppm": 0, "links": 2})
            self.gateways[gw] = g
        until(lambda: any(t["name"] == "relay-h/relay-s" and t["state"] == "up" for t in self.operator.get("/v1/tunnels?limit=1000")["tunnels"]))

        def link(gw, n, source, destination, qpn, more, id_):
            g = self.gateways[gw]
            g.client.post(g.path("/sessions"), {"sessions": [{"id": f"l{n}", "event": "opened", "source": source, "destination": destination, "source_qpn": qpn,
                                                             "tunnel": more, "link": id_, "relay": g.reg["capabilities"]["relay"]["addresses"][0], "bytes": 5 * 10**6}]})
        self.gateways["relay-h"].client.post("/v1/gateways/relay-h/links", {"links": [
            {"peer": "relay-s", "carrier": "native", "rtt_us": 20_400, "rtt_min_us": 20_000, "jitter_us": 100, "loss_ppm": 10_000, "burst": 1,
             "bandwidth_bps": 9_400_000_000, "age_ms": 100}]})
        link("relay-h", 1, "10.91.0.77", "10.93.0.77", 4711, "relay-s", "00000000000000aa")
        link("relay-s", 1, "10.93.0.77", "10.91.0.77", 815, "relay-h", "00000000000000aa")
        link("relay-h", 2, "10.91.0.78", "10.93.0.78", 4712, "relay-s", "00000000000000ab")
        self.controller.client(ca.issue("node-7", "host")).post("/v1/hosts/node-7/lease", {
            "boot_id": "b", "site": "rented-a", "version": "0.1.0", "generation": 7, "down": ["10.91.0.254"]})

    def site(self, name):
        said = self.operator.get(f"/v1/sites/{name}")
        return {k: v for k, v in said.items() if k != "name"}


def chromium(view, *words):
    with tempfile.TemporaryDirectory() as profile:
        r = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}",
                            "--window-size=1400,820", "--virtual-time-budget=5000", *words, f"http://127.0.0.1:{world.controller.page}/#/{view}"],
                           capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stderr[-500:]
    return r.stdout


def text(dom):
    body = dom[dom.index("<body"):]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)).replace("&lt;", "<").replace("&gt;", ">")


def shown(view, *words):
    dom = chromium(view, "--dump-dom")
    said = text(dom)
    assert f'data-ready="{view.split("/")[0]}"' in dom, said[:400]
    assert re.search(r'id="trouble"[^>]* hidden', dom), said[:400]
    assert "<title>broken" not in dom and "onerror=" not in re.sub(r"&lt;.*?&gt;", "", dom)
    for w in words:
        assert w in said, f"{view}: no {w!r} in: {said[:1500]}"
    return said


def test_network():
    shown("network", "hohhot", "guiyang", "2/2 up", "4/4 tunnels, native", "38.4 ms to 38.8 ms", "1.40 %", "8 of 8 gateways up")


def test_gateways():
    said = shown("gateways", *world.gateways, "40.0 Gbit/s", "3.20 Gbit/s", "21.0 %")
    assert said.count(" up ") >= 6
    shown("gateways", "Pair", "protected", "rack-1 serves, rack-2 ready", "not protected", "rack-1 silent, rack-2 serves", "4.10 Gbit/s")


def test_pairs():
    """Which of the two serves, why the other one could not take over, and what happened."""
    for view in "network", "gateways":
        shown(view, "1 of 2 pairs protected")
    shown("network", "Pairs that are not protected", "shanghai-2", "rack-2 is alone: rack-1 is silent")
    shown("gateways/shanghai-2", "not protected", "rack-2 is alone: rack-1 is silent", "rack-2", "Epoch 7", "the one that served was silent",
          "takeover: rack-2 serves instead of rack-1 since", "epoch 7 after 6")
    shown("gateways/guiyang-1", "protected", "rack-1 serves, and rack-2 has everything", "ready", "paired")
    said = shown("gateways/guiyang-2", "192.0.2.22:4793", "What happened")
    assert "The two of the pair" not in said, said


def test_tunnels():
    shown("tunnels", "guiyang-1/hohhot-1", "native", "9.40 Gbit/s", "13 of 13", "12.1 Gbit/s")


def test_sessions():
    shown("sessions", "10.1.0.20 → 10.3.0.20", "hohhot-1", "16 of 16")


def test_explained():
    one = world.operator.get("/v1/sessions?limit=1")["sessions"][0]
    why = world.operator.get(f"/v1/sessions/{one['id']}/explain")
    shown(f"sessions/{one['id']}", one["id"], why["rule"], "Carriers and what each promised", "native", "Inputs")


def test_tenants():
    shown("tenants", "red", "5001", "172.16.1.0/24", "5Gbps")


def test_jobs():
    shown("jobs", "train", "planned", "8", "guiyang – shanghai: 12.1 Gbit/s, multi-path")
    shown("jobs/train", "10.2.0.1 → 10.1.0.1", "native")
    shown("jobs/weights", "pairs of 235 GB, until 20", "priority 3, DSCP 46")
    shown("jobs/urgent", f"it took the room of {', '.join(world.urgent['preempts'])}")
    shown(f"jobs/{world.urgent['preempts'][0]}", "preempted by urgent")
    shown("jobs/rings", "802 → 702", "native")
    shown("jobs/backup", "Tunnels in networks", "backup~guiyang~shanghai", "fibres", "pe-1", "south", "multi-path", "15.5 ms")
    shown("sessions/guiyang-1:10.2.0.9-10.3.0.9", "In the network, for job backup", "several paths at an edge, shared by their bandwidth", "pe-2")


def test_links():
    shown("links", "hohhot-1", "in bursts of 8", "carrier-net", "deterministic", "19.0 ms", "backup~guiyang~shanghai", "reserved")


def test_relays():
    said = shown("relays", "relay-h", "10.91.0.254", "500", "00000000000000aa", "10.91.0.77", "4711", "relay-h/relay-s", "10.93.0.77", "815", "5.00 MB", "20.4 ms", "1.00 %", "10.91.0.78", "node-7")
    assert "hohhot-1" not in said, said  # a gateway, but no relay
    shown("network", "gateways up")


def test_events():
    shown("events", "hohhot-1", "train", "takeover: rack-2 serves instead of rack-1")


def test_nobody_answers():
    """The page reports that the controller is away; it was loaded before, so only its requests
    fail."""
    with tempfile.TemporaryDirectory() as d:
        page = Path(d) / "page"
        subprocess.run(["cp", "-r", Path(__file__).parents[2] / "controller/page", page], check=True)
        server = subprocess.Popen([sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", page], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env={**os.environ, "PYTHONUNBUFFERED": "1"})
        try:
            port = re.search(r"port (\d+)", server.stdout.readline()).group(1)
            dom = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={d}/profile", "--virtual-time-budget=5000",
                                  "--dump-dom", f"http://127.0.0.1:{port}/#/network"], capture_output=True, text=True, timeout=120).stdout
        finally:
            server.kill()
            server.wait()
    assert not re.search(r'id="trouble"[^>]* hidden', dom) and "refused" in text(dom), text(dom)[:400]


PICTURES = ["network", "gateways", "pair", "tunnels", "sessions", "session", "relays", "tenants", "jobs", "links", "events"]
code = 0


def save(directory):
    one = world.operator.get("/v1/sessions?limit=1")["sessions"][0]["id"]
    world.operator.put("/v1/sites/shanghai", {**world.site("shanghai"), "location": "Shanghai"})

    def picture(name):
        chromium({"session": f"sessions/{one}", "pair": f"gateways/{PAIRS[1]}"}.get(name, name), f"--screenshot={directory}/page-{name}.png")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(picture, PICTURES))


with temporary() as here:
    world = World(sys.argv[1], Path(here))
    try:
        if sys.argv[2:3] == ["--save"]:
            save(sys.argv[3])
        else:
            code = cases.run(globals())
    finally:
        world.controller.kill()
sys.exit(code)
