/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual-time world of the property test: model host A - lossy LAN - our responder - perfect
 * ordered pipe with delay - our requester - lossy LAN - model host B. The parts between responder
 * and requester are the least that a gateway needs: custody, watermarks by ack mode, a cache of
 * responses for replays. It is not the gateway's engine.
 */
#ifndef TESTS_LIB_RC_WORLD_H
#define TESTS_LIB_RC_WORLD_H

#include "roce/reqr.h"
#include "roce/resp.h"
#include "rwy/due.h"
#include "tests/lib/link.h"
#include "tests/lib/rc_host.h"
#include "tests/lib/rc_pkt.h"

enum rc_mode { RC_NEAR, RC_FAR, RC_END };

struct rc_world_cfg {
	uint64_t seed;
	enum rc_mode mode;
	bool pmtu_known;
	struct link_cfg lan; /* both ways at both ends are one link */
	rwy_dur wan_delay, wan_jitter;
};

#define RC_CACHE 65536 /* responses kept for replays, by PSN */
#define RC_PARK  512

struct rc_world {
	struct rc_world_cfg cfg;
	uint64_t rng;
	rwy_time now;
	struct rc_host a, b;
	struct roce_resp resp;
	struct roce_reqr reqr;
	struct roce_reqr_host b_record;
	struct link lan;
	struct due_heap ev; /* `what` is what is under way */
	uint64_t ev_seq;
	rwy_time pipe_last[2];
	struct {
		roce_psn psn;
		uint32_t len;
		uint8_t *bytes;
	} cache[RC_CACHE];
	struct {
		uint8_t *bytes;
		uint32_t len;
	} park[RC_PARK];
	uint32_t park_n;
	unsigned hole, verdicts[ROCE_RESP_VERDICT_COUNT], drops;
	bool far_failed;
	const char *broken; /* the first invariant that did not hold */
};

void rc_world_init(struct rc_world *w, const struct rc_world_cfg *cfg, const struct rc_host_cfg *a,
    uint8_t *mem_a, uint32_t len_a, const struct rc_host_cfg *b, uint8_t *mem_b, uint32_t len_b);
void rc_world_fini(struct rc_world *w);

/* Sends what the parts have to send, then advances to the next event. False: there is none, or none
 * before `until`. */
bool rc_world_step(struct rc_world *w, rwy_time until);

#endif
