# SPDX-License-Identifier: Apache-2.0
# `roceway replay` at two hosts of the lab that no guest has: a namespace at each site's switch. They
# agree over a cable of their own.
#
#   sw0 of gwa: sw-play <-> eth0 of pa      pa: ctl <-> ctl of pb      pb: eth0 <-> sw-play: sw0 of gwb
import contextlib
import json
import subprocess

from . import proc
from .net import IP, MTU_MAX, PREFIX
from .proc import LabError, sh

ADDRESS = {"a": "10.1.0.77", "b": "10.2.0.77"}
GATEWAY = {"a": "10.1.0.1", "b": "10.2.0.1"}
CONTROL = {"a": "192.168.77.1", "b": "192.168.77.2"}
PORT = 7470


class Players:
    def __init__(self, lab):
        self.lab, self.net = lab, lab.net
        self.netns = {side: f"{PREFIX}{self.net.id}-p{side}" for side in "ab"}

    def build(self):
        for side, ns in self.netns.items():
            sh(IP, "netns", "add", ns)
            sh(IP, "netns", "exec", ns, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
            site = self.net.gwa if side == "a" else self.net.gwb
            sh(IP, "-n", site, "link", "add", "sw-play", "mtu", MTU_MAX, "type", "veth", "peer", "name", "eth0", "mtu", MTU_MAX, "netns", ns)
            sh(IP, "-n", site, "link", "set", "sw-play", "master", "sw0", "up")
            sh(IP, "-n", site, "link", "set", "sw-play", "type", "bridge_slave", "isolated", "on")
            sh(IP, "-n", ns, "link", "set", "eth0", "up")
        sh(IP, "-n", self.netns["a"], "link", "add", "ctl", "type", "veth", "peer", "name", "ctl", "netns", self.netns["b"])
        for side, ns in self.netns.items():
            sh(IP, "-n", ns, "addr", "add", f"{CONTROL[side]}/24", "dev", "ctl")
            sh(IP, "-n", ns, "link", "set", "ctl", "up")

    def close(self):
        for ns in self.netns.values():
            sh(IP, "netns", "del", ns, check=False)

    def command(self, side, path, host, *words):
        """The replay of `host` of the capture at a site."""
        far = "b" if side == "a" else "a"
        pair = f"{CONTROL[far]}:{PORT}" if side == "a" else f":{PORT}"
        return [*proc.ns_argv(self.netns[side]), self.net.bin / "roceway", "replay", path, "--as", host, "--to", ADDRESS[far], "--interface", "eth0",
                "--address", ADDRESS[side], "--via", GATEWAY[side], "--pair", pair, "--json", *words]

    def play(self, path, hosts, *words, limit=120):
        """Plays a capture between `hosts`, (at site A, at site B); the JSON of both replays."""
        running = [subprocess.Popen([str(w) for w in self.command(side, path, host, *words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for side, host in zip("ab", hosts)]
        try:
            said = [p.communicate(timeout=limit) for p in running]
        except subprocess.TimeoutExpired:
            raise LabError(f"a replay did not end within {limit} s") from None
        finally:
            for p in running:
                p.kill()
        for p, side, (out, err) in zip(running, "ab", said):
            self.lab.log(f"[replay {side}] exit {p.returncode}\n{out}{err}")
        assert not any(p.returncode for p in running), [f"exit {p.returncode}: {err[-300:]}{out[-1500:]}" for p, (out, err) in zip(running, said)]
        return [json.loads(out) for out, _ in said]


@contextlib.contextmanager
def players(lab):
    p = Players(lab)
    try:
        p.build()
        yield p
    finally:
        p.close()
