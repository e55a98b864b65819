/* SPDX-License-Identifier: Apache-2.0 */
/* The lab of the QUIC carrier's tests: the link, the ends, their certificates. It has no test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/cert/cert.h"
#include "tests/lib/quic/lab.h"

struct quic_lab ql;

/* --- the link --------------------------------------------------------------------------------- */
uint32_t ql_draw(void)
{
	ql.seed = ql.seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(ql.seed >> 33);
}

static bool output(void *ctx, const struct gw_quic_out *o)
{
	unsigned from = (unsigned)((struct ql_site *)ctx - ql.site);

	for (size_t at = 0; at < o->len; at += o->segment) {
		size_t n = o->len - at < o->segment ? o->len - at : o->segment;
		struct ql_held *h = &ql.held[ql.tail % QL_HELD];

		assert_true(n <= ql.cfg.payload);
		if (ql.cut || ql_draw() % 1000000 < ql.loss_ppm || (ql.drop_next && ql.drop_next--))
			continue;
		assert_true(ql.tail - ql.head < QL_HELD);
		*h = (struct ql_held){
		    .at = ql.now + QL_DELAY, .to = 1 - from, .n = (uint16_t)n, .ecn = o->ecn};
		h->p = malloc(n);
		memcpy(h->p, o->data + at, n);
		ql.tail++;
	}
	return true;
}

static const char *name(void *ctx, const struct gw_quic_addr *remote)
{
	const struct ql_site *s = ctx;

	return remote->ip.b[15] < 100 ? s->expects : NULL;
}

static void opened(void *ctx, struct gw_quic_conn *c, rwy_time t)
{
	struct ql_site *s = ctx;

	(void)t;
	s->opened = true;
	s->conn = c;
}

uint8_t ql_byte(unsigned stream, uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) * 7 + stream * 17);
}

static void received(
    void *ctx, struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n, rwy_time t)
{
	struct ql_site *s = ctx;

	(void)t;
	for (size_t i = 0; i < n; i++)
		s->wrong += p[i] != ql_byte(stream, s->got[stream]++);
	gw_quic_consumed(c, stream, n);
}

static void closed(void *ctx, struct gw_quic_conn *c, const char *why, rwy_time t)
{
	struct ql_site *s = ctx;

	(void)c, (void)t;
	s->closed = true;
	s->conn = NULL;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static const struct gw_quic_ops ops = {output, name, opened, received, closed};

static void deliver(void)
{
	while (ql.head != ql.tail && ql.held[ql.head % QL_HELD].at <= ql.now) {
		struct ql_held *h = &ql.held[ql.head++ % QL_HELD];

		gw_quic_read(ql.site[h->to].end, &ql.site[1 - h->to].addr, h->p, h->n, h->ecn, ql.now);
		free(h->p);
	}
}

void ql_feed(struct ql_site *s, uint64_t each)
{
	uint8_t b[3000];

	for (unsigned k = 0; s->conn && s->opened && k < gw_quic_streams(s->conn); k++)
		while (s->put[k] < each) {
			size_t n = 1 + ql_draw() % sizeof(b);
			struct iovec v[2];

			n = n < each - s->put[k] ? n : (size_t)(each - s->put[k]);
			for (size_t i = 0; i < n; i++)
				b[i] = ql_byte(k, s->put[k] + i);
			v[0] = (struct iovec){b, n / 2};
			v[1] = (struct iovec){b + n / 2, n - n / 2};
			if (gw_quic_send(s->conn, k, v, 2) != 0)
				break;
			s->put[k] += n;
		}
}

bool ql_all_got(uint64_t each)
{
	for (unsigned i = 0; i < QL_SITES; i++)
		for (unsigned k = 0; k < ql.cfg.streams; k++)
			if (ql.site[i].got[k] < each)
				return false;
	return true;
}

bool ql_both_open(uint64_t unused)
{
	(void)unused;
	return ql.site[QL_A].opened && ql.site[QL_B].opened;
}

bool ql_never(uint64_t unused)
{
	(void)unused;
	return false;
}

bool ql_run(bool (*until)(uint64_t), uint64_t each, rwy_dur limit)
{
	rwy_time end = ql.now + limit;

	for (;;) {
		rwy_time next = end;

		deliver();
		for (unsigned i = 0; i < QL_SITES; i++) {
			ql_feed(&ql.site[i], each);
			gw_quic_write(ql.site[i].end, ql.now);
			next = rwy_time_min(next, gw_quic_next(ql.site[i].end));
		}
		if (until(each))
			return true;
		if (ql.now >= end)
			return false;
		if (ql.head != ql.tail)
			next = rwy_time_min(next, ql.held[ql.head % QL_HELD].at);
		ql.now = rwy_time_max(next, ql.now + 1000);
	}
}

/* --- set up ----------------------------------------------------------------------------------- */
static struct gw_quic_tls *tls(const char *cert, const char *ca, const char *crl)
{
	char c[128], k[128], a[128], r[128], why[200] = "";
	struct gw_cert_files f = {c, k, a, crl ? r : NULL};
	struct gw_quic_tls *out = NULL;

	snprintf(c, sizeof(c), "%s/%s.pem", ql.dir, cert);
	snprintf(k, sizeof(k), "%s/%s.key", ql.dir, cert);
	snprintf(a, sizeof(a), "%s/%s.pem", ql.dir, ca);
	snprintf(r, sizeof(r), "%s/%s.crl", ql.dir, crl ? crl : "");
	if (gw_quic_tls_new(&out, &f, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	return out;
}

void ql_end_make(unsigned i, const char *cert, const char *ca, const char *crl)
{
	struct gw_quic_tls *t = tls(cert, ca, crl);
	struct gw_quic_cfg c = ql.cfg;

	c.local = ql.site[i].addr;
	assert_int_equal(gw_quic_end_new(&ql.site[i].end, &c, t, &ops, &ql.site[i]), 0);
	gw_quic_tls_free(t);
}

void ql_dial(void)
{
	struct ql_site *a = &ql.site[QL_A];

	assert_int_equal(gw_quic_connect(a->end, &ql.site[QL_B].addr, a->expects, a, &a->conn, ql.now), 0);
}

void ql_begin(const char *a, const char *ca_a, const char *b, const char *ca_b)
{
	memset(ql.site, 0, sizeof(ql.site));
	for (unsigned i = 0; i < QL_SITES; i++) {
		ql.site[i].addr = (struct gw_quic_addr){
		    rwy_ip_from4((uint8_t[4]){192, 0, 2, (uint8_t)(1 + i)}), (uint16_t)(4000 + i)};
		ql.site[i].expects = i == QL_A ? "site-b" : "site-a";
	}
	ql_end_make(QL_A, a, ca_a, NULL);
	ql_end_make(QL_B, b, ca_b, NULL);
	ql_dial();
}

int ql_set_up(void **state)
{
	(void)state;
	gw_quic_cfg_default(&ql.cfg);
	ql.cfg.streams = QL_STREAMS;
	ql.cfg.window = 4u << 20;
	ql.now = 1000 * RWY_SEC;
	ql.seed = 7;
	ql.loss_ppm = ql.drop_next = 0;
	ql.cut = false;
	return 0;
}

int ql_tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < QL_SITES; i++) {
		gw_quic_end_free(ql.site[i].end);
		ql.site[i].end = NULL;
	}
	for (; ql.head != ql.tail; ql.head++)
		free(ql.held[ql.head % QL_HELD].p);
	return 0;
}

void ql_move(uint64_t each)
{
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_all_got, each, QL_TO_END));
	for (unsigned i = 0; i < QL_SITES; i++) {
		assert_int_equal(ql.site[i].wrong, 0);
		for (unsigned k = 0; k < ql.cfg.streams; k++)
			assert_int_equal(ql.site[i].got[k], each);
	}
}

/* --- program ---------------------------------------------------------------------------------- */
int ql_main(void (*certificates)(struct cert_ca *ca), int (*tests)(void))
{
	struct cert_ca *ca;
	char cmd[100];
	int rc;

	snprintf(ql.dir, sizeof(ql.dir), "/tmp/rwy-quic-XXXXXX");
	if (!mkdtemp(ql.dir))
		exit(1);
	ca = cert_ca_new(ql.dir, "ca");
	cert_make(ca, &(struct cert_spec){.file = "a", .name = "site-a"});
	cert_make(ca, &(struct cert_spec){.file = "b", .name = "site-b"});
	if (certificates)
		certificates(ca);
	cert_ca_free(ca);
	rc = tests();
	snprintf(cmd, sizeof(cmd), "rm -r %s", ql.dir);
	return system(cmd) || rc;
}
