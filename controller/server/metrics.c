/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as Prometheus text: counters, sizes, durations of decisions, this process. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "controller/server/metrics.h"
#include "controller/server/trust.h"

static rwy_dur bucket_bound(unsigned i)
{
	return 50 * RWY_US << i;
}

void ctlr_metrics_decision(struct ctlr *c, rwy_dur took)
{
	unsigned i = 0;

	while (i < COUNTER_BUCKETS && took > bucket_bound(i))
		i++;
	atomic_fetch_add_explicit(&c->counters.decision_bucket[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->counters.decision_ns, took, memory_order_relaxed);
}

static void put_histogram(FILE *f, const struct ctlr *c)
{
	uint64_t sum = 0;

	fputs("# HELP roceway_controller_decision_seconds a report of sessions, from its last byte to its "
	      "answer\n"
	      "# TYPE roceway_controller_decision_seconds histogram\n",
	    f);
	for (unsigned i = 0; i <= COUNTER_BUCKETS; i++) {
		sum += atomic_load_explicit(&c->counters.decision_bucket[i], memory_order_relaxed);
		if (i < COUNTER_BUCKETS)
			fprintf(f, "roceway_controller_decision_seconds_bucket{le=\"%.6f\"} %" PRIu64 "\n",
			    (double)bucket_bound(i) / (double)RWY_SEC, sum);
	}
	fprintf(f, "roceway_controller_decision_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", sum);
	fprintf(f, "roceway_controller_decision_seconds_sum %.9f\n",
	    (double)atomic_load_explicit(&c->counters.decision_ns, memory_order_relaxed) / (double)RWY_SEC);
	fprintf(f, "roceway_controller_decision_seconds_count %" PRIu64 "\n", sum);
}

static void put_gauge(FILE *f, const char *name, const char *text, double v)
{
	fprintf(f,
	    "# HELP roceway_controller_%s %s\n# TYPE roceway_controller_%s gauge\nroceway_controller_%s "
	    "%.17g\n",
	    name, text, name, name, v);
}

static double resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	char line[128];
	double bytes = 0;
	char *end;

	if (f && fgets(line, sizeof(line), f)) {
		(void)strtoull(line, &end, 10);
		bytes = (double)strtoull(end, NULL, 10) * 4096;
	}
	if (f)
		fclose(f);
	return bytes;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

char *ctlr_metrics_text(struct ctlr *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
#define X(name, help)                                                                                        \
	fprintf(f,                                                                                           \
	    "# HELP roceway_controller_" #name "_total %s\n# TYPE roceway_controller_" #name                 \
	    "_total counter\nroceway_controller_" #name "_total %" PRIu64 "\n",                              \
	    help, atomic_load_explicit(&c->counters.name, memory_order_relaxed));
	COUNTERS(X)
#undef X
	put_gauge(f, "gateways", "gateways known", (double)c->gateways.n);
	put_gauge(f, "gateways_up", "gateways whose lease runs", c->up);
	put_gauge(f, "pairs", "gateways that are pairs", (double)c->pairs.n);
	put_gauge(f, "pairs_protected", "pairs of which the other gateway could take over without loss",
	    c->pairs_protected);
	put_gauge(f, "tunnels", "tunnels between gateways", (double)c->tunnels.n);
	put_gauge(f, "sessions", "open sessions", (double)c->sessions.n);
	put_gauge(f, "flows", "address pairs with sessions", (double)c->flows.n);
	put_gauge(f, "tenants", "tenants", (double)c->tenants.n);
	put_gauge(f, "jobs", "jobs", (double)c->jobs.n);
	put_gauge(f, "connections", "connections that are open",
	    atomic_load_explicit(&c->counters.connections, memory_order_relaxed));
	put_gauge(f, "requests_waiting", "requests that wait: for a change, for the store",
	    atomic_load_explicit(&c->counters.waiting, memory_order_relaxed));
	put_gauge(f, "revision", "the store's, as far as it is applied", (double)c->rev);
	put_gauge(f, "store_up", "1: the store answers", c->store_rc == 0);
	put_gauge(f, "crl_expires_seconds",
	    "nextUpdate of the revocation list, seconds since 1970; it revokes after that, too; 0: none",
	    c->trust ? (double)ctlr_trust_crl_ends(c->trust) : 0);
	put_gauge(f, "resident_bytes", "memory of this process", resident_bytes());
	put_gauge(f, "cpu_seconds", "processor time of this process", cpu_seconds());
	put_histogram(f, c);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
