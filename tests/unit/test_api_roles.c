/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles at the local API: who has which, what a page needs, and what is said to whom it is refused.
 * tests/component/gw_roles.py has real users at a real gateway.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/api/role.h"
#include "gateway/api/routes.h"

#define OWN 990u /* the gateway's user */

/* The pages themselves are not here. */
#define PAGE(name)                                                                                           \
	void name(const struct api_req *req, struct api_reply *reply)                                        \
	{                                                                                                    \
	}
PAGE(api_status)
PAGE(api_flows)
PAGE(api_recorder)
PAGE(api_standby)
PAGE(api_tunnels)
PAGE(api_tunnel)
PAGE(api_tenants)
PAGE(api_tenant)
PAGE(api_reload)
PAGE(api_memory)
PAGE(api_drain)
PAGE(api_capture)
PAGE(api_counters)
PAGE(api_ports)
PAGE(api_neighbours)
PAGE(api_links)
PAGE(api_map)
PAGE(api_map_entry)
PAGE(api_siblings)
PAGE(api_reservations)
PAGE(api_workers)
PAGE(api_controller)
PAGE(api_offload)
PAGE(api_metrics)
PAGE(api_livez)
PAGE(api_readyz)
PAGE(api_healthz)

static const struct gw_access both = {
    .read_group = "look", .operator_group = "touch", .read_gid = 100, .operator_gid = 200};

static enum api_role role(const struct gw_access *a, uint32_t uid, uint32_t gid, uint32_t g1, uint32_t g2)
{
	uint32_t group[2] = {g1, g2};
	const struct api_peer p = {
	    .uid = uid, .gid = gid, .group = group, .groups = (g1 != CONF_NO_GID) + (g2 != CONF_NO_GID)};

	return api_peer_role(&p, a, OWN);
}

static void test_roles(void **state)
{
	static const struct {
		uint32_t uid, gid, g1, g2;
		enum api_role want;
	} cases[] = {
	    {0, 0, CONF_NO_GID, CONF_NO_GID, API_OPERATOR},
	    {OWN, OWN, CONF_NO_GID, CONF_NO_GID, API_OPERATOR},
	    {1000, 1000, CONF_NO_GID, CONF_NO_GID, API_NOBODY},
	    {1000, 0, CONF_NO_GID, CONF_NO_GID, API_NOBODY}, /* root's group is not root */
	    {1000, OWN, CONF_NO_GID, CONF_NO_GID, API_NOBODY}, {1000, 1000, 99, 101, API_NOBODY},
	    {1000, 100, CONF_NO_GID, CONF_NO_GID, API_READER}, {1000, 1000, 99, 100, API_READER},
	    {1000, 200, CONF_NO_GID, CONF_NO_GID, API_OPERATOR}, {1000, 1000, 100, 200, API_OPERATOR},
	    {1000, 200, 100, CONF_NO_GID, API_OPERATOR}, {100, 1000, 200, CONF_NO_GID, API_OPERATOR},
	    {200, 1000, 99, CONF_NO_GID, API_NOBODY}, /* a user with a group's number */
	};
	const struct gw_access none = {.read_gid = CONF_NO_GID, .operator_gid = CONF_NO_GID};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const enum api_role is = role(&both, cases[i].uid, cases[i].gid, cases[i].g1, cases[i].g2);

		if (is != cases[i].want)
			fail_msg("case %u: %s", i, api_role_name(is));
		assert_int_equal(role(&none, cases[i].uid, cases[i].gid, cases[i].g1, cases[i].g2),
		    cases[i].uid == 0 || cases[i].uid == OWN ? API_OPERATOR : API_NOBODY);
	}
	/* nobody has the number that stands for "no group" */
	assert_int_equal(role(&none, 1000, CONF_NO_GID, CONF_NO_GID, CONF_NO_GID), API_NOBODY);
}

static void test_same_group(void **state)
{
	const struct gw_access same = {.read_gid = 100, .operator_gid = 100};
	const struct gw_access reads = {.read_gid = 100, .operator_gid = CONF_NO_GID};

	assert_int_equal(role(&same, 1000, 100, CONF_NO_GID, CONF_NO_GID), API_OPERATOR);
	assert_int_equal(role(&reads, 1000, 100, CONF_NO_GID, CONF_NO_GID), API_READER);
}

static void test_peer(void **state)
{
	struct api_peer p;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(api_peer_get(fd[0], &p), 0);
	assert_int_equal(p.uid, geteuid());
	assert_int_equal(p.gid, getegid());
	assert_int_equal(p.pid, getpid());
	assert_int_equal(p.groups, getgroups(0, NULL));
	api_peer_free(&p);
	close(fd[0]);
	/* no socket: the peer is nobody, not user 0 */
	assert_int_equal(api_peer_get(fd[0], &p), RWY_EINVAL);
	assert_int_equal(api_peer_role(&p, &both, OWN), API_NOBODY);
	api_peer_free(&p);
	close(fd[1]);
}

/* --- pages ------------------------------------------------------------------------------------ */

/* Typed here once more: who changes the table has to mean it. */
static const struct {
	const char *path, *methods;
	bool readers, anybody;
	const char *changing;
} pages[] = {
    {"/v1", "GET", .readers = true},
    {"/v1/status", "GET", .readers = true},
    {"/v1/flows", "GET", .readers = true},
    {"/v1/recorder", "GET", .readers = true},
    {"/v1/standby", "GET", .readers = true},
    {"/v1/tunnels", "GET", .readers = true},
    {"/v1/tunnels/NAME", "PUT PATCH DELETE", .readers = false},
    {"/v1/tenants", "GET", .readers = true},
    {"/v1/tenants/NAME", "GET PUT PATCH DELETE", .readers = true},
    {"/v1/reload", "POST", .readers = false},
    {"/v1/memory", "GET", .readers = true},
    {"/v1/drain", "GET POST DELETE", .readers = true, .changing = "told"},
    {"/v1/capture", "GET DELETE", .readers = false}, /* payload of hosts */
    {"/v1/counters", "GET", .readers = true},
    {"/v1/ports", "GET", .readers = true},
    {"/v1/neighbours", "GET", .readers = true},
    {"/v1/links", "GET", .readers = true},
    {"/v1/map", "GET", .readers = true},
    {"/v1/map/NAME", "PUT DELETE", .readers = false},
    {"/v1/siblings", "GET", .readers = true},
    {"/v1/reservations", "GET", .readers = true},
    {"/v1/workers", "GET", .readers = true},
    {"/v1/controller", "GET", .readers = true},
    {"/v1/offload", "GET", .readers = true},
    {"/metrics", "GET", .readers = true, .anybody = true},
    {"/livez", "GET", .readers = true, .anybody = true},
    {"/readyz", "GET", .readers = true, .anybody = true},
    {"/healthz", "GET", .readers = true, .anybody = true},
};
#define PAGES (sizeof(pages) / sizeof(pages[0]))

static void test_pages(void **state)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"};
	const char *name;
	unsigned n = 0;

	for (const struct api_route *r; (r = api_route_at(n)); n++) {
		unsigned i = 0;

		while (i < PAGES && strcmp(pages[i].path, r->path) != 0)
			i++;
		if (i == PAGES)
			fail_msg("%s is not in this test's list", r->path);
		assert_string_equal(r->methods, pages[i].methods);
		assert_int_equal(r->anybody, pages[i].anybody);
		for (unsigned m = 0; m < sizeof(methods) / sizeof(methods[0]); m++) {
			const bool reads = m == 0 && pages[i].readers;

			assert_int_equal(api_route_needs(r, methods[m]), reads ? API_READER : API_OPERATOR);
		}
		assert_int_equal(api_route_changes(r, "told"), pages[i].changing != NULL);
		assert_false(api_route_changes(r, "limit"));
		/* what anybody may see, readers may */
		assert_true(!r->anybody || r->readers);
		assert_ptr_equal(api_route_find(r->path, &name), r);
	}
	assert_int_equal(n, PAGES);
}

/* --- words ------------------------------------------------------------------------------------ */

static void test_refusal(void **state)
{
	static const struct {
		const char *read, *all;
		enum api_role has;
		const char *want;
	} cases[] = {
	    {"look", "touch", API_READER, "members of group `touch` (api.operator_group)"},
	    {"look", "", API_READER, "this is for root, since api.operator_group names no group"},
	    {"look", "touch", API_NOBODY,
	        "members of group `look` (api.read_group) may read, those of `touch`"},
	    {"look", "", API_NOBODY, "members of group `look` (api.read_group) may read"},
	    {"", "touch", API_NOBODY, "members of group `touch` (api.operator_group) may do everything"},
	    {"", "", API_NOBODY, "neither api.read_group nor api.operator_group names a group"},
	};
	char text[512];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gw_access a = {0};

		snprintf(a.read_group, sizeof(a.read_group), "%s", cases[i].read);
		snprintf(a.operator_group, sizeof(a.operator_group), "%s", cases[i].all);
		api_role_refusal(&a, 1000, cases[i].has, text, sizeof(text));
		if (!strstr(text, cases[i].want) || !strstr(text, "user 1000 ") || strchr(text, '\n'))
			fail_msg("%s", text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_roles), cmocka_unit_test(test_same_group),
	    cmocka_unit_test(test_peer), cmocka_unit_test(test_pages), cmocka_unit_test(test_refusal)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
