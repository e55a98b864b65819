# SPDX-License-Identifier: Apache-2.0
# rwy_messages between two hosts: connections that end as soon as they may, and the verdict on what
# was promised to the client.
import json

from .proc import LabError, wait_for

PORT = 7471


def said(result):
    """The JSON line of one of our programs; a program that was killed said nothing."""
    lines = [line for line in result.out.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


class Messages:
    """A client on A and a server on B, or on `ends`. hold=True: the messages wait for go()."""

    def __init__(self, lab, ends=None, hold=False, limit=60, **how):
        self.near, self.far = ends or (lab.a, lab.b)
        self.go_file, self.limit, self.conns = f"/tmp/t/{PORT}.go", limit, how.get("conns", 1)
        self.messages = how.get("messages", 100)
        options = " ".join(f"--{k} {v}" for k, v in {**how, "limit": limit}.items())
        self.near.run(f"rm -f {self.go_file}")
        self.server = lab.serve(f"exec rwy_messages {options}", port=PORT, cm=True, host=self.far)
        self.client = self.near.start(f"exec rwy_messages {options} --hold {int(hold)} {self.far.ip4}")
        self.client_said = self.server_said = None

    @staticmethod
    def progress(end, role):
        """(connections made, messages that the program has sent completely or received)."""
        out = end.run(f"od -An -t u8 /tmp/t/{PORT}.{role}", check=False).out.split()
        return (int(out[0]), int(out[1])) if len(out) == 2 else (0, 0)

    @property
    def completed(self):
        return self.progress(self.near, "client")[1]

    @property
    def received(self):
        return self.progress(self.far, "server")[1]

    def wait_up(self, seconds=20):
        wait_for("both ends are connected", lambda: self.progress(self.near, "client")[0] and self.progress(self.far, "server")[0], seconds)

    def go(self):
        self.near.run(f"touch {self.go_file}")

    def wait_completed(self, seconds=20):
        """Waits until the client has a completion for each of its messages."""
        wait_for("the client has its completions", lambda: self.completed >= self.messages * self.conns, seconds)

    def wait(self, client=True, server=True):
        """Waits for the ends of both, or of one; a server that has not heard of the end is ended."""
        if client:
            self.client_said = said(self.client.wait(self.limit + 15))
        if server:
            if not client or self.client_said.get("status") == 0:
                self.server.done.wait(self.limit)
            else:
                self.server.done.wait(15)
            self.server.kill(15)
            self.server_said = said(self.server.wait(15))
        return self.client_said, self.server_said

    def broken(self):
        """The connections whose promise was broken: the client had completions for more than the
        server received, and one of them has no error."""
        if not self.client_said or not self.server_said:
            raise LabError(f"a program said nothing: client {self.client_said}, server {self.server_said}")
        client, server = ({n: (count, error) for n, count, error in s["odd"]} for s in (self.client_said, self.server_said))
        found = {}
        for n, (received, server_error) in server.items():
            completed, client_error = client.get(n, (self.messages, 0))
            if received < completed and not (client_error and server_error):
                found[n] = f"{completed} completed, error {client_error}; {received} received, error {server_error}"
        return found

    def check_promise(self):
        assert not self.server_said.get("bad_bytes"), self.server_said
        assert self.server_said["status"] != 4, self.server_said
        assert not self.broken(), self.broken()

    def check_fine(self):
        """Everything arrived, and no end has an error."""
        self.check_promise()
        for s in (self.client_said, self.server_said):
            assert s["fine"] == self.conns, s
