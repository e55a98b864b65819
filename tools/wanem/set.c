/* SPDX-License-Identifier: Apache-2.0
 * Settings as text; see set.h.
 */
#include "tools/wanem/set.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TIME UINT64_C(60000000000)

static const struct wanem_key keys[] = {
    {"delay", "TIME", "one-way delay: 10ms, 250us, 0"},
    {"jitter", "TIME", "spread of the delay"},
    {"jitter-dist", "uniform|normal", "delay +- jitter, or standard deviation = jitter [uniform]"},
    {"keep-order", "on|off", "jitter and changes of delay never reorder [on]"},
    {"rate", "RATE", "bit/s of Ethernet frames: 64kbit, 1.5Mbit, 1Gbit, unlimited [unlimited]"},
    {"queue", "SIZE",
        "limit before the rate, then tail drop: 1000 packets, or bytes: 64kB, 1MB, 256KiB [1000]"},
    {"loss", "SHARE", "loss: 1% or 0.01; independent unless burst is above 1"},
    {"burst", "PACKETS", "mean length of a loss burst (Gilbert-Elliott with mean loss = loss) [1]"},
    {"ge", "P/R[/BAD[/GOOD]]",
        "raw Gilbert-Elliott: good->bad, bad->good, loss in bad [100%], in good [0]; off"},
    {"reorder", "SHARE", "share of frames held back so that others overtake"},
    {"reorder-delay", "TIME", "for that long, on top of the delay [1ms]"},
    {"dup", "SHARE", "share of frames delivered twice"},
    {"corrupt", "SHARE", "share of frames with bits flipped after the Ethernet header"},
    {"corrupt-bits", "N", "1..N bits are flipped [1]"},
    {NULL, NULL, NULL},
};

const struct wanem_key *wanem_set_keys(void)
{
	return keys;
}

__attribute__((format(printf, 2, 3))) static int refuse(struct wanem_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

/* Reads a decimal number without sign; *end is the text after it. False: there is none. */
static bool number(const char *text, double *out, const char **end)
{
	size_t digits = strspn(text, "0123456789.");
	char buf[32];
	char *stop;

	if (!digits || digits >= sizeof(buf))
		return false;
	memcpy(buf, text, digits);
	buf[digits] = '\0';
	*out = strtod(buf, &stop);
	*end = text + digits;
	return *stop == '\0';
}

struct unit {
	const char *name;
	double factor;
};

/* Reads a number with a unit. A NULL name ends the list of units; an empty name is a number without
 * unit. */
static bool scaled(const char *text, const struct unit *units, double *out)
{
	const char *end;

	if (!number(text, out, &end))
		return false;
	for (; units->name; units++)
		if (!strcasecmp(end, units->name)) {
			*out *= units->factor;
			return true;
		}
	return false;
}

int wanem_set_time(const char *text, uint64_t max, uint64_t *out, struct wanem_err *err)
{
	static const struct unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
	double v = 0;

	if (strcmp(text, "0") && !scaled(text, units, &v))
		return refuse(err, "'%.40s' is not a time like 10ms (units: ns us ms s)", text);
	if (v > (double)max)
		return refuse(err, "'%.40s' is more than %gs", text, (double)max / 1e9);
	*out = (uint64_t)(v + 0.5);
	return 0;
}

static int set_rate(const char *text, uint64_t *out, struct wanem_err *err)
{
	static const struct unit units[] = {
	    {"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12}, {NULL, 0}};
	double v = 0;

	if (!strcmp(text, "0") || !strcmp(text, "unlimited")) {
		*out = 0;
		return 0;
	}
	if (!scaled(text, units, &v))
		return refuse(
		    err, "'%.40s' is not a rate like 100Mbit (units: bit kbit Mbit Gbit) or unlimited", text);
	if (v < 1000 || v > 1e12)
		return refuse(err, "'%.40s' is not between 1kbit and 1Tbit", text);
	*out = (uint64_t)(v + 0.5);
	return 0;
}

static int set_queue(struct wanem_cfg *cfg, const char *text, struct wanem_err *err)
{
	static const struct unit packets[] = {{"", 1}, {"p", 1}, {NULL, 0}};
	static const struct unit bytes[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 1024},
	    {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};
	bool in_bytes = false;
	double v;

	if (!scaled(text, packets, &v)) {
		in_bytes = true;
		if (!scaled(text, bytes, &v))
			return refuse(err,
			    "'%.40s' is not a queue size: 1000 packets, or bytes as 64kB, 1MB, 256KiB", text);
	}
	if (in_bytes ? v < 64 || v > 4e9 : v < 1 || v > 1e7)
		return refuse(err, "'%.40s' is not between 1 and 10000000 packets, or 64B and 4GB", text);
	cfg->queue = (uint64_t)v;
	cfg->queue_in_bytes = in_bytes;
	return 0;
}

static int set_share(const char *text, double *out, struct wanem_err *err)
{
	static const struct unit units[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
	double v;

	if (!scaled(text, units, &v))
		return refuse(err, "'%.40s' is not a share like 1%% or 0.01", text);
	if (v > 1)
		return refuse(
		    err, "'%.40s' is more than 100%% (a number without %% is a fraction: 0.01 is 1%%)", text);
	*out = v;
	return 0;
}

static int set_ge(struct wanem_cfg *cfg, const char *text, struct wanem_err *err)
{
	double v[4] = {0, 0, 1, 0};
	char buf[80], *save = NULL, *part;
	unsigned n = 0;

	if (!strcmp(text, "off")) {
		cfg->ge_p = cfg->ge_r = cfg->ge_good = 0;
		cfg->ge_bad = 1;
		return 0;
	}
	if (snprintf(buf, sizeof(buf), "%s", text) >= (int)sizeof(buf))
		return refuse(err, "'%.40s' is too long", text);
	for (part = strtok_r(buf, "/", &save); part; part = strtok_r(NULL, "/", &save), n++) {
		if (n == 4)
			return refuse(err, "'%.40s' has more than four parts", text);
		if (set_share(part, &v[n], err))
			return -1;
	}
	if (n < 2 || v[0] <= 0 || v[1] <= 0)
		return refuse(err, "'%.40s' is not P/R[/BAD[/GOOD]] with P and R above 0, or off", text);
	cfg->ge_p = v[0];
	cfg->ge_r = v[1];
	cfg->ge_bad = v[2];
	cfg->ge_good = v[3];
	return 0;
}

static int set_number(const char *text, double min, double max, double *out, struct wanem_err *err)
{
	const char *end;

	if (!number(text, out, &end) || *end)
		return refuse(err, "'%.40s' is not a number", text);
	if (*out < min || *out > max)
		return refuse(err, "'%.40s' is not between %g and %g", text, min, max);
	return 0;
}

/* Reads one of two words; *second: it is the second. */
static int set_word(const char *text, const char *a, const char *b, bool *second, struct wanem_err *err)
{
	*second = !strcmp(text, b);
	if (!*second && strcmp(text, a))
		return refuse(err, "'%.40s' is neither %s nor %s", text, a, b);
	return 0;
}

static int set_value(struct wanem_cfg *cfg, const char *key, const char *value, struct wanem_err *err)
{
	double v = 0;
	bool b;

	if (!strcmp(key, "delay"))
		return wanem_set_time(value, MAX_TIME, &cfg->delay, err);
	if (!strcmp(key, "jitter"))
		return wanem_set_time(value, MAX_TIME, &cfg->jitter, err);
	if (!strcmp(key, "reorder-delay"))
		return wanem_set_time(value, MAX_TIME, &cfg->reorder_delay, err);
	if (!strcmp(key, "rate"))
		return set_rate(value, &cfg->rate, err);
	if (!strcmp(key, "queue"))
		return set_queue(cfg, value, err);
	if (!strcmp(key, "loss"))
		return set_share(value, &cfg->loss, err);
	if (!strcmp(key, "burst"))
		return set_number(value, 1, 1e6, &cfg->burst, err);
	if (!strcmp(key, "ge"))
		return set_ge(cfg, value, err);
	if (!strcmp(key, "reorder"))
		return set_share(value, &cfg->reorder, err);
	if (!strcmp(key, "dup"))
		return set_share(value, &cfg->dup, err);
	if (!strcmp(key, "corrupt"))
		return set_share(value, &cfg->corrupt, err);
	if (!strcmp(key, "jitter-dist")) {
		if (set_word(value, "uniform", "normal", &b, err))
			return -1;
		cfg->jitter_dist = b ? WANEM_JITTER_NORMAL : WANEM_JITTER_UNIFORM;
		return 0;
	}
	if (!strcmp(key, "keep-order"))
		return set_word(value, "off", "on", &cfg->keep_order, err);
	if (!strcmp(key, "corrupt-bits")) {
		if (set_number(value, 1, WANEM_MAX_CORRUPT, &v, err))
			return -1;
		if (v != (unsigned)v)
			return refuse(err, "'%.40s' is not a whole number", value);
		cfg->corrupt_bits = (unsigned)v;
		return 0;
	}
	return refuse(err, "unknown setting (see help)");
}

int wanem_set_key(struct wanem_cfg *cfg, const char *key, const char *value, struct wanem_err *err)
{
	struct wanem_err why;

	if (!set_value(cfg, key, value, &why))
		return 0;
	return refuse(err, "%.40s: %.150s", key, why.text);
}

int wanem_set_list(struct wanem_cfg *cfg, const char *list, struct wanem_err *err)
{
	struct wanem_cfg next = *cfg;
	char buf[512], *save = NULL, *item, *value;
	const char *wrong;

	if (snprintf(buf, sizeof(buf), "%s", list) >= (int)sizeof(buf))
		return refuse(err, "the list of settings is longer than %zu bytes", sizeof(buf) - 1);
	item = strtok_r(buf, ", \t", &save);
	if (!item)
		return refuse(err, "no settings given; expected key=value,...");
	for (; item; item = strtok_r(NULL, ", \t", &save)) {
		value = strchr(item, '=');
		if (!value)
			return refuse(err, "'%.40s' is not key=value", item);
		*value++ = '\0';
		if (wanem_set_key(&next, item, value, err))
			return -1;
	}
	wrong = wanem_cfg_check(&next);
	if (wrong)
		return refuse(err, "%s", wrong);
	*cfg = next;
	return 0;
}

void wanem_set_json(FILE *f, const struct wanem_cfg *cfg)
{
	fprintf(f,
	    "\"delay_ns\":%" PRIu64 ",\"jitter_ns\":%" PRIu64 ",\"jitter_dist\":\"%s\",\"keep_order\":%s,"
	    "\"rate_bps\":%" PRIu64 ",\"queue_%s\":%" PRIu64 ",\"loss\":%.9g,\"burst\":%.9g,",
	    cfg->delay, cfg->jitter, cfg->jitter_dist == WANEM_JITTER_NORMAL ? "normal" : "uniform",
	    cfg->keep_order ? "true" : "false", cfg->rate, cfg->queue_in_bytes ? "bytes" : "packets",
	    cfg->queue, cfg->loss, cfg->burst);
	fprintf(f,
	    "\"ge_p\":%.9g,\"ge_r\":%.9g,\"ge_bad\":%.9g,\"ge_good\":%.9g,\"reorder\":%.9g,"
	    "\"reorder_delay_ns\":%" PRIu64 ",\"dup\":%.9g,\"corrupt\":%.9g,\"corrupt_bits\":%u",
	    cfg->ge_p, cfg->ge_r, cfg->ge_bad, cfg->ge_good, cfg->reorder, cfg->reorder_delay, cfg->dup,
	    cfg->corrupt, cfg->corrupt_bits);
}

void wanem_set_text(FILE *f, const struct wanem_cfg *cfg)
{
	fprintf(f, "delay=%gms", (double)cfg->delay / 1e6);
	if (cfg->jitter)
		fprintf(f, " jitter=%gms", (double)cfg->jitter / 1e6);
	if (cfg->jitter_dist == WANEM_JITTER_NORMAL)
		fputs(" jitter-dist=normal", f);
	if (!cfg->keep_order)
		fputs(" keep-order=off", f);
	if (cfg->rate)
		fprintf(f, " rate=%gMbit queue=%" PRIu64 "%s", (double)cfg->rate / 1e6, cfg->queue,
		    cfg->queue_in_bytes ? "B" : "");
	if (cfg->loss > 0)
		fprintf(f, " loss=%g%% burst=%g", cfg->loss * 100, cfg->burst);
	if (cfg->ge_p > 0)
		fprintf(f, " ge=%g%%/%g%%/%g%%/%g%%", cfg->ge_p * 100, cfg->ge_r * 100, cfg->ge_bad * 100,
		    cfg->ge_good * 100);
	if (cfg->reorder > 0)
		fprintf(f, " reorder=%g%% reorder-delay=%gms", cfg->reorder * 100,
		    (double)cfg->reorder_delay / 1e6);
	if (cfg->dup > 0)
		fprintf(f, " dup=%g%%", cfg->dup * 100);
	if (cfg->corrupt > 0)
		fprintf(f, " corrupt=%g%% corrupt-bits=%u", cfg->corrupt * 100, cfg->corrupt_bits);
}
