#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# sim_wan.py BUILD: rwywan reports errors of a scenario and their place; the same seed makes the
# same run; a thin run equals the full run; whatever the path does, every packet arrives once and in
# order.
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

RWYWAN = str(Path(sys.argv[1]) / "tests/sim/rwywan")
TRACE = Path(__file__).parents[1] / "sim/wan/traces/wakeup.us"

# Invalid scenarios, and the part that the message must name.
BAD_WORDS = [
    ("rtt=-5ms", "word 1: rtt: '-5ms' is outside"), ("loss=1.5", "word 1: loss: '1.5' is outside"), ("loss=1", "scenario: with loss 1"),
    ("loss=nan", "is not a share"), ("rtt=5", "is not a time with its unit"), ("rate=fast", "is not bits a second"),
    ("rate=0", "rate: '0' is outside"), ("cc=reno", "there is no algorithm 'reno'"), ("speed=1", "there is no key 'speed'"),
    ("loss", "is not key=value"), ("=1", "is not key=value"), ("recovery=best", "is none of: roceway sr ec gbn tcp-cubic tcp-bbr"), ("fec=perhaps", "fec: there is no setting"),
    ("pmtu=9000", "pmtu: '9000' is outside"), ("messages=0", "messages"), ("burst=0.5", "burst"), ("seed=-1", "seed: '-1'"),
    ("size=1X", "is not bytes"), ("rtts=5 skip=6 arrival=back", "skip leaves nothing"), ("loss=0.9 burst=2", "bursts this short"),
    ("cross=reno", "'reno' is not ALGORITHM:FLOWS"), ("cross=cubic:0", "'cubic:0' is not"), ("cross=bbr,cubic:4x", "'cubic:4x' is not"),
    ("cross=cubic:300", "256 flows"), ("cross=cubic", "wants rtts"), ("queue=-1bdp", "is outside"), ("queue=1x", "bandwidth-delay products"),
    ("recovery=tcp-bbr", "wants rtts"), ("tunnels=65", "outside 1 .. 64"), ("cross_start=2s cross_stop=1s", "cross_stop is not after"),
    ("jitter_dist=gauss", "is none of: uniform normal pareto"), ("jitter_trace=/nonexistent", "jitter_trace: /nonexistent: No such file"),
    ("detour=9", "outside 0 .. 8"), ("detour=1 recovery=sr", "detour wants recovery=roceway"),
    ("paths=9", "outside 1 .. 8"), ("path=1:cc=auto", "path: 'cc=auto' is no key of the path"), ("path=x", "'x' is not NUMBER:key=value"),
    ("paths=2 path=2:loss=1%", "that paths does not have"), ("paths=2 recovery=sr", "paths want recovery=roceway"),
    ("rtts=9 arrival=back changes=1s:path=1,loss=1", "that paths does not have"), ("jitter_trace=/dev/null", "no delay in it"), ("keep_order=no", "is none of: on off"),
]
BAD_FILES = [
    ("rate 10G\n# a comment\nloss 2\n", ":3: loss: '2' is outside"), ("rtt\n", ":1: 'rtt' wants one value"),
    ("rate 1G 2G\n", ":1: 'rate' wants one value"), ("\n\ncc vegas\n", ":3: cc: there is no algorithm"),
]
PATHS = [
    "rate=10G loss=2e-3 reorder=0.01 dup=0.01 corrupt=0.001 jitter=100us messages=30",
    "rate=10G loss=1e-2 burst=8 flows=8 arrival=back messages=100",
    "rate=1G rtt=2ms mtu=1472 loss=1e-3 messages=20",
    "rate=10G cc=auto loss=0.05 rtt=10ms queue=10MiB rtts=60 skip=20 arrival=back",
    "rate=10G outage_from=50ms outage_len=300ms arrival=back messages=200",
    "rate=1G rtt=20ms loss=1e-3 jitter=5ms jitter_dist=normal keep_order=off messages=20",
    f"rate=1G mtu=1472 jitter_trace={TRACE} keep_order=off messages=20", "rate=10G jitter=3ms jitter_dist=pareto messages=20",
    "rate=10G rrate=100M loss=1e-3 messages=20", "size=1 messages=50 loss=0.05", "rate=40G rtt=50ms size=64MiB messages=3 loss=1e-3",
    "rate=10G loss=0.1 burst=20 flows=8 arrival=back messages=100 detour=1 detour_rate=1G detour_rtt=40ms",
    "rate=400M rtt=10ms paths=3 path=1:rtt=40ms,loss=1%/2:rate=100M,queue=64KiB cc=auto queue=1bdp rtts=200 skip=20 arrival=back changes=500ms:path=0,loss=1/1s:path=0,loss=0",
    "rate=1G rtt=10ms paths=8 path=3:rtt=30ms bottleneck=one queue=1bdp loss=1e-3 reorder=0.01 dup=0.01 messages=20",
    "rate=1G rtt=10ms mtu=1472 loss=0.2 reorder=0.01 dup=0.01 corrupt=0.001 messages=20 detour=2",
]


def run(words, *more):
    return subprocess.run([RWYWAN, *more, *words.split()], capture_output=True, text=True, timeout=200)


def test_bad_words():
    for words, want in BAD_WORDS:
        r = run(words)
        assert r.returncode == 2 and want in r.stderr and r.stderr.count("\n") == 1 and not r.stdout, (words, r)


def test_bad_files():
    for text, want in BAD_FILES:
        with tempfile.NamedTemporaryFile("w", suffix=".scen") as f:
            f.write(text)
            f.flush()
            r = run("", "--file", f.name)
            assert r.returncode == 2 and f.name + want in r.stderr and r.stderr.count("\n") == 1, (text, r)
    r = run("", "--file", "/nonexistent")
    assert r.returncode == 2 and "/nonexistent" in r.stderr, r


def test_good_file():
    with tempfile.NamedTemporaryFile("w", suffix=".scen") as f:
        f.write("rate 10G # fast\n\nloss 0.1%\nmessages 10\n")
        f.flush()
        assert run("", "--hash", "--file", f.name).stdout == run("rate=10G loss=1e-3 messages=10", "--hash").stdout


def test_repeatable():
    hashes = [run(f"{PATHS[0]} seed={seed}", "--hash").stdout for seed in (7, 7, 8)]
    assert hashes[0] == hashes[1] != hashes[2] and len(hashes[0]) == 17, hashes


def test_thin_is_full():
    for words in PATHS[:3]:
        a, b = (run(f"{words} payload={p}", "--hash").stdout for p in ("thin", "full"))
        assert a == b != "", (words, a, b)


def test_fragments_are_real():
    """A repair of fragments of thin packets: once it was made of bytes of other packets that
    changed."""
    words = "seed=1 rate=1G rtt=20ms loss=0.1% burst=8 queue=2500000 overhead=42 mtu=1472 arrival=back rtts=600 skip=200"
    assert json.loads(run(words, "--json").stdout)["violations"] == 0


def test_invariants():
    for words in PATHS:
        r = run(words, "--json")
        assert r.returncode == 0, (words, r)
        row = json.loads(r.stdout)
        assert row["violations"] == 0 and row["duplicates"] == 0 and row["messages"] > 0, row


def test_scenario_repeats():
    first = json.loads(run(PATHS[1], "--json").stdout)
    assert json.loads(run(first["scenario"], "--json").stdout)["hash"] == first["hash"]


def test_lossless_is_one():
    row = json.loads(run("rate=100G size=4MiB messages=20", "--json").stdout)
    # one repair in two hundred, until enough datagrams show that nothing is lost
    assert 0.999 < row["mean"] < 1.001 and row["extra"] < 0.006 and row["needless"] == 0, row


def test_models():
    """Predicted results: one repair costs a round trip; go-back-N at 1e-4, 10 Gb/s, 30 ms gets
    about half."""
    one = json.loads(run("rate=400G size=1MiB loss=1e-2 messages=2000 recovery=sr", "--json").stdout)
    assert 2.9 < one["p50"] < 3.1, one
    ec = json.loads(run("rate=400G size=128MiB loss=1e-2 messages=50 recovery=ec", "--json").stdout)
    assert ec["extra"] == 0.25 and ec["p50"] < 1.06, ec
    gbn = json.loads(run("rate=10G rtt=30ms loss=1e-4 rtts=2000 recovery=gbn", "--json").stdout)
    assert 0.4 < gbn["goodput_share"] < 0.6, gbn


SHARED = "rate=1G rtt=20ms queue=1bdp arrival=back rtts=400 skip=100"


def shared(words):
    r = run(f"{SHARED} {words}", "--json")
    assert r.returncode == 0, (words, r)
    row = json.loads(r.stdout)
    assert row["violations"] == 0 and row["duplicates"] == 0 and row["link_share"] < 1.01, row
    return row


def test_shares():
    """Invariants of a shared link for all algorithms: the parts are the whole, flows stop on time,
    the queue keeps its limit."""
    row = shared("cc=cubic cross=cubic:3,bbr:2 tunnels=2")
    assert [f["class"] for f in row["flows"]] == ["tunnel"] * 2 + ["cubic"] * 3 + ["bbr"] * 2, row
    assert 0.9e9 < sum(f["half_bps"] for f in row["flows"]) < 1.01e9 and abs(row["fair_bps"] * 7 - 1e9) < 10 and row["queue_max_ms"] <= 20.1, row
    alone, stopped = shared("cc=cubic cross=cubic:4 cross_start=100s"), shared("cc=cubic cross=cubic:4 cross_stop=1s")
    assert alone["cross"] == 0 and alone["ours"] > 4.5 and stopped["cross"] < 0.1, (alone, stopped)
    fixed = shared("cc=fixed ccrate=200M cross=cubic:1 queue=4bdp")
    assert 0.35 < fixed["ours_half"] < 0.45 and fixed["cross_half"] > 1.4, fixed
    marked = shared("cc=cubic cross=cubic:4 mark=0.2bdp")
    assert marked["marks"] > 0 and marked["drops"] == 0 and marked["queue_mean_ms"] < 10, marked


def test_beside_tcp():
    """At a small queue "auto" once took losses by other flows for the path's own, and its probes
    kept two CUBIC flows at a tenth of their share."""
    for queue in ("rtt=60ms queue=0.25bdp rtts=600", "rtt=20ms queue=0.25bdp rtts=1500"):
        row = shared(f"cc=auto window=2 cross=cubic:2 tunnel_gap=300ms skip=200 {queue}")
        assert row["cross_least"] > 0.15 and row["ours"] > 0.25, row


def test_rates():
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as f:
        assert run(f"{SHARED} cc=cubic cross=cubic:2,bbr:1", "--rates", f.name).returncode == 0
        lines = f.read().splitlines()
    assert lines[0] == "ms,queue_ms,tunnel0,cubic1,cubic2,bbr3" and len(lines) > 100 and all(l.count(",") == 5 for l in lines), lines[:3]
    assert all(sum(float(x) for x in l.split(",")[2:]) < 2.1 for l in lines[1:])


def test_tcp_models():
    """One TCP connection alone: the whole link without loss; at 1 % cubic gets what RFC 9438
    predicts, a few segments per round trip, and bbr nearly all."""
    rows = {(cc, loss): json.loads(run(f"{SHARED} recovery=tcp-{cc} loss={loss}", "--json").stdout)["goodput_share"]
            for cc in ("cubic", "bbr") for loss in (0, 0.01)}
    assert rows["cubic", 0] > 0.95 and rows["bbr", 0] > 0.95 and rows["cubic", 0.01] < 0.03 and rows["bbr", 0.01] > 0.9, rows


def test_stream_repairs():
    """While a flow has new data, lost data is repeated once, not twice."""
    rows = [json.loads(run(f"seed={s} rate=10G rtt=25ms loss=0.1 cc=auto queue=20MiB arrival=back rtts=100 skip=40", "--json").stdout)
            for s in (1, 2, 3)]
    assert all(r["needless"] <= 0.005 and r["extra"] < 0.13 for r in rows), rows
    assert sum(r["goodput_share"] for r in rows) / len(rows) >= 0.97, rows


def test_detour():
    """What is lost again and again goes by a carrier that loses nothing: messages are done sooner,
    by few datagrams. Without losses none goes there, and a carrier that is much slower than repeats
    carries nothing."""
    words = "rate=10G rtt=25ms size=16MiB messages=20"
    none, two, one = (json.loads(run(f"{words} loss=0.2 detour={n}", "--json").stdout) for n in (0, 2, 1))
    assert none["detoured"] == 0 and one["mean"] < 0.7 * none["mean"] and two["mean"] < 0.9 * none["mean"], (none, two, one)
    assert 0 < two["detoured"] < 0.05 * two["packets"] and one["detoured"] < 0.25 * one["packets"], (two, one)
    for quiet in ("detour=1", "loss=0.2 detour=1 detour_rtt=1s"):
        row = json.loads(run(f"{words} {quiet}", "--json").stdout)
        assert row["detoured"] == 0 and row["violations"] == 0, row


def test_paces_exactly():
    """A tunnel paced at the rate of its link makes no growing queue."""
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as f:
        run("rate=400G rtt=1ms arrival=back rtts=60 skip=30", "--trace", f.name)
        queue = [float(l.split(",")[4]) for l in f.read().splitlines()[1:]]
        assert queue[len(queue) * 9 // 10] <= queue[len(queue) // 2] + 0.2, queue


def test_congested():
    """Persistent congestion or not: loss bursts, an outage and reordering are not; high loss, a
    missing reserved rate and a standing queue are, once."""
    link = "rate=200M rtt=20ms arrival=back queue=1bdp rtts=500 skip=50"
    for words, begins in (("cc=auto loss=1% burst=20", 0), ("cc=auto outage_from=3s outage_len=300ms", 0), ("cc=auto reorder=1% reorder_delay=5ms", 0),
                          ("cc=auto loss=10%", 1), ("cc=fixed ccrate=215M", 1), ("cc=auto queue=4bdp cross=cubic:4", 1)):
        r = run(f"{link} {words}", "--json")
        d = json.loads(r.stdout)
        assert d["congest_begins"] == begins and (d["congested_s"] > 5) == (begins == 1), (words, d["congest_begins"], d["congested_s"])


def test_reordering():
    """Jitter that reorders, of any kind: hardly any needless retransmission, full rate, no
    congestion."""
    for jitter in ("jitter=5ms jitter_dist=normal", "jitter=5ms jitter_dist=pareto", "jitter=5ms", f"jitter_trace={TRACE}"):
        for words in ("rate=100M", "rate=1G", "rate=1G loss=1%"):
            r = run(f"{words} rtt=20ms arrival=back rtts=150 skip=50 window=6 keep_order=off {jitter}", "--json")
            d = json.loads(r.stdout)
            assert d["needless"] <= 0.01 and d["goodput_share"] >= 0.9 and d["congest_begins"] == 0, (words, jitter, d)


def test_reordering_auto():
    """The same with `auto`: differences of round trips do not count as a queue."""
    for words in ("rate=100M", "rate=1G", "rate=1G loss=1%"):
        r = run(f"{words} rtt=20ms cc=auto queue=1bdp arrival=back rtts=400 skip=100 window=6 keep_order=off jitter=5ms jitter_dist=normal", "--json")
        d = json.loads(r.stdout)
        assert d["needless"] <= 0.01 and d["goodput_share"] >= 0.7, (words, d)  # 0.07 to 0.44 if they did


def test_changes():
    """A path that changes under hosts that send less than its rate: the results of each change, and
    those that cannot be given."""
    words = "rate=1G rtt=5ms cc=auto arrival=back queue=2MiB demand=100M on=1500ms off=500ms stalls=50 rtts=2000 skip=10 changes=3s:rtt=30ms,loss=1%/6s:rate=50M"
    r = run(words, "--json")
    changes = json.loads(r.stdout)["changes"]
    assert [c["at_s"] for c in changes] == [3, 6] and all(c["share"] >= 0.9 and 0 <= c["back_s"] < 2 for c in changes), (r.stdout, r.stderr)
    assert "nine tenths after" in run(words).stdout and run(words, "--hash").stdout == run(words, "--hash").stdout
    for bad, want in (("changes=3s:rtt=1ms", "want rtts"), ("changes=3s", "is not TIME:key=value"), ("changes=3s:mtu=99", "no key of the path"),
                      ("changes=3s:rtt=1ms/2s:rtt=2ms", "after the one before"), ("changes=x:rtt=1ms", "is not a time"), ("demand=1M", "want rtts"),
                      ("on=1s rtts=5 arrival=back", "want a demand")):
        r = run(bad)
        assert r.returncode == 2 and want in r.stderr and not r.stdout, (bad, r)


def test_traces():
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as f:
        assert run("rate=10G messages=5 arrival=back", "--trace", f.name).returncode == 0
        lines = f.read().splitlines()
        assert lines[0].startswith("ms,rate_gbps") and len(lines) > 5 and all(l.count(",") == lines[0].count(",") for l in lines), lines


sys.exit(cases.run(globals()))
