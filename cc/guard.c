/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads answers of an algorithm and clamps them. Called once per ACK, not per datagram. limits.h
 * has the bounds; wan/ counts violations.
 */
#include "cc/guard.h"
#include "cc/limits.h"

unsigned cc_guard_ask(
    const struct cc_ops *ops, const void *state, const struct cc_cfg *cfg, struct cc_answer *out)
{
	uint64_t rate = ops->rate(state), window = ops->window(state);

	out->rate_Bps = cc_limit_rate(cfg, rate);
	out->window = cc_limit_window(cfg, window);
	return (unsigned)(out->rate_Bps != rate) + (unsigned)(out->window != window);
}

/* A time in the past only means that the tick is due. A next() that never advances must not keep
 * the worker awake. */
rwy_time cc_guard_next(const struct cc_ops *ops, const void *state, rwy_time ticked)
{
	if (!ops->next || !ops->on_tick)
		return RWY_NEVER;
	return rwy_time_max(ops->next(state), ticked + CC_TICK_MIN);
}

void cc_guard_print(const struct cc_ops *ops, const void *state, char *out, size_t size)
{
	if (!size)
		return;
	out[0] = '\0';
	if (ops->print)
		ops->print(state, out, size);
	out[size - 1] = '\0';
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
}
