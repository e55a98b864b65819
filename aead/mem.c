/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for keys. */
#include <string.h>
#include <sys/mman.h>

#include "aead/schedule.h"

void aead_wipe(void *p, size_t n)
{
	explicit_bzero(p, n);
}

void *aead_mem_alloc(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Best effort: an old kernel or a low limit is no reason to go without keys. */
	(void)madvise(p, n, MADV_DONTDUMP);
	(void)madvise(p, n, MADV_WIPEONFORK);
	(void)mlock(p, n);
	return p;
}

void aead_mem_free(void *p, size_t n)
{
	if (!p)
		return;
	aead_wipe(p, n);
	munmap(p, n);
}
