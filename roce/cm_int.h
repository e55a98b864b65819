/* SPDX-License-Identifier: Apache-2.0 */
/* Private to cm_tab.c (the table) and cm_conn.c (messages). */
#ifndef ROCE_CM_INT_H
#define ROCE_CM_INT_H

#include "roce/cm.h"

#define ROCE_CM_NIL UINT32_MAX

enum roce_cm_state {
	ROCE_CM_S_FREE,
	ROCE_CM_S_HALF,
	ROCE_CM_S_ESTABLISHED,
	ROCE_CM_S_CLOSED,
	ROCE_CM_S_COUNT
};

struct roce_cm_entry {
	struct rwy_ip src_a, src_b; /* addresses of the packets */
	struct roce_cm_conn conn;
	uint64_t tid;     /* transaction ID of the REQ and the REP */
	roce_psn req_psn; /* b's first PSN, from the REQ */
	uint32_t req_qpn; /* QPN of a */
	rwy_time touched;
	uint32_t prev, next; /* state list */
	uint32_t next_key;   /* hash chain by key */
	uint32_t next_qp[2]; /* hash chains by queue pair, a and b: values are entry * 2 + side */
	/* EECN of a REP that came before its REQ: the REQ tells whether it is b's QPN */
	uint32_t rep_eecn;
	uint8_t rep_ack_delay; /* b's, from the REP */
	uint8_t state;
	bool has_req, has_rep;
};

struct roce_cm_list {
	uint32_t head, tail, n;
};

struct roce_cm_tab {
	struct roce_cm_cfg cfg;
	struct roce_cm_stats stats;
	struct roce_cm_list lists[ROCE_CM_S_COUNT];
	uint32_t mask; /* buckets - 1 */
	uint32_t *by_key, *by_qp;
	struct roce_cm_entry *e;
};

/* Returns a or b of an entry. */
struct roce_cm_side *roce_cm_side_of(struct roce_cm_entry *e, uint32_t side);
/* Returns the established entry of a queue pair, or ROCE_CM_NIL. */
uint32_t roce_cm_qp_find(const struct roce_cm_tab *t, const struct rwy_ip *ip, uint32_t qpn);
/* Moves the entry to the end of that state's list. An established entry is also indexed by its
 * queue pairs. */
void roce_cm_set_state(struct roce_cm_tab *t, uint32_t i, enum roce_cm_state s, rwy_time now);
/* Returns the next entry with this key after `from` in its chain (ROCE_CM_NIL: from the start), or
 * ROCE_CM_NIL. Newest first. */
uint32_t roce_cm_key_find(const struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b,
    uint32_t comm_a, uint32_t from);
/* Returns a new entry in state ROCE_CM_S_HALF with this key; makes room if there is none. */
uint32_t roce_cm_half_new(
    struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a, rwy_time now);

#endif
