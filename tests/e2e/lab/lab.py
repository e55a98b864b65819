# SPDX-License-Identifier: Apache-2.0
# The lab that a test gets: two hosts or four, two gateways or none, a WAN, and the verbs a test is written in.
# Guests boot once; everything else changes under them.
import contextlib
import signal
import time
from dataclasses import dataclass

from . import image, perftest, proc
from .gateway import DEFAULTS, Gateway
from .host import Host, counters_of
from .net import Net
from .proc import LabError
from .tenant import Member
from .wan import Wan

# rxe counters that move only when a host sent something twice, saw a gap or was told that the far host was not ready.
RETRANSMIT = ("completer_retry_err", "rcvd_seq_err", "out_of_seq_request", "rcvd_rnr_err", "retry_exceeded_err",
              "retry_rnr_exceeded_err")
LISTEN_TIMEOUT = 15
BOOT_MAX = 60  # s; a boot takes 8 s alone on a 2-core machine, and five times that beside other work


@dataclass
class Pair:
    """A server and a client command that ran together."""
    server: object
    client: object

    @property
    def ok(self):
        return self.server.ok and self.client.ok

    @property
    def text(self):
        return self.client.text + self.server.text

    def __repr__(self):
        def end(r):
            return f"`{r.cmd}` exit {r.code}: {r.text.strip()[-300:]}"
        return f"server {end(self.server)}\nclient {end(self.client)}"


class Nccl:
    """A running rwy_ncclish pair: data flows from A to B (or between `ends`), both ends check or report."""

    def __init__(self, lab, qps, steps, extra, limit, ends=None):
        opts = f"rwy_ncclish --qps {qps} --steps {steps} --limit {limit} {extra}".strip()
        self.limit = limit
        a, b = ends or (lab.a, lab.b)
        self.server = lab.serve(f"{opts} --device {b.rxe} --gid {b.gid()}", port=18777, host=b)
        self.client = a.start(f"{opts} --device {a.rxe} --gid {a.gid()} {b.ip4}")

    def wait(self):
        client = self.client.wait(self.limit + 15)
        if not client.ok:  # the server may not have learned of the client's end
            self.server.done.wait(10)
            self.server.kill(signal.SIGTERM)
        return Pair(self.server.wait(15), client)


class Lab:
    def __init__(self, log=None, say=None):
        self.say = say or (lambda text: print(f"lab: {text}", flush=True))  # what whoever reads a run's result must know
        self.booted_again = 0
        self._sinks = [log] if log else []
        self.net = Net()
        self.guests = {n: Host(n, self.net, self.log) for n in "abcd"}
        self.a, self.b, self.c, self.d = self.guests.values()
        self.hosts = (self.a, self.b)  # those that run
        self.members = {}              # (tenant's name, site): Member
        self.gwa, self.gwb = Gateway("a", self.net, self.log), Gateway("b", self.net, self.log)
        self.gateways = (self.gwa, self.gwb)
        self.link = Wan(self.net, self.log)
        self.mode = self.mtu = self.tenants = None
        self.captures, self._base = [], {}
        self.plain_wan = False  # a --native run: tests' impairments are left out

    def log(self, text):
        for sink in self._sinks:
            sink(text)

    # --- the rig ------------------------------------------------------------------------------
    def boot(self):
        image.initramfs(image.kernel())
        self.link.start()
        self._boot(self.hosts)

    def _boot(self, hosts):
        """All of them, or none."""
        try:
            for h in hosts:
                h.boot()
            for h in hosts:
                self._boot_end(h)
        except BaseException:
            for h in hosts:
                h.halt()
            raise

    def _boot_end(self, h):
        try:
            h.ready(BOOT_MAX)
        except LabError as e:  # once: QEMU's emulation of one in many boots hangs, two in a row mean something
            self.booted_again += 1
            self.say(f"{e}: booted again")
            h.halt()
            h.boot()
            h.ready(2 * BOOT_MAX)
        h.setup()

    def watch(self):
        for h in self.hosts:
            h.watch()

    def hung(self):
        """Names of hosts whose network device has stopped sending since watch()."""
        return [h.name for h in self.hosts if h.hung()]

    def reboot(self):
        self.booted_again += 1
        for h in self.hosts:
            h.halt()
        self.hosts, self.members = (self.a, self.b), {}
        self.link.stop()
        self.boot()
        self.changed()

    def changed(self):
        """The rig is not what use() made it any more: the next use() makes it anew."""
        self.mode = None

    def close(self):
        for g in self.gateways:
            proc.kill(g.child)
        self.capture_stop()
        for h in self.hosts:
            h.halt()
        self.link.stop()
        self.net.close()

    def use(self, mode, mtu=1500, **options):
        """Make the lab 'native' or 'gateway', with this MTU on the hosts and these gateway options; no reboot."""
        want = dict(DEFAULTS, mtu=mtu, **options)
        tenants = want["tenants"]
        if mode == "gateway" and not all((self.net.bin / p).exists() for p in ("roceway-gateway", "roceway")):
            raise LabError("roceway-gateway or roceway is not built")
        same = (mode, mtu, tenants) == (self.mode, self.mtu, self.tenants)
        if same and (mode == "native" or all(g.alive() and g.options == want for g in self.gateways)):
            return
        self.gateways_stop()
        if (mode, tenants) != (self.mode, self.tenants):
            self.cable(mode == "native", tenants, want["wan_mtu"])
        for h in self.hosts:
            h.route(mode == "native", mtu)
        self.join(tenants, mode == "native", mtu)
        self.mode, self.mtu, self.tenants = mode, mtu, tenants
        if mode == "gateway":
            for g in self.gateways:
                g.options = want
                g.start(wait=False)
            for g in self.gateways:
                g.wait_ready()
        self.wait_path()

    def cable(self, native, tenants, wan_mtu):
        """Bring up the hosts that these tenants need, and join them: natively with the WAN, else with the gateway."""
        self.net.wan_mtu(9000 if native else wan_mtu)
        self.leave()
        for g in self.gateways:
            g.forget()  # members' devices will be new ones: their QPNs begin again, with nobody to tell
        want = {"a", "b"}.union(*(t.hosts for t in tenants))
        for h in self.hosts:
            if h.name not in want:
                h.halt()
        running = {h.name for h in self.hosts if h.name in want}
        self.hosts = tuple(h for n, h in self.guests.items() if n in running)
        self._boot([self.guests[n] for n in sorted(want - running)])
        self.hosts = tuple(h for n, h in self.guests.items() if n in want)
        for side, ns in (("a", self.net.gwa), ("b", self.net.gwb)):
            taps = [h.tap for h in self.hosts if h.site == side]
            self.net.bridge(ns, False)
            self.net.switch(ns, False, f"lan{side}")
            if native:
                self.net.bridge(ns, True, *taps, f"wan{side}")
            elif tenants:
                self.net.switch(ns, True, f"lan{side}", *taps)

    def leave(self):
        for m in self.members.values():
            m.down()
        self.members = {}

    def join(self, tenants, native, mtu):
        """The hosts' devices of these tenants."""
        self.leave()
        for t in tenants:
            pair = [Member(t, self.guests[n]) for n in t.hosts]
            for m, far in zip(pair, reversed(pair)):
                self.members[t.name, m.site] = m
                m.up(mtu, far if native else None)

    def tenant(self, name):
        """A tenant's members at site A and B."""
        return self.members[name, "a"], self.members[name, "b"]

    @property
    def ends(self):
        """Everything with an RDMA device of its own."""
        return [*self.hosts, *(m for m in self.members.values() if m.vtep)]

    def gateways_stop(self):
        for g in self.gateways:
            g.stop()

    def wait_path(self, seconds=20):
        """Until all pairs of hosts reach each other by IPv4 and IPv6."""
        pairs = [(self.a, self.b)] + [self.tenant(t.name) for t in self.tenants or ()]
        for a, b in pairs:
            script = f"until ping -c 1 -W 1 {b.ip4} && ping -6 -c 1 -W 1 {b.ip6}; do usleep 50000; done"
            r = a.start(script).wait(seconds)
            if not r.ok:
                raise LabError(f"{a.name} cannot reach {b.name} ({self.mode}): {r.text.strip()[-300:]}")

    def wan(self, **impairments):
        """Set the WAN: rtt_ms, loss, reorder, dup, corrupt, jitter_ms in ms and percent; nothing given: clean."""
        self.link.set(**({} if self.plain_wan else impairments))

    def outage(self, seconds, wait=True):
        """Cut the WAN for this long (not in a plain native run)."""
        if not self.plain_wan:
            self.link.outage(seconds, wait)

    def slow_hosts(self, mbit):
        """The hosts' own links take so many Mbit/s: what they send is the same in each run, however busy this machine is."""
        for h in self.hosts:
            h.run(f"tc qdisc replace dev eth0 root netem limit 20000 rate {mbit}mbit")

    # --- running programs ---------------------------------------------------------------------
    def listening(self, host, port, cm=False, seconds=LISTEN_TIMEOUT):
        """Wait until something on the host listens on a TCP port, or on a port of the RDMA connection manager."""
        cond = f"rdma res show cm_id | grep -q 'LISTEN.*:{port} '" if cm else f"ss -Hltn sport = :{port} | grep -q ."
        r = host.start(f"until {cond}; do usleep 30000; done").wait(seconds)
        if not r.ok:
            raise LabError(f"host {host.name}: nobody listens on port {port} after {seconds} s")

    def serve(self, command, port, cm=False, host=None):
        """Start a server (on B unless told) and wait until it listens; returns its job."""
        host = host or self.b
        job = host.start(command)
        try:
            self.listening(host, port, cm)
        except LabError:
            job.kill()
            r = job.wait(5)
            raise LabError(f"server `{command}` does not listen: exit {r.code}: {r.text.strip()[-300:]}") from None
        return job

    def _two(self, on, ends):
        """Client's and server's endpoint: A and B, the other way round (on=lab.a), or the two of `ends`."""
        return ends or ((self.b, self.a) if on is self.a else (self.a, self.b))

    def pair(self, server, client, port, cm=False, timeout=40, on=None, ends=None):
        """Server on B (or the host `on`), client on the other, both to their ends; or `ends`: (client's, server's). {server} and
        {server6} in the client's command stand for the server's addresses."""
        c_host, s_host = self._two(on, ends)
        client = client.format(server=s_host.ip4, server6=s_host.ip6)
        job = self.serve(server, port, cm, s_host)
        c = c_host.start(client).wait(timeout)
        if not c.ok:
            job.kill()
        s = job.wait(10)
        return Pair(s, c)

    def perftest(self, tool, ip=4, limit=40, on=None, ends=None, **how):
        """Run a perftest pair, e.g. perftest("ib_write_bw", size=65536, iters=1000, qps=16, mtu=1024, cm=True). `limit`:
        seconds until it is ended; the other words are those of perftest.options()."""
        c_host, s_host = self._two(on, ends)
        cm = how.get("cm", False)
        s_opt = perftest.options(gid=s_host.gid(ip), dev=s_host.rxe, **how)
        c_opt = perftest.options(gid=c_host.gid(ip), dev=c_host.rxe, **how)
        start = time.monotonic()
        r = self.pair(f"{tool} {s_opt}", f"{tool} {c_opt} {s_host.ip(ip if cm else 4)}", 18515, cm, limit, on, ends)
        is_bw = tool.endswith("_bw")
        rows = perftest.parse(r.client.out, is_bw)
        ok = r.ok and bool(rows)
        last = rows[-1][2] if rows else 0.0
        return perftest.Perf(ok, bw=last if is_bw else 0.0, lat_us=0.0 if is_bw else last, rows=rows,
                             seconds=time.monotonic() - start, text="" if ok else repr(r))

    def nccl_start(self, qps=4, steps=64, extra="", limit=50, ends=None):
        """Start the NCCL-shaped workload (tests/e2e/guest/rwy_ncclish.c); wait() gives the result of both ends."""
        return Nccl(self, qps, steps, extra, limit, ends)

    def nccl(self, qps, steps, extra="", ends=None):
        """The NCCL-shaped workload to its end."""
        return self.nccl_start(qps, steps, extra, ends=ends).wait()

    def wait_traffic(self, packets, host=None, seconds=20):
        """Until this many RoCE packets more have reached the host (B unless told): a transfer is under way."""
        host = host or self.b
        read = f"cat {host.port_dir}/hw_counters/rcvd_pkts"
        goal = int(host.run(read).out) + packets
        r = host.start(f"until [ $({read}) -ge {goal} ]; do usleep 20000; done").wait(seconds)
        if not r.ok:
            raise LabError(f"host {host.name}: not {packets} packets more within {seconds} s")

    # --- what the hosts saw -------------------------------------------------------------------
    def counters_mark(self):
        """Remember the hosts' rxe counters; the runner does it before each test."""
        self._base = counters_of(self.ends)
        self._base_time = time.monotonic()

    def rxe_delta(self, host):
        return self.rxe_deltas([host])[host.name]

    def rxe_deltas(self, ends):
        return {name: {k: v - self._base[name].get(k, 0) for k, v in now.items()} for name, now in counters_of(ends).items()}

    def host_retransmits(self, timer=None, qps=1, ends=None):
        """How often a host repeated something or saw a gap since the mark, by counter; empty is good.

        Duplicates that a host received are not among them: what the other host repeated is counted there, and what the far
        gateway repeats to a slow host never crossed the WAN twice; they are logged.

        rxe's retransmission timer is not stopped by an acknowledgement: armed once, it fires one QP timeout later and repeats
        whatever is outstanding at that moment, however young, also on a perfect link. Tests that choose the timeout choose one
        longer than they take. For programs with a timeout of their own (`timer`, in s) that many repetitions are allowed."""
        found = {}
        allowed = qps * (1 + (time.monotonic() - self._base_time) / timer) if timer else 0
        for name, delta in self.rxe_deltas(ends or self.ends).items():
            self.log(f"[{name}] rxe counters: { {k: v for k, v in delta.items() if v} }")
            if delta["completer_retry_err"] <= allowed:
                delta["completer_retry_err"] = 0
            found.update({f"{name}.{k}": delta[k] for k in RETRANSMIT if delta.get(k)})
        return found

    # --- evidence -----------------------------------------------------------------------------
    def capture_start(self, directory, only=None):
        """tcpdump on all hosts' taps and both WAN ends, or `only` one of them; the first bytes of each packet."""
        directory.mkdir(parents=True, exist_ok=True)
        for ns, dev in (*((h.netns, h.tap) for h in self.hosts), (self.net.gwa, "wana"), (self.net.gwb, "wanb")):
            if only not in (None, dev):
                continue
            path = directory / f"{dev}.pcap"
            self.captures.append(proc.start([*proc.ns_argv(ns), "tcpdump", "-Z", "root", "-U", "-n", "-i", dev, "-s", "256",
                                             "--immediate-mode", "-B", "8192", "-C", "200", "-W", "1", "-w", path], self.net.dir / "tcpdump.log"))
            proc.wait_for(f"capture on {dev}", lambda p=path: p.exists() and p.stat().st_size >= 24, 5)

    @contextlib.contextmanager
    def capture(self, dev):
        """Capture one of tapa, tapb, tapc, tapd, wana, wanb for a test's own use; gives the file, complete after the block."""
        self.capture_start(self.net.dir / "capture", dev)
        mine = self.captures.pop()
        try:
            yield self.net.dir / "capture" / f"{dev}.pcap"
            proc.settled(self.net.dir / "capture" / f"{dev}.pcap")
        finally:
            proc.stop(mine)

    def capture_stop(self):
        for c in self.captures:
            proc.stop(c)
        self.captures = []

    def describe(self):
        """Into the log: what hosts, gateways and WAN counted."""
        try:
            self.host_retransmits()
        except (LabError, KeyError) as e:
            self.log(f"no host counters: {e}")
        for g in self.gateways:
            self.log(f"[gw-{g.side}] {'running' if g.alive() else 'down'}")
            for what in ("status", "flows", "tunnels", "tenant show", "counters") if g.alive() else ():
                code, out, err = g._cli(*what.split())
                self.log(f"[gw-{g.side}] roceway {what}: exit {code}\n{out}{err}")
        if self.link.child:
            with contextlib.suppress(LabError):
                self.link.ctl("stats")

    def log_files(self):
        return [p for p in self.net.dir.iterdir() if p.suffix in (".log", ".yaml")]

    def settle(self):
        """After a test: end what it left running; reboot guests that no longer answer. Gateways that died are down."""
        for h in self.hosts:
            try:
                fine = h.kill_all()
            except LabError:
                fine = False
            if not fine:
                self.say(f"host {h.name} does not answer: all booted again")
                self.reboot()
                return
