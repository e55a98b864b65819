/* SPDX-License-Identifier: Apache-2.0 */
/* The redirects of a site are what a host takes (shim/policy.h), and no more. */
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
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "shim/policy.h"

#define RELAYS   9
#define SITES    20
#define PREFIXES 64 /* of a site */

static void removed(struct ctlr *c, struct ctlr_gateway *g)
{
}

static const struct ctlr_ops ops = {.gateway_removed = removed};
static struct ctlr_conf conf;
static struct ctlr c = {.conf = &conf, .ops = &ops, .lock = PTHREAD_MUTEX_INITIALIZER};

static void apply(const char *key, const char *value)
{
	const struct store_kv kv = {
	    .key = key, .value = value, .len = strlen(value), .create_rev = c.rev + 1, .mod_rev = c.rev + 1};

	c.rev++;
	ctlr_apply_record(&c, &kv);
}

static void relay(const char *name, const char *site, unsigned n)
{
	char key[64], value[768];

	snprintf(key, sizeof(key), "gateway/%s", name);
	snprintf(value, sizeof(value),
	    "{\"registration\": {\"boot_id\": \"b\", \"site\": \"%s\", \"version\": \"1\", \"lan\": "
	    "[\"10.255.%u.1\"], \"wan\": [\"192.0.2.%u:4793\"], \"ports\": [], \"capabilities\": "
	    "{\"rocev2\": "
	    "{\"bandwidth_bps\": 10000000000, \"cnp\": true}, \"relay\": {\"addresses\": [\"10.255.%u.1\"], "
	    "\"ask_port\": 4795, \"redirect_port\": 4790, \"links_max\": 9}}}, \"lease\": "
	    "\"0123456789abcdef\", \"owner\": \"me\", \"state\": \"up\"}",
	    site, n, n, n);
	apply(key, value);
}

/* A site with prefixes 10.N.0.0/24 and on, and a relay that all relays of the site `here` have a
 * tunnel to. */
static void far_site(unsigned n, unsigned prefixes)
{
	char name[32], key[96], *value;
	json_t *list = json_array();

	for (unsigned i = 0; i < prefixes; i++)
		json_array_append_new(list, json_sprintf("10.%u.%u.0/24", n, i));
	list = json_pack("{s:o}", "prefixes", list);
	value = json_dumps(list, 0);
	json_decref(list);
	snprintf(key, sizeof(key), "site/s%u", n);
	apply(key, value);
	free(value);
	snprintf(name, sizeof(name), "z%u", n);
	snprintf(key, sizeof(key), "s%u", n);
	relay(name, key, 100 + n);
	for (unsigned i = 0; i < RELAYS; i++) {
		snprintf(key, sizeof(key), "tunnel/r%u/%s", i, name);
		apply(
		    key, "{\"carrier\": \"native\", \"rate_bps\": 1000, \"weight\": 1, \"rule\": \"first\"}");
	}
}

struct found {
	size_t prefixes, relays;
};

static struct found look(void)
{
	struct ctlr_req *r = calloc(1, sizeof(*r));
	struct found f = {0};
	json_t *list, *o;
	size_t i;

	assert_non_null(r);
	r->c = &c;
	r->params = 1;
	snprintf(r->param[0].name, sizeof(r->param[0].name), "site");
	snprintf(r->param[0].value, sizeof(r->param[0].value), "here");
	((struct ctlr_site *)ctlr_map_find(&c.sites, "here"))->redirects_at = 0; /* made anew */
	assert_int_equal(ctlr_api_redirects_get(&c, r), REQ_DONE);
	assert_int_equal(r->status, 200);
	list = json_object_get(r->json, "redirects");
	f.prefixes = json_array_size(list);
	json_array_foreach(list, i, o) f.relays += json_array_size(json_object_get(o, "relays"));
	json_decref(r->json);
	free(r);
	return f;
}

/* How many events say that prefixes are left out. */
static unsigned told(void)
{
	json_t *all = ctlr_events_json(&c, 0, 5000), *e;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(all, "events"), i, e) n +=
	    strstr(json_string_value(json_object_get(e, "text")), "left out") != NULL;
	json_decref(all);
	return n;
}

static void no_more_relays_than_a_host_takes(void **state)
{
	struct found f;

	for (unsigned n = 1; n <= 7; n++)
		far_site(n, PREFIXES);
	f = look();
	assert_int_equal(f.prefixes, 7 * PREFIXES);
	assert_int_equal(f.relays, 7 * PREFIXES * RELAYS);
	assert_int_equal(told(), 0);
	far_site(8, PREFIXES);
	f = look();
	assert_true(f.relays <= SHIM_RELAYS_MAX && f.prefixes >= 7 * PREFIXES);
	assert_int_equal(told(), 1);
	(void)look();
	assert_int_equal(told(), 1);
}

static void no_more_prefixes_than_a_host_takes(void **state)
{
	struct found f;

	for (unsigned i = 1; i < RELAYS; i++) {
		char key[32];

		snprintf(key, sizeof(key), "r%u", i);
		ctlr_gateway_free(&c, ctlr_map_find(&c.gateways, key));
	}
	for (unsigned n = 9; n <= SITES; n++)
		far_site(n, PREFIXES);
	f = look();
	assert_int_equal(f.prefixes, SHIM_RULES_MAX);
	assert_int_equal(f.relays, SHIM_RULES_MAX);
	assert_int_equal(told(), 2);
}

static int set_up(void **state)
{
	static const char text[] = "controller: {name: me}\nlisten: {address: '127.0.0.1:1'}\n"
	                           "tls: {ca: a, certificate: b, key: c}\nstore: {kind: sqlite, path: p}\n";
	struct conf_error err;

	if (ctlr_conf_parse(&conf, text, sizeof(text) - 1, "", &err) || plan_book_new(&c.book) ||
	    ctlr_events_new(&c.events))
		return -1;
	apply("site/here", "{\"prefixes\": [\"10.200.0.0/16\"]}");
	for (unsigned i = 0; i < RELAYS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "r%u", i);
		relay(name, "here", 10 + i);
	}
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
	    cmocka_unit_test(no_more_relays_than_a_host_takes),
	    cmocka_unit_test(no_more_prefixes_than_a_host_takes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
