/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends of gateway/carrier/quic.h over a link in virtual time: loss, delay, a link that dies, an
 * address that changes, packets of strangers, and certificates with something wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/carrier/quic.h"
#include "tests/lib/cert/cert.h"

#define STREAMS 9
#define DELAY   (10 * RWY_MS)
#define HELD    65536 /* datagrams on the link */
#define TO_END  (60 * RWY_SEC)

enum { A, B, SITES }; /* A opens */

struct held {
	rwy_time at;
	unsigned to;
	uint16_t n;
	uint8_t ecn;
	uint8_t *p;
};

static struct site {
	struct gw_quic_end *end;
	struct gw_quic_conn *conn;
	struct gw_quic_addr addr;
	const char *expects; /* name of the other's certificate */
	bool opened, closed;
	char why[GW_QUIC_WHY];
	uint64_t got[STREAMS], put[STREAMS];
	uint64_t wrong;
} site[SITES];

static struct held held[HELD];
static unsigned head, tail; /* FIFO: the delay is constant */
static rwy_time now;
static unsigned loss_ppm, drop_next;
static bool cut;
static uint64_t seed;
static char dir[64];
static struct gw_quic_cfg cfg;

/* --- the link --------------------------------------------------------------------------------- */
static uint32_t draw(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

static bool output(void *ctx, const struct gw_quic_out *o)
{
	unsigned from = (unsigned)((struct site *)ctx - site);

	for (size_t at = 0; at < o->len; at += o->segment) {
		size_t n = o->len - at < o->segment ? o->len - at : o->segment;
		struct held *h = &held[tail % HELD];

		assert_true(n <= cfg.payload);
		if (cut || draw() % 1000000 < loss_ppm || (drop_next && drop_next--))
			continue;
		assert_true(tail - head < HELD);
		*h = (struct held){.at = now + DELAY, .to = 1 - from, .n = (uint16_t)n, .ecn = o->ecn};
		h->p = malloc(n);
		memcpy(h->p, o->data + at, n);
		tail++;
	}
	return true;
}

static const char *name(void *ctx, const struct gw_quic_addr *remote)
{
	const struct site *s = ctx;

	return remote->ip.b[15] < 100 ? s->expects : NULL;
}

static void opened(void *ctx, struct gw_quic_conn *c, rwy_time t)
{
	struct site *s = ctx;

	(void)t;
	s->opened = true;
	s->conn = c;
}

/* Bytes of a stream are a function of its number and the offset. */
static uint8_t byte_of(unsigned stream, uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) * 7 + stream * 17);
}

static void received(
    void *ctx, struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n, rwy_time t)
{
	struct site *s = ctx;

	(void)t;
	for (size_t i = 0; i < n; i++)
		s->wrong += p[i] != byte_of(stream, s->got[stream]++);
	gw_quic_consumed(c, stream, n);
}

static void closed(void *ctx, struct gw_quic_conn *c, const char *why, rwy_time t)
{
	struct site *s = ctx;

	(void)c, (void)t;
	s->closed = true;
	s->conn = NULL;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static const struct gw_quic_ops ops = {output, name, opened, received, closed};

static void deliver(void)
{
	while (head != tail && held[head % HELD].at <= now) {
		struct held *h = &held[head++ % HELD];

		gw_quic_read(site[h->to].end, &site[1 - h->to].addr, h->p, h->n, h->ecn, now);
		free(h->p);
	}
}

/* Writes as much as there is room for on all streams. */
static void feed(struct site *s, uint64_t each)
{
	uint8_t b[3000];

	for (unsigned k = 0; s->conn && s->opened && k < gw_quic_streams(s->conn); k++)
		while (s->put[k] < each) {
			size_t n = 1 + draw() % sizeof(b);
			struct iovec v[2];

			n = n < each - s->put[k] ? n : (size_t)(each - s->put[k]);
			for (size_t i = 0; i < n; i++)
				b[i] = byte_of(k, s->put[k] + i);
			v[0] = (struct iovec){b, n / 2};
			v[1] = (struct iovec){b + n / 2, n - n / 2};
			if (gw_quic_send(s->conn, k, v, 2) != 0)
				break;
			s->put[k] += n;
		}
}

static bool all_got(uint64_t each)
{
	for (unsigned i = 0; i < SITES; i++)
		for (unsigned k = 0; k < cfg.streams; k++)
			if (site[i].got[k] < each)
				return false;
	return true;
}

static bool both_open(uint64_t unused)
{
	(void)unused;
	return site[A].opened && site[B].opened;
}

static bool a_closed(uint64_t unused)
{
	(void)unused;
	return site[A].closed;
}

static bool both_closed(uint64_t unused)
{
	(void)unused;
	return site[A].closed && site[B].closed;
}

static bool never(uint64_t unused)
{
	(void)unused;
	return false;
}

/* Runs until the condition holds; false: it does not within `limit`. */
static bool run(bool (*until)(uint64_t), uint64_t each, rwy_dur limit)
{
	rwy_time end = now + limit;

	for (;;) {
		rwy_time next = end;

		deliver();
		for (unsigned i = 0; i < SITES; i++) {
			feed(&site[i], each);
			gw_quic_write(site[i].end, now);
			next = rwy_time_min(next, gw_quic_next(site[i].end));
		}
		if (until(each))
			return true;
		if (now >= end)
			return false;
		if (head != tail)
			next = rwy_time_min(next, held[head % HELD].at);
		now = rwy_time_max(next, now + 1000);
	}
}

/* --- set up ----------------------------------------------------------------------------------- */
static struct gw_quic_tls *tls(const char *cert, const char *ca, const char *crl)
{
	char c[128], k[128], a[128], r[128], why[200] = "";
	struct gw_cert_files f = {c, k, a, crl ? r : NULL};
	struct gw_quic_tls *out = NULL;

	snprintf(c, sizeof(c), "%s/%s.pem", dir, cert);
	snprintf(k, sizeof(k), "%s/%s.key", dir, cert);
	snprintf(a, sizeof(a), "%s/%s.pem", dir, ca);
	snprintf(r, sizeof(r), "%s/%s.crl", dir, crl ? crl : "");
	if (gw_quic_tls_new(&out, &f, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	return out;
}

static void end_make(unsigned i, const char *cert, const char *ca, const char *crl)
{
	struct gw_quic_tls *t = tls(cert, ca, crl);
	struct gw_quic_cfg c = cfg;

	c.local = site[i].addr;
	assert_int_equal(gw_quic_end_new(&site[i].end, &c, t, &ops, &site[i]), 0);
	gw_quic_tls_free(t);
}

static void dial(void)
{
	assert_int_equal(
	    gw_quic_connect(site[A].end, &site[B].addr, site[A].expects, &site[A], &site[A].conn, now), 0);
}

/* Both ends with these certificates and CAs. */
static void begin(const char *a, const char *ca_a, const char *b, const char *ca_b)
{
	memset(site, 0, sizeof(site));
	for (unsigned i = 0; i < SITES; i++) {
		site[i].addr = (struct gw_quic_addr){
		    rwy_ip_from4((uint8_t[4]){192, 0, 2, (uint8_t)(1 + i)}), (uint16_t)(4000 + i)};
		site[i].expects = i == A ? "site-b" : "site-a";
	}
	end_make(A, a, ca_a, NULL);
	end_make(B, b, ca_b, NULL);
	dial();
}

static int set_up(void **state)
{
	(void)state;
	gw_quic_cfg_default(&cfg);
	cfg.streams = STREAMS;
	cfg.window = 4u << 20;
	now = 1000 * RWY_SEC;
	seed = 7;
	loss_ppm = drop_next = 0;
	cut = false;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SITES; i++) {
		gw_quic_end_free(site[i].end);
		site[i].end = NULL;
	}
	for (; head != tail; head++)
		free(held[head % HELD].p);
	return 0;
}

/* --- data ------------------------------------------------------------------------------------- */
static void move(uint64_t each)
{
	begin("a", "ca", "b", "ca");
	assert_true(run(all_got, each, TO_END));
	for (unsigned i = 0; i < SITES; i++) {
		assert_int_equal(site[i].wrong, 0);
		for (unsigned k = 0; k < cfg.streams; k++)
			assert_int_equal(site[i].got[k], each);
	}
}

static void test_clean(void **state)
{
	struct gw_quic_info i;

	(void)state;
	move(500000);
	gw_quic_info(site[A].conn, &i);
	assert_in_range(i.min_rtt, 2 * DELAY, 3 * DELAY);
	assert_true(i.srtt >= i.min_rtt && i.window > 0);
}

/* The share that an end says it lost. */
static unsigned said_lost_ppm(unsigned i)
{
	struct gw_quic_info q;

	gw_quic_info(site[i].conn, &q);
	assert_true(q.pieces > 1000);
	return (unsigned)(q.lost * 1000000 / q.pieces);
}

static void test_loss(void **state)
{
	(void)state;
	move(300000);
	assert_int_equal(said_lost_ppm(A), 0);
	tear_down(NULL);
	loss_ppm = 20000;
	move(300000);
	for (unsigned i = 0; i < SITES; i++)
		assert_in_range(said_lost_ppm(i), loss_ppm * 7 / 10, loss_ppm * 13 / 10);
	cfg.cc = GW_QUIC_CUBIC;
	tear_down(NULL);
	move(100000);
}

static void test_jumbo(void **state)
{
	(void)state;
	cfg.payload = 8900;
	move(300000);
	/* Fewer datagrams than small ones would need. */
	assert_true(gw_quic_end_counters(site[A].end)->tx_datagrams < 9u * 300000 / 1452);
}

/* What one stream lost does not hold up another. */
static void test_streams(void **state)
{
	uint8_t b[1000];
	struct iovec v = {b, sizeof(b)};

	(void)state;
	begin("a", "ca", "b", "ca");
	assert_true(run(both_open, 0, TO_END));
	(void)run(never, 0, RWY_SEC);
	for (unsigned k = 1; k <= 2; k++) {
		for (size_t i = 0; i < sizeof(b); i++)
			b[i] = byte_of(k, i);
		drop_next = k == 1;
		assert_int_equal(gw_quic_send(site[A].conn, k, &v, 1), 0);
		gw_quic_write(site[A].end, now);
		now += RWY_MS;
	}
	(void)run(never, 0, DELAY);
	assert_int_equal(site[B].got[1], 0);
	assert_int_equal(site[B].got[2], sizeof(b));
	(void)run(never, 0, RWY_SEC);
	assert_int_equal(site[B].got[1], sizeof(b));
	assert_int_equal(site[B].wrong, 0);
}

/* Memory is bounded: nobody may have more under way than the window. */
static void test_window(void **state)
{
	struct gw_quic_info i;
	uint64_t sum = 0;

	(void)state;
	cfg.window = 100000;
	begin("a", "ca", "b", "ca");
	assert_true(run(both_open, 0, TO_END));
	cut = true;
	(void)run(never, 1u << 20, RWY_SEC);
	gw_quic_info(site[A].conn, &i);
	assert_in_range(i.unacked, 90000, 100000);
	for (unsigned k = 0; k < cfg.streams; k++)
		sum += site[A].put[k];
	assert_in_range(sum, 90000, 100000);
	cut = false;
	assert_true(run(all_got, 200000, TO_END));
}

/* --- ends of connections ----------------------------------------------------------------------- */
static void test_silent(void **state)
{
	rwy_time since;

	(void)state;
	begin("a", "ca", "b", "ca");
	assert_true(run(both_open, 0, TO_END));
	assert_false(run(a_closed, 0, 30 * RWY_SEC)); /* idle, but both are there */
	cut = true;
	since = now;
	assert_true(run(a_closed, 0, TO_END));
	assert_string_equal(site[A].why, "the peer is silent");
	assert_in_range(now - since, 3 * RWY_SEC, 7 * RWY_SEC);
	assert_int_equal(gw_quic_end_counters(site[A].end)->lost, 1);
	assert_int_equal(gw_quic_next(site[A].end), RWY_NEVER);
}

static void test_close(void **state)
{
	(void)state;
	begin("a", "ca", "b", "ca");
	assert_true(run(both_open, 0, TO_END));
	gw_quic_close(site[B].conn, "the tunnel is removed");
	site[B].conn = NULL;
	assert_true(run(a_closed, 0, RWY_SEC));
	assert_string_equal(site[A].why, "the peer closed the connection: the tunnel is removed");
	assert_false(site[B].closed);
}

/* B begins anew without its connections: A learns it at once, not after the idle time. */
static void test_restart(void **state)
{
	rwy_time since;

	(void)state;
	begin("a", "ca", "b", "ca");
	assert_true(run(both_open, 0, TO_END));
	(void)run(never, 0, RWY_SEC);
	gw_quic_end_free(site[B].end);
	site[B].conn = NULL;
	end_make(B, "b", "ca", NULL);
	since = now;
	feed(&site[A], 10000);
	assert_true(run(a_closed, 10000, TO_END));
	assert_string_equal(site[A].why, "the peer does not know the connection any more");
	assert_true(now - since < RWY_SEC);
	assert_int_equal(gw_quic_end_counters(site[B].end)->tx_resets, 1);
}

static void test_migration(void **state)
{
	(void)state;
	begin("a", "ca", "b", "ca");
	assert_true(run(all_got, 20000, TO_END));
	site[A].addr.port = 5555; /* a translator on the path forgot it */
	site[A].addr.ip.b[15] = 77;
	assert_true(run(all_got, 100000, TO_END));
	assert_int_equal(gw_quic_end_counters(site[B].end)->migrated, 1);
	assert_int_equal(gw_quic_remote(site[B].conn).port, 5555);
	assert_int_equal(site[B].wrong, 0);
	assert_false(site[A].closed || site[B].closed);
}

/* --- strangers -------------------------------------------------------------------------------- */
static void junk(const struct gw_quic_addr *from, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1); /* exact size: the sanitizer sees a read beyond it */

	memcpy(copy, p, n);
	gw_quic_read(site[B].end, from, copy, n, 0, now);
	free(copy);
}

static void test_junk(void **state)
{
	const struct gw_quic_counters *c;
	uint8_t b[1500];

	(void)state;
	begin("a", "ca", "b", "ca");
	assert_true(run(all_got, 20000, TO_END));
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = draw() % sizeof(b);

		for (size_t k = 0; k < n; k++)
			b[k] = (uint8_t)draw();
		junk(&site[A].addr, b, n);
	}
	/* Real ones, damaged or cut. */
	feed(&site[A], 40000);
	gw_quic_write(site[A].end, now);
	for (unsigned i = head; i != tail; i++) {
		struct held *h = &held[i % HELD];

		if (h->to != B)
			continue;
		for (unsigned k = 0; k < 200; k++) {
			memcpy(b, h->p, h->n);
			b[draw() % h->n] ^= (uint8_t)(1 + draw() % 255);
			junk(&site[A].addr, b, k % 2 ? h->n : draw() % h->n);
		}
	}
	assert_true(run(all_got, 60000, TO_END));
	assert_int_equal(site[B].wrong, 0);
	assert_false(site[A].closed || site[B].closed);
	c = gw_quic_end_counters(site[B].end);
	assert_true(c->drop_malformed > 0 && c->drop_unknown + c->tx_resets + c->tx_versions > 0);
}

#define FLOOD 10000

/* First packets of peers that never go on: a few are kept, the rest costs no memory, and the real
 * peer still gets in. */
static void test_flood(void **state)
{
	const struct gw_quic_counters *c;
	unsigned sent = 0;

	(void)state;
	begin("a", "ca", "b", "ca");
	c = gw_quic_end_counters(site[B].end);
	for (unsigned i = 0; i < FLOOD; i++) {
		struct gw_quic_addr from = site[A].addr;

		from.port = (uint16_t)(1000 + i);
		from.ip.b[15] = i % 10 ? 1 : 200; /* 200: nobody's */
		gw_quic_end_free(site[A].end);
		end_make(A, "a", "ca", NULL);
		dial();
		gw_quic_write(site[A].end, now);
		for (; head != tail; head++) {
			struct held *h = &held[head % HELD];

			if (h->to == B) {
				sent++;
				junk(&from, h->p, h->n);
			}
			free(h->p);
		}
	}
	assert_int_equal(c->rx_datagrams, sent);
	assert_true(c->drop_stranger >= FLOOD / 10 && c->tx_retries >= FLOOD * 8 / 10);
	assert_true(sent - c->drop_stranger - c->tx_retries <= 2 * cfg.half_retry);
	assert_true(run(both_open, 0, TO_END));
	/* Those that did not go on are forgotten. */
	(void)run(never, 0, 2 * cfg.handshake);
	assert_int_equal(c->handshake_failed, cfg.half_retry);
}

/* A peer at its own address that begins again and again: each handshake costs a signature, so only
 * so many are begun; later it is welcome again. Another address is not concerned. */
static void test_rate(void **state)
{
	unsigned opened_n = 0;

	(void)state;
	cfg.each = 20 * RWY_SEC;
	cfg.burst = 5;
	begin("a", "ca", "b", "ca");
	for (unsigned i = 0; i < 20; i++) {
		opened_n += run(both_open, 0, RWY_SEC);
		gw_quic_end_free(site[A].end);
		site[A].opened = site[B].opened = false;
		site[A].addr.port++;
		end_make(A, "a", "ca", NULL);
		dial();
	}
	assert_in_range(opened_n, 5, 7);
	assert_true(gw_quic_end_counters(site[B].end)->drop_rate >= 13);
	assert_int_equal(gw_quic_end_counters(site[B].end)->opened, opened_n);
	gw_quic_end_free(site[A].end);
	site[A].addr.ip.b[15] = 9;
	end_make(A, "a", "ca", NULL);
	dial();
	assert_true(run(both_open, 0, RWY_SEC));
	gw_quic_end_free(site[A].end);
	site[A].opened = site[B].opened = false;
	site[A].addr.ip.b[15] = 1;
	end_make(A, "a", "ca", NULL);
	(void)run(never, 0, 21 * RWY_SEC);
	dial();
	assert_true(run(both_open, 0, RWY_SEC));
}

static void test_versions(void **state)
{
	uint8_t b[1200] = {0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9};
	const struct held *h;

	(void)state;
	begin("a", "ca", "b", "ca");
	junk(&site[A].addr, b, sizeof(b));
	assert_int_equal(gw_quic_end_counters(site[B].end)->tx_versions, 1);
	h = &held[(tail - 1) % HELD];
	/* RFC 9000, 17.2.1: version 0, the ids exchanged, ours is version 1 */
	assert_memory_equal(h->p + 1, "\0\0\0\0\4\11\11\11\11\10\1\2\3\4\5\6\7\10\0\0\0\1", 22);
	junk(&site[A].addr, b, 1199); /* too short to be answered (RFC 9000, 6) */
	assert_int_equal(gw_quic_end_counters(site[B].end)->tx_versions, 1);
	assert_true(run(both_open, 0, TO_END));
}

static void test_retry(void **state)
{
	(void)state;
	cfg.half_retry = 0; /* always */
	move(20000);
	assert_true(gw_quic_end_counters(site[B].end)->tx_retries >= 1);
	assert_int_equal(gw_quic_end_counters(site[B].end)->drop_token, 0);
}

/* --- certificates ----------------------------------------------------------------------------- */
static bool no_certificate; /* the next credentials get none */

int __wrap_gnutls_certificate_set_x509_key_file(
    gnutls_certificate_credentials_t c, const char *cert, const char *key, gnutls_x509_crt_fmt_t f);
int __real_gnutls_certificate_set_x509_key_file(
    gnutls_certificate_credentials_t c, const char *cert, const char *key, gnutls_x509_crt_fmt_t f);
int __wrap_gnutls_certificate_set_x509_key_file(
    gnutls_certificate_credentials_t c, const char *cert, const char *key, gnutls_x509_crt_fmt_t f)
{
	if (no_certificate) {
		no_certificate = false;
		return 0;
	}
	return __real_gnutls_certificate_set_x509_key_file(c, cert, key, f);
}

/* Neither end opens; who says why, and in which words. */
static void check_refused(unsigned by, const char *says)
{
	assert_true(run(both_closed, 0, TO_END));
	assert_false(site[A].opened || site[B].opened);
	if (!strstr(site[by].why, says))
		fail_msg("`%s`, not `%s`; the other `%s`", site[by].why, says, site[1 - by].why);
	if (!strstr(site[1 - by].why, "the peer refused the handshake: "))
		fail_msg("`%s` after `%s`", site[1 - by].why, site[by].why);
	assert_int_equal(gw_quic_end_counters(site[by].end)->refused_certificate, 1);
	assert_int_equal(gw_quic_end_counters(site[1 - by].end)->refused_certificate, 0);
	tear_down(NULL);
}

static void test_certificates(void **state)
{
	(void)state;
	begin("a", "ca", "c", "ca");
	check_refused(A, "the peer's certificate is not for the name `site-b`");
	begin("c", "ca", "b", "ca");
	check_refused(B, "the peer's certificate is not for the name `site-a`");
	begin("a", "ca", "foreign", "ca");
	check_refused(A, "The certificate issuer is unknown");
	begin("foreign", "ca", "b", "ca");
	check_refused(B, "The certificate issuer is unknown");
	begin("a", "ca", "old", "ca");
	check_refused(A, "expired");
	begin("old-a", "ca", "b", "ca");
	check_refused(B, "expired");
	begin("server", "ca", "b", "ca");
	check_refused(B, "purpose");
	begin("a", "ca", "b", "ca");
	gw_quic_end_free(site[B].end);
	end_make(B, "revoked", "ca", NULL);
	gw_quic_end_free(site[A].end);
	end_make(A, "a", "ca", "list");
	dial();
	check_refused(A, "revoked");
}

static void test_no_certificate(void **state)
{
	(void)state;
	no_certificate = true;
	begin("a", "ca", "b", "ca");
	check_refused(B, "the peer has no certificate");
}

static void test_files(void **state)
{
	char c[128], k[128], a[128], why[200] = "";
	struct gw_cert_files f = {c, k, a, NULL};
	struct gw_quic_tls *t = NULL;

	(void)state;
	snprintf(c, sizeof(c), "%s/a.pem", dir);
	snprintf(k, sizeof(k), "%s/b.key", dir);
	snprintf(a, sizeof(a), "%s/ca.pem", dir);
	assert_int_equal(gw_quic_tls_new(&t, &f, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "b.key"));
	snprintf(a, sizeof(a), "%s/nosuch.pem", dir);
	assert_int_equal(gw_quic_tls_new(&t, &f, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "nosuch.pem"));
	snprintf(a, sizeof(a), "%s/a.key", dir); /* no certificate in it */
	assert_int_equal(gw_quic_tls_new(&t, &f, why, sizeof(why)), RWY_EINVAL);
	assert_null(t);
}

/* --- program ---------------------------------------------------------------------------------- */
static void certificates_make(void)
{
	static const struct cert_spec good[] = {{.file = "a", .name = "site-a"},
	    {.file = "b", .name = "site-b"}, {.file = "c", .name = "site-c"},
	    {.file = "old", .name = "site-b", .expired = true},
	    {.file = "old-a", .name = "site-a", .expired = true},
	    {.file = "server", .name = "site-a", .server_only = true}, {.file = "revoked", .name = "site-b"}};
	struct cert_ca *ca, *other;

	snprintf(dir, sizeof(dir), "/tmp/rwy-quic-XXXXXX");
	if (!mkdtemp(dir))
		exit(1);
	ca = cert_ca_new(dir, "ca");
	other = cert_ca_new(dir, "other");
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cert_make(ca, &good[i]);
	cert_revoke_last(ca, "list");
	cert_make(other, &(struct cert_spec){.file = "foreign", .name = "site-b"});
	cert_ca_free(ca);
	cert_ca_free(other);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {TEST(test_clean), TEST(test_loss), TEST(test_jumbo),
	    TEST(test_streams), TEST(test_window), TEST(test_silent), TEST(test_close), TEST(test_restart),
	    TEST(test_migration), TEST(test_junk), TEST(test_flood), TEST(test_rate), TEST(test_versions),
	    TEST(test_retry), TEST(test_certificates), TEST(test_no_certificate), TEST(test_files)};
	char cmd[100];
	int rc;

	certificates_make();
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd) || rc;
}
