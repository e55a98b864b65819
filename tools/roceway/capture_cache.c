/* SPDX-License-Identifier: Apache-2.0 */
/* A file that goes through the page cache and does not stay there. */
#include <fcntl.h>
#include <time.h>

#include "tools/roceway/capture_write.h"

#define CACHE_STEP   (1u << 20)  /* bytes that are written between two pieces of advice */
#define CACHE_WINDOW (80u << 20) /* of the file's end that advice is about */
#define SLOW_MS      10          /* a disk for which advice waits longer than this is busy, */
#define SLOW_STEP    (64u << 20) /* and the cache takes so much before the next advice */

int64_t cap_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
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
