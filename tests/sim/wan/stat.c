/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles and output. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/wan/paths.h"
#include "tests/sim/wan/stat.h"
#include "tests/sim/wan/wire.h"

void result_ct(struct result *r, rwy_dur ct)
{
	if (r->ct_n == r->ct_cap) {
		r->ct_cap = r->ct_cap ? r->ct_cap * 2 : 1024;
		r->ct = realloc(r->ct, r->ct_cap * sizeof(*r->ct));
		if (!r->ct)
			abort();
	}
	r->ct[r->ct_n++] = (double)ct;
}

void result_fini(struct result *r)
{
	free(r->ct);
	r->ct = NULL;
}

double result_mean(const struct result *r)
{
	double sum = 0;

	for (uint64_t i = 0; i < r->ct_n; i++)
		sum += r->ct[i];
	return r->ct_n ? sum / (double)r->ct_n : 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The smallest value that the share q of all does not exceed. */
static double quantile(const double *v, uint64_t n, double q)
{
	if (!n)
		return 0;
	uint64_t i = (uint64_t)(q * (double)n);

	return v[i < n ? i : n - 1];
}

double payload_share(const struct scen *s)
{
	return s->pmtu / (s->pmtu + INNER_HEAD + WAN_DATA_HEAD + s->overhead);
}

struct figures result_figures(const struct scen *s, const struct result *r, double lossless)
{
	struct figures f = {0};
	double unit = lossless > 0 ? lossless : 1e3;
	double *v = malloc((r->ct_n + 1) * sizeof(*v));

	if (!v)
		abort();
	if (r->ct_n)
		memcpy(v, r->ct, r->ct_n * sizeof(*v));
	qsort(v, r->ct_n, sizeof(*v), by_size);
	f.mean = result_mean(r) / unit;
	f.p50 = quantile(v, r->ct_n, .5) / unit;
	f.p99 = quantile(v, r->ct_n, .99) / unit;
	f.p999 = quantile(v, r->ct_n, .999) / unit;
	f.max = r->ct_n ? v[r->ct_n - 1] / unit : 0;
	free(v);
	f.extra = r->first_bytes ? (double)r->extra_bytes / (double)r->first_bytes : 0;
	f.goodput = r->span ? (double)r->payload * 8e9 / (double)r->span : 0;
	f.goodput_share = f.goodput / (paths_capacity(s) * payload_share(s));
	f.needless = r->packets ? (double)r->needless / (double)r->packets : 0;
	return f;
}

static void paths_table(FILE *f, const struct scen *s, const struct result *r)
{
	for (unsigned k = 0; s->paths > 1 && k < (unsigned)s->paths; k++)
		fprintf(f, "path %u        %s; %.1f MB sent, %llu lost, %llu moved, %u times silent\n", k,
		    r->path[k].state, (double)r->path[k].tx_bytes / 1e6, (unsigned long long)r->path[k].lost,
		    (unsigned long long)r->path[k].moved, r->path[k].silences);
}

static const char *unit_of(double lossless)
{
	return lossless > 0 ? "x" : "us";
}

void show_table(FILE *f, const struct scen *s, const struct result *r, double lossless)
{
	struct figures g = result_figures(s, r, lossless);
	const char *u = unit_of(lossless);
	char words[1200];

	scen_print(s, words, sizeof(words));
	fprintf(f, "scenario      %s\n", words);
	fprintf(f, "messages      %llu of %.0f bytes", (unsigned long long)r->ct_n, s->size);
	if (lossless > 0)
		fprintf(f, ", lossless %.1f us", lossless / 1e3);
	fprintf(f, "\ncompletion    mean %.4g%s  p50 %.4g%s  p99 %.4g%s  p99.9 %.4g%s  max %.4g%s\n", g.mean,
	    u, g.p50, u, g.p99, u, g.p999, u, g.max, u);
	fprintf(f, "goodput       %.4f Gb/s, %.4f of (1 - loss) x payload share x link\n", g.goodput / 1e9,
	    g.goodput_share);
	fprintf(f, "extra bytes   %.4f %% (parity %.4f %%)\n", 100 * g.extra,
	    r->first_bytes ? 100. * (double)r->parity_bytes / (double)r->first_bytes : 0.);
	fprintf(f, "again         %llu of %llu packets, %llu needlessly (%.4f %%); delivered twice %llu\n",
	    (unsigned long long)r->again, (unsigned long long)r->packets, (unsigned long long)r->needless,
	    100 * g.needless, (unsigned long long)r->duplicates);
	fprintf(f, "memory        %.1f MB held by the receiver at most, %llu packets in all\n",
	    (double)r->held_max / 1e6, (unsigned long long)r->custody_max);
	fprintf(f, "congested     %llu times for good, %.3f s in all\n",
	    (unsigned long long)r->congest_begins, (double)r->congested / 1e9);
	if (s->detour > 0)
		fprintf(f, "detour        %llu datagrams by the reliable carrier\n",
		    (unsigned long long)r->detoured);
	fprintf(f, "stall         %.3f ms at most\n", (double)r->stall / 1e6);
	paths_table(f, s, r);
	share_table(f, s, &r->share);
	for (unsigned i = 0; i < r->changes; i++) {
		const struct change_result *c = &r->change[i];

		fprintf(f, "change        at %.2f s to %.4g ms, %.4g Mb/s, loss %.4g: ", c->at_s, c->rtt_ms,
		    c->rate_bps / 1e6, c->loss);
		if (c->back_s < 0)
			fprintf(f, "nine tenths never");
		else
			fprintf(f, "nine tenths after %.2f s", c->back_s);
		fprintf(f, ", then %.3f\n", c->share);
	}
	fprintf(f,
	    "run           %llu datagrams, %llu events in %.2f s: %.2f M datagrams/s, %.2f M events/s\n",
	    (unsigned long long)r->datagrams, (unsigned long long)r->events, r->wall,
	    r->wall > 0 ? (double)r->datagrams / r->wall / 1e6 : 0.,
	    r->wall > 0 ? (double)r->events / r->wall / 1e6 : 0.);
	fprintf(f, "violations    %llu\n", (unsigned long long)r->violations);
}

/* The names and values for JSON and CSV. */
#define FIGURES(X)                                                                                           \
	X("messages", (double)r->ct_n)                                                                       \
	X("lossless_us", lossless / 1e3)                                                                     \
	X("mean", g.mean)                                                                                    \
	X("p50", g.p50)                                                                                      \
	X("p99", g.p99)                                                                                      \
	X("p999", g.p999)                                                                                    \
	X("max", g.max)                                                                                      \
	X("extra", g.extra)                                                                                  \
	X("parity", r->first_bytes ? (double)r->parity_bytes / (double)r->first_bytes : 0)                   \
	X("goodput_bps", g.goodput)                                                                          \
	X("goodput_share", g.goodput_share)                                                                  \
	X("packets", (double)r->packets)                                                                     \
	X("again", (double)r->again)                                                                         \
	X("needless", g.needless)                                                                            \
	X("duplicates", (double)r->duplicates)                                                               \
	X("congest_begins", (double)r->congest_begins)                                                       \
	X("congested_s", (double)r->congested / 1e9)                                                         \
	X("detoured", (double)r->detoured)                                                                   \
	X("held_max", (double)r->held_max)                                                                   \
	X("bdp", s->rate / 8e9 * s->rtt)                                                                     \
	X("stall_ms", (double)r->stall / 1e6)                                                                \
	X("datagrams", (double)r->datagrams)                                                                 \
	X("events", (double)r->events)                                                                       \
	X("wall_s", r->wall)                                                                                 \
	X("violations", (double)r->violations)                                                               \
	X("fair_bps", h.fair)                                                                                \
	X("ours", h.ours)                                                                                    \
	X("ours_half", h.ours_half)                                                                          \
	X("ours_least", h.ours_least)                                                                        \
	X("cross", h.cross)                                                                                  \
	X("cross_half", h.cross_half)                                                                        \
	X("cross_least", h.cross_least)                                                                      \
	X("jain", h.jain)                                                                                    \
	X("ours_jain", h.ours_jain)                                                                          \
	X("link_share", h.total)                                                                             \
	X("queue_mean_ms", r->share.queue_mean / 1e6)                                                        \
	X("queue_max_ms", r->share.queue_max / 1e6)                                                          \
	X("drops", r->share.drops)                                                                           \
	X("marks", r->share.marks)

void show_json(FILE *f, const struct scen *s, const struct result *r, double lossless)
{
	struct figures g = result_figures(s, r, lossless);
	struct share_figures h = share_figures(s, &r->share);
	char words[1200];

	scen_print(s, words, sizeof(words));
	fprintf(f, "{\"scenario\": \"%s\", \"unit\": \"%s\", \"hash\": \"%016llx\"", words, unit_of(lossless),
	    (unsigned long long)r->hash);
#define X(n, v) fprintf(f, ", \"%s\": %.9g", n, (double)(v));
	FIGURES(X)
#undef X
	share_json(f, &r->share);
	fprintf(f, ", \"paths\": [");
	for (unsigned k = 0; k < (unsigned)s->paths; k++)
		fprintf(f, "%s{\"tx_bytes\": %llu, \"lost\": %llu, \"silences\": %u}", k ? ", " : "",
		    (unsigned long long)r->path[k].tx_bytes, (unsigned long long)r->path[k].lost,
		    r->path[k].silences);
	fprintf(f, "], \"changes\": [");
	for (unsigned i = 0; i < r->changes; i++)
		fprintf(f, "%s{\"at_s\": %.9g, \"back_s\": %.9g, \"share\": %.9g}", i ? ", " : "",
		    r->change[i].at_s, r->change[i].back_s, r->change[i].share);
	fprintf(f, "]");
	fprintf(f, "}\n");
}

void show_csv(FILE *f, const struct scen *s, const struct result *r, double lossless, bool head)
{
	struct figures g = result_figures(s, r, lossless);
	struct share_figures h = share_figures(s, &r->share);
	char words[1200];

	if (head) {
		fprintf(f, "scenario");
#define X(n, v) fprintf(f, ",%s", n);
		FIGURES(X)
#undef X
		fprintf(f, "\n");
	}
	scen_print(s, words, sizeof(words));
	fprintf(f, "%s", words);
#define X(n, v) fprintf(f, ",%.9g", (double)(v));
	FIGURES(X)
#undef X
	fprintf(f, "\n");
}
