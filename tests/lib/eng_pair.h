/* SPDX-License-Identifier: Apache-2.0 */
/* Two engines, a perfect WAN of a millisecond between them, and hosts that the test speaks for. */
#ifndef TESTS_LIB_ENG_PAIR_H
#define TESTS_LIB_ENG_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "tests/lib/rc_pkt.h"

#define HALF_MAX     40
#define PAIR_TENANTS 8

struct eng_site {
	struct eng *e;
	/* Each packet to a host of this site; NULL: nobody listens. Hosts answer after eng_pair_run. */
	void (*heard)(struct eng_site *s, const struct roce_pkt *pkt);
	unsigned idx;
	uint64_t bufs;
	unsigned requests;    /* that reached the host */
	unsigned of_qpn[256]; /* the same, by the low byte of their QPN */
	roce_psn psn_of[256];
	uint32_t qpn; /* of the last */
	unsigned acks, cnps;
	uint32_t tenant; /* of the last packet to a host */
	struct {
		unsigned requests, acks, naks, others;
		roce_psn psn, ack_psn; /* of the last request, of the last ACK */
	} of[PAIR_TENANTS];
	unsigned opened, closed;    /* sessions */
	struct eng_session session; /* the last of these */
	uint8_t ecn;                /* of the last request */
	roce_psn psn;               /* the same */
	bool ip_sum_ok;
	unsigned responses;    /* READ RESPONSE and ATOMIC ACK packets */
	uint8_t response;      /* opcode of the last */
	roce_psn response_psn; /* the same */
	uint64_t original;     /* of the last ATOMIC ACK */
	uint64_t bufs_most;    /* buffers that the engine had after any step */
};

/* Changes the configuration of both engines before they begin; NULL: nothing. */
extern void (*eng_pair_tune)(struct eng_cfg *c);

extern struct eng_site site[2];
extern rwy_time eng_now;

int eng_pair_set_up(void **state);
int eng_pair_tear_down(void **state); /* fails when a buffer leaked */
void eng_pair_run(rwy_dur time);
void eng_pair_delay(rwy_dur one_way); /* of the WAN from now on; longer, never shorter */
/* A packet of a host of this site; `tos` with its ECN bits. */
void eng_host_sends(unsigned from, const struct rc_mk *m, uint8_t tos);
void eng_host_sends_as(unsigned from, uint16_t tenant, const struct rc_mk *m, uint8_t tos);

#endif
