/* SPDX-License-Identifier: Apache-2.0 */
/* A controller's document converted to the gateway's configuration, its refusals, and the copy on
 * disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/agent/document.h"
#include "gateway/agent/keep.h"

static const char file[] =
    "gateway: {name: a1}\n"
    "ports:\n"
    "  - {name: lan, device: net_null0, role: lan, addresses: [10.1.0.1/24]}\n"
    "  - {name: wan, device: net_null1, role: wan, addresses: [192.0.2.1/24, 'fd00:9::1/64']}\n"
    "tunnels:\n"
    "  - {name: own, port: wan, local: 192.0.2.1, remote: 192.0.2.99, security: none}\n"
    "controller: {urls: ['https://c'], ca: /c, certificate: /d, key: /k, site: s, tcp_congestion_control: "
    "cubic, rdma_address: 203.0.113.1, rdma_port: 4799, rdma_buffers: 64}\n";

#define TUN                                                                                                  \
	"{'name': 'b1', 'peer': 'b1', 'remote': '192.0.2.2:4793', 'local': '192.0.2.1', 'carrier': "         \
	"'native', "                                                                                         \
	"'rate_bps': 2500000001, 'dscp': 26, 'weight': 3, 'prefixes': ['10.2.0.0/24']}"
#define TUN2                                                                                                 \
	"{'name': 'b2', 'peer': 'gw-b2', 'remote': '[fd00:9::3]:4793', 'local': 'fd00:9::1', 'carrier': "    \
	"'native', 'rate_bps': 1000000000, 'dscp': 0, 'weight': 1, 'prefixes': "                             \
	"['10.2.0.0/24'], 'detour': 'tcp', 'detour_after': 3}"
/* It may go by RDMA, and does. */
#define RDMA(local, remote)                                                                                  \
	"{'name': 'b1', 'peer': 'b1', 'remote': '192.0.2.2:4793', 'local': '192.0.2.1', 'carrier': 'rdma', " \
	"'rate_bps': 1000000000, 'dscp': 0, 'weight': 1, 'prefixes': ['10.2.0.0/24'], 'rdma': {'local': "    \
	"'" local "', 'remote': '" remote "'}}"
#define TEN                                                                                                  \
	"{'name': 'red', 'vni': 5001, 'prefixes': [{'prefix': '10.1.0.0/24', 'at': 'vtep'}, {'prefix': "     \
	"'10.9.0.0/24', 'at': 'b2'}], 'limit': '1Gbps', 'acl': [{'action': 'deny', 'source': "               \
	"'10.1.0.7/32'}]}"
#define ASG                                                                                                  \
	"{'job': 'j', 'vni': 0, 'source': '10.1.0.11', 'destination': '10.2.0.12', 'tunnel': 'b2', "         \
	"'rate_bps': 4000000, 'priority': 3, 'dscp': 46, 'carrier': 'native', 'source_qpn': 17}"
#define SIB                                                                                                  \
	"{'name': 'a2', 'address': '10.1.0.2', 'state': 'lost', 'tunnels': [{'peer': 'b1', 'weight': "       \
	"70000}], 'pairs': [{'vni': 0, 'source': '10.1.0.11', 'destination': '10.2.0.13'}, {'vni': 7, "      \
	"'source': '10.1.0.11', 'destination': '10.2.0.14'}, {'vni': 0, 'source': '10.1.0.11', "             \
	"'destination': '10.2.0.15', 'source_qpn': 33, 'destination_qpn': 44}]}"
#define WITH(sib)                                                                                            \
	"{'generation': 7, 'tunnels': [" TUN "], 'tenants': [], 'assignments': [{'job': 'j', 'vni': 0, "     \
	"'source': '10.1.0.11', 'destination': '10.2.0.12', 'tunnel': 'b1', 'rate_bps': 0}], 'siblings': "   \
	"[" sib "]}"
#define DOC(tun, ten, asg)                                                                                   \
	"{'generation': 7, 'tunnels': [" tun "], 'tenants': [" ten "], 'assignments': [" asg "]}"

static struct conf *base;

static int set_up(void **state)
{
	struct conf_error err;

	if (conf_parse(&base, file, sizeof(file) - 1, "file", &err))
		fail_msg("%s", err.msg);
	return 0;
}

static int tear_down(void **state)
{
	conf_free(base);
	return 0;
}

static int parse(struct document *d, const char *text, struct conf_error *err)
{
	char *copy = strdup(text);
	json_t *j;
	int rc;

	assert_non_null(copy);
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	j = json_loads(copy, 0, NULL);
	assert_non_null(j);
	rc = document_parse(d, base, base->tunnel, base->tunnels, j, err);
	json_decref(j);
	free(copy);
	return rc;
}

static void test_good(void **state)
{
	const struct conf_tunnel *t;
	struct conf_error err;
	struct document d;

	if (parse(&d, DOC(TUN ", " TUN2, TEN, ASG), &err))
		fail_msg("%s", err.msg);
	assert_int_equal(d.conf->tunnels, 3);
	assert_string_equal(d.conf->tunnel[0].name, "own");
	t = &d.conf->tunnel[1];
	assert_string_equal(t->name, "b1");
	assert_string_equal(t->peer, "b1");
	assert_string_equal(t->port, "wan");
	assert_int_equal(t->port_idx, 1);
	assert_int_equal(t->udp_port, 4793);
	assert_int_equal(t->rate_Bps, 2500000001u / 8);
	assert_int_equal(t->dscp.map[0], 26);
	assert_string_equal(t->tcp_cc, "cubic"); /* the gateway's own setting, for all of them */
	assert_string_equal(d.conf->tunnel[0].tcp_cc, "auto");
	assert_int_equal(t->prefixes, 1);
	assert_int_equal(t->detour, CONF_CARRIER_NATIVE); /* none */
	assert_int_equal(d.conf->tunnel[2].detour, CONF_CARRIER_TCP);
	assert_int_equal(d.conf->tunnel[2].detour_after, 3);
	assert_false(rwy_ip_is4(&d.conf->tunnel[2].remote));
	assert_string_equal(d.peer[0], "");
	assert_string_equal(d.peer[2], "gw-b2");
	assert_int_equal(d.conf->tenants, 1);
	assert_int_equal(d.conf->tenant[0].cfg.prefix[1].at.tunnel, 2);
	assert_int_equal(d.conf->tenant[0].cfg.rules, 1);
	assert_int_equal(d.assignments, 1);
	assert_string_equal(d.assignment[0].tunnel, "b2");
	assert_int_equal(d.assignment[0].source_qpn, 17);
	assert_int_equal(d.assignment[0].rate_bps, 4000000);
	assert_int_equal(d.assignment[0].priority, 3);
	assert_true(d.assignment[0].has_dscp);
	assert_int_equal(d.assignment[0].dscp, 46);
	assert_string_equal(d.assignment[0].job, "j");
	assert_int_equal(d.assignment[0].destination_qpn, 0);
	assert_int_equal(t->weight, 3);
	document_fini(&d);
	/* A lost peer: its tunnel stays, without prefixes. */
	if (parse(&d,
	        DOC("{'name': 'b1', 'peer': 'b1', 'remote': '192.0.2.2:4793', 'local': '192.0.2.1', "
	            "'carrier': 'native', "
	            "'rate_bps': 1000000000, 'dscp': 0, 'weight': 0, 'prefixes': []}",
	            "", ""),
	        &err))
		fail_msg("%s", err.msg);
	assert_int_equal(d.conf->tunnel[1].prefixes, 0);
	document_fini(&d);
	if (parse(&d,
	        DOC(TUN2, "",
	            "{'vni': 0, 'source': '10.1.0.11', 'destination': '10.2.0.12', 'tunnel': 'b2'}"),
	        &err))
		fail_msg("%s", err.msg);
	assert_false(d.assignment[0].has_dscp);
	document_fini(&d);
	if (parse(&d, DOC("", "", ""), &err))
		fail_msg("%s", err.msg);
	assert_int_equal(d.conf->tunnels, 1);
	document_fini(&d);
	/* Without a carrier that it names, too, no pair has a DSCP of its own in a stream of all. */
	assert_int_equal(
	    parse(&d,
	        DOC("{'name': 'b1', 'peer': 'b1', 'remote': '192.0.2.2:4793', 'local': '192.0.2.1', "
	            "'carrier': 'tcp', 'rate_bps': 1000000000, 'dscp': 0, 'weight': 1, "
	            "'prefixes': ['10.2.0.0/24']}",
	            "",
	            "{'vni': 0, 'source': '10.1.0.11', 'destination': '10.2.0.12', 'tunnel': "
	            "'b1', 'rate_bps': 4000000, 'dscp': 46}"),
	        &err),
	    RWY_EINVAL);
	assert_non_null(
	    strstr(err.msg, "assignments[0]: expected a native tunnel for `dscp`; b1 goes by tcp"));
}

/* Substitutes in DOC(TUN, TEN, ASG). */
static const struct {
	const char *from, *to, *want;
} bad[] = {
    {"'generation': 7, ", "", "document: expected `generation`, found nothing"},
    {"'generation': 7", "'generation': 7, 'more': 1", "document: unknown field `more`"},
    {", 'assignments': [" ASG "]", "", "expected `assignments`"},
    {"'weight': 3", "'weight': -3", "tunnel b1: expected a number from 0 to 1000000 for `weight`"},
    {"'weight': 3", "'wait': 3", "tunnel b1: unknown field `wait`"},
    {", 'weight': 3", "", "tunnel b1: expected `weight`"},
    {"'rate_bps': 2500000001", "'rate_bps': -1", "for `rate_bps`"},
    {"'rate_bps': 2500000001", "'rate_bps': '1'", "for `rate_bps`"},
    {"'rate_bps': 2500000001", "'rate_bps': 1", "expected a rate from 1Mbps"},
    {"'dscp': 26", "'dscp': 64", "from 0 to 63 for `dscp`"},
    {"192.0.2.2:4793", "192.0.2.2", "expected an address with a port for `remote`, found `192.0.2.2`"},
    {"192.0.2.2:4793", "192.0.2.2:0", "with a port"},
    {"192.0.2.2:4793", "192.0.2.2:99999", "with a port"},
    {"192.0.2.2:4793", "fd00::1:4793", "with a port"},
    {"192.0.2.2:4793", "[192.0.2.2:4793", "with a port"},
    {"'local': '192.0.2.1'", "'local': '192.0.2.7'",
        "expected an address of a port of role `wan` for `local`, found `192.0.2.7`"},
    {"'local': '192.0.2.1'", "'local': 7", "expected text for `local`"},
    {"'name': 'b1'", "'name': 'own'", "expected a name of its own, found `own`"},
    {"'name': 'b1'", "'name': 'b 1'", "expected a name of at most 31"},
    {"['10.2.0.0/24']", "['10.2.0.7/24']", "without host bits"},
    {"['10.2.0.0/24']", "['::/0']", "leaves out ::/96"},
    {"['10.2.0.0/24']", "['::ffff:10.2.0.0/120']", "expected a prefix"},
    {"['10.2.0.0/24']", "7", "expected a list for `prefixes`"},
    {"['10.2.0.0/24']", "['10.1.0.0/24']", "overlaps"},
    {"'carrier': 'native'", "'carrier': 'pigeon'", "carrier"},
    {"192.0.2.2:4793", "192.0.2.1:4793", "expected the peer's address, found `192.0.2.1`, which is our own"},
    {"'vni': 5001", "'vni': 0", "for `vni`"},
    {"'limit': '1Gbps'", "'limits': '1Gbps'", "expected `limit` or another known key of tenants[]"},
    {"'at': 'b2'", "'at': 'b7'", "expected `vtep`, `vlan` or a tunnel's name for `at`"},
    {"'tunnel': 'b2'", "'tunnel': 'b7'", "assignments[0]: expected a tunnel's name for `tunnel`, found `b7`"},
    {"'source': '10.1.0.11'", "'source': 'x'", "assignments[0]: expected addresses"},
    {"'vni': 0,", "'vni': 16777216,", "assignments[0]: expected a number from 0 to 16777215 for `vni`"},
    {"'source_qpn': 17", "'qpn': 17", "assignments[0]: unknown field `qpn`"},
    {"'rate_bps': 4000000", "'rate_bps': -1", "assignments[0]: expected a number from 0 to 100000000000000"},
    {"'rate_bps': 4000000", "'rate_bps': '4M'", "for `rate_bps`"},
    {"'priority': 3", "'priority': 8", "assignments[0]: expected a number from 0 to 7 for `priority`"},
    {"'dscp': 46", "'dscp': 64", "assignments[0]: expected a number from 0 to 63 for `dscp`"},
    {"'rate_bps': 4000000, ", "", "assignments[0]: expected a `rate_bps` with `dscp`"},
    {"'dscp': 46, 'carrier': 'native'", "'carrier': 'tcp'",
        "assignments[0]: expected a tunnel by tcp; b2 goes by native"},
    {"'dscp': 46, 'carrier': 'native'", "'carrier': 7", "assignments[0]: expected text for `carrier`"},
    {"'native', 'rate_bps': 1000000000", "'tcp', 'rate_bps': 1000000000",
        "assignments[0]: expected a tunnel by native; b2 goes by tcp"},
    {"'job': 'j'", "'job': 7", "assignments[0]: expected text for `job`"},
};

static void test_bad(void **state)
{
	static const char good[] = DOC(TUN ", " TUN2, TEN, ASG);

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *at = strstr(good, bad[i].from);
		struct conf_error err;
		struct document d;
		char *text;
		int rc;

		assert_non_null(at);
		assert_true(asprintf(&text, "%.*s%s%s", (int)(at - good), good, bad[i].to,
		                at + strlen(bad[i].from)) > 0);
		rc = parse(&d, text, &err);
		if (rc != RWY_EINVAL || !strstr(err.msg, bad[i].want))
			fail_msg("%s: wanted `%s`, got %d `%s`", bad[i].to, bad[i].want, rc, err.msg);
		assert_null(d.conf);
		free(text);
	}
}

/* A gateway offers 1 Tbit/s at most. What carries as much of payload is above it, and so may be what
 * a network grants or a job asks for. */
static void test_high_rates(void **state)
{
	static const char text[] =
	    DOC("{'name': 'b1', 'peer': 'b1', 'remote': '192.0.2.2:4793', 'local': '192.0.2.1', 'carrier': "
	        "'native', 'rate_bps': 1086956521740, 'dscp': 0, 'weight': 1, 'prefixes': [], 'paths': "
	        "[{'label': 'p', 'udp_port': 4857, 'rate_bps': 1000000000000000}]}",
	        "",
	        "{'vni': 0, 'source': '10.1.0.11', 'destination': '10.2.0.12', 'tunnel': 'b1', 'rate_bps': "
	        "1000000000000000}");
	struct conf_error err;
	struct document d;

	if (parse(&d, text, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(d.conf->tunnel[1].rate_Bps, 125000000000);
	assert_int_equal(conf_tunnel_path(&d.conf->tunnel[1], 1).rate_Bps, 125000000000);
	assert_int_equal(d.assignment[0].rate_bps, 1000000000000);
	document_fini(&d);
}

/* A tunnel that can go by RDMA has the addresses of both devices, beside its own; and what of it is
 * refused. */
static void test_rdma(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {{DOC(RDMA("203.0.113.2:4799", "203.0.113.3:4799"), "", ""),
	                 "tunnel b1: expected `controller.rdma_address` and its port for `rdma.local`"},
	    {DOC(RDMA("203.0.113.1:4793", "203.0.113.3:4799"), "", ""), "for `rdma.local`"},
	    {DOC(RDMA("203.0.113.1", "203.0.113.3:4799"), "", ""), "for `rdma.local`"},
	    {DOC(RDMA("203.0.113.1:4799", "203.0.113.3:4798"), "", ""),
	        "tunnel b1: expected an address with port 4799 for `rdma.remote`"},
	    {DOC(RDMA("203.0.113.1:4799", "x"), "", ""), "for `rdma.remote`"},
	    {DOC(RDMA("203.0.113.1:4799', 'port': '1", "203.0.113.3:4799"), "", ""), "unknown field `port`"}};
	const struct rwy_ip local = rwy_ip_from4((const uint8_t[4]){203, 0, 113, 1});
	const struct rwy_ip remote = rwy_ip_from4((const uint8_t[4]){203, 0, 113, 3}), none = {0};
	const struct conf_tunnel *t;
	struct conf_error err;
	struct document d;

	if (parse(&d, DOC(RDMA("203.0.113.1:4799", "203.0.113.3:4799") ", " TUN2, "", ""), &err))
		fail_msg("%s", err.msg);
	t = &d.conf->tunnel[1];
	assert_int_equal(t->carrier, CONF_CARRIER_RDMA);
	assert_true(rwy_ip_eq(&t->rdma_local, &local) && rwy_ip_eq(&t->rdma_remote, &remote));
	assert_true(rwy_ip_eq(&t->tcp_local, &none)); /* TCP and the exchange of keys stay where they are */
	assert_int_equal(t->rdma_port, 4799);
	assert_int_equal(t->rdma_buffers, 64);
	assert_int_equal(t->security, CONF_SEC_KEYS);
	assert_int_equal(d.conf->tunnel[2].rdma_port, 0);
	document_fini(&d);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse(&d, wrong[i].text, &err), RWY_EINVAL);
		if (!strstr(err.msg, wrong[i].says))
			fail_msg("%u: %s", i, err.msg);
	}
}

static void test_permits(void **state)
{
#define PERMIT                                                                                               \
	"{'vni': 7, 'source': '10.1.0.5', 'destination': '10.2.0.5', 'source_qpn': 3, 'destination_qpn': 4}"
#define PERMITS(p)                                                                                           \
	"{'generation': 7, 'tunnels': [" TUN ", " TUN2 "], 'tenants': [], 'assignments': [" ASG              \
	"], 'permits': [" p "]}"
	static const struct {
		const char *text, *want;
	} wrong[] = {
	    {PERMITS("1"), "permits[0]: expected an object"},
	    {PERMITS(PERMIT ", {'vni': 7, 'source': '10.1.0.5'}"), "permits[1]: expected `destination`"},
	    {PERMITS("{'vni': 7, 'source': '10.1.0.5', 'destination': 'x'}"), "expected addresses"},
	    {PERMITS("{'vni': 7, 'source': '10.1.0.5', 'destination': '10.2.0.5', 'tunnel': 'b1'}"),
	        "permits[0]: unknown field `tunnel`"},
	    {"{'generation': 7, 'tunnels': [], 'tenants': [], 'assignments': [], 'permits': 7}",
	        "expected a list of at most 100000 for `permits`"},
	};
	struct conf_error err;
	struct document d;

	if (parse(&d, PERMITS(PERMIT), &err))
		fail_msg("%s", err.msg);
	assert_int_equal(d.assignments, 2);
	assert_string_equal(d.assignment[0].tunnel, "b2");
	assert_string_equal(d.assignment[1].tunnel, "");
	assert_int_equal(d.assignment[1].vni, 7);
	assert_int_equal(d.assignment[1].source_qpn, 3);
	assert_int_equal(d.assignment[1].destination_qpn, 4);
	document_fini(&d);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse(&d, wrong[i].text, &err), RWY_EINVAL);
		if (!strstr(err.msg, wrong[i].want))
			fail_msg("wanted `%s`, got `%s`", wrong[i].want, err.msg);
	}
}

/* Paths as a network granted them. */
static void test_paths(void **state)
{
#define PATHS(p)                                                                                             \
	DOC("{'name': 'b1', 'peer': 'b1', 'remote': '192.0.2.2:4793', 'local': '192.0.2.1', 'carrier': "     \
	    "'native', 'rate_bps': 50000000, 'dscp': 0, 'weight': 1, 'prefixes': [], " p "}",                \
	    "", "")
#define PATH "{'label': 'pe-1/p', 'udp_port': 4857, 'rate_bps': 30000000, 'dscp': 10, 'source_port': 5000}"
	static const struct {
		const char *paths, *want;
	} wrong[] = {
	    {"'paths': 7", "tunnel b1: expected a list of at most 7 for `paths`"},
	    {"'paths': [" PATH ", 7]", "tunnel b1: paths[1]: expected an object"},
	    {"'paths': [{'label': 'p', 'rate_bps': 1}]", "tunnel b1: paths[0]: expected `udp_port`"},
	    {"'paths': [{'label': 'p', 'udp_port': 80, 'rate_bps': 1}]", "from 1024 to 65535 for `udp_port`"},
	    {"'paths': [{'label': 'p', 'udp_port': 4793, 'rate_bps': 1}]",
	        "expected other UDP ports than path 0"},
	    {"'paths': [{'label': 'p', 'udp_port': 4857, 'rate_bps': -1}]", "for `rate_bps`"},
	    {"'paths': [{'label': 7, 'udp_port': 4857, 'rate_bps': 1}]",
	        "paths[0]: expected text for `label`"},
	    {"'paths': [{'label': 'p', 'udp_port': 4857, 'rate_bps': 1, 'dscp': 64}]",
	        "from 1 to 63 for `dscp`"},
	    {"'paths': [{'label': 'p', 'udp_port': 4857, 'rate_bps': 1, 'local': '192.0.2.7'}]",
	        "expected an address of a port of role `wan` for `local`, found `192.0.2.7`"},
	    {"'paths': [{'label': 'p', 'udp_port': 4857, 'rate_bps': 1, 'remote': 'x'}]",
	        "expected an address for `remote`, found `x`"},
	    {"'paths': [{'label': 'p', 'udp_port': 4857, 'rate_bps': 1, 'remote': 'fd00:9::3'}]",
	        "expected an IPv4 address as in `local`"},
	    {"'paths': [{'label': 'p', 'udp_port': 4857, 'rate_bps': 1, 'use': 'seldom'}]",
	        "expected one of `always`, `spare`, `never`, `granted`"},
	    {"'paths': [{'label': 'p', 'udp_port': 4857, 'rate_bps': 1, 'colour': 1}]",
	        "paths[0]: unknown field `colour`"},
	    {"'paths': [" PATH "], 'own_path': 'never'", "expected one of `always`, `spare`"},
	    {"'own_path': 'spare'", "expected `paths` beside `own_path: spare`"},
	};
	const struct conf_tunnel *t;
	struct conf_error err;
	struct conf_path p;
	struct document d;

	if (parse(&d,
	        PATHS("'own_path': 'spare', 'paths': [" PATH
	              ", {'label': 'pe-2/p', 'udp_port': 4921, 'rate_bps': 7, 'local': 'fd00:9::1', "
	              "'remote': 'fd00:9::3', 'use': 'never'}]"),
	        &err))
		fail_msg("%s", err.msg);
	t = &d.conf->tunnel[1];
	assert_int_equal(t->own_path, CONF_USE_SPARE);
	assert_int_equal(t->paths, 2);
	p = conf_tunnel_path(t, 1);
	assert_string_equal(p.label, "pe-1/p");
	assert_string_equal(p.port, "wan");
	assert_int_equal(p.udp_port, 4857);
	assert_int_equal(p.source_port, 5000);
	assert_int_equal(p.dscp, 10);
	assert_int_equal(p.rate_Bps, 3750000);
	assert_int_equal(p.use, CONF_USE_ALWAYS);
	p = conf_tunnel_path(t, 2);
	assert_false(rwy_ip_is4(&p.local));
	assert_int_equal(p.rate_Bps, 125000); /* the least of one worker: the network holds it to 7 bit/s */
	assert_int_equal(p.use, CONF_USE_NEVER);
	document_fini(&d);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *text;

		assert_true(asprintf(&text, PATHS("%s"), wrong[i].paths) > 0);
		assert_int_equal(parse(&d, text, &err), RWY_EINVAL);
		if (!strstr(err.msg, wrong[i].want))
			fail_msg("wanted `%s`, got `%s`", wrong[i].want, err.msg);
		free(text);
	}
}

static void test_siblings(void **state)
{
	static const char good[] = WITH(SIB);
	static const struct {
		const char *from, *to, *want;
	} wrong[] = {
	    {"'lost'", "'gone'", "sibling a2: expected `up` or `lost` for `state`, found `gone`"},
	    {"'10.1.0.2'", "'10.1.0.1'", "expected another gateway's address, found `10.1.0.1`"},
	    {"'10.1.0.2'", "7", "expected text for `address`"},
	    {"'name': 'a2'", "'nme': 'a2'", "unknown field `nme`"},
	    {"'weight': 70000", "'weight': -1", "for `weight`"},
	    {"'peer': 'b1', 'weight': 70000", "'peer': '', 'weight': 1", "expected a name for `peer`"},
	    {"'pairs': [", "'pairs': [7, ", "expected an object"},
	    {"'10.2.0.13'", "'x'", "sibling a2: expected addresses"},
	    {"'source_qpn': 33, ", "", "sibling a2: expected both QPNs or none in `pairs`"},
	    {"'destination_qpn': 44", "'destination_qpn': 0", "for `destination_qpn`"},
	    {"'siblings': [", "'siblings': [" SIB ", ", "sibling a2: expected each once"},
	};
	struct conf_error err;
	struct document d;

	if (parse(&d, good, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(d.siblings, 1);
	assert_string_equal(d.sibling[0].name, "a2");
	assert_true(d.sibling[0].lost);
	assert_int_equal(d.sibling[0].tunnels, 1);
	assert_int_equal(d.sibling[0].tunnel[0].weight, 65535);
	assert_int_equal(d.pairs, 3); /* the tenant's is not among them */
	assert_int_equal(d.pair[0].who, 0);
	assert_int_equal(d.pair[0].remote.b[15], 13);
	assert_int_equal(d.pair[0].dqpn, 0);
	assert_int_equal(d.pair[1].remote.b[15], 15);
	assert_int_equal(d.pair[1].dqpn, 44);
	assert_int_equal(d.pair[2].who, -1);
	assert_int_equal(d.pair[2].remote.b[15], 12);
	document_fini(&d);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *at = strstr(good, wrong[i].from);
		char *text;
		int rc;

		assert_non_null(at);
		assert_true(asprintf(&text, "%.*s%s%s", (int)(at - good), good, wrong[i].to,
		                at + strlen(wrong[i].from)) > 0);
		rc = parse(&d, text, &err);
		if (rc != RWY_EINVAL || !strstr(err.msg, wrong[i].want))
			fail_msg("%s: wanted `%s`, got %d `%s`", wrong[i].to, wrong[i].want, rc, err.msg);
		assert_null(d.conf);
		free(text);
	}
}

static void test_keep(void **state)
{
	char dir[] = "/tmp/test_ctrl.XXXXXX", path[128], why[128];
	struct stat st;
	json_t *j;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/new/document.json", dir);
	assert_int_equal(keep_read(path, &j, why, sizeof(why)), RWY_ENOENT);
	assert_int_equal(keep_write(path, "{\"generation\": 3}"), 0);
	assert_int_equal(keep_write(path, "{\"generation\": 4}"), 0);
	assert_int_equal(keep_read(path, &j, why, sizeof(why)), 0);
	assert_int_equal(json_integer_value(json_object_get(j, "generation")), 4);
	json_decref(j);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640 & ~umask(umask(0)));
	for (unsigned i = 0; i < 3; i++) { /* truncated, no object, empty */
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(((const char *const[]){"{\"generation\"", "[]", ""})[i], f);
		fclose(f);
		assert_int_equal(keep_read(path, &j, why, sizeof(why)), RWY_EINVAL);
		assert_true(*why);
	}
	unlink(path);
	snprintf(path, sizeof(path), "%s/new", dir);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/no/such/folder.json", dir);
	assert_true(keep_write(path, "{}") < 0);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_good, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_bad, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_high_rates, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_rdma, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_permits, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_paths, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_siblings, set_up, tear_down), cmocka_unit_test(test_keep)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
