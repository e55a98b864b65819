# SPDX-License-Identifier: Apache-2.0
# rcopy of a file of random bytes between two endpoints, while other things happen; checksums
# decide.


class Copy:
    """From the first of `ends` to the second. `to`: the address that the client names, if it is not
    the second's own; `run`: words before the client's command."""

    def __init__(self, lab, ends, mib, port=7427, start=True, to=None, run=""):
        self.src, self.dst = ends
        self.file = f"/tmp/t/copy-{port}"
        self.command = f"{run} rcopy {self.file} {to or self.dst.ip4}:{self.file}.got -p {port}"
        self.src.run(f"dd if=/dev/urandom of={self.file} bs=64k count={int(mib * 16)}")
        self.server = lab.serve(f"rcopy -p {port}", port=port, cm=True, host=self.dst)
        if start:
            self.start()

    def start(self):
        self.client = self.src.start(self.command)

    def running(self):
        return not self.client.done.is_set()

    def end(self, limit=60):
        """(result of the client, whether the checksums agree). After `limit` seconds it is killed:
        exit code 124."""
        r = self.client.wait(limit)
        self.server.kill()
        self.server.wait(5)
        # a busy machine emulates slowly: a sum that is not there in time is the lab's fault, no other content
        sums = [h.run(f"sha256sum <{f} || true; rm -f {f}", timeout=120).out
                for h, f in ((self.src, self.file), (self.dst, f"{self.file}.got"))]
        return r, sums[0] == sums[1] != ""

    def check(self, limit=60):
        """Asserts that it has ended and every byte is right."""
        r, same = self.end(limit)
        assert r.ok, r
        assert same, f"{self.src.name} to {self.dst.name}: checksums differ"
        return r
