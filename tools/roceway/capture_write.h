/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a capture's file in large pieces, past the page cache, while its caller fills others.
 * Called by one thread.
 */
#ifndef TOOLS_ROCEWAY_CAPTURE_WRITE_H
#define TOOLS_ROCEWAY_CAPTURE_WRITE_H

#include <aio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAP_PIECE  (1u << 20) /* bytes that are written at once */
#define CAP_PIECES 32u

/* Zeroed memory is one that has not begun. */
struct cap_writer {
	int fd;
	bool seeks;        /* a regular file, written from its beginning on */
	bool may_pass;     /* writes may go past the page cache */
	bool passes_cache; /* and do so now */
	uint8_t *mem;      /* CAP_PIECES pieces */
	uint32_t free;     /* of these, as bits */

	/* pieces on their way to the disk, oldest first, and the order of each */
	unsigned queue[CAP_PIECES], first, queued;
	struct aiocb order[CAP_PIECES];

	unsigned now;        /* the piece that is filled */
	size_t len, flushed; /* its bytes, and how many of them are written */
	int64_t since;       /* when the first one that is not came, ms */
	uint64_t size;       /* bytes that are surely written, from the file's beginning on */
	uint64_t advised;    /* cap_leave_cache() */
};
/* Begins a file; own: this program has opened it, so its first byte is the writer's. False, with
 * errno. */
bool cap_writer_begin(struct cap_writer *w, int fd, bool own);
/* Copies the bytes, and writes when they are many. False, with errno: `size` bytes are written. */
bool cap_writer_add(struct cap_writer *w, const uint8_t *data, size_t len);
/* Writes what has waited for long, or all; with all it waits for the disk. Of a pipe it writes all
 * at once. False as above. */
bool cap_writer_flush(struct cap_writer *w, bool all);
/* Waits for pieces on their way. The file is not closed. */
void cap_writer_free(struct cap_writer *w);
/* Keeps a file of `size` bytes, which grows at its end, from filling the page cache. Called after
 * each write. *advised: 0 at first, then its own. It may wait for a busy disk, and leaves the next
 * 64 MiB to the kernel if it did. */
void cap_leave_cache(int fd, uint64_t size, uint64_t *advised);

int64_t cap_now_ms(void); /* CLOCK_MONOTONIC */

#endif
