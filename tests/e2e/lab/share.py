# SPDX-License-Identifier: Apache-2.0
# A share of the processors for a process, by the kernel's control groups (version 2, or 1 where
# the machine has that): it gets so much of a processor and no more, however idle the others are.
import contextlib
import os
from pathlib import Path

from .proc import LabError

PERIOD = 10000  # us
ROOT = Path("/sys/fs/cgroup")


class Share:
    """A process and its threads have this share of one processor, 0..1, until close()."""

    def __init__(self, name, pid, share):
        quota = round(PERIOD * share)
        second = (ROOT / "cgroup.controllers").exists()
        self.dir = (ROOT if second else ROOT / "cpu") / f"roceway-lab-{os.getpid()}-{name}"
        try:
            if second:
                (ROOT / "cgroup.subtree_control").write_text("+cpu")
            self.dir.mkdir()
            if second:
                (self.dir / "cpu.max").write_text(f"{quota} {PERIOD}")
            else:
                (self.dir / "cpu.cfs_period_us").write_text(str(PERIOD))
                (self.dir / "cpu.cfs_quota_us").write_text(str(quota))
            (self.dir / "cgroup.procs").write_text(str(pid))
        except OSError as e:
            self.close()
            raise LabError(f"this machine gives no share of a processor: {e}") from e

    def close(self):
        """The process has ended, or goes back to all it can get."""
        with contextlib.suppress(OSError):
            for pid in (self.dir / "cgroup.procs").read_text().split():
                (self.dir.parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            self.dir.rmdir()
