/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of local hosts: parsed, checked, and given to the side of their connection. */
#include "engine/admission.h"
#include "engine/emit.h"
#include "engine/hostrate.h"
#include "engine/lan.h"
#include "engine/mgmt.h"
#include "engine/pair.h"
#include "engine/place.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/standby.h"
#include "engine/steer.h"
#include "engine/tenants.h"
#include "engine/uncarried.h"
#include "roce/icrc.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "rwy/prefetch.h"

/* A burst's loop inlines these functions, though there are two such loops. */
#define INLINED static inline __attribute__((always_inline))

/* A packet of a burst, parsed. */
struct lan_in {
	struct roce_pkt pkt;
	uint32_t tenant;
	enum roce_parse_reason reason;
	/* RC only: the key of its connection's responder side, its hash, and its bucket. */
	struct eng_key key;
	uint32_t hash;
	struct eng_side **bucket; /* NULL: not an RC packet */
	/* First in the bucket, probably its connection: only prefetched. */
	struct eng_side *side;
};

/*
 * The packet is nobody's here. True: another worker gets it: a request the home worker, for only
 * there connections begin without CM; a response the one whose turn of pairing it is.
 */
__attribute__((noinline)) static bool pass_on(struct eng *e, const struct lan_in *in, struct rwy_buf *b)
{
	const struct eng_note n = {.type = ENG_NOTE_PACKET, .tenant = in->tenant, .b = b};
	int to = -1;

	if (!roce_op_is_request(in->pkt.info))
		to = eng_place_turn_elsewhere(e, &in->key);
	else if (!eng_place_is_home(e, &in->key) && !eng_journal_waits(e, &in->key))
		to = (int)eng_place_home(e, &in->key);
	/* The directory led here, perhaps to what never began: the home worker may begin it. */
	if (to >= 0 && roce_op_is_request(in->pkt.info))
		eng_place_leave(e, &in->key, false);
	if (to < 0)
		return false;
	(void)eng_place_send(e, (unsigned)to, &n);
	return true;
}

/*
 * The first response to a flow names both QPNs, and so the worker for the connection. True: that is
 * another one, and the flow goes there; or another one has the responding QP's own requests, and is
 * asked to let them come here. The host is asked again then.
 */
__attribute__((noinline)) static bool begins_elsewhere(struct eng *e, const struct lan_in *in,
    const struct eng_responder *rs, struct eng_requester *rq, rwy_time now)
{
	const unsigned to = eng_place_choose(e, rq->near_workers, &in->key, rq->side.key.qpn);

	if (to != e->cfg.worker && eng_place_may_move(rs, rq, &in->pkt)) {
		if (rs || eng_place_elsewhere(e, &in->key, false) < 0)
			eng_responder_move(e, &in->key, rq->side.key.qpn, ENG_NO_PSN, to, now);
		eng_requester_move(rq, &in->pkt, to, now);
		return true;
	}
	return !rs && eng_place_ask_leave(rq, in->pkt.dqpn, to);
}

/* A response, whose owner here is rq, or nobody: another worker has it, or its connection. */
__attribute__((noinline)) static bool steered_away(struct eng *e, const struct lan_in *in,
    const struct eng_responder *rs, struct eng_requester *rq, struct rwy_buf *b, bool passed, rwy_time now)
{
	if (!passed && !(rq && eng_pair_may_answer(rq, &in->pkt, now)) && pass_on(e, in, b))
		return true;
	if (!rq || (rs && rs->requester == rq) || !begins_elsewhere(e, in, rs, rq, now))
		return false;
	eng_drop(e, b, &e->c.drop_old_response);
	return true;
}

/*
 * An RC packet with a good ICRC: a request to the responder side, a response to the requester side.
 * passed: another worker has no connection for it; it stays here.
 */
INLINED void rc_packet(struct eng *e, struct lan_in *in, struct rwy_buf *b, bool passed, rwy_time now)
{
	struct eng_responder *rs = (struct eng_responder *)eng_find_hashed(e, &in->key, in->hash, false);
	struct eng_requester *rq;

	if (roce_op_is_request(in->pkt.info)) {
		if (!rs && e->cfg.directory && !passed && pass_on(e, in, b))
			return;
		if (!rs && !eng_admits(e, &in->key, false)) {
			eng_admission_refuse(e, &in->key, now);
			rwy_buf_free(&e->bufs, b);
			return;
		}
		if (rs || (rs = eng_responder_get(e, &in->key, true, now)))
			eng_responder_request(rs, &in->pkt, b, now);
		else
			rwy_buf_free(&e->bufs, b); /* counted by eng_responder_get */
		return;
	}
	rq = eng_pair_owner(e, in->tenant, rs, &in->pkt, now);
	if (e->cfg.directory && steered_away(e, in, rs, rq, b, passed, now))
		return;
	if (!rq || !(rs || (rs = eng_responder_get(e, &in->key, false, now)))) {
		eng_drop(e, b, &e->c.drop_unknown_qpn);
		return;
	}
	if (rs->requester != rq)
		eng_pair_join(rs, rq, ENG_BY_PROBE);
	rs->side.last = now;
	eng_requester_response(rs->requester, &in->pkt, b, now);
}

/* A CNP asks the sender to slow down: that is the gateway here, and it does not cross the WAN. */
static void take_cnp(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, rwy_time now)
{
	struct eng_key k = {pkt->src, pkt->dst, pkt->dqpn, tenant};
	const struct eng_responder *rs = (const struct eng_responder *)eng_find(e, &k, false);

	if (rs && rs->requester)
		eng_rp_cnp(rs->requester, now);
}

/* A CM message of a local host: read, and carried. */
static void carry_cm(
    struct eng *e, uint32_t tenant, unsigned tunnel, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng_responder *rs;

	/* Before it is read: what is dropped must not take the place of other exchanges. */
	if (!eng_mgmt_room(e, tunnel, tenant, &pkt->src)) {
		eng_drop(e, b, &e->c.drop_cm_share);
		return;
	}
	b->len = pkt->len;
	if (!eng_cm_learn(e, tenant, pkt, ENG_NOTE_LAN, b, now))
		return;
	if (e->cfg.directory && eng_cm_asks_elsewhere(e, tenant, pkt, ENG_NOTE_LAN, b))
		return;
	rs = eng_cm_dreq_waits(e, tenant, pkt);
	if (rs)
		eng_dreq_hold(rs, b, now);
	else
		eng_mgmt_send(e, tunnel, tenant, &pkt->src, b, now);
}

/* False: the hop limit is used up. Not for RoCE, which some stacks send with TTL 1. */
static bool decrement_ttl(uint8_t *ip, uint32_t len)
{
	if (len >= 40 && ip[0] >> 4 == 6) {
		if (ip[7] <= 1)
			return false;
		ip[7]--;
		return true;
	}
	if (len < 20 || ip[8] <= 1)
		return false;
	rwy_ip4_set16(ip, 8, (uint16_t)(rwy_get16(ip + 8) - 0x100));
	return true;
}

/* Carries UD, UC and other IP packets; CM MADs go in the reliable management flow. */
static void best_effort(
    struct eng *e, uint32_t tenant, struct roce_pkt *pkt, struct rwy_buf *b, bool roce, rwy_time now)
{
	int t = eng_steer(e, tenant, &pkt->src, &pkt->dst, 0);

	if (t < 0) {
		eng_drop(e, b, &e->c.drop_no_route);
		return;
	}
	if (!roce && !decrement_ttl(b->data, b->len)) {
		eng_drop(e, b, &e->c.drop_ttl);
		return;
	}
	if (roce && roce_is_gsi(pkt)) {
		carry_cm(e, tenant, (unsigned)t, pkt, b, now);
		return;
	}
	e->c.dgrams++;
	if (eng_tag(e, tenant, b))
		wan_dgram_send(e->tunnel[t].wan, b, now);
}

/* A RoCE packet that is not carried. Its RC connection, if it is known, answers in PSN order. */
static void uncarried_packet(struct eng *e, struct lan_in *in, struct rwy_buf *b, rwy_time now)
{
	struct roce_pkt *pkt = &in->pkt;
	struct eng_key k = {pkt->src, pkt->dst, pkt->dqpn, in->tenant};
	struct eng_side *side;

	if (!roce_icrc_ok(pkt))
		eng_drop(e, b, &e->c.drop_icrc);
	else if (roce_op_class(pkt->opcode) == ROCE_CLASS_XRC)
		eng_uncarried_xrc(e, in->tenant, pkt, b, now);
	else if (roce_op_class(pkt->opcode) == ROCE_CLASS_RC && (side = eng_find(e, &k, false)))
		eng_responder_uncarried((struct eng_responder *)side, pkt, b, now);
	else
		eng_uncarried_drop(e, in->tenant, pkt, b, now);
}

#define GROUP 16 /* packets of a burst whose memory is prefetched together */
#define AHEAD 3  /* packets from the prefetch of a connection's flow to its use */

INLINED void lan_packet(struct eng *e, struct lan_in *in, struct rwy_buf *b, rwy_time now)
{
	struct roce_pkt *pkt = &in->pkt;

	e->c.lan_rx_packets++;
	e->c.lan_rx_bytes += b->len;
	if (!eng_tenant(e, in->tenant)) {
		eng_drop(e, b, &e->c.drop_unknown_tenant);
		return;
	}
	switch (in->reason) {
	case ROCE_PARSE_OK:
		break;
	case ROCE_PARSE_NOT_ROCE:
		best_effort(e, in->tenant, pkt, b, false, now);
		return;
	case ROCE_PARSE_TRUNCATED:
		eng_drop(e, b, &e->c.drop_truncated);
		return;
	case ROCE_PARSE_BAD_IP:
		eng_drop(e, b, &e->c.drop_bad_ip);
		return;
	case ROCE_PARSE_FRAGMENT:
		eng_drop(e, b, &e->c.drop_ip_fragment);
		return;
	case ROCE_PARSE_BAD_UDP:
		eng_drop(e, b, &e->c.drop_bad_udp_length);
		return;
	case ROCE_PARSE_BAD_BTH:
		eng_drop(e, b, &e->c.drop_bad_bth);
		return;
	case ROCE_PARSE_UNKNOWN_OPCODE:
		uncarried_packet(e, in, b, now);
		return;
	case ROCE_PARSE_BAD_LENGTH:
		eng_drop(e, b, &e->c.drop_bad_length);
		return;
	case ROCE_PARSE_REASON_COUNT:
		rwy_unreachable();
	}
	e->c.roce_rx++;
	if (!roce_icrc_ok(pkt)) {
		eng_drop(e, b, &e->c.drop_icrc);
		return;
	}
	switch ((enum roce_transport)pkt->info->transport) {
	case ROCE_RC:
		rc_packet(e, in, b, false, now);
		return;
	case ROCE_UD:
	case ROCE_UC:
		best_effort(e, in->tenant, pkt, b, true, now);
		return;
	case ROCE_CNP_T:
		take_cnp(e, in->tenant, pkt, now);
		eng_drop(e, b, &e->c.rp_cnp_handled);
		return;
	case ROCE_RD:
	case ROCE_XRC:
		uncarried_packet(e, in, b, now);
		return;
	}
	rwy_unreachable();
}

/* Prefetches what a packet touches of the responder side; of a response only the way to its own. */
RWY_PREFETCHER void prefetch_side(const struct lan_in *in)
{
	/* Two calls: the compiler unrolls a constant number of lines. */
	if (roce_op_is_request(in->pkt.info))
		eng_prefetch_side(in->side, ENG_RESPONDER_LINES);
	else
		eng_prefetch_side(in->side, ENG_SIDE_LINES);
}

/*
 * Prefetches the flows of a packet's connection. A freed side is still readable: slabs keep memory.
 */
RWY_PREFETCHER void prefetch_connection(const struct lan_in *in)
{
	const struct eng_responder *rs = (const struct eng_responder *)in->side;

	if (!rs || rs->side.is_requester)
		return;
	if (roce_op_is_request(in->pkt.info)) {
		rwy_prefetch(rs->requests, WAN_TX_LINES);
		rwy_prefetch(rs->side.host, 2);
		__builtin_prefetch(rs->journal, 1);
	} else if (rs->requester) {
		eng_prefetch_side(rs->requester, ENG_REQUESTER_LINES);
	}
}

/* Prefetches the request that a host's ACK releases first. */
RWY_PREFETCHER void prefetch_released(const struct lan_in *in)
{
	const struct eng_responder *rs = (const struct eng_responder *)in->side;

	if (rs && !rs->side.is_requester && !roce_op_is_request(in->pkt.info) && rs->requester)
		rwy_buf_fetch(rs->requester->reqr.q.head);
}

struct watcher {
	void (*seen)(void *ctx, unsigned i);
	void *ctx;
	unsigned first; /* of the group's packets */
};

/*
 * Handles up to GROUP packets. A packet waits mostly for memory, so that is prefetched for all:
 * buckets while the packets are parsed, then the connections, then, AHEAD packets before the use,
 * their flows. Inlined twice: without a watcher (NULL) nothing asks for one.
 */
INLINED void group_handle(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n,
    rwy_time now, const struct watcher *watcher)
{
	struct lan_in in[GROUP];

	for (unsigned i = 0; i < n; i++) {
		in[i].reason = roce_parse(bufs[i]->data, bufs[i]->len, &in[i].pkt);
		in[i].tenant = tenants[i];
		in[i].bucket = NULL;
		in[i].side = NULL;
		if (in[i].reason != ROCE_PARSE_OK || in[i].pkt.info->transport != ROCE_RC)
			continue;
		in[i].key = (struct eng_key){in[i].pkt.src, in[i].pkt.dst, in[i].pkt.dqpn, in[i].tenant};
		in[i].hash = eng_key_hash(e->hash_seed, &in[i].key, false);
		in[i].bucket = &e->table[in[i].hash & e->table_mask];
		__builtin_prefetch(in[i].bucket);
	}
	for (unsigned i = 0; i < n; i++)
		if (in[i].bucket && (in[i].side = *in[i].bucket))
			prefetch_side(&in[i]);
	for (unsigned i = 0; i < n; i++) {
		if (i + AHEAD < n)
			prefetch_connection(&in[i + AHEAD]);
		if (i + 1 < n) {
			prefetch_released(&in[i + 1]);
			rwy_prefetch(bufs[i + 1]->data + 2 * RWY_CACHE_LINE,
			    bufs[i + 1]->len > 6 * RWY_CACHE_LINE ? 4 : 0);
		}
		lan_packet(e, &in[i], bufs[i], now);
		if (watcher)
			watcher->seen(watcher->ctx, watcher->first + i);
	}
}

void eng_lan_passed(struct eng *e, uint32_t tenant, struct rwy_buf *b, rwy_time now)
{
	struct lan_in in = {.tenant = tenant};

	in.reason = roce_parse(b->data, b->len, &in.pkt);
	if (in.reason != ROCE_PARSE_OK || !eng_tenant(e, tenant)) { /* it went meanwhile */
		eng_drop(e, b, &e->c.drop_unknown_tenant);
		return;
	}
	in.key = (struct eng_key){in.pkt.src, in.pkt.dst, in.pkt.dqpn, tenant};
	in.hash = eng_key_hash(e->hash_seed, &in.key, false);
	rc_packet(e, &in, b, true, now);
}

static void lan_group(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n, rwy_time now)
{
	group_handle(e, bufs, tenants, n, now, NULL);
}

static __attribute__((noinline)) void lan_group_seen(struct eng *e, struct rwy_buf **bufs,
    const uint16_t *tenants, unsigned n, rwy_time now, const struct watcher *watcher)
{
	group_handle(e, bufs, tenants, n, now, watcher);
}

void eng_tenant_rx(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n, rwy_time now)
{
	eng_sb_clock(e, now);
	e->now = now;
	if (!eng_sb_speaks(e)) {
		while (n)
			eng_drop(e, bufs[--n], &e->c.drop_standby);
		return;
	}
	for (unsigned k; n; n -= k, bufs += k, tenants += k) {
		k = n < GROUP ? n : GROUP;
		lan_group(e, bufs, tenants, k, now);
	}
}

void eng_tenant_rx_seen(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n,
    rwy_time now, void (*seen)(void *ctx, unsigned i), void *ctx)
{
	struct watcher watcher = {.seen = seen, .ctx = ctx};

	eng_sb_clock(e, now);
	e->now = now;
	for (; !eng_sb_speaks(e) && watcher.first < n; watcher.first++) {
		eng_drop(e, bufs[watcher.first], &e->c.drop_standby);
		seen(ctx, watcher.first);
	}
	for (unsigned k; watcher.first < n; watcher.first += k) {
		k = n - watcher.first < GROUP ? n - watcher.first : GROUP;
		lan_group_seen(e, bufs + watcher.first, tenants + watcher.first, k, now, &watcher);
	}
}
