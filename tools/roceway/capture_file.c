/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a capture. Blocks are written in whole chunks; when the disk is full the file is cut
 * behind its last whole chunk, so it stays readable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/roceway/capture.h"

#define PATH_MAX_LEN 4096
#define CACHE_STEP   (1u << 20)  /* bytes that are written between two pieces of advice */
#define CACHE_WINDOW (80u << 20) /* of the file's end that advice is about */
#define SLOW_MS      10          /* a disk for which advice waits longer than this is busy, */
#define SLOW_STEP    (64u << 20) /* and the cache takes so much before the next advice */

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

static bool fail(const struct cap_file *f, const char *what)
{
	char buf[PATH_MAX_LEN];

	cli_error("cannot %s %s: %s", what,
	    strcmp(f->path, "-") != 0 ? name_of(f, buf, sizeof(buf)) : "standard output", strerror(errno));
	return false;
}

/* Opens the first file, or the next one. */
static bool file_open(struct cap_file *f)
{
	char buf[PATH_MAX_LEN];

	f->size = f->advised = 0;
	f->number++;
	if (!strcmp(f->path, "-")) {
		f->fd = STDOUT_FILENO;
		return true;
	}
	f->fd = open(name_of(f, buf, sizeof(buf)), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return fail(f, "write");
	if (f->ring && f->number > f->ring) {
		ring_name(f, f->number - f->ring, buf, sizeof(buf));
		(void)unlink(buf);
	}
	return true;
}

static bool write_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/*
 * A capture is larger than what anybody reads of it soon. In the page cache it takes a new page of
 * memory for each page of the file, which costs more than to write it, and it pushes out what other
 * programs need. The advice starts to write what is new and frees what is on the disk. A burst that
 * the disk cannot take stays in the cache.
 */
void cap_leave_cache(int fd, uint64_t size, uint64_t *advised)
{
	const uint64_t from = size > CACHE_WINDOW ? size - CACHE_WINDOW : 0;
	int64_t start;

	if (size < *advised + CACHE_STEP)
		return;
	start = cap_now_ms();
	/* A pipe has no cache: the error says nothing new. */
	(void)posix_fadvise(fd, (off_t)from, (off_t)(size - from), POSIX_FADV_DONTNEED);
	*advised = cap_now_ms() - start > SLOW_MS ? size + SLOW_STEP : size;
}

bool cap_file_flush(struct cap_file *f)
{
	if (!f->wait_len && !f->run_len)
		return true;
	if (f->fd < 0 && !file_open(f))
		return false;
	if (!write_all(f->fd, f->wait, f->wait_len) || !write_all(f->fd, f->run, f->run_len)) {
		const int why = errno;
		struct stat st;

		if (!fstat(f->fd, &st) && S_ISREG(st.st_mode) && ftruncate(f->fd, (off_t)f->size))
			cli_error("its last packet is cut");
		errno = why;
		return fail(f, "write");
	}
	f->size += f->wait_len + f->run_len;
	f->wait_len = f->run_len = 0;
	f->packets += f->wait_packets;
	f->wait_packets = 0;
	cap_leave_cache(f->fd, f->size, &f->advised);
	return true;
}

static bool append(uint8_t **to, size_t *len, size_t *max, const uint8_t *block, size_t n)
{
	if (*len + n > *max) {
		const size_t want = (*len + n) * 2;
		uint8_t *more = realloc(*to, want);

		if (!more) {
			cli_error("out of memory");
			return false;
		}
		*to = more;
		*max = want;
	}
	memcpy(*to + *len, block, n);
	*len += n;
	return true;
}

bool cap_file_head(struct cap_file *f, const uint8_t *block, size_t len)
{
	size_t max = f->head_len;

	return append(&f->head, &f->head_len, &max, block, len) && cap_file_add(f, block, len);
}

/* Goes on to the next file of the ring. */
static bool next_file(struct cap_file *f)
{
	if (!cap_file_flush(f))
		return false;
	close(f->fd);
	return file_open(f) && append(&f->wait, &f->wait_len, &f->wait_max, f->head, f->head_len);
}

bool cap_file_add(struct cap_file *f, const uint8_t *block, size_t len)
{
	const uint64_t now = f->size + f->wait_len + f->run_len;

	if (f->ring && now > f->head_len && now + len > f->max && !next_file(f))
		return false;
	f->wait_packets += cap_block_type(block) == CAP_PACKET;
	if (f->stays && (!f->run_len || f->run + f->run_len == block)) {
		if (!f->run_len)
			f->run = block;
		f->run_len += len;
		return true;
	}
	if (f->run_len && !cap_file_flush(f))
		return false;
	return append(&f->wait, &f->wait_len, &f->wait_max, block, len);
}

void cap_file_close(struct cap_file *f)
{
	if (f->fd >= 0 && f->fd != STDOUT_FILENO)
		close(f->fd);
	free(f->head);
	free(f->wait);
}
