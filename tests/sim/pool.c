/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/pool.h"

#include <stdlib.h>
#include <string.h>

#define STEP    512
#define CLASSES 40 /* of STEP bytes each; larger ones come from malloc */

#ifdef __SANITIZE_ADDRESS__
#define KEEP 0
#else
#define KEEP 1
#endif

static struct sim_buf *kept[CLASSES];

struct sim_buf *sim_buf_new(uint32_t headroom, uint32_t len)
{
	uint32_t room = headroom > SIM_ROOM ? headroom : SIM_ROOM;
	size_t size = sizeof(struct sim_buf) + room + len, c = (size + STEP - 1) / STEP;
	struct sim_buf *m = KEEP && c < CLASSES ? kept[c] : NULL;

	if (m) {
		kept[c] = m->next;
		__builtin_prefetch(m->next, 1);
	} else if (!(m = malloc(KEEP ? c * STEP : size))) {
		abort();
	}
	m->size_class = c;
	memset(&m->b, 0, sizeof(m->b));
	m->b.data = m->bytes + room;
	m->b.len = len;
	m->b.headroom = (uint16_t)room;
	return m;
}

void sim_buf_free(struct sim_buf *m)
{
	size_t c = m->size_class;

	if (!KEEP || c >= CLASSES) {
		free(m);
		return;
	}
	m->next = kept[c];
	kept[c] = m;
}
