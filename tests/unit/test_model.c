/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's JSON by tables: accepted input, and refusals with the name of the field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/model/model.h"

static int read_text(const char *text, const struct mdl_table *t, void *out, struct mdl_error *err)
{
	json_t *j = mdl_parse(text, strlen(text), err);
	int rc = j ? mdl_read(j, t, out, err) : RWY_EINVAL;

	json_decref(j);
	return rc;
}

static void push_is_read_and_written(void **state)
{
	static const char text[] =
	    "{\"class\": \"reserved\", \"bandwidth_bps\": 5, \"delay_us\": 1, \"jitter_us\": "
	    "2, \"loss_ppm\": 3, \"ttl_ms\": 100}";
	struct model_link_push m;
	struct mdl_error err;
	json_t *j, *want = json_loads(text, 0, NULL);

	assert_int_equal(read_text(text, &model_link_push_table, &m, &err), 0);
	assert_int_equal(m.class, MODEL_RESERVED);
	assert_int_equal(m.bandwidth_bps, 5);
	j = mdl_write(&model_link_push_table, &m);
	assert_true(json_equal(j, want));
	json_decref(j);
	json_decref(want);
}

static const struct {
	const char *text, *field, *says;
} bad[] = {
    {"{}", "class", "missing"},
    {"{\"class\": \"paper\"}", "class", "one of"},
    {"{\"class\": 1}", "class", "an integer"},
    {"{\"class\": \"internet\", \"bandwidth_bps\": -1}", "bandwidth_bps", "not negative"},
    {"{\"class\": \"internet\", \"bandwidth_bps\": 0}", "bandwidth_bps", "found 0"},
    {"{\"class\": \"internet\", \"bandwidth_bps\": 1.0}", "bandwidth_bps", "fraction"},
    {"{\"class\": \"internet\", \"bandwidth_bps\": \"1\"}", "bandwidth_bps", "a string"},
    {"{\"class\": \"internet\", \"bandwidth_bps\": null}", "bandwidth_bps", "null"},
    {"{\"class\": \"internet\", \"speed\": 1}", "speed", "unknown"},
    {"{\"class\": \"internet\", \"class\": \"internet\"}", "", "duplicate"},
    {"[]", "", "an array"},
    {"{", "", "JSON"},
    {"", "", "JSON"},
    {"{\"class\": [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}", "", "deep"},
};

static void what_is_wrong_is_named(void **state)
{
	struct model_link_push m, zero;

	memset(&zero, 0, sizeof(zero));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mdl_error err;

		memset(&m, 0, sizeof(m));
		assert_int_equal(read_text(bad[i].text, &model_link_push_table, &m, &err), RWY_EINVAL);
		assert_string_equal(err.field, bad[i].field);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: %s", bad[i].text, err.text);
		assert_memory_equal(&m, &zero, sizeof(m));
	}
}

static void entries_of_lists_are_named(void **state)
{
	static const char text[] =
	    "{\"lan\": [], \"wan\": [\"192.0.2.1:1\", \"192.0.2.1\"], \"boot_id\": \"b\", "
	    "\"site\": \"s\", \"version\": \"v\", \"ports\": [], \"capabilities\": {}}";
	struct model_registration m;
	struct mdl_error err;

	assert_int_equal(read_text(text, &model_registration_table, &m, &err), RWY_EINVAL);
	assert_string_equal(err.field, "wan[1]");
	assert_null(m.wan.at);
}

static void brackets_in_strings_are_not_deep(void **state)
{
	struct model_site m;
	struct mdl_error err;

	assert_int_equal(read_text("{\"location\": \"\\\\\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[\", \"prefixes\": []}",
	                     &model_site_table, &m, &err),
	    0);
	assert_string_equal(m.location, "\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[");
	mdl_free(&model_site_table, &m);
}

static void addresses_have_one_form(void **state)
{
	static const struct {
		const char *in, *ip, *prefix, *ip_port;
	} t[] = {
	    {"10.0.0.1", "10.0.0.1", NULL, NULL},
	    {"FD00:0::01", "fd00::1", NULL, NULL},
	    {"10.0.0.0/8", NULL, "10.0.0.0/8", NULL},
	    {"FD00:0::/16", NULL, "fd00::/16", NULL},
	    {"0.0.0.0/0", NULL, "0.0.0.0/0", NULL},
	    {"10.0.0.1:80", NULL, NULL, "10.0.0.1:80"},
	    {"[FD00::1]:80", NULL, NULL, "[fd00::1]:80"},
	    {"10.0.0.1/8", NULL, NULL, NULL},
	    {"10.0.0.0/08", NULL, NULL, NULL},
	    {"10.0.0.0/33", NULL, NULL, NULL},
	    {"10.0.0.1:080", NULL, NULL, NULL},
	    {"10.0.0.1:0", NULL, NULL, NULL},
	    {"10.0.0.1:65536", NULL, NULL, NULL},
	    {"[10.0.0.1]:1", NULL, NULL, NULL},
	    {"[fd00::1:1", NULL, NULL, NULL},
	    {"fd00::1:80:", NULL, NULL, NULL},
	    {"239.0.0.1", NULL, NULL, NULL},
	    {"::ffff:10.0.0.1", NULL, NULL, NULL},
	    {"::FFFF:a00:1", NULL, NULL, NULL},
	    {"[::ffff:10.0.0.1]:80", NULL, NULL, NULL},
	    {"::fffe:10.0.0.1", "::fffe:a00:1", NULL, NULL},
	    {"::/0", NULL, NULL, NULL},
	    {"::/1", NULL, NULL, NULL},
	    {"::/80", NULL, NULL, NULL},
	    {"::/81", NULL, "::/81", NULL},
	    {"::8000:0:0/81", NULL, NULL, NULL},
	    {"::ffff:0:0/96", NULL, NULL, NULL},
	    {"::ffff:10.0.0.0/104", NULL, NULL, NULL},
	    {"8000::/1", NULL, "8000::/1", NULL},
	    {"0.0.0.0", NULL, NULL, NULL},
	    {"::", NULL, NULL, NULL},
	    {"", NULL, NULL, NULL},
	    {":", NULL, NULL, NULL},
	    {"/", NULL, NULL, NULL},
	};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char out[MDL_ADDR];

		assert_int_equal(mdl_ip(t[i].in, out), t[i].ip != NULL);
		if (t[i].ip)
			assert_string_equal(out, t[i].ip);
		assert_int_equal(mdl_prefix(t[i].in, out), t[i].prefix != NULL);
		if (t[i].prefix)
			assert_string_equal(out, t[i].prefix);
		assert_int_equal(mdl_ip_port(t[i].in, out), t[i].ip_port != NULL);
		if (t[i].ip_port)
			assert_string_equal(out, t[i].ip_port);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(push_is_read_and_written),
	    cmocka_unit_test(what_is_wrong_is_named),
	    cmocka_unit_test(entries_of_lists_are_named),
	    cmocka_unit_test(brackets_in_strings_are_not_deep),
	    cmocka_unit_test(addresses_have_one_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
