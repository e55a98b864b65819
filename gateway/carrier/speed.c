/* SPDX-License-Identifier: Apache-2.0 */
/* Measures QUIC: see speed.h. Encryption, ngtcp2 and the kernel's sockets are in it. */
#include <errno.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"
#include "gateway/carrier/speed.h"

#define VOLUME (16u << 20) /* bytes sent */
#define FIRST  (4u << 20)  /* of them, while congestion control begins: they do not count */
#define LEAST  (64u << 10) /* that must count */
#define PIECE  4160        /* a host's packet of 4 KiB with its headers */
#define LIMIT  (2 * RWY_SEC)

enum { A, B, ENDS }; /* A opens and sends */

struct speed_end {
	struct speed *all;
	int fd;
	struct gw_quic_addr addr;
	struct gw_quic_end *end;
	uint64_t cpu; /* ns of this thread */
};

struct speed {
	struct speed_end end[ENDS];
	struct gw_quic_conn *conn; /* A's, when it is open */
	char name[GW_QUIC_NAME];   /* that of our own certificate */
	const char *dead;
	char why[GW_QUIC_WHY];
	uint64_t sent, got;
	unsigned turn;
};

/* --- what the ends ask ------------------------------------------------------------------------ */
static bool output(void *ctx, const struct gw_quic_out *out)
{
	const struct speed_end *e = ctx;

	return gw_quic_sock_send(e->fd, out);
}

static const char *name(void *ctx, const struct gw_quic_addr *remote)
{
	struct speed *s = ((struct speed_end *)ctx)->all;
	const struct gw_quic_addr *a = &s->end[A].addr;

	return rwy_ip_eq(&remote->ip, &a->ip) && remote->port == a->port ? s->name : NULL;
}

static void opened(void *ctx, struct gw_quic_conn *c, rwy_time now)
{
	struct speed_end *e = ctx;

	(void)now;
	if (e == &e->all->end[A])
		e->all->conn = c;
}

static void received(
    void *ctx, struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n, rwy_time now)
{
	(void)p, (void)now;
	((struct speed_end *)ctx)->all->got += n;
	gw_quic_consumed(c, stream, n);
}

static void closed(void *ctx, struct gw_quic_conn *c, const char *why, rwy_time now)
{
	struct speed *s = ((struct speed_end *)ctx)->all;

	(void)c, (void)now;
	if (s->dead)
		return; /* the other end is told what this one has found */
	snprintf(s->why, sizeof(s->why), "%s", why);
	s->dead = s->why;
}

static const struct gw_quic_ops ops = {output, name, opened, received, closed};

/* --- the run ---------------------------------------------------------------------------------- */
static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * RWY_SEC + (uint64_t)t.tv_nsec;
}

/* Streams in turn, as many flows have it. */
static void feed(struct speed *s)
{
	static const uint8_t bytes[PIECE];
	const struct iovec v = {(void *)(uintptr_t)bytes, sizeof(bytes)};

	while (s->conn && s->sent < VOLUME && gw_quic_room(s->conn) >= PIECE) {
		if (gw_quic_send(s->conn, s->turn++ % gw_quic_streams(s->conn), &v, 1) != 0)
			return;
		s->sent += PIECE;
	}
}

static void end_turn(struct speed *s, unsigned i)
{
	const uint64_t began = cpu_now();
	struct speed_end *e = &s->end[i];

	gw_quic_sock_read(e->fd, e->end, gw_now());
	if (i == A)
		feed(s);
	gw_quic_write(e->end, gw_now());
	e->cpu += cpu_now() - began;
}

/* Sleeps until something is to be done, 1 ms at most. */
static void wait_some(struct speed *s)
{
	struct pollfd p[ENDS] = {{s->end[A].fd, POLLIN, 0}, {s->end[B].fd, POLLIN, 0}};
	const rwy_time now = gw_now(),
	               next = rwy_time_min(gw_quic_next(s->end[A].end), gw_quic_next(s->end[B].end));
	const rwy_dur most = next <= now ? 0 : next - now < RWY_MS ? next - now : RWY_MS;
	const struct timespec t = {0, (long)most};

	(void)!ppoll(p, ENDS, &t, NULL);
}

static uint64_t run(struct speed *s)
{
	const rwy_time begin = gw_now();
	uint64_t most = 0, from = 0;
	bool counts = false;

	while (!s->dead && s->got < VOLUME && gw_now() - begin < LIMIT) {
		for (unsigned i = 0; i < ENDS; i++)
			end_turn(s, i);
		if (!counts && s->got && (s->got >= FIRST || gw_now() - begin > LIMIT / 2)) {
			counts = true;
			from = s->got;
			s->end[A].cpu = s->end[B].cpu = 0;
		}
		wait_some(s);
	}
	if (!s->dead && (!counts || s->got - from < LEAST))
		s->dead = "it took too long";
	for (unsigned i = 0; i < ENDS; i++)
		if (s->end[i].cpu > most)
			most = s->end[i].cpu;
	return s->dead || !most ? 0 : (uint64_t)((unsigned __int128)(s->got - from) * RWY_SEC / most);
}

/* --- set-up ----------------------------------------------------------------------------------- */
/* The first DNS name of our own certificate. */
static bool own_name(const struct gw_quic_tls *tls, char out[GW_QUIC_NAME])
{
	gnutls_datum_t der;
	gnutls_x509_crt_t crt;
	size_t n;
	int kind = 0;
	bool ok = false;

	if (gnutls_certificate_get_crt_raw(gw_cert_credentials(gw_quic_tls_cert(tls)), 0, 0, &der) != 0 ||
	    gnutls_x509_crt_init(&crt) != 0)
		return false;
	if (gnutls_x509_crt_import(crt, &der, GNUTLS_X509_FMT_DER) == 0)
		for (unsigned i = 0; !ok && kind >= 0; i++) {
			n = GW_QUIC_NAME;
			kind = gnutls_x509_crt_get_subject_alt_name(crt, i, out, &n, NULL);
			ok = kind == GNUTLS_SAN_DNSNAME;
		}
	gnutls_x509_crt_deinit(crt);
	return ok;
}

/* A socket of the loopback interface, with a port that the kernel chooses. */
static bool socket_open(struct speed_end *e)
{
	struct sockaddr_in a = {0};
	socklen_t len = sizeof(a);

	e->addr.ip = rwy_ip_from4((uint8_t[4]){127, 0, 0, 1});
	e->fd = gw_quic_sock_new(&e->addr, 0);
	if (e->fd < 0 || getsockname(e->fd, (struct sockaddr *)&a, &len) != 0)
		return false;
	e->addr.port = ntohs(a.sin_port);
	return true;
}

static bool ends_make(struct speed *s, struct gw_quic_tls *tls, const struct conf_quic *q)
{
	struct gw_quic_cfg cfg;

	gw_quic_cfg_default(&cfg);
	cfg.cc = q->cc == CONF_QUIC_BBR2 ? GW_QUIC_BBR2 : GW_QUIC_CUBIC;
	cfg.window = q->window;
	for (unsigned i = 0; i < ENDS; i++) {
		s->end[i].all = s;
		if (!socket_open(&s->end[i])) {
			s->dead = strerror(errno);
			return false;
		}
		cfg.local = s->end[i].addr;
		if (gw_quic_end_new(&s->end[i].end, &cfg, tls, &ops, &s->end[i]) != 0) {
			s->dead = "no memory";
			return false;
		}
	}
	return true;
}

uint64_t gw_quic_speed(const struct conf_tunnel_keys *k, const struct conf_quic *q, char *why, size_t size)
{
	const struct gw_cert_files f = {k->certificate, k->key, k->ca, k->crl};
	struct speed s = {.end = {{.fd = -1}, {.fd = -1}}};
	struct gw_quic_tls *tls;
	struct gw_quic_conn *c;
	uint64_t speed = 0;

	if (gw_quic_tls_new(&tls, &f, why, size) != 0)
		return 0;
	if (!own_name(tls, s.name))
		s.dead = "`keys.certificate` has no DNS name";
	else if (ends_make(&s, tls, q) &&
	         gw_quic_connect(s.end[A].end, &s.end[B].addr, s.name, NULL, &c, gw_now()) == 0)
		speed = run(&s);
	for (unsigned i = 0; i < ENDS; i++) {
		gw_quic_end_free(s.end[i].end);
		if (s.end[i].fd >= 0)
			close(s.end[i].fd);
	}
	gw_quic_tls_free(tls);
	if (!speed)
		snprintf(why, size, "%s", s.dead ? s.dead : "no memory");
	return speed;
}
