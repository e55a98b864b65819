/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder's ring (engine/recorder.h): the newest entries are there and whole, also while
 * another thread reads them; one connection cannot push out the others'. docs/recorder.md lists the kinds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/eng.h"
#include "engine/why.h"
#include "tests/lib/states_page.h"

#define N 64 /* entries */

static struct eng *e;

static int set_up(void **state)
{
	e = calloc(1, sizeof(*e));
	if (!e)
		return -1;
	e->cfg.recorder_n = N;
	return eng_recorder_init(e);
}

static int tear_down(void **state)
{
	eng_recorder_fini(e);
	free(e);
	return 0;
}

static struct eng_record get(uint32_t seq)
{
	struct eng_record r;

	assert_true(eng_recorder_get(e->rec.ring, seq, &r));
	assert_int_equal(r.seq, seq);
	return r;
}

static void put(uint32_t value)
{
	eng_record_engine(e, &(struct eng_record){.kind = ENG_REC_START, .value = value}, NULL, value);
}

static unsigned readable(void)
{
	struct eng_record r;
	unsigned n = 0;

	for (uint32_t i = 0, newest = e->rec.ring->newest; i < 2 * N; i++)
		n += eng_recorder_get(e->rec.ring, newest - i, &r);
	return n;
}

static void test_wraps(void **state)
{
	assert_int_equal(readable(), 0);
	for (uint32_t i = 1; i <= 3 * N; i++) {
		put(i);
		assert_int_equal(e->rec.ring->newest, i);
		assert_int_equal(get(i).value, i);
		assert_int_equal(readable(), i < N ? i : N);
	}
	for (uint32_t i = 2 * N + 1; i <= 3 * N; i++)
		assert_int_equal(get(i).at, i);
}

/* Numbers wrap after weeks; none is 0. */
static void test_numbers_wrap(void **state)
{
	e->rec.newest = UINT32_MAX - 3;
	for (uint32_t i = 0; i < N; i++)
		put(i);
	assert_int_equal(e->rec.ring->newest, N - 3);
	assert_int_equal(get(UINT32_MAX).value, 2);
	assert_int_equal(get(1).value, 3);
	assert_int_equal(readable(), N - 1); /* without number 0 */
}

/* A process that dies while it writes an entry leaves one that is not read. */
static void test_half_written(void **state)
{
	struct eng_record r;

	put(1);
	put(2);
	atomic_store(&e->rec.ring->slot[2 & (N - 1)].word[0], 0);
	assert_false(eng_recorder_get(e->rec.ring, 2, &r));
	assert_int_equal(get(1).value, 1);
}

static void test_bad_sizes(void **state)
{
	struct eng other = {.cfg.recorder_n = 3};

	assert_int_equal(eng_recorder_init(&other), RWY_EINVAL);
	other.cfg.recorder_n = 2 * ENG_RECORDER_MAX;
	assert_int_equal(eng_recorder_init(&other), RWY_EINVAL);
}

/* --- a reader beside the writer ----------------------------------------------------------------- */

static _Atomic bool stop;

static void *writer(void *arg)
{
	for (uint32_t i = 1; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
		struct eng_record r = {
		    .kind = ENG_REC_TUNNEL, .value = i, .psn = i & 0xffffffu, .to = i & 255u};
		char name[32];

		memset(name, 'a' + (int)(i % 26), sizeof(name) - 1);
		name[31] = 0;
		eng_record_engine(e, &r, name, i);
	}
	return NULL;
}

/* All fields of an entry are of one decision. */
static void assert_whole(const struct eng_record *r)
{
	assert_int_equal(r->kind, ENG_REC_TUNNEL);
	assert_int_equal(r->value, r->seq);
	assert_int_equal(r->at, r->seq);
	assert_int_equal(r->psn, r->seq & 0xffffffu);
	assert_int_equal(r->to, r->seq & 255u);
	for (unsigned i = 0; i < 31; i++)
		assert_int_equal(r->name[i], 'a' + (int)(r->seq % 26));
}

static void test_reader_beside(void **state)
{
	unsigned whole = 0, gone = 0;
	pthread_t thread;

	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
	while (whole < 20000 || !gone) {
		uint32_t newest = atomic_load(&e->rec.ring->newest);

		for (uint32_t i = 0; i < N && newest > i; i++) {
			struct eng_record r;

			if (eng_recorder_get(e->rec.ring, newest - i, &r)) {
				assert_whole(&r);
				whole++;
			} else {
				gone++; /* the writer was faster */
			}
		}
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

/* --- too many of one connection ------------------------------------------------------------------ */

static struct eng_tenant tenant;

static struct eng_responder *connection(uint32_t qpn)
{
	struct eng_responder *rs = calloc(1, sizeof(*rs));

	assert_non_null(rs);
	rs->side.e = e;
	rs->side.tenant = &tenant;
	rs->side.key.qpn = qpn;
	rs->local_qpn = 7;
	return rs;
}

static unsigned count_of(enum eng_record_kind kind, uint32_t qpn, uint32_t *value)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < N; i++) {
		struct eng_record r;

		if (!eng_recorder_get(e->rec.ring, e->rec.newest - i, &r) || r.kind != kind ||
		    r.remote_qpn != qpn)
			continue;
		n++;
		*value = r.value;
	}
	return n;
}

static void test_left_out(void **state)
{
	struct eng_responder *noisy = connection(1), *quiet = connection(2);
	const struct eng_record nak = {.kind = ENG_REC_NAK_SENT};
	uint32_t left = 0, none;

	eng_record_side(&quiet->side, &nak, RWY_SEC);
	for (unsigned i = 0; i < 100; i++)
		eng_record_side(&noisy->side, &nak, RWY_SEC + i);
	assert_int_equal(count_of(ENG_REC_NAK_SENT, 1, &none), 16);
	assert_int_equal(count_of(ENG_REC_NAK_SENT, 2, &none), 1);
	/* What is rare is never left out. */
	eng_record_side(&noisy->side, &(struct eng_record){.kind = ENG_REC_FAIL}, RWY_SEC + 200);
	assert_int_equal(count_of(ENG_REC_FAIL, 1, &none), 1);
	assert_int_equal(count_of(ENG_REC_LEFT_OUT, 1, &left), 0);
	eng_record_side(&noisy->side, &nak, 2 * RWY_SEC);
	assert_int_equal(count_of(ENG_REC_LEFT_OUT, 1, &left), 1);
	assert_int_equal(left, 100 - 16);
	assert_int_equal(count_of(ENG_REC_NAK_SENT, 1, &none), 17);
	free(noisy);
	free(quiet);
}

/* --- words --------------------------------------------------------------------------------------- */

static const char *said(const struct eng_record *r)
{
	static char text[256];

	eng_record_say(r, text, sizeof(text));
	return text;
}

static void test_sentences(void **state)
{
	struct eng_record r = {.kind = ENG_REC_NAK_RECEIVED, .psn = 0xffffff, .to = 0x60};
	char cut[8];

	assert_string_equal(said(&r), "NAK of the host at PSN 16777215: PSN sequence error");
	eng_record_say(&r, cut, sizeof(cut));
	assert_string_equal(cut, "NAK of ");
	r = (struct eng_record){
	    .kind = ENG_REC_RESPONDER, .from = ENG_R_WAITING, .to = ENG_R_RUNNING, .psn = 5};
	assert_string_equal(said(&r), "responder: waiting -> running, PSN 5");
	r = (struct eng_record){.kind = ENG_REC_FAIL, .value = ENG_END_SILENT, .side = ENG_OF_REQUESTER};
	assert_string_equal(said(&r), "requester failed at PSN 0: retry count exceeded");
	r = (struct eng_record){.kind = ENG_REC_FAIL, .value = ENG_CAUSE_DAMAGED, .side = ENG_OF_RESPONDER};
	assert_string_equal(said(&r), "responder failed at PSN 0: a response was damaged");
	r = (struct eng_record){
	    .kind = ENG_REC_REFUSED, .value = eng_counter_number(e, &e->c.drop_stale_psn)};
	assert_string_equal(said(&r), "refused at PSN 0: PSN outside the connection's window");
	r = (struct eng_record){.kind = ENG_REC_CONGESTED, .to = WAN_CONGEST_LOSS, .value = 1, .name = "b1"};
	assert_string_equal(said(&r), "tunnel b1, path 1: congested by loss");
}

/* Entries of a damaged file, or of another program, are said, too. */
static void test_any_bytes(void **state)
{
	struct eng_record r;

	for (unsigned kind = 0; kind < 256; kind++)
		for (unsigned v = 0; v < 256; v++) {
			memset(&r, (int)v, sizeof(r));
			r.kind = kind & 255u;
			assert_true(strlen(said(&r)) < 255);
			assert_non_null(eng_record_from(&r));
			assert_non_null(eng_record_side_name(r.side));
		}
}

static void test_names(void **state)
{
	for (unsigned i = 1; i < ENG_REC_KINDS; i++)
		assert_int_equal(eng_record_find(eng_record_name((enum eng_record_kind)i)), i);
	assert_int_equal(eng_record_find("nothing"), ENG_REC_NONE);
	assert_int_equal(eng_record_find(""), ENG_REC_NONE);
}

/* The page has every kind with its sentence. */
static void test_page(void **state)
{
	states_begin();
	states_add("| kind | sentence |\n| --- | --- |\n");
#define X(e, n, s) states_add("| `%s` | %s |\n", n, s);
	ENG_RECORD_KINDS(X)
#undef X
	states_compare_in("docs/recorder.md");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_wraps), TEST(test_numbers_wrap), TEST(test_half_written),
	    TEST(test_bad_sizes), TEST(test_reader_beside), TEST(test_left_out), TEST(test_sentences),
	    TEST(test_any_bytes), TEST(test_names), TEST(test_page)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
