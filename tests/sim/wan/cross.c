/* SPDX-License-Identifier: Apache-2.0 */
/* Cross traffic; see cross.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/wan/cross.h"

#define WIRE 38 /* preamble 8, Ethernet 14, FCS 4, gap 12 */

static bool class_of(const char *word, size_t len, struct cross_class *c)
{
	char name[16];
	size_t n = strcspn(word, ":,");
	char *end = NULL;

	if (n >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)n, word);
	c->ops = cc_find(name);
	c->n = 1;
	if (n < len && word[n] == ':') {
		unsigned long v = strtoul(word + n + 1, &end, 10);

		if (end != word + len || word[n + 1] < '1' || word[n + 1] > '9' || v > CROSS_FLOWS)
			return false;
		c->n = (unsigned)v;
	}
	return c->ops;
}

unsigned cross_parse(const char *word, struct cross_class *v, const char **bad)
{
	unsigned n = 0, flows = 0;

	for (*bad = word; *word; n++) {
		size_t len = strcspn(word, ",");

		*bad = word;
		if (n == CROSS_CLASSES || !class_of(word, len, &v[n]) || (flows += v[n].n) > CROSS_FLOWS)
			return 0;
		word += len;
		if (*word == ',' && !*++word)
			return 0;
	}
	return n;
}

static void soonest(struct cross *c)
{
	c->next = RWY_NEVER;
	for (unsigned i = 0; i < c->n; i++)
		if (c->flow[i].next < c->next) {
			c->next = c->flow[i].next;
			c->next_of = i;
		}
}

bool cross_init(struct cross *c, const struct scen *s, struct line *line, rwy_time start, uint64_t seed)
{
	struct cross_class class[CROSS_CLASSES];
	const char *bad;
	unsigned classes = cross_parse(s->cross, class, &bad);

	memset(c, 0, sizeof(*c));
	c->flow = calloc(CROSS_FLOWS, sizeof(*c->flow));
	for (unsigned k = 0; c->flow && k < classes; k++) {
		for (unsigned i = 0; i < class[k].n; i++, c->n++) {
			struct tcp_cfg t = {.ops = class[k].ops,
			    .line = line,
			    .rtt = (rwy_dur)s->rtt,
			    .loss = s->loss,
			    .burst = s->burst,
			    .mtu = (uint32_t)s->cross_mtu,
			    .overhead = WIRE,
			    .start = start + (rwy_time)(s->cross_start + c->n * s->cross_gap),
			    .stop = s->cross_stop > 0 ? start + (rwy_time)s->cross_stop : RWY_NEVER,
			    .seed = rng_next(&seed)};

			t.start += rng_next(&seed) % RWY_MS; /* so that no two are in step */
			if (!tcp_init(&c->flow[c->n], &t))
				return false;
		}
	}
	soonest(c);
	return c->flow;
}

void cross_fini(struct cross *c)
{
	for (unsigned i = 0; i < c->n; i++)
		tcp_fini(&c->flow[i]);
	free(c->flow);
}

void cross_run(struct cross *c)
{
	tcp_run(&c->flow[c->next_of]);
	soonest(c);
}

uint64_t cross_passed(const struct cross *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < c->n; i++)
		sum += c->flow[i].passed;
	return sum;
}
