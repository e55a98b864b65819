/* SPDX-License-Identifier: Apache-2.0 */
/* RC requesters that share a host: its READs, its pace, and the response timer based on them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "roce/reqr.h"
#include "tests/lib/rc_reqr.h"

#define PMTU   1024u
#define MIB    1024u /* packets */
#define str(s) ((s) ? (s) : "")

static struct roce_reqr_host host;
static struct rq q[4];

static void begin(unsigned n)
{
	host = (struct roce_reqr_host){0};
	for (unsigned i = 0; i < n; i++) {
		rq_init(&q[i], 0x1000 * i, PMTU);
		roce_reqr_share(&q[i].r, &host);
	}
}

static void end(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rq_fini(&q[i]);
	assert_int_equal(host.owed, 0);
}

static void pass(unsigned n, rwy_dur t)
{
	for (unsigned i = 0; i < n; i++) {
		q[i].now += t;
		rq_tick(&q[i]);
		rq_send(&q[i]);
	}
}

static void read_mib(struct rq *r)
{
	rq_push(r, ROCE_RC_READ_REQ, MIB);
	rq_send(r);
}

/* Response i of the READ at this PSN. */
static void answer(struct rq *r, roce_psn first, unsigned i)
{
	rq_resp(r,
	    i == 0         ? ROCE_RC_READ_RESP_FIRST
	    : i == MIB - 1 ? ROCE_RC_READ_RESP_LAST
	                   : ROCE_RC_READ_RESP_MIDDLE,
	    roce_psn_add(first, i), 31, PMTU);
}

/* One after the other, at 10 MB/s: the last waits 300 ms for its first response, and knows the
 * reason. */
static void test_one_after_the_other(void **state)
{
	begin(4);
	for (unsigned i = 0; i < 4; i++)
		read_mib(&q[i]);
	assert_int_equal(host.owed, 4 * MIB * PMTU);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < MIB; k++) {
			pass(4, 100 * RWY_US);
			answer(&q[i], 0x1000 * i, k);
			assert_true(q[i].act.forward);
		}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(q[i].done, 1);
		assert_int_equal(q[i].r.timeouts, 0);
		assert_int_equal(q[i].r.resent, 0);
	}
	end(4);
}

/* A host so slow that a timeout passes before its pace is measured. */
static void test_slow_from_the_start(void **state)
{
	begin(2);
	read_mib(&q[0]);
	read_mib(&q[1]);
	for (unsigned k = 0; k < MIB; k++) {
		pass(2, 5 * RWY_MS); /* 64 KiB take 320 ms */
		answer(&q[0], 0, k);
	}
	assert_int_equal(q[1].r.timeouts, 0);
	end(2);
}

static rwy_dur until_timeout(unsigned i, unsigned n, rwy_dur most)
{
	uint64_t before = q[i].r.timeouts;
	rwy_dur t = 0;

	while (q[i].r.timeouts == before && t < most) {
		pass(n, RWY_MS);
		t += RWY_MS;
	}
	return t;
}

/* The end of one is lost; the host owes nothing else: the rest is requested again without much
 * delay. */
static void test_lost_tail(void **state)
{
	rwy_dur t;

	begin(2);
	read_mib(&q[0]);
	read_mib(&q[1]);
	for (unsigned k = 0; k < MIB; k++) {
		pass(2, 50 * RWY_US);
		answer(&q[0], 0, k);
		if (k < MIB - 8)
			answer(&q[1], 0x1000, k);
	}
	t = until_timeout(1, 2, RWY_SEC);
	assert_true(t <= 60 * RWY_MS);
	assert_int_equal(q[1].tx[0].skip, MIB - 8);
	assert_int_equal(host.owed, 8 * PMTU);
	end(2);
}

/*
 * It waits for as long as the host answers others, however long that takes; for 10 s when the host
 * has stopped.
 */
static void test_long_wait(void **state)
{
	begin(2);
	rq_push(&q[1], ROCE_RC_READ_REQ, 48 * MIB);
	rq_send(&q[1]);
	read_mib(&q[0]);
	for (unsigned k = 0; k < 48 * MIB; k++) { /* 12 s */
		pass(2, 250 * RWY_US);
		rq_resp(&q[1],
		    k == 0              ? ROCE_RC_READ_RESP_FIRST
		    : k == 48 * MIB - 1 ? ROCE_RC_READ_RESP_LAST
		                        : ROCE_RC_READ_RESP_MIDDLE,
		    0x1000 + k, 31, PMTU);
	}
	assert_int_equal(q[1].done, 1);
	assert_int_equal(q[0].r.timeouts, 0);
	assert_in_range(until_timeout(0, 2, 20 * RWY_SEC), 10 * RWY_SEC, 10 * RWY_SEC + 100 * RWY_MS);
	end(2);
}

/* Other queue pairs keep the host busy all the time: a lost READ is still requested again. */
static void test_lost_among_others(void **state)
{
	unsigned next = 0;

	begin(2);
	read_mib(&q[0]);
	read_mib(&q[1]); /* this one is lost */
	for (unsigned ms = 0; ms < 600; ms++) {
		pass(2, RWY_MS);
		for (unsigned k = 0; k < 20; k++, next++) {
			answer(&q[0], next / MIB * MIB, next % MIB);
			if (next % MIB == MIB - 1)
				read_mib(&q[0]);
		}
	}
	assert_int_equal(q[0].r.timeouts, 0);
	assert_true(q[1].r.timeouts >= 1 && q[1].r.timeouts <= 3);
	end(2);
}

/* A SEND is not answered after all READs: its timer grows by at most a quarter of a second. */
static void test_send_beside_reads(void **state)
{
	unsigned next = 0;

	begin(3);
	read_mib(&q[0]);
	read_mib(&q[2]);
	rq_push(&q[1], ROCE_RC_SEND_ONLY, 1);
	rq_send(&q[1]);
	for (unsigned ms = 0; ms < 310; ms++) {
		pass(3, RWY_MS);
		for (unsigned k = 0; k < 2; k++)
			answer(&q[0], 0, next++);
	}
	assert_int_equal(q[2].r.timeouts, 0);
	assert_int_equal(q[1].r.timeouts, 1);
	end(3);
}

/* Repeats back off while the host is silent; while it answers others, only later repeats do. */
static void test_back_off(void **state)
{
	rwy_dur silent[4], alive[4];

	begin(2);
	rq_push(&q[0], ROCE_RC_SEND_ONLY, 1);
	rq_send(&q[0]);
	for (unsigned i = 0; i < 4; i++)
		silent[i] = until_timeout(0, 2, 2 * RWY_SEC);
	end(2);
	begin(2);
	rq_push(&q[0], ROCE_RC_SEND_ONLY, 1);
	rq_send(&q[0]);
	for (unsigned i = 0; i < 4; i++)
		for (alive[i] = 0; q[0].r.timeouts == i; alive[i] += RWY_MS) {
			pass(2, RWY_MS);
			if (q[0].r.timeouts == i) {
				rq_push(&q[1], ROCE_RC_SEND_ONLY, 1);
				rq_send(&q[1]);
				rq_ack(&q[1], roce_psn_add(q[1].next, -1));
			}
		}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(silent[i], (50 << i) * RWY_MS);
		assert_int_equal(alive[i], (i < 3 ? 50 : 100) * RWY_MS);
	}
	end(2);
}

#define LATE 400 /* ms */

/* Answers of a host with a queue so long, one for each packet that was sent to it. */
struct late_host {
	struct {
		roce_psn psn;
		rwy_time at;
	} queue[256];
	unsigned head, tail;
};

static void late_takes(struct late_host *h, const struct rq *r)
{
	for (unsigned i = 0; i < r->ntx; i++) {
		h->queue[h->tail % 256].psn = r->tx[i].b->psn;
		h->queue[h->tail++ % 256].at = r->now + LATE * RWY_MS;
	}
}

/*
 * A host with a long queue answers late: requests are repeated until that is known, and no more. It
 * is not forgotten between.
 */
static void test_late(void **state)
{
	static struct late_host h;
	uint64_t timeouts = 0;

	begin(2);
	for (unsigned ms = 0; ms < 20000; ms++) {
		for (unsigned i = 0; i < 2; i++) {
			q[i].now += RWY_MS;
			rq_tick(&q[i]);
			if (q[i].r.una == q[i].r.tail)
				rq_push(&q[i], ROCE_RC_SEND_ONLY, 1);
			rq_send(&q[i]);
			late_takes(&h, &q[i]);
		}
		for (; h.head < h.tail && h.queue[h.head % 256].at <= q[0].now; h.head++)
			rq_ack(&q[h.queue[h.head % 256].psn >> 12], h.queue[h.head % 256].psn);
		if (ms == 2000)
			timeouts = q[0].r.timeouts + q[1].r.timeouts;
	}
	assert_true(timeouts > 0 && timeouts < 20);
	assert_true(h.head > 80);
	assert_true(q[0].r.timeouts + q[1].r.timeouts <= timeouts + 4);
	end(2);
}

/* Lost requests do not make a host late: it answers each of them once. */
static void test_lost_is_not_late(void **state)
{
	begin(1);
	for (unsigned k = 0; k < 20; k++) {
		rq_push(&q[0], ROCE_RC_SEND_ONLY, 1);
		rq_send(&q[0]);
		assert_int_equal(until_timeout(0, 1, RWY_SEC), 50 * RWY_MS);
		rq_ack(&q[0], roce_psn_add(q[0].next, -1));
	}
	assert_int_equal(host.late, 0);
	end(1);
}

/* A host that executes a READ a second time is not asked a third time before it has finished. */
static void test_copy_under_way(void **state)
{
	begin(1);
	read_mib(&q[0]);
	for (unsigned k = 0; k < MIB; k++)
		answer(&q[0], 0, k);
	read_mib(&q[0]);
	for (unsigned k = 0; k < MIB; k++) {
		pass(1, RWY_MS);
		answer(&q[0], 0, k);
		assert_string_equal(str(q[0].act.drop), "old_response");
	}
	assert_int_equal(q[0].r.timeouts, 0);
	end(1);
}

/* A response that is no longer expected is not owed: given up, gone back, ended. */
static void test_settled(void **state)
{
	begin(2);
	read_mib(&q[0]);
	read_mib(&q[1]);
	rq_push(&q[1], ROCE_RC_SEND_ONLY, 1);
	rq_send(&q[1]);
	rq_nak(&q[0], 0, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	assert_true(q[0].act.failed);
	assert_int_equal(host.owed, MIB * PMTU);
	answer(&q[1], 0x1000, 0);
	assert_int_equal(host.owed, (MIB - 1) * PMTU);
	answer(&q[1], 0x1000, 2); /* a gap */
	assert_int_equal(host.owed, 0);
	answer(&q[1], 0x1000, 1); /* late, before it is asked for again */
	assert_int_equal(host.owed, 0);
	rq_send(&q[1]);
	assert_int_equal(q[1].tx[0].skip, 2);
	assert_int_equal(host.owed, (MIB - 2) * PMTU);
	until_timeout(1, 2, 10 * RWY_SEC);
	assert_int_equal(host.owed, (MIB - 2) * PMTU);
	end(2);
}

/* The pace: time for a unit of 64 KiB while responses are owed. */
static void test_pace(void **state)
{
	struct roce_reqr_host h = {0};
	rwy_time now = RWY_SEC;

	assert_int_equal(roce_reqr_host_busy(NULL, 1), 0);
	roce_reqr_host_asked(&h, 1 << 20, now);
	assert_int_equal(roce_reqr_host_busy(&h, 0), 0);
	for (unsigned k = 0; k < 1024; k++) {
		roce_reqr_host_read(&h, 1024, now += 50 * RWY_US);
		roce_reqr_host_settled(&h, 1024);
	}
	assert_int_equal(h.owed, 0);
	now += 10 * RWY_SEC; /* idle is not slow */
	roce_reqr_host_asked(&h, 1 << 20, now);
	for (unsigned k = 0; k < 1024; k++)
		roce_reqr_host_read(&h, 1024, now += 50 * RWY_US);
	assert_in_range(h.pace, 64 * 50 * RWY_US, 64 * 51 * RWY_US);
	now += 10 * RWY_SEC; /* one pause is not its pace, either */
	for (unsigned k = 0; k < 64; k++)
		roce_reqr_host_read(&h, 1024, now += 50 * RWY_US);
	assert_in_range(h.pace, 64 * 50 * RWY_US, 2 * 64 * 50 * RWY_US);
	h.owed = UINT64_MAX / 2;
	h.pace = 4 * RWY_SEC;
	assert_int_equal(roce_reqr_host_busy(&h, 0), ((uint64_t)1 << 15) * 4 * RWY_SEC);
}

/* The host answers all of n READs of queue pair 0, each packet after `gap`. Returns the most that it
 * owed. */
static uint64_t answer_all(unsigned n, rwy_dur gap)
{
	uint64_t most = 0;

	for (unsigned k = 0; k < n * MIB; k++) {
		most = host.owed > most ? host.owed : most;
		assert_true(q[0].r.owed); /* it is never idle */
		pass(1, gap);
		answer(&q[0], q[0].freed, k % MIB);
		rq_send(&q[0]);
	}
	return most;
}

/* A slow host is asked for what keeps it busy, and each queue pair for one READ or some small ones;
 * a fast one for all. */
static void test_enough(void **state)
{
	begin(3);
	for (unsigned i = 0; i < 16; i++) {
		rq_push(&q[0], ROCE_RC_READ_REQ, MIB);
		rq_push(&q[1], ROCE_RC_READ_REQ, MIB);
		rq_push(&q[2], ROCE_RC_READ_REQ, 8);
	}
	assert_int_equal(rq_send(&q[0]), 2);
	assert_int_equal(rq_send(&q[1]), 1);
	assert_int_equal(rq_send(&q[2]), 8);
	end(3);
	begin(1);
	for (unsigned i = 0; i < 32; i++)
		rq_push(&q[0], ROCE_RC_READ_REQ, MIB);
	rq_send(&q[0]);
	assert_in_range(answer_all(8, 250 * RWY_US), MIB * PMTU, 2 * MIB * PMTU);
	/* 1 GB/s: 50 ms are more than there is to be asked for. */
	assert_in_range(answer_all(24, RWY_US), 15 * MIB * PMTU, 24 * MIB * PMTU);
	assert_int_equal(q[0].done, 32);
	end(1);
}

/* No READ is sent that the caller has no memory for, but one alone. */
static void test_owed_max(void **state)
{
	(void)state;
	begin(1);
	q[0].r.owed_max = MIB * PMTU + 8 * PMTU;
	for (unsigned i = 0; i < 2; i++)
		rq_push(&q[0], ROCE_RC_READ_REQ, MIB);
	rq_push(&q[0], ROCE_RC_READ_REQ, 8);
	assert_int_equal(rq_send(&q[0]), 1);
	assert_true(q[0].r.read_waits);
	for (unsigned i = 0; i < MIB; i++) {
		answer(&q[0], 0, i);
		/* Beside a MiB 8 more may be owed: the end of the one before, then the small one. */
		assert_int_equal(rq_send(&q[0]), i == MIB - 9 || i == MIB - 1);
	}
	assert_false(q[0].r.read_waits);
	q[0].r.owed_max = 0;
	rq_push(&q[0], ROCE_RC_SEND_ONLY, 1); /* not a READ */
	assert_int_equal(rq_send(&q[0]), 1);
	end(1);
}

/* Responses that the caller drops: silence until there is room, then the rest, and nothing twice. */
static void test_hold(void **state)
{
	struct roce_pkt pkt;

	(void)state;
	begin(1);
	read_mib(&q[0]);
	rq_push(&q[0], ROCE_RC_SEND_ONLY, 1);
	rq_send(&q[0]);
	for (unsigned i = 0; i < 10; i++)
		answer(&q[0], 0, i);
	rc_pkt_make(
	    q[0].bytes, &(struct rc_mk){.opcode = ROCE_RC_READ_RESP_MIDDLE, .psn = 10, .payload_len = PMTU});
	assert_true(rc_pkt_read(q[0].bytes, sizeof(q[0].bytes), &pkt));
	roce_reqr_hold(&q[0].r, &pkt, q[0].now);
	rq_ack(&q[0], MIB); /* of the SEND: no reason to ask at once */
	assert_int_equal(roce_reqr_next(&q[0].r), RWY_NEVER);
	pass(1, 30 * RWY_SEC);
	assert_int_equal(q[0].ntx, 0);
	assert_int_equal(q[0].r.timeouts, 0);
	roce_reqr_ask_again(&q[0].r);
	assert_int_equal(rq_send(&q[0]), 2);
	assert_int_equal(q[0].tx[0].skip, 10);
	answer(&q[0], 0, 500); /* of before: it does not make it ask again */
	assert_int_equal(rq_send(&q[0]), 0);
	for (unsigned i = 10; i < MIB; i++)
		answer(&q[0], 0, i);
	rq_ack(&q[0], MIB);
	assert_int_equal(q[0].done, 2);
	end(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_after_the_other),
	    cmocka_unit_test(test_slow_from_the_start),
	    cmocka_unit_test(test_lost_tail),
	    cmocka_unit_test(test_long_wait),
	    cmocka_unit_test(test_lost_among_others),
	    cmocka_unit_test(test_send_beside_reads),
	    cmocka_unit_test(test_back_off),
	    cmocka_unit_test(test_late),
	    cmocka_unit_test(test_lost_is_not_late),
	    cmocka_unit_test(test_copy_under_way),
	    cmocka_unit_test(test_settled),
	    cmocka_unit_test(test_pace),
	    cmocka_unit_test(test_enough),
	    cmocka_unit_test(test_owed_max),
	    cmocka_unit_test(test_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
