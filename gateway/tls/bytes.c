/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tls/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "aead/schedule.h"
#include "rwy/err.h"

int gw_bytes_put(struct gw_bytes *b, const void *p, size_t n)
{
	if (b->at == b->n)
		b->at = b->n = 0;
	if (b->n + n > b->room) {
		size_t room = b->n + n < 4096 ? 4096 : b->n + n;
		uint8_t *more = room <= GW_BYTES_MAX ? realloc(b->p, room) : NULL;

		if (!more)
			return RWY_ENOMEM;
		b->p = more;
		b->room = room;
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

void gw_bytes_free(struct gw_bytes *b)
{
	if (b->p)
		aead_wipe(b->p, b->room);
	free(b->p);
}
