/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and prints scenarios: one table has each key, its unit and its bounds. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cc/cc.h"
#include "tests/sim/wan/change.h"
#include "tests/sim/wan/cross.h"
#include "tests/sim/wan/fec.h"
#include "tests/sim/wan/jitter.h"
#include "tests/sim/wan/paths.h"
#include "tests/sim/wan/scen.h"
#include "wan/stream.h"

enum unit { NUMBER, SHARE, BITS, TIME, BYTES, DEPTH, NAME, CC, CHOICE };

struct key {
	const char *name;
	enum unit unit;
	size_t at;
	double min, max;
	const char *choices; /* separated by spaces, in the order of the enum */
};

#define AT(f) offsetof(struct scen, f)
static const struct key keys[] = {
    {"name", NAME, AT(name), 0, sizeof(((struct scen *)0)->name), NULL},
    {"rate", BITS, AT(rate), 1e4, 1e12, NULL},
    {"rrate", BITS, AT(rrate), 0, 1e12, NULL},
    {"rtt", TIME, AT(rtt), 2e3, 10e9, NULL},
    {"jitter", TIME, AT(jitter), 0, 10e9, NULL},
    {"jitter_dist", CHOICE, AT(jitter_dist), 0, 0, "uniform normal pareto"},
    {"keep_order", CHOICE, AT(order), 0, 0, "on off"},
    {"jitter_trace", NAME, AT(jitter_trace), 0, sizeof(((struct scen *)0)->jitter_trace), NULL},
    {"loss", SHARE, AT(loss), 0, 1, NULL},
    {"rloss", SHARE, AT(rloss), 0, 1, NULL},
    {"burst", NUMBER, AT(burst), 1, 1e6, NULL},
    {"reorder", SHARE, AT(reorder), 0, 1, NULL},
    {"reorder_delay", TIME, AT(reorder_delay), 0, 10e9, NULL},
    {"dup", SHARE, AT(dup), 0, 1, NULL},
    {"corrupt", SHARE, AT(corrupt), 0, 1, NULL},
    {"queue", DEPTH, AT(queue), 0, 1e12, NULL},
    {"mark", DEPTH, AT(mark), 0, 1e12, NULL},
    {"outage_from", TIME, AT(outage_from), 0, 1e12, NULL},
    {"outage_len", TIME, AT(outage_len), 0, 1e12, NULL},
    {"overhead", BYTES, AT(overhead), 0, 1000, NULL},
    {"cross", NAME, AT(cross), 0, sizeof(((struct scen *)0)->cross), NULL},
    {"cross_start", TIME, AT(cross_start), 0, 1e12, NULL},
    {"cross_stop", TIME, AT(cross_stop), 0, 1e12, NULL},
    {"cross_gap", TIME, AT(cross_gap), 0, 1e12, NULL},
    {"cross_mtu", BYTES, AT(cross_mtu), 576, 9000, NULL},
    {"tunnels", NUMBER, AT(tunnels), 1, TUNNELS_MAX, NULL},
    {"tunnel_gap", TIME, AT(tunnel_gap), 0, 1e12, NULL},
    {"mtu", BYTES, AT(mtu), 576, 9000, NULL},
    {"paths", NUMBER, AT(paths), 1, PATHS_MAX, NULL},
    {"path", NAME, AT(path), 0, sizeof(((struct scen *)0)->path), NULL},
    {"bottleneck", CHOICE, AT(bottleneck), 0, 0, "own one"},
    {"cc", CC, AT(cc), 0, sizeof(((struct scen *)0)->cc), NULL},
    {"ccrate", BITS, AT(ccrate), 0, 1e12, NULL},
    {"fec", NAME, AT(fec), 0, sizeof(((struct scen *)0)->fec), NULL},
    {"recovery", CHOICE, AT(recovery), 0, 0, "roceway sr ec gbn tcp-cubic tcp-bbr"},
    {"detour", NUMBER, AT(detour), 0, WAN_DETOUR_AFTER_MAX, NULL},
    {"detour_rate", BITS, AT(detour_rate), 0, 1e12, NULL},
    {"detour_rtt", TIME, AT(detour_rtt), 0, 10e9, NULL},
    {"wake", TIME, AT(wake), 100, 1e9, NULL},
    {"window", NUMBER, AT(window), 1, 64, NULL},
    {"ahead", BYTES, AT(ahead), 4096, 1e12, NULL},
    {"timeout", TIME, AT(timeout), 1e3, 1e12, NULL},
    {"pmtu", BYTES, AT(pmtu), 256, 4096, NULL},
    {"size", BYTES, AT(size), 1, 1e13, NULL},
    {"messages", NUMBER, AT(messages), 1, 1e9, NULL},
    {"warm", NUMBER, AT(warm), 0, 1e9, NULL},
    {"flows", NUMBER, AT(flows), 1, 65536, NULL},
    {"arrival", CHOICE, AT(arrival), 0, 0, "one back"},
    {"demand", BITS, AT(demand), 0, 1e12, NULL},
    {"chunk", BYTES, AT(chunk), 256, 1e9, NULL},
    {"on", TIME, AT(on), 0, 1e12, NULL},
    {"off", TIME, AT(off), 0, 1e12, NULL},
    {"stalls", NUMBER, AT(stalls), 0, 1e4, NULL},
    {"stall", TIME, AT(stall), 0, 1e9, NULL},
    {"changes", NAME, AT(changes), 0, sizeof(((struct scen *)0)->changes), NULL},
    {"rtts", NUMBER, AT(rtts), 0, 1e6, NULL},
    {"skip", NUMBER, AT(skip), 0, 1e6, NULL},
    {"payload", CHOICE, AT(payload), 0, 0, "thin full"},
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static double *number_at(struct scen *s, const struct key *k)
{
	return (double *)(void *)((char *)s + k->at);
}

void scen_default(struct scen *s)
{
	*s = (struct scen){.seed = 1,
	    .rate = 10e9,
	    .rtt = 25e6,
	    .rloss = -1,
	    .burst = 1,
	    .reorder_delay = 200e3,
	    .overhead = 66, /* preamble 8, Ethernet 14, IPv4 20, UDP 8, FCS 4, gap 12 */
	    .cross_mtu = 1500,
	    .tunnels = 1,
	    .mtu = 4320,
	    .paths = 1,
	    .wake = 2e3,
	    .window = 3,
	    .ahead = 4 << 20,
	    .timeout = 67e6, /* 4.096 us << 14 */
	    .pmtu = 4096,
	    .size = 1 << 20,
	    .messages = 100,
	    .warm = 1,
	    .flows = 1,
	    .chunk = 65536,
	    .stall = 4e6};
	snprintf(s->cc, sizeof(s->cc), "fixed");
	snprintf(s->fec, sizeof(s->fec), "default");
}

/* --- values --------------------------------------------------------------------------------------- */
struct suffix {
	const char *s;
	double factor;
};

static bool suffix(enum unit u, const char *s, double *factor)
{
	static const struct suffix times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
	static const struct suffix bits[] = {
	    {"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {NULL, 0}};
	static const struct suffix bytes[] = {{"", 1}, {"K", 1 << 10}, {"KiB", 1 << 10}, {"M", 1 << 20},
	    {"MiB", 1 << 20}, {"G", 1 << 30}, {"GiB", 1 << 30}, {NULL, 0}};
	static const struct suffix depths[] = {{"", 1}, {"K", 1 << 10}, {"KiB", 1 << 10}, {"M", 1 << 20},
	    {"MiB", 1 << 20}, {"G", 1 << 30}, {"GiB", 1 << 30}, {"bdp", -1}, {NULL, 0}};
	static const struct suffix share[] = {{"", 1}, {"%", .01}, {NULL, 0}};
	static const struct suffix plain[] = {{"", 1}, {NULL, 0}};
	const struct suffix *t = u == TIME    ? times
	                         : u == BITS  ? bits
	                         : u == BYTES ? bytes
	                         : u == DEPTH ? depths
	                         : u == SHARE ? share
	                                      : plain;

	for (; t->s; t++)
		if (strcmp(s, t->s) == 0) {
			*factor = t->factor;
			return true;
		}
	return false;
}

static const char *unit_hint(enum unit u)
{
	switch (u) {
	case TIME:
		return "a time with its unit: 25ms, 300us";
	case BITS:
		return "bits a second: 400G, 10M";
	case BYTES:
		return "bytes: 4096, 128KiB, 8GiB";
	case DEPTH:
		return "bytes or bandwidth-delay products: 4096, 1MiB, 0.5bdp";
	case SHARE:
		return "a share: 0.001, 1e-3, 0.1%";
	case NUMBER:
	case NAME:
	case CC:
	case CHOICE:
		return "a number";
	}
	return "";
}

static bool set_number(struct scen *s, const struct key *k, const char *v, char *err, size_t size)
{
	char *end;
	double factor = 1, x = strtod(v, &end);

	if (end == v || !isfinite(x) ||
	    (!suffix(k->unit, end, &factor) && !(k->unit == TIME && x == 0 && !*end))) {
		snprintf(err, size, "%s: '%s' is not %s", k->name, v, unit_hint(k->unit));
		return false;
	}
	if (x < 0)
		factor = 1; /* a negative number of them means none */
	if (x != 0)
		x *= factor;
	if (factor < 0 && x >= -1e3) {
		*number_at(s, k) = x;
		return true;
	}
	if (x < k->min || x > k->max) {
		snprintf(err, size, "%s: '%s' is outside %g .. %g%s", k->name, v, k->min, k->max,
		    k->unit == TIME ? " ns" : "");
		return false;
	}
	*number_at(s, k) = k->unit == NUMBER && k->min >= 0 && strcmp(k->name, "burst") != 0 ? floor(x) : x;
	return true;
}

static bool set_choice(struct scen *s, const struct key *k, const char *v, char *err, size_t size)
{
	const char *c = k->choices;
	size_t len = strlen(v);
	unsigned n = 0;

	for (; *c; n++) {
		size_t w = strcspn(c, " ");

		if (w == len && strncmp(c, v, w) == 0) {
			memcpy((char *)s + k->at, &n, sizeof(n)); /* our enums are unsigned ints */
			return true;
		}
		c += w + (c[w] == ' ');
	}
	snprintf(err, size, "%s: '%s' is none of: %s", k->name, v, k->choices);
	return false;
}

static bool set_name(struct scen *s, const struct key *k, const char *v, char *err, size_t size)
{
	if (strlen(v) >= (size_t)k->max) {
		snprintf(err, size, "%s: '%s' is too long", k->name, v);
		return false;
	}
	if (k->unit == CC && !cc_find(v)) {
		snprintf(err, size, "cc: there is no algorithm '%s'", v);
		return false;
	}
	struct cross_class class[CROSS_CLASSES];
	const char *bad;

	if (k->at == AT(cross) && *v && !cross_parse(v, class, &bad)) {
		snprintf(err, size,
		    "cross: '%.40s' is not ALGORITHM:FLOWS,... (at most %u classes and %u flows in all)", bad,
		    CROSS_CLASSES, CROSS_FLOWS);
		return false;
	}
	struct change changes[CHANGES_MAX];
	struct scen with = *s;
	unsigned n;

	if (k->at == AT(changes)) {
		snprintf(with.changes, sizeof(with.changes), "%s", v);
		if (!change_parse(&with, changes, &n, err, size))
			return false;
	}
	struct scen each[PATHS_MAX];

	if (k->at == AT(path)) {
		snprintf(with.path, sizeof(with.path), "%s", v);
		if (!paths_parse(&with, each, err, size))
			return false;
	}
	struct wan_cfg probe = {0};

	if (k->at == AT(fec) && !fec_configure(&probe, v)) {
		snprintf(err, size, "fec: there is no setting '%s'", v);
		return false;
	}
	if (k->at == AT(jitter_trace) && *v && !jitter_read(v, NULL, err, size))
		return false;
	snprintf((char *)s + k->at, (size_t)k->max, "%s", v);
	return true;
}

static bool set(struct scen *s, const char *name, const char *v, char *err, size_t size)
{
	if (strcmp(name, "seed") == 0) {
		char *end;

		errno = 0;
		s->seed = strtoull(v, &end, 0);
		if (end != v && !*end && !errno && *v != '-')
			return true;
		snprintf(err, size, "seed: '%s' is not a number", v);
		return false;
	}
	for (size_t i = 0; i < KEYS; i++) {
		const struct key *k = &keys[i];

		if (strcmp(name, k->name) != 0)
			continue;
		if (k->unit == CHOICE)
			return set_choice(s, k, v, err, size);
		if (k->unit == NAME || k->unit == CC)
			return set_name(s, k, v, err, size);
		return set_number(s, k, v, err, size);
	}
	snprintf(err, size, "there is no key '%s'", name);
	return false;
}

/* --- words and files ------------------------------------------------------------------------------ */
static bool set_at(struct scen *s, const char *name, const char *v, const char *where, char *err, size_t size)
{
	char why[160];

	if (set(s, name, v, why, sizeof(why)))
		return true;
	snprintf(err, size, "%s: %s", where, why);
	return false;
}

bool scen_word(struct scen *s, const char *word, const char *where, char *err, size_t size)
{
	const char *eq = strchr(word, '=');
	char name[32];

	if (!eq || eq == word || (size_t)(eq - word) >= sizeof(name)) {
		snprintf(err, size, "%s: '%.60s' is not key=value", where, word);
		return false;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(eq - word), word);
	return set_at(s, name, eq + 1, where, err, size);
}

static bool line_of(struct scen *s, char *line, const char *where, char *err, size_t size)
{
	char *save, *name, *v;

	line[strcspn(line, "#\r\n")] = 0;
	name = strtok_r(line, " \t", &save);
	if (!name)
		return true;
	v = strtok_r(NULL, " \t", &save);
	if (!v || strtok_r(NULL, " \t", &save)) {
		snprintf(err, size, "%s: '%.60s' wants one value", where, name);
		return false;
	}
	return set_at(s, name, v, where, err, size);
}

bool scen_file(struct scen *s, const char *path, char *err, size_t size)
{
	FILE *f = fopen(path, "r");
	char line[512], where[300];
	bool good = true;

	if (!f) {
		snprintf(err, size, "%s: %s", path, strerror(errno));
		return false;
	}
	for (unsigned n = 1; good && fgets(line, sizeof(line), f); n++) {
		snprintf(where, sizeof(where), "%s:%u", path, n);
		good = line_of(s, line, where, err, size);
	}
	fclose(f);
	return good;
}

bool scen_check(const struct scen *s, char *err, size_t size)
{
	const char *why = NULL;

	if (s->rtts > 0 && s->skip >= s->rtts)
		why = "skip leaves nothing of rtts to measure";
	else if (s->loss >= 1 || s->rloss >= 1)
		why = "with loss 1 nothing ever arrives";
	else if (s->loss > 0 && s->burst > 1 && s->loss * (s->burst + 1) > s->burst)
		why = "bursts this short cannot lose that much";
	else if (s->recovery != RECOVER_ROCEWAY && s->flows > 1)
		why = "the reference models have one flow";
	else if (s->cross_stop > 0 && s->cross_stop <= s->cross_start)
		why = "cross_stop is not after cross_start";
	else if ((*s->cross || s->tunnels > 1) && (s->rtts <= 0 || s->recovery != RECOVER_ROCEWAY))
		why = "a shared link wants rtts, and recovery=roceway";
	else if (s->recovery >= RECOVER_TCP_CUBIC && s->rtts <= 0)
		why = "recovery=tcp-... wants rtts";
	else if ((*s->changes || s->demand > 0) && (s->rtts <= 0 || s->recovery != RECOVER_ROCEWAY))
		why = "changes and demand want rtts, and recovery=roceway";
	else if (*s->changes && s->tunnels > 1)
		why = "changes are of one tunnel's links";
	else if (s->paths > 1 && s->recovery != RECOVER_ROCEWAY)
		why = "paths want recovery=roceway";
	else if (paths_named(s) >= s->paths)
		why = "path or changes name a path that paths does not have";
	else if (s->detour > 0 && s->recovery != RECOVER_ROCEWAY)
		why = "detour wants recovery=roceway";
	else if (s->on > 0 && s->demand <= 0)
		why = "on and off want a demand";
	else if (s->rtts > 0 && s->arrival == ARRIVE_ONE && s->recovery == RECOVER_ROCEWAY)
		why = "rtts wants arrival=back";
	if (why)
		snprintf(err, size, "scenario: %s", why);
	return !why;
}

void scen_settle(struct scen *s)
{
	double bdp = s->rate / 8e9 * s->rtt;

	s->queue = s->queue < 0 ? -s->queue * bdp : s->queue;
	s->mark = s->mark < 0 ? -s->mark * bdp : s->mark;
}

void scen_print(const struct scen *s, char *out, size_t size)
{
	struct scen base, copy = *s;
	size_t n = (size_t)snprintf(out, size, "seed=%llu", (unsigned long long)s->seed);

	scen_default(&base);
	for (size_t i = 0; i < KEYS && n < size; i++) {
		const struct key *k = &keys[i];
		unsigned c;

		if (k->unit == NAME || k->unit == CC) {
			const char *v = (const char *)s + k->at;

			if (strcmp(v, (const char *)&base + k->at) != 0)
				n += (size_t)snprintf(out + n, size - n, " %s=%s", k->name, v);
		} else if (k->unit == CHOICE) {
			const char *v = k->choices;

			memcpy(&c, (const char *)s + k->at, sizeof(c));
			for (; c; c--)
				v += strcspn(v, " ") + 1;
			if (memcmp((const char *)s + k->at, (const char *)&base + k->at, sizeof(c)) != 0)
				n += (size_t)snprintf(
				    out + n, size - n, " %s=%.*s", k->name, (int)strcspn(v, " "), v);
		} else if (*number_at(&copy, k) != *number_at(&base, k)) {
			n += (size_t)snprintf(out + n, size - n, " %s=%.15g%s", k->name, *number_at(&copy, k),
			    k->unit == TIME ? "ns" : "");
		}
	}
}

struct scen scen_lossless(const struct scen *s)
{
	struct scen l = *s;

	l.loss = l.rloss = l.reorder = l.dup = l.corrupt = l.outage_len = 0;
	l.burst = 1;
	return l;
}

struct scen scen_carrier(const struct scen *s)
{
	struct scen c = scen_lossless(s);

	c.jitter = c.queue = c.mark = c.rrate = 0;
	c.jitter_trace[0] = 0;
	c.rate = s->detour_rate > 0 ? s->detour_rate : s->rate;
	c.rtt = s->detour_rtt > 0 ? s->detour_rtt : s->rtt;
	return c;
}
