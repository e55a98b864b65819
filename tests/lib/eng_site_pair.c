/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/eng_site_pair.h"

#include <stdio.h>

#include "cc/cc.h"
#include "rwy/endian.h"
#include "tests/lib/heap_buf.h"

#define ROOM     320
#define QUEUE    4096 /* datagrams in a link */
#define DGRAM    2048
#define BEAT     (SP_SILENCE / 4)
#define RATE_Bps 1250000000

struct dgram {
	rwy_time at;
	uint32_t len, tenant;
	uint8_t bytes[DGRAM];
};

struct link {
	struct dgram *q;
	unsigned head, tail; /* of a ring */
	enum sp_link_state state;
};

struct sp_gw sp_gw[SP_GATEWAYS];
struct sp_host sp_host[SP_SITES];
rwy_time sp_now;
void (*sp_tune)(struct eng_cfg *c, unsigned gw);
void (*sp_started)(unsigned gw);
void (*sp_heard)(const struct sp_packet *p);

static struct link links[SP_LINKS];
static struct {
	unsigned n;
	enum sp_link link[SP_RING];
	struct dgram d[SP_RING];
} rings[SP_GATEWAYS];   /* of gateways that are frozen */
static unsigned starts; /* each process has another seed, and other epochs with it */

static unsigned site_of(unsigned gw)
{
	return gw == SP_B ? SP_SITE_B : SP_SITE_A;
}

/* Each gateway has another index for a tenant. */
uint32_t sp_index(unsigned gw, uint32_t tenant)
{
	assert_true(tenant <= SP_TENANTS);
	return tenant ? gw * SP_TENANTS + tenant : 0;
}

static uint32_t tenant_at(unsigned gw, uint32_t index)
{
	return index ? index - gw * SP_TENANTS : 0;
}

static struct rwy_buf *gw_alloc(void *bufs, uint32_t headroom, uint32_t len)
{
	for (unsigned i = 0; i < SP_GATEWAYS; i++)
		if (bufs == &sp_gw[i].bufs && sp_gw[i].starved)
			return NULL;
	return heap_buf_alloc(bufs, headroom, len);
}

static const struct rwy_buf_ops gw_bufs = {gw_alloc, heap_buf_free};

/* --- links -------------------------------------------------------------------------------------- */

/* Room for a datagram; NULL: it is lost. */
static struct dgram *link_add(enum sp_link l, uint32_t len, rwy_dur delay)
{
	struct link *k = &links[l];
	struct dgram *d = &k->q[k->tail % QUEUE];

	if (k->state == SP_CUT)
		return NULL;
	assert_true(k->tail - k->head < QUEUE && len <= DGRAM);
	k->tail++;
	*d = (struct dgram){.at = sp_now + delay, .len = len};
	return d;
}

void sp_link(enum sp_link l, enum sp_link_state s)
{
	links[l].state = s;
	if (s == SP_CUT)
		links[l].head = links[l].tail;
}

void sp_cable(enum sp_link_state s)
{
	sp_link(SP_1_TO_2, s);
	sp_link(SP_2_TO_1, s);
}

unsigned sp_waiting(enum sp_link l)
{
	return links[l].tail - links[l].head;
}

static unsigned tunnel_of(enum sp_link l)
{
	if (l == SP_A_TO_B_2 || l == SP_B_TO_A_2)
		return SP_WAN_2;
	return l == SP_A_TO_B || l == SP_B_TO_A ? SP_WAN : SP_CABLE;
}

static void take(struct sp_gw *g, enum sp_link l, const struct dgram *d)
{
	struct rwy_buf *b;

	if (!g->e)
		return;
	b = heap_buf_alloc(&g->bufs, ROOM, d->len);
	memcpy(b->data, d->bytes, d->len);
	if (l == SP_LAN_A || l == SP_LAN_B)
		eng_tenant_rx(g->e, &b, &(uint16_t){(uint16_t)sp_index(g->idx, d->tenant)}, 1, sp_now);
	else
		eng_wan_rx(g->e, tunnel_of(l), 0, b, 0, sp_now);
}

static void to_gateway(struct sp_gw *g, enum sp_link l, const struct dgram *d)
{
	if (!g->e || !g->frozen) {
		take(g, l, d);
		return;
	}
	if (rings[g->idx].n == SP_RING)
		return;
	rings[g->idx].link[rings[g->idx].n] = l;
	rings[g->idx].d[rings[g->idx].n++] = *d;
}

static void link_deliver(enum sp_link l)
{
	/* Both gateways of site A have its addresses. */
	static const unsigned to[SP_LINKS][2] = {[SP_A_TO_B] = {SP_B, SP_B},
	    [SP_B_TO_A] = {SP_A1, SP_A2},
	    [SP_1_TO_2] = {SP_A2, SP_A2},
	    [SP_2_TO_1] = {SP_A1, SP_A1},
	    [SP_LAN_A] = {SP_A1, SP_A2},
	    [SP_LAN_B] = {SP_B, SP_B},
	    [SP_A_TO_B_2] = {SP_B, SP_B},
	    [SP_B_TO_A_2] = {SP_A1, SP_A2}};
	struct link *k = &links[l];

	while (k->state == SP_GOOD && k->head != k->tail && k->q[k->head % QUEUE].at <= sp_now) {
		const struct dgram *d = &k->q[k->head++ % QUEUE];

		to_gateway(&sp_gw[to[l][0]], l, d);
		if (to[l][1] != to[l][0])
			to_gateway(&sp_gw[to[l][1]], l, d);
	}
}

/* --- what an engine calls ----------------------------------------------------------------------- */

/* A NAK for a gap, by which a gateway that took over asks. It repeats it while the host is silent. */
static bool asks(const struct sp_gw *g, const struct sp_host *h, const struct sp_packet *p)
{
	if (p->syndrome != roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ))
		return false;
	if (g->asked < eng_counters(g->e)->taken_over)
		return true;
	if (g->asked >= SP_ASKS * eng_counters(g->e)->taken_over)
		return false;
	for (unsigned i = 0; i < h->n; i++) {
		const struct sp_packet *q = &h->heard[i];

		if (q->from == p->from && q->tenant == p->tenant && q->dqpn == p->dqpn &&
		    q->syndrome == p->syndrome && q->psn == p->psn)
			return true;
	}
	return false;
}

static void heard(struct sp_gw *g, const struct roce_pkt *pkt, uint32_t tenant)
{
	struct sp_host *h = &sp_host[site_of(g->idx)];
	struct sp_packet p = {.site = site_of(g->idx),
	    .from = g->idx,
	    .opcode = pkt->opcode,
	    .psn = pkt->psn,
	    .dqpn = pkt->dqpn,
	    .tenant = tenant_at(g->idx, tenant),
	    .at = sp_now};
	bool asking;

	if (pkt->info->flags & ROCE_F_AETH) {
		p.syndrome = (uint8_t)roce_aeth_syndrome(pkt);
		p.msn = roce_aeth_msn(pkt);
	}
	assert_true(h->n < SP_HEARD_MAX);
	asking = asks(g, h, &p);
	h->heard[h->n++] = p;
	h->requests += roce_op_is_request(pkt->info);
	if (pkt->info->op != ROCE_OP_ACK) {
		h->responses += roce_op_is_response(pkt->info);
	} else if (roce_aeth_type(p.syndrome) == ROCE_AETH_ACK) {
		h->acks++;
		h->ack = p;
	} else if (asking) {
		g->asked++;
		h->acks++;
		h->ack = p;
		h->ack.psn = roce_psn_add(p.psn, ROCE_PSN_MASK);
	} else {
		h->naks++;
	}
	if (sp_heard)
		sp_heard(&p);
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct sp_gw *g = ctx;
	uint8_t copy[RC_PKT_MAX];
	struct roce_pkt pkt;

	memcpy(copy, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	g->sent++;
	if (roce_parse(copy, tx->len, &pkt) == ROCE_PARSE_OK && pkt.info->transport == ROCE_RC)
		heard(g, &pkt, tx->tenant);
	if (tx->buf && tx->own)
		heap_buf_free(&g->bufs, tx->buf);
}

static void wan_out(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	static const enum sp_link out[SP_GATEWAYS][SP_WAN_2 + 1] = {{SP_A_TO_B, SP_1_TO_2, SP_A_TO_B_2},
	    {SP_A_TO_B, SP_2_TO_1, SP_A_TO_B_2}, {SP_B_TO_A, SP_B_TO_A, SP_B_TO_A_2}};
	struct sp_gw *g = ctx;
	struct dgram *d =
	    link_add(out[g->idx][tunnel], wan_tx_size(tx), tunnel == SP_CABLE ? SP_STEP : SP_WAN_WAY);

	if (d)
		wan_tx_write(tx, d->bytes);
	if (tx->buf && tx->own)
		heap_buf_free(&g->bufs, tx->buf);
}

static void serves(void *ctx, bool on, bool replaced, rwy_time now)
{
	struct sp_gw *g = ctx;

	g->serves = on;
	g->told++;
	g->replaced += replaced;
}

static void note(void *ctx, enum eng_standby_kind kind, const uint8_t *bytes, uint32_t len, rwy_time now)
{
	struct sp_gw *g = ctx;

	assert_true(len <= sizeof(g->note));
	memcpy(g->note, bytes, len);
	g->note_len = len;
	g->note_kind = kind;
}

/* --- gateways ----------------------------------------------------------------------------------- */

static void configure(struct eng_cfg *c, unsigned gw)
{
	uint8_t net[4] = {10, gw == SP_B ? 1 : 2, 0, 0};
	struct wan_cfg *cable = &c->tunnel[SP_CABLE].wan;

	eng_cfg_default(c);
	c->tunnels = c->prefixes = 1;
	c->prefix[0] = (struct eng_prefix){.addr = rwy_ip_from4(net), .len = 120};
	c->conns_max = 1000;
	c->seed = ++starts;
	wan_cfg_default(&c->tunnel[SP_WAN].wan);
	c->tunnel[SP_WAN].wan.cc_cfg.rate_Bps = RATE_Bps;
	if (gw != SP_B) {
		c->ack_mode = ENG_ACK_SITE;
		c->tunnels = 2;
		c->standby = (struct eng_standby_cfg){.on = true, .tunnel = SP_CABLE, .wait = SP_WAIT};
		wan_cfg_default(cable);
		cable->cc = cc_find("fixed");
		cable->cc_cfg.rate_Bps = RATE_Bps;
		cable->fec = WAN_FEC_OFF;
		cable->keepalive = BEAT;
		cable->tunnel_id = 1;
	}
	if (sp_tune)
		sp_tune(c, gw);
}

static bool whole(void *ctx, uint32_t round)
{
	const struct sp_gw *g = ctx;

	assert_int_equal(round, eng_standby_round(g->e));
	return !g->lacks;
}

void sp_two_tunnels(struct eng_cfg *c, unsigned gw)
{
	struct wan_cfg *w = &c->tunnel[SP_WAN_2].wan;

	c->tunnels = SP_WAN_2 + 1;
	wan_cfg_default(w);
	w->cc_cfg.rate_Bps = RATE_Bps;
	w->tunnel_id = 2;
}

void sp_start(unsigned gw)
{
	static const struct eng_ops ops = {.lan_tx = lan_tx,
	    .wan_tx = wan_out,
	    .serves = serves,
	    .standby_note = note,
	    .standby_whole = whole};
	struct eng_cfg *c = malloc(sizeof(*c));
	struct sp_gw *g = &sp_gw[gw];

	assert_true(c && !g->e);
	configure(c, gw);
	g->frozen = false;
	g->asked = 0;
	g->serves = !c->standby.on;
	assert_int_equal(eng_new(&g->e, c, &ops, g, (struct rwy_bufs){&gw_bufs, &g->bufs}, sp_now), 0);
	free(c);
	if (sp_started)
		sp_started(gw);
}

void sp_kill(unsigned gw)
{
	eng_free(sp_gw[gw].e);
	sp_gw[gw].e = NULL;
	rings[gw].n = 0;
	sp_gw[gw].serves = false;
	assert_int_equal(sp_gw[gw].bufs, 0);
}

void sp_freeze(unsigned gw, bool on)
{
	sp_gw[gw].frozen = on;
	for (unsigned i = 0; !on && i < rings[gw].n; i++)
		take(&sp_gw[gw], rings[gw].link[i], &rings[gw].d[i]);
	rings[gw].n = 0;
}

void sp_run(rwy_dur time)
{
	for (rwy_time end = sp_now + time; sp_now < end; sp_now += SP_STEP) {
		for (unsigned l = 0; l < SP_LINKS; l++)
			link_deliver(l);
		for (unsigned i = 0; i < SP_GATEWAYS; i++)
			if (sp_gw[i].e && !sp_gw[i].frozen)
				eng_poll(sp_gw[i].e, sp_now);
	}
}

const char *sp_state(unsigned gw)
{
	struct eng_standby_info i;

	assert_true(eng_standby_info(sp_gw[gw].e, &i));
	return i.state;
}

void sp_reach(unsigned gw, const char *state, rwy_dur limit)
{
	for (rwy_time end = sp_now + limit; sp_now < end && strcmp(sp_state(gw), state) != 0;)
		sp_run(SP_STEP);
	assert_string_equal(sp_state(gw), state);
}

const struct eng_counters *sp_counters(unsigned gw)
{
	return eng_counters(sp_gw[gw].e);
}

uint64_t sp_bytes(unsigned gw, enum eng_mem_kind k)
{
	struct eng_memory m;

	eng_memory(sp_gw[gw].e, &m);
	assert_int_equal(m.kind[k].bufs != 0, m.kind[k].bytes != 0);
	return m.kind[k].bytes;
}

/* --- hosts -------------------------------------------------------------------------------------- */

void sp_host_sends_bytes(unsigned site, uint32_t tenant, const uint8_t *ip, uint32_t len)
{
	struct dgram *d = link_add(site == SP_SITE_A ? SP_LAN_A : SP_LAN_B, len, 0);

	if (!d)
		return;
	d->tenant = tenant;
	memcpy(d->bytes, ip, len);
}

void sp_host_sends_as(unsigned site, uint32_t tenant, const struct rc_mk *m)
{
	uint8_t ip[RC_PKT_MAX];
	uint32_t len = rc_pkt_make(ip, m);

	sp_host_sends_bytes(site, tenant, ip, len);
}

void sp_host_sends(unsigned site, const struct rc_mk *m)
{
	sp_host_sends_as(site, 0, m);
}

/* --- a test ------------------------------------------------------------------------------------- */

int sp_set_up(void **state)
{
	sp_now = RWY_SEC;
	starts = 0;
	sp_heard = NULL;
	memset(sp_gw, 0, sizeof(sp_gw));
	memset(sp_host, 0, sizeof(sp_host));
	for (unsigned l = 0; l < SP_LINKS; l++) {
		links[l] = (struct link){.q = calloc(QUEUE, sizeof(struct dgram))};
		assert_non_null(links[l].q);
	}
	for (unsigned i = 0; i < SP_GATEWAYS; i++) {
		sp_gw[i].idx = i;
		rings[i].n = 0;
	}
	return 0;
}

int sp_set_up_paired(void **state)
{
	int r = sp_set_up(state);

	sp_start(SP_B);
	sp_start(SP_A1);
	sp_reach(SP_A1, "alone", 2 * SP_WAIT);
	sp_start(SP_A2);
	sp_reach(SP_A1, "paired", SP_WAIT);
	sp_reach(SP_A2, "ready", SP_WAIT);
	return r;
}

int sp_tear_down(void **state)
{
	int r = 0;

	for (unsigned i = 0; i < SP_GATEWAYS; i++) {
		eng_free(sp_gw[i].e);
		sp_gw[i].e = NULL;
		if (sp_gw[i].bufs)
			r = -1;
	}
	for (unsigned l = 0; l < SP_LINKS; l++)
		free(links[l].q);
	sp_tune = NULL;
	sp_started = NULL;
	return r;
}
