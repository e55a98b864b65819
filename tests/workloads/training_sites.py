# SPDX-License-Identifier: Apache-2.0
"""A training step over three sites in a row (rwydc train, docs/simulator.md): the share of one site's
speed that is left.

The job is that of training.py, two of its six stages at each site. Neighbours are 20 ms apart, as in
the published topology, and have 5 Gb/s reserved each. Each of the two distances is crossed once more
in each direction than computation hides, so a step takes at least one site's time and four messages:
99.1 % of one site's speed with 128 sequences, 97.1 % with 30, where 99 % cannot be had.

`scale` divides bytes and the WAN's rate: all times stay.
"""
import _sim
from training import ACT, BATCH, OUTAGE, RTT, STEPS, WAN, words

SITES = "split=2 third=4"


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    for batch in BATCH:
        site = _sim.step(build, words(scale, batch, "split=6 mode=native"))
        limit = site / (site + 4 * _sim.message(ACT, WAN, RTT))
        yield from _sim.shares(build, f"three sites {batch}, clean", words(scale, batch, SITES), site, limit, row, f"{batch} sequences")

    def hit(w):
        """The mean of 100 steps with 128 sequences, of which one meets an outage of all links."""
        clean, late = (_sim.step(build, words(scale, 128, f"{SITES} {w} {more}")) for more in ("", OUTAGE))
        return site / (((STEPS - 1) * clean + late) / STEPS)
    yield from _sim.arms("three sites 128, an outage", "share", limit, hit, row, goal=0.97, at_most=False, more=f"50 ms in one of {STEPS} steps")
