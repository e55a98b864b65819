# SPDX-License-Identifier: Apache-2.0
# A pair of relays at site A, ack mode `site`, between hosts without a route to each other: whichever dies or goes on later, connections from
# before go on by the other relay's links, and new ones come.
from lab import needs
from lab.copy import Copy
from lab.pair import pair
from test_proxy import PORTS, RELAY, apart, rping
from test_survive import active_killed, standby_killed, zombie


@needs(gateway=True, relay=PORTS, timeout=400)
def test_survive_relay(lab):
    """rcopy of a file, and meanwhile SIGKILL of the active relay, of the standby, and SIGSTOP: equal checksums; rping after each."""
    with pair(lab) as (active, standby, p):
        apart(lab)
        rping(lab, 20)
        for event in (active_killed, standby_killed, zombie):
            copy = Copy(lab, (lab.a, lab.b), mib=24, to=RELAY[4])
            lab.wait_traffic(500)
            event(active, standby, p)
            copy.check(120)
            if event is not standby_killed:
                active, standby = standby, active
            rping(lab, 20)
