/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC traffic for whole programs on veth pairs (gw_drain.py): model hosts (tests/lib/rc_host.h) on eth0 of two
 * network namespaces, some queue pairs between them, both directions. Each side writes patterns, increments
 * the other side's counter and reads it. When standard input ends, it stops asking, waits for the rest and
 * compares: each WRITE and each ATOMIC executed once, in order. Any error ends it with status 1. It says how
 * many operations are done, and (`stall`, in microseconds) when no operation of some queue pair completed for
 * more than 20 ms.
 *
 * With relays, the hosts know their relay's address alone: queue pairs are set up by CM at a port of relay A.
 * A REJ is said (`rejected REASON`), and ends it with status 3.
 *
 * With --hosts, queue pairs are spread over several addresses of each side: 10.1.0.N and 10.2.0.N for each N
 * of the list; with relays the first one is used. By default there is one, 2.
 *
 * With --writes there are WRITEs alone: an answer to a READ or an ATOMIC may die with a gateway's process.
 *
 *   rc_veth [--writes] [--hosts N,N...] [--relays RELAY_A RELAY_B PORT] NETNS_A GATEWAY_MAC_A NETNS_B
 *           GATEWAY_MAC_B QUEUE_PAIRS [TIMEOUT_MS]
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/component/rc/cm.h"
#include "tests/lib/rc_host.h"

#define QPS_MAX 64
#define SLOTS   4
#define SLOT    8192u
#define AREA    (SLOTS * SLOT)
#define SRC     0u
#define SINK    AREA
#define COUNTER (2 * AREA)
#define FOUND   (COUNTER + 8) /* what READs and ATOMICs bring */
#define MEM     (FOUND + 8 * DEPTH)
#define DEPTH   8 /* outstanding operations: a multiple of SLOTS */
#define WAIT    (40 * RWY_SEC)
#define STALL   (20 * RWY_MS)
#define HOSTS   8

struct end {
	struct rc_host h;
	uint8_t mem[MEM];
	unsigned qp, site;
	uint64_t posted, done, added;
	rwy_time last;          /* of an operation that completed; 0: none did */
	uint64_t expect[DEPTH]; /* of a READ: the counter's value */
};

static struct end ends[QPS_MAX][2];
static struct lan lan[2];
static unsigned qps;
static uint8_t hosts[HOSTS] = {2}; /* the last byte of addresses */
static unsigned hosts_n = 1;
static bool failed, writes;
static rwy_dur stall; /* the longest since it was told */

static rwy_time clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (rwy_time)ts.tv_sec * RWY_SEC + (rwy_time)ts.tv_nsec;
}

static void fail(const struct end *s, const char *what, uint64_t a, uint64_t b)
{
	if (!failed)
		printf("error: queue pair %u at %c: %s (%" PRIu64 ", %" PRIu64 "), %" PRIu64 " of %" PRIu64
		       " done\n",
		    s->qp, 'A' + (char)s->site, what, a, b, s->done, s->posted);
	failed = true;
}

/* --- the LAN ---------------------------------------------------------------------------------- */

static void output(struct end *s, rwy_time now)
{
	uint8_t bytes[RC_PKT_MAX];
	uint32_t n;

	while ((n = rc_host_output(&s->h, bytes, now)))
		lan_send(&lan[s->site], bytes, n);
}

static void input(unsigned site, rwy_time now)
{
	uint8_t bytes[2 * RC_PKT_MAX];
	uint32_t n;

	for (unsigned i = 0; i < 256 && (n = lan_receive(&lan[site], bytes, sizeof(bytes))); i++) {
		struct roce_pkt pkt;

		if (!rc_pkt_read(bytes, n, &pkt))
			continue;
		if (pkt.dqpn < 0x100 || pkt.dqpn >= 0x100 + qps)
			continue;
		if (memcmp(ends[pkt.dqpn - 0x100][site].h.cfg.ip, pkt.dst.b + 12, 4) != 0)
			continue; /* another process may play another host */
		rc_host_packet(&ends[pkt.dqpn - 0x100][site].h, &pkt, now);
		output(&ends[pkt.dqpn - 0x100][site], now);
	}
}

/* --- work ------------------------------------------------------------------------------------- */

static void completed(void *ctx, const struct rc_comp *c)
{
	struct end *s = ctx;
	const rwy_time now = clock_now();
	uint64_t found;

	if (c->status != RC_OK || c->id != s->done) {
		fail(
		    s, c->status != RC_OK ? "ended with status" : "completed out of order", c->status, c->id);
		return;
	}
	if (c->id % DEPTH == DEPTH - 1 && !writes) {
		memcpy(&found, s->mem + FOUND + 8 * (c->id % DEPTH), 8);
		if (found != s->expect[c->id % DEPTH])
			fail(s, "a READ brought another counter", found, s->expect[c->id % DEPTH]);
	}
	if (s->last && now - s->last > stall)
		stall = now - s->last;
	s->last = now;
	s->done++;
}

/* The next operation: of DEPTH the last two are an ATOMIC and a READ of what it changed. */
static void ask(struct end *s)
{
	const uint64_t k = s->posted++, i = k % DEPTH;
	struct rc_wr wr = {.id = k, .rkey = s->h.cfg.rkey, .len = SLOT, .op = RC_WRITE};

	if (i == DEPTH - 2 && !writes) {
		wr.op = RC_FAA;
		wr.len = 8;
		wr.swap_add = 1;
		s->added++;
	} else if (i == DEPTH - 1 && !writes) {
		wr.op = RC_READ;
		wr.len = 8;
		s->expect[i] = s->added;
	}
	wr.local = (uint32_t)(wr.op == RC_WRITE ? SRC + i % SLOTS * SLOT : FOUND + 8 * i);
	wr.remote = wr.op == RC_WRITE ? SINK + i % SLOTS * SLOT : COUNTER;
	if (wr.op == RC_WRITE)
		for (uint32_t b = 0; b < SLOT; b += 8)
			memcpy(s->mem + wr.local + b, &(uint64_t){k << 16 | b}, 8);
	rc_host_post(&s->h, &wr);
}

static void compare(const struct end *s, const struct end *peer)
{
	uint64_t count;

	memcpy(&count, peer->mem + COUNTER, 8);
	if (count != s->added)
		fail(s, "ATOMICs executed, asked for", count, s->added);
	for (unsigned i = 0; i < SLOTS; i++)
		if (memcmp(s->mem + SRC + i * SLOT, peer->mem + SINK + i * SLOT, SLOT) != 0)
			fail(s, "the memory differs: slot", i, 0);
}

static struct rwy_ip host_ip(unsigned site)
{
	return rwy_ip_from4((const uint8_t[]){10, (uint8_t)(site + 1), 0, hosts[0]});
}

/* By CM: the relays stand for the other host. Ends the process if they refuse. */
static void connect_relayed(unsigned i, const char *const relay[2], uint16_t port, struct cm_side cm[2])
{
	int rc;

	for (unsigned j = 0; j < 2; j++) {
		uint8_t ip[4];

		if (inet_pton(AF_INET, relay[j], ip) != 1)
			exit(2);
		cm[j] = (struct cm_side){.lan = &lan[j],
		    .host = host_ip(j),
		    .relay = rwy_ip_from4(ip),
		    .qpn = 0x100 + i,
		    .psn = 1000 * i + 7 * !j}; /* the peer's first one (IBA 12.7.31) */
	}
	rc = cm_connect(cm, port, i);
	if (!rc)
		return;
	printf(rc > 0 ? "rejected %d\n" : "no answer %d\n", rc);
	exit(3);
}

/* cm: of relays; NULL: the hosts know each other. */
static void connect_qp(unsigned i, rwy_dur timeout, const struct cm_side *cm)
{
	for (unsigned j = 0; j < 2; j++) {
		struct end *s = &ends[i][j];
		struct rc_host_cfg c;

		rc_host_cfg_default(&c);
		memcpy(c.ip, (uint8_t[]){10, (uint8_t)(j + 1), 0, hosts[cm ? 0 : i % hosts_n]}, 4);
		memcpy(c.peer_ip, (uint8_t[]){10, (uint8_t)(2 - j), 0, hosts[cm ? 0 : i % hosts_n]}, 4);
		c.peer_qpn = 0x100 + i;
		if (cm) {
			memcpy(c.peer_ip, cm[j].relay.b + 12, 4);
			c.peer_qpn = cm[j].alias;
		}
		c.sq_psn = 1000 * i + 7 * j;
		c.rq_psn = 1000 * i + 7 * !j;
		c.timeout = timeout;
		c.retry = 7;
		c.done = completed;
		c.ctx = s;
		s->qp = i;
		s->site = j;
		rc_host_init(&s->h, &c, s->mem, MEM);
	}
}

/* Both sides of all queue pairs; false: nothing is outstanding, nor acknowledged and on its way. */
static bool work(bool more, rwy_time now)
{
	bool busy = false;

	for (unsigned i = 0; i < qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct end *s = &ends[i][j];

			/* a WRITE's source may change when the one before has completed */
			while (more && s->posted < s->done + SLOTS)
				ask(s);
			if (rc_host_next(&s->h) <= now)
				rc_host_tick(&s->h, now);
			output(s, now);
			busy |= s->done < s->posted || ends[i][!j].h.epsn != s->h.post_psn;
		}
	return busy;
}

static uint64_t all_done(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < qps; i++)
		n += ends[i][0].done + ends[i][1].done;
	return n;
}

static void read_hosts(char *list)
{
	char *rest = NULL;

	hosts_n = 0;
	for (char *one = strtok_r(list, ",", &rest); one && hosts_n < HOSTS; one = strtok_r(NULL, ",", &rest))
		hosts[hosts_n++] = (uint8_t)strtoul(one, NULL, 10);
	if (!hosts_n)
		exit(2);
}

int main(int argc, char **argv)
{
	/* by default as NCCL's: it waits half a minute, here in steps of a second */
	rwy_dur timeout = RWY_SEC;
	rwy_time say = 0, end = RWY_NEVER;
	struct cm_side cm[2];
	const char *relay[2] = {NULL, NULL};
	uint16_t port = 0;
	bool more = true;

	if (argc > 1 && !strcmp(argv[1], "--writes")) {
		writes = true;
		argc--;
		argv++;
	}
	if (argc > 3 && !strcmp(argv[1], "--hosts")) {
		read_hosts(argv[2]);
		argc -= 2;
		argv += 2;
	}
	if (argc > 5 && !strcmp(argv[1], "--relays")) {
		relay[0] = argv[2];
		relay[1] = argv[3];
		port = (uint16_t)strtoul(argv[4], NULL, 10);
		argc -= 4;
		argv += 4;
	}
	if (argc < 6 || argc > 7 || (qps = (unsigned)strtoul(argv[5], NULL, 10)) < 1 || qps > QPS_MAX)
		return 2;
	if (argc == 7)
		timeout = strtoul(argv[6], NULL, 10) * RWY_MS;
	setvbuf(stdout, NULL, _IOLBF, 0);
	lan_open(&lan[0], argv[1], argv[2]);
	lan_open(&lan[1], argv[3], argv[4]);
	for (unsigned i = 0; i < qps; i++) {
		if (port)
			connect_relayed(i, relay, port, cm);
		connect_qp(i, timeout, port ? cm : NULL);
	}
	while (!failed) {
		struct pollfd p[3] = {{.fd = lan[0].fd, .events = POLLIN},
		    {.fd = lan[1].fd, .events = POLLIN}, {.fd = more ? 0 : -1, .events = POLLIN}};
		rwy_time now = clock_now();
		char byte;

		if (!work(more, now) && !more)
			break;
		if (now > end)
			fail(&ends[0][0], "not complete in time", 0, 0);
		if (now >= say) {
			printf("done %" PRIu64 "\n", all_done());
			if (stall > STALL)
				printf("stall %" PRIu64 "\n", stall / RWY_US);
			stall = 0;
			say = now + 100 * RWY_MS;
		}
		poll(p, 3, 1);
		now = clock_now();
		input(0, now);
		input(1, now);
		if (p[2].revents && read(0, &byte, 1) <= 0) {
			more = false;
			end = now + WAIT;
		}
	}
	for (unsigned i = 0; i < qps && !failed; i++)
		for (unsigned j = 0; j < 2; j++)
			compare(&ends[i][j], &ends[i][!j]);
	if (!failed)
		printf("ok %" PRIu64 "\n", all_done());
	return failed;
}
