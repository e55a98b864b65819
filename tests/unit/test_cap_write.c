/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures' files in pieces (tools/roceway/capture_write.c), with a disk that takes them when the
 * test says so, refuses some, or is full. A failed case prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/rng.h"
#include "tools/roceway/capture_write.h"

/* The disk: orders that it has not looked at, oldest first. */
static struct {
	struct aiocb *order[CAP_PIECES];
	unsigned n;
	int state[CAP_PIECES]; /* of the order at this place of the array in the writer */
	const struct aiocb *base;
	ssize_t result[CAP_PIECES];
	int refuses;   /* the error of the next order; 0: none */
	bool half;     /* the next order is written by half */
	bool no_order; /* none is taken */
	uint64_t room;
	unsigned orders, direct;
	int64_t ms;
} disk;

int64_t cap_now_ms(void)
{
	return disk.ms;
}

void cap_leave_cache(int fd, uint64_t size, uint64_t *advised)
{
	*advised = size;
}

ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at)
{
	if ((uint64_t)at >= disk.room) {
		errno = ENOSPC;
		return -1;
	}
	/* through the cache; and sometimes not all at once */
	assert_false(fcntl(fd, F_GETFL) & O_DIRECT);
	len = len > 100000 ? 100000 : len;
	return __real_pwrite(fd, data, (uint64_t)at + len > disk.room ? disk.room - (uint64_t)at : len, at);
}

int __wrap_aio_write(struct aiocb *cb);
int __wrap_aio_write(struct aiocb *cb)
{
	assert_int_equal(cb->aio_offset % CAP_PIECE, 0);
	assert_int_equal(cb->aio_nbytes, CAP_PIECE);
	assert_in_range(disk.n, 0, CAP_PIECES - 1);
	if (disk.no_order) {
		errno = EAGAIN;
		return -1;
	}
	disk.orders++;
	disk.order[disk.n++] = cb;
	disk.state[cb - disk.base] = EINPROGRESS;
	return 0;
}

/* The disk takes its oldest order. */
static void disk_takes(void)
{
	struct aiocb *cb = disk.order[0];
	int *state = &disk.state[cb - disk.base];

	assert_true(disk.n);
	memmove(disk.order, disk.order + 1, --disk.n * sizeof(struct aiocb *));
	*state = disk.refuses;
	if (!*state && (uint64_t)cb->aio_offset + CAP_PIECE > disk.room)
		*state = ENOSPC;
	disk.direct += (fcntl(cb->aio_fildes, F_GETFL) & O_DIRECT) != 0;
	disk.result[cb - disk.base] = disk.half ? CAP_PIECE / 2 : CAP_PIECE;
	if (!*state)
		assert_int_equal(__real_pwrite(cb->aio_fildes, (const void *)(uintptr_t)cb->aio_buf,
		                     (size_t)disk.result[cb - disk.base], cb->aio_offset),
		    disk.result[cb - disk.base]);
}

int __wrap_aio_error(const struct aiocb *cb);
int __wrap_aio_error(const struct aiocb *cb)
{
	return disk.state[cb - disk.base];
}

ssize_t __wrap_aio_return(struct aiocb *cb);
ssize_t __wrap_aio_return(struct aiocb *cb)
{
	assert_int_equal(disk.state[cb - disk.base], 0);
	return disk.result[cb - disk.base];
}

int __wrap_aio_suspend(const struct aiocb *const list[], int n, const struct timespec *most);
int __wrap_aio_suspend(const struct aiocb *const list[], int n, const struct timespec *most)
{
	assert_int_equal(n, 1);
	while (disk.state[list[0] - disk.base] == EINPROGRESS)
		disk_takes();
	return 0;
}

/* --- the writer and what it was given --------------------------------------------------------- */

#define BYTES (64u << 20)

struct world {
	struct cap_writer w;
	uint8_t *data;
	size_t given;
	int fd;
	char path[64];
};

static int begin(void **state)
{
	struct world *k = calloc(1, sizeof(*k));
	uint64_t r = 1;

	assert_non_null(k);
	k->data = malloc(BYTES);
	assert_non_null(k->data);
	for (size_t i = 0; i < BYTES; i += 8)
		memcpy(k->data + i, &(uint64_t){rng_next(&r)}, 8);
	snprintf(k->path, sizeof(k->path), "/tmp/roceway-write-XXXXXX");
	k->fd = mkstemp(k->path);
	assert_true(k->fd >= 0);
	memset(&disk, 0, sizeof(disk));
	disk.room = UINT64_MAX;
	disk.base = k->w.order;
	assert_true(cap_writer_begin(&k->w, k->fd, true));
	*state = k;
	return 0;
}

static int end(void **state)
{
	struct world *k = *state;

	cap_writer_free(&k->w);
	close(k->fd);
	unlink(k->path);
	free(k->data);
	free(k);
	return 0;
}

/* Whether the file system of /tmp can write past the cache: a tmpfs of Linux before 6.6 cannot. */
static bool can_pass(const struct world *k)
{
	const int flags = fcntl(k->fd, F_GETFL);
	const bool can = fcntl(k->fd, F_SETFL, flags | O_DIRECT) == 0;

	(void)fcntl(k->fd, F_SETFL, flags);
	return can;
}

static bool give(struct world *k, size_t len)
{
	k->given += len;
	return cap_writer_add(&k->w, k->data + k->given - len, len);
}

/* Whether the file has the first `len` bytes and no more. */
static void check_file(const struct world *k, size_t len)
{
	uint8_t *got = malloc(len + 1);
	const int fd = open(k->path, O_RDONLY);

	assert_non_null(got);
	assert_true(fd >= 0);
	for (size_t at = 0; at < len;) {
		const ssize_t n = read(fd, got + at, len + 1 - at);

		assert_true(n > 0);
		at += (size_t)n;
		assert_true(at <= len);
	}
	assert_memory_equal(got, k->data, len);
	close(fd);
	free(got);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Any sizes, a disk of any speed, flushes now and then, and one that refuses, or writes by half. */
static void test_random(void **state)
{
	struct world *k = *state;

	for (unsigned seed = 1; seed <= 6; seed++) {
		uint64_t r = seed;
		const unsigned speed = (unsigned)rng_below(&r, 8);

		if (seed > 1)
			assert_int_equal(ftruncate(k->fd, 0), 0);
		assert_true(cap_writer_begin(&k->w, k->fd, true));
		k->given = 0;
		disk.refuses = 0;
		disk.half = false;
		while (k->given < (24u << 20)) {
			if (!give(k, 4 * (1 + rng_below(&r, 1u << rng_below(&r, 19)))))
				fail_msg("seed %u", seed);
			disk.ms += (int64_t)rng_below(&r, 20);
			if (disk.n && rng_below(&r, 8) < speed)
				disk_takes();
			if (rng_below(&r, 4) == 0 && !cap_writer_flush(&k->w, false))
				fail_msg("seed %u", seed);
			if (seed % 3 == 0 && k->given > (12u << 20))
				disk.refuses = EINVAL;
			disk.half = seed % 3 == 1 && k->given > (12u << 20);
			disk.no_order = rng_below(&r, 16) == 0;
		}
		if (!cap_writer_flush(&k->w, true) || k->w.size != k->given)
			fail_msg("seed %u", seed);
		check_file(k, k->given);
	}
	assert_true(disk.orders > 40 && (disk.direct > 20 || !can_pass(k)));
}

/* A busy disk gets the cache's help until it has taken everything. */
static void test_busy(void **state)
{
	struct world *k = *state;

	if (!can_pass(k))
		skip();
	assert_true(give(k, 16 * CAP_PIECE));
	assert_int_equal(disk.n, 16);
	assert_true(fcntl(k->fd, F_GETFL) & O_DIRECT);
	assert_true(give(k, CAP_PIECE));
	assert_false(fcntl(k->fd, F_GETFL) & O_DIRECT);
	while (disk.n > 3)
		disk_takes();
	assert_true(give(k, CAP_PIECE));
	assert_int_equal(disk.direct, 0);
	while (disk.n)
		disk_takes();
	assert_true(cap_writer_flush(&k->w, false));
	assert_true(give(k, CAP_PIECE));
	disk_takes();
	assert_int_equal(disk.direct, 1);
	/* all pieces are on their way: the next one waits for the oldest */
	assert_true(give(k, (CAP_PIECES + 3) * CAP_PIECE + 4));
	assert_true(cap_writer_flush(&k->w, true));
	assert_int_equal(k->w.size, k->given);
	check_file(k, k->given);
}

/* Bytes wait for their piece, but not for long; the rest of it follows them through the cache. */
static void test_flush(void **state)
{
	struct world *k = *state;

	assert_true(give(k, 5000));
	disk.ms += 249;
	assert_true(cap_writer_flush(&k->w, false));
	assert_int_equal(k->w.size, 0);
	disk.ms += 1;
	assert_true(cap_writer_flush(&k->w, false));
	assert_int_equal(k->w.size, 5000);
	check_file(k, 5000);
	if (!can_pass(k))
		skip();
	assert_true(give(k, 2 * CAP_PIECE));
	assert_int_equal(k->w.size, CAP_PIECE);
	assert_int_equal(disk.n, 1);
	disk.ms += 1000; /* one is on its way: what is behind it waits */
	assert_true(cap_writer_flush(&k->w, false));
	assert_int_equal(k->w.size, CAP_PIECE);
	disk_takes();
	assert_true(cap_writer_flush(&k->w, false));
	assert_int_equal(k->w.size, k->given);
	check_file(k, k->given);
}

/* A file system that cannot write past the cache is asked once. */
static void test_refused(void **state)
{
	struct world *k = *state;

	if (!can_pass(k))
		skip();
	assert_true(give(k, 5 * CAP_PIECE));
	disk.refuses = EINVAL;
	while (disk.n)
		disk_takes();
	assert_true(give(k, 5 * CAP_PIECE + 12));
	assert_true(cap_writer_flush(&k->w, true));
	assert_int_equal(disk.orders, 6);
	assert_int_equal(k->w.size, k->given);
	check_file(k, k->given);
}

/* A full disk: what had room is there, and its size is known. */
static void test_full(void **state)
{
	static const uint64_t rooms[] = {0, 4096, CAP_PIECE, 3 * CAP_PIECE + 100, 9 * CAP_PIECE - 4};
	struct world *k = *state;

	for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		assert_int_equal(ftruncate(k->fd, 0), 0);
		k->w.now = k->w.queued = k->w.first = 0; /* a failed writer is not used again: but here */
		k->w.free = UINT32_MAX - 1;
		disk.n = 0;
		disk.room = rooms[i];
		k->given = 0;
		assert_true(cap_writer_begin(&k->w, k->fd, true));
		errno = 0;
		assert_false(give(k, 9 * CAP_PIECE) && cap_writer_flush(&k->w, true));
		assert_int_equal(errno, ENOSPC);
		assert_int_equal(k->w.size, rooms[i]);
		check_file(k, rooms[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_random, begin, end),
	    cmocka_unit_test_setup_teardown(test_busy, begin, end),
	    cmocka_unit_test_setup_teardown(test_flush, begin, end),
	    cmocka_unit_test_setup_teardown(test_refused, begin, end),
	    cmocka_unit_test_setup_teardown(test_full, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
