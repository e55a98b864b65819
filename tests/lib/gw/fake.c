/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/gw/fake.h"

#include <time.h>

#include "gateway/control/tenants_int.h"
#include "tests/lib/heap_buf.h"
#include "tests/lib/rc_pkt.h"

struct fake fake;
void (*fake_on_call)(unsigned worker);
void (*fake_on_clear)(unsigned worker, uint32_t index);

/* --- functions of other parts of the gateway -------------------------------------------------- */

rwy_time gw_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (rwy_time)ts.tv_sec * RWY_SEC + (rwy_time)ts.tv_nsec + RWY_SEC;
}

enum { NONE, WAITING, DONE };

static void serve(struct gw_worker *w)
{
	if (atomic_load(&w->state) != WAITING)
		return;
	w->fn(w->eng, w->arg);
	atomic_store(&w->state, DONE);
}

int gw_call(struct gw_app *app, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	struct gw_worker *w = app->worker[worker];

	if (fake_on_call)
		fake_on_call(worker);
	if (w->calls_ok && --w->calls_ok == 0)
		w->hung = true;
	if (w->hung)
		return RWY_EAGAIN;
	if (!fake.running) {
		fn(w->eng, arg);
		return 0;
	}
	pthread_mutex_lock(&w->lock);
	w->fn = fn;
	w->arg = arg;
	atomic_store(&w->state, WAITING);
	while (atomic_load(&w->state) != DONE)
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	atomic_store(&w->state, NONE);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void tenants_take_up(struct gw_worker *w)
{
	gw_reader_quiescent(w->app->publisher, w->idx);
	w->ts = gw_tenants_of(w->app);
	atomic_store_explicit(&w->ts_gen, w->ts->generation, memory_order_release);
}

/* Nobody runs the workers: each has its turn when somebody asks how far they are. */
static void all_take_up(void)
{
	for (unsigned i = 0; i < fake.app.workers && !fake.running; i++) {
		struct gw_worker *w = fake.app.worker[i];

		if (w && !w->hung && !w->late)
			tenants_take_up(w);
	}
}

/* The linker puts these before the publisher's own (--wrap in the Makefile). */
bool __real_gw_publish_passed(struct gw_publisher *p, uint64_t token);
bool __wrap_gw_publish_passed(struct gw_publisher *p, uint64_t token);
bool __wrap_gw_publish_passed(struct gw_publisher *p, uint64_t token)
{
	all_take_up();
	return __real_gw_publish_passed(p, token);
}

bool __real_gw_publish_wait(struct gw_publisher *p, uint64_t token, rwy_dur at_most);
bool __wrap_gw_publish_wait(struct gw_publisher *p, uint64_t token, rwy_dur at_most);
bool __wrap_gw_publish_wait(struct gw_publisher *p, uint64_t token, rwy_dur at_most)
{
	all_take_up();
	return __real_gw_publish_wait(p, token, at_most);
}

bool gw_tenants_worker_clear(struct gw_app *app, unsigned worker, uint32_t index)
{
	struct gw_worker *w = app->worker[worker];

	if (fake_on_clear)
		fake_on_clear(worker, index);
	if (!w->hosts)
		return true;
	w->hosts--;
	return false;
}

/* --- engines ---------------------------------------------------------------------------------------- */

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct gw_worker *w = ctx;

	if (tx->buf && tx->own)
		heap_buf_free(&w->bufs, tx->buf);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct gw_worker *w = ctx;

	if (tx->buf && tx->own)
		heap_buf_free(&w->bufs, tx->buf);
}

static struct eng *engine(
    struct gw_worker *w, unsigned tunnels, struct eng_journal_entry *journal, uint32_t journal_n)
{
	static const struct eng_ops ops = {.lan_tx = lan_tx, .wan_tx = wan_tx};
	struct eng_cfg *c = malloc(sizeof(*c));
	struct eng *e;

	assert_non_null(c);
	eng_cfg_default(c);
	c->tunnels = tunnels;
	for (unsigned i = 0; i < tunnels; i++) {
		wan_cfg_default(&c->tunnel[i].wan);
		c->tunnel[i].wan.cc_cfg.rate_Bps = FAKE_RATE;
	}
	c->conns_max = c->half_open_max = 1000;
	c->custody_total = FAKE_CUSTODY;
	c->seed = w->idx + 1;
	c->journal = journal;
	c->journal_n = journal_n;
	assert_int_equal(eng_new(&e, c, &ops, w, (struct rwy_bufs){&heap_buf_ops, &w->bufs}, gw_now()), 0);
	free(c);
	return e;
}

void fake_send(struct gw_worker *w, uint16_t tenant, uint32_t qpn, uint32_t psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .ack_req = true,
	    .dqpn = qpn,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	struct rwy_buf *b = heap_buf_alloc(&w->bufs, 320, RC_PKT_MAX);

	b->len = rc_pkt_make(b->data, &m);
	eng_tenant_rx(w->eng, &b, &tenant, 1, gw_now());
}

/* --- start and stop --------------------------------------------------------------------------- */

void fake_new(unsigned workers)
{
	memset(&fake, 0, sizeof(fake));
	fake_on_call = NULL;
	fake_on_clear = NULL;
	fake.conf.workers = fake.app.workers = workers;
	fake.conf.tunnels = FAKE_TUNNELS;
	snprintf(fake.conf.tunnel[0].name, CONF_NAME, "site-b");
	snprintf(fake.conf.tunnel[1].name, CONF_NAME, "site-c");
	fake.conf.tunnel[0].rate_Bps = FAKE_RATE;
	fake.conf.conns_max = fake.conf.half_open_max = 1000 * workers;
	fake.app.conf = &fake.conf;
	fake.app.conf_path = "gw.yaml";
	assert_int_equal(gw_publisher_new(&fake.app.publisher, workers), 0);
}

void fake_workers(unsigned tunnels_of_last, struct eng_journal_entry *journal, uint32_t journal_n)
{
	for (unsigned i = 0; i < fake.app.workers; i++) {
		struct gw_worker *w = calloc(1, sizeof(*w));
		bool last = i + 1 == fake.app.workers;

		assert_non_null(w);
		w->app = &fake.app;
		w->idx = i;
		gw_reader_join(fake.app.publisher, i);
		w->eng = engine(w, last ? tunnels_of_last : FAKE_TUNNELS, i ? NULL : journal, journal_n);
		w->tenants = fake.app.tenant_count[i];
		pthread_mutex_init(&w->lock, NULL);
		assert_int_equal(gw_tenants_engine(&fake.app, w->eng, i, gw_now()), 0);
		fake.app.worker[i] = w;
	}
}

static void *main_loop(void *arg)
{
	struct gw_worker *w = arg;

	while (!atomic_load(&fake.stop)) {
		tenants_take_up(w);
		w->turn(w);
		eng_poll(w->eng, gw_now());
		serve(w);
		atomic_fetch_add(&w->turns, 1);
	}
	return NULL;
}

void fake_run(void (*turn)(struct gw_worker *w))
{
	fake.running = true;
	for (unsigned i = 0; i < fake.app.workers; i++) {
		fake.app.worker[i]->turn = turn;
		assert_int_equal(
		    pthread_create(&fake.app.worker[i]->thread, NULL, main_loop, fake.app.worker[i]), 0);
	}
}

void fake_end(void)
{
	atomic_store(&fake.stop, true);
	for (unsigned i = 0; i < fake.app.workers && fake.app.worker[i]; i++) {
		struct gw_worker *w = fake.app.worker[i];

		if (fake.running)
			pthread_join(w->thread, NULL);
		eng_free(w->eng);
		assert_int_equal(w->bufs, 0);
		pthread_mutex_destroy(&w->lock);
		gw_reader_leave(fake.app.publisher, i);
		free(w);
		fake.app.worker[i] = NULL;
	}
	gw_tenants_free(&fake.app);
	gw_publisher_free(fake.app.publisher);
	fake.app.publisher = NULL;
}

/* --- tenants ------------------------------------------------------------------------------------------ */

struct conf_tenant fake_tenant(const char *name, uint32_t vni)
{
#define NET(n, where, tunnel)                                                                                \
	{                                                                                                    \
		{{{[10] = 0xff, 0xff, 10, n}}, 96 + 24},                                                     \
		{                                                                                            \
			where, tunnel                                                                        \
		}                                                                                            \
	}
	static const struct tenant_prefix p[3] = {
	    NET(1, TENANT_VTEP, 0), NET(2, TENANT_TUNNEL, 0), NET(3, TENANT_TUNNEL, 1)};
#undef NET
	struct conf_tenant t = {.line = vni, .column = 5};

	tenant_cfg_default(&t.cfg);
	snprintf(t.cfg.name, sizeof(t.cfg.name), "%s", name);
	t.cfg.vni = vni;
	t.cfg.prefix = p;
	t.cfg.prefixes = 3;
	t.cfg.vtep_learn = true;
	t.cfg.gw_mac[0] = 2;
	return t;
}
