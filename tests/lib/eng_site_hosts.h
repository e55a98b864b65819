/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host at each site of eng_site_pair, with one queue pair. The test sends host A's requests one by
 * one; host B executes requests in PSN order and answers as the test wants.
 */
#ifndef TESTS_LIB_ENG_SITE_HOSTS_H
#define TESTS_LIB_ENG_SITE_HOSTS_H

#include "tests/lib/eng_site_pair.h"

#define SH_QPN_A 0x51
#define SH_QPN_B 0x50
#define SH_FIRST 5u /* PSN of host A's first request */
#define SH_PMTU  256u
#define SH_READ  (5 * SH_PMTU) /* bytes of a READ: five responses */
#define SH_SOON  (8 * RWY_MS)  /* several round trips; less than SP_SILENCE */
#define SH_DONE  64
#define SH_TAKEN (SP_SILENCE + 20 * RWY_MS) /* to notice the death, and to ask the witness */

struct sh_b {
	bool silent;   /* it answers nothing, and executes nothing */
	bool mute;     /* it executes, and answers nothing */
	roce_psn epsn; /* the next request */
	roce_msn msn;
	unsigned done; /* executed, and the PSN of each */
	roce_psn psn[SH_DONE];
	uint8_t opcode[SH_DONE];
	unsigned again, gaps; /* requests from before epsn, and from after it */
	unsigned naks;        /* gap NAKs sent */
};
extern struct sh_b sh_b;
extern uint32_t sh_tenant; /* of both hosts, as in sp_host_sends_as */

extern bool sh_quiet; /* host A asks for no ACK */

/* After sp_set_up: host B expects SH_FIRST. */
void sh_begin(void);
/* Host A's request, and nothing else. */
void sh_ask(roce_psn psn, uint8_t opcode);
void sh_request(roce_psn psn); /* a SEND, and SH_SOON passes */
/* The first request, which host B answers: the connection is paired. */
void sh_connect(void);
/* Host B's answers: an AETH's syndrome; response number `nth` of SH_READ's; an ATOMIC's. */
void sh_b_sends(roce_psn psn, uint8_t opcode, uint8_t syndrome);
void sh_b_reads(roce_psn first, unsigned nth);
/* Host A's latest ACK is for this PSN. */
bool sh_acked(roce_psn psn);
/* How often host B executed the request. */
unsigned sh_executed(roce_psn psn);
/* Fails unless host B executed the requests from SH_FIRST to before `end`, each once, in order. */
void sh_all_executed(roce_psn end);

/*
 * A1 dies, and what is on its way between the sites with it; links are good afterwards. Within
 * sh_taken A2 serves, with so many connections of what it stored, and stores nothing.
 */
void sh_active_dies(void);
void sh_taken(unsigned flows);
/* Host A's request psn is executed once, its ACK has this MSN, and no gateway keeps anything. */
void sh_goes_on(roce_psn psn, roce_msn msn);

#endif
