# SPDX-License-Identifier: Apache-2.0
# A TCP port of one namespace that leads to a host of another: the network by which programs exchange
# their queue pairs' numbers, for hosts that reach each other by relays only.
import contextlib
import ctypes
import os
import socket
import threading

_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def _inside(netns):
    """The calling thread is in the namespace. A socket stays in the one where it was made."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{netns}", os.O_RDONLY)
    try:
        if _libc.setns(there, 0):
            raise OSError(ctypes.get_errno(), f"setns {netns}")
        yield
    finally:
        _libc.setns(before, 0)
        os.close(there)
        os.close(before)


def _pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class Passage:
    """with Passage(netns, (address, port), far_netns, (far_address, far_port)): connections to the first go on to the second."""

    def __init__(self, netns, at, far_netns, to):
        self.far_netns, self.to = far_netns, to
        with _inside(netns):
            self.listener = socket.create_server(at)
        self.open = [self.listener]

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def _serve(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(near)
            try:
                with _inside(self.far_netns):
                    far = socket.create_connection(self.to, 10)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            self.open.append(far)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()
