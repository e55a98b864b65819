# SPDX-License-Identifier: Apache-2.0
# Plans while things change, seen in captures of the WAN: each job has a DSCP, by which the capture
# tells the jobs apart. A class changes, a job is refused, a deadline is kept, a gateway dies.
import itertools
import time

from lab import needs, pcap
from lab.copy import Copy
from lab.fleet import fleet, host_addresses
from lab.proc import settled, wait_for
from test_controller import install, plan, routes
from test_plan import PAIRS, reserved, send, write

DSCP = {"large": 10, "middle": 12, "small": 14}
BPS = {"large": 1_000_000, "middle": 600_000, "small": 400_000}  # of a pair
PATH = "8Mbit"
OFFERS = ("bandwidth: 8Mbps", "bandwidth: 8Mbps")


def body(name, pairs=None, bps=None, **more):
    pairs = pairs or [PAIRS[list(BPS).index(name)]]
    return {"name": name, "dscp": DSCP[name], "pairs": [{"source": s, "destination": d, "bandwidth_bps": bps or BPS[name]} for s, d in pairs], **more}


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


# --- a gateway dies -----------------------------------------------------------------------------
SHARED = {"large": [PAIRS[0], (PAIRS[0][0], PAIRS[1][1])], "middle": [PAIRS[1]], "small": [PAIRS[2]]}
SHARES = {"large": 500_000, "middle": 400_000, "small": 300_000}  # bit/s of a pair: a host carries all, and the rest, while the machine is busy
OFFERED = "2500kbps"  # of each gateway: all jobs fit into one
WINDOW = 20  # s: a busy machine makes a path uneven within seconds
WITHIN = 0.03
# Soft-RoCE's timer repeats all that is outstanding: little, and seldom
LITTLE = {"seconds": 420, "size": 16384, "timeout": 21, "extra": "-t 8"}
FULL = 60_000  # bytes in custody of one that has more to send than it may


def held(f, pair):
    """The gateways of site A that have more of this pair than it may send."""
    return [g for g in f.gateways.values() if g.name[0] == "a" and g.alive()
            if any(x["local"].startswith(pair[0]) and x["remote"].startswith(pair[1]) and x["custody_bytes"] > FULL for x in g.flows())]


def all_held(f, pairs):
    wait_for("all have more to send than they may", lambda: all(held(f, p) for p in pairs), 90, 0.2)


def planned(f, pairs):
    """{pair: its gateways} of those of the jobs: routes have what other flows take, too."""
    return {p: gws for p, gws in plan(f).items() if p in pairs}


def without(f, by, dead):
    """The plan of these pairs when each has one without this gateway; until then None."""
    now = planned(f, by)
    return now if set(now) == set(by) and not any(dead in gws for gws in now.values()) else None


def unplanned(f, by):
    """Starts what nobody planned, at a1 and in a tunnel that jobs use; (its pair, the far gateway,
    processes). Names and addresses decide where it goes: others are tried until one goes there."""
    for pair in [p for p in itertools.product(host_addresses(1), host_addresses(2)) if p[0] == PAIRS[3][0]]:
        running = write(f, [pair], first=18650, **LITTLE)[0]
        all_held(f, [pair])
        far = next((x["tunnel"] for x in f.gateways["a1"].flows() if x["local"].startswith(pair[0]) and x["remote"].startswith(pair[1])), None)
        if held(f, pair) == [f.gateways["a1"]] and ("a1", far) in by.values():
            return pair, far, running
        end(running)
        for p in running:
            p.wait(10)
    raise AssertionError("none goes where jobs go by a1")


def rates(files, f, begin, until):
    """{(gateway of A, gateway of B, DSCP): bit/s of frames} between two moments."""
    name = {g.wan: g.name for g in f.gateways.values()}
    of = {}
    for path in files.values():
        settled(path)
        for p in pcap.ip(path):
            if name.get(p.src, "")[:1] == "a" and begin <= p.time < until:
                key = name[p.src], name.get(p.dst), p.tos >> 2
                of[key] = of.get(key, 0) + 8 * p.length / (until - begin)
    return of


def hold(f, when, files, begin, by, bps, others, carries=None):
    """Asserts for a window of the capture that each job has on the WAN what its pairs at these
    gateways were promised, and `others` (gateway of A, of B) what those leave of what their tunnel
    carries. Returns that. While it looks for a path's rate, a full tunnel does not have all of its own."""
    got = rates(files, f, begin, begin + WINDOW)
    tunnel = next(t for t in f.gateways[others[0]].ask("tunnels")["tunnels"] if t["name"] == others[1])
    most, now = 8 * tunnel["rate_max_bytes_per_second"], sum(r for (a, b, _), r in got.items() if (a, b) == others)
    want = {name: sum(bps[p] for p in SHARED[name] if p in by) for name in DSCP}
    have = {name: sum(r for (_, _, d), r in got.items() if d == dscp) for name, dscp in DSCP.items()}
    want["others"] = (carries or now) - sum(bps[p] for p, gws in by.items() if gws == others)
    have["others"] = got.get((*others, 0), 0)
    f.lab.log(f"{when}: " + ", ".join(f"{n} {have[n] / 1e6:.3f} of {want[n] / 1e6:.3f}" for n in want) + f" Mbit/s; of {most / 1e6:.3f} {now / 1e6:.3f}")
    assert all(abs(have[n] - want[n]) <= WITHIN * want[n] for n in want), (when, have, want)
    assert 0.9 * most <= now <= (1 + WITHIN) * most, (when, now, most)
    return now


@needs(native=True, timeout=450)
def test_plan_gateway_dies(lab):
    """Three jobs at both gateways of a site, and what nobody planned beside them: each has its rate
    on the WAN before a gateway is killed, what was not that gateway's has it while it is gone, and
    all have it when the pairs that it had are connected anew."""
    with fleet(lab, offers=(f"bandwidth: {OFFERED}",) * 2) as f:
        lab.wan(rtt_ms=5)
        bps = {}
        for name, pairs in SHARED.items():
            said = f.ask("PUT", f"/v1/jobs/{name}", body=body(name, pairs, SHARES[name]))
            assert said["state"] == "planned", said
            bps |= {(r["source"], r["destination"]): r["gateway_bps"] for r in said["plan"]}
        by = planned(f, bps)
        assert set(by) == set(bps) and {a for a, _ in by.values()} == {"a1", "a2"}, by
        install(f, by)
        running = dict(zip(by, write(f, list(by), **LITTLE)))
        pair, far, running[None] = unplanned(f, by)
        all_held(f, [pair, *by])
        files = f.capture(lab.net.dir / "dies", "wan", ["a1", "a2"])
        began = time.time()
        time.sleep(WINDOW)
        carries = hold(f, "before", files, began, by, bps, ("a1", far))
        f.gateways["a2"].kill()
        began = time.time()
        stay = {p: gws for p, gws in by.items() if gws[0] == "a1"}
        after = wait_for("all pairs are planned without a2", lambda: without(f, by, "a2"), 10, 0.1)
        lab.log(f"planned anew {time.time() - began:.2f} s after the death: {after}, before: {by}")
        assert all(after[p] == gws for p, gws in stay.items()), (by, after)
        time.sleep(max(0, began + WINDOW - time.time()))
        hold(f, "during", files, began, stay, bps, ("a1", far), carries)
        moved = [p for p in by if p not in stay]
        for p in moved:  # as a job does whose connections failed
            end(running[p])
        install(f, {p: after[p] for p in moved}, anew=False)
        running |= dict(zip(moved, write(f, moved, first=18620, **LITTLE)))
        all_held(f, [pair, *by])
        began = time.time()
        time.sleep(WINDOW)
        hold(f, "after", files, began, after, bps, ("a1", far), carries)
        lab.capture_stop()
        for p in running.values():
            end(p)
