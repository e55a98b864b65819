# SPDX-License-Identifier: Apache-2.0
# The promise on real hosts, at 20 ms and 1 % loss: what a host has a completion for is delivered,
# byte-exact, or both hosts have an error, whatever ends: a connection, a program, a host, the WAN.
# Nobody's requests take another's share, and the gateways' memory is free again afterwards.
#
# `make e2e T=promise` runs all; SCALE=0.1 a tenth of what has no end by itself.
from lab import TIMEOUT, each, needs
from lab.messages import Messages, said
from lab.proc import wait_for

LOSSY = {"rtt_ms": 20, "loss": 1}
MODES = ["near", "causal", "far", "end"]
OUTAGE = 10  # s
# A host that is silent is given up when its peer would do so: with these CM values within 7.5 s.
PATIENCE = {"timeout": 14, "retry": 6}
LATE = 5  # exit status of our programs: no end within --limit
BUFFERS = 16384  # far fewer than there are answers
MEMORY = f"memory: {{buffers: {BUFFERS}, custody_total: 32MiB, custody_per_connection: 16MiB}}\n"
FEW = 64  # buffers in receive rings and in the workers' hands, which vary
REPEAT = 256  # READ responses that are kept for a connection


def mode_option(mode, **_):
    return mode


def free(lab):
    return {g.side: g.ask("status")["buffers_free"] for g in lab.gateways if g.alive()}


def wait_free(lab, before, kept=0, seconds=30):
    """Waits until the gateways' buffers are free again, but for what may be kept."""
    wait_for(f"buffers free again: {before} before, {kept} kept; now {free(lab)}",
             lambda: all(n >= before[side] - kept - FEW for side, n in free(lab).items()), seconds, 0.2)


def works(lab):
    """New connections between the hosts work."""
    m = Messages(lab, messages=50)
    m.wait()
    m.check_fine()


# --- shares --------------------------------------------------------------------------------------

ATOMICS, READS, WRITES = 200000, 16, 4  # ATOMICs in all; QPs
PAIR_1 = f"--atomics 4 --reads {READS} --size 64 --window 32 --atomics-pace 1000 --reads-pace 400"
PAIR_2 = f"--writes {WRITES} --size 4096 --window 8 --writes-pace 200"
SHARE = 0.95


def start_masses(lab, options, port, ends, limit):
    """Starts rwy_masses between two hosts; returns client's and server's job."""
    server = lab.serve(f"exec rwy_masses {options} --port {port} --limit {limit + 60}", port, cm=True, host=ends[1])
    client = ends[0].start(f"exec rwy_masses {options} --port {port} --limit {limit} --timeout {TIMEOUT} {ends[1].ip4}")
    return client, server


def rates(jobs, limit):
    """{kind: requests a second} of a client that has ended; both ends must have found all right."""
    client, server = (job.wait(limit) for job in jobs)
    assert client.ok and server.ok, (client, server)
    s = said(client)
    return {k: s[k] / s["seconds"] for k in ("atomics", "reads", "writes") if s[k]}, s


def alone(lab, seconds):
    """The rates of both pairs when each has the gateways for itself."""
    found = {}
    for options, port, ends in ((PAIR_1, 7473, (lab.a, lab.b)), (PAIR_2, 7474, (lab.c, lab.d))):
        found.update(rates(start_masses(lab, f"{options} --seconds {seconds}", port, ends, 60), 90)[0])
    return found


@needs(gateway=True, timeout=600, hosts="abcd", memory=MEMORY)
def test_promise_share(lab):
    """200,000 ATOMICs and small READs beside WRITEs: each gets 95 % of its share.

    ATOMICs are on 4 QPs and 64-byte READs on 16, WRITEs come from another pair of hosts. Afterwards
    the gateways' buffers are free again.

    Each program asks at a fixed rate, and all together ask for less than WAN, gateways and this
    machine have. So each one's max-min share is what it gets alone, which is measured before and
    after. Programs without a rate would share this machine's cores, which says nothing about the
    gateways."""
    lab.wan(**LOSSY)
    count, seconds = lab.scaled(ATOMICS, 2000), max(3, round(12 * min(1, lab.scale)))
    before, first = free(lab), alone(lab, seconds)
    beside = start_masses(lab, PAIR_2, 7474, (lab.c, lab.d), 500)
    together, s = rates(start_masses(lab, f"{PAIR_1} --count {count}", 7473, (lab.a, lab.b), 400), 430)
    beside[0].kill(15)
    together.update(rates(beside, 60)[0])
    last = alone(lab, seconds)
    share = {k: together[k] / ((first[k] + last[k]) / 2) for k in together}
    lab.say(f"promise_share: alone {shown(first)}, together {shown(together)}, alone {shown(last)}; of its share: {shown(share)}")
    assert s["atomics"] == count, s
    wait_free(lab, before, kept=REPEAT * READS)
    for g in lab.gateways:
        assert not g.sum("drop_low_memory"), g.drops()
    assert all(v >= SHARE for v in share.values()), share


def shown(figures):
    return {k: round(v, 2) if v < 10 else round(v) for k, v in figures.items()}


# --- the end of a connection ------------------------------------------------------------------------

@needs(gateway=True, timeout=150, ack_mode=mode_option, if_accepted=True)
@each(mode=MODES)
def test_promise_disconnect(lab, mode):
    """rdma_disconnect right after the last completion, and no WAN for 10 s.

    Everything is delivered, or both ends have an error."""
    lab.wan(**LOSSY)
    before = free(lab)
    m = Messages(lab, messages=200, hold=True, limit=90)
    m.wait_up()
    lab.outage(OUTAGE, wait=False)
    m.go()
    if mode in ("near", "causal"):
        m.wait_completed(OUTAGE - 2)
        assert m.received < m.messages, "the outage came too late to show anything"
    client, server = m.wait()
    lab.log(f"client {client}, server {server}")
    m.check_promise()
    wait_free(lab, before)
    works(lab)


@needs(gateway=True, timeout=300)
def test_promise_connects(lab):
    """1,000 connects and disconnects: all deliver, no connection and no buffer stays.

    There are 8 at a time, and each ends right after its last completion."""
    lab.wan(**LOSSY)
    before, flows = free(lab), {g.side: len(g.flows()) for g in lab.gateways}
    m = Messages(lab, conns=lab.scaled(1000, 16), open=8, messages=6, size=2048, limit=240)
    client, server = m.wait()
    lab.say(f"promise_connects: client fine {client.get('fine')}, server fine {server.get('fine')} of {m.conns}")
    m.check_fine()
    wait_free(lab, before)
    for g in lab.gateways:
        wait_for(f"gateway {g.side} forgets connections that are over", lambda g=g: len(g.flows()) <= flows[g.side], 60, 0.5)


@needs(gateway=True, timeout=240)
def test_promise_qps(lab):
    """256 QPs at once, all PSNs 0: every byte right, buffers free again."""
    lab.wan(**LOSSY)
    before = free(lab)
    r = lab.nccl_start(qps=256, steps=lab.scaled(16, 8), extra=f"--chunk 8192 --timeout {TIMEOUT}", limit=200).wait()
    assert r.ok, r
    wait_free(lab, before)


# --- programs and hosts that die -----------------------------------------------------------------

def acknowledged(lab):
    """A client whose requests are all completed while the WAN is out; it waits for an answer."""
    lab.wan(**LOSSY)
    m = Messages(lab, messages=200, reply=1, hold=True, limit=90, **PATIENCE)
    m.wait_up()
    lab.outage(OUTAGE, wait=False)
    m.go()
    m.wait_completed(OUTAGE - 3)
    assert m.received < m.messages, "the outage came too late to show anything"
    return m


@needs(gateway=True, timeout=200)
@each(which=["client", "server"])
def test_promise_killed(lab, which):
    """SIGKILL while requests are acknowledged and not delivered.

    The server gets them all, or the client hears of it."""
    before = free(lab)
    m = acknowledged(lab)
    if which == "client":
        m.client.kill()
        _, server = m.wait(client=False)
        assert server, "the server does not end"
        received = server["messages"]
        assert received == m.messages or any(error for _, _, error in server["odd"]), server
    else:
        m.server.kill()
        client, _ = m.wait(server=False)
        assert client["status"] not in (0, LATE), f"the client was not told: {client}"
    wait_free(lab, before)
    works(lab)


@needs(gateway=True, timeout=300)
@each(which=["client", "server"])
def test_promise_rebooted(lab, which):
    """A host loses power while requests are acknowledged and not delivered, and boots again.

    Its peer gets them all, or hears of it; afterwards the same QPNs and PSNs work."""
    used = lab.nccl(4, 8)
    assert used.ok, used
    before = free(lab)
    m = acknowledged(lab)
    host = m.near if which == "client" else m.far
    lab.power_off(host)
    if which == "client":
        wait_for("the server has every message", lambda: m.received == m.messages, 60)
        m.server.kill(15)  # a receiver never hears that its peer has no power, natively neither
        m.server_said = said(m.server.wait(15))
        assert not m.server_said["bad_bytes"], m.server_said
    else:
        client, _ = m.wait(server=False)
        assert client["status"] not in (0, LATE), f"the client was not told: {client}"
    lab.power_on(host)
    lab.wait_path()
    again = lab.nccl(4, 8)
    assert again.ok, again
    works(lab)
    wait_free(lab, before)
