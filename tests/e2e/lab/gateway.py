# SPDX-License-Identifier: Apache-2.0
# One gateway process in its namespace: its configuration, start, stop, crash and counters.
import json
import os
import shutil
import signal
import socket
import subprocess

from . import proc
from .host import underlay
from .paths import ROOT
from .proc import LabError

CA = ROOT / "tools/ca/roceway-ca"
# qdisc_bypass=0: captures show what the gateway sends.
_CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway:
  name: site-{side}
  workers: {workers}
  steering: {steering}
  polling: adaptive
  journal_dir: {journal}
  drain_timeout: 2s
  log_level: {log_level}
eal:
  args: ["--in-memory", "--no-huge", "-m", "{eal_mb}", "--file-prefix", "{prefix}"]
ports:
  - name: lan
    device: "net_af_packet0,iface={lan},qdisc_bypass=0"
    role: lan
    addresses: [10.{site}.0.1/24, "fd00:{site}::1/64"]
    mtu: {mtu}
  - name: wan
    device: "net_af_packet1,iface=wan{side},qdisc_bypass=0"
    role: wan
    addresses: [192.0.2.{site}/24{second_wan}]
    mtu: {wan_mtu}
{second_port}tunnels:
  - name: site-{far}
    port: wan
    local: 192.0.2.{site}
    remote: 192.0.2.{far_site}
    udp_port: 4793
    prefixes: [10.{far_site}.0.0/24, "fd00:{far_site}::/64"]
    security: {security}
    peer_name: {peer_name}
    congestion_control: {cc}
    carrier: {carrier}
    tcp_connections: {tcp_connections}
    tcp_congestion_control: {tcp_cc}
    rate: {rate}
{detour_keys}{rdma_keys}{second_paths}{second_tunnel}{keys}connections:
  ack_mode: {ack_mode}
congestion:
  end_to_end: {end_to_end}
{memory}api:
  socket: {sock}
{tenant_list}{relay_keys}"""
# With the option `relay` it is roceway-proxy: each port means the host of the other site.
_RELAY = """relay:
  addresses: [10.{site}.0.1, "fd00:{site}::1"]
  redirect_port: 4790
  allow:
    - {{from: 10.{site}.0.0/24, to: 10.{far_site}.0.0/24, ports: {relay_ports}}}
    - {{from: 10.{far_site}.0.0/24, to: 10.{site}.0.0/24, ports: {relay_ports}}}
    - {{from: "fd00:{site}::/64", to: "fd00:{far_site}::/64"}}
    - {{from: "fd00:{far_site}::/64", to: "fd00:{site}::/64"}}
  map:
"""
_ENTRY = """    - {{name: v{v}-{port}, listen: "{listen}", port: {port}, target: "{target}"}}
"""
# With the option `second` one host address of each site has a tunnel of its own between the same
# two gateways.
_SECOND = """  - name: site-{far}-second
    port: wan
    local: 192.0.2.1{site}
    remote: 192.0.2.1{far_site}
    udp_port: 4794
    prefixes: [10.{far_site}.0.20/32]
    security: {security}
    peer_name: {peer_name}
    congestion_control: {cc}
    rate: {rate}
"""
# With the option `second_path` the tunnel has another path, over a WAN of its own (second.py).
_SECOND_PORT = """  - name: wan2
    device: "net_af_packet2,iface=wan2{side},qdisc_bypass=0"
    role: wan
    addresses: [198.51.100.{site}/24]
    mtu: {wan_mtu}
"""
_SECOND_PATHS = """    paths:
      - {{port: wan2, local: 198.51.100.{site}, remote: 198.51.100.{far_site}, udp_port: 4893}}
"""
# With the option `detour` what is lost repeatedly goes by this carrier over another network.
_DETOUR = """    detour: {detour}
    detour_after: 1
    tcp_local: 198.51.100.{site}
    tcp_remote: 198.51.100.{far_site}
"""
# With the option `rdma` its connections, also those of TCP, go over a network of their own (inside.py).
_RDMA = """    rdma_port: 4793
    rdma_buffers: {rdma_buffers}
    tcp_local: 203.0.113.{site}
    tcp_remote: 203.0.113.{far_site}
"""
# Certificates of roceway-ca, one CA for the lab.
_KEYS = """keys:
  certificate: {ca}/{cert}.pem
  key: {ca}/{cert}.key
  ca: {ca}/ca.pem
  crl: {ca}/crl.pem
  cipher: {cipher}
  rekey: {rekey}
"""
DEFAULTS = {"security": "keys", "peer_name": None, "cert": None, "cipher": "aes-128-gcm", "rekey": "60s",  # peer_name, cert: None: what is right
            "workers": 1, "steering": "pair", "log_level": "info", "mtu": 1500, "wan_mtu": 1500, "cc": "auto", "rate": "10Gbps",
            "carrier": "native", "tcp_connections": 4, "tcp_cc": "auto", "detour": None, "rdma": False, "rdma_buffers": 64, "eal_mb": 512,
            "ack_mode": "near", "end_to_end": "window", "memory": "", "tenants": (), "second": False, "second_path": False,
            # relay: ports of the listen map; hosts on the plain LAN: "ab" or "abcd"; switch: a switch between hosts and gateway
            "relay": (), "relay_ports": "1-65535", "hosts": "ab", "switch": False}


def needs_switch(options):
    """Whether a site has a switch between its hosts and its gateway."""
    return bool(options["switch"] or options["tenants"] or len(options["hosts"]) > 2)


def certificates(net):
    """The folder of the lab's CA, with a certificate for the gateway of each site."""
    folder = net.dir / "ca"
    if not folder.exists():
        ca(net, "init")
        for side in "ab":
            ca(net, "issue", f"site-{side}", "gateway")
    return folder


def ca(net, *words):
    """roceway-ca in the lab's folder."""
    r = subprocess.run([CA, net.dir / "ca", *words], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    if r.returncode:
        raise LabError(f"roceway-ca {' '.join(words)}: {r.stderr.strip()}")


def issue_dated(net, name, begin, end):
    """A certificate of the lab's CA, for site B's key and name, with these dates (YYYYMMDDHHMMSSZ)."""
    folder = certificates(net)
    env = dict(os.environ, SAN="DNS:site-b")
    shutil.copy(folder / "site-b.key", folder / f"{name}.key")
    for words in (["req", "-new", "-key", folder / "site-b.key", "-subj", "/OU=gateway/CN=site-b", "-out", folder / "dated.csr"],
                  ["ca", "-batch", "-notext", "-extensions", "server", "-startdate", begin, "-enddate", end, "-in", folder / "dated.csr",
                   "-out", folder / f"{name}.pem"]):
        r = subprocess.run(["openssl", words[0], "-config", folder / "ca.cnf", *words[1:]], capture_output=True, text=True, timeout=20, env=env)
        if r.returncode:
            raise LabError(f"openssl {words[0]}: {r.stderr.strip()}")


def issue_foreign(net, name):
    """A certificate for site B's name, of a CA that nobody knows."""
    folder, other = certificates(net), net.dir / "other-ca"
    if not other.exists():
        for words in ("init",), ("issue", "site-b", "gateway"):
            subprocess.run([CA, other, *words], check=True, capture_output=True, timeout=20, stdin=subprocess.DEVNULL)
    for end in "pem", "key":
        shutil.copy(other / f"site-b.{end}", folder / f"{name}.{end}")


class Gateway:
    def __init__(self, side, net, log):
        self.side, self.net, self.log = side, net, log
        self.netns = net.gwa if side == "a" else net.gwb
        self.sock = net.dir / f"gw-{side}.sock"
        self.log_file = net.dir / f"gateway-{side}.log"
        self.options = dict(DEFAULTS)
        self.child = None
        self.expected_down = True

    def write_config(self):
        site, far, far_site = (1, "b", 2) if self.side == "a" else (2, "a", 1)
        path = self.net.dir / f"gateway-{self.side}.yaml"
        tenants = self.options["tenants"]
        entries = "".join(t.yaml(self.side) for t in tenants)
        own = dict(peer_name=self.options["peer_name"] or f"site-{far}", cert=self.options["cert"] or f"site-{self.side}")
        names = dict(self.options, site=site, far=far, far_site=far_site, **own)
        names["keys"] = _KEYS.format(ca=certificates(self.net), **names) if self.options["security"] == "keys" else ""
        names["detour_keys"] = _DETOUR.format(**names) if self.options["detour"] else ""
        names["rdma_keys"] = _RDMA.format(**names) if self.options["rdma"] else ""
        second = self.options["second"]
        two = self.options["second_path"]
        relay = _RELAY.format(**names) if self.options["relay"] else ""
        for port in self.options["relay"]:
            relay += _ENTRY.format(v=4, port=port, listen=f"10.{site}.0.1", target=underlay(far))
            relay += _ENTRY.format(v=6, port=port, listen=f"fd00:{site}::1", target=underlay(far, 6))
        path.write_text(_CONFIG.format(side=self.side, sock=self.sock, journal=self.net.dir, second_wan=f", 192.0.2.1{site}/24" if second else "",
                                       second_port=_SECOND_PORT.format(side=self.side, **names) if two else "",
                                       second_paths=_SECOND_PATHS.format(**names) if two else "",
                                       second_tunnel=_SECOND.format(**names) if second else "",
                                       prefix=f"rwy-{self.net.id}-{self.side}", lan=f"lan{self.side}" if needs_switch(self.options) else f"tap{self.side}",
                                       tenant_list=f"tenants:\n{entries}" if entries else "", relay_keys=relay, **names))
        return path

    def refuses(self, **options):
        """The error if the gateway refuses this configuration, else None."""
        before, self.options = self.options, dict(DEFAULTS, **options)
        r = subprocess.run([self.net.bin / "roceway-gateway", "--check", self.write_config()], capture_output=True, text=True,
                           timeout=20, stdin=subprocess.DEVNULL)
        self.options = before
        return (r.stderr + r.stdout).strip() if r.returncode else None

    def start(self, wait=True):
        self.sock.unlink(missing_ok=True)
        program = "roceway-proxy" if self.options["relay"] else "roceway-gateway"
        self.child = proc.start([*proc.ns_argv(self.netns), self.net.bin / program, "--config", self.write_config()],
                                self.log_file)
        self.expected_down = False
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=20):
        proc.wait_for(f"gateway {self.side}: ready", lambda: not self.alive() or self._cli("status")[0] == 0, seconds, 0.1)
        if not self.alive():
            raise LabError(f"gateway {self.side}: ended: {self.log_file.read_text(errors='replace')[-800:]}")

    def stop(self):
        """Stops it; LabError if it does not end within 5 s, or not with 0."""
        child, self.child, self.expected_down = self.child, None, True
        if child is None:
            return
        clean = proc.stop(child)
        if not clean or child.returncode:
            raise LabError(f"gateway {self.side}: SIGTERM: {'exit ' + str(child.returncode) if clean else 'no end in 5 s'}")

    def kill(self):
        """Crashes it: SIGKILL."""
        self.log(f"[gw-{self.side}] SIGKILL")
        child, self.child, self.expected_down = self.child, None, True
        if child is not None:
            child.send_signal(signal.SIGKILL)
            child.wait(10)

    def forget(self):
        """It forgets all connections, for hosts that begin anew."""
        (self.net.dir / f"roceway-site-{self.side}.journal").unlink(missing_ok=True)

    def alive(self):
        return self.child is not None and self.child.poll() is None

    def died(self):
        """True if it ended without a request."""
        return not self.expected_down and not self.alive()

    def _cli(self, *words, timeout=5):
        try:
            r = subprocess.run([self.net.bin / "roceway", "--socket", str(self.sock), *words], capture_output=True, text=True,
                               timeout=timeout, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return 124, "", "timeout"
        return r.returncode, r.stdout, r.stderr

    def ask(self, *words):
        """The JSON answer of `roceway WORDS --json`."""
        code, out, err = self._cli(*words, "--json")
        if code:
            raise LabError(f"roceway {' '.join(words)} on gateway {self.side}: exit {code}: {err.strip()}")
        return json.loads(out)

    def reload(self, **options):
        """Changes options in its configuration and sends SIGHUP."""
        self.options = dict(self.options, **options)
        self.write_config()
        self.child.send_signal(signal.SIGHUP)

    def tenant(self, name):
        """The output of `roceway tenant show` for one tenant."""
        said = self.ask("tenant", "show")
        found = [t for t in said["tenants"] if t["name"] == name]
        if not found:
            raise LabError(f"gateway {self.side} has no tenant {name}: {said}")
        return found[0]

    def _do(self, *words):
        code, out, err = self._cli(*words)
        self.log(f"[gw-{self.side}] roceway {' '.join(words)}: exit {code}\n{out}{err}")
        if code:
            raise LabError(f"roceway {' '.join(words)} on gateway {self.side}: exit {code}: {err.strip()}")
        return out

    def tenant_add(self, tenant):
        path = self.net.dir / f"tenant-{self.side}.yaml"
        path.write_text(tenant.keys(self.side))
        return self._do("tenant", "add", tenant.name, "--file", str(path))

    def tenant_set(self, name, *words, **keys):
        return self._do("tenant", "set", name, *words, *(f"{k}={v}" for k, v in keys.items()))

    def move(self, carrier):
        """Moves its tunnel to another carrier while traffic runs."""
        return self._do("tunnel", "set", f"site-{'b' if self.side == 'a' else 'a'}", f"carrier={carrier}")

    def carrier(self):
        """The carrier of its tunnel, by `roceway tunnels`."""
        return self.ask("tunnels")["tunnels"][0]["carrier"]

    def tenant_del(self, name):
        return self._do("tenant", "del", name)

    def flows(self, tenant=""):
        """Its flows of one tenant; "": those of the plain LAN."""
        return [f for f in self.ask("flows")["flows"] if f.get("tenant", "") == tenant]

    def get(self, page):
        """A page of its API; cheap."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(str(self.sock))
            s.sendall(f"GET {page} HTTP/1.0\r\n\r\n".encode())
            said = b"".join(iter(lambda: s.recv(1 << 16), b""))
        return json.loads(said.partition(b"\r\n\r\n")[2])

    def sum(self, name):
        """The sum of a counter over all groups; cheap."""
        return sum(c["value"] for c in self.get("/v1/counters")["counters"] if c["name"] == name and "port" not in c)

    def congestion_control(self):
        """The algorithm's line of the first worker."""
        return self.get("/v1/tunnels?workers=1")["tunnels"][0]["halves"][0]["congestion_control"]

    def drops(self):
        """{name: value} of all counters of dropped packets from hosts."""
        found = {}
        for c in self.ask("counters")["counters"]:
            if c["name"].startswith("drop_") and "port" not in c and "tunnel" not in c:
                found[c["name"]] = found.get(c["name"], 0) + c["value"]
        return found

    def counters(self):
        """Every counter by name, as the CLI prints them."""
        return self.ask("counters")
