/* SPDX-License-Identifier: Apache-2.0
 * The providers `static` and `http`: files and answers that are wrong, tunnels made, changed, refused and
 * dropped. `http` talks to a real server (tests/lib/provider/network.py).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "controller/provider/provider.h"
#include "controller/provider/json.h"

#define G UINT64_C(1000000000)

static struct provider_err err;

static const struct {
	const char *text, *message; /* NULL: valid */
	unsigned have;
} files[] = {
    {"{\"paths\": []}", NULL, 0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 1, \"delay_us\": 1}]}", NULL, 0},
    {"", "f:1: '[' or '{' expected near end of file", 0},
    {"[]", "f: is no object", 0},
    {"{}", "f: paths is missing, or no list", 0},
    {"{\"paths\": 1}", "f: paths is missing, or no list", 0},
    {"{\"paths\": [], \"more\": 1}", "f: more is not known", 0},
    {"{\"paths\": [7]}", "f: paths[0] is no object", 0},
    {"{\"paths\": [], \"paths\": []}", "f:1: duplicate object key near '\"paths\"'", 0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 1}]}", "f: paths[0].delay_us is missing",
        0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": -1, \"delay_us\": 1}]}",
        "f: paths[0].free_bps is negative", 0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 1.5, \"delay_us\": 1}]}",
        "f: paths[0].free_bps is no integer", 0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 9000000000000000000, \"delay_us\": 1}]}",
        "f: paths[0].free_bps is too large", 0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 1, \"delay_us\": 60000001}]}",
        "f: paths[0].delay_us is too large", 0},
    {"{\"paths\": [{\"edge\": \"e/f\", \"name\": \"n\", \"free_bps\": 1, \"delay_us\": 1}]}",
        "f: paths[0].edge is no name of 1 to 63 letters, digits, '-', '_' and '.'", 0},
    {"{\"paths\": [{\"edge\": 7, \"name\": \"n\", \"free_bps\": 1, \"delay_us\": 1}]}",
        "f: paths[0].edge is no string", 0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 1, \"delay_us\": 1, \"colour\": 1}]}",
        "f: paths[0].colour is not known", 0},
    {"{\"paths\": [{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 1, \"delay_us\": 1},"
     "{\"edge\": \"e\", \"name\": \"n\", \"free_bps\": 2, \"delay_us\": 2}]}",
        "f: path n at edge e is there twice", 0},
    {"{\"paths\": [{\"first\": \"a\", \"second\": \"a\", \"edge\": \"e\", \"name\": \"n\", "
     "\"bandwidth_bps\": 1,"
     "\"delay_us\": 1}]}",
        "f: paths[0].second is the same site", PROVIDER_JSON_SITES},
    {"{\"paths\": [{\"first\": \"b\", \"second\": \"a\", \"edge\": \"e\", \"name\": \"n\", \"free_bps\": 1, "
     "\"delay_us\": 1}]}",
        "f: paths[0].free_bps is not known", PROVIDER_JSON_SITES},
    {"{\"paths\": [{\"first\": \"b\", \"second\": \"a\", \"edge\": \"e\", \"name\": \"n\", "
     "\"bandwidth_bps\": 1,"
     "\"delay_us\": 1}]}",
        NULL, PROVIDER_JSON_SITES},
    {"{\"paths\": [{\"first\": \"b\", \"second\": \"a\", \"edge\": \"e\", \"name\": \"n\", "
     "\"bandwidth_bps\": 1,"
     "\"delay_us\": 1}]}",
        "f: paths[0].interface is missing", PROVIDER_JSON_SITES | PROVIDER_JSON_LINUX},
};

#define STEER(s)                                                                                             \
	"{\"paths\": [{\"first\": \"b\", \"second\": \"a\", \"edge\": \"e\", \"name\": \"n\", "              \
	"\"bandwidth_bps\": "                                                                                \
	"1, \"delay_us\": 1, \"steer\": " s "}]}"

/* How datagrams get into a path. The sites are put in order, and so are their addresses. */
static void test_steer(void **state)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
	    {STEER("7"), "f: paths[0].steer is no object"},
	    {STEER("{}"), "f: paths[0].steer says nothing: first, second, dscp or source_port"},
	    {STEER("{\"colour\": 1}"), "f: paths[0].steer.colour is not known"},
	    {STEER("{\"dscp\": 0}"), "f: paths[0].steer.dscp is out of range"},
	    {STEER("{\"dscp\": 64}"), "f: paths[0].steer.dscp is out of range"},
	    {STEER("{\"dscp\": \"ef\"}"), "f: paths[0].steer.dscp is no integer"},
	    {STEER("{\"source_port\": 80}"), "f: paths[0].steer.source_port is out of range"},
	    {STEER("{\"first\": \"pe-1\"}"), "f: paths[0].steer.first is no address or prefix"},
	    {STEER("{\"first\": \"192.0.2.1/33\"}"), "f: paths[0].steer.first is no address or prefix"},
	    {STEER("{\"first\": \"192.0.2.1/\"}"), "f: paths[0].steer.first is no address or prefix"},
	    {STEER("{\"second\": 7}"), "f: paths[0].steer.second is no address or prefix"},
	    {STEER("{\"first\": \"192.0.2.1\", \"second\": \"2001:db8::1\"}"),
	        "f: paths[0].steer.second is of another family than steer.first"},
	};
	static const char good[] = STEER("{\"first\": \"192.0.2.2\", \"second\": \"198.51.100.0/24\", "
	                                 "\"dscp\": 10, \"source_port\": 5000}");
	struct provider_path *p;
	struct plan_steer again;
	char why[96];
	json_t *j;

	assert_int_equal(provider_json_paths(&p, good, strlen(good), PROVIDER_JSON_SITES, "f", &err), 1);
	assert_string_equal(p->first, "a");
	assert_string_equal(p->route.steer.net[0], "198.51.100.0/24");
	assert_string_equal(p->route.steer.net[1], "192.0.2.2");
	assert_int_equal(p->route.steer.dscp, 10);
	assert_int_equal(p->route.steer.source_port, 5000);
	j = provider_steer_json(&p->route.steer);
	assert_true(provider_json_steer(&again, j, why, sizeof(why)));
	assert_memory_equal(&again, &p->route.steer, sizeof(again));
	json_decref(j);
	free(p);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
		    provider_json_paths(&p, bad[i].text, strlen(bad[i].text), PROVIDER_JSON_SITES, "f", &err),
		    RWY_EINVAL);
		assert_string_equal(err.text, bad[i].message);
	}
}

static void test_json(void **state)
{
	struct provider_path *p;
	unsigned i;
	int n;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		err.text[0] = '\0';
		n = provider_json_paths(&p, files[i].text, strlen(files[i].text), files[i].have, "f", &err);
		if (!files[i].message != (n >= 0))
			fail_msg("%s: %d, %s", files[i].text, n, err.text);
		if (files[i].message)
			assert_string_equal(err.text, files[i].message);
		else if (n)
			assert_true(p->first[0] == '\0' || strcmp(p->first, "a") == 0); /* sites in order */
		free(p);
	}
}

static struct provider *open_with(const char *kind, const struct provider_option *o, unsigned n)
{
	struct provider *p = NULL;

	if (provider_find(kind)->open(&p, o, n, &err))
		fail_msg("%s", err.text);
	return p;
}

static struct provider *open_static(void)
{
	const struct provider_option o = {"file", "conf/samples/jobs/three-sites.json"};

	return open_with("static", &o, 1);
}

/* Long enough for a server that others keep from running. */
#define PATIENT "60000"
#define HASTY   "300"

static struct provider *open_http(const char *at, const char *timeout_ms)
{
	const struct provider_option o[] = {{"url", at}, {"timeout_ms", timeout_ms}};

	return open_with("http", o, 2);
}

static void test_options(void **state)
{
	static const struct {
		const char *kind;
		struct provider_option o[2];
		unsigned n;
		const char *message;
	} cases[] = {
	    {"static", {{NULL, NULL}}, 0, "file: is missing"},
	    {"static", {{"path", "x"}}, 1, "path: no such option"},
	    {"static", {{"fil", "x"}}, 1, "fil: no such option"},
	    {"static", {{"file", "x"}, {"file", "y"}}, 2, "file: is there twice"},
	    {"static", {{"file", "/nonexistent/x"}}, 1, "/nonexistent/x: cannot be read"},
	    {"http", {{NULL, NULL}}, 0, "url: has to begin with https:// or http://"},
	    {"http", {{"url", "file:///etc/passwd"}}, 1, "url: has to begin with https:// or http://"},
	    {"http", {{"url", "http://h"}, {"timeout_ms", "0"}}, 2, "timeout_ms: has to be 1 to 60000"},
	    {"http", {{"url", "http://h"}, {"cert", "c"}}, 2, "key: is missing beside cert"},
	    {"linux", {{NULL, NULL}}, 0, "file: is missing"},
	};
	struct provider *p;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(provider_find(cases[i].kind)->open(&p, cases[i].o, cases[i].n, &err) < 0);
		assert_null(p);
		assert_string_equal(err.text, cases[i].message);
	}
	assert_null(provider_find("mpls"));
	for (i = 0; provider_at(i); i++)
		provider_at(i)->close(NULL);
	assert_int_equal(i, 3);
}

static uint64_t free_at(struct provider *p, const char *a, const char *b, unsigned i)
{
	struct plan_route r[PLAN_ROUTES_MAX];

	assert_true(p->ops->routes(p, a, b, r, PLAN_ROUTES_MAX, &err) > (int)i);
	return r[i].free_bps;
}

/* Asks, places and makes; a refusal of the network causes a second attempt. RWY_EAGAIN: it does not
 * fit. */
static int place(struct provider *p, const char *name, const char *a, const char *b, uint64_t bps)
{
	static struct plan_route r[PLAN_ROUTES_MAX];
	static struct plan_placement pl;
	const struct plan_want want = {bps, 0, 0, 0};
	int rc = PROVIDER_EREFUSED;

	for (unsigned i = 0; i < 2 && rc == PROVIDER_EREFUSED; i++) {
		const int n = p->ops->routes(p, a, b, r, PLAN_ROUTES_MAX, &err);

		assert_true(n >= 0);
		assert_int_equal(plan_place(&pl, &want, r, (unsigned)n), 0);
		if (pl.fail != PLAN_PLACED)
			return RWY_EAGAIN;
		rc = p->ops->make(p, name, a, b, r, &pl, &err);
	}
	return rc;
}

static void test_static(void **state)
{
	struct provider *p = open_static();
	struct plan_route r[1];

	assert_int_equal(place(p, "t1", "hangzhou", "qingyang", 60 * G), 0);
	assert_int_equal(free_at(p, "hangzhou", "qingyang", 0), 40 * G);
	assert_int_equal(free_at(p, "cluster2", "qingyang", 0), 100 * G);
	assert_int_equal(place(p, "t2", "hangzhou", "qingyang", 50 * G), RWY_EAGAIN);
	assert_int_equal(place(p, "t2", "hangzhou", "qingyang", 40 * G), 0);
	assert_int_equal(free_at(p, "hangzhou", "qingyang", 0), 0);
	assert_int_equal(p->ops->drop(p, "t1", &err), 0);
	assert_int_equal(p->ops->drop(p, "t1", &err), 0);
	assert_int_equal(free_at(p, "hangzhou", "qingyang", 0), 60 * G);
	assert_int_equal(p->ops->routes(p, "here", "there", r, 1, &err), 0);
	assert_int_equal(place(p, "t3", "here", "there", G), RWY_EAGAIN);
	p->ops->close(p);
}

/* A tunnel is changed in place: its present bandwidth counts as free; a change that does not fit
 * leaves it unchanged. */
static void test_change(void **state)
{
	struct provider *p = open_static();
	static struct plan_route r[PLAN_ROUTES_MAX];
	struct plan_placement pl = {.n = 1, .leg = {{0, 90 * G}}};

	assert_int_equal(p->ops->routes(p, "hangzhou", "qingyang", r, PLAN_ROUTES_MAX, &err), 1);
	assert_int_equal(p->ops->make(p, "t", "hangzhou", "qingyang", r, &pl, &err), 0);
	pl.leg[0].bps = 95 * G;
	assert_int_equal(p->ops->make(p, "t", "hangzhou", "qingyang", r, &pl, &err), 0);
	assert_int_equal(free_at(p, "hangzhou", "qingyang", 0), 5 * G);
	pl.leg[0].bps = 101 * G;
	assert_int_equal(p->ops->make(p, "t", "hangzhou", "qingyang", r, &pl, &err), PROVIDER_EREFUSED);
	assert_string_equal(err.text, "path p at edge pe-1 lacks the bandwidth");
	assert_int_equal(free_at(p, "hangzhou", "qingyang", 0), 5 * G);
	strcpy(r[0].name, "x");
	assert_int_equal(p->ops->make(p, "t", "hangzhou", "qingyang", r, &pl, &err), PROVIDER_EREFUSED);
	assert_string_equal(err.text, "no path x at edge pe-1");
	p->ops->close(p);
}

static pid_t server;
static char url[64];

static int start_server(void **state)
{
	int out[2], in[2];
	char port[16] = "";
	ssize_t n;

	if (pipe(out) || pipe(in))
		return -1;
	server = fork();
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(out[1], 1);
		(void)dup2(in[0], 0);
		(void)close(out[0]);
		(void)close(in[1]);
		(void)execl("/usr/bin/python3", "python3", "tests/lib/provider/network.py", (char *)NULL);
		_exit(1);
	}
	(void)close(out[1]);
	n = read(out[0], port, sizeof(port) - 1);
	if (n <= 0)
		return -1;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%ld/", strtol(port, NULL, 10));
	return 0;
}

static int stop_server(void **state)
{
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	return 0;
}

/* Which legs of a tunnel are there. */
static void test_legs(void **state)
{
	static const struct {
		const char *text;
		int n;
		const char *message;
	} cases[] = {
	    {"", PROVIDER_WHOLE, NULL},
	    {"<html>", PROVIDER_WHOLE, NULL},
	    {"{\"name\": \"t\"}", PROVIDER_WHOLE, NULL},
	    {"{\"legs\": []}", 0, NULL},
	    {"{\"legs\": [{\"edge\": \"e\", \"path\": \"p\", \"bandwidth_bps\": 7}]}", 1, NULL},
	    {"{\"legs\": 7}", RWY_EINVAL, "f: legs is no list"},
	    {"{\"legs\": [7]}", RWY_EINVAL, "f: legs[0].edge is no string"},
	    {"{\"legs\": [{\"edge\": \"e\"}]}", RWY_EINVAL, "f: legs[0].path is no string"},
	    {"{\"legs\": [{\"edge\": \"e/f\", \"path\": \"p\"}]}", RWY_EINVAL,
	        "f: legs[0].edge is no name of 1 to 63 letters, digits, '-', '_' and '.'"},
	};
	struct plan_route r[4];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
		    provider_json_legs(r, 4, cases[i].text, strlen(cases[i].text), "f", &err), cases[i].n);
		if (cases[i].message)
			assert_string_equal(err.text, cases[i].message);
	}
}

static void test_http(void **state)
{
	struct provider *p = open_http(url, PATIENT);
	struct plan_route there[4];
	static struct plan_route r[PLAN_ROUTES_MAX];

	assert_int_equal(p->ops->routes(p, "a", "b", r, PLAN_ROUTES_MAX, &err), 2);
	assert_string_equal(r[1].edge, "pe-2");
	assert_int_equal(r[1].delay_us, 12000);
	assert_int_equal(r[1].loss_ppm, 1);
	assert_int_equal(place(p, "t1", "a", "b", 75 * G), 0); /* 2:1 over both edges */
	assert_int_equal(free_at(p, "a", "b", 0), 50 * G);
	assert_int_equal(free_at(p, "a", "b", 1), 25 * G);
	assert_int_equal(place(p, "t2", "a", "b", 76 * G), RWY_EAGAIN);
	assert_int_equal(p->ops->has(p, "t1", there, 4, &err), 2);
	assert_string_equal(there[1].edge, "pe-2");
	assert_string_equal(there[1].name, "q");
	assert_int_equal(p->ops->has(p, "t1", there, 1, &err), 1);
	assert_int_equal(p->ops->drop(p, "t1", &err), 0);
	assert_int_equal(p->ops->has(p, "t1", there, 4, &err), 0);
	assert_int_equal(p->ops->drop(p, "t1", &err), 0);
	assert_int_equal(free_at(p, "a", "b", 0), 100 * G);
	/* Another tunnel was faster: refused once, asked again, placed on the rest. */
	assert_int_equal(place(p, "contested", "a", "b", 75 * G), 0);
	assert_int_equal(free_at(p, "a", "b", 0) + free_at(p, "a", "b", 1), 15 * G);
	assert_int_equal(p->ops->drop(p, "contested", &err), 0);
	/* A name with all kinds of characters. */
	assert_int_equal(place(p, "t/../ \"\\?", "a", "b", G), 0);
	assert_true(p->ops->has(p, "t/../ \"\\?", there, 4, &err) > 0);
	assert_int_equal(p->ops->drop(p, "t/../ \"\\?", &err), 0);
	assert_int_equal(free_at(p, "a", "b", 1), 50 * G);
	p->ops->close(p);
}

static void test_http_bad(void **state)
{
	struct provider *p = open_http(url, PATIENT), *hasty = open_http(url, HASTY);
	struct plan_placement pl = {.n = 1, .leg = {{0, 500 * G}}};
	static struct plan_route r[PLAN_ROUTES_MAX];

	assert_int_equal(p->ops->routes(p, "a", "nosuch", r, 8, &err), 0);
	/* It answers when nobody listens any more. */
	assert_int_equal(hasty->ops->routes(hasty, "a", "slow", r, 8, &err), PROVIDER_ETIMEDOUT);
	hasty->ops->close(hasty);
	assert_int_equal(p->ops->routes(p, "a", "garbage", r, 8, &err), PROVIDER_EBAD);
	assert_non_null(strstr(err.text, ": paths[0].free_bps is negative"));
	assert_int_equal(p->ops->routes(p, "a", "huge", r, 8, &err), PROVIDER_EBAD);
	assert_non_null(strstr(err.text, "longer than 1 MiB"));
	assert_int_equal(p->ops->routes(p, "a", "broken", r, 8, &err), PROVIDER_EBAD);
	assert_string_equal(err.text, "status 500");
	assert_int_equal(p->ops->routes(p, "a", "b", r, 8, &err), 2);
	assert_int_equal(p->ops->make(p, "t", "a", "b", r, &pl, &err), PROVIDER_EREFUSED);
	assert_string_equal(err.text, "pe-1/p: taken meanwhile");
	p->ops->close(p);
	p = open_http("http://127.0.0.1:1", PATIENT);
	assert_int_equal(p->ops->routes(p, "a", "b", r, 8, &err), PROVIDER_EIO);
	p->ops->close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_steer),
	    cmocka_unit_test(test_legs),
	    cmocka_unit_test(test_options),
	    cmocka_unit_test(test_static),
	    cmocka_unit_test(test_change),
	    cmocka_unit_test(test_http),
	    cmocka_unit_test(test_http_bad),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
