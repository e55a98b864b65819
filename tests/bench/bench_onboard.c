/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants that are added, changed and removed while packets flow: how long each change takes until
 * every worker runs it, and how it disturbs other tenants' packets. Prints one line of JSON.
 *
 * It uses the gateways and hosts of fp_lab.h with two workers each. One thread runs all workers and
 * a host that sends WRITEs without pause over the plain LAN; the main thread changes gateway A's
 * tenants. No packet may be lost, and no queue pair may get a NAK. It also prints the longest turn
 * of a worker of A, among the turns that the kernel did not interrupt.
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/bench/fp_lab.h"

#define BURST    32
#define ROUNDS   8 /* changes of each kind at most, in thousands */
#define PREFIXES 4
#define RULES    10

struct run {
	struct fp_lab lab;
	struct fp_hosts *hosts;
	_Atomic bool stop;
	_Atomic uint64_t turn_max, turns; /* ticks of A's longest turn since the last reset */
};

static struct run r;

/* --- packets ------------------------------------------------------------------------------------------ */

static void wire(enum fp_site from)
{
	struct fp_port *port = &r.lab.gw[from].port[FP_WAN], *to = &r.lab.gw[1 - from].port[FP_WAN];
	struct rte_mbuf *m[BURST], *c;
	unsigned n;

	while ((n = fp_sent(port, m, BURST)) > 0)
		for (unsigned i = 0; i < n; i++) {
			c = fp_copy(&r.lab, rte_pktmbuf_mtod(m[i], void *), m[i]->data_len);
			for (struct rte_mbuf *s = m[i]->next; s; s = s->next)
				memcpy(rte_pktmbuf_append(c, s->data_len), rte_pktmbuf_mtod(s, void *),
				    s->data_len);
			rte_pktmbuf_free(m[i]);
			fp_arrive(to, c);
		}
}

static long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw + u.ru_nvcsw;
}

static void turn_worker(struct gw_worker *w)
{
	long before = switches();
	uint64_t t = rte_rdtsc_precise();

	gw_worker_turn(w);
	t = rte_rdtsc_precise() - t;
	if (switches() != before)
		return;
	atomic_fetch_add(&r.turns, 1);
	if (t > atomic_load(&r.turn_max))
		atomic_store(&r.turn_max, t);
}

static void turn(enum fp_site s)
{
	const struct gw_app *a = &r.lab.gw[s].app;

	for (unsigned i = 0; i < a->workers; i++)
		if (s == FP_A)
			turn_worker(a->worker[i]);
		else
			gw_worker_turn(a->worker[i]);
}

static uint64_t paired(void)
{
	const struct gw_app *a = &r.lab.gw[FP_A].app;
	uint64_t n = 0;

	for (unsigned i = 0; i < a->workers; i++)
		n += eng_counters(a->worker[i]->eng)->conns_paired;
	return n;
}

static bool waiting(enum fp_site s)
{
	return fp_port_waits(&r.lab.gw[s].port[FP_LAN]) || fp_port_waits(&r.lab.gw[s].port[FP_WAN]);
}

static void batch(unsigned packets)
{
	fp_hosts_send(r.hosts, packets);
	do
		turn(FP_A);
	while (waiting(FP_A));
	fp_hosts_read(r.hosts, FP_A);
	wire(FP_A);
	do {
		turn(FP_B);
		fp_hosts_read(r.hosts, FP_B);
	} while (waiting(FP_B));
	wire(FP_B);
}

static void *packets(void *arg)
{
	const struct fp_stats *st = fp_hosts_stats(r.hosts);
	cpu_set_t all;

	CPU_ZERO(&all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	/* EAL has bound the main thread to one CPU, and this thread with it */
	sched_setaffinity(0, sizeof(all), &all);
	while (!atomic_load(&r.stop))
		batch(r.lab.cfg.batch);
	for (uint64_t end = gw_now() + 5 * RWY_SEC; gw_now() < end && st->received < st->sent;)
		batch(0);
	return NULL;
}

/* Every queue pair is paired before measuring begins. */
static void warm_up(void)
{
	uint64_t end = gw_now() + 20 * RWY_SEC;

	batch(r.lab.cfg.qps);
	while (gw_now() < end && paired() < r.lab.cfg.qps)
		batch(0);
	for (unsigned i = 0; i < 100; i++)
		batch(r.lab.cfg.batch);
}

/* --- tenants ------------------------------------------------------------------------------------------- */

static struct prefix net(uint8_t a, uint8_t b, uint8_t c, uint8_t len)
{
	return (struct prefix){rwy_ip_from4((uint8_t[4]){a, b, c, 0}), (uint8_t)(96 + len)};
}

/* All have the same addresses. */
static struct conf_tenant tenant(unsigned i)
{
	static struct tenant_prefix p[PREFIXES];
	static struct acl_rule rule[RULES];
	struct conf_tenant t = {0};

	for (uint8_t k = 0; k < PREFIXES; k++)
		p[k] = (struct tenant_prefix){
		    net(10, (uint8_t)(50 + k), 0, 24), {k < 2 ? TENANT_VTEP : TENANT_TUNNEL, 0}};
	for (uint8_t k = 0; k < RULES; k++)
		rule[k] = (struct acl_rule){.src = net(10, 50, 0, 24),
		    .dst = net(10, 52, 0, 24),
		    .sport_lo = (uint16_t)(1000 * k),
		    .sport_hi = (uint16_t)(1000 * k + 9),
		    .classes = ACL_ALL};
	tenant_cfg_default(&t.cfg);
	snprintf(t.cfg.name, sizeof(t.cfg.name), "tenant-%u", i);
	t.cfg.vni = 1 + i;
	t.cfg.prefix = p;
	t.cfg.prefixes = PREFIXES;
	t.cfg.rule = rule;
	t.cfg.rules = RULES;
	t.cfg.vtep_learn = true;
	t.cfg.gw_mac[0] = 2;
	t.cfg.guarantee_Bps = 100000;
	return t;
}

static void must(int rc, const struct conf_error *err)
{
	if (rc)
		fp_die(err->msg);
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* Processor time of the main thread since the last call: the cost of a change besides waiting. */
static double cpu_ms(void)
{
	static double last;
	struct timespec ts;
	double now, d;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	now = (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
	d = now - last;
	last = now;
	return d;
}

static double turn_us(void)
{
	return (double)atomic_exchange(&r.turn_max, 0) * 1e6 / (double)rte_get_tsc_hz();
}

static void report(const char *what, uint64_t *took, unsigned n)
{
	qsort(took, n, sizeof(*took), order);
	printf(", \"%s\": {\"n\": %u, \"median_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, "
	       "\"cpu_ms\": %.3f, "
	       "\"turn_max_us\": %.1f}",
	    what, n, ms(took[n / 2]), ms(took[(n - 1) * 99 / 100]), ms(took[n - 1]), cpu_ms() / n, turn_us());
}

static void report_one(const char *what, uint64_t took)
{
	printf(", \"%s\": {\"ms\": %.3f, \"cpu_ms\": %.3f, \"turn_max_us\": %.1f}", what, ms(took), cpu_ms(),
	    turn_us());
}

static uint64_t reload(const struct conf_tenant *t, unsigned n, struct gw_tenants_done *done)
{
	struct conf_error err;

	must(gw_tenants_replace(&r.lab.gw[FP_A].app, t, n, done, &err), &err);
	return done->took;
}

static void changes(unsigned present, unsigned each)
{
	struct conf_tenant *all = calloc(present, sizeof(*all)), t;
	uint64_t *took = calloc(each, sizeof(*took)), one;
	struct gw_app *app = &r.lab.gw[FP_A].app;
	struct gw_tenants_done done;
	struct conf_error err;

	if (!all || !took)
		fp_die("no memory");
	for (unsigned i = 0; i < present; i++)
		all[i] = tenant(i);
	atomic_store(&r.turn_max, 0);
	nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
	printf(", \"turn_max_us\": %.1f", turn_us()); /* without changes */
	(void)cpu_ms();
	one = reload(all, present, &done);
	report_one("all_new", one);
	for (unsigned i = 0; i < each; i++) {
		t = tenant(present + i);
		must(gw_tenant_add(app, &t, &done, &err), &err);
		took[i] = done.took;
	}
	report("add", took, each);
	for (unsigned i = 0; i < each; i++) {
		t = tenant(present + i);
		t.cfg.limit_Bps = 1000000 + i;
		must(gw_tenant_set(app, &t, &done, &err), &err);
		took[i] = done.took;
	}
	report("set", took, each);
	for (unsigned i = 0; i < each; i++) {
		t = tenant(present + i);
		must(gw_tenant_del(app, t.cfg.name, &done, &err), &err);
		took[i] = done.took;
	}
	report("del", took, each);
	all[present / 2].cfg.weight = 7;
	one = reload(all, present, &done);
	if (done.same != present - 1 || done.changed != 1)
		fp_die("a reload changed what was the same");
	report_one("reload_one_changed", one);
	for (unsigned i = 0; i < present; i++)
		all[i].cfg.weight = 9;
	one = reload(all, present, &done);
	report_one("reload_all_changed", one);
	free(all);
	free(took);
}

/* bench_onboard [EAL arguments] -- [--tenants N] [--changes N]. */
int main(int argc, char **argv)
{
	static const struct option opts[] = {
	    {"tenants", required_argument, NULL, 't'}, {"changes", required_argument, NULL, 'c'}, {0}};
	struct fp_cfg cfg = {.payload = 1024, .qps = 16, .message = 8, .batch = 256, .workers = 2};
	unsigned present = 4000, each = 1000;
	const struct fp_stats *st;
	pthread_t th;
	int n, o;

	n = fp_begin(argc, argv, GW_LOG_WARNING);
	while ((o = getopt_long(argc - n, argv + n, "", opts, NULL)) != -1) {
		if (o == 't')
			present = fp_number(optarg, 1, TENANT_COUNT_MAX - 1000 * ROUNDS);
		else if (o == 'c')
			each = fp_number(optarg, 1, 1000 * ROUNDS);
		else
			return 2;
	}
	fp_lab_new(&r.lab, &cfg);
	r.hosts = fp_hosts_new(&r.lab);
	st = fp_hosts_stats(r.hosts);
	warm_up();
	if (pthread_create(&th, NULL, packets, NULL) != 0)
		fp_die("no thread");
	printf("{\"tenants\": %u", present);
	changes(present, each);
	atomic_store(&r.stop, true);
	pthread_join(th, NULL);
	printf(", \"packets\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"naks\": %" PRIu64 ", \"wrong\": %" PRIu64
	       "}\n",
	    st->sent, st->sent - st->received, st->nak, st->wrong);
	if (st->received != st->sent || st->wrong || st->nak)
		fp_die("packets were lost, wrong or not acknowledged");
	return 0;
}
