# SPDX-License-Identifier: Apache-2.0
"""Steps of pipeline-parallel training over two sites (rwydc train, docs/simulator.md): the share of
one site's speed that is left.

The job is a published one: six stages, tensor parallel 4, four stages at one site and two at the
other, 20 ms between them, of which a job has 5 Gb/s reserved. With communication overlapped, each
direction crosses the WAN once more than it hides behind computation: when the pipeline fills, and
when it drains. So a step takes at least one site's time and twice (bytes of a micro-batch / rate +
half a round trip); with 128 sequences that is 99.6 %, with 30 98.5 %, so 99 % cannot be had there.

`scale` divides bytes and the WAN's rate: all times stay. Other traffic is divided by 4 at most,
because the timers of its hosts' NICs are not divided.
"""
import _sim

ACT, WAN, RTT = 256 << 20, 5e9, 0.020  # bytes of a micro-batch
BATCH = {30: "micro=15 slot=3.0302s", 128: "micro=64 slot=3.0445s"}
OVERLAP = "overlap=on early=1 custody=30"
OUTAGE = "outage_at=4.2s outage_len=50ms"  # in the middle of a micro-batch
STEPS = 100  # of which one meets the outage
OTHERS = "cross=4 depth=16 msg=64KiB ahead=100ms"
GUARANTEE = "guarantee=0.9"


def words(scale, batch, more=""):
    return f"{BATCH[batch]} {OVERLAP} act={ACT // scale} wan={WAN / scale:.0f} rtt={RTT * 1e3:.0f}ms {more}"


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    def step(scale, batch, more):
        return _sim.step(build, words(scale, batch, more))

    for batch in BATCH:
        site = step(scale, batch, "split=6 mode=native")
        limit = site / (site + 2 * _sim.message(ACT, WAN, RTT))
        yield from _sim.shares(build, f"training {batch}, clean", words(scale, batch), site, limit, row, f"{batch} sequences")
        if batch == 128:
            def hit(w, b=batch, s=site):
                """The mean of 100 steps."""
                return s / (((STEPS - 1) * step(scale, b, w) + step(scale, b, f"{w} {OUTAGE}")) / STEPS)
            yield from _sim.arms("training 128, an outage", "share", limit, hit, row, goal=0.97, at_most=False, more=f"50 ms in one of {STEPS} steps")
            yield from _sim.arms("training 128, step of the outage", "share", limit, lambda w, s=site: s / step(scale, 128, f"{w} {OUTAGE}"), row, at_most=False,
                                 more="that step alone")
    near = min(scale, 4)
    clean = {w: step(near, 30, w) for w in (*_sim.GATEWAYS.values(), *_sim.NATIVE.values())}

    def kept(w):
        return clean[w] / step(near, 30, f"{w} {OTHERS} {'' if 'native' in w else GUARANTEE}")
    yield from _sim.arms("training 30, beside others", "share", 1, kept, row, goal=0.97, at_most=False,
                         more=f"of the step without them; four others each way; 90 % of the WAN are the job's; 1/{near} of the rates")
