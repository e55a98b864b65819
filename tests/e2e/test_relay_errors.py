# SPDX-License-Identifier: Apache-2.0
# What programs are told when a connection is refused or fails: natively and through two relays, the same.
from lab import needs
from test_proxy import RELAY, apart

PORT = 7174
# rping and ucmatose against nobody, and against a server that expects another size or ends.
FOREIGN = {"rping-nobody": ("", "rping -c -C 1 -a {to} -p 7174"),
           "ucmatose-nobody": ("", "ucmatose -s {to} -p 7174 -c 2 -C 2"),
           "ucmatose-size": ("ucmatose -p 7174 -c 1 -C 2 -S 64", "ucmatose -s {to} -p 7174 -c 1 -C 2 -S 4096")}
# What relays cannot say as it is natively: an ACK of an earlier packet of the message has gone to the host, or RNR NAKs to the far relay.
OTHER_WORDS = {"write-too-far": "remote access error", "send-no-receive": "RNR retry counter exceeded"}
SAID_INSTEAD = "remote operation error"
OURS = ("nobody", "reject", "leave", "die", "send-too-long", "write-wrong-key", "write-too-far", "read-wrong-key", "send-no-receive")


def told(r, to):
    """What a program said, without the address and what is another one each time."""
    return [line.replace(to, "TO") for line in (r.out + r.err).splitlines()]


def both_ends(lab, server, client, to):
    """What both ends said of a server that does not end by itself."""
    job = lab.serve(server, port=PORT, cm=True) if server else None
    r = lab.a.run(f"{client.format(to=to)} 2>&1; echo exit=$?", timeout=60)
    if job is None:
        return {"client": told(r, to)}
    job.done.wait(5)
    job.kill()
    return {"client": told(r, to), "server": told(job.wait(5), to)}


def compare(lab, cases, **options):
    """Runs all cases natively, then through the relays."""
    lab.use("native")
    native = {name: both_ends(lab, *case, lab.b.ip4) for name, case in cases.items()}
    lab.use("gateway", relay=(PORT,), **options)
    apart(lab)
    relayed = {name: both_ends(lab, *case, RELAY[4]) for name, case in cases.items()}
    for name in cases:
        lab.log(f"{name}\n  natively {native[name]}\n  relayed  {relayed[name]}")
    for name, words in OTHER_WORDS.items():
        if name in native:
            said = native[name]["client"]
            at = said.index(f"send completion: {words}")
            said[at] = f"send completion: {SAID_INSTEAD}"
    assert relayed == native, {name: (native[name], relayed[name]) for name in cases if native[name] != relayed[name]}
    return native


@needs(gateway=True, relay=(PORT,), ack_mode="end", timeout=300)
def test_relay_errors(lab):
    """rwy_errors: each refusal and each failed request ends with the same events, private data and completions at both ends."""
    cases = {c: ("" if c == "nobody" else f"rwy_errors listen {PORT} {c}", f"rwy_errors connect {{to}} {PORT} {c}") for c in OURS}
    said = compare(lab, cases, ack_mode="end")
    assert "event RDMA_CM_EVENT_REJECTED status 28 data 01 04 07" in " ".join(said["reject"]["client"]), said["reject"]
    assert "event RDMA_CM_EVENT_REJECTED status 8" in " ".join(said["nobody"]["client"]), said["nobody"]
    assert "send completion: remote access error" in said["write-wrong-key"]["client"], said["write-wrong-key"]


@needs(gateway=True, relay=(PORT,), ack_mode="end", timeout=300)
def test_relay_errors_foreign(lab):
    """rping and ucmatose: the same words and the same exit status."""
    said = compare(lab, FOREIGN, ack_mode="end")
    assert "exit=0" not in said["rping-nobody"]["client"], said["rping-nobody"]
