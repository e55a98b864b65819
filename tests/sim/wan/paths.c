/* SPDX-License-Identifier: Apache-2.0 */
/* Several paths; see paths.h. */
#include "tests/sim/wan/paths.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/wan/run.h"

static bool is_path_key(const char *word)
{
	static const char *const keys[] = {
	    "rtt=", "rate=", "rrate=", "loss=", "rloss=", "jitter=", "queue=", "mark="};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strncmp(word, keys[i], strlen(keys[i])) == 0)
			return true;
	return false;
}

bool paths_words(struct scen *s, char *text, const char *key, char *err, size_t size)
{
	char *save;

	for (char *w = strtok_r(text, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		if (!is_path_key(w)) {
			snprintf(err, size, "%s: '%.40s' is no key of the path", key, w);
			return false;
		}
		if (!scen_word(s, w, key, err, size))
			return false;
	}
	scen_settle(s);
	return true;
}

bool paths_parse(const struct scen *s, struct scen out[PATHS_MAX], char *err, size_t size)
{
	char text[sizeof(s->path)], *save;

	for (unsigned k = 0; k < PATHS_MAX; k++)
		out[k] = *s;
	snprintf(text, sizeof(text), "%s", s->path);
	for (char *part = strtok_r(text, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		if (part[0] < '0' || part[0] >= '0' + PATHS_MAX || part[1] != ':') {
			snprintf(err, size, "path: '%.40s' is not NUMBER:key=value,...", part);
			return false;
		}
		if (!paths_words(&out[part[0] - '0'], part + 2, "path", err, size))
			return false;
	}
	return true;
}

double paths_named(const struct scen *s)
{
	struct change c[CHANGES_MAX];
	unsigned n = 0;
	double most = 0;
	char err[160], text[sizeof(s->path)], *save;

	snprintf(text, sizeof(text), "%s", s->path);
	for (char *part = strtok_r(text, "/", &save); part; part = strtok_r(NULL, "/", &save))
		most = part[0] - '0' > most ? part[0] - '0' : most;
	if (*s->changes && change_parse(s, c, &n, err, sizeof(err)))
		for (unsigned i = 0; i < n; i++)
			most = c[i].path > most ? c[i].path : most;
	return most;
}

double paths_carry(const struct scen *s, const struct scen each[PATHS_MAX])
{
	double sum = 0;

	for (unsigned k = 0; k < (s->bottleneck == BOTTLENECK_ONE ? 1 : (unsigned)s->paths); k++)
		sum += each[k].rate * (1 - each[k].loss);
	return sum;
}

double paths_capacity(const struct scen *s)
{
	struct scen each[PATHS_MAX];
	char err[160];

	return paths_parse(s, each, err, sizeof(err)) ? paths_carry(s, each) : 0;
}

void paths_configure(const struct scen *s, struct wan_cfg *c)
{
	struct scen each[PATHS_MAX];
	char err[160];
	bool rates = strcmp(s->cc, "fixed") == 0 && s->ccrate <= 0 && s->paths > 1;

	c->paths = (unsigned)s->paths;
	rates = rates && paths_parse(s, each, err, sizeof(err));
	for (unsigned k = 0; k < c->paths; k++) {
		c->mtu[k] = (uint32_t)s->mtu;
		c->path_rate_Bps[k] = rates ? (uint64_t)(each[k].rate / 8) : 0;
	}
}

/* --- links -------------------------------------------------------------------------------------- */
bool paths_init(struct world *w, uint64_t *seed)
{
	struct scen each[PATHS_MAX];
	char err[160];

	if (!paths_parse(&w->s, each, err, sizeof(err)))
		return false;
	for (unsigned k = 0; k < (unsigned)w->s.paths; k++) {
		each[k].outage_from += (double)SIM_START;
		for (int i = 0; i < 2; i++)
			if (!link_init(&w->link[k][i], &each[k], i == 1, rng_next(seed)))
				return false;
		if (w->s.bottleneck == BOTTLENECK_ONE)
			w->link[k][0].line = w->link[0][0].line;
	}
	return true;
}

void paths_fini(struct world *w)
{
	for (unsigned k = 0; k < (unsigned)w->s.paths; k++)
		for (int i = 0; i < 2; i++)
			link_fini(&w->link[k][i]);
}

struct link *paths_next(const struct end *e, rwy_time *at)
{
	struct world *w = e->w;
	int from = e == &w->end[0];
	struct link *first = &w->link[0][from];

	*at = link_next(first);
	for (unsigned k = 1; k < (unsigned)w->s.paths; k++) {
		struct link *l = &w->link[k][from];

		if (link_next(l) < *at) {
			*at = link_next(l);
			first = l;
		}
	}
	return *at == RWY_NEVER ? NULL : first;
}
