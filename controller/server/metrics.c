/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus text: counters, sizes, how long decisions took, this process. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "controller/state/ctlr.h"

#define BUCKETS 12 /* 50 us and twice as much each, then more */

struct counters counters;
static uint64_t decision_bucket[BUCKETS + 1], decision_ns;

static rwy_dur bound(unsigned i)
{
	return 50 * RWY_US << i;
}

void metrics_decision(rwy_dur took)
{
	unsigned i = 0;

	while (i < BUCKETS && took > bound(i))
		i++;
	__atomic_add_fetch(&decision_bucket[i], 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&decision_ns, took, __ATOMIC_RELAXED);
}

static void put_histogram(FILE *f)
{
	uint64_t sum = 0;

	fputs("# HELP roceway_controller_decision_seconds a report of sessions, from its last byte to its "
	      "answer\n"
	      "# TYPE roceway_controller_decision_seconds histogram\n",
	    f);
	for (unsigned i = 0; i <= BUCKETS; i++) {
		sum += __atomic_load_n(&decision_bucket[i], __ATOMIC_RELAXED);
		if (i < BUCKETS)
			fprintf(f, "roceway_controller_decision_seconds_bucket{le=\"%.6f\"} %" PRIu64 "\n",
			    (double)bound(i) / (double)RWY_SEC, sum);
	}
	fprintf(f, "roceway_controller_decision_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", sum);
	fprintf(f, "roceway_controller_decision_seconds_sum %.9f\n",
	    (double)__atomic_load_n(&decision_ns, __ATOMIC_RELAXED) / (double)RWY_SEC);
	fprintf(f, "roceway_controller_decision_seconds_count %" PRIu64 "\n", sum);
}

static void put_gauge(FILE *f, const char *name, const char *text, double v)
{
	fprintf(f,
	    "# HELP roceway_controller_%s %s\n# TYPE roceway_controller_%s gauge\nroceway_controller_%s "
	    "%.17g\n",
	    name, text, name, name, v);
}

static double resident(void)
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

static double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

char *metrics_text(struct ctlr *c)
{
	unsigned connections, waiting;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	http_count(&connections, &waiting);
#define X(name, help)                                                                                        \
	fprintf(f,                                                                                           \
	    "# HELP roceway_controller_" #name "_total %s\n# TYPE roceway_controller_" #name                 \
	    "_total counter\nroceway_controller_" #name "_total %" PRIu64 "\n",                              \
	    help, __atomic_load_n(&counters.name, __ATOMIC_RELAXED));
	COUNTERS(X)
#undef X
	put_gauge(f, "gateways", "gateways known", (double)c->gateways.n);
	put_gauge(f, "gateways_up", "gateways whose lease runs", c->up);
	put_gauge(f, "tunnels", "tunnels between gateways", (double)c->tunnels.n);
	put_gauge(f, "sessions", "open sessions", (double)c->sessions.n);
	put_gauge(f, "flows", "address pairs with sessions", (double)c->flows.n);
	put_gauge(f, "tenants", "tenants", (double)c->tenants.n);
	put_gauge(f, "jobs", "jobs", (double)c->jobs.n);
	put_gauge(f, "connections", "connections that are open", connections);
	put_gauge(f, "requests_waiting", "requests that wait: for a change, for the store", waiting);
	put_gauge(f, "revision", "the store's, as far as it is applied", (double)c->rev);
	put_gauge(f, "store_up", "1: the store answers", c->store_rc == 0);
	put_gauge(f, "resident_bytes", "memory of this process", resident());
	put_gauge(f, "cpu_seconds", "processor time of this process", cpu());
	put_histogram(f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
