/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a capture. When the disk is full the file is cut behind its last whole block, so it
 * stays readable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/roceway/capture.h"

#define PATH_MAX_LEN 4096

/* The name of file `number` of a ring: NAME.pcapng -> NAME.00007.pcapng. */
static void ring_name(const struct cap_file *f, unsigned number, char *out, size_t size)
{
	const char *slash = strrchr(f->path, '/'), *dot = strrchr(slash ? slash : f->path, '.');
	const int n = dot ? (int)(dot - f->path) : (int)strlen(f->path);

	snprintf(out, size, "%.*s.%05u%s", n, f->path, number, dot ? dot : "");
}

static const char *name_of(const struct cap_file *f, char *buf, size_t size)
{
	if (!f->ring)
		return f->path;
	ring_name(f, f->number, buf, size);
	return buf;
}

static bool fail(struct cap_file *f, const char *what)
{
	char buf[PATH_MAX_LEN];

	f->failed = true;
	cli_error("cannot %s %s: %s", what,
	    strcmp(f->path, "-") != 0 ? name_of(f, buf, sizeof(buf)) : "standard output", strerror(errno));
	return false;
}

/* Opens the first file, or the next one. */
static bool file_open(struct cap_file *f)
{
	char buf[PATH_MAX_LEN];
	const bool own = strcmp(f->path, "-") != 0;

	f->size = 0;
	f->packets_before = f->added;
	f->number++;
	f->fd = STDOUT_FILENO;
	if (own)
		f->fd = open(name_of(f, buf, sizeof(buf)), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (f->fd < 0 || !cap_writer_begin(&f->writer, f->fd, own))
		return fail(f, "write");
	if (f->ring && f->number > f->ring) {
		ring_name(f, f->number - f->ring, buf, sizeof(buf));
		(void)unlink(buf);
	}
	return true;
}

/* The disk is full. The file ends with the last block that is whole, and its packets are those that
 * count as written. */
static void cut(struct cap_file *f)
{
	const uint64_t piece = f->writer.size / CAP_PIECE;
	struct cap_mark at = piece ? f->mark[piece % CAP_MARKS] : (struct cap_mark){0};
	char self[64];
	uint32_t head[2]; /* type and length of a block */
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	fd = open(self, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && at.offset + CAP_BLOCK_MIN <= f->writer.size &&
	       pread(fd, head, sizeof(head), (off_t)at.offset) == sizeof(head) && head[1] >= CAP_BLOCK_MIN &&
	       head[1] <= f->writer.size - at.offset) {
		at.offset += head[1];
		at.packets += head[0] == CAP_PACKET;
	}
	if (fd >= 0)
		close(fd);
	if (ftruncate(f->fd, (off_t)at.offset))
		cli_error("its last packet is cut");
	f->packets = f->packets_before + at.packets;
}

/* After a write that failed. */
static bool write_failed(struct cap_file *f)
{
	const int why = errno;

	if (f->writer.seeks)
		cut(f);
	errno = why;
	return fail(f, "write");
}

bool cap_file_flush(struct cap_file *f, bool all)
{
	if (f->fd < 0 || f->failed)
		return !f->failed;
	if (!cap_writer_flush(&f->writer, all))
		return write_failed(f);
	if (f->writer.size == f->size)
		f->packets = f->added;
	return true;
}

/* Remembers the block at the file's end, if a piece ends within it or at its end. */
static void mark(struct cap_file *f, size_t len, bool packet)
{
	const uint64_t end = f->size + len;

	for (uint64_t n = f->size / CAP_PIECE + 1; n <= end / CAP_PIECE; n++)
		f->mark[n % CAP_MARKS] = n * CAP_PIECE < end
		                             ? (struct cap_mark){f->size, f->added - f->packets_before}
		                             : (struct cap_mark){end, f->added - f->packets_before + packet};
}

static bool add(struct cap_file *f, const uint8_t *block, size_t len)
{
	const bool packet = cap_block_type(block) == CAP_PACKET;

	mark(f, len, packet);
	f->size += len;
	f->added += packet;
	return cap_writer_add(&f->writer, block, len) || write_failed(f);
}

static bool add_head(struct cap_file *f)
{
	bool ok = true;

	for (size_t at = 0, n; ok && at < f->head_len; at += n) {
		n = cap_block_len(f->head + at);
		ok = add(f, f->head + at, n);
	}
	return ok;
}

bool cap_file_head(struct cap_file *f, const uint8_t *block, size_t len)
{
	uint8_t *more = realloc(f->head, f->head_len + len);

	if (!more) {
		cli_error("out of memory");
		return false;
	}
	f->head = more;
	memcpy(f->head + f->head_len, block, len);
	f->head_len += len;
	return cap_file_add(f, block, len);
}

/* Goes on to the next file of the ring. */
static bool next_file(struct cap_file *f)
{
	if (!cap_file_flush(f, true))
		return false;
	close(f->fd);
	return file_open(f) && add_head(f);
}

bool cap_file_add(struct cap_file *f, const uint8_t *block, size_t len)
{
	if (f->fd < 0 && !file_open(f))
		return false;
	if (f->ring && f->size > f->head_len && f->size + len > f->max && !next_file(f))
		return false;
	return add(f, block, len);
}

void cap_file_close(struct cap_file *f)
{
	cap_writer_free(&f->writer);
	if (f->fd >= 0 && f->fd != STDOUT_FILENO)
		close(f->fd);
	free(f->head);
}
