# SPDX-License-Identifier: Apache-2.0
# Captures as tshark reads them: a second opinion on our packets.
from .proc import sh


def fields(path, *names, where="infiniband"):
    """The fields of every packet that the display filter `where` accepts, as a list of tuples of
    text."""
    out = sh("tshark", "-r", path, "-Y", where, "-T", "fields", *(w for n in names for w in ("-e", n)), timeout=60)
    return [tuple(line.split("\t")) for line in out.splitlines()]
