/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wraps malloc (linker option --wrap) for the engines' one very large block: the copies for forward
 * error correction, wan/fec/rx.c. malloc would return it to the kernel and get it back page by page
 * for each world, so it is kept from world to world. Nobody relies on its content. And any may fail
 * (heap.h).
 */
#include <stdbool.h>
#include <stddef.h>

#include "tests/sim/heap.h"

#define BIG  ((size_t)32 << 20)
#define KEPT 4

#ifdef __SANITIZE_ADDRESS__
#define KEEP 0
#else
#define KEEP 1
#endif

void *__real_malloc(size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *p);

static struct {
	void *p;
	bool used;
} kept[KEPT];

void *__wrap_malloc(size_t size)
{
	if (sim_heap_fails())
		return NULL;
	if (!KEEP || size != BIG)
		return __real_malloc(size);
	for (unsigned i = 0; i < KEPT; i++) {
		if (kept[i].used)
			continue;
		if (!kept[i].p)
			kept[i].p = __real_malloc(size);
		kept[i].used = kept[i].p;
		return kept[i].p;
	}
	return __real_malloc(size);
}

void __wrap_free(void *p)
{
	for (unsigned i = 0; p && i < KEPT; i++)
		if (kept[i].p == p) {
			kept[i].used = false;
			return;
		}
	__real_free(p);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return sim_heap_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return sim_heap_fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return sim_heap_fails() ? NULL : __real_aligned_alloc(align, size);
}
