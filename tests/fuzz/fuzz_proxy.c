/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay's edge: CM splice, trailer, links, their journal and mirror, data, and the desk. The input is a series of records: control, a
 * few fields, a few bytes to change in the packet. Both relays and both hosts are played, so that
 * links get far. What passes must have good checksums and the right addresses, and private data
 * must be the sender's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/desk.h"
#include "proxy/journal.h"
#include "proxy/mirror.h"
#include "proxy/trailer.h"
#include "roce/cm.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "rwy/checksum.h"
#include "tests/lib/roce_cm_mad.h"

#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x))                                                                                    \
			__builtin_trap();                                                                    \
	} while (0)

struct in {
	const uint8_t *p, *end;
};

static uint8_t byte(struct in *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static struct rwy_ip ip_of(bool is6, uint8_t net, uint8_t h)
{
	struct rwy_ip a = {.b = {0xfd, 0, 0, net}};

	a.b[15] = h;
	return is6 ? a : rwy_ip_from4((const uint8_t[]){10, net, 0, h});
}

/* A packet to QP1, or with RC headers alone; its ICRC is good. Returns its length. */
static uint32_t build(uint8_t *b, bool is6, const struct rwy_ip *src, const struct rwy_ip *dst,
    uint8_t opcode, uint32_t dqpn, const uint8_t *body, uint32_t n)
{
	uint32_t hlen = is6 ? 40 : 20, tot = hlen + 8 + 12 + n + 4;
	uint8_t *udp = b + hlen;

	memset(b, 0, tot);
	b[0] = is6 ? 0x60 : 0x45;
	rwy_put16(b + (is6 ? 4 : 2), (uint16_t)(is6 ? tot - 40 : tot));
	b[is6 ? 6 : 9] = 17;
	b[is6 ? 7 : 8] = 64;
	memcpy(b + (is6 ? 8 : 12), src->b + (is6 ? 0 : 12), is6 ? 16 : 4);
	memcpy(b + (is6 ? 24 : 16), dst->b + (is6 ? 0 : 12), is6 ? 16 : 4);
	if (!is6)
		rwy_put16(b + 10, (uint16_t)~rwy_csum(b, 20));
	rwy_put16(udp, 50000);
	rwy_put16(udp + 2, 4791);
	rwy_put16(udp + 4, (uint16_t)(tot - hlen));
	udp[8] = opcode;
	rwy_put24(udp + 8 + 5, dqpn);
	memcpy(udp + 20, body, n);
	return tot;
}

static uint32_t build_cm(
    struct in *in, uint8_t *b, bool is6, const struct rwy_ip *src, const struct rwy_ip *dst)
{
	static const uint16_t attrs[] = {0x10, 0x13, 0x14, 0x15, 0x16, 0x12, 0x11, 0x17, 0x19};
	uint8_t body[8 + 256] = {0x80, 1, 0, 0, 0, 0, 0, 1}, *mad = body + 8, kind = byte(in);
	uint8_t *m = mad + 24, n = byte(in) & 7;
	struct proxy_target t = {.addr = ip_of(is6, 2, 3), .port = (uint16_t)(7000 + (kind >> 6))};

	cp_mad(mad, attrs[(kind & 15) % 9], kind >> 4 & 1);
	cp_be(m, byte(in) & 3, 4);
	cp_be(m + 4, byte(in) & 3, 4);
	if ((kind & 15) % 9 == 0) {
		cp_be(m + 4, 0, 4);
		cp_be(m + 8, 0x01060000 | (kind & 0x20 ? 4790 : 7000), 8);
		cp_be(m + 32, 16 + (byte(in) & 3), 3);
		memcpy(m + 56, src->b, 16);
		memcpy(m + 72, dst->b, 16);
		m[140 + 1] = is6 ? 0x60 : 0x40;
		cp_be(m + 142, 40000, 2);
		memcpy(m + 140 + 4 + (is6 ? 0 : 12), src->b + (is6 ? 0 : 12), is6 ? 16 : 4);
		memcpy(m + 140 + 20 + (is6 ? 0 : 12), dst->b + (is6 ? 0 : 12), is6 ? 16 : 4);
		proxy_trailer_write(m + 140 + 92 - proxy_trailer_len(&t), &t);
	} else if ((kind & 15) % 9 == 1) {
		cp_be(m + 12, 32 + (byte(in) & 3), 3);
	} else if ((kind & 15) % 9 == 3) {
		uint32_t q = byte(in);

		cp_be(m + 8, q & 0x80 ? 0x100 + (q & 7) : 16 + (q & 31), 3);
	}
	for (; n; n--) {
		uint8_t at = byte(in);

		mad[at] = byte(in);
	}
	return build(b, is6, src, dst, 0x64, 1, body, sizeof(body));
}

/* Where private data begin in a message; 256: there is none that this test knows. */
static unsigned private_at(uint16_t attr)
{
	switch (attr) {
	case ROCE_CM_REQ:
		return 24 + 140 + 36;
	case ROCE_CM_REP:
		return 24 + 36;
	case ROCE_CM_REJ:
		return 24 + 84;
	case ROCE_CM_RTU:
	case ROCE_CM_DREP:
		return 24 + 8;
	case ROCE_CM_DREQ:
		return 24 + 12;
	default:
		return 256;
	}
}

static void check_private(const uint8_t *before, const struct roce_pkt *after)
{
	const uint8_t *mad = after->payload;
	unsigned at = private_at((uint16_t)(mad[16] << 8 | mad[17])), end = 256;
	struct proxy_target t;

	/* A trailer may be gone: the zeros there are checked instead. */
	if (at == 24 + 140 + 36 && proxy_trailer_read(before + 24 + 140, &t) &&
	    !proxy_trailer_read(mad + 24 + 140, &t))
		end -= proxy_trailer_read(before + 24 + 140, &t);
	if (at < 256)
		CHECK(!memcmp(before + at, mad + at, end - at));
	for (; end < 256; end++)
		CHECK(!mad[end]);
}

static void check_reply(const struct proxy_act *act)
{
	static uint8_t copy[PROXY_REPLY_MAX];
	struct roce_cm_msg m;
	struct roce_pkt p;

	if (!act->reply_len)
		return;
	CHECK(act->reply_len <= sizeof(copy));
	memcpy(copy, act->reply, act->reply_len);
	CHECK(roce_parse(copy, act->reply_len, &p) == ROCE_PARSE_OK && roce_icrc_ok(&p));
	CHECK(roce_cm_parse(&p, &m) == 0 &&
	      (m.attr == ROCE_CM_REJ || m.attr == ROCE_CM_MRA || m.attr == ROCE_CM_SIDR_REP));
}

#define LINKS 8

struct world {
	struct proxy_record journal[2][2 * LINKS];
	struct proxy_policy policy[2];
	struct proxy_acl acl;
	struct proxy_entry entry;
	struct proxy_edge edge[2], middle;
	struct proxy_mirror mirror[2];
	struct rwy_ip host[2], relay[2];
	rwy_time now;
	bool is6;
};

static bool to_nobody(void *ctx, const uint8_t *bytes, uint32_t len)
{
	CHECK(len <= PROXY_MIRROR_LEN);
	return bytes[15] & 3; /* there is not always memory */
}

static struct proxy_map_cfg cfg_of(struct world *w, unsigned i)
{
	struct proxy_map_cfg cfg;

	proxy_map_cfg_default(&cfg);
	cfg.links_max = LINKS;
	cfg.half_open_max = 4;
	cfg.source_max = 6;
	cfg.qpn_first = 0x100;
	cfg.qpn_last = 0x104;
	cfg.journal = w->journal[i];
	proxy_mirror_init(&w->mirror[i], &w->edge[i], &cfg);
	w->mirror[i].send = to_nobody;
	return cfg;
}

/*
 * The relay starts again. By its journal it has the links that it had; by one with other bytes, as
 * many as make sense.
 */
static void restart(struct world *w, struct in *in, unsigned i)
{
	const struct proxy_map_cfg cfg = cfg_of(w, i);
	const struct proxy_link *l;
	struct proxy_map_now was, is;
	uint8_t damage = byte(in);
	uint32_t cursor = 0, n = 0;

	proxy_map_count(w->edge[i].map, &was);
	proxy_edge_fini(&w->edge[i]);
	for (unsigned k = damage & 0xf; k--;) {
		struct proxy_record *r = &w->journal[i][byte(in) % (2 * LINKS)];

		((uint8_t *)r)[byte(in) % sizeof(*r)] ^= byte(in);
		if (damage & 0x10)
			proxy_record_seal(r, r->seq, r->born);
	}
	CHECK(proxy_edge_init(&w->edge[i], &w->policy[i], &cfg) == 0);
	CHECK(proxy_edge_restore(&w->edge[i], w->now) == 0);
	proxy_map_count(w->edge[i].map, &is);
	CHECK(damage & 0xf || !memcmp(&was, &is, sizeof(is)));
	while ((l = proxy_map_next(w->edge[i].map, &cursor))) {
		n++;
		CHECK(!l->alias || proxy_map_in(w->edge[i].map, &l->relay, l->alias) == l);
	}
	CHECK(n == w->edge[i].c.links_restored && n == is.half_open + is.open + is.closed);
}

/* pairs: the list allows all ports, and so pairs. */
static void world_begin(struct world *w, bool is6, bool pairs)
{
	struct proxy_map_cfg cfg;

	memset(w->journal, 0, sizeof(w->journal));
	w->is6 = is6;
	w->now = 0;
	for (uint8_t i = 0; i < 2; i++) {
		w->host[i] = ip_of(is6, i + 1, 3);
		w->relay[i] = ip_of(is6, i + 1, 254);
	}
	w->acl = (struct proxy_acl){{w->host[0], 128}, {w->host[1], 128}, 7000, 7001};
	if (pairs) {
		w->acl.port_lo = 1;
		w->acl.port_hi = 65535;
	}
	w->entry = (struct proxy_entry){
	    .listen = w->relay[0], .port = 7000, .target = w->host[1], .target_port = 7001, .links_max = 5};
	for (unsigned i = 0; i < 2; i++) {
		w->policy[i] = (struct proxy_policy){.addr = {w->relay[i]},
		    .addrs = 1,
		    .acl = &w->acl,
		    .acls = 1,
		    .entry = &w->entry,
		    .entries = i == 0,
		    .redirect_port = 4790};
		cfg = cfg_of(w, i);
		CHECK(proxy_edge_init(&w->edge[i], &w->policy[i], &cfg) == 0);
	}
	cfg.journal = NULL;
	cfg.changed = NULL;
	CHECK(proxy_edge_init(&w->middle, &w->policy[1], &cfg) == 0);
}

/* The other relay of a pair says something; and this one, if it serves. */
static void pair(struct world *w, struct in *in, unsigned i)
{
	struct proxy_mirror *m = &w->mirror[i];
	uint8_t how = byte(in), msg[PROXY_MIRROR_LEN] = {0};

	memcpy(msg, in->p, (size_t)(in->end - in->p) < sizeof(msg) ? (size_t)(in->end - in->p) : sizeof(msg));
	msg[0] = 1 + how % 5;
	rwy_put64(msg + 8, m->heard + (how & 0x20 ? 2 : 1));
	if (how & 0x40) {
		memcpy(msg + 40, w->host[i].b, 16);
		memcpy(msg + 56, w->host[!i].b, 16);
		memcpy(msg + 72, w->relay[i].b, 16);
	}
	proxy_mirror_hear(m, msg, how & 0x10 ? 16 : sizeof(msg), how & 0x80, w->now);
	proxy_mirror_turn(m, how & 0x80 ? 1 + (how & 1) : 0, w->now);
}

/* What a library asks, with the cookie of its host or without. */
static void ask(struct world *w, struct in *in, unsigned from, const struct rwy_ip *src)
{
	struct proxy_ask a = {.version = PROXY_ASK_VERSION, .kind = byte(in) & 7}, b;
	uint8_t how = byte(in), bytes[PROXY_ASK_LEN];

	a.target = (struct proxy_target){ip_of(w->is6, 2 - (how & 1), 3), (uint16_t)(7000 + (how >> 1 & 3))};
	a.source_port = 40000;
	a.lqpn = 16 + (how >> 3 & 3);
	a.rqpn = 32 + (how >> 5 & 1);
	if (how & 0x40)
		a.cookie = proxy_desk_answer(&w->edge[from], src, &w->relay[from], &a, w->now).cookie;
	if (how & 0x80)
		a.version = 2;
	a = proxy_desk_answer(&w->edge[from], src, &w->relay[from], &a, w->now);
	CHECK(a.is_answer && a.answer < PROXY_ANSWER_COUNT);
	/* Strangers are told that the relay is there, and may end what they have not. */
	CHECK(a.answer != PROXY_ANSWER_OK || rwy_ip_eq(src, &w->host[from]) || a.kind == PROXY_ASK_ALIVE ||
	      a.kind == PROXY_ASK_UNPAIR);
	proxy_ask_write(bytes, &a);
	CHECK(proxy_ask_read(bytes, sizeof(bytes), &b) == 0 && a.id == b.id);
}

static uint8_t *hop_limit(uint8_t *ip)
{
	return ip + (ip[0] >> 4 == 6 ? 7 : 8);
}

/* Another relay on the way: the packet is the same but for its hop limit, or has its answer. */
static void between(struct world *w, const uint8_t *b, uint32_t len, uint8_t limit, bool back)
{
	static uint8_t copy[2048], was[2048];
	struct proxy_act act = {0};
	struct roce_pkt p;

	memcpy(was, b, len);
	*hop_limit(was) = limit;
	if (was[0] >> 4 == 4) {
		rwy_put16(was + 10, 0);
		rwy_put16(was + 10, (uint16_t)~rwy_csum(was, (was[0] & 15u) * 4));
	}
	memcpy(copy, was, len);
	proxy_edge_onward(&w->middle, copy, len, back, &act, w->now);
	check_reply(&act);
	if (act.verdict == PROXY_PASS) {
		CHECK(!back && limit > 1 && *hop_limit(copy) == limit - 1 && !act.reply_len);
		CHECK(roce_parse(copy, len, &p) == ROCE_PARSE_OK || p.info->flags == 0);
		memcpy(copy, was, (was[0] >> 4 == 6 ? 8 : 12)); /* hop limit, and its checksum */
	}
	CHECK(!memcmp(copy, was, len));
	proxy_edge_foreign(&w->middle, copy, len, &act, w->now);
	check_reply(&act);
	CHECK(act.verdict == PROXY_DROP);
}

/* What parsed still does; what did not is not made to: the engine drops it. */
static enum roce_parse_reason parse_again(
    enum roce_parse_reason before, uint8_t *b, uint32_t len, struct roce_pkt *p)
{
	enum roce_parse_reason r = roce_parse(b, len, p);

	CHECK(r == before);
	return r;
}

static void packet(struct world *w, struct in *in, uint8_t control)
{
	static uint8_t b[2048], mad[256];
	unsigned from = control & 1, stranger = control >> 1 & 3;
	struct rwy_ip src = stranger == 3 ? ip_of(w->is6, 9, 9) : w->host[from];
	bool cm = control & 8, good = (control & 0x30) != 0x30;
	struct proxy_act act = {0};
	enum roce_parse_reason r;
	struct roce_pkt p;
	uint32_t len;

	if (cm) {
		len = build_cm(in, b, w->is6, &src, &w->relay[from]);
	} else {
		uint8_t op = byte(in);

		if (op == 0xfd) {
			pair(w, in, from);
			return;
		}
		if (op == 0xfe) {
			restart(w, in, from);
			return;
		}
		if (op == 0xff) {
			ask(w, in, from, &src);
			return;
		}
		len = build(b, w->is6, &src, &w->relay[from], op, 0x100u + (byte(in) & 7), in->p,
		    (uint32_t)(in->end - in->p > 32 ? 32 : in->end - in->p));
	}
	r = roce_parse(b, len, &p);
	if (r <= ROCE_PARSE_OK && good)
		roce_icrc_store(&p);
	if (cm)
		memcpy(mad, b + len - 4 - 256, 256);
	proxy_edge_in(&w->edge[from], b, len, &act, w->now);
	check_reply(&act);
	if (act.verdict == PROXY_DROP)
		return;
	if (parse_again(r, b, len, &p) != ROCE_PARSE_OK && r != ROCE_PARSE_UNKNOWN_OPCODE)
		return;
	CHECK(rwy_ip_eq(&p.src, &w->host[from]) && rwy_ip_eq(&p.dst, &w->host[!from]));
	if (cm) {
		CHECK(roce_icrc_ok(&p));
		check_private(mad, &p);
	}
	between(w, b, len, (uint8_t)(64 >> (control >> 4 & 3) * 3), control & 4);
	if (control & 0x40) /* the WAN is cut */
		return;
	proxy_edge_out(&w->edge[!from], b, len, NULL, &act, w->now);
	check_reply(&act);
	if (act.verdict == PROXY_DROP)
		return;
	(void)parse_again(r, b, len, &p);
	CHECK(rwy_ip_eq(&p.src, &w->relay[!from]) && rwy_ip_eq(&p.dst, &w->host[!from]));
	if (cm) {
		CHECK(roce_icrc_ok(&p));
		check_private(mad, &p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in in = {data, data + size};
	struct proxy_target t;
	struct world w;
	uint8_t kind;

	if (size >= PROXY_PRIVATE_LEN)
		(void)proxy_trailer_read(data, &t);
	kind = byte(&in);
	world_begin(&w, kind & 1, kind & 2);
	while (in.p < in.end) {
		uint8_t control = byte(&in);

		if (control & 0x80) {
			w.now += (rwy_dur)(control & 0x7f) * RWY_SEC;
			proxy_edge_tick(&w.edge[0], w.now);
			proxy_edge_tick(&w.edge[1], w.now);
		} else {
			packet(&w, &in, control);
		}
	}
	/* Raw bytes of a host, and of a peer. */
	if (size <= 1500) {
		static uint8_t raw[1500];
		struct proxy_act act;

		memcpy(raw, data, size);
		proxy_edge_in(&w.edge[0], raw, (uint32_t)size, &act, w.now);
		check_reply(&act);
		memcpy(raw, data, size);
		proxy_edge_out(&w.edge[1], raw, (uint32_t)size, NULL, &act, w.now);
		check_reply(&act);
		memcpy(raw, data, size);
		proxy_edge_onward(&w.middle, raw, (uint32_t)size, false, &act, w.now);
		check_reply(&act);
		memcpy(raw, data, size);
		proxy_edge_foreign(&w.middle, raw, (uint32_t)size, &act, w.now);
		check_reply(&act);
		proxy_desk_packet(&w.edge[0], data, (uint32_t)size, &act, w.now);
	}
	proxy_edge_fini(&w.edge[0]);
	proxy_edge_fini(&w.edge[1]);
	proxy_edge_fini(&w.middle);
	return 0;
}
