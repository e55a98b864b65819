/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM messages go in a WAN flow of their own, past the requests of their connection. A DREQ must
 * not: the far host would hear of the end before it has what the local host was acknowledged. So it
 * waits in the near gateway until that is delivered. To the host's CM it looks slow; CM repeats it.
 */
#include "engine/mgmt.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/place.h"
#include "engine/steer.h"
#include "engine/tenants.h"
#include "rwy/hash.h"

#define QUEUE_MAX 4096           /* CM messages of a tunnel that wait */
#define PATIENCE  (10 * RWY_SEC) /* for a far host that takes nothing; CM tries for a minute */

/*
 * The queue is shared by dynamic thresholds (Choudhury and Hahne, 1998): a host may have as many
 * messages in it as there is room left, a tenant TENANT_SHARE times as many. So a host that floods
 * takes half of the queue at most, two take two thirds, and the others find room. Hosts are told
 * apart by a hash: one of ENG_CM_HOSTS shares its room with a host that floods.
 */
#define TENANT_SHARE 8

size_t eng_mgmt_open_info(uint8_t workers, uint8_t *out)
{
	const struct eng_open o = {.type = ENG_OPEN_MGMT,
	    .rnr_retry = ENG_RETRY_UNKNOWN,
	    .retry = ENG_RETRY_UNKNOWN,
	    .workers = workers};

	return eng_open_encode(out, &o);
}

static struct wan_txflow *mgmt_flow(struct eng_tunnel *t, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];

	if (!t->mgmt && wan_tx_open(t->wan, &t->mgmt, info, eng_mgmt_open_info(eng_place_workers(t->e), info),
	                    t, now) != 0)
		t->mgmt = NULL;
	return t->mgmt;
}

static uint32_t host_slot(const struct eng *e, uint32_t tenant, const struct rwy_ip *host)
{
	return (uint32_t)(rwy_hash_ip(rwy_hash(e->hash_seed, tenant), host) >> 32) % ENG_CM_HOSTS;
}

static uint32_t tenant_slot(const struct eng *e, uint32_t tenant)
{
	return (uint32_t)(rwy_hash(e->hash_seed, tenant) >> 32) % ENG_CM_TENANTS;
}

bool eng_mgmt_room(const struct eng *e, unsigned tunnel, uint32_t tenant, const struct rwy_ip *host)
{
	const struct eng_tunnel *t = &e->tunnel[tunnel];
	uint32_t queued = t->mgmt ? wan_tx_queued(t->mgmt) : 0;
	uint32_t room = queued < QUEUE_MAX ? QUEUE_MAX - queued : 0;

	return t->cm.host[host_slot(e, tenant, host)] < room &&
	       t->cm.tenant[tenant_slot(e, tenant)] < room * TENANT_SHARE;
}

void eng_mgmt_send(struct eng *e, unsigned tunnel, uint32_t tenant, const struct rwy_ip *host,
    struct rwy_buf *b, rwy_time now)
{
	struct eng_tunnel *t = &e->tunnel[tunnel];
	struct wan_txflow *m = mgmt_flow(t, now);

	if (!m || !wan_tx_reserve(m)) {
		eng_drop(e, b, &e->c.drop_no_buffer);
		return;
	}
	if (!eng_tag(e, tenant, b))
		return;
	b->psn = host_slot(e, tenant, host);
	b->msn = tenant_slot(e, tenant);
	t->cm.host[b->psn]++;
	t->cm.tenant[b->msn]++;
	wan_tx_send(m, b, now);
}

void eng_mgmt_delivered(struct eng_tunnel *t, const struct rwy_buf *b)
{
	t->cm.host[b->psn]--;
	t->cm.tenant[b->msn]--;
}

void eng_mgmt_ended(struct eng_tunnel *t)
{
	t->mgmt = NULL;
	t->cm = (struct eng_cm_waiting){0};
}

void eng_dreq_hold(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rs->side.e;
	struct eng_rare *r;
	uint64_t *refused;

	if (rs->dreq_waits) {
		eng_drop(e, b, &e->c.drop_cm_repeated);
		return;
	}
	refused = eng_mem_refuses_request(rs, eng_buf_cost(e, b));
	if (refused) {
		eng_drop(e, b, refused);
		return;
	}
	r = eng_rare_take(rs);
	if (!r) {
		eng_drop(e, b, &e->c.drop_no_buffer);
		return;
	}
	eng_mem_charge(&rs->side, ENG_MEM_PARKED, eng_buf_cost(e, b));
	e->c.cm_held++;
	rs->dreq_waits = true;
	eng_record_side(&rs->side, &(struct eng_record){.kind = ENG_REC_DREQ_WAITS}, now);
	r->dreq = (struct eng_dreq){.b = b, .since = now};
}

static struct rwy_buf *take_dreq(struct eng_responder *rs)
{
	struct rwy_buf *b = rs->rare->dreq.b;

	eng_mem_release(&rs->side, ENG_MEM_PARKED, eng_buf_cost(rs->side.e, b), 1);
	rs->dreq_waits = false;
	return b;
}

void eng_dreq_drop(struct eng_responder *rs)
{
	if (rs->dreq_waits)
		rwy_buf_free(&rs->side.e->bufs, take_dreq(rs));
}

void eng_dreq_send(struct eng *e, const struct eng_key *k, struct rwy_buf *b, rwy_time now)
{
	int to = eng_steer(e, k->tenant, &k->src, &k->dst, 0);

	if (to < 0)
		eng_drop(e, b, &e->c.drop_no_route);
	else if (!eng_mgmt_room(e, (unsigned)to, k->tenant, &k->src))
		eng_drop(e, b, &e->c.drop_cm_share);
	else
		eng_mgmt_send(e, (unsigned)to, k->tenant, &k->src, b, now);
}

/* The home worker sends it. */
static void send_dreq(struct eng_responder *rs, rwy_time now)
{
	const struct eng_key *k = &rs->side.key;
	struct rwy_buf *b = take_dreq(rs);
	struct eng *e = rs->side.e;
	const struct eng_note n = {
	    .type = ENG_NOTE_DREQ_GOES, .tunnel = ENG_NOTE_LAN, .tenant = k->tenant, .b = b};

	if (eng_place_is_home(e, k))
		eng_dreq_send(e, k, b, now);
	else
		(void)eng_place_send(e, eng_place_home(e, k), &n);
	eng_record_side(&rs->side, &(struct eng_record){.kind = ENG_REC_DREQ_SENT}, now);
}

void eng_dreq_pass(struct eng_responder *rs, rwy_time now)
{
	if (!eng_responder_holds_dreq(rs))
		send_dreq(rs, now);
}

void eng_dreq_look(struct eng_responder *rs, rwy_time now)
{
	uint32_t queued = rs->requests ? wan_tx_queued(rs->requests) : 0;
	struct eng_dreq *dreq = &eng_rare_of(rs)->dreq;

	if (!rs->side.e->tunnel[rs->side.tunnel].up || queued != dreq->queued) {
		dreq->queued = queued;
		dreq->since = now;
	} else if (now - dreq->since > PATIENCE) {
		eng_log_side(
		    rs->side.e, 2, &rs->side, "the far host takes nothing: its DREQ waits no longer");
		send_dreq(rs, now);
	}
}
