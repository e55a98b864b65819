/* SPDX-License-Identifier: Apache-2.0 */
/* 1F1B; see pipe.h. */
#include "tests/sim/dc/pipe.h"

#include <string.h>

static unsigned warm_up(const struct pipe_cfg *c, unsigned stage)
{
	unsigned far = (stage < c->boundary) + (stage < c->boundary2),
	         w = c->stages - stage - 1 + far * c->early;

	return w < c->micro ? w : c->micro;
}

enum pipe_kind pipe_op(const struct pipe_cfg *c, unsigned stage, unsigned op, unsigned *micro)
{
	unsigned w = warm_up(c, stage), steady = op - w;

	if (op < w) {
		*micro = op;
		return PIPE_FWD;
	}
	if (steady < 2 * (c->micro - w)) {
		*micro = steady / 2 + (steady % 2 ? 0 : w);
		return steady % 2 ? PIPE_BWD : PIPE_FWD;
	}
	*micro = op - c->micro;
	return PIPE_BWD;
}

static rwy_dur pass_time(const struct pipe_cfg *c, unsigned stage, enum pipe_kind kind)
{
	const rwy_dur time[2][2] = {{c->fwd, c->bwd}, {c->fwd2, c->bwd2}};

	return time[stage >= c->boundary && c->fwd2 > 0][kind];
}

static void span(struct pipe *p, unsigned stage, enum pipe_span what, unsigned micro, rwy_time now)
{
	struct pipe_stage *s = &p->stage[stage];

	if (now > s->since) {
		s->spent[what] += now - s->since;
		if (p->ops->span)
			p->ops->span(p->ctx, stage, what, micro, s->since, now);
	}
	s->since = now;
}

/* Starts the stage's next pass if it can. */
static void proceed(struct pipe *p, unsigned stage, rwy_time now)
{
	struct pipe_stage *s = &p->stage[stage];
	enum pipe_kind kind;
	unsigned micro;

	if (s->computing || s->sending || s->done)
		return;
	if (s->op == 2 * p->cfg.micro) {
		s->done = now;
		if (!--p->running)
			p->done = now;
		return;
	}
	kind = pipe_op(&p->cfg, stage, s->op, &micro);
	if (stage != (kind == PIPE_FWD ? 0 : p->cfg.stages - 1) && s->arrived[kind] <= micro)
		return;
	span(p, stage, PIPE_SPAN_WAIT, micro, now);
	s->computing = true;
	p->ops->compute(p->ctx, stage, pass_time(&p->cfg, stage, kind), now);
}

void pipe_start(
    struct pipe *p, const struct pipe_cfg *cfg, const struct pipe_ops *ops, void *ctx, rwy_time now)
{
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	p->ops = ops;
	p->ctx = ctx;
	p->running = cfg->stages;
	for (unsigned i = 0; i < cfg->stages; i++)
		p->stage[i].since = now;
	for (unsigned i = 0; i < cfg->stages; i++)
		proceed(p, i, now);
}

void pipe_computed(struct pipe *p, unsigned stage, rwy_time now)
{
	struct pipe_stage *s = &p->stage[stage];
	unsigned micro;
	enum pipe_kind kind = pipe_op(&p->cfg, stage, s->op, &micro);

	span(p, stage, kind == PIPE_FWD ? PIPE_SPAN_FWD : PIPE_SPAN_BWD, micro, now);
	s->op++;
	s->computing = false;
	if (stage != (kind == PIPE_FWD ? p->cfg.stages - 1 : 0)) {
		s->sending = !p->cfg.overlap;
		p->ops->send(p->ctx, stage, kind, now);
	}
	proceed(p, stage, now);
}

void pipe_arrived(struct pipe *p, unsigned stage, enum pipe_kind kind, rwy_time now)
{
	p->stage[stage].arrived[kind]++;
	proceed(p, stage, now);
}

void pipe_sent(struct pipe *p, unsigned stage, rwy_time now)
{
	struct pipe_stage *s = &p->stage[stage];
	unsigned micro;

	if (!s->sending)
		return;
	pipe_op(&p->cfg, stage, s->op - 1, &micro);
	span(p, stage, PIPE_SPAN_SEND, micro, now);
	s->sending = false;
	proceed(p, stage, now);
}
