# SPDX-License-Identifier: Apache-2.0
# Several gateways at each site, for tests of the controller. Each runs in a namespace of its own,
# with kernel bridges to the site's LAN and WAN, and on a management network (10.255.0.0/24) with
# the controllers.
#
#   gwa: host's tap, and switches fl (LAN) and fw (WAN, with the cable to the emulated WAN)
#   gwa1, gwa2: lan, wan, mgmt            gwb, gwb1, gwb2: the same at site B
#   ctl: switch mg, the controllers
#
# Controllers listen on 10.255.0.1, ports 7443, 7444, ...; etcd, if a test wants it, is on
# 10.255.0.1, too. The hosts get several addresses each and, as a host's agent would install them,
# routes by pair of addresses.
import contextlib
import json
import shutil
import subprocess
import time
from pathlib import Path

from . import proc
from .gateway import Gateway
from .net import IP, MTU_MAX
from .proc import LabError, ns_argv, sh

CA = Path(__file__).resolve().parents[3] / "tools/ca/roceway-ca"
ADDRESSES = 4  # of each host; ADDRESSES * ADDRESSES pairs
_CONFIG = """# SPDX-License-Identifier: Apache-2.0
gateway:
  name: {name}
  workers: 1
  polling: adaptive
  journal_dir: {dir}
  drain_timeout: 2s
  log_level: info
eal:
  args: ["--in-memory", "--no-huge", "-m", "384", "--file-prefix", "{prefix}"]
ports:
  - name: lan
    device: "net_af_packet0,iface=lan,qdisc_bypass=0"
    role: lan
    addresses: [{lan}/24]
    mtu: 1500
  - name: wan
    device: "net_af_packet1,iface=wan,qdisc_bypass=0"
    role: wan
    addresses: [{wan}/24]
    mtu: 1500
api:
  socket: {sock}
{more}"""


def host_addresses(site):
    return [f"10.{site}.0.{10 + i}" for i in range(ADDRESSES)]


class FleetGateway(Gateway):
    """The n-th gateway of a side; `more` is appended to its file (tunnels, controller)."""

    def __init__(self, side, n, net, log):
        super().__init__(side, net, log)
        self.n, self.name = n, f"{side}{n}"
        self.netns = f"{net.gwa.rsplit('-', 1)[0]}-gw{self.name}"
        self.site = "ab".index(side) + 1
        self.lan, self.wan, self.mgmt = f"10.{self.site}.0.{100 + n}", f"192.0.2.{10 * self.site + n}", f"10.255.0.{10 * self.site + n}"
        self.sock, self.log_file = net.dir / f"gw-{self.name}.sock", net.dir / f"gateway-{self.name}.log"
        self.side, self.more = self.name, ""

    def tunnels(self):
        """The tunnels that are up."""
        return [t for t in self.ask("tunnels")["tunnels"] if t["state"] == "up"]

    def write_config(self):
        path = self.net.dir / f"gateway-{self.name}.yaml"
        path.write_text(_CONFIG.format(name=self.name, dir=self.net.dir, prefix=f"rwy-{self.net.id}-{self.name}", lan=self.lan,
                                       wan=self.wan, sock=self.sock, more=self.more))
        return path


def _namespace(ns):
    sh(IP, "netns", "add", ns)
    sh(IP, "netns", "exec", ns, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; echo 0 >/proc/sys/net/ipv4/ip_forward")
    sh(IP, "-n", ns, "link", "set", "lo", "up")


def _switch(ns, name):
    sh(IP, "-n", ns, "link", "add", name, "type", "bridge", "mcast_snooping", "0", "forward_delay", "0", "stp_state", "0")
    sh(IP, "-n", ns, "link", "set", name, "mtu", MTU_MAX, "up")


def _plug(ns, switch, port, far_ns, dev):
    """Connects a switch's port with a device in another namespace."""
    sh(IP, "-n", ns, "link", "add", port, "mtu", MTU_MAX, "type", "veth", "peer", "name", dev, "mtu", MTU_MAX, "netns", far_ns)
    sh(IP, "-n", ns, "link", "set", port, "master", switch, "up")
    sh(IP, "-n", far_ns, "link", "set", dev, "up")


class Watch:
    def __init__(self, argv):
        self.process = subprocess.Popen([str(x) for x in argv], stdout=subprocess.PIPE, text=True)

    def answer(self):
        out, _ = self.process.communicate(timeout=60)
        text, _, status = out.rpartition("\n")
        return (json.loads(text) if status == "200" else None), time.monotonic()


class Alias:
    """A host that uses one of its further addresses."""

    def __init__(self, host, address):
        self.host, self.ip4 = host, address

    def __getattr__(self, name):
        return getattr(self.host, name)

    def ip(self, version=4):
        return self.ip4

    def gid(self, version=4):
        self.host.gid()  # reads the table once
        return self.host.gids[self.ip4]


class Fleet:
    def __init__(self, lab, per_site=2):
        self.lab, net = lab, lab.net
        self.base = net.gwa.rsplit("-", 1)[0]
        self.ctl = f"{self.base}-ctl"
        self.gateways = {f"{s}{n}": FleetGateway(s, n, net, lab.log) for s in "ab" for n in range(1, per_site + 1)}
        self.processes = {}
        self.home, self.address = self.ctl, "10.255.0.1"  # of the controllers

    def build(self):
        """Lays the cables; the lab's own two gateways stop."""
        lab, net = self.lab, self.lab.net
        lab.gateways_stop()
        lab.cable(True, (), MTU_MAX)
        lab.changed()
        _namespace(self.ctl)
        _switch(self.ctl, "mg")
        sh(IP, "-n", self.ctl, "addr", "add", "10.255.0.1/24", "dev", "mg")
        for side, ns in (("a", net.gwa), ("b", net.gwb)):
            net.bridge(ns, False)
            for switch, first in (("fl", f"tap{side}"), ("fw", f"wan{side}")):
                _switch(ns, switch)
                sh(IP, "-n", ns, "link", "set", first, "master", switch, "up")
        for g in self.gateways.values():
            _namespace(g.netns)
            here = net.gwa if g.name[0] == "a" else net.gwb
            _plug(here, "fl", f"fl-{g.name}", g.netns, "lan")
            _plug(here, "fw", f"fw-{g.name}", g.netns, "wan")
            _plug(self.ctl, "mg", f"mg-{g.name}", g.netns, "mgmt")
            sh(IP, "-n", g.netns, "addr", "add", f"{g.mgmt}/24", "dev", "mgmt")
        for host, site in ((lab.a, 1), (lab.b, 2)):
            host.run("; ".join(f"ip addr add {x}/24 dev eth0 2>/dev/null" for x in host_addresses(site)) + "; true")
            host.gids = {}

    def _rules(self, site):
        """The commands for a host without routes of pairs."""
        # for perftest's own messages over TCP, from the host's first address
        first = self.gateways[f"{'ab'[site - 1]}1"].lan
        return ["ip rule flush; ip rule add pref 32766 table main", f"ip route replace 10.{3 - site}.0.0/24 via {first} dev eth0"] + \
               [f"ip rule add pref {100 + i} from {x} table {100 + i}; ip route flush table {100 + i} 2>/dev/null"
                for i, x in enumerate(host_addresses(site))] + ["ip neigh flush dev eth0"]

    def routes(self, pairs, anew=True):
        """{(address at A, address at B): gateway at A's LAN address, gateway at B's}: both hosts'
        routes; unless `anew`, those of other pairs stay."""
        for host, site, way in ((self.lab.a, 1, lambda p, g: (p[0], p[1], g[0])), (self.lab.b, 2, lambda p, g: (p[1], p[0], g[1]))):
            lines = self._rules(site) if anew else []
            for pair, gws in pairs.items():
                source, destination, gw = way(pair, gws)
                lines.append(f"ip route replace {destination} via {gw} dev eth0 table {100 + host_addresses(site).index(source)}")
            host.run("; ".join(lines), timeout=60)

    def capture(self, directory, port="lan", names=None):
        """tcpdump at this port of these gateways (None: of all); {gateway: file}. The lab's
        capture_stop() ends it."""
        directory.mkdir(parents=True, exist_ok=True)
        files = {}
        for g in [self.gateways[n] for n in names or self.gateways]:
            path = directory / f"{g.name}.pcap"
            path.unlink(missing_ok=True)
            self.lab.captures.append(proc.start([*ns_argv(g.netns), "tcpdump", "-Z", "root", "-U", "-n", "-i", port, "-s", "128",
                                                 "--immediate-mode", "-w", path], self.lab.net.dir / "tcpdump.log"))
            proc.wait_for(f"capture at {g.name}", lambda p=path: p.exists() and p.stat().st_size >= 24, 5)
            files[g.name] = path
        return files

    def run(self, name, argv, ready, seconds=15):
        """Starts a process in the controllers' namespace."""
        p = proc.start([*ns_argv(self.home), *argv], self.lab.net.dir / f"{name}.log")
        self.processes[name] = p
        proc.wait_for(f"{name}: ready", lambda: p.poll() is not None or ready(), seconds, 0.1)
        if p.poll() is not None:
            raise LabError(f"{name} ended: {(self.lab.net.dir / f'{name}.log').read_text(errors='replace')[-800:]}")

    # --- controllers --------------------------------------------------------------------------
    def controllers(self, n=1, etcd=0, lease="900ms", offers=("bandwidth: 3Gbps", "bandwidth: 1Gbps"), beside=None, more=""):
        """Makes a CA and `n` controllers over SQLite (one) or over `etcd` nodes, and the files that
        gateways need to find them. offers: capabilities of each gateway of a site; beside: the
        gateway in whose namespace they run; more: lines for the controllers' files."""
        if beside:
            self.home, self.address = self.gateways[beside].netns, self.gateways[beside].mgmt
        self.ca = self.lab.net.dir / "ca"
        shutil.rmtree(self.ca, ignore_errors=True)
        self._ca("init")
        for g in self.gateways.values():
            self._ca("issue", g.name, "gateway")
        self._ca("issue", "operator", "operator")
        store = f"kind: sqlite\n  path: {self.lab.net.dir}/controller.db"
        if etcd:
            store = f"kind: etcd\n  endpoints: [{', '.join(self._etcd(etcd))}]\n  prefix: /roceway/"
        else:
            for f in self.lab.net.dir.glob("controller.db*"):
                f.unlink()
        self.store, self.lease, self.more = store, lease, more
        for i in range(n):
            self.controller(i)
        urls = ", ".join(f"https://{self.address}:{7443 + i}" for i in range(n))
        for g in self.gateways.values():
            g.more = f"""controller:
  urls: [{urls}]
  ca: {self.ca}/ca.pem
  certificate: {self.ca}/{g.name}.pem
  key: {self.ca}/{g.name}.key
  site: {"site-" + g.name[0]}
  {offers[g.n - 1]}
  document: {self.lab.net.dir}/document-{g.name}.json
"""
            (self.lab.net.dir / f"document-{g.name}.json").unlink(missing_ok=True)

    def controller(self, i):
        """Starts the i-th controller (again)."""
        d, name = self.lab.net.dir, f"controller-{i + 1}"
        if not (self.ca / f"{name}.pem").exists():
            self._ca("issue", name, "controller", self.address)
        conf = d / f"{name}.yaml"
        conf.write_text(f"""# SPDX-License-Identifier: Apache-2.0
controller:
  name: {name}
  log_level: info
listen:
  address: {self.address}:{7443 + i}
  page: 127.0.0.1:{7480 + i}
tls:
  ca: {self.ca}/ca.pem
  certificate: {self.ca}/{name}.pem
  key: {self.ca}/{name}.key
store:
  {self.store}
gateways:
  lease: {self.lease}
policy:
  confirm: 6s
  hold: 5s
{self.more}""")
        self.run(name, [self.lab.net.bin / "roceway-controller", "--config", conf], lambda: self.ask("GET", "/v1/health", i) is not None)

    def _ca(self, *words):
        subprocess.run([CA, self.ca, *words], check=True, capture_output=True, text=True)

    def _etcd(self, n):
        names = [f"etcd{i}" for i in range(n)]
        peers = ",".join(f"{x}=http://10.255.0.1:{2480 + i}" for i, x in enumerate(names))
        for i, x in enumerate(names):
            data = self.lab.net.dir / x
            shutil.rmtree(data, ignore_errors=True)
            client, peer = f"http://10.255.0.1:{2379 + 10 * i}", f"http://10.255.0.1:{2480 + i}"
            argv = ["etcd", "--name", x, "--data-dir", data, "--listen-client-urls", client, "--advertise-client-urls", client,
                    "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", peers, "--unsafe-no-fsync"]
            self.processes[x] = proc.start([*ns_argv(self.ctl), *argv], self.lab.net.dir / f"{x}.log")
        urls = [f"http://10.255.0.1:{2379 + 10 * i}" for i in range(n)]
        proc.wait_for("etcd: health", lambda: '"true"' in sh(*ns_argv(self.ctl), "curl", "-s", "-m", "2", urls[0] + "/health", check=False), 30, 0.2)
        return urls

    def curl(self, method, path, i=0, body=None, wait=10):
        """The command that asks the i-th controller as the operator. The status is the last line of
        its output."""
        argv = [*ns_argv(self.ctl), "curl", "-s", "-m", str(wait), "-X", method, "--cacert", self.ca / "ca.pem", "--cert", self.ca / "operator.pem",
                "--key", self.ca / "operator.key", "-w", "\n%{http_code}", f"https://{self.address}:{7443 + i}{path}"]
        return argv + (["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body is not None else [])

    def ask(self, method, path, i=0, body=None, want=(200, 201)):
        """The answer as JSON; None: nobody answered; LabError: it is a refusal."""
        r = subprocess.run([str(x) for x in self.curl(method, path, i, body)], capture_output=True, text=True)
        text, _, status = r.stdout.rpartition("\n")
        if r.returncode or status == "000":
            return None
        if want and int(status) not in want:
            raise LabError(f"{method} {path}: {status}: {text[:300]}")
        return json.loads(text) if text else {}

    def watch(self, path, i=0, wait=20):
        """Starts a long poll; its answer() is (JSON, time of arrival)."""
        return Watch(self.curl("GET", path, i, wait=wait))

    def up(self, i=0):
        """The number of gateways from which the i-th controller has a lease."""
        said = self.ask("GET", "/v1/gateways", i)
        return sum(g["state"] == "up" for g in said["gateways"]) if said else 0

    def end(self, host, address):
        """The host as an endpoint with one of its addresses, for `ends=` of the lab's verbs."""
        return Alias(host, address)

    def close(self):
        for p in [*self.processes.values(), *(g.child for g in self.gateways.values())]:
            proc.kill(p)
        for host, site in ((self.lab.a, 1), (self.lab.b, 2)):
            host.run("ip rule flush; ip rule add pref 32766 table main; " + "; ".join(f"ip addr del {x}/24 dev eth0" for x in host_addresses(site)) + "; true")
            host.gids = {}
        for ns in (self.lab.net.gwa, self.lab.net.gwb):
            cables = [f"{x}-{g.name}" for g in self.gateways.values() for x in ("fl", "fw")]  # a namespace releases them some time later
            for dev in ("fl", "fw", *cables):
                sh(IP, "-n", ns, "link", "del", dev, check=False)
        for ns in (*(g.netns for g in self.gateways.values()), self.ctl):
            sh(IP, "netns", "del", ns, check=False)
        self.lab.changed()


@contextlib.contextmanager
def fleet(lab, per_site=2, **how):
    """Gateways and controllers that run and know each other; `how`: arguments of controllers()."""
    f = Fleet(lab, per_site)
    try:
        f.build()
        f.controllers(**how)
        for n, site in enumerate("ab", 1):
            f.ask("PUT", f"/v1/sites/site-{site}", body={"prefixes": [f"10.{n}.0.0/24"], "location": f"Site {site.upper()}"})
        for g in f.gateways.values():
            g.start()
        proc.wait_for("all gateways registered", lambda: f.up() == 2 * per_site, 20, 0.2)
        proc.wait_for("each gateway has its document", lambda: all(len(g.tunnels()) == per_site for g in f.gateways.values()), 20, 0.2)
        yield f
    finally:
        f.close()
