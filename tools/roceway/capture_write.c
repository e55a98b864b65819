/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is written in large pieces, past the page cache, beside the thread that fills them. For a
 * file of gigabytes the kernel would make a page of the cache, copy into it and throw it away for
 * each page of the file: that takes several times the processor time of a disk that reads the
 * memory itself. POSIX AIO has the thread and keeps the order of the writes.
 *
 * A piece begins at a multiple of its size in the file. Bytes that have waited too long are flushed
 * through the cache, and so is the rest of their piece.
 */
#include <aio.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/roceway/capture_write.h"

#define HUGE_PAGE (2u << 20)
#define FLUSH_MS  250              /* bytes wait so long at most for the rest of their piece */
#define BUSY      (CAP_PIECES / 2) /* with so many pieces on their way the cache helps the disk */
#define NO_PIECE  CAP_PIECES

static_assert(CAP_PIECES == 32, "the free pieces are the bits of a word");

static uint8_t *piece_of(const struct cap_writer *w, unsigned n)
{
	return w->mem + (size_t)n * CAP_PIECE;
}

/* Whether writes that begin now go past the page cache. A file system may not have that. */
static void pass_cache(struct cap_writer *w, bool pass)
{
	int flags;

	if (pass == w->passes_cache)
		return;
	if (pass)
		cap_leave_cache(w->fd, w->size, &w->advised); /* bytes that took it before */
	flags = fcntl(w->fd, F_GETFL);
	if (flags >= 0 && fcntl(w->fd, F_SETFL, pass ? flags | O_DIRECT : flags & ~O_DIRECT) == 0)
		w->passes_cache = pass;
	else
		w->may_pass = false;
}

/* Writes at this offset of a regular file, or behind what another one got last. Adds to *done what
 * was written. */
static bool write_all(struct cap_writer *w, const uint8_t *data, size_t len, uint64_t offset, uint64_t *done)
{
	while (len) {
		const ssize_t n =
		    w->seeks ? pwrite(w->fd, data, len, (off_t)offset) : write(w->fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
		offset += (size_t)n;
		*done += (size_t)n;
	}
	return true;
}

/* --- pieces on their way ---------------------------------------------------------------------- */

static int state_of(struct cap_writer *w, unsigned n, bool wait)
{
	const struct aiocb *const cb = &w->order[n];

	while (wait && aio_error(cb) == EINPROGRESS)
		(void)aio_suspend(&cb, 1, NULL);
	return aio_error(cb);
}

static void queue_pop(struct cap_writer *w)
{
	w->free |= 1u << w->queue[w->first];
	w->first = (w->first + 1) % CAP_PIECES;
	w->queued--;
}

/* The oldest piece was not written, or not all of it: writes it and those behind it once more,
 * through the cache, which writes what there is room for and says what is wrong. */
static bool write_again(struct cap_writer *w)
{
	bool ok = true;

	for (unsigned i = 0; i < w->queued; i++)
		(void)state_of(w, w->queue[(w->first + i) % CAP_PIECES], true);
	w->may_pass = false;
	pass_cache(w, false);
	while (ok && w->queued) {
		ok = write_all(w, piece_of(w, w->queue[w->first]), CAP_PIECE, w->size, &w->size);
		if (ok)
			queue_pop(w);
	}
	return ok;
}

/* Looks after the pieces that have been written, or waits for all. */
static bool reap(struct cap_writer *w, bool all)
{
	while (w->queued) {
		const unsigned n = w->queue[w->first];
		const int state = state_of(w, n, all);

		if (state == EINPROGRESS)
			return true;
		if (state || aio_return(&w->order[n]) != CAP_PIECE)
			return write_again(w);
		w->size += CAP_PIECE;
		queue_pop(w);
		if (!w->passes_cache)
			cap_leave_cache(w->fd, w->size, &w->advised);
	}
	return true;
}

/* Writes the rest of the piece that is filled, here and now. No other one is on its way. */
static bool write_rest(struct cap_writer *w)
{
	const uint8_t *from = piece_of(w, w->now) + w->flushed;

	pass_cache(w, false);
	if (!write_all(w, from, w->len - w->flushed, w->size, &w->size))
		return false;
	w->flushed = w->len;
	cap_leave_cache(w->fd, w->size, &w->advised);
	return true;
}

/* Gives the full piece away to be written. */
static bool send_piece(struct cap_writer *w)
{
	struct aiocb *cb = &w->order[w->now];

	if (w->may_pass && (w->queued == 0 || w->queued >= BUSY))
		pass_cache(w, w->queued == 0);
	*cb = (struct aiocb){.aio_fildes = w->fd,
	    .aio_offset = (off_t)(w->size + (uint64_t)w->queued * CAP_PIECE),
	    .aio_buf = piece_of(w, w->now),
	    .aio_nbytes = CAP_PIECE,
	    .aio_sigevent = {.sigev_notify = SIGEV_NONE}};
	if (!w->may_pass || aio_write(cb))
		return reap(w, true) && write_rest(w);
	w->queue[(w->first + w->queued++) % CAP_PIECES] = w->now;
	w->now = NO_PIECE;
	return reap(w, false);
}

/* --- the caller's ----------------------------------------------------------------------------- */

/* Takes a piece to fill, if there is none; the same ones again and again, for the processor's
 * caches. */
static bool piece_take(struct cap_writer *w)
{
	if (w->now != NO_PIECE)
		return true;
	while (!w->free) { /* the disk is far behind */
		(void)state_of(w, w->queue[w->first], true);
		if (!reap(w, false))
			return false;
	}
	w->now = (unsigned)__builtin_ctz(w->free);
	w->free &= ~(1u << w->now);
	return true;
}

bool cap_writer_begin(struct cap_writer *w, int fd, bool own)
{
	struct stat st;

	w->fd = fd;
	w->seeks = own && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	w->may_pass = w->seeks;
	w->passes_cache = false;
	w->size = w->advised = 0;
	w->len = w->flushed = 0;
	if (w->mem)
		return true;
	w->mem = aligned_alloc(HUGE_PAGE, (size_t)CAP_PIECES * CAP_PIECE);
	if (!w->mem) {
		errno = ENOMEM;
		return false;
	}
	(void)madvise(w->mem, (size_t)CAP_PIECES * CAP_PIECE, MADV_HUGEPAGE);
	w->free = UINT32_MAX;
	w->now = NO_PIECE;
	return true;
}

bool cap_writer_add(struct cap_writer *w, const uint8_t *data, size_t len)
{
	while (len) {
		size_t n;

		if (!piece_take(w))
			return false;
		if (w->len == w->flushed)
			w->since = cap_now_ms();
		n = len < CAP_PIECE - w->len ? len : CAP_PIECE - w->len;
		memcpy(piece_of(w, w->now) + w->len, data, n);
		w->len += n;
		data += n;
		len -= n;
		if (w->len < CAP_PIECE)
			continue;
		if (!(w->flushed ? write_rest(w) : send_piece(w)))
			return false;
		w->len = w->flushed = 0;
	}
	return true;
}

bool cap_writer_flush(struct cap_writer *w, bool all)
{
	if (all)
		pass_cache(w, false); /* pieces that the disk has not begun need not wait for it */
	if (!reap(w, all))
		return false;
	if (w->len == w->flushed)
		return true;
	if (!all && w->may_pass && (w->queued || cap_now_ms() - w->since < FLUSH_MS))
		return true;
	return write_rest(w);
}

void cap_writer_free(struct cap_writer *w)
{
	for (; w->queued; queue_pop(w))
		(void)state_of(w, w->queue[w->first], true);
	free(w->mem);
}
