/* SPDX-License-Identifier: Apache-2.0 */
/* A site of the engine's fuzzer: buffers, the engine's output, start and stop; see
 * engine_world.h. */
#include "tests/fuzz/engine_world.h"

#define L2_ROOM  18 /* bytes of Ethernet and a VLAN tag before an IP packet */
#define L4_ROOM  66 /* the same, with IPv6 and UDP, before a tunnel datagram */
#define BUFS_MAX 20000

/* --- buffers ---------------------------------------------------------------------------------- */

struct mem {
	struct rwy_buf b; /* first member */
	uint8_t bytes[];
};

struct rwy_buf *fz_buf_new(struct site *s, uint32_t room, uint32_t len)
{
	struct mem *m = malloc(sizeof(*m) + room + len);

	CHECK(m);
	memset(&m->b, 0, sizeof(m->b));
	m->b.data = m->bytes + room;
	m->b.len = len;
	m->b.headroom = (uint16_t)room;
	s->bufs++;
	CHECK(s->bufs < BUFS_MAX);
	return &m->b;
}

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct site *s = ctx;

	if (s->w->alloc_fail && ++s->w->allocs % s->w->alloc_fail == 0)
		return NULL;
	return fz_buf_new(s, headroom, len);
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	struct site *s = ctx;

	CHECK(s->bufs);
	s->bufs--;
	free(b);
}

static const struct rwy_buf_ops buf_ops = {buf_alloc, buf_free};

/* --- the engine's output ---------------------------------------------------------------------- */

/* Writes headers in front, as the gateway does. */
static void scribble(struct rwy_buf *b, uint32_t room)
{
	if (b && b->headroom >= room)
		memset(b->data - room, 0xee, room);
}

static void host_got(struct site *s, uint8_t *ip, uint32_t len, const struct rwy_ip *to)
{
	struct got *g = &s->got[s->got_n % KEEP];
	struct roce_pkt pkt;

	if (roce_parse(ip, len, &pkt) != ROCE_PARSE_OK)
		return;
	CHECK(s->w->evil || rwy_ip_eq(to, &pkt.dst));
	if (pkt.info->transport != ROCE_RC)
		return;
	CHECK(s->w->evil || roce_icrc_ok(&pkt));
	if (!roce_op_is_request(pkt.info))
		return;
	*g = (struct got){pkt.src, pkt.dst, pkt.dqpn, pkt.psn, pkt.payload_len, pkt.opcode};
	if (pkt.info->op == ROCE_OP_READ_REQ)
		g->len = roce_reth_len(&pkt);
	s->got_n++;
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct site *s = ctx;
	uint8_t *copy = malloc(tx->len ? tx->len : 1);

	CHECK(copy && tx->len);
	memcpy(copy, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	host_got(s, copy, tx->len, tx->dst);
	free(copy);
	scribble(tx->buf, L2_ROOM);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
}

void fz_put(struct site *to, const uint8_t *bytes, uint32_t len)
{
	struct dgram d = {len, malloc(len ? len : 1)};

	CHECK(d.bytes);
	memcpy(d.bytes, bytes, len);
	if (to->in_n == QUEUE_MAX) {
		free(d.bytes);
		return;
	}
	to->in[to->in_n++] = d;
}

/* Delivers a datagram, or not, as the script's present choice says. */
static void carry(struct site *from, uint8_t *bytes, uint32_t len)
{
	struct world *w = from->w;
	struct site *to = &w->site[!from->idx];
	uint8_t outcome = from->outcome & 0xf0 ? fz_u8(w) : from->outcome & 7;

	free(to->old[to->old_n % KEEP].bytes);
	to->old[to->old_n % KEEP] = (struct dgram){len, malloc(len)};
	CHECK(to->old[to->old_n % KEEP].bytes);
	memcpy(to->old[to->old_n++ % KEEP].bytes, bytes, len);
	if (outcome == 1)
		return;
	if (outcome == 2)
		fz_put(to, bytes, len);
	if (outcome == 3)
		bytes[w->allocs++ % len] ^= (uint8_t)(1u << (len & 7));
	fz_put(to, bytes, len);
	if (outcome == 4 && to->in_n > 1) { /* it overtakes */
		struct dgram d = to->in[to->in_n - 1];

		memmove(to->in + 1, to->in, (to->in_n - 1) * sizeof(d));
		to->in[0] = d;
	}
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct site *s = ctx;
	uint8_t dgram[12000];
	uint32_t len = tx->hdr_len;

	CHECK(tunnel == 0 && tx->hdr_len <= WAN_HDR_MAX);
	memcpy(dgram, tx->hdr, len);
	if (tx->buf) {
		CHECK(tx->off + tx->len <= tx->buf->len);
		memcpy(dgram + len, tx->buf->data + tx->off, tx->len);
		len += tx->len;
		if (!tx->off)
			scribble(tx->buf, L4_ROOM + tx->hdr_len);
	}
	carry(s, dgram, len);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
}

static const struct eng_ops eng_ops = {.lan_tx = lan_tx, .wan_tx = wan_tx};

struct rwy_ip fz_host_ip(unsigned site, unsigned host, bool is6)
{
	uint8_t v4[4] = {10, (uint8_t)(site + 1), 0, (uint8_t)(host + 2)};
	struct rwy_ip ip = {{0xfd, 0, 0, (uint8_t)(site + 1)}};

	if (!is6)
		return rwy_ip_from4(v4);
	ip.b[15] = (uint8_t)(host + 2);
	return ip;
}

void fz_site_start(struct site *s)
{
	struct world *w = s->w;
	struct eng_cfg *c = malloc(sizeof(*c));
	struct wan_cfg *wan;

	CHECK(c);
	eng_cfg_default(c);
	c->tunnels = 1;
	c->prefixes = 2;
	c->prefix[0] = (struct eng_prefix){.addr = fz_host_ip(!s->idx, 0, false), .len = 120};
	c->prefix[0].addr.b[15] = 0;
	c->prefix[1] = (struct eng_prefix){.addr = fz_host_ip(!s->idx, 0, true), .len = 64};
	c->ack_mode = (enum eng_ack_mode)(w->mode & 3);
	c->conns_max = CONNS_MAX;
	c->recorder_n = 64;
	c->half_open_max = HALF_MAX;
	c->idle_expiry = 5 * RWY_SEC;
	c->host_window = 8;
	c->custody_conn = CUSTODY;
	c->custody_total = 2 * CUSTODY;
	c->buf_cost = 0;
	c->read_cache_conn = 4096;
	c->read_cache_total = 3 * 4096;
	c->probe_timeout = 20 * RWY_MS;
	c->timers.rnr_retry = 2;
	c->timers.retry = 3;
	c->seed = w->seed += 77;
	wan = &c->tunnel[0].wan;
	wan_cfg_default(wan);
	wan->mtu[0] = w->mode & 4 ? 9000 : 576;
	wan->cc = w->mode & 8 ? &cc_auto : &cc_fixed;
	wan->cc_cfg.rate_Bps = 1250000000;
	wan->cc_cfg.mtu = wan->mtu[0];
	wan->tunnel_id = 7;
	wan->tx_pkts_max = 256;
	wan->rx_window = w->mode & 16 ? 4 : 64;
	wan->rx_bytes = w->mode & 16 ? 20000 : 1 << 20;
	CHECK(eng_new(&s->e, c, &eng_ops, s, (struct rwy_bufs){&buf_ops, s}, w->now) == 0);
	if (w->mode & 128) { /* a second tenant with the same addresses */
		struct eng_tenant_cfg t = {.vni = VNI,
		    .ack_mode = c->ack_mode,
		    .flows_max = 16,
		    .custody = 1 << 16,
		    .prefix = c->prefix,
		    .prefixes = c->prefixes};

		CHECK(eng_tenant_set(s->e, 1 + s->idx, &t, w->now) == 0);
	}
	free(c);
}

void fz_site_stop(struct site *s)
{
	eng_free(s->e);
	CHECK(s->bufs == 0);
	s->e = NULL;
}
