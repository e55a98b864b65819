/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgements that outlive the process: for each connection, the PSN before which its local
 * host has ACKs. The memory is the caller's: the gateway maps a file, the simulator keeps an array.
 * After a crash the next process asks the far gateway with it whether an acknowledged request was
 * lost with custody. Without it only the far gateway knows the connections, and not what their
 * hosts have ACKs for (peer.h). A connection that failed while its host had nothing outstanding
 * stays in it, too, until the host's next request gets the error.
 *
 * One writer, the engine's thread. Stores are ordered so that an entry is valid when the process
 * dies between any two of them. Loss of power loses it all.
 */
#ifndef ENGINE_JOURNAL_H
#define ENGINE_JOURNAL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "rwy/ip.h"

enum eng_journal_failed {
	ENG_JOURNAL_GOES_ON,
	ENG_JOURNAL_OVER, /* the connection is over, and the host's next request gets the error */
	ENG_JOURNAL_LOST, /* the same, and it has ACKs for what is lost: it is told at once */
};

struct eng_journal_entry {
	_Atomic uint32_t used;    /* 0: free. Written last when taken, first when released */
	_Atomic uint32_t acked;   /* the host has ACKs for everything before this PSN */
	uint32_t qpn;             /* destination QPN of the host's requests */
	uint32_t lqpn;            /* the host's own QPN */
	uint16_t pmtu;            /* bytes; 0: not known */
	uint8_t rnr_retry, retry; /* of the host's QP; 255: not known */
	uint32_t vni;             /* of the tenant; 0: plain LAN */
	uint8_t ack_timeout;      /* of the host's QP, one more than CM's; 0: not known */
	uint8_t failed;           /* enum eng_journal_failed */
	uint8_t rewound;          /* after REWIND: the far host has executed nothing since */
	uint8_t reserved[5];
	struct rwy_ip src, dst; /* of the host's requests */
};
static_assert(sizeof(struct eng_journal_entry) == 64, "one cache line");

#endif
