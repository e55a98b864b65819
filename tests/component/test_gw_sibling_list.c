/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of siblings changes while the gateways run (sibling/lab.h): existing flows stay, named
 * queue pairs have an owner of their own, a lost sibling gets nothing; and what the status shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gateway/control/change_lock.h"
#include "tests/component/sibling/lab.h"

/* Site B's host acknowledges the WRITE, and its ACK arrives at A's. */
static void answer_from_b(uint8_t n, uint32_t qpn, uint32_t psn)
{
	struct fr_roce r = sl_packet(n, qpn, psn, false);
	const struct rwy_ip a = r.src;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;

	r.src = r.dst;
	r.dst = a;
	r.dqpn = qpn + 1;
	for (unsigned i = 0; i < 5; i++) {
		sl_inject(FP_B, sl_host_mac, ip, fr_ack(ip, &r, 1));
		if (sl_next(FP_A, SL_NOTHING, buf, &f))
			break;
		/* Nobody answered in the turns of other flows, so the gateway asks once more. */
		assert_true(i < 4);
		do
			assert_true(sl_next(FP_B, SL_WAIT, buf, &f));
		while (sl_qpn(&f) != qpn);
	}
	assert_memory_equal(f.eth, sl_host_mac, 6);
}

/* A named QP follows its own assignment before its pair's; other QPs of the pair follow the
 * pair. */
static void test_named_qp(void **state)
{
	const uint32_t named = sl_fresh(), other = sl_fresh(), last = sl_fresh(), late = sl_fresh(),
	               theirs = sl_fresh();
	struct sl_said x = {.no3 = true, .weight = 1, .all = true, .dqpn = named, .who = SL_A2};

	for (unsigned n = 0; n < SL_HOSTS; n++)
		x.pair[n] = -1;
	sl_say(&x);
	sl_send_write(0, named, 1);
	sl_expect_handed(SL_A2, named);
	sl_send_write(0, other, 1);
	sl_expect_carried(other);
	/* Also while another of its hosts waits to be learned here. */
	x.dqpn = last;
	sl_say(&x);
	sl_send_write(0, last, 1);
	sl_expect_handed(SL_A2, last);
	answer_from_b(0, other, 1);
	/* The reverse: ours, of a pair of theirs. */
	for (unsigned n = 0; n < SL_HOSTS; n++)
		x.pair[n] = SL_A2;
	x.dqpn = late;
	x.who = -1;
	sl_say(&x);
	sl_send_write(0, late, 1);
	sl_expect_carried(late);
	answer_from_b(0, late, 1);
	sl_send_write(0, theirs, 1);
	sl_expect_handed(SL_A2, theirs);
	/* An existing flow stays, whatever the new list. */
	x.who = SL_A2;
	sl_say(&x);
	sl_send_write(0, late, 2);
	sl_expect_carried(late);
	ov_settle(&sl.ov, SL_NOTHING);
}

/* A flow of this gateway stays, and one that went to a sibling continues there, whatever the new
 * list. */
static void test_under_way(void **state)
{
	const uint32_t here = sl_fresh(), there = sl_fresh(), later = sl_fresh();

	sl_say_all(-1);
	sl_send_write(1, here, 1);
	sl_expect_carried(here);
	answer_from_b(1, here, 1);
	sl_say_all(SL_A2);
	sl_send_write(1, here, 2);
	sl_expect_carried(here);
	sl_send_write(1, there, 1);
	sl_expect_handed(SL_A2, there);
	sl_say_all(-1);
	sl_send_write(1, there, 2);
	sl_expect_handed(SL_A2, there);
	sl_send_write(1, later, 1);
	sl_expect_carried(later);
	sl_send_write(1, here, 3);
	sl_expect_carried(here);
	ov_settle(&sl.ov, SL_NOTHING);
}

/* The host's first answer to a flow through this gateway's tunnel belongs here, although its QPN is
 * not yet known. */
static void test_first_answer(void **state)
{
	const uint32_t qpn = sl_fresh();
	const uint64_t before = sl_at_a().sibling_tx;
	struct fr_roce r = sl_packet(5, qpn, 4, false);
	const struct rwy_ip a = r.src;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;

	sl_say_all(SL_A2);
	r.src = r.dst;
	r.dst = a;
	sl_inject(FP_B, sl_host_mac, ip, fr_write(ip, &r));
	do
		assert_true(sl_next(FP_A, SL_WAIT, buf, &f));
	while (sl_qpn(&f) != qpn);
	r.dst = r.src;
	r.src = a;
	r.dqpn = qpn + 1;
	sl_inject(FP_A, sl_host_mac, ip, fr_ack(ip, &r, 1));
	do
		assert_true(sl_next(FP_B, SL_WAIT, buf, &f));
	while (sl_qpn(&f) != qpn + 1);
	assert_int_equal(sl_at_a().sibling_tx, before);
	ov_settle(&sl.ov, SL_NOTHING);
}

/* A lost sibling gets nothing; the rule distributes its pairs among the living: here, all are
 * ours. */
static void test_lost(void **state)
{
	struct sl_said x = {.all = true, .weight = 0};
	const uint32_t qpn = sl_fresh();

	sl_say(&x);
	sl_send_write(7, qpn, 1);
	sl_expect_handed(SL_A2, qpn);
	x.lost2 = true;
	sl_say(&x);
	sl_send_write(7, qpn, 2);
	sl_expect_carried(qpn);
	x.lost2 = false; /* it is back: existing flows stay */
	sl_say(&x);
	sl_send_write(7, qpn, 3);
	sl_expect_carried(qpn);
	sl_send_write(7, qpn + 1, 1);
	sl_expect_handed(SL_A2, qpn + 1);
	ov_settle(&sl.ov, SL_NOTHING);
}

/* The status: name, address, state, MAC address, packets. */
struct seen {
	struct sl_job j;
	struct gw_sibling_info info[4];
	unsigned n;
};

static void *see(void *arg)
{
	struct seen *x = arg;

	x->n = gw_siblings_get(&sl.ov.fp.gw[FP_A].app, x->info, 4);
	atomic_store(&x->j.done, true);
	return NULL;
}

static void test_shown(void **state)
{
	struct sl_said y = {.all = true, .weight = 1, .lost3 = true};
	static struct seen x, after;
	const uint32_t qpn = sl_fresh();

	sl_say(&y);
	sl_run(see, &x.j);
	sl_send_write(10, qpn, 1);
	sl_expect_handed(SL_A2, qpn);
	sl_run(see, &after.j);
	assert_int_equal(after.n, 2);
	assert_string_equal(after.info[0].name, "a2");
	assert_true(after.info[0].mac_known && after.info[0].controller && !after.info[0].lost);
	assert_memory_equal(after.info[0].mac, sl_mac[SL_A2], 6);
	assert_int_equal(after.info[0].pairs, 2 * SL_HOSTS);
	assert_int_equal(after.info[0].packets, x.info[0].packets + 1);
	assert_string_equal(after.info[1].name, "a3");
	assert_true(!after.info[1].mac_known && after.info[1].lost);
	assert_int_equal(after.info[1].packets, 0);
}

static const struct conf *own; /* used as the file's list */

static void *work_own(void *arg)
{
	struct sl_job *j = arg;

	gw_change_lock();
	j->rc = gw_siblings_own(&sl.ov.fp.gw[FP_A].app, own);
	gw_change_unlock();
	atomic_store(&j->done, true);
	return NULL;
}

static void *tick(void *arg)
{
	gw_siblings_tick(&sl.ov.fp.gw[FP_A].app, NULL);
	atomic_store(&((struct sl_job *)arg)->done, true);
	return NULL;
}

/* A configured sibling is lost when it does not answer for three ticks. */
static void test_file_sibling_lost(void **state)
{
	static struct conf c;

	c = *sl.ov.fp.gw[FP_A].app.conf;
	c.sibling[0].address = sl_sibling(SL_A3); /* no answer comes from there */
	own = &c;
	sl_run(work_own, &(struct sl_job){0});
	for (unsigned i = 0; i < 4; i++) {
		struct seen x = {0};

		sl_run(see, &x.j);
		assert_int_equal(x.n, 1);
		assert_int_equal(x.info[0].weight, 3);
		assert_false(x.info[0].controller);
		assert_int_equal(x.info[0].lost, i >= 3);
		sl_run(tick, &(struct sl_job){0});
	}
	for (uint32_t i = 0; i < SL_HOSTS; i++) { /* all are ours */
		const uint32_t qpn = sl_fresh();

		sl_send_write((uint8_t)i, qpn, 1);
		sl_expect_carried(qpn);
	}
}

static int tests(void)
{
	const struct CMUnitTest t[] = {
	    cmocka_unit_test(test_named_qp),
	    cmocka_unit_test(test_under_way),
	    cmocka_unit_test(test_first_answer),
	    cmocka_unit_test(test_lost),
	    cmocka_unit_test(test_shown),
	    cmocka_unit_test(test_file_sibling_lost),
	};

	gw_log_set(GW_LOG_ERROR); /* hosts that never answer cause warnings */
	return cmocka_run_group_tests(t, NULL, NULL);
}

int main(int argc, char **argv)
{
	return sl_main(argc, argv, tests);
}
