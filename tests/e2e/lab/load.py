# SPDX-License-Identifier: Apache-2.0
# Traffic in the background, of which every byte is compared.
import threading

from .copy import Copy


class Load:
    """NCCL-like traffic (between `ends`), and files from host A to B one after the other, until
    stop()."""

    def __init__(self, lab, ends=None, steps=48):
        self.lab, self.ends, self.steps = lab, ends, steps
        self.ended, self.problems, self.runs, self.files = threading.Event(), [], 0, 0
        self.threads = [threading.Thread(target=self._until_ended, args=(x,)) for x in (self._nccl, self._copy)]
        for t in self.threads:
            t.start()

    def _until_ended(self, once):
        while not self.ended.is_set() and not self.problems:
            try:
                once()
            except Exception as e:  # stop() raises it: a thread's own exception is only printed
                self.problems.append(repr(e))

    def _nccl(self):
        r = self.lab.nccl_start(qps=4, steps=self.steps, extra="--chunk 131072", limit=100, ends=self.ends).wait()
        assert r.ok, r
        self.runs += 1

    def _copy(self):
        Copy(self.lab, (self.lab.a, self.lab.b), mib=4).check(limit=100)
        self.files += 1

    def stop(self):
        """Waits for the end of what runs; AssertionError if anything of it was wrong."""
        self.ended.set()
        for t in self.threads:
            t.join()
        assert not self.problems, self.problems
