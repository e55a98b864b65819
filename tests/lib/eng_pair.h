/* SPDX-License-Identifier: Apache-2.0 */
/* Two engines, a perfect WAN with one millisecond between them, and hosts whose packets the test
 * makes. */
#ifndef TESTS_LIB_ENG_PAIR_H
#define TESTS_LIB_ENG_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/note.h"
#include "tests/lib/rc_pkt.h"

#define HALF_MAX     40
#define PAIR_TENANTS 8

struct eng_site {
	struct eng *e;
	/* Called with each packet to a host of this site; may be NULL. Hosts answer after
	 * eng_pair_run(). */
	void (*heard)(struct eng_site *s, const struct roce_pkt *pkt);
	/*
	 * A relay's edge: rewrites each packet to a host in place; false: it ends here. NULL: there is
	 * none.
	 */
	bool (*edge)(struct eng_site *s, uint8_t *ip, uint32_t len);
	/* Called with each note to another worker, as eng_ops.note; NULL: there is no room for any. */
	bool (*note)(struct eng_site *s, unsigned worker, const struct eng_note *n);
	unsigned idx;
	uint64_t bufs;
	unsigned requests;    /* requests that reached the host */
	unsigned of_qpn[256]; /* the same by the low byte of their QPN */
	roce_psn psn_of[256];
	uint32_t qpn; /* of the last one */
	unsigned acks, cnps;
	unsigned foreign;
	uint32_t tenant; /* of the last packet to a host */
	struct {
		unsigned requests, acks, naks, others;
		roce_psn psn, ack_psn; /* of the last request; of the last ACK */
	} of[PAIR_TENANTS];
	unsigned opened, closed;    /* number of sessions */
	struct eng_session session; /* the last one reported */
	uint8_t ecn;                /* of the last request */
	roce_psn psn;               /* likewise */
	bool ip_sum_ok;
	unsigned responses;    /* READ RESPONSE and ATOMIC ACK packets */
	uint8_t response;      /* opcode of the last one */
	roce_psn response_psn; /* likewise */
	uint64_t original;     /* of the last ATOMIC ACK */
	uint8_t pcp;           /* of the last packet to a host; before `heard` is called */
	unsigned warnings;     /* log lines of level 0 or 1 */
	char warning[256];     /* the last one */
	uint64_t bufs_most;    /* most buffers that the engine held after any step */
	bool starved;          /* the engine gets no buffer */
};

/* Changes the configuration of both engines before they start; may be NULL. */
extern void (*eng_pair_tune)(struct eng_cfg *c);
/* One such function: the gateway of site 1 has this journal, which is whole. The test clears it. */
#define ENG_PAIR_JOURNAL 64
extern struct eng_journal_entry eng_pair_journal[ENG_PAIR_JOURNAL];
void eng_pair_with_journal(struct eng_cfg *c);

/* Of the frames of hosts from now on, as in struct rwy_buf; 0 at the start of a test. */
extern uint8_t eng_host_pcp;

extern struct eng_site site[2];
extern rwy_time eng_now;

int eng_pair_set_up(void **state);
int eng_pair_tear_down(void **state); /* fails if a buffer leaked */
void eng_pair_run(rwy_dur time);
/* The gateway of this site starts again, with eng_pair_tune, and without what it had. */
void eng_pair_restart(unsigned at);
void eng_pair_delay(rwy_dur one_way); /* of the WAN from now on; longer, never shorter */
/* A packet of a host of this site, from the IP header on. */
void eng_host_sends_bytes(unsigned from, const uint8_t *ip, uint32_t len);
/* The only flow that the engine of this site has; fails the test when there are others. */
struct eng_flow_info eng_pair_flow(unsigned at);
void eng_pair_cut(bool cut); /* true: the WAN loses every datagram from now on */
/* A packet of a host of this site; `tos` with its ECN bits. */
void eng_host_sends(unsigned from, const struct rc_mk *m, uint8_t tos);
void eng_host_sends_as(unsigned from, uint16_t tenant, const struct rc_mk *m, uint8_t tos);

#endif
