# SPDX-License-Identifier: Apache-2.0
# Ack mode `end` and hosts with little patience: a host's queue pair fails after timeout x retries
# without progress. FIRST and MIDDLE packets are acknowledged early, so that only the packet that
# completes a message sees the round trip. A host whose patience is below the round trip cannot be
# helped, but its operator is told before the queue pair dies. The WAN loses nothing here: a lost
# packet takes a second round trip, which such a host does not wait for natively either.
from lab import needs, pcap
from lab.messages import Messages
from lab.proc import wait_for

RTT = 110  # ms
# QP timeout 13 is 33.6 ms; 4 of them are 134 ms, 1.2 RTT. Soft-RoCE takes a retry count of 7 for no
# limit. Its CM never says less than 15 (134 ms), whatever the QP has, and a client may use the next
# step. So the host with too little is one that gives up after 67 ms, and may wait for 537 ms.
ENOUGH = {"timeout": 13, "retry": 4}
TOO_LITTLE, TOO_FAR = {"timeout": 13, "retry": 1}, 600
QP_TIMEOUT = 0.0336  # s
PACKETS = 8  # of a message
RETRY_EXCEEDED = 12  # work completion's status
WARNING = "gives up before an ACK can come"


def far_away(lab, rtt):
    """Sets the distance and starts the gateways anew: they know the shortest round trip they ever
    saw."""
    lab.wan(rtt_ms=rtt)
    for g in lab.gateways:
        g.stop()
        g.forget()
    for g in lab.gateways:
        g.start(wait=False)
    for g in lab.gateways:
        g.wait_ready()
    lab.wait_path()


def warnings(lab):
    return lab.gwa.log_file.read_text(errors="replace").count(WARNING)


def impatient(lab):
    return [f for f in lab.gwa.flows() if f.get("impatient")]


@needs(gateway=True, timeout=150, ack_mode="end")
def test_promise_patience(lab):
    """`end`, hosts that give up after 1.2 RTT: no QP dies.

    No packet comes twice but those that complete a message."""
    far_away(lab, RTT)
    before = warnings(lab)
    with lab.capture("tapa") as wire:
        m = Messages(lab, messages=lab.scaled(200, 20), size=PACKETS * 1024, window=1, limit=90, **ENOUGH)
        client, server = m.wait()
    completing, others = pcap.repeated(wire, lab.a.ip4)
    lab.say(f"promise_patience: {m.messages} messages of {PACKETS} packets; repeated: {len(completing)} that complete one, {len(others)} others")
    m.check_fine()
    # A timer of Soft-RoCE that runs since an earlier packet repeats what is outstanding, however young.
    waited = [o for o in others if o[2] > QP_TIMEOUT]
    assert not waited, f"repeated: {waited[:10]}; client {client}, server {server}"
    assert warnings(lab) == before and not impatient(lab), "a host with enough patience is called impatient"


@needs(gateway=True, timeout=90, ack_mode="end")
def test_promise_patience_short(lab):
    """`end`, hosts that give up sooner: log and `roceway flows` say so before the QP dies."""
    far_away(lab, TOO_FAR)
    before = warnings(lab)
    m = Messages(lab, messages=20, size=PACKETS * 1024, hold=True, limit=40, **TOO_LITTLE)
    m.wait_up()
    wait_for("the log names the host", lambda: warnings(lab) > before, 10)
    wait_for("`roceway flows` names it", lambda: impatient(lab), 10)
    assert m.completed == 0
    m.go()
    client, _ = m.wait()
    assert client["odd"] and client["odd"][0][2] == RETRY_EXCEEDED, f"patience was enough, so the warning was wrong: {client}"
