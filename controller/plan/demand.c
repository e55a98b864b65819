/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bandwidth between two pipeline stages, from the model (white paper 4.2.3). One micro-batch's
 * activations go forth and its gradients back, of the same size:
 *
 *   bytes = sequence length x hidden size x micro-batch size x bytes of an element
 *
 * A step of m micro-batches over p stages takes (m + p - 1) times what a stage computes on one. A
 * transfer that takes no longer hides behind the computation of the next one. So
 *
 *   bandwidth = 8 x bytes x (m + p - 1) / step
 */
#include "controller/plan/ranks.h"

#define US_PER_S 1000000u

/* x *= y. false: 64 bits do not hold it. */
static bool times(uint64_t *x, uint64_t y)
{
	return !__builtin_mul_overflow(*x, y, x);
}

static int bytes_of(const struct plan_model *m, uint32_t tensor, uint64_t *bytes)
{
	*bytes = m->sequence_length;
	if (!times(bytes, m->hidden_size) || !times(bytes, m->micro_batch_size) ||
	    !times(bytes, m->element_bytes))
		return PLAN_ERANGE;
	if (*bytes == 0 || (m->sequence_parallel && *bytes % tensor))
		return RWY_EINVAL;
	if (m->sequence_parallel)
		*bytes /= tensor;
	return 0;
}

int plan_model_demand(struct plan_model_demand *out, const struct plan_model *m, uint32_t pipeline,
    uint32_t data, uint32_t tensor, uint64_t max_bps)
{
	uint64_t together = m->micro_batch_size, bits;
	unsigned __int128 bps;
	int rc;

	*out = (struct plan_model_demand){0};
	if (!pipeline || !data || !tensor || !m->step_us)
		return RWY_EINVAL;
	if (!times(&together, data))
		return PLAN_ERANGE;
	if (together == 0 || m->global_batch_size == 0 || m->global_batch_size % together)
		return RWY_EINVAL;
	rc = bytes_of(m, tensor, &out->bytes);
	if (rc)
		return rc;
	out->micro_batches = m->global_batch_size / together;
	out->transfer_us = m->transfer_us;
	if (!out->transfer_us)
		out->transfer_us = m->step_us / (out->micro_batches + pipeline - 1);
	bits = out->bytes;
	if (!out->transfer_us || !times(&bits, 8))
		return PLAN_ERANGE;
	bps = ((unsigned __int128)bits * US_PER_S + out->transfer_us - 1) / out->transfer_us;
	if (bps > max_bps)
		return PLAN_ERANGE;
	out->bandwidth_bps = (uint64_t)bps;
	return 0;
}
