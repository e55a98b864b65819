/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of simulated gateways against a controller, over real HTTPS with one certificate each.
 * They all register at once, keep their leases, wait for documents (long poll), and report sessions
 * at a given rate. It measures the duration of the storm, and how long a report waits for its
 * decisions. One thread; the controller is another process (run-control starts it).
 *
 *   bench_control --certs DIR                   writes ca.pem, server.*, operator.* for the controller's
 *                                               configuration, then waits for a line on stdin, so that
 *                                               it can sign for its gateways
 *     --port N --sites N --gateways N --peers N number of sites, gateways per site, peers in a ring
 *     --rate N --seconds N                      session reports per second, and for how long
 *     --storm-seconds N --opening N             limit of the storm; gateways that register at a time
 *
 * Prints one JSON object on stdout.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/bench/control_conn.h"

#define WAIT_MS   60000
#define OPERATORS 4
#define SAMPLES   (1u << 20)

struct gw {
	char name[32];
	unsigned site, in_site;
	struct ctl_conn *ask, *poll;
	char lease[32];
	uint64_t generation, registered_at, document_at, lease_due;
	uint64_t started; /* start of the present request */
	unsigned sessions, tunnels;
	uint64_t retry_at;
	bool registered, was_registered;
};

static struct {
	struct ctl_loop *loop;
	struct gw *gw;
	unsigned n, sites, per_site, peers, ttl_ms;
	unsigned port, rate, seconds, storm_seconds;
	unsigned registering, opening;
	unsigned sites_next, sites_done, registered, documents, with_poll;
	uint64_t site_retries;
	uint64_t refused, lost, retries, polls, document_bytes, leases, decided, undecided;
	unsigned tunnels;
	uint32_t *report_us, *lease_us;
	unsigned reports, lease_samples;
	bool measuring;
	char first_error[512];
} b;

static uint64_t now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Processor time of this process, which shares the machine with the controller. */
static uint64_t cpu_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void complain(const char *what, int status, const char *body, size_t len)
{
	if (status < 0)
		b.lost++;
	else
		b.refused++;
	if (!b.first_error[0])
		(void)snprintf(b.first_error, sizeof(b.first_error), "%s: status %d: %.*s", what, status,
		    (int)(len < 200 ? len : 200), body);
}

/* The number after "name": in a body of ours; strict enough for a benchmark. */
static uint64_t number(const char *body, size_t len, const char *name)
{
	char key[48];
	int n = snprintf(key, sizeof(key), "\"%s\":", name);
	const char *p = memmem(body, len, key, (size_t)n);

	return p ? strtoull(p + n, NULL, 10) : 0;
}

static unsigned count(const char *body, size_t len, const char *what)
{
	const char *p = body, *end = body + len;
	unsigned n = 0;

	while ((p = memmem(p, (size_t)(end - p), what, strlen(what))) != NULL) {
		n++;
		p += strlen(what);
	}
	return n;
}

static void address(char *out, size_t len, unsigned site, unsigned host)
{
	(void)snprintf(out, len, "10.%u.%u.%u", site >> 8, site & 255, 1 + host % 250);
}

/* --- sites, by an operator -------------------------------------------------------------------- */

static void site_put(struct ctl_conn *c, unsigned site);

static void on_site(struct ctl_conn *c, void *ctx, int status, const char *body, size_t len)
{
	unsigned *site = ctx;

	if (status == 503) { /* another change was first: try again later, as the answer says */
		b.site_retries++;
		site_put(c, *site);
		return;
	}
	if (status != 200 && status != 201)
		complain("site", status, body, len);
	b.sites_done++;
	*site = b.sites_next++;
	if (*site < b.sites)
		site_put(c, *site);
}

/* Puts sites in a ring; the peers of each are the next ones and the ones before. */
static void site_put(struct ctl_conn *c, unsigned site)
{
	char path[64], body[4096];
	unsigned i, d;
	int n;

	(void)snprintf(path, sizeof(path), "/v1/sites/site-%u", site);
	n = snprintf(body, sizeof(body),
	    "{\"prefixes\":[\"10.%u.%u.0/24\"],\"weighting\":\"bandwidth\",\"peers\":[", site >> 8,
	    site & 255);
	for (i = 0; i < b.peers; i++) {
		d = i / 2 + 1;
		n += snprintf(body + n, sizeof(body) - (size_t)n, "%s\"site-%u\"", i ? "," : "",
		    i & 1 ? (site + b.sites - d) % b.sites : (site + d) % b.sites);
	}
	(void)snprintf(body + n, sizeof(body) - (size_t)n, "]}");
	ctl_request(c, "PUT", path, body, on_site);
}

static void make_sites(void)
{
	gnutls_certificate_credentials_t cred = ctl_cert("operator", "operator");
	unsigned i, at[OPERATORS];

	for (i = 0; i < OPERATORS && b.sites_next < b.sites; i++) {
		at[i] = b.sites_next++;
		site_put(ctl_conn_new(b.loop, cred, &at[i]), at[i]);
	}
	while (b.sites_done < b.sites)
		ctl_loop_run(b.loop, 100);
}

/* --- gateways ------------------------------------------------------------------------------------ */

static void gw_poll(struct gw *g);
static void gw_register(struct gw *g);

static void on_document(struct ctl_conn *c, void *ctx, int status, const char *body, size_t len)
{
	struct gw *g = ctx;

	b.polls++;
	if (status == 200) {
		g->generation = number(body, len, "generation");
		b.document_bytes += len;
		b.tunnels -= g->tunnels;
		g->tunnels = count(body, len, "\"remote\":");
		b.tunnels += g->tunnels;
		if (!g->document_at) {
			g->document_at = now_us();
			b.documents++;
		}
	} else if (status != 304) {
		complain("document", status, body, len);
	}
	if (g->poll)
		gw_poll(g);
}

static void gw_poll(struct gw *g)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/v1/gateways/%s/document?after=%" PRIu64 "&wait_ms=%d", g->name,
	    g->generation, g->poll ? WAIT_MS : 0);
	ctl_request(g->poll ? g->poll : g->ask, "GET", path, NULL, on_document);
}

static void on_registered(struct ctl_conn *c, void *ctx, int status, const char *body, size_t len)
{
	struct gw *g = ctx;
	const char *p;

	if (status != 200) {
		/* As a gateway does: it tries again after one to two seconds. */
		b.retries++;
		b.registering--;
		complain("register", status, body, len);
		g->registered = false;
		g->retry_at = now_us() + 1000000 + (uint64_t)((g - b.gw) % 101) * 10000;
		return;
	}
	b.registering--;
	p = memmem(body, len, "\"lease\":\"", 9);
	if (p)
		(void)snprintf(g->lease, sizeof(g->lease), "%.16s", p + 9);
	b.ttl_ms = (unsigned)number(body, len, "ttl_ms");
	g->registered_at = now_us();
	/* Spread over a third of the lease, like gateways that start at random times. */
	g->lease_due =
	    g->registered_at + ((uint64_t)b.ttl_ms * 1000 / 3 * ((uint32_t)(g - b.gw) * 2654435761u) >> 32);
	if (!g->was_registered)
		b.registered++;
	g->was_registered = g->registered = true;
	if (!g->poll || !ctl_busy(g->poll))
		gw_poll(g);
}

static void gw_register(struct gw *g)
{
	char path[128], body[1024];

	(void)snprintf(path, sizeof(path), "/v1/gateways/%s", g->name);
	(void)snprintf(body, sizeof(body),
	    "{\"boot_id\":\"b%u\",\"site\":\"site-%u\",\"version\":\"bench\",\"lan\":[\"10.%u.%u.%u\"],"
	    "\"wan\":[\"172.16.%u.%u:4800\"],\"ports\":[{\"name\":\"p0\",\"speed_bps\":100000000000}],"
	    "\"capabilities\":"
	    "{\"rocev2\":{\"bandwidth_bps\":%u00000000000,\"cnp\":true},\"tcp\":{\"bandwidth_bps\":"
	    "20000000000,"
	    "\"algorithms\":[\"bbr\",\"cubic\"]}}}",
	    g->in_site, g->site, g->site >> 8, g->site & 255, 251 + g->in_site % 4, (unsigned)(g - b.gw) >> 8,
	    (unsigned)(g - b.gw) & 255, g->in_site % 2 ? 1 : 3);
	b.registering++;
	g->retry_at = 0;
	ctl_request(g->ask, "PUT", path, body, on_registered);
}

static void sample(uint32_t *to, unsigned *n, uint64_t started)
{
	if (b.measuring && *n < SAMPLES)
		to[(*n)++] = (uint32_t)(now_us() - started);
}

static void on_lease(struct ctl_conn *c, void *ctx, int status, const char *body, size_t len)
{
	struct gw *g = ctx;

	b.leases++;
	if (status == 200) {
		sample(b.lease_us, &b.lease_samples, g->started);
		b.ttl_ms = (unsigned)number(body, len, "ttl_ms");
		if (!g->poll && number(body, len, "generation") > g->generation)
			gw_poll(g);
		return;
	}
	complain("lease", status, body, len);
	if (status > 0)
		gw_register(g);
}

static void gw_lease(struct gw *g)
{
	char path[128], body[512];

	(void)snprintf(path, sizeof(path), "/v1/gateways/%s/lease", g->name);
	(void)snprintf(body, sizeof(body),
	    "{\"lease\":\"%s\",\"boot_id\":\"b%u\",\"generation_running\":%" PRIu64
	    ",\"load\":{\"sessions\":%u,\"rate_bps\":%u,"
	    "\"cpu_ppm\":200000,\"custody_ppm\":1000}}",
	    g->lease, g->in_site, g->generation, g->sessions, g->sessions * 1000000);
	g->started = now_us();
	/* If this program was late, its gateways must not stay in one crowd. */
	g->lease_due += (uint64_t)b.ttl_ms * 1000 / 3;
	if (g->lease_due <= g->started)
		g->lease_due = g->started + (uint64_t)b.ttl_ms * 1000 / 3;
	ctl_request(g->ask, "POST", path, body, on_lease);
}

static void on_sessions(struct ctl_conn *c, void *ctx, int status, const char *body, size_t len)
{
	struct gw *g = ctx;

	if (status != 200) {
		complain("sessions", status, body, len);
		return;
	}
	sample(b.report_us, &b.reports, g->started);
	if (memmem(body, len, "\"tunnel\":", 9))
		b.decided++;
	else
		b.undecided++;
}

/* Reports a session between a host of this site and one of a site to which there are tunnels. */
static void gw_report(struct gw *g)
{
	char path[128], body[512], src[32], dst[32];
	unsigned id = g->sessions++, peer = (g->site + 1 + id % (b.peers / 2 ? b.peers / 2 : 1)) % b.sites;

	address(src, sizeof(src), g->site, id);
	address(dst, sizeof(dst), peer, id / 7 + g->in_site);
	(void)snprintf(path, sizeof(path), "/v1/gateways/%s/sessions", g->name);
	(void)snprintf(body, sizeof(body),
	    "{\"sessions\":[{\"id\":\"s%u\",\"event\":\"opened\",\"vni\":0,\"source\":\"%s\",\"destination\":"
	    "\"%s\","
	    "\"source_qpn\":%u,\"destination_qpn\":%u,\"udp_port\":49152}]}",
	    id, src, dst, 17 + id, 18 + id);
	g->started = now_us();
	ctl_request(g->ask, "POST", path, body, on_sessions);
}

/* --- the run ------------------------------------------------------------------------------------- */

static void make_gateways(void)
{
	gnutls_certificate_credentials_t cred;
	struct gw *g;
	unsigned i;

	b.gw = calloc(b.n, sizeof(*b.gw));
	b.report_us = calloc(SAMPLES, sizeof(*b.report_us));
	b.lease_us = calloc(SAMPLES, sizeof(*b.lease_us));
	if (!b.gw || !b.report_us || !b.lease_us)
		abort();
	for (i = 0; i < b.n; i++) {
		g = &b.gw[i];
		g->site = i / b.per_site;
		g->in_site = i % b.per_site;
		(void)snprintf(g->name, sizeof(g->name), "gw-%u-%u", g->site, g->in_site);
		cred = ctl_cert(g->name, "gateway");
		if (!cred)
			abort();
		g->ask = ctl_conn_new(b.loop, cred, g);
		g->poll = i < b.with_poll ? ctl_conn_new(b.loop, cred, g) : NULL;
	}
}

static void renew(uint64_t now)
{
	static unsigned at;
	unsigned i;

	/* A part of them each time, so that each is late by a few milliseconds at most. */
	for (i = 0; i < b.n / 16 + 1; i++) {
		struct gw *g = &b.gw[at++ % b.n];

		if (ctl_busy(g->ask))
			continue;
		if (g->retry_at && g->retry_at <= now && b.registering < b.opening)
			gw_register(g);
		else if (g->registered && g->lease_due <= now)
			gw_lease(g);
	}
}

/* All gateways register at once, as far as one thread can: a limited number opens connections at a
 * time, because together they would all be slow, which real gateways are not. It ends when the last
 * one has a document with all its tunnels, or at the time limit. */
static uint64_t storm(uint64_t *registered_us)
{
	uint64_t start = now_us(), now = start, last = start;
	unsigned i = 0, tunnels = 0;

	*registered_us = 0;
	while (now - start < (uint64_t)b.storm_seconds * 1000000) {
		while (i < b.n && b.registering < b.opening)
			gw_register(&b.gw[i++]);
		ctl_loop_run(b.loop, 5);
		now = now_us();
		if (!*registered_us && b.registered == b.n)
			*registered_us = now - start;
		renew(now);
		if (b.tunnels != tunnels || b.documents < b.n) {
			tunnels = b.tunnels;
			last = now;
		}
		/* All have registered, and for two seconds nothing new came. */
		if (*registered_us && b.documents == b.n && now - last > 2000000)
			break;
	}
	return last - start;
}

static void steady(unsigned seconds)
{
	uint64_t start = now_us(), now = start, due = 0;
	uint32_t x = 2463534242u;
	unsigned i;

	while (now - start < (uint64_t)seconds * 1000000) {
		for (; due * 1000000 / b.rate <= now - start; due++) {
			/* A gateway with a request in progress is skipped; the next one reports. */
			for (i = 0; i < 64; i++) {
				x ^= x << 13;
				x ^= x >> 17;
				x ^= x << 5;
				if (!ctl_busy(b.gw[x % b.n].ask) && b.gw[x % b.n].registered)
					break;
			}
			if (i < 64)
				gw_report(&b.gw[x % b.n]);
			else
				b.undecided++;
		}
		renew(now);
		ctl_loop_run(b.loop, 1);
		now = now_us();
	}
}

static int cmp_us(const void *va, const void *vb)
{
	const uint32_t *x = va, *y = vb;

	return *x < *y ? -1 : *x > *y;
}

static void print_times(const char *name, uint32_t *us, unsigned n)
{
	qsort(us, n, sizeof(*us), cmp_us);
	printf(", \"%s\": {\"n\": %u, \"p50_us\": %u, \"p99_us\": %u, \"p999_us\": %u, \"max_us\": %u}", name,
	    n, n ? us[n / 2] : 0, n ? us[n - 1 - n / 100] : 0, n ? us[n - 1 - n / 1000] : 0,
	    n ? us[n - 1] : 0);
}

static unsigned arg(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

static int options(int argc, char **argv, const char **certs)
{
	static const struct option o[] = {{"certs", 1, 0, 'c'}, {"port", 1, 0, 'p'}, {"sites", 1, 0, 's'},
	    {"gateways", 1, 0, 'g'}, {"peers", 1, 0, 'e'}, {"rate", 1, 0, 'r'}, {"seconds", 1, 0, 't'},
	    {"storm-seconds", 1, 0, 'm'}, {"opening", 1, 0, 'o'}, {0}};
	int k;

	b.per_site = 2;
	b.peers = 10;
	b.rate = 1000;
	b.seconds = 20;
	b.storm_seconds = 120;
	b.opening = 128;
	while ((k = getopt_long(argc, argv, "", o, NULL)) != -1) {
		if (k == 'c')
			*certs = optarg;
		else if (k == 'p')
			b.port = arg(optarg);
		else if (k == 's')
			b.sites = arg(optarg);
		else if (k == 'g')
			b.per_site = arg(optarg);
		else if (k == 'e')
			b.peers = arg(optarg);
		else if (k == 'r')
			b.rate = arg(optarg);
		else if (k == 't')
			b.seconds = arg(optarg);
		else if (k == 'm')
			b.storm_seconds = arg(optarg);
		else if (k == 'o')
			b.opening = arg(optarg);
		else
			return 2;
	}
	b.n = b.sites * b.per_site;
	if (!*certs || !b.port || b.sites < 3 || b.sites > 60000 || !b.per_site || b.peers + 1 > b.sites ||
	    b.peers > 256 || !b.rate || b.peers % 2)
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	uint64_t registered_us, storm_us, from, cpu;
	const char *certs = NULL;
	char line[16];

	if (options(argc, argv, &certs)) {
		(void)fprintf(
		    stderr, "bench_control: see the head of bench_control.c; sites 3 to 60000, peers even\n");
		return 2;
	}
	/* Two connections per gateway, as far as this process may open them. The others ask for a
	 * document when a lease announces one. */
	(void)getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	b.with_poll = files.rlim_cur >= 2 * (rlim_t)b.n + 200 ? b.n
	              : files.rlim_cur > b.n + 200            ? (unsigned)(files.rlim_cur - b.n - 200)
	                                                      : 0;
	if (ctl_certs_init(certs)) {
		(void)fprintf(stderr, "bench_control: no certificates in %s\n", certs);
		return 1;
	}
	printf("ready\n");
	(void)fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	b.loop = ctl_loop_new("127.0.0.1", (uint16_t)b.port);
	if (!b.loop)
		return 1;
	make_gateways();
	from = now_us();
	make_sites();
	printf("{\"gateways\": %u, \"sites\": %u, \"long_polls\": %u, \"sites_us\": %" PRIu64
	       ", \"site_retries\": %" PRIu64,
	    b.n, b.sites, b.with_poll, now_us() - from, b.site_retries);
	cpu = cpu_us();
	storm_us = storm(&registered_us);
	printf(", \"client_storm_cpu_us\": %" PRIu64, cpu_us() - cpu);
	printf(", \"registered\": %u, \"registered_us\": %" PRIu64
	       ", \"documents\": %u, \"settled_us\": %" PRIu64 ", \"tunnel_ends\": %u, \"retries\": %" PRIu64
	       ", \"handshakes\": %" PRIu64,
	    b.registered, registered_us, b.documents, storm_us, b.tunnels, b.retries, ctl_handshakes(b.loop));
	steady(2);
	b.measuring = true;
	b.polls = b.decided = b.undecided = 0;
	b.document_bytes = 0;
	printf(", \"rate\": %u, \"seconds\": %u", b.rate, b.seconds);
	fprintf(stderr, "steady\n");
	cpu = cpu_us();
	steady(b.seconds);
	cpu = cpu_us() - cpu;
	fprintf(stderr, "done\n");
	printf(", \"client_cpu_us\": %" PRIu64, cpu);
	print_times("report", b.report_us, b.reports);
	print_times("lease", b.lease_us, b.lease_samples);
	printf(", \"decided\": %" PRIu64 ", \"undecided\": %" PRIu64 ", \"polls\": %" PRIu64
	       ", \"document_bytes\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"lost\": %" PRIu64
	       ", \"error\": \"",
	    b.decided, b.undecided, b.polls, b.document_bytes, b.refused, b.lost);
	for (const char *p = b.first_error; *p; p++)
		(void)putchar(*p == '"' || *p == '\\' || (unsigned char)*p < 32 ? '\'' : *p);
	printf("\"}\n");
	return 0;
}
