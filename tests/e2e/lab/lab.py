# SPDX-License-Identifier: Apache-2.0
# The lab of a test: two hosts or four, two gateways or none, a WAN, and the verbs for tests. Guests
# boot once; all else changes under them.
import contextlib
import signal
import time
from dataclasses import dataclass

from . import image, perftest, proc
from .gateway import DEFAULTS, Gateway, needs_switch
from .host import Host, counters_of
from .net import Net
from .proc import LabError, Unreachable
from .tenant import Member
from .wan import Wan

# rxe counters that grow only when a host sends something twice, sees a gap, or learns that the far
# host is not ready.
RETRANSMIT = ("completer_retry_err", "rcvd_seq_err", "out_of_seq_request", "rcvd_rnr_err", "retry_exceeded_err",
              "retry_rnr_exceeded_err")
LISTEN_TIMEOUT = 15
BOOT_MAX = 60  # s; alone on a 2-core machine a boot takes 8 s, beside other work five times that


def ended_well(r):
    """Exit 0; or rping, which has done its rounds and ends twice: its main thread closes the CM
    channel and returns, and its CM thread, which finds the channel closed, exits with an error if it
    is faster. Anything else that goes wrong is said by a line of its own."""
    usual = " DISCONNECT EVENT...", "wait for RDMA_READ_ADV state 10"
    said = [line for line in r.text.splitlines() if not line.endswith(usual)]
    return r.ok or r.code == 255 and " rping " in f" {r.cmd}" and said == ["rdma_get_cm_event: Bad file descriptor"]


@dataclass
class Pair:
    """The results of a server and a client command that ran together."""
    server: object
    client: object

    @property
    def ok(self):
        return ended_well(self.server) and ended_well(self.client)

    @property
    def text(self):
        return self.client.text + self.server.text

    def __repr__(self):
        def end(r):
            return f"`{r.cmd}` exit {r.code}: {r.text.strip()[-300:]}"
        return f"server {end(self.server)}\nclient {end(self.client)}"


class Nccl:
    """A running rwy_ncclish pair. Data flows from A to B (or between `ends`); both ends check or
    report."""

    def __init__(self, lab, qps, steps, extra, limit, ends=None):
        opts = f"rwy_ncclish --qps {qps} --steps {steps} --limit {limit} {extra}".strip()
        self.limit = limit
        a, b = ends or (lab.a, lab.b)
        self.server = lab.serve(f"{opts} --device {b.rxe} --gid {b.gid()}", port=18777, host=b)
        self.client = a.start(f"{opts} --device {a.rxe} --gid {a.gid()} {b.ip4}")

    def wait(self):
        client = self.client.wait(self.limit + 15)
        if not client.ok:  # the server may not know yet that the client has ended
            self.server.done.wait(10)
            self.server.kill(signal.SIGTERM)
        return Pair(self.server.wait(15), client)


class Lab:
    def __init__(self, log=None, say=None):
        # prints notes that readers of a run's result need
        self.say = say or (lambda text: print(f"lab: {text}", flush=True))
        self.booted_again = 0
        self._sinks = [log] if log else []
        self.net = Net()
        self.guests = {n: Host(n, self.net, self.log) for n in "abcd"}
        self.a, self.b, self.c, self.d = self.guests.values()
        self.hosts = (self.a, self.b)  # the hosts that run
        self.members = {}  # (name of the tenant, site): Member
        self.gwa, self.gwb = Gateway("a", self.net, self.log), Gateway("b", self.net, self.log)
        self.gateways = (self.gwa, self.gwb)
        self.link = Wan(self.net, self.log)
        self.mode = self.mtu = self.tenants = None
        self.plain = "ab"  # the hosts on the plain LAN
        self.switched = False  # a switch is between hosts and gateways
        self.scale = 1.0  # of the runner: how much tests do of what has no end by itself
        self.captures, self._base = [], {}
        self.plain_wan = False  # a --native run leaves tests' impairments out

    def log(self, text):
        for sink in self._sinks:
            sink(text)

    # --- the rig ------------------------------------------------------------------------------
    def boot(self):
        image.initramfs(image.kernel())
        self.link.start()
        self._boot(self.hosts)

    def _boot(self, hosts):
        """Boots all of them, or none."""
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
        # once: QEMU's emulation hangs in one of many boots, but twice in a row is a fault
        except LabError as e:
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
        """The names of hosts whose emulated network device stands still: the guest's kernel said so
        since watch(), or the device passes nothing on. That happens in one of some hundred tests,
        with gateways and without."""
        return [h.name for h in self.hosts if h.hung() or h.device_dead()]

    def reboot(self):
        self.booted_again += 1
        for h in self.hosts:
            h.halt()
        self.hosts, self.members = (self.a, self.b), {}
        self.link.stop()
        self.boot()
        self.changed()

    def power_off(self, host):
        """The host is gone at once, like at a power failure; power_on() boots it again."""
        host.halt()

    def power_on(self, host):
        host.boot()
        self._boot_end(host)
        host.route(self.mode == "native", self.mtu)

    def scaled(self, n, least=1):
        """So many of n as the run asks for (--scale)."""
        return max(least, round(n * self.scale))

    def changed(self):
        """The state is not that of use() any more: the next use() sets it up anew."""
        self.mode = None

    def close(self):
        for g in self.gateways:
            proc.kill(g.child)
        self.capture_stop()
        for h in self.hosts:
            h.halt()
        self.link.stop()
        self.net.close()

    def use(self, mode, mtu=1500, again=False, **options):
        """Makes the lab 'native' or 'gateway', with this MTU on the hosts and these gateway
        options, without a reboot. Hosts that do not reach each other then are booted again, once;
        the second time (again) it is an error."""
        want = dict(DEFAULTS, mtu=mtu, **options)
        tenants, plain, switched = want["tenants"], want["hosts"], needs_switch(want)
        if mode == "gateway" and not all((self.net.bin / p).exists() for p in ("roceway-gateway", "roceway")):
            raise LabError("roceway-gateway or roceway is not built")
        same = (mode, mtu, tenants, plain, switched) == (self.mode, self.mtu, self.tenants, self.plain, self.switched)
        if same and (mode == "native" or all(g.alive() and g.options == want for g in self.gateways)):
            return
        self.gateways_stop()
        if (mode, tenants, plain, switched) != (self.mode, self.tenants, self.plain, self.switched):
            self.cable(mode == "native", tenants, want["wan_mtu"], plain, switched)
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
        try:
            self.wait_path()
        except Unreachable as e:
            if again:
                raise
            for h in self.hosts:
                h.describe_device()
            self.say(f"{str(e).splitlines()[0]}: all booted again")
            self.reboot()
            self.use(mode, mtu, again=True, **options)

    def cable(self, native, tenants, wan_mtu, plain="ab", switched=False):
        """Starts the hosts that these tenants need, and those of the plain LAN, and connects them:
        natively with the WAN, else with the gateway."""
        self.net.wan_mtu(9000 if native else wan_mtu)
        self.leave()
        for g in self.gateways:
            g.forget()  # members get new devices whose QPNs begin again, and no gateway learns of it
        self.plain, self.switched = plain, switched
        want = set(plain).union(*(t.hosts for t in tenants))
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
            elif switched:
                self.net.switch(ns, True, f"lan{side}", *taps)

    def leave(self):
        for m in self.members.values():
            m.down()
        self.members = {}

    def join(self, tenants, native, mtu):
        """Makes the hosts' devices of these tenants."""
        self.leave()
        for t in tenants:
            pair = [Member(t, self.guests[n]) for n in t.hosts]
            for m, far in zip(pair, reversed(pair)):
                self.members[t.name, m.site] = m
                m.up(mtu, far if native else None)

    def tenant(self, name):
        """A tenant's members at sites A and B."""
        return self.members[name, "a"], self.members[name, "b"]

    @property
    def ends(self):
        """All endpoints with an RDMA device of their own."""
        return [*self.hosts, *(m for m in self.members.values() if m.vtep)]

    def gateways_stop(self):
        for g in self.gateways:
            g.stop()

    def wait_path(self, seconds=20):
        """Waits until all pairs of hosts reach each other by IPv4 and IPv6."""
        if self.mode == "gateway" and self.gwa.options["relay"]:  # a relay carries no ping: its own answers
            for h in (self.a, self.b):
                r = h.start(f"until ping -c 1 -W 1 {h.gw4} && ping -6 -c 1 -W 1 {h.gw6}; do usleep 50000; done").wait(seconds)
                if not r.ok:
                    raise Unreachable(f"{h.name} cannot reach its relay: {r.text.strip()[-300:]}")
            proc.wait_for("the tunnel is up", lambda: all(t["state"] == "up" for g in self.gateways for t in g.ask("tunnels")["tunnels"]), seconds, 0.2)
            return
        pairs = [(self.a, self.b)] + [self.tenant(t.name) for t in self.tenants or ()]
        pairs += [(self.c, self.d)] if len(self.plain) > 2 else []
        for a, b in pairs:
            script = f"until ping -c 1 -W 1 {b.ip4} && ping -6 -c 1 -W 1 {b.ip6}; do usleep 50000; done"
            r = a.start(script).wait(seconds)
            if not r.ok:
                raise Unreachable(f"{a.name} cannot reach {b.name} ({self.mode}): {r.text.strip()[-300:]}")

    def wan(self, **impairments):
        """Sets the WAN: rtt_ms, loss, reorder, dup, corrupt, jitter_ms in ms and percent; without
        arguments: clean."""
        self.link.set(**({} if self.plain_wan else impairments))

    def outage(self, seconds, wait=True):
        """Cuts the WAN for this time (not in a plain native run)."""
        if not self.plain_wan:
            self.link.outage(seconds, wait)

    def slow_hosts(self, mbit):
        """Limits the hosts' own links to so many Mbit/s: they send the same in each run, however
        busy this machine is."""
        for h in self.hosts:
            h.run(f"tc qdisc replace dev eth0 root netem limit 60000 rate {mbit}mbit")

    # --- running programs ---------------------------------------------------------------------
    def listening(self, host, port, cm=False, seconds=LISTEN_TIMEOUT):
        """Waits until a program on the host listens on a TCP port, or on a port of the RDMA
        connection manager."""
        cond = f"rdma res show cm_id | grep -q 'LISTEN.*:{port} '" if cm else f"ss -Hltn sport = :{port} | grep -q ."
        r = host.start(f"until {cond}; do usleep 30000; done").wait(seconds)
        if not r.ok:
            raise LabError(f"host {host.name}: nobody listens on port {port} after {seconds} s")

    def serve(self, command, port, cm=False, host=None):
        """Starts a server (on B by default) and waits until it listens; returns its job."""
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
        """The client's and the server's endpoint: A and B, the reverse (on=lab.a), or the two of
        `ends`."""
        return ends or ((self.b, self.a) if on is self.a else (self.a, self.b))

    def pair(self, server, client, port, cm=False, timeout=40, on=None, ends=None):
        """Runs a server on B (or on the host `on`) and a client on the other to their ends; or on
        `ends`: (client's, server's). {server} and {server6} in the client's command stand for the
        server's addresses."""
        c_host, s_host = self._two(on, ends)
        client = client.format(server=s_host.ip4, server6=s_host.ip6)
        job = self.serve(server, port, cm, s_host)
        c = c_host.start(client).wait(timeout)
        if not ended_well(c):
            job.kill()
        s = job.wait(10)
        return Pair(s, c)

    def perftest(self, tool, ip=4, limit=40, on=None, ends=None, **how):
        """Runs a perftest pair: perftest("ib_write_bw", size=65536, iters=1000, qps=16, mtu=1024,
        cm=True). `limit`: seconds until it is ended; the other arguments are those of
        perftest.options()."""
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
        """Starts the NCCL-like workload (tests/e2e/guest/rwy_ncclish.c); wait() gives the results
        of both ends."""
        return Nccl(self, qps, steps, extra, limit, ends)

    def nccl(self, qps, steps, extra="", ends=None):
        """Runs the NCCL-like workload to its end."""
        return self.nccl_start(qps, steps, extra, ends=ends).wait()

    def wait_traffic(self, packets, host=None, seconds=20):
        """Waits until this many more RoCE packets have reached the host (B by default): a transfer
        is running."""
        host = host or self.b
        read = f"cat {host.port_dir}/hw_counters/rcvd_pkts"
        goal = int(host.run(read).out) + packets
        r = host.start(f"until [ $({read}) -ge {goal} ]; do usleep 20000; done").wait(seconds)
        if not r.ok:
            raise LabError(f"host {host.name}: not {packets} packets more within {seconds} s")

    # --- counters of the hosts --------------------------------------------------------------------
    def counters_mark(self):
        """Remembers the hosts' rxe counters; the runner calls it before each test."""
        self._base = counters_of(self.ends)
        self._base_time = time.monotonic()

    def rxe_delta(self, host):
        return self.rxe_deltas([host])[host.name]

    def rxe_deltas(self, ends):
        return {name: {k: v - self._base[name].get(k, 0) for k, v in now.items()} for name, now in counters_of(ends).items()}

    def host_retransmits(self, timer=None, qps=1, ends=None):
        """How often a host repeated something or saw a gap since the mark, by counter; empty is
        good.

        Duplicates that a host received do not count: repetitions of the other host are counted
        there, and what the far gateway repeats to a slow host does not cross the WAN twice. They
        are logged.

        An acknowledgement does not stop rxe's retransmission timer. Armed once, it fires one QP
        timeout later and repeats all that is outstanding at that moment, however young, also on a
        perfect link. Tests that choose the timeout choose one longer than they take. For programs
        with a timeout of their own (`timer`, in s) this many repetitions are allowed.
        """
        found = {}
        allowed = qps * (1 + (time.monotonic() - self._base_time) / timer) if timer else 0
        for name, delta in self.rxe_deltas(ends or self.ends).items():
            self.log(f"[{name}] rxe counters: { {k: v for k, v in delta.items() if v} }")
            if delta["completer_retry_err"] <= allowed:
                delta["completer_retry_err"] = 0
            found.update({f"{name}.{k}": delta[k] for k in RETRANSMIT if delta.get(k)})
        return found

    # --- evidence -----------------------------------------------------------------------------
    def capture_start(self, directory, only=None, snap=384):
        """tcpdump on all hosts' taps and both WAN ends, or `only` one of them; the first `snap`
        bytes of each packet (0: all). Messages of CM fit into 384."""
        directory.mkdir(parents=True, exist_ok=True)
        for ns, dev in (*((h.netns, h.tap) for h in self.hosts), (self.net.gwa, "wana"), (self.net.gwb, "wanb")):
            if only not in (None, dev):
                continue
            path = directory / f"{dev}.pcap"
            self.captures.append(proc.start([*proc.ns_argv(ns), "tcpdump", "-Z", "root", "-U", "-n", "-i", dev, "-s", str(snap),
                                             "--immediate-mode", "-B", "8192", "-C", "200", "-W", "1", "-w", path], self.net.dir / "tcpdump.log"))
            proc.wait_for(f"capture on {dev}", lambda p=path: p.exists() and p.stat().st_size >= 24, 5)

    @contextlib.contextmanager
    def capture(self, dev, snap=384):
        """Captures one of tapa, tapb, tapc, tapd, wana, wanb for a test; gives the file, which is
        complete after the block."""
        self.capture_start(self.net.dir / "capture", dev, snap)
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
        """Logs the counters of hosts, gateways and WAN."""
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
        """After a test: ends what it left running, and reboots guests that do not answer. Gateways
        that died stay down."""
        for h in self.hosts:
            try:
                fine = h.kill_all()
            except LabError:
                fine = False
            if not fine:
                self.say(f"host {h.name} does not answer: all booted again")
                self.reboot()
                return
