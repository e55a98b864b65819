/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that signal across queue pairs. In each round the client WRITEs data by one QP, waits
 * for its completion, and then tells by another QP that the data is there: with a SEND, with a
 * WRITE of a flag, with an ATOMIC on it, by a READ of the data itself, or by releasing a lock. Who
 * hears it looks at the data at once. Data that is not there is a violation: it is counted, and the
 * program goes on.
 *
 *   rwy_signal --kind K [options]           serves one client
 *   rwy_signal --kind K [options] HOST      runs --rounds rounds
 *
 *   --kind 0 send, 1 write, 2 atomic: the server checks; 3 read, 4 lock: the client does
 *
 * lock: each of --lanes lanes, on --pairs pairs of QPs, takes one of --locks locks by a
 * compare-and-swap, reads with it what the lock protects, writes the next number there by the other
 * QP, and releases the lock by a compare-and-swap after the completion. A lane that reads anything
 * but the number of the last holder has found a violation.
 *
 * Prints one line of JSON. Exit: 0 ran to its end, whatever the violations; 3 QP error; 4 the lock
 * or the counter itself is wrong; 5 no end within --limit; 1 could not start; 2 usage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rc.h"

enum kind { SEND, WRITE, ATOMIC, READ, LOCK, KINDS };
enum conn { DATA, SIGNAL, PAIR }; /* flags use the first pair of QPs, locks all */

static const char *const kind_names[KINDS] = {"send", "write", "atomic", "read", "lock"};

/*
 * The same in both memories. data: slot of each round or lock; seen: READs of it; flag: the number
 * of rounds whose data is there; checked: the number of rounds that the server looked at.
 */
#define SLOT       2048 /* two packets */
#define SLOTS      512
#define AT_DATA    0
#define AT_SEEN    (AT_DATA + SLOTS * SLOT)
#define AT_FLAG    (AT_SEEN + SLOTS * SLOT)
#define AT_CHECKED (AT_FLAG + 64)
#define AT_LOCK    (AT_CHECKED + 64)     /* the server's locks */
#define AT_OLD     (AT_LOCK + SLOTS * 8) /* answers to compare-and-swap, one for each lane */
#define MEMORY     (AT_OLD + SLOTS * 16)
#define ATOMICS    128 /* most READs and ATOMICs outstanding on a QP: Soft-RoCE's limit */
#define DEPTH      (2 * SLOTS)
#define PROTECTED  64 /* bytes under a lock */

enum lane_step { TAKING, WRITING, RELEASING };

struct lane {
	enum lane_step step;
	unsigned int lock;
};

static struct rc rc;
static unsigned int kind, rounds = 100000, pairs = 2, lanes = 120, locks = 120, limit = 300;
static unsigned int posted, written, told, done; /* client: rounds begun, completed, told, ended */
static unsigned int checked, checked_sent;       /* server: rounds looked at, and reported */
static unsigned int tries, up;
static uint64_t violations, first_violation;
static bool returning, ending;
static struct lane lane[SLOTS];
static uint64_t last[SLOTS]; /* what the lock's last holder wrote */

static volatile uint64_t *word(size_t at)
{
	return (volatile uint64_t *)(void *)(rc.memory + at);
}

/* Mostly one small packet, some with two. */
static uint32_t size_of(unsigned int round)
{
	return round % 8 == 7 ? SLOT : 64;
}

static size_t slot_of(unsigned int round)
{
	return AT_DATA + (size_t)(round % SLOTS) * SLOT;
}

static void violation(unsigned int round)
{
	if (!violations++)
		first_violation = round;
}

/* --- flags ---------------------------------------------------------------------------------- */

static void data_write(unsigned int round)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	rc_fill(rc.memory + slot_of(round), round + 1, size_of(round));
	rc_post(&rc, &rc.conns[DATA], &wr, round, slot_of(round), size_of(round), slot_of(round));
}

/* The data of this round is completed: says so by the other QP. */
static void round_tell(unsigned int round)
{
	struct rc_conn *c = &rc.conns[SIGNAL];
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = round};
	size_t seen = AT_SEEN + (size_t)(round % SLOTS) * SLOT;

	if (kind == SEND) {
		rc_post(&rc, c, &wr, round, 0, 0, 0);
	} else if (kind == WRITE) {
		/* The source must stay until the completion, and rounds end in order. */
		*word(seen) = round + 1;
		wr.opcode = IBV_WR_RDMA_WRITE;
		rc_post(&rc, c, &wr, round, seen, 8, AT_FLAG);
	} else if (kind == ATOMIC) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.compare_add = 1;
		rc_post(&rc, c, &wr, round, seen, 8, AT_FLAG);
	} else {
		wr.opcode = IBV_WR_RDMA_READ;
		rc_post(&rc, c, &wr, round, seen, size_of(round), slot_of(round));
	}
}

static void told_done(unsigned int round)
{
	size_t seen = AT_SEEN + (size_t)(round % SLOTS) * SLOT;

	if (kind == READ && rc_check(rc.memory + seen, round + 1, size_of(round)))
		violation(round);
	if (kind == ATOMIC && *word(seen) != round)
		rc_fail(
		    &rc, RC_BAD, "round %u: the counter was %llu", round, (unsigned long long)*word(seen));
	done++;
}

/* Begins rounds and tells of completed ones, as far as slots and outstanding requests allow. */
static void flags_advance(void)
{
	unsigned int free_of = kind == READ ? done : (unsigned int)*word(AT_CHECKED);
	/* No round waits for its turn between completion and telling: its data would arrive meanwhile. */
	unsigned int most = kind == READ || kind == ATOMIC ? ATOMICS : SLOTS;

	if (up < rc.opt.conns)
		return;
	while (posted < rounds && posted - free_of < SLOTS && posted - done < most && !rc.status)
		data_write(posted++);
	while (told < written && !rc.status)
		round_tell(told++);
}

/* Server: everything up to this round was told; is it there? */
static void flags_check(unsigned int upto)
{
	for (; checked < upto; checked++)
		if (rc_check(rc.memory + slot_of(checked), checked + 1, size_of(checked)))
			violation(checked);
	if (!returning && checked_sent != checked && rc.conns[SIGNAL].up) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

		returning = true;
		checked_sent = checked;
		*word(AT_CHECKED) = checked;
		rc_post(&rc, &rc.conns[SIGNAL], &wr, 0, AT_CHECKED, 8, AT_CHECKED);
	}
}

/* --- locks ---------------------------------------------------------------------------------- */

static struct rc_conn *lane_conn(unsigned int n, enum conn which)
{
	return &rc.conns[PAIR * (n % pairs) + which];
}

static size_t answer_of(unsigned int n)
{
	return AT_OLD + (size_t)n * 16;
}

/* A compare-and-swap and, behind it on the same QP, the READ of what the lock protects. */
static void lane_take(unsigned int n)
{
	struct rc_conn *c = lane_conn(n, SIGNAL);
	struct ibv_send_wr cas = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP}, get = {.opcode = IBV_WR_RDMA_READ};

	lane[n].step = TAKING;
	tries++;
	cas.wr.atomic.swap = n + 1;
	rc_post(&rc, c, &cas, 2 * n, answer_of(n), 8, AT_LOCK + lane[n].lock * 8);
	rc_post(&rc, c, &get, 2 * n + 1, AT_SEEN + (size_t)n * SLOT, PROTECTED,
	    AT_DATA + (size_t)lane[n].lock * SLOT);
}

static void lane_begin(unsigned int n)
{
	if (posted == rounds)
		return;
	lane[n].lock = (unsigned int)(rc_mix(posted++) % locks);
	lane_take(n);
}

static void lane_release(unsigned int n)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP};

	lane[n].step = RELEASING;
	wr.wr.atomic.compare_add = n + 1;
	rc_post(&rc, lane_conn(n, SIGNAL), &wr, 2 * n, answer_of(n), 8, AT_LOCK + lane[n].lock * 8);
}

static void lane_taken(unsigned int n)
{
	unsigned int l = lane[n].lock;
	size_t at = AT_DATA + (size_t)n * SLOT;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	if (*word(answer_of(n))) { /* another lane holds it */
		lane_take(n);
		return;
	}
	for (size_t i = 0; i < PROTECTED; i += 8)
		if (*word(AT_SEEN + (size_t)n * SLOT + i) != last[l]) {
			violation(done);
			break;
		}
	last[l]++;
	for (size_t i = 0; i < PROTECTED; i += 8)
		*word(at + i) = last[l];
	lane[n].step = WRITING;
	rc_post(&rc, lane_conn(n, DATA), &wr, n, at, PROTECTED, AT_DATA + (size_t)l * SLOT);
}

static void lock_done(const struct rc_conn *c, uint32_t tag)
{
	unsigned int n = c->number % PAIR == DATA ? tag : tag / 2;

	if (c->number % PAIR == DATA) {
		lane_release(n);
	} else if (lane[n].step == RELEASING) {
		if (*word(answer_of(n)) != n + 1)
			rc_fail(&rc, RC_BAD, "lock %u: held by %u, but it has %llu", lane[n].lock, n + 1,
			    (unsigned long long)*word(answer_of(n)));
		done++;
		lane_begin(n);
	} else if (tag % 2) { /* the READ; the compare-and-swap before it was completed before */
		lane_taken(n);
	}
}

/* --- both ------------------------------------------------------------------------------------ */

static void on_prepare(struct rc *r, struct rc_conn *c)
{
	for (unsigned int i = 0; !r->opt.host && c->number == SIGNAL && kind == SEND && i < SLOTS; i++)
		rc_recv(r, c, i, 0, 0);
}

static void on_up(struct rc *r, struct rc_conn *c)
{
	up++;
	if (r->opt.host && up < r->opt.conns) {
		if (rc_connect(r, up))
			rc_fail(r, RC_START, "no connection %u", up);
		return;
	}
	for (unsigned int i = 0; r->opt.host && kind == LOCK && i < lanes; i++)
		lane_begin(i);
}

static void on_done(struct rc *r, struct rc_conn *c, const struct ibv_wc *wc, uint32_t tag)
{
	if (r->status || !c->id || !rc_good(r, c, wc))
		return;
	if (!r->opt.host && wc->opcode == IBV_WC_RECV) {
		rc_recv(r, c, tag, 0, 0);
		if (wc->imm_data != checked)
			rc_fail(r, RC_BAD, "immediate %u where %u was due", wc->imm_data, checked);
		flags_check(checked + 1);
	} else if (!r->opt.host) {
		returning = false;
	} else if (kind == LOCK) {
		lock_done(c, tag);
	} else if (c->number % PAIR == DATA) {
		written++;
	} else {
		told_done(tag);
	}
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

static bool server_turn(void)
{
	bool some = rc_turn(&rc, 0);

	/* An RDMA WRITE or ATOMIC makes no event here. */
	if (kind == WRITE || kind == ATOMIC || kind == SEND)
		flags_check(kind == SEND ? checked : (unsigned int)*word(AT_FLAG));
	return some;
}

static void server_run(double end)
{
	bool began = false;

	while (!rc.status && (up || !began)) {
		if (!server_turn())
			rc_turn(&rc, kind <= ATOMIC && up ? 1 : 20);
		began |= up == rc.opt.conns;
		if (rc_now() > end)
			rc_fail(&rc, RC_LATE, "%u rounds after %u s", checked, limit);
	}
}

static void client_run(double end)
{
	if (rc_connect(&rc, 0))
		rc_fail(&rc, RC_START, "no connection");
	while (!rc.status && done < rounds) {
		if (!rc_turn(&rc, 0))
			rc_turn(&rc, 1);
		if (kind != LOCK)
			flags_advance();
		if (rc_now() > end)
			rc_fail(&rc, RC_LATE, "%u rounds after %u s", done, limit);
	}
	/* The last round's flag was told, but may be unchecked: the server looks before it answers. */
	while (!rc.status && kind <= ATOMIC && *word(AT_CHECKED) < rounds && rc_now() < end)
		rc_turn(&rc, 1);
	ending = true;
	for (unsigned int i = 0; i < rc.opt.conns; i++)
		if (rc.conns[i].up)
			rdma_disconnect(rc.conns[i].id);
	while (!rc.status && up && rc_now() < end)
		rc_turn(&rc, 20);
}

static int usage(void)
{
	fprintf(stderr, "usage: rwy_signal --kind N [--rounds N] [--pairs N] [--lanes N] [--locks N] [--port "
	                "N] [--timeout N] "
	                "[--retry N] [--limit SECONDS] [HOST]\n"
	                "  --kind: 0 send, 1 write, 2 atomic, 3 read, 4 lock\n");
	return RC_USAGE;
}

int main(int argc, char **argv)
{
	const struct rc_number numbers[] = {{"kind", &kind}, {"rounds", &rounds}, {"pairs", &pairs},
	    {"lanes", &lanes}, {"locks", &locks}, {"timeout", &rc.opt.timeout}, {"retry", &rc.opt.retry},
	    {"limit", &limit}};
	double begin;

	rc.opt = (struct rc_options){
	    .port = "7472", .retry = 7, .rd_atomic = ATOMICS, .send_depth = DEPTH, .recv_depth = SLOTS};
	if (rc_options(&rc.opt, numbers, sizeof(numbers) / sizeof(numbers[0]), argc, argv) || kind >= KINDS ||
	    !lanes || lanes > SLOTS || !pairs || lanes > pairs * ATOMICS / 2 || !locks || locks > SLOTS)
		return usage();
	rc.opt.conns = rc.opt.open = kind == LOCK ? PAIR * pairs : PAIR;
	if (rc_start(&rc, &ops, MEMORY)) {
		perror("rwy_signal");
		return RC_START;
	}
	begin = rc_now();
	if (rc.opt.host)
		client_run(begin + limit);
	else
		server_run(begin + limit);
	printf("{\"role\": \"%s\", \"kind\": \"%s\", \"rounds\": %u, \"violations\": %llu, \"first\": %llu, "
	       "\"tries\": %u, "
	       "\"seconds\": %.1f, \"status\": %d, \"error\": \"%s\"}\n",
	    rc.opt.host ? "client" : "server", kind_names[kind], rc.opt.host ? done : checked,
	    (unsigned long long)violations, (unsigned long long)first_violation, tries, rc_now() - begin,
	    rc.status, rc.error);
	return rc.status;
}
