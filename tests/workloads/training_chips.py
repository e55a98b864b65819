# SPDX-License-Identifier: Apache-2.0
"""A training step on two kinds of chips at two sites (rwydc train, docs/simulator.md): the share of one
site's speed that is left.

The job is a published one: tensor parallel 8, four stages, three of them on 24 chips of one kind at
one site and one on 8 of another kind at the other site; 30 sequences; a step took 54.5 s. It says
neither how the layers were cut nor how fast the other kind is. Here they are cut evenly by time (a
slot is what makes 18 slots 54.5 s), or so that the other kind takes a quarter longer than the first,
and everybody waits for it.

Other than that it is the job of training.py: 256 MiB of a micro-batch, now of 8 chips a stage, 20 ms,
5 Gb/s reserved. A step takes at least one site's time and two messages, 98.4 % of its speed (98.6 %
with the slow stage), so 99 % cannot be had with 30 sequences.

`scale` divides bytes and the WAN's rate: all times stay.
"""
import _sim
from training import ACT, OVERLAP, RTT, WAN

SLOT = 54.5 / 18  # s
CUT = {"cut evenly": 1, "a slow stage": 1.25}  # of a slot, on the other kind


def words(scale, slow, more=""):
    return (f"leaves=5 stages=4 split=3 tp=8 server=1 micro=15 slot={SLOT:.4f}s slot2={slow * SLOT:.4f}s {OVERLAP} act={ACT // scale} "
            f"wan={WAN / scale:.0f} rtt={RTT * 1e3:.0f}ms {more}")


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    for name, slow in CUT.items():
        # free messages: one site's own network has no more to do
        site = (3 + 15 * slow) * SLOT
        limit = site / (site + 2 * _sim.message(ACT, WAN, RTT))
        yield from _sim.shares(build, f"mixed chips, {name}", words(scale, slow), site, limit, row, "30 sequences")
