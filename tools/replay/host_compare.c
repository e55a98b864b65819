/* SPDX-License-Identifier: Apache-2.0 */
/* The host: what came, beside what was captured. Only what was captured is compared. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/replay/host_int.h"

void rp_differs(struct rp_host *h, uint64_t *count, const char *fmt, ...)
{
	va_list ap;

	if (count)
		++*count;
	if (h->differs[0])
		return;
	va_start(ap, fmt);
	vsnprintf(h->differs, sizeof(h->differs), fmt, ap);
	va_end(ap);
}

/* Bytes of the captured packet's payload that are known. */
static uint32_t known(const struct rp_pkt *p, const struct roce_pkt *want)
{
	uint32_t head = (uint32_t)(want->payload - want->ip);
	uint32_t n = p->captured > head ? p->captured - head : 0;

	return n < want->payload_len ? n : want->payload_len;
}

static bool payload_differs(const struct rp_pkt *p, const struct roce_pkt *want, const struct roce_pkt *got)
{
	return memcmp(want->payload, got->payload, known(p, want)) != 0;
}

void rp_compare_request(struct rp_host *h, const struct rp_pkt *want, const struct roce_pkt *got)
{
	struct rp_differences *d = &h->stats.differs;
	const uint32_t m = h->rx_msg, k = h->rx_pkt;
	struct roce_pkt w;

	rp_packet_get(h->cfg.schedule, want, &w);
	if (w.opcode != got->opcode)
		rp_differs(h, &d->operation, "message %u, packet %u: %s, captured %s", m, k, got->info->name,
		    w.info->name);
	else if (memcmp(w.ext, got->ext, w.info->ext_len) != 0)
		rp_differs(h, &d->header, "message %u, packet %u: other headers behind the BTH", m, k);
	else if (w.payload_len != got->payload_len)
		rp_differs(h, &d->length, "message %u, packet %u: %u bytes, captured %u", m, k,
		    got->payload_len, w.payload_len);
	else if (payload_differs(want, &w, got))
		rp_differs(h, &d->payload, "message %u, packet %u: another payload", m, k);
}

void rp_compare_answer(struct rp_host *h, const struct rp_pkt *want, const struct roce_pkt *got)
{
	const uint32_t m = h->mine->rd[h->rd_done];
	struct roce_pkt w;
	bool same;

	if (!want->len)
		return;
	rp_packet_get(h->cfg.schedule, want, &w);
	if (got->info->op == ROCE_OP_ATOMIC_ACK)
		same =
		    w.info->op == ROCE_OP_ATOMIC_ACK && roce_atomic_original(&w) == roce_atomic_original(got);
	else
		same = w.payload_len == got->payload_len && !payload_differs(want, &w, got);
	if (!same)
		rp_differs(h, &h->stats.differs.answer, "message %u: other data in the answer", m);
}
