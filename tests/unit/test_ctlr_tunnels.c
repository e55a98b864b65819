/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about tunnels while a change of the tunnel is under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/fleet/fleet.h"
#include "controller/plan/book.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"

static rwy_time now = 1000 * RWY_SEC;

rwy_time ctlr_now(void)
{
	return now;
}

uint64_t ctlr_wall_ms(void)
{
	return 1700000000000 + now / RWY_MS;
}

/* --- replaces writer.c: changes of one record wait until the test takes them ------------------ */

struct ctlr_change {
	ctlr_change_cb *cb;
	void *ctx;
	char key[STORE_KEY_MAX], *value;
};

static struct ctlr_change *held; /* the one that is under way */

struct ctlr_change *ctlr_change_new(ctlr_change_cb *cb, void *ctx)
{
	struct ctlr_change *ch = calloc(1, sizeof(*ch));

	assert_non_null(ch);
	ch->cb = cb;
	ch->ctx = ctx;
	return ch;
}

void ctlr_change_set(struct ctlr_change *ch, ctlr_change_cb *cb, void *ctx)
{
	ch->cb = cb;
	ch->ctx = ctx;
}

void ctlr_change_put(struct ctlr_change *ch, const char *key, json_t *value)
{
	assert_null(ch->value);
	snprintf(ch->key, sizeof(ch->key), "%s", key);
	ch->value = json_dumps(value, JSON_COMPACT);
	json_decref(value);
}

void ctlr_change_del(struct ctlr_change *ch, const char *key)
{
	fail();
}

void ctlr_change_cmp(struct ctlr_change *ch, const char *key, uint64_t mod_rev)
{
}

unsigned ctlr_change_ops(const struct ctlr_change *ch)
{
	return ch->value ? 1 : 0;
}

bool ctlr_change_submit(struct ctlr *c, struct ctlr_change *ch)
{
	assert_null(held);
	held = ch;
	return true;
}

void ctlr_change_cancel(struct ctlr_change *ch)
{
	if (ch)
		free(ch->value);
	free(ch);
}

void ctlr_writer_free(struct ctlr *c)
{
}

/* --- the state -------------------------------------------------------------------------------- */

static void applied(struct ctlr *c, bool stop)
{
}

static void removed(struct ctlr *c, struct ctlr_gateway *g)
{
}

static const struct ctlr_ops ops = {.applied = applied, .gateway_removed = removed};
static struct ctlr_conf conf;
static struct ctlr c = {.conf = &conf, .ops = &ops, .lock = PTHREAD_MUTEX_INITIALIZER};

static void apply(const char *key, const char *value)
{
	const struct store_kv kv = {
	    .key = key, .value = value, .len = strlen(value), .create_rev = c.rev + 1, .mod_rev = c.rev + 1};

	c.rev++;
	ctlr_apply_record(&c, &kv);
}

static void gateway(const char *name, const char *site, unsigned n)
{
	char key[64], value[512];

	snprintf(key, sizeof(key), "gateway/%s", name);
	snprintf(value, sizeof(value),
	    "{\"registration\": {\"boot_id\": \"b\", \"site\": \"%s\", \"version\": \"1\", \"lan\": "
	    "[\"10.%u.0.1\"], \"wan\": [\"192.0.2.%u:4793\"], \"ports\": [], \"capabilities\": {\"rocev2\": "
	    "{\"bandwidth_bps\": 10000000000, \"cnp\": true}}}, \"lease\": \"0123456789abcdef\", \"owner\": "
	    "\"me\", \"state\": \"up\"}",
	    site, n, n);
	apply(key, value);
}

/* Ticks for a time after which all tunnels have been looked at. */
static void tick(void)
{
	for (unsigned i = 0; i < 2 * 1000 / CTLR_TICK_MS; i++) {
		now += CTLR_TICK_MS * RWY_MS;
		ctlr_tunnels_tick(&c, now);
	}
}

/* The store takes the change that is under way, or refuses it. */
static void take(int rc)
{
	struct ctlr_change *ch = held;

	assert_non_null(ch);
	held = NULL;
	if (!rc)
		apply(ch->key, ch->value);
	ch->cb(ch->ctx, rc, c.rev);
	ctlr_change_cancel(ch);
}

static void promise(const char *bps)
{
	char value[256];

	snprintf(value, sizeof(value),
	    "{\"link\": {\"class\": \"reserved\", \"bandwidth_bps\": %s, \"delay_us\": 5, \"jitter_us\": "
	    "1, "
	    "\"loss_ppm\": 0, \"ttl_ms\": 86400000}, \"at_ms\": %llu}",
	    bps, (unsigned long long)ctlr_wall_ms());
	apply("link/a/b/net", value);
}

static uint64_t rate(void)
{
	const struct ctlr_tunnel *t = ctlr_tunnel_find(&c, "gw-a", "gw-b");

	return t && t->has ? t->rate_bps : 0;
}

/* What the decision is made from changes while the store has the one before. */
static void what_changes_during_a_change_counts_after_it(void **state)
{
	uint64_t before;

	tick();
	take(0);
	tick();
	assert_null(held);
	before = rate();
	assert_true(before > 5000000000);
	promise("4000000000");
	tick();
	assert_non_null(held);
	promise("1000000000");
	tick();
	take(0);
	assert_true(rate() < before && rate() > 3000000000);
	tick();
	take(0);
	assert_true(rate() <= 1000000000);
	tick();
	assert_null(held);
}

static void a_change_that_fails_is_made_again(void **state)
{
	promise("3000000000");
	tick();
	take(STORE_EDOWN);
	tick();
	take(0);
	assert_true(rate() > 1000000000);
	tick();
	assert_null(held);
}

static int set_up(void **state)
{
	static const char text[] = "controller: {name: me}\nlisten: {address: '127.0.0.1:1'}\n"
	                           "tls: {ca: a, certificate: b, key: c}\nstore: {kind: sqlite, path: p}\n";
	struct conf_error err;

	if (ctlr_conf_parse(&conf, text, sizeof(text) - 1, "", &err) || plan_book_new(&c.book) ||
	    ctlr_events_new(&c.events))
		return -1;
	ctlr_replica_renewed(&c, now);
	apply("site/a", "{\"prefixes\": [\"10.1.0.0/16\"]}");
	apply("site/b", "{\"prefixes\": [\"10.2.0.0/16\"]}");
	gateway("gw-a", "a", 11);
	gateway("gw-b", "b", 21);
	return 0;
}

static int tear_down(void **state)
{
	ctlr_state_free(&c);
	ctlr_events_free(c.events);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_changes_during_a_change_counts_after_it),
	    cmocka_unit_test(a_change_that_fails_is_made_again),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
