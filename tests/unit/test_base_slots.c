/* SPDX-License-Identifier: Apache-2.0 */
/* A stream in memory of two processes (base/slots.h): here both ends are in one, each with a mapping
 * of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/slots.h"

struct ends {
	struct base_slots w, r;
	int ws, rs; /* sockets */
};

static int begin(void **state)
{
	struct ends *e = calloc(1, sizeof(*e));
	int pair[2];

	assert_non_null(e);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	e->ws = pair[0];
	e->rs = pair[1];
	assert_int_equal(base_slots_new(&e->w), 0);
	assert_true(base_slots_send(&e->w, e->ws));
	assert_int_equal(base_slots_receive(&e->r, e->rs), 0);
	*state = e;
	return 0;
}

static int end(void **state)
{
	struct ends *e = *state;

	base_slots_close(&e->w);
	base_slots_close(&e->r);
	if (e->ws >= 0)
		close(e->ws);
	close(e->rs);
	free(e);
	return 0;
}

static bool byte_waits(int socket)
{
	char c;

	return recv(socket, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

static void fill(struct ends *e, unsigned n)
{
	uint8_t *to = base_slots_room(&e->w);

	assert_non_null(to);
	memset(to, (int)n, n + 1);
	base_slots_fill(&e->w, n + 1);
}

static void take(struct ends *e, unsigned n)
{
	bool ended;
	size_t len;
	const uint8_t *from = base_slots_next(&e->r, &len, &ended);

	assert_non_null(from);
	assert_int_equal(len, n + 1);
	assert_int_equal(from[0], n);
	assert_int_equal(from[n], n);
	base_slots_free_slot(&e->r, e->rs);
}

static void test_in_order(void **state)
{
	struct ends *e = *state;
	size_t len;
	bool ended;

	for (unsigned round = 0; round < 5; round++) {
		for (unsigned n = 0; n < BASE_SLOTS; n++)
			fill(e, n + round);
		for (unsigned n = 0; n < BASE_SLOTS; n++)
			take(e, n + round);
	}
	assert_null(base_slots_next(&e->r, &len, &ended));
	assert_false(ended);
	assert_false(byte_waits(e->rs) || byte_waits(e->ws)); /* nobody waited */
}

/* A writer without room is woken once, by the slot that it gets. */
static void test_writer_waits(void **state)
{
	struct ends *e = *state;

	for (unsigned n = 0; n < BASE_SLOTS; n++)
		fill(e, n);
	assert_null(base_slots_room(&e->w));
	assert_false(byte_waits(e->ws));
	take(e, 0);
	assert_true(base_slots_woken(e->ws));
	assert_false(byte_waits(e->ws));
	take(e, 1);
	assert_false(byte_waits(e->ws));
	fill(e, 7);
}

static void test_reader_waits(void **state)
{
	struct ends *e = *state;

	base_slots_wake_reader(&e->w, e->ws);
	assert_false(byte_waits(e->rs));
	assert_true(base_slots_wait(&e->r));
	fill(e, 1);
	base_slots_wake_reader(&e->w, e->ws);
	base_slots_wake_reader(&e->w, e->ws);
	assert_true(byte_waits(e->rs));
	assert_true(base_slots_woken(e->rs));
	assert_false(byte_waits(e->rs));
	assert_false(base_slots_wait(&e->r)); /* there is something */
	take(e, 1);
}

/* The reader gets all that was filled before the end. */
static void test_end(void **state)
{
	struct ends *e = *state;
	size_t len;
	bool ended;

	fill(e, 3);
	base_slots_end(&e->w);
	assert_non_null(base_slots_next(&e->r, &len, &ended));
	assert_false(ended);
	take(e, 3);
	assert_null(base_slots_next(&e->r, &len, &ended));
	assert_true(ended);
	assert_false(base_slots_wait(&e->r));
}

static void test_gone(void **state)
{
	struct ends *e = *state;

	assert_true(base_slots_woken(e->rs));
	assert_int_equal(send(e->ws, "xyz", 3, 0), 3);
	close(e->ws);
	e->ws = -1;
	assert_true(base_slots_woken(e->rs)); /* what it sent comes first */
	assert_false(base_slots_woken(e->rs));
	base_slots_free_slot(&e->r, e->rs); /* to nobody: no SIGPIPE */
}

/* A reader that writes nonsense into the memory, or cuts it, harms nobody but itself. */
static void test_hostile_reader(void **state)
{
	struct ends *e = *state;
	struct base_slots_head *h = e->r.head;

	assert_int_equal(ftruncate(e->r.fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	fill(e, 1);
	for (unsigned i = 0; i < 64; i++) {
		uint8_t *to;

		atomic_store(&h->freed, i % 3 ? e->w.turn - i % BASE_SLOTS : 0x9e3779b9u * i);
		atomic_store(&h->filled, ~0u);
		memset(h->len, 0xff, sizeof(h->len));
		h->slots = h->slot_size = UINT32_MAX;
		to = base_slots_room(&e->w);
		if (!to)
			continue;
		assert_in_range((uintptr_t)to, (uintptr_t)e->w.head + BASE_SLOTS_AT,
		    (uintptr_t)e->w.head + BASE_SLOTS_BYTES - BASE_SLOT_SIZE);
		base_slots_fill(&e->w, BASE_SLOT_SIZE);
	}
}

/* The reader's length is bounded, too. */
static void test_strange_writer(void **state)
{
	struct ends *e = *state;
	size_t len;
	bool ended;

	e->w.head->len[0] = UINT32_MAX;
	atomic_store(&e->w.head->filled, 1);
	assert_non_null(base_slots_next(&e->r, &len, &ended));
	assert_int_equal(len, BASE_SLOT_SIZE);
}

static void send_fd(int fd, int socket)
{
	const struct base_slots other = {.fd = fd};

	assert_true(base_slots_send(&other, socket));
}

static void test_other_memory(void **state)
{
	struct ends *e = *state;
	struct base_slots r;
	const int small = memfd_create("small", 0);

	send_fd(small, e->ws);
	close(small);
	assert_int_equal(base_slots_receive(&r, e->rs), RWY_EINVAL);
	assert_int_equal(send(e->ws, "x", 1, 0), 1); /* none at all */
	assert_int_equal(base_slots_receive(&r, e->rs), RWY_EINVAL);
	e->w.head->version++;
	send_fd(e->w.fd, e->ws);
	assert_int_equal(base_slots_receive(&r, e->rs), RWY_EINVAL);
	assert_null(r.head);
	e->w.head->version--;
	send_fd(e->w.fd, e->ws);
	assert_int_equal(base_slots_receive(&r, e->rs), 0);
	base_slots_close(&r);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {T(test_in_order), T(test_writer_waits), T(test_reader_waits),
	    T(test_end), T(test_gone), T(test_hostile_reader), T(test_strange_writer), T(test_other_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
