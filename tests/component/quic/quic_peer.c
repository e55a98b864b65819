/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An end of our QUIC carrier (gateway/carrier/quic.h) on a UDP socket, without a gateway, for
 * tests/component/quic_interop.py: it shakes hands with programs of others, counts what they send, and
 * says what happened, a line an event. It does not know what the bytes mean, and speaks the ALPN of
 * those programs: gnutls_alpn_set_protocols is wrapped. With records=N it is our own ALPN, and it
 * sends and checks N datagrams as gateways do (records.h).
 *
 *   quic_peer serve|connect DIR CERTIFICATE NAME PORT [retry|records=N]
 *
 * DIR has ca.pem, CERTIFICATE.pem and CERTIFICATE.key; NAME: the DNS name of the peer. `retry`: every
 * client must prove its address. It ends when standard input ends, and says its counters.
 */
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"
#include "tests/component/quic/records.h"

#define ALPN "h3"

static struct {
	int fd;
	const char *name;
	uint64_t received;
	uint32_t records; /* 0: the bytes mean nothing */
	bool serve;
} peer;

int __wrap_gnutls_alpn_set_protocols(gnutls_session_t s, const gnutls_datum_t *p, unsigned n, unsigned flags);
int __real_gnutls_alpn_set_protocols(gnutls_session_t s, const gnutls_datum_t *p, unsigned n, unsigned flags);
int __wrap_gnutls_alpn_set_protocols(gnutls_session_t s, const gnutls_datum_t *p, unsigned n, unsigned flags)
{
	static const gnutls_datum_t h3 = {(unsigned char *)(uintptr_t)ALPN, sizeof(ALPN) - 1};

	if (peer.records)
		return __real_gnutls_alpn_set_protocols(s, p, n, flags);
	return __real_gnutls_alpn_set_protocols(s, &h3, n, flags);
}

static rwy_time clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (rwy_time)t.tv_sec * RWY_SEC + (rwy_time)t.tv_nsec;
}

static bool output(void *ctx, const struct gw_quic_out *o)
{
	(void)ctx;
	return gw_quic_sock_send(peer.fd, o);
}

static const char *name(void *ctx, const struct gw_quic_addr *remote)
{
	(void)ctx, (void)remote;
	return peer.name;
}

static void opened(void *ctx, struct gw_quic_conn *c, rwy_time now)
{
	(void)ctx, (void)now;
	if (peer.records)
		records_begin(c, !peer.serve, peer.records);
	printf("opened streams=%u\n", gw_quic_streams(c));
}

static void received(
    void *ctx, struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n, rwy_time now)
{
	(void)ctx, (void)now;
	if (peer.records && !records_take(c, stream, p, n))
		exit(1);
	if (!peer.received)
		printf("receives stream=%u\n", stream);
	peer.received += n;
	gw_quic_consumed(c, stream, n);
}

static void closed(void *ctx, struct gw_quic_conn *c, const char *why, rwy_time now)
{
	(void)ctx, (void)c, (void)now;
	printf("closed %s\n", why);
}

static const struct gw_quic_ops ops = {output, name, opened, received, closed};

static struct gw_quic_end *end_new(const char *dir, const char *cert, const struct gw_quic_cfg *cfg)
{
	char c[256], k[256], a[256], why[GW_CERT_WHY];
	struct gw_quic_end *e = NULL;
	struct gw_quic_tls *tls = NULL;

	snprintf(c, sizeof(c), "%s/%s.pem", dir, cert);
	snprintf(k, sizeof(k), "%s/%s.key", dir, cert);
	snprintf(a, sizeof(a), "%s/ca.pem", dir);
	if (gw_quic_tls_new(&tls, &(struct gw_cert_files){c, k, a, NULL}, why, sizeof(why)) != 0) {
		fprintf(stderr, "quic_peer: %s\n", why);
		exit(2);
	}
	if (gw_quic_end_new(&e, cfg, tls, &ops, NULL) != 0)
		exit(2);
	gw_quic_tls_free(tls);
	return e;
}

/* Goes on until standard input ends. */
static void run(struct gw_quic_end *e)
{
	bool more = true;

	while (more) {
		struct pollfd p[2] = {{.fd = peer.fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
		rwy_time now = clock_now(), next;
		char byte;

		if (peer.records)
			records_turn();
		gw_quic_write(e, now);
		next = gw_quic_next(e);
		poll(p, 2, next <= now ? 0 : next - now > RWY_SEC ? 1000 : (int)((next - now) / RWY_MS) + 1);
		if (p[0].revents)
			gw_quic_sock_read(peer.fd, e, clock_now());
		more = !p[1].revents || read(0, &byte, 1) > 0;
	}
}

int main(int argc, char **argv)
{
	const struct rwy_ip local = rwy_ip_from4((const uint8_t[4]){127, 0, 0, 1});
	struct gw_quic_cfg cfg;
	struct gw_quic_conn *c;
	struct gw_quic_end *e;
	const struct gw_quic_counters *n;

	if (argc < 6)
		return 2;
	peer.serve = !strcmp(argv[1], "serve");
	peer.name = argv[4];
	gw_quic_cfg_default(&cfg);
	cfg.local = (struct gw_quic_addr){local, (uint16_t)(peer.serve ? atoi(argv[5]) : 0)};
	cfg.idle = 10 * RWY_SEC;
	if (argc > 6 && !strncmp(argv[6], "records=", 8))
		peer.records = (uint32_t)atoi(argv[6] + 8);
	else if (argc > 6)
		cfg.half_retry = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	peer.fd = gw_quic_sock_new(&cfg.local, 0);
	if (peer.fd < 0) {
		perror("quic_peer: socket");
		return 2;
	}
	e = end_new(argv[2], argv[3], &cfg);
	if (!peer.serve) {
		struct gw_quic_addr to = {local, (uint16_t)atoi(argv[5])};

		if (gw_quic_connect(e, &to, peer.name, NULL, &c, clock_now()) != 0)
			return 2;
	}
	printf("ready\n");
	run(e);
	n = gw_quic_end_counters(e);
	printf("received=%" PRIu64, peer.received);
#define X(f, s) printf(" %s=%" PRIu64, #f, n->f);
	GW_QUIC_COUNTERS(X)
#undef X
	printf("\n");
	gw_quic_end_free(e);
	return 0;
}
