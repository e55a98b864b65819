/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masses of ATOMICs, small READs and WRITEs on many QPs, at a given rate, each checked. An
 * ATOMIC adds one to its QP's counter, and its answer must be the number of those before it: each
 * was executed exactly once, in order. A READ must bring the server's pattern. WRITEs go round in
 * slots, which the client READs at the end. The server only lends its memory.
 *
 *   rwy_masses [options]           serves one client
 *   rwy_masses [options] HOST      runs until --count ATOMICs are answered, or for --seconds, or
 *                                  until SIGTERM, whichever is first, and waits for what is out
 *
 * --atomics-pace, --reads-pace, --writes-pace: requests a second, of all QPs of the kind together;
 * 0: as many as are answered.
 *
 * Prints one line of JSON: what was done of each kind, and in which time. Exit: 0 all is right; 3
 * QP error; 4 wrong data or a wrong counter; 5 no end within --limit; 1 could not start; 2 usage.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rc.h"

enum kind { ATOMIC, READ, WRITE, KINDS };

#define WINDOW_MAX 64
#define CONNS_MAX  256
#define TAG_FINAL  0x80000000u /* the READ of a written slot at the end */

struct own {
	enum kind kind;
	unsigned int posted, done;
	unsigned int final; /* written slots that were read again */
};

static struct rc rc;
static struct own *own;
static unsigned int qps[KINDS], pace[KINDS], window = 16, count, seconds, size = 64, limit = 300;
static uint64_t total[KINDS], issued[KINDS];
static unsigned int up;
static bool stopping, ending;
static double began, ended;
static volatile sig_atomic_t stopped;

static void on_signal(int signum)
{
	stopped = signum;
}

/* Memory: for each connection a window of slots, and one more slot for its counter or pattern. */
static size_t slot_of(unsigned int conn, unsigned int n)
{
	return ((size_t)conn * (WINDOW_MAX + 1) + n % window) * ((size + 63) & ~63u);
}

static size_t common_of(unsigned int conn)
{
	return ((size_t)conn * (WINDOW_MAX + 1) + WINDOW_MAX) * ((size + 63) & ~63u);
}

static uint64_t seed_of(unsigned int conn, unsigned int n)
{
	return (uint64_t)conn << 32 | n;
}

static void request_post(struct rc_conn *c)
{
	struct own *o = &own[c->number];
	unsigned int n = o->posted++;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	size_t at = slot_of(c->number, n), far = at;
	uint32_t bytes = size;

	issued[o->kind]++;
	if (o->kind == ATOMIC) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.compare_add = 1;
		far = common_of(c->number);
		bytes = 8;
	} else if (o->kind == READ) {
		wr.opcode = IBV_WR_RDMA_READ;
		far = common_of(c->number);
		memset(rc.memory + at, 0, size);
	} else {
		rc_fill(rc.memory + at, seed_of(c->number, n), size);
	}
	rc_post(&rc, c, &wr, n & ~TAG_FINAL, at, bytes, far);
}

static bool may_post(const struct own *o)
{
	if (o->posted - o->done >= window || stopping)
		return false;
	if (o->kind == ATOMIC && count && issued[ATOMIC] >= count)
		return false;
	return !pace[o->kind] || (double)issued[o->kind] < (rc_now() - began) * pace[o->kind];
}

/* One request of each connection in turn, so that none takes all of the pace. */
static void requests_post(void)
{
	for (bool more = true; more && !rc.status;) {
		more = false;
		for (unsigned int i = 0; i < rc.opt.conns; i++)
			if (may_post(&own[i])) {
				request_post(&rc.conns[i]);
				more = true;
			}
	}
}

static void answer_check(const struct rc_conn *c, unsigned int n)
{
	const struct own *o = &own[c->number];
	size_t at = slot_of(c->number, n);
	uint64_t was;

	memcpy(&was, rc.memory + at, sizeof(was));
	if (o->kind == ATOMIC && was != n)
		rc_fail(&rc, RC_BAD, "QP %u: the counter was %llu where %u was due", c->number,
		    (unsigned long long)was, n);
	if (o->kind == READ && rc_check(rc.memory + at, c->number, size))
		rc_fail(&rc, RC_BAD, "QP %u: READ %u brought wrong bytes", c->number, n);
}

static void slot_checked(const struct rc_conn *c, unsigned int n)
{
	size_t at = slot_of(c->number, n);

	own[c->number].final++;
	if (rc_check(rc.memory + at, seed_of(c->number, n), size))
		rc_fail(&rc, RC_BAD, "QP %u: WRITE %u left wrong bytes", c->number, n);
}

/* READs what the last WRITEs left, over their sources. */
static void slots_read(struct rc_conn *c)
{
	const struct own *o = &own[c->number];

	for (unsigned int n = o->posted > window ? o->posted - window : 0; n < o->posted; n++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

		memset(rc.memory + slot_of(c->number, n), 0, size);
		rc_post(&rc, c, &wr, n | TAG_FINAL, slot_of(c->number, n), size, slot_of(c->number, n));
	}
}

static void on_prepare(struct rc *r, struct rc_conn *c)
{
	if (!r->opt.host && own[c->number].kind == READ)
		rc_fill(r->memory + common_of(c->number), c->number, size);
}

static void on_up(struct rc *r, struct rc_conn *c)
{
	up++;
	if (r->opt.host && up < r->opt.conns && rc_connect(r, up))
		rc_fail(r, RC_START, "no connection %u", up);
}

static void on_done(struct rc *r, struct rc_conn *c, const struct ibv_wc *wc, uint32_t tag)
{
	struct own *o = &own[c->number];

	if (r->status || !rc_good(r, c, wc))
		return;
	if (tag & TAG_FINAL) {
		slot_checked(c, tag & ~TAG_FINAL);
		return;
	}
	answer_check(c, tag);
	o->done++;
	total[o->kind]++;
}

static void on_end(struct rc *r, struct rc_conn *c, int error)
{
	if (error || !c->up || (r->opt.host && !ending))
		rc_fail(r, RC_QP, "connection %u ended: %d", c->number, error);
	up -= c->up;
	if (c->up && !r->opt.host)
		rdma_disconnect(c->id);
	rc_close(r, c);
}

static const struct rc_ops ops = {.prepare = on_prepare, .up = on_up, .done = on_done, .end = on_end};

static void server_run(double end)
{
	bool all = false;

	while (!rc.status && (up || !all)) {
		rc_turn(&rc, 100);
		all |= up == rc.opt.conns;
		if (rc_now() > end)
			rc_fail(&rc, RC_LATE, "no end after %u s", limit);
	}
}

/* True when nothing is outstanding. */
static bool all_answered(void)
{
	for (unsigned int i = 0; i < rc.opt.conns; i++)
		if (own[i].posted != own[i].done)
			return false;
	return true;
}

static bool all_read(void)
{
	for (unsigned int i = 0; i < rc.opt.conns; i++)
		if (own[i].kind == WRITE && own[i].final < (own[i].posted < window ? own[i].posted : window))
			return false;
	return true;
}

/* Waits for something to happen, for 2 ms if a pace holds requests back. */
static void turn_until(double end)
{
	rc_turn(&rc, pace[ATOMIC] || pace[READ] || pace[WRITE] ? 2 : 20);
	if (rc_now() > end)
		rc_fail(&rc, RC_LATE, "no end after %u s", limit);
}

static void conns_disconnect(double end)
{
	ending = true;
	for (unsigned int i = 0; i < rc.opt.conns; i++)
		if (rc.conns[i].up)
			rdma_disconnect(rc.conns[i].id);
	while (!rc.status && up)
		turn_until(end);
}

static void client_run(double end)
{
	if (rc_connect(&rc, 0))
		rc_fail(&rc, RC_START, "no connection");
	while (!rc.status && up < rc.opt.conns)
		turn_until(end);
	began = rc_now();
	while (!rc.status && !(stopping && all_answered())) {
		requests_post();
		turn_until(end);
		stopping |=
		    stopped || (seconds && rc_now() - began >= seconds) || (count && total[ATOMIC] >= count);
	}
	ended = rc_now();
	for (unsigned int i = 0; i < rc.opt.conns && !rc.status; i++)
		if (own[i].kind == WRITE)
			slots_read(&rc.conns[i]);
	while (!rc.status && !all_read())
		turn_until(end);
	conns_disconnect(end);
}

static int usage(void)
{
	fprintf(stderr,
	    "usage: rwy_masses [--atomics QPS] [--reads QPS] [--writes QPS] [--window N] [--size BYTES] "
	    "[--count N]\n  [--seconds N] [--atomics-pace N] [--reads-pace N] [--writes-pace N] [--port N] "
	    "[--timeout N] [--limit SECONDS] [HOST]\n");
	return RC_USAGE;
}

static int client_or_server_start(void)
{
	rc.opt.conns = rc.opt.open = qps[ATOMIC] + qps[READ] + qps[WRITE];
	if (!rc.opt.conns || rc.opt.conns > CONNS_MAX || !window || window > WINDOW_MAX || size < 8)
		return usage();
	own = calloc(rc.opt.conns, sizeof(*own));
	for (unsigned int i = 0; own && i < rc.opt.conns; i++)
		own[i].kind = i < qps[ATOMIC] ? ATOMIC : i < qps[ATOMIC] + qps[READ] ? READ : WRITE;
	if (!own || rc_start(&rc, &ops, (size_t)rc.opt.conns * (WINDOW_MAX + 1) * ((size + 63) & ~63u))) {
		perror("rwy_masses");
		return RC_START;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct rc_number numbers[] = {{"atomics", &qps[ATOMIC]}, {"reads", &qps[READ]},
	    {"writes", &qps[WRITE]}, {"window", &window}, {"size", &size}, {"count", &count},
	    {"seconds", &seconds}, {"atomics-pace", &pace[ATOMIC]}, {"reads-pace", &pace[READ]},
	    {"writes-pace", &pace[WRITE]}, {"timeout", &rc.opt.timeout}, {"limit", &limit}};
	double end;
	int bad;

	rc.opt = (struct rc_options){.port = "7473",
	    .retry = 7,
	    .rd_atomic = WINDOW_MAX,
	    .send_depth = 2 * WINDOW_MAX,
	    .recv_depth = 1};
	if (rc_options(&rc.opt, numbers, sizeof(numbers) / sizeof(numbers[0]), argc, argv))
		return usage();
	bad = client_or_server_start();
	if (bad)
		return bad;
	signal(SIGTERM, on_signal);
	end = rc_now() + limit;
	if (rc.opt.host)
		client_run(end);
	else
		server_run(end);
	printf("{\"role\": \"%s\", \"atomics\": %llu, \"reads\": %llu, \"writes\": %llu, \"seconds\": %.3f, "
	       "\"status\": %d, "
	       "\"error\": \"%s\"}\n",
	    rc.opt.host ? "client" : "server", (unsigned long long)total[ATOMIC],
	    (unsigned long long)total[READ], (unsigned long long)total[WRITE], ended - began, rc.status,
	    rc.error);
	return rc.status;
}
