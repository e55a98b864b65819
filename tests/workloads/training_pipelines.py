# SPDX-License-Identifier: Apache-2.0
"""Two pipelines of one job cross the WAN together (rwydc train, docs/simulator.md): the share of one
site's speed that is left.

The job is a published one: 56 layers on 32 GPUs, tensor parallel 4, four stages, data parallel 2, two
stages at each of two sites. No time was published. A slot follows from the same GPUs' time for a
layer in the job of training.py: a stage has 14 of 56 layers instead of 70 / 6. Its 30 sequences do
not divide into micro-batches of two for two pipelines; here each has eight. The pipelines compute in
step, so two micro-batches of 256 MiB go at once and share the 5 Gb/s. What both exchange at the end
of a step stays within a site, and is left out here and there.

A step takes at least one site's time and twice (both micro-batches / rate + half a round trip), 95.7
% of one site's speed, so 99 % cannot be had; the longer step (128 sequences, 32 micro-batches) has 98.6.

`scale` divides bytes and the WAN's rate: all times stay.
"""
import _sim
from training import ACT, OVERLAP, RTT, WAN

PIPELINES, TP = 2, 4
SLOT = 3.0302 * 14 / (70 / 6)  # s
MICRO = {32: 8, 128: 32}  # sequences: micro-batches of each pipeline


def words(scale, micro, more=""):
    """The GPUs of both pipelines' stage are one stage with twice the bytes: they compute in step."""
    return (f"leaves=5 stages=4 split=2 tp={PIPELINES * TP} server=1 micro={micro} slot={SLOT:.4f}s {OVERLAP} act={PIPELINES * ACT // scale} "
            f"wan={WAN / scale:.0f} rtt={RTT * 1e3:.0f}ms {more}")


def rows(build, scale, row):
    """The rows of the report; `row` makes one."""
    for sequences, micro in MICRO.items():
        site = _sim.step(build, words(scale, micro, "split=4 mode=native"))
        limit = site / (site + 2 * _sim.message(PIPELINES * ACT, WAN, RTT))
        yield from _sim.shares(build, f"two pipelines {sequences}", words(scale, micro), site, limit, row, f"{sequences} sequences")
