/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sites with a pair of gateways each: up to four tunnels of one id. The gateways of a site share
 * an address: what the other site sends goes to the one that spoke last, as through a switch that
 * learns, or to both. Each datagram arrives after the same delay, or is lost as the test says. A
 * reliable carrier may join the first gateways of both sites.
 */
#ifndef TESTS_LIB_WAN_SITES_H
#define TESTS_LIB_WAN_SITES_H

#include "tests/lib/wan_pair.h"
#include "wan/claim.h"

#define SITES_GATEWAYS 4
#define SITES_FLYING   4096 /* datagrams under way, at most */
#define SITES_DELAY    (10 * RWY_MS)
#define SITES_RTT      (2 * SITES_DELAY)
#define SITES_DOWN     (1200 * RWY_MS) /* a peer that says nothing for so long is down */

/* The active gateway, its standby, the witness, the witness's standby. */
enum { A, S, W, V };

struct wan_sites;

/* One gateway: A and S are site 0's, W and V are site 1's. */
struct wan_gateway {
	struct wan_sites *s;
	struct wan_tunnel *t; /* NULL: there is none */
	struct wan_cfg cfg;
	bool up;
	unsigned restarts, granted, replaced; /* calls */
	uint64_t got;                         /* buffers handed over */
	bool delivers;                        /* the far host takes them */
	struct wan_rxflow *rx;
	uint64_t hellos, frames; /* datagrams sent */
	uint64_t asked;          /* HELLOs sent that want an answer */
	bool claim_again;        /* replaced: calls wan_claim(again) */
	enum wan_claim again;
};

struct wan_flying {
	rwy_time at;
	int from;
	bool stream;
	uint32_t len;
	uint8_t d[1600];
};

struct wan_sites {
	struct wan_pool pool;
	struct wan_gateway g[SITES_GATEWAYS];
	struct wan_flying *fly;
	unsigned n;
	rwy_time now;
	uint64_t rng;
	uint32_t loss_ppm, dup_ppm;
	rwy_dur jitter;              /* in addition to the delay: datagrams overtake each other */
	int speaker[2];              /* of a site: who sent last */
	bool flood;                  /* both get what is sent to the site */
	bool old;                    /* on the way HELLOs lose what older gateways do not know */
	bool cut;                    /* all is lost */
	const struct aead_ops *aead; /* of gateways that start from now on */
	uint64_t hellos, lose;       /* HELLOs sent by all; the number of the one that is lost, from 1 */
	uint64_t epoch;
	/* HELLOs of one gateway, kept to be sent again */
	int keep_of;
	struct wan_flying *kept;
	unsigned kept_n;
};

/* No gateway yet. The result is freed by wan_sites_free. */
struct wan_sites *wan_sites_new(void);
/* False: a buffer leaked. */
bool wan_sites_free(struct wan_sites *s);
/* Starts gateway i, as a new process. */
void wan_sites_start(struct wan_sites *s, int i, enum wan_claim c);
/* Its machine dies. */
void wan_sites_kill(struct wan_sites *s, int i);
/* A handshake for keys between two gateways, in no time. */
void wan_sites_keys(struct wan_sites *s, int i, int j);
/* Keys for standby i, which does not use them before it claims the tunnel. kept: it got them. */
void wan_sites_reserve(struct wan_sites *s, int i, int j, bool kept);
void wan_sites_claim(struct wan_sites *s, int i, enum wan_claim c);
/* Lets one datagram arrive, if one is due, and the timers run; then advances time, at most to `until`. False:
 * that is reached. */
bool wan_sites_step(struct wan_sites *s, rwy_time until);
void wan_sites_run(struct wan_sites *s, rwy_dur t);
/* A has the tunnel, with a claim that is granted by W; S is silent. */
struct wan_sites *wan_sites_begin(enum wan_claim c);
bool wan_sites_granted(const struct wan_sites *s, int i);
/* Gateway i is up and believes gateway `peer`. */
bool wan_sites_believes(const struct wan_sites *s, int i, int peer);
const struct wan_counters *wan_sites_counters(const struct wan_sites *s, int i);
/* Runs until the condition is true, at most for `within`; whether it is. */
#define wan_sites_reach(s, within, condition)                                                                \
	({                                                                                                   \
		rwy_time until_ = (s)->now + (within);                                                       \
		while (!(condition) && wan_sites_step(s, until_))                                            \
			;                                                                                    \
		(condition);                                                                                 \
	})
/* Sends all kept HELLOs again, to gateway `to`, with time in between. */
void wan_sites_replay(struct wan_sites *s, int to);

#endif
