/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from hosts to the fuzzer's engines: requests, responses, CM, and invalid ones; see
 * engine_world.h. */
#include "tests/fuzz/engine_world.h"
#include "tests/lib/rc_pkt.c"

/* Turns the IPv4 packet in `in` into IPv6, with its ICRC. */
static uint32_t to_ip6(uint8_t *out, const uint8_t *in, uint32_t len, unsigned site, unsigned host)
{
	struct rwy_ip src = fz_host_ip(site, host, true), dst = fz_host_ip(!site, host, true);
	struct roce_pkt pkt;

	memset(out, 0, 40);
	out[0] = 0x60;
	rwy_put16(out + 4, (uint16_t)(len - 20));
	out[6] = 17;
	out[7] = 64;
	memcpy(out + 8, src.b, 16);
	memcpy(out + 24, dst.b, 16);
	memcpy(out + 40, in + 20, len - 20);
	if (roce_parse(out, len + 20, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	return len + 20;
}

static void from_host(struct site *s, const uint8_t *ip, uint32_t len)
{
	struct rwy_buf *b;

	if (!len)
		return;
	b = fz_buf_new(s, RX_ROOM, len);
	memcpy(b->data, ip, len);
	memcpy(s->last, ip, len);
	s->last_len = len;
	if (s->w->mode & 128)
		eng_tenant_rx(s->e, &b, &(uint16_t){(uint16_t)(len & 4 ? 1 + s->idx : 0)}, 1, s->w->now);
	else
		eng_tenant_rx(s->e, &b, &(uint16_t){0}, 1, s->w->now);
}

static void send_mk(struct site *s, struct rc_mk *m, unsigned host, bool is6)
{
	struct rwy_ip src = fz_host_ip(s->idx, host, false), dst = fz_host_ip(!s->idx, host, false);
	uint8_t out[RC_PKT_MAX], out6[RC_PKT_MAX + 20];
	uint32_t len;

	memcpy(m->src, src.b + 12, 4);
	memcpy(m->dst, dst.b + 12, 4);
	len = rc_pkt_make(out, m);
	if (!is6)
		from_host(s, out, len);
	else if (len + 20 <= RC_PKT_MAX)
		from_host(s, out6, to_ip6(out6, out, len, s->idx, host));
}

static const uint32_t lengths[8] = {0, 1, 255, 256, 512, 1024, 2048, 4096};

void fz_request(struct site *s, uint8_t opcode, uint8_t how)
{
	struct world *w = s->w;
	unsigned qp = how & 3;
	struct rc_mk m = {.opcode = opcode,
	    .psn = s->psn[qp],
	    .ack_req = how & 8,
	    .dqpn = 0x10 + qp,
	    .len = lengths[how >> 5],
	    .payload_len = lengths[how >> 5]};
	const struct roce_opinfo *info = roce_op(opcode);
	uint32_t cnt = 1;

	if (how & 16) {
		uint8_t b = fz_u8(w);

		m.psn = b == 0x80 ? fz_u24(w) : (m.psn + (uint32_t)(int32_t)(int8_t)b) & ROCE_PSN_MASK;
	}
	if (info->op == ROCE_OP_READ_REQ) {
		uint8_t b = fz_u8(w);

		m.len = b & 1 ? fz_u24(w) << (b >> 4) : lengths[b >> 5] * (1 + (b >> 1 & 15));
		cnt = roce_read_packets(m.len, 1024);
	}
	if (!(info->flags & ROCE_F_PAYLOAD))
		m.payload_len = 0;
	if (!(how & 16) || m.psn == s->psn[qp])
		s->psn[qp] = (m.psn + cnt) & ROCE_PSN_MASK;
	send_mk(s, &m, qp >> 1, how & 4);
}

void fz_answer(struct site *s, uint8_t which, uint8_t how)
{
	const struct got *g = &s->got[which % KEEP];
	struct rc_mk m = {
	    .psn = g->psn, .dqpn = g->qpn, .syndrome = 0x1f, .msn = which, .opcode = ROCE_RC_ACK};
	const struct roce_opinfo *info = roce_op(g->opcode);
	bool is6 = !rwy_ip_is4(&g->src);
	unsigned host = (g->dst.b[15] - 2u) & 1;
	uint32_t mtu = lengths[3 + (how & 3)], n;

	if (g->qpn == 0)
		return;
	if (how & 0x80) { /* another queue pair, another PSN */
		m.dqpn = 0x10 + (how >> 2 & 3);
		m.psn = (m.psn + (uint32_t)(int32_t)(int8_t)fz_u8(s->w)) & ROCE_PSN_MASK;
	}
	if (how & 0x40) {
		m.syndrome = fz_u8(s->w);
	} else if (roce_op_is_atomic(info)) {
		m.opcode = ROCE_RC_ATOMIC_ACK;
	} else if (info->op == ROCE_OP_READ_REQ) {
		n = roce_read_packets(g->len, mtu);
		n = n > 12 ? 12 : n;
		for (uint32_t i = 0; i < n; i++) {
			m.opcode = n == 1       ? ROCE_RC_READ_RESP_ONLY
			           : i == 0     ? ROCE_RC_READ_RESP_FIRST
			           : i + 1 == n ? ROCE_RC_READ_RESP_LAST
			                        : ROCE_RC_READ_RESP_MIDDLE;
			m.payload_len = i + 1 < n ? mtu : g->len - i * mtu;
			if (m.payload_len > mtu)
				m.payload_len = mtu;
			send_mk(s, &m, host, is6);
			m.psn = (m.psn + 1) & ROCE_PSN_MASK;
			if (how & 0x20 && i == (how >> 2 & 7u))
				return;
		}
		return;
	}
	send_mk(s, &m, host, is6);
}

void fz_any_response(struct site *s, uint8_t op)
{
	struct world *w = s->w;
	struct rc_mk m = {.opcode = (uint8_t)(ROCE_RC_READ_RESP_FIRST + op % 6)};
	uint8_t how = fz_u8(w);

	m.dqpn = how & 0x80 ? fz_u24(w) : 0x10u + (how & 3u);
	m.psn =
	    how & 0x40 ? fz_u24(w) : (s->psn[how & 3] + (uint32_t)(int32_t)(int8_t)fz_u8(w)) & ROCE_PSN_MASK;
	m.syndrome = fz_u8(w);
	m.msn = how;
	m.payload_len = roce_op(m.opcode)->flags & ROCE_F_PAYLOAD ? lengths[how >> 2 & 7] : 0;
	send_mk(s, &m, how >> 1 & 1, how & 4);
}

void fz_cm(struct site *s, uint8_t what)
{
	static const uint8_t attrs[8] = {0x10, 0x13, 0x14, 0x15, 0x16, 0x12, 0x11, 0x17};
	struct world *w = s->w;
	uint8_t mad[264] = {0x80, 0x01, 0, 0, 0, 0, 0, 1, 1, 7, 2, 3}, ids = fz_u8(w), more = fz_u8(w);
	uint8_t *b = mad + 8 + 24, out[RC_PKT_MAX], out6[RC_PKT_MAX];
	struct rc_mk m = {.opcode = ROCE_UD_SEND_ONLY, .dqpn = 1};
	struct rwy_ip src = fz_host_ip(s->idx, what >> 3 & 1, what & 16);
	struct rwy_ip dst = fz_host_ip(!s->idx, what >> 3 & 1, what & 16);
	struct roce_pkt pkt;
	uint32_t len;

	mad[8 + 15] = ids >> 6;
	rwy_put16(mad + 8 + 16, attrs[what & 7]);
	rwy_put32(b, 1 + (ids & 3));
	rwy_put32(b + 4, (what & 7) == 0 ? 0 : 1 + (ids >> 2 & 3));
	if ((what & 7) == 0) {
		rwy_put24(b + 32, 0x10 + (ids >> 4 & 3));
		rwy_put24(b + 44, s->psn[ids >> 4 & 3]);
		b[47] = more & 7;
		b[50] = (uint8_t)((more >> 3 & 7) << 4 | 7);
		memcpy(b + 56, src.b, 16);
		memcpy(b + 72, dst.b, 16);
	} else if ((what & 7) == 1) {
		rwy_put24(b + 12, 0x10 + (ids >> 4 & 3));
		rwy_put24(b + 20, s->psn[ids >> 4 & 3]);
		b[27] = (uint8_t)(more << 5);
	} else if ((what & 7) == 3) {
		rwy_put24(b + 8, 0x10 + (ids >> 4 & 3));
	}
	if (what & 32)
		mad[8 + more] ^= fz_u8(w);
	/* rc_pkt_make() has no DETH: its bytes are put before the payload, and the length is
	 * right. */
	m.payload = mad + 8;
	m.payload_len = what & 64 ? more : 256;
	memcpy(m.src, src.b + 12, 4);
	memcpy(m.dst, dst.b + 12, 4);
	len = rc_pkt_make(out, &m);
	memmove(out + 28 + 12 + 8, out + 28 + 12, len - 28 - 12);
	memcpy(out + 28 + 12, mad, 8);
	len += 8;
	rwy_put16(out + 2, (uint16_t)len);
	rwy_put16(out + 24, (uint16_t)(len - 20));
	rwy_put16(out + 10, (uint16_t)0);
	{
		uint32_t sum = 0;

		for (int i = 0; i < 20; i += 2)
			sum += rwy_get16(out + i);
		sum = (sum & 0xffff) + (sum >> 16);
		rwy_put16(out + 10, (uint16_t) ~(sum + (sum >> 16)));
	}
	if (what & 16) {
		from_host(s, out6, to_ip6(out6, out, len, s->idx, what >> 3 & 1));
		return;
	}
	if (roce_parse(out, len, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	from_host(s, out, len);
}

void fz_mutate(struct site *s, uint8_t how)
{
	uint8_t out[RC_PKT_MAX];
	uint32_t len = s->last_len;
	struct roce_pkt pkt;

	if (!len)
		return;
	memcpy(out, s->last, len);
	for (unsigned i = 0; i < (how & 3u); i++) {
		uint32_t at = fz_u8(s->w);

		out[at % len] ^= fz_u8(s->w);
	}
	if (how & 4)
		len = len * fz_u8(s->w) / 256;
	if (how & 8 && len && roce_parse(out, len, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	from_host(s, out, len);
}

void fz_garbage(struct site *s, uint8_t n)
{
	uint8_t out[256];

	for (unsigned i = 0; i < n; i++)
		out[i] = fz_u8(s->w);
	from_host(s, out, n);
}
