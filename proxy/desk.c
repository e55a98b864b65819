/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/desk.h"

#include <string.h>

#include "base/siphash.h"
#include "proxy/pair.h"
#include "rwy/checksum.h"

#define EPOCH     (60 * RWY_SEC) /* a cookie is good in its epoch and the next */
#define HOP_LIMIT 64
#define UDP       17
#define UDP_LEN   8

/* A request with what the datagram says of its sender. */
struct asked {
	const struct rwy_ip *host, *relay;
	const struct proxy_ask *ask;
};

/* --- cookies ---------------------------------------------------------------------------------- */

static uint64_t cookie_of(const struct proxy_edge *e, const struct asked *q, uint64_t epoch)
{
	uint8_t said[40];
	uint64_t c;

	memcpy(said, q->host->b, 16);
	memcpy(said + 16, q->relay->b, 16);
	rwy_put64(said + 32, epoch);
	c = base_siphash(e->cookie_key, said, sizeof(said));
	return c ? c : 1;
}

static bool cookie_is_good(const struct proxy_edge *e, const struct asked *q, rwy_time now)
{
	uint64_t epoch = now / EPOCH;

	return q->ask->cookie == cookie_of(e, q, epoch) ||
	       (epoch && q->ask->cookie == cookie_of(e, q, epoch - 1));
}

/* --- requests --------------------------------------------------------------------------------- */

/* Hosts of a link have one family, and none is a relay. */
static bool is_loop(const struct proxy_edge *e, const struct asked *q)
{
	const struct rwy_ip *to = &q->ask->target.addr;

	return proxy_is_relay(e->policy, to) || rwy_ip_eq(to, q->host) ||
	       rwy_ip_is4(to) != rwy_ip_is4(q->host);
}

static enum proxy_answer may_connect(const struct proxy_edge *e, const struct asked *q)
{
	if (is_loop(e, q))
		return PROXY_ANSWER_LOOP;
	if (!e->policy->redirect_port)
		return PROXY_ANSWER_NO_REDIRECT;
	if (!proxy_allows(e->policy, q->host, &q->ask->target.addr, q->ask->target.port))
		return PROXY_ANSWER_REFUSED;
	return PROXY_ANSWER_OK;
}

static enum proxy_answer once(struct proxy_edge *e, const struct asked *q, rwy_time now)
{
	enum proxy_answer a = may_connect(e, q);

	if (a != PROXY_ANSWER_OK)
		return a;
	if (!q->ask->source_port)
		return PROXY_ANSWER_UNKNOWN;
	if (proxy_once_add(&e->once, q->host, q->relay, q->ask->source_port, &q->ask->target, now) != 0)
		return PROXY_ANSWER_FULL;
	e->c.once_made++;
	return PROXY_ANSWER_OK;
}

static enum proxy_answer pair(
    struct proxy_edge *e, const struct asked *q, struct proxy_ask *out, rwy_time now)
{
	if (is_loop(e, q))
		return PROXY_ANSWER_LOOP;
	if (!proxy_allows_pair(e->policy, q->host, &q->ask->target.addr))
		return PROXY_ANSWER_REFUSED;
	if (!q->ask->lqpn || !q->ask->rqpn)
		return PROXY_ANSWER_UNKNOWN;
	return proxy_pair_begin(e, q->host, q->relay, q->ask, &out->alias, now);
}

static enum proxy_answer kept(
    struct proxy_edge *e, const struct asked *q, struct proxy_ask *out, rwy_time now)
{
	if (q->ask->kind == PROXY_ASK_ONCE)
		return once(e, q, now);
	if (q->ask->kind == PROXY_ASK_PAIR)
		return pair(e, q, out, now);
	proxy_pair_end(e, q->host, q->relay, q->ask, now);
	return PROXY_ANSWER_OK;
}

static enum proxy_answer decide(
    struct proxy_edge *e, const struct asked *q, struct proxy_ask *out, rwy_time now)
{
	if (q->ask->kind == PROXY_ASK_MAY)
		return may_connect(e, q);
	if (q->ask->kind == PROXY_ASK_ALIVE)
		return PROXY_ANSWER_OK;
	if (q->ask->kind >= PROXY_ASK_COUNT || q->ask->kind == PROXY_ASK_NONE)
		return PROXY_ANSWER_UNKNOWN;
	if (!cookie_is_good(e, q, now))
		return PROXY_ANSWER_COOKIE;
	return kept(e, q, out, now);
}

struct proxy_ask proxy_desk_answer(struct proxy_edge *e, const struct rwy_ip *host,
    const struct rwy_ip *relay, const struct proxy_ask *ask, rwy_time now)
{
	const struct asked q = {host, relay, ask};
	struct proxy_ask out = *ask;

	e->c.asks++;
	out.is_answer = true;
	out.cookie = cookie_of(e, &q, now / EPOCH);
	out.redirect_port = e->policy->redirect_port;
	out.answer = ask->version == PROXY_ASK_VERSION ? decide(e, &q, &out, now) : PROXY_ANSWER_VERSION;
	e->c.asks_refused += out.answer != PROXY_ANSWER_OK && out.answer != PROXY_ANSWER_COOKIE;
	return out;
}

/* --- datagrams -------------------------------------------------------------------------------- */

struct datagram {
	struct rwy_ip src, dst;
	const uint8_t *udp, *said;
	uint32_t hdr, n; /* IP header; what is said, bytes */
};

static uint16_t udp_sum(const uint8_t *ip, uint32_t hdr, const uint8_t *udp, uint32_t n)
{
	unsigned at = hdr == 20 ? 12 : 8;
	uint64_t sum = rwy_csum(ip + at, hdr == 20 ? 8 : 32);

	return rwy_csum_fold(sum + UDP + n + rwy_csum(udp, n));
}

/* IPv4 without options and fragments, or IPv6 without extension headers: what hosts send. */
static bool datagram_read(const uint8_t *ip, uint32_t len, struct datagram *d)
{
	bool is6 = len >= 40 && ip[0] >> 4 == 6;
	uint32_t udp_len;

	d->hdr = is6 ? 40 : 20;
	if (len < d->hdr + UDP_LEN || (!is6 && ip[0] != 0x45) || ip[is6 ? 6 : 9] != UDP)
		return false;
	if (!is6 && (rwy_get16(ip + 6) & 0x3fff))
		return false;
	d->udp = ip + d->hdr;
	udp_len = rwy_get16(d->udp + 4);
	if (udp_len < UDP_LEN || d->hdr + udp_len > len)
		return false;
	if (rwy_get16(d->udp + 6) ? udp_sum(ip, d->hdr, d->udp, udp_len) != 0xffff : is6)
		return false; /* RFC 768: 0 is none; RFC 8200 8.1: not over IPv6 */
	d->said = d->udp + UDP_LEN;
	d->n = udp_len - UDP_LEN;
	if (is6) {
		memcpy(d->src.b, ip + 8, 16);
		memcpy(d->dst.b, ip + 24, 16);
	} else {
		d->src = rwy_ip_from4(ip + 12);
		d->dst = rwy_ip_from4(ip + 16);
	}
	return true;
}

static void datagram_reply(struct proxy_act *act, const uint8_t *ip, const struct datagram *d)
{
	uint32_t n = UDP_LEN + PROXY_ASK_LEN, at = d->hdr == 40 ? 8 : 12, size = d->hdr == 40 ? 16 : 4;
	uint8_t *out = act->reply, *udp = out + d->hdr;
	uint16_t sum;

	memset(out, 0, d->hdr);
	out[0] = ip[0];
	memcpy(out + at, ip + at + size, size);
	memcpy(out + at + size, ip + at, size);
	if (d->hdr == 40) {
		rwy_put16(out + 4, (uint16_t)n);
		out[6] = UDP;
		out[7] = HOP_LIMIT;
	} else {
		rwy_put16(out + 2, (uint16_t)(d->hdr + n));
		rwy_put16(out + 6, 0x4000); /* do not fragment */
		out[8] = HOP_LIMIT;
		out[9] = UDP;
		rwy_put16(out + RWY_IP4_CSUM, (uint16_t)~rwy_csum(out, d->hdr));
	}
	memcpy(udp, d->udp + 2, 2);
	memcpy(udp + 2, d->udp, 2);
	rwy_put16(udp + 4, (uint16_t)n);
	rwy_put16(udp + 6, 0);
	sum = (uint16_t)~udp_sum(out, d->hdr, udp, n);
	rwy_put16(udp + 6, sum ? sum : 0xffff);
	act->reply_len = d->hdr + n;
}

void proxy_desk_packet(
    struct proxy_edge *e, const uint8_t *ip, uint32_t len, struct proxy_act *act, rwy_time now)
{
	struct proxy_ask ask, answer;
	struct datagram d;

	act->reply_len = 0;
	act->link = NULL;
	act->verdict = PROXY_DROP;
	if (!datagram_read(ip, len, &d) || proxy_ask_read(d.said, d.n, &ask) != 0 || ask.is_answer) {
		e->c.drop_relay_ask++;
		return;
	}
	answer = proxy_desk_answer(e, &d.src, &d.dst, &ask, now);
	if (ask.kind == PROXY_ASK_PAIR && answer.answer == PROXY_ANSWER_OK)
		act->link = proxy_map_in(e->map, &d.dst, answer.alias);
	proxy_ask_write(act->reply + d.hdr + UDP_LEN, &answer);
	datagram_reply(act, ip, &d);
}
