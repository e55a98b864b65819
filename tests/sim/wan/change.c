/* SPDX-License-Identifier: Apache-2.0 */
/* A path that changes; see change.h. */
#include "tests/sim/wan/change.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/wan/paths.h"
#include "tests/sim/wan/stat.h"

#define ENOUGH      0.9
#define OVER        10            /* bins over which nine tenths must be reached */
#define SETTLE      (2 * RWY_SEC) /* or this many round trips: */
#define SETTLE_RTTS 40

/* Reads "3s:path=1,rtt=60ms,loss=1%"; now: the state of each path. */
static bool one(struct change *c, char *text, struct scen now[PATHS_MAX], char *err, size_t size)
{
	char *colon = strchr(text, ':'), *words, word[64];
	struct scen time;

	if (!colon) {
		snprintf(err, size, "changes: '%.40s' is not TIME:key=value,...", text);
		return false;
	}
	*colon = 0;
	words = colon + 1;
	scen_default(&time);
	snprintf(word, sizeof(word), "outage_from=%.40s", text);
	if (!scen_word(&time, word, "changes", err, size))
		return false;
	c->at = time.outage_from;
	if (strncmp(words, "path=", 5) == 0 && words[5] >= '0' && words[5] < '0' + PATHS_MAX &&
	    words[6] == ',') {
		c->path = (unsigned)(words[5] - '0');
		words += 7;
	}
	if (!paths_words(&now[c->path], words, "changes", err, size))
		return false;
	c->s = now[c->path];
	c->carry = paths_carry(&now[0], now);
	return true;
}

bool change_parse(const struct scen *s, struct change *out, unsigned *n, char *err, size_t size)
{
	char text[sizeof(s->changes)], *save;
	struct scen now[PATHS_MAX];

	*n = 0;
	if (!paths_parse(s, now, err, size))
		return false;
	snprintf(text, sizeof(text), "%s", s->changes);
	for (char *part = strtok_r(text, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		if (*n == CHANGES_MAX) {
			snprintf(err, size, "changes: more than %d", CHANGES_MAX);
			return false;
		}
		struct change *c = &out[*n];

		memset(c, 0, sizeof(*c));
		if (!one(c, part, now, err, size))
			return false;
		if (*n && c->at <= out[*n - 1].at) {
			snprintf(err, size, "changes: each must come after the one before");
			return false;
		}
		++*n;
	}
	return true;
}

/* Raises them to the largest of these paths. */
static void largest(const struct scen *s, const struct scen each[PATHS_MAX], double *rate, double *rtt)
{
	double sum = 0;

	for (unsigned k = 0; k < (unsigned)s->paths; k++) {
		sum += each[k].rate;
		*rtt = each[k].rtt > *rtt ? each[k].rtt : *rtt;
	}
	*rate = sum > *rate ? sum : *rate;
}

void change_largest(const struct scen *s, double *rate, double *rtt)
{
	struct change c[CHANGES_MAX];
	struct scen each[PATHS_MAX];
	unsigned n = 0;
	char err[160];

	*rate = *rtt = 0;
	if (!paths_parse(s, each, err, sizeof(err)))
		return;
	largest(s, each, rate, rtt);
	if (!*s->changes || !change_parse(s, c, &n, err, sizeof(err)))
		return;
	for (unsigned i = 0; i < n; i++) {
		each[c[i].path] = c[i].s;
		largest(s, each, rate, rtt);
	}
}

/* --- during a run --------------------------------------------------------------------------------- */
bool changes_init(struct changes *c, const struct scen *s, rwy_dur all)
{
	char err[160];

	memset(c, 0, sizeof(*c));
	if (!*s->changes)
		return true;
	c->bins = all / CHANGE_BIN + 2;
	c->bin = calloc(c->bins, sizeof(*c->bin));
	c->want = s->demand > 0 ? calloc(c->bins, sizeof(*c->want)) : NULL;
	return c->bin && (c->want || s->demand <= 0) && change_parse(s, c->c, &c->n, err, sizeof(err));
}

void changes_fini(struct changes *c)
{
	free(c->bin);
	free(c->want);
	c->bin = c->want = NULL;
}

rwy_dur changes_next(const struct changes *c)
{
	return c->done < c->n ? (rwy_dur)c->c[c->done].at : RWY_NEVER;
}

void changes_make(struct changes *c, struct link (*path)[2])
{
	const struct change *x = &c->c[c->done++];

	link_change(&path[x->path][0], &x->s, false);
	link_change(&path[x->path][1], &x->s, true);
}

void changes_count(struct changes *c, uint64_t bytes, rwy_dur at)
{
	size_t i = at / CHANGE_BIN;

	if (c->bin && i < c->bins)
		c->bin[i] += bytes;
}

void changes_wanted(struct changes *c, uint64_t bytes, rwy_dur at)
{
	size_t i = at / CHANGE_BIN;

	if (c->want && i < c->bins)
		c->want[i] += bytes;
}

/* --- afterwards ----------------------------------------------------------------------------------- */
/* Bytes that the paths can carry in a bin, or that the hosts have for them. */
static double most(const struct changes *c, const struct change *x, size_t bin)
{
	double path = x->carry * payload_share(&x->s) * CHANGE_BIN / 8e9;

	return c->want && (double)c->want[bin] < path ? (double)c->want[bin] : path;
}

/* The share of what could arrive in these bins that did; 1 if nothing could. */
static double share(const struct changes *c, const struct change *x, size_t from, size_t to)
{
	double got = 0, could = 0;

	for (size_t i = from; i < to && i < c->bins; i++) {
		got += (double)c->bin[i];
		could += most(c, x, i);
	}
	return could > 0 ? got / could : 1;
}

static struct change_result result_of(const struct changes *c, unsigned i, rwy_dur end)
{
	const struct change *x = &c->c[i];
	double until = i + 1 < c->n ? c->c[i + 1].at : (double)end;
	double settle = SETTLE_RTTS * x->s.rtt > SETTLE ? SETTLE_RTTS * x->s.rtt : SETTLE;
	size_t first = (size_t)(x->at / CHANGE_BIN) + 1, last = (size_t)(until / CHANGE_BIN);
	size_t settled = (size_t)((x->at + settle) / CHANGE_BIN) + 1;
	struct change_result r = {.at_s = x->at / 1e9,
	    .back_s = -1,
	    .rtt_ms = x->s.rtt / 1e6,
	    .rate_bps = x->s.rate,
	    .loss = x->s.loss};

	for (size_t b = first; b + OVER <= last && r.back_s < 0; b++)
		if (share(c, x, b, b + OVER) >= ENOUGH)
			r.back_s = ((double)b * CHANGE_BIN - x->at) / 1e9;
	r.share = settled < last ? share(c, x, settled, last) : 0;
	return r;
}

unsigned changes_results(const struct changes *c, rwy_dur end, struct change_result *out)
{
	for (unsigned i = 0; i < c->n; i++)
		out[i] = result_of(c, i, end);
	return c->n;
}
