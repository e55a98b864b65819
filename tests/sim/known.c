/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/known.h"

#include "tests/sim/explore.h"

/* Seeds that once failed, with the reason. They run first. */
const struct sim_regression sim_regressions[] = {
    /* only the end of the first flight arrived, and congestion control took it for the path's
     * rate */
    {569, F_REUSE},
    {540, F_REUSE},       /* the same */
    {1534, 0},            /* the same */
    {1506, F_CRASH_NEAR}, /* a fresh start erased the error for a host that cannot go back */
    {2164, F_CRASH_FAR},  /* the same */
    {2228, F_CRASH_FAR},  /* the same */
    /* the permission to begin was lost with a flow that the restarted gateway had refused */
    {1123, F_CRASH_NEAR},
    {1526, F_CRASH_NEAR}, /* the same */
    /* the request that ends an idle host's QP came at a PSN that the QP had seen */
    {39, F_CRASH_FAR},
    /* the NAK for a READ with a lost answer named a late duplicate: the host had gone on and
     * ignored it */
    {2005036, F_LAN_LOSS | F_CRASH_NEAR},
    {2005051, F_LAN_LOSS | F_CRASH_FAR}, /* the same */
    /* the first packet was lost, and the NAK that asked for it: no side began earlier */
    {2005202, F_LAN_LOSS | F_CRASH_NEAR},
    /* the last ACK before the crash was lost: its requests came again, from the middle of a
     * message, and matched no connection */
    {2005095, F_LAN_LOSS | F_CRASH_NEAR},
    /* it failed before the far gateway's permission to begin, and the error waited for that */
    {4036971, F_LAN_LOSS | F_CRASH_FAR},
    /* the same, and it was not known yet which queue pair the error was for */
    {7403, F_LAN_LOSS | F_CRASH_FAR},
    {2015467, F_LAN_LOSS | F_CRASH_FAR},
    {13, F_TENANTS | F_CHANGES}, /* accepted before the ack mode changed, and never acknowledged */
    {22, F_TENANTS | F_CHANGES},
    /* the first packets of a new connection were lost, and the rest taken for old ones that had
     * arrived */
    {10033005, F_LAN_LOSS | F_REUSE},
    {10054909, F_LAN_LOSS | F_REUSE}, /* the same */
    /* requests that came during a probe of a host that was to get an error ended the probe */
    {10113247, F_HOST | F_CRASH_FAR},
    /* a response flow of an earlier incarnation came late and replaced the present one, whose
     * answers were lost */
    {20111131, F_LAN_LOSS | F_CRASH_FAR},
    /* ACKs were withheld until one met the host's retransmission on the LAN; that was taken for a
     * new connection's packet, and an outage kept the far host from saying that it was not */
    {20015766, F_SQUEEZE},
    /* the first ATOMIC of a new connection got the answer of a failed connection's ATOMIC */
    {21203549, F_HOST | F_LAN_LOSS | F_REUSE},
    {42003584, F_LAN_LOSS | F_REUSE | F_TENANTS | F_CHANGES}, /* the same, where the flow was refused */
    /* the near gateway failed a connection; what the far gateway had of it was executed on the next
     * queue pair with that number */
    {21171757, F_LAN_LOSS | F_REUSE | F_TENANTS | F_CHANGES},
    {42002036, F_HOST | F_LAN_LOSS | F_REUSE}, /* the same */
    /* an answer to an earlier READ was taken for the answer to a probe */
    {21243039, F_HOST | F_CRASH_FAR | F_TENANTS | F_CHANGES},
    /* new queue pairs came sooner than a round trip of the reliable carrier, which is longer than
     * the path's, and were taken for the old ones */
    {60029587, F_REUSE | F_MOVES},
    /* the error was lost on the LAN, and its host taken for a new one; the far host in error
     * answered nothing, and the owner was unknown */
    {60635208, F_LAN_LOSS | F_CRASH_NEAR},
    /* paired after it had failed, it accepted requests for no connection: they leaked */
    {60436239, F_HOST | F_CRASH_FAR | F_TENANTS | F_CHANGES},
    /* a new connection's first request came after its host's answers and was taken for the old
     * connection's: an ATOMIC was not done */
    {60932231, F_LAN_LOSS | F_REUSE | F_HOST},
    /* a queue on the reverse path was taken for the forward path's, and the rate fell to almost
     * nothing: hosts' first answers came too late */
    {60520948, F_REUSE | F_SQUEEZE},
    {60562834, F_REUSE | F_SQUEEZE},
    {60616654, F_REUSE | F_SQUEEZE},
    /* each move to the carrier and back began the wait for a lost datagram anew */
    {60520447, F_REUSE | F_MOVES},
    /* a new connection's requests came while the last of the old one was in custody, far ahead of
     * its PSNs; they got one NAK, and were not probed from then on */
    {80690218, F_REUSE | F_SQUEEZE},
    {80940562, F_REUSE | F_SQUEEZE}, /* the same */
    /* the host had named the PSN that it expects to a gateway that then crashed, and did not answer
     * the probe of the next: what was lost was not reported */
    {80880995, F_LAN_LOSS | F_CRASH_FAR | F_TENANTS},
    /* a host that still answered READs of its other queue pairs was probed again */
    {85, F_SLOW},
    {94, F_SLOW}, /* the same */
    /* after an outage that lost ACKs, a late acknowledgement gave a path that reorders a round trip
     * of 2 s */
    {700713, F_SQUEEZE},
    /* half of a READ's answer was lost with the near gateway, and the other half was useless to the
     * next one */
    {408, F_SLOW | F_LAN_LOSS | F_CRASH_NEAR},
    /* a new connection's first request was dropped as a repeated one whose ACK was on the LAN; its
     * READ after that got the old connection's answer */
    {3300087, F_SLOW | F_RESET},
    /* requests of a new connection were dropped while the old queue pair was being told of its end */
    {7300121, F_LAN_LOSS | F_REUSE | F_HOST | F_TENANTS | F_CHANGES},
    /* a host that did go back to what it was asked for, and was refused again, was taken for one
     * that cannot */
    {42463, F_SLOW | F_REUSE | F_BOUNDS},
    {107, F_LATE},          /* answers of silent turns, and a flow that asked out of its turn */
    {754, F_LATE},          /* given up while it waited for its turn */
    {92, F_LATE | F_PATHS}, /* answers to a repeated READ, of which not all were counted */
    /* buffers that waited took all credit, and what they waited for, of a bulk flow, found none */
    {144, F_CAUSAL | F_POOL},
    {29, F_LATE | F_POOL}, /* the same with lists of order flows */
    /* no memory for a new queue pair's first request: it was acknowledged as the old one's */
    {1235, F_HOST | F_LAN_LOSS | F_REUSE | F_BOUNDS},
    /* a drained gateway left a journal: the next one asked about an earlier connection on the QPN */
    {98, F_DRAIN | F_REUSE},
    /* the same, and the far gateway stopped, too, before its answer had arrived */
    {35, F_DRAIN | F_TENANTS},
    /* a connection failed, its gateway restarted before it had told the host, and the host waited */
    {5033936, F_DRAIN | F_CRASH_NEAR},
    {5032591, F_DRAIN | F_DRAIN_CUT | F_CRASH_FAR},
    /* a new connection's first packet was lost, the next ones were of before the start of the old
     * one as its gateway knew it, and the rest was acknowledged as duplicates */
    {301976, F_LAN_LOSS | F_REUSE | F_HOST | F_MOVES},
    /* a host died, or its queue pair ended, with requests in custody, and its idle peer was not
     * told */
    {3, F_HOST | F_TOLD},
    {20, F_IDLE | F_TOLD},
    {24, F_NIC | F_OUTAGE | F_TOLD},
    /* a DREQ overtook acknowledged requests; after an outage of more than 5 s they were freed */
    {1, F_CM},
    {6, F_CM | F_OUTAGE},
    /* ATOMICs whose results the near gateway had were asked for again by a new far gateway, when
     * the host had forgotten them */
    {98000922, F_STANDBY | F_NIC},
    /* an RNR NAK with retry 0 ended a connection whose credits would have held it back */
    {13, F_CM | F_NIC | F_RNR},
    /* the same, where the RNR NAK was the host's first answer: many requests went before it */
    {96000752, F_CM | F_NIC | F_RNR},
    /* PSN 0 again while custody was not empty: new requests were acknowledged as duplicates, and
     * old ones executed on the new queue pair */
    {40, F_RESET_ALL},
    {20, F_RESET_ALL | F_NIC},
    /* unpaired flows held all buffers, and no response or datagram found one */
    {2, F_POOL},
    /* custody held all buffers, and no DELIVERED found one, for ever */
    {7, F_POOL | F_NIC},
    /* requests used up the credit of both directions, and neither READ responses nor the end of a
     * dead host's connection found any, for ever */
    {296, F_POOL},
    {85, F_POOL | F_NIC | F_OUTAGE},
    {275, F_POOL | F_NIC | F_OUTAGE},
    /* a retransmission met the NAK for a request that had found no memory: it was taken for a new
     * connection's */
    {50, F_POOL | F_NIC},
    {127, F_POOL | F_NIC},
    {261, F_POOL | F_NIC},
    /* repairs that a path on trial had no room for held most buffers, and no ACK found one */
    {2555, F_PATHS | F_POOL},
    /* a tenant was removed while its host was to be told of a loss: the gateway crashed */
    {71083, F_LAN_LOSS | F_MASS | F_TENANTS | F_CHANGES},
    /* packets to queue pairs that nobody has took the memory of others */
    {10, F_HOSTILE},
    {45, F_HOSTILE | F_TENANTS},
    /* a host with a deep send queue did, and one that ignores ACKs */
    {3, F_HOSTILE},
    {5, F_HOSTILE | F_TENANTS},
    {11, F_HOSTILE},
    {9, F_HOSTILE | F_TENANTS},
    /* CM messages that named others' addresses and QPNs ended their connections */
    {7, F_HOSTILE},
    /* a request was executed before what was acknowledged on another queue pair */
    {1, F_CAUSAL},
    /* a new connection's queue pair was ended for requests that the one before it had lost */
    {941, F_LAN_LOSS | F_REUSE | F_HOST | F_TENANTS},
    /* a READ that was answered while no flow of requests was open stopped all later reports */
    {1411, F_KEYS | F_BOUNDS | F_SLOW | F_CRASH_FAR},
    /* the same */
    {1418, F_KEYS | F_BOUNDS | F_SLOW | F_LAN_LOSS | F_CRASH_FAR},
    /* a gateway handed over and died at once: what the other one had acknowledged was in no journal */
    {222, F_STANDBY},
    /* a standby got a copy of ATOMICs that were answered before, and waited for their responses */
    {102, F_STANDBY | F_CRASH_BOTH},
    /* a request followed a READ whose only response had been at the gateway that died */
    {354, F_STANDBY | F_NIC},
    /* both of a pair asked; the witness had refused the one that was to serve for good */
    {20287, F_STANDBY | F_CRASH_FAR},
    {20419, F_STANDBY | F_CRASH_FAR},
    /* a NIC had ACKs that a standby did not know of, and memory was short: it got no more */
    {20253, F_STANDBY | F_NIC},
    /* both of a pair had a journal, and the one with the older one served */
    {40001, F_STANDBY | F_NIC | F_CRASH_NEAR},
    /* responses that went on where requests had no credit took no notice of their reservation */
    {42, F_RATES | F_POOL},
    {323, F_RATES | F_POOL},
    /* a host that had executed only READs acknowledged a duplicate with PSN -1, and the connection
     * was rewound to PSN 0 */
    {547, F_REUSE},
    /* PINGs and ACKs took all of a very low rate: data waited for the pacing clock for ever */
    {645, F_PATHS | F_MASS},
    /* the last requests that an idle host had were READs, its ACKs of a duplicate named none of them,
     * and the request that ends its QP came at a PSN that it had seen */
    {77003430, F_IDLE},
    /* no path had been asked before the first data, and the one that it took was dead */
    {77000870, F_SQUEEZE | F_PATHS | F_KEYS},
    /* a gateway of a pair that had stood still let no answer of an ATOMIC out, and told its standby,
     * which took over, that the host had it */
    {20206, F_STANDBY | F_CM},
    {20304, F_STANDBY | F_CM}, /* the same */
    /* one of each pair stood still while it asked who serves; neither heard the other one again, and
     * after 5 s each found a witness among the four */
    {9000, F_STANDBY | F_RATES | F_KEYS | F_PAUSE},
    {20353, F_STANDBY | F_RATES | F_KEYS | F_PAUSE}, /* the same */
    /* one end never got the word that new keys were used, and the other end, which sent by the reliable
     * carrier, wiped the old ones while the first one still sealed with them */
    {95000049, F_MOVES | F_KEYS | F_MASS},
    /* data waited, or all of it was under way, and an open FEC group was past its time: the gateway
     * turned without rest until ACKs made room, milliseconds with long paths */
    {200665, F_REUSE | F_PATHS},
    {201185, F_PATHS | F_KEYS | F_DRAIN}, /* the same */
    /* a full carrier could not take the question whether it answers, for which the gateway turned */
    {201486, F_MOVES | F_DETOUR | F_KEYS},
    /* three questions whether the carrier answers were under way at the end, after a pause; the test
     * counted bytes, and took them for a detour */
    {79001694, F_PAUSE | F_DETOUR | F_KEYS},
    /* a standby that gave up was to try newer keys, and turned without rest */
    {1310, F_STANDBY | F_KEYS | F_BOTH_DIE},
    /* keys were exchanged often, and a new set pushed out the offered one, which the peer had just
     * begun to use */
    {600963, F_STANDBY | F_NIC | F_KEYS},
    /* a restarted gateway's question came in the middle of a message: the host refused it, and what it
     * had not got was not reported as lost */
    {5000671, F_CRASH_FAR | F_KEYS | F_DRAIN | F_DRAIN_CUT},
    /* a host of 1.8 MB/s answered a READ behind its own messages, and was asked once more */
    {120010212, F_TENANTS | F_SLOW},
    /* the path that carried fell silent, and the one that had rested for it was only tried */
    {131100045, F_SQUEEZE | F_PATHS},
    /* a request found no memory, the host sent the next one later, and that was taken for the first
     * of a new connection; the far host's ACK of a duplicate left a READ out */
    {131119388, F_POOL | F_CAUSAL},
    /* a flow came to its reservation only after another flow's datagram */
    {131001328, F_KEYS | F_RATES | F_LATE},
    /* an end that did not know a path kept an old key for longer than the other end's phase */
    {9100340, F_PATHS | F_KEYS | F_NIC},
    /* questions and reports were all that a resting path carried, and passed for its rate: 9 KB/s */
    {140000490, F_PATHS | F_KEYS | F_NIC | F_RNR},
    /* an idle host of a gateway that served alone, and died beside one that stood still */
    {130000446, F_STANDBY | F_BOTH_DIE},
    /* a new standby died as it took over, and only the far gateway knew of an idle host */
    {504028, F_STANDBY | F_NIC | F_KEYS},
    {146027034, F_STANDBY | F_TENANTS | F_CHANGES}, /* the same after a hand-over */
    /* a machine died: requests of the other host had made the idle one known to the next gateway */
    {5, F_MACHINE | F_NIC},
    /* and the next process ended before it was told: the one after took its journal for a whole one */
    {202, F_MACHINE | F_IDLE},
    /* the same with CM, whose DREQ passed for a good end of the connection */
    {1048, F_MACHINE | F_CM},
    /* the same where nothing of the connection had come to the far gateway */
    {1138, F_MACHINE | F_CM},
    /* the same, and the far gateway had just failed the connection */
    {1006, F_MACHINE | F_CRASH_FAR | F_HOST},
    /* a far gateway restarted while CM repeated its messages, and took that for a new connection */
    {700547, F_MACHINE | F_CM | F_KEYS},
    /* a drained gateway came back without a journal: idle hosts were told of a loss */
    {1100, F_MACHINE | F_DRAIN},
    /* no memory for the flow of a first request, nor at the far gateway for one in a slot that is used
     * again: its datagram was acknowledged and dropped */
    {880009, F_CRASH_FAR | F_KEYS | F_HEAP},
    /* no memory for the flow of responses, and for its growth: nobody was told that they are lost */
    {880075, F_CRASH_BOTH | F_TENANTS | F_HEAP},
    {880038, F_CRASH_NEAR | F_LAN_LOSS | F_BOUNDS | F_HEAP},
    /* a copy for the standby failed in the turn of a change of state, and was waited for */
    {880134, F_STANDBY | F_CRASH_NEAR | F_HEAP},
    /* no memory to note that a report waits for SYNC: the far gateway died between them */
    {710115, F_CRASH_FAR | F_KEYS | F_HEAP},
    /* answers of an earlier flow that waited for copies were reported in the next one */
    {700344, F_STANDBY | F_RNR | F_KEYS | F_HEAP},
    {700170, F_STANDBY | F_MASS | F_HEAP},
    /* workers: both hosts began at once, and the two directions went to each other's workers */
    {234000025, F_WORKERS},
    {237000071, F_WORKERS | F_UNCARRIED},
    /* the same, and a flow that waited for its turn stayed when its near gateway had left */
    {234000016, F_WORKERS | F_REUSE},
    /* a restored connection whose far host had begun anew at another worker was malformed */
    {235000077, F_WORKERS | F_CRASH_BOTH},
    /* redirected by a worker that the connection had left, it took its repeats for answered ones */
    {280000020, F_WORKERS | F_PATHS},
    /* one gateway moved a connection and the other one kept it, again and again */
    {242004074, F_WORKERS | F_TENANTS},
    /* the two answers crossed, and the requests to a host with ACKs moved away from them */
    {242006113, F_WORKERS | F_TENANTS},
    {242001959, F_WORKERS | F_TENANTS},
    /* a READ that was never asked kept its host's repeats from beginning again */
    {270001284, F_WORKERS | F_TENANTS},
    /* what an earlier connection left at another worker took the new one's requests */
    {271001464, F_WORKERS | F_REUSE},
    {271002397, F_WORKERS | F_REUSE},
    /* the first request was lost, and the NAK by which a host was asked again acknowledged it */
    {271000802, F_WORKERS | F_REUSE | F_LAN_LOSS},
    {271001275, F_WORKERS | F_REUSE | F_LAN_LOSS},
    /* no memory for the turn of pairing: the flow was silent for ever */
    {300001017, F_CRASH_FAR | F_HEAP},
    {300001170, F_CRASH_FAR | F_HEAP},
    /* its peer's queue pair had been ended, and nobody knew the QPN that sent for ever */
    {300000470, F_CRASH_FAR | F_SMALL | F_HEAP},
    {300001254, F_CRASH_NEAR | F_HEAP},
    {300001058, F_CRASH_BOTH | F_HEAP},
    {290000188, F_CRASH_FAR | F_SMALL | F_HEAP},
    {70182, F_CRASH_BOTH | F_HEAP},
    /* no memory for the request that ends a queue pair, whose PSN was named only once */
    {300001171, F_CRASH_NEAR | F_SMALL | F_HEAP},
    {300001311, F_CRASH_FAR | F_HEAP},
    /* nor for the question which PSN it expects: the next connection's requests were discarded */
    {300001102, F_CRASH_FAR | F_SMALL | F_HEAP},
    {300001080, F_CRASH_NEAR | F_SMALL | F_HEAP}, /* the idle host was not told */
    /* no memory for the far gateway's side: a flow with promises was refused */
    {300001079, F_CM | F_HEAP},
    /* nor for the ring of a flow, which ended */
    {300002460, F_CM | F_HEAP},
    /* a host that had executed nothing, and had sent its NAK, named its PSN no more */
    {300010030, F_CRASH_FAR | F_SMALL | F_HEAP},
    {300001584, F_CRASH_FAR | F_SMALL | F_HEAP},
    {300001466, F_CRASH_NEAR | F_SMALL | F_HEAP},
    /* restarted while CM repeated its messages, and no request had found memory yet: the flow was reset */
    {300300308, F_CM | F_CRASH_FAR | F_HEAP},
    /* the test: mode `site` promises no more than `near` when a queue pair gets an error, and a host
     * that died was sent a DREQ, or its peer had disconnected */
    {200130, F_STANDBY | F_NIC | F_HEAP},
    {200172, F_STANDBY | F_NIC | F_HEAP},
    {200736, F_IDLE | F_CM | F_HEAP},
    {200961, F_IDLE | F_CM | F_HEAP},
    /* a gateway that hands over gives its peer's tunnel away, which its standby has confirmed */
    {350080005, F_STANDBY | F_FOLLOWERS | F_HOST | F_TENANTS},
    {350090810, F_STANDBY | F_CROSS},
    /* a worker that owed nothing accepted nothing, for as long as another one settled */
    {365000877, F_WORKERS | F_DRAIN},
    {365000086, F_WORKERS | F_DRAIN | F_REUSE},
    /* the test: a carrier ended at the first gateway of a pair, also when the second one served, and
     * never broke */
    {350000111, F_CRASH_NEAR | F_MOVES | F_KEYS | F_STANDBY | F_MASS},
    {1874, F_STANDBY | F_MOVES},
    /* custody was full, so a gateway that took over acknowledged less than the dead one had: its idle
     * host got an error for a request that it had an ACK for, and ignored it */
    {362110972, F_OUTAGE | F_STANDBY | F_NIC},
    {362111304, F_OUTAGE | F_STANDBY | F_NIC},
    /* a standby that had everything ended connections that had begun and had no ACK yet, since their
     * hosts sent nothing for 5 s */
    {362200031, F_STANDBY | F_LATE},
    {362200057, F_STANDBY | F_LATE},
    /* answers to a gateway that a standby had replaced were taken for another queue pair's */
    {362210143, F_STANDBY | F_LATE},
    {362210146, F_STANDBY | F_LATE | F_PAUSE},
    /* the test: where something happens to a pair that is not whole, a host may give up before the
     * gateway is there that would refuse its operation */
    {362300109, F_STANDBY | F_UNCARRIED},
    {362300125, F_STANDBY | F_UNCARRIED},
    {362300005, F_STANDBY | F_UNCARRIED | F_NIC},
    /* a process without a journal had no memory when it was told of a connection, and was told again too
     * late; a DREQ went through meanwhile */
    {362400031, F_MACHINE | F_HEAP},
    {362400101, F_MACHINE | F_HEAP},
    /* its near gateway had ended the flow after REWIND, and lost its journal before it opened the next */
    {300500243, F_MACHINE | F_HEAP},
    {362410030, F_MACHINE | F_HEAP},
    {362410063, F_MACHINE | F_HEAP},
    /* no memory to pair what RESUME asked for: that seemed malformed, and the idle host was not told */
    {302002296, F_CRASH_BOTH | F_SMALL | F_HEAP},
    /* the same once more; a new flow then took the place of the host that was to be told */
    {370006910, F_CRASH_BOTH | F_SMALL | F_HEAP},
    /* no memory for what CM opened at the far gateway: it did not know the connection, and a DREQ passed */
    {362430021, F_MACHINE | F_CM | F_HEAP},
    {374000159, F_MACHINE | F_CM | F_HEAP},
    /* after REWIND a host had ACKs before the far host had executed anything: PSN 0 again, at once, got
     * requests of before */
    {362440060, F_LAN_LOSS | F_RESET},
    {373000210, F_LAN_LOSS | F_RESET},
    {373000558, F_LAN_LOSS | F_RESET},
    /* requests from before what the gateway took for the start were dropped, and what followed them had
     * ACKs, as duplicates */
    {375000578, F_LAN_LOSS | F_RESET_ALL},
    {375001240, F_LAN_LOSS | F_RESET_ALL},
    /* many queue pairs of two hosts ended at once: while another flow of theirs was not paired, the far
     * gateway did not say whose a failed one was, and its host sent for ever */
    {362450016, F_CRASH_BOTH | F_SMALL | F_HEAP},
    {370001376, F_CRASH_BOTH | F_SMALL | F_HEAP},
    /* the test: mode `site` promises no more than to tell a host whose peer's queue pair got an error
     * first */
    {350000012, F_OUTAGE | F_STANDBY | F_NIC},
    /* the test: NICs' READs and ATOMICs filled the queue of a path of 1.2 MB/s, and the repeat of what
     * it dropped waited in it once more: longer than a NIC tries */
    {384000528, F_KEYS | F_SMALL | F_NIC},
    /* a retransmission that the LAN's queue delayed beyond 2 ms after the NAK was taken for new */
    {336, F_POOL | F_NIC},
    /* late answers of two queue pairs were taken for each other's */
    {100147, F_LATE | F_BOUNDS},
    /* the test: it waited for DREQs of the hostile host's queue pairs, which CM did not set up */
    {390000001, F_HOSTILE | F_CM | F_TENANTS},
    /* a gateway that asked who serves, while a worker of it stood still, had turns without rest */
    {390050031, F_PAUSE | F_MOVES | F_STANDBY | F_FOLLOWERS},
    {390041404, F_MOVES | F_STANDBY | F_FOLLOWERS},
    /* the test: it ended before a follower's peer, which comes later than the leader's, told of the loss */
    {390100602, F_MOVES | F_STANDBY | F_FOLLOWERS},
    /* the test: the others' worker shares the WAN with the hostile host's as strangers do, not by weight */
    {390010213, F_HOSTILE | F_TENANTS | F_CM | F_WORKERS},
    {390021098, F_HOSTILE | F_TENANTS | F_CM | F_WORKERS},
    {390500188, F_HOSTILE | F_TENANTS | F_CM | F_WORKERS | F_BY_PAIR},
    /* the test: a gateway died that nobody had handed over to, and the test crashed */
    {390600095, F_HOSTILE | F_TENANTS | F_CM | F_STANDBY | F_FOLLOWERS},
    /* a drained gateway that had not measured the round trip yet took it for none: it waited too little
     * for the far gateway to hear of the drain */
    {390400093, F_WORKERS | F_BY_PAIR | F_DRAIN},
    /* the ack mode became `site` with a host's last request under way: it got no copy and no ACK */
    {390400046, F_TENANTS | F_CHANGES | F_STANDBY},
    /* a machine died, and the DREQ of its next process overtook the news of that at another worker */
    {389820173, F_MACHINE | F_IDLE | F_CM | F_WORKERS | F_HEAP},
    {389820202, F_MACHINE | F_IDLE | F_CM | F_WORKERS | F_HEAP},
    /* the same, and that worker had never heard of the process before */
    {389820301, F_MACHINE | F_IDLE | F_CM | F_WORKERS | F_HEAP},
    {392300449, F_MACHINE | F_IDLE | F_CM | F_WORKERS},
    /* no memory to pair what the near gateway named; CM repeated its messages, and the flow was reset */
    {392702844, F_MACHINE | F_IDLE | F_CM | F_WORKERS | F_HEAP},
    /* a worker that had stood still while it asked waited for its followers, and turned without rest */
    {389800085, F_CRASH_BOTH | F_STANDBY | F_FOLLOWERS},
    /* a late ACK of a duplicate, which named no PSN, acknowledged requests that the host did not have */
    {453001220, F_OUTAGE | F_KEYS | F_LATE | F_BURSTS},
    /* both active gateways stood still at once: the pair did not lose just one of them */
    {421000248, F_PAUSE | F_STANDBY},
    /* a gateway without a standby and the far one died: an idle host is not told */
    {463004802, F_MOVES | F_STANDBY | F_BOTH_DIE},
    /*
     * Workers knew nothing of each other's requests to a slow host. Its late responses passed for
     * answers to another flow.
     */
    {455000309, F_SLOW | F_WORKERS},
    {455000783, F_SLOW | F_WORKERS},
    {455000842, F_SLOW | F_WORKERS},
    {455000868, F_SLOW | F_WORKERS},
    {453000868, F_SLOW | F_WORKERS},
    {453000868, F_SLOW | F_WORKERS | F_KEYS},
    {457000072, F_SLOW | F_WORKERS},
    /* no memory for a connection that a process without a journal was told of: its host's answers counted
     * for nobody, and when it was to end, it was given up before it was told */
    {394200261, F_MACHINE | F_LAN_LOSS | F_IDLE | F_CM | F_WORKERS | F_HEAP},
    /* the near gateway died in the turn of a flow, which ended 0.4 s after its silent host was heard: the
     * host's late answer paired the flow of a later turn */
    {100160, F_LATE | F_CRASH_NEAR},
    /* a drained gateway left no journal entries: the answer to what it had asked paired a wrong flow */
    {12, F_LATE | F_DRAIN},
    /* a silent host's ACK of what the process before had sent was taken for the PSN that it expects: its
     * peer was to go back to requests that it had ACKs for */
    {465001923, F_LATE | F_DRAIN},
    /* workers: an earlier connection's loss, still to be told, kept a QPN's place in another worker */
    {484001143, F_REUSE | F_CRASH_FAR | F_WORKERS},
    /* the same, with the same QPNs as before, and with a question in its queue */
    {488003713, F_REUSE | F_CRASH_FAR | F_WORKERS},
    {488105121, F_REUSE | F_CRASH_FAR | F_WORKERS},
    /* the same, with a flow that had ended, and no restart */
    {488304094, F_REUSE | F_WORKERS},
    /* workers: both gateways asked for one side, and the sides of a connection changed places for ever */
    {481000056, F_REUSE | F_CRASH_FAR | F_WORKERS | F_BURSTS},
    /* the request that ends a QP for what was lost ended the next QP with its QPN */
    {484001025, F_REUSE | F_CRASH_NEAR | F_WORKERS},
    /* workers: a side that had failed took the answers of the next QP with its QPN for late ones, for ever */
    {488105843, F_REUSE | F_CRASH_FAR | F_WORKERS},
    {488105197, F_REUSE | F_CRASH_NEAR | F_WORKERS | F_BURSTS}, /* the same */
    /* a host was to hear of lost requests while its QPN's next connection began, which then never did */
    {488301422, F_REUSE | F_CRASH_NEAR | F_WORKERS | F_BURSTS},
    {488302952, F_REUSE | F_CRASH_NEAR | F_WORKERS | F_BURSTS}, /* the same */
    /* the same: the far gateway had restarted */
    {488208531, F_REUSE | F_CRASH_FAR | F_WORKERS},
};

/*
 * Seeds that fail because the engine does not keep their promise yet: of kinds that the standard draw
 * leaves out, or rare ones of other kinds. `--unmended` runs them. A seed that passes moves to the
 * first table, its kind into kinds.c.
 */
const struct sim_unmended sim_unmended[] = {
    {3007, F_BEHIND, "a READ behind WRITEs in custody outlives its NIC's retries"},
    {1, F_BEHIND | F_REUSE, "QPNs used again with other peers: for 200 ms the old ones get the answers"},
    {389101490, F_HOSTILE,
        "a NIC's READs wait behind a greedy host's WRITEs, of the same tenant, for longer than it tries"},
    {271, F_POOL | F_NIC | F_TENANTS,
        "a NIC whose request finds no memory for 94 ms gives up: all before has an ACK, so it gets none"},
    {465001856, F_LATE | F_DRAIN | F_KEYS,
        "a silent host's gateway is drained just after the far one: requests that only it had are lost"},
    {465000270, F_LATE | F_DRAIN | F_KEYS,
        "a silent host has more than a drained gateway sent again: its ACKs are taken for ghosts"},
    {20088, F_MACHINE | F_REUSE,
        "a queue pair begins anew while the one before it is ended for what was lost: it is ended, too"},
    {3002572, F_HOSTILE | F_NIC | F_POOL | F_TENANTS,
        "SYNC is lost in a full queue and then by chance: a NIC that tries for 94 ms gives up"},
};

const unsigned sim_regressions_n = sizeof(sim_regressions) / sizeof(*sim_regressions);
const unsigned sim_unmended_n = sizeof(sim_unmended) / sizeof(*sim_unmended);
