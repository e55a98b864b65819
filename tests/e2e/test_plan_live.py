# SPDX-License-Identifier: Apache-2.0
# Plans while things change, seen in captures of the WAN: each job has a DSCP, by which the capture
# tells the jobs apart. A class changes, a job is refused, a deadline is kept.
import time

from lab import needs, pcap
from lab.copy import Copy
from lab.fleet import fleet
from lab.proc import settled, wait_for
from test_controller import routes
from test_plan import PAIRS, reserved, send

DSCP = {"large": 10, "middle": 12, "small": 14}
BPS = {"large": 1_000_000, "middle": 600_000, "small": 400_000}  # of a pair
PATH = "8Mbit"
OFFERS = ("bandwidth: 8Mbps", "bandwidth: 8Mbps")


def body(name, pairs=None, **more):
    pairs = pairs or [PAIRS[list(BPS).index(name)]]
    return {"name": name, "dscp": DSCP[name], "pairs": [{"source": s, "destination": d, "bandwidth_bps": BPS[name]} for s, d in pairs], **more}


def end(processes):
    for p in processes:
        p.kill()


def wan_captures(f, what):
    """Begins a capture at the WAN port of each gateway of site A; {gateway: file}."""
    return f.capture(f.lab.net.dir / what, "wan", [g for g in f.gateways if g[0] == "a" and f.gateways[g].alive()])


def sent_by(files):
    """[(time, DSCP, bytes of the frame)] of all datagrams of tunnels that site A sent."""
    found = []
    for path in files.values():
        settled(path)
        found += [(p.time, p.tos >> 2, p.length) for p in pcap.ip(path) if p.src.startswith("192.0.2.1")]
    return sorted(found)


def state(f):
    """All that a refused job must not change."""
    of = {n: [g.ask("controller")["generation"], sorted((r["job"], r["rate_bps"], r["priority"]) for r in g.ask("reservations")["reservations"]),
              [(t["name"], t["rate_max_bytes_per_second"]) for t in g.ask("tunnels")["tunnels"]]] for n, g in f.gateways.items() if g.alive()}
    said = f.ask("GET", "/v1/jobs")["jobs"]
    return of, [{k: j[k] for k in ("name", "state", "plan")} for j in said], [routes(f, s) for s in "ab"], f.ask("GET", "/v1/links")["reserved"]


def reserved_flow(f, job):
    """Bytes in custody of the job's pair at site A."""
    source = PAIRS[list(BPS).index(job)][0]
    return sum(x["custody_bytes"] for g in f.gateways.values() if g.name[0] == "a" and g.alive() for x in g.flows() if x["local"].startswith(source))


@needs(native=True, timeout=400)
def test_plan_class(lab):
    """The DSCP of a job changes by the API and is on the WAN within a second, other jobs keep theirs; a job that does not fit changes nothing anywhere."""
    with fleet(lab, per_site=1, offers=OFFERS) as f:
        lab.wan(rtt_ms=5, rate=PATH)
        for name in ("large", "middle"):
            assert f.ask("PUT", f"/v1/jobs/{name}", body=body(name))["state"] == "planned"
        f.routes({p: (f.gateways["a1"].lan, f.gateways["b1"].lan) for p in PAIRS})
        running = [p for i in range(2) for p in send(f, i, 120)]
        wait_for("both send", lambda: all(reserved_flow(f, n) > 100_000 for n in ("large", "middle")), 40, 0.2)
        files = wan_captures(f, "class")
        time.sleep(1)
        asked = time.time()
        f.ask("PUT", "/v1/jobs/large", body={**body("large"), "dscp": 46})
        time.sleep(4)
        seen = sent_by(files)
        lab.capture_stop()
        first = min(t for t, d, _ in seen if d == 46)
        last = max(t for t, d, n in seen if d == DSCP["large"] and n > 500)
        lab.log(f"first with the new class {first - asked:.3f} s after the request, last with the old one {last - asked:.3f} s")
        assert first - asked <= 1 and last - asked <= 1, (first - asked, last - asked)
        assert any(d == DSCP["middle"] and t > first for t, d, _ in seen)
        before = state(f)
        for bad, status in ((body("small") | {"pairs": [{"source": PAIRS[2][0], "destination": PAIRS[2][1], "bandwidth_bps": 100_000_000}]}, 409),
                            (body("small") | {"carrier": "quic", "dscp": None}, 400), (body("small") | {"deadline_ms": 1}, 400)):
            said = f.ask("PUT", "/v1/jobs/small", body=bad, want=(status,))
            assert said["error"], said
        time.sleep(1.5)  # an agent asks at once, and applies within a second
        assert state(f) == before, (state(f), before)
        assert f.ask("PUT", "/v1/jobs/small", body=body("small"))["state"] == "planned"
        end(running)


@needs(native=True, timeout=400)
def test_plan_deadline(lab):
    """A file that must be there in time is, and not much earlier, beside traffic that would take all."""
    mib, seconds = 4, 40
    # of packets of 1 KiB headers, keys and repairs take more than the 5 % of large ones
    with fleet(lab, per_site=1, offers=OFFERS, more="  native_efficiency: 88%\n") as f:
        lab.wan(rtt_ms=5, rate=PATH)
        f.routes({p: (f.gateways["a1"].lan, f.gateways["b1"].lan) for p in PAIRS})
        others = send(f, 3, 120)
        ends = [f.end(h, x) for h, x in zip((lab.a, lab.b), PAIRS[0])]
        # its connection is made from the address that the route says
        lab.a.run(f"ip route replace {PAIRS[0][1]}/32 via {f.gateways['a1'].lan} dev eth0 src {PAIRS[0][0]}")
        copy = Copy(lab, ends, mib=mib, start=False)
        g, job = f.gateways["a1"], {"source": PAIRS[0][0], "destination": PAIRS[0][1]}
        f.ask("PUT", "/v1/jobs/weights", body={"pairs": [{**job, "bandwidth_bps": 100_000}]})
        wait_for("the gateway has the rate", lambda: "weights" in reserved(g), 10, 0.05)
        copy.start()
        # a program's own start is no part of what the plan promises
        wait_for("the file is on its way", lambda: reserved(g)["weights"][1] > 30_000, 60, 0.05)
        before, began = reserved(g)["weights"][1], time.monotonic()
        said = f.ask("PUT", "/v1/jobs/weights", body={"pairs": [{**job, "bytes": mib << 20}], "within_ms": seconds * 1000})
        assert said["state"] == "planned", said
        copy.client.done.wait(2 * seconds)
        sent = reserved(g).get("weights", (0, 1))[1]  # it ends with its deadline
        copy.check()
        took = copy.client.ended - began
        lab.log(f"{took:.2f} s of {seconds}; planned {said['plan'][0]['gateway_bps'] / 1e6:.3f} Mbit/s; {before} bytes before, {sent} in all: {(mib << 20) / sent:.3f} the file's")
        assert 0.95 * seconds <= took <= seconds, took
        lab.a.run(f"ip route del {PAIRS[0][1]}/32")
        end(others)
