/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway why: why a queue pair is slow, or why it died. It looks at the flow several times and at
 * what the flight recorder has of it; why_text.c and why_failed.c make sentences of both.
 */
#include "tools/roceway/why.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/roceway/recorder.h"

#define LOOKS       20
#define ENTRIES     10
#define ENTRIES_MAX 1000
#define SHOWN_MAX   20 /* connections that are listed when several match */

static const struct cli_opt opts[] = {
    {"tenant", "NAME", "of this tenant: addresses of two may overlap"},
    {"interval", "SECONDS", "watch it for so long, 0 to 60; default: 1"},
    {"other", "WHERE", "ask the other gateway, too: its API's socket, or its host by ssh"},
    {"entries", "N", "show the newest N entries of the recorder, 0 to 1000; default: 10"},
    {NULL, NULL, NULL},
};

struct wanted {
	char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];
	long long qpn;      /* 0: any */
	const char *tenant; /* NULL: any */
	long long vni;      /* of the tenant, for what the recorder has; -1: any */
	const char *other;  /* NULL: it is not asked */
	double interval;
	unsigned long entries;
};

/* --- the command line ------------------------------------------------------------------------- */

static bool read_address(const char *s, char out[INET6_ADDRSTRLEN])
{
	const int family = strchr(s, ':') ? AF_INET6 : AF_INET;
	unsigned char ip[16];

	if (inet_pton(family, s, ip) == 1 && inet_ntop(family, ip, out, INET6_ADDRSTRLEN))
		return true;
	cli_error("expected an IP address, found %s", s);
	return false;
}

static bool read_wanted(const struct cli *cli, struct wanted *w)
{
	const char *interval = cli_value(cli, "interval"), *entries = cli_value(cli, "entries");
	char *end = "";

	*w =
	    (struct wanted){.tenant = cli_value(cli, "tenant"), .vni = -1, .interval = 1, .entries = ENTRIES};
	w->other = cli_value(cli, "other") ? cli_value(cli, "other") : getenv("ROCEWAY_OTHER");
	if (w->other && !*w->other)
		w->other = NULL;
	if (cli->words < 2 || cli->words > 3) {
		cli_error("expected two addresses and a QPN of either: roceway why LOCAL REMOTE [QPN]");
		return false;
	}
	if (!read_address(cli->word[0], w->local) || !read_address(cli->word[1], w->remote))
		return false;
	if (cli->words > 2)
		w->qpn = strtoll(cli->word[2], &end, 0);
	if (*end || w->qpn < 0 || w->qpn > 0xffffff || (cli->words > 2 && !w->qpn)) {
		cli_error("QPN: expected a number from 1 to 16777215, found %s", cli->word[2]);
		return false;
	}
	if (interval)
		w->interval = strtod(interval, &end);
	if (*end || !(w->interval >= 0 && w->interval <= 60)) {
		cli_error("--interval: expected seconds from 0 to 60, found %s", interval);
		return false;
	}
	if (entries)
		w->entries = strtoul(entries, &end, 10);
	if (*end || w->entries > ENTRIES_MAX || (entries && (*entries < '0' || *entries > '9'))) {
		cli_error("--entries: expected a number from 0 to %d, found %s", ENTRIES_MAX, entries);
		return false;
	}
	return true;
}

/* --- requests --------------------------------------------------------------------------------- */

/* An array of the page; NULL, after cli_error(). The caller's. */
static json_t *get_list(const struct cli *cli, const char *page, const char *key)
{
	json_t *j = api_get_json(cli, page, NULL), *list;

	if (!j)
		return NULL;
	list = json_object_get(j, key);
	list = json_is_array(list) ? json_incref(list) : json_array();
	json_decref(j);
	return list;
}

static void page_of(char *page, size_t size, const char *path, const struct wanted *w)
{
	snprintf(page, size, "%s", path);
	api_query(page, size, "local", w->local);
	api_query(page, size, "remote", w->remote);
}

/* The connections of the two hosts with that QPN, the latest first; NULL, after cli_error(). */
static json_t *get_flows(const struct cli *cli, const struct wanted *w)
{
	char page[512], qpn[24];

	page_of(page, sizeof(page), "/v1/flows", w);
	if (w->tenant)
		api_query(page, sizeof(page), "tenant", w->tenant);
	api_query(page, sizeof(page), "sort", "recent");
	api_query(page, sizeof(page), "limit", "1000");
	snprintf(qpn, sizeof(qpn), "%lld", w->qpn);
	if (w->qpn)
		api_query(page, sizeof(page), "qpn", qpn);
	return get_list(cli, page, "flows");
}

/* The same QPN, or one of them is not known yet. */
static bool qpn_fits(long long a, long long b)
{
	return a == b || !a || !b;
}

/* An entry about this flow, or without one about the tenant and the QPN that were asked for. */
static bool is_about(const json_t *entry, const json_t *flow, const struct wanted *w)
{
	const long long l = ji(entry, "local_qpn"), r = ji(entry, "remote_qpn");

	if (!flow)
		return (w->vni < 0 || ji(entry, "vni") == w->vni) && (!w->qpn || l == w->qpn || r == w->qpn);
	return ji(entry, "vni") == ji(flow, "vni") && qpn_fits(l, ji(flow, "local_qpn")) &&
	       qpn_fits(r, ji(flow, "remote_qpn")) && (l || r);
}

static json_t *get_entries(const struct cli *cli, const struct wanted *w, const json_t *flow)
{
	json_t *all, *mine = json_array(), *o;
	char page[512];
	size_t i;

	page_of(page, sizeof(page), "/v1/recorder", w);
	api_query(page, sizeof(page), "limit", "10000");
	all = get_list(cli, page, "entries");
	json_array_foreach(all, i, o) if (is_about(o, flow, w)) json_array_append(mine, o);
	json_decref(all);
	return mine;
}

/* Entries have the tenant's VNI, not its name. False, after cli_error(). */
static bool get_vni(const struct cli *cli, struct wanted *w)
{
	char page[256];
	json_t *j;
	bool there;

	w->vni = 0;
	if (!*w->tenant)
		return true; /* the plain LAN */
	api_page_of(page, sizeof(page), "/v1/tenants/", w->tenant);
	j = api_get_json(cli, page, NULL);
	there = j;
	w->vni = ji(j, "vni");
	json_decref(j);
	return there;
}

/* The entries of both kinds that a tunnel has. */
static json_t *get_tunnel_entries(const struct cli *cli, const char *name)
{
	static const char *const pages[] = {
	    "/v1/recorder?kind=tunnel&limit=1000", "/v1/recorder?kind=congested&limit=1000"};
	json_t *mine = json_array(), *o;
	size_t i;

	for (unsigned k = 0; k < 2; k++) {
		json_t *all = get_list(cli, pages[k], "entries");

		json_array_foreach(all, i, o) if (!strcmp(js(o, "tunnel"), name)) json_array_append(mine, o);
		json_decref(all);
	}
	return mine;
}

/* The element whose member has this text; a reference of the caller's; NULL: none. */
static json_t *pick(json_t *list, const char *key, const char *text)
{
	json_t *o, *found = NULL;
	size_t i;

	json_array_foreach(list, i, o) if (!found && !strcmp(js(o, key), text)) found = json_incref(o);
	json_decref(list);
	return found;
}

static json_t *get_reservation(const struct cli *cli, const struct wanted *w)
{
	json_t *list = get_list(cli, "/v1/reservations", "reservations"), *o, *found = NULL;
	size_t i;

	json_array_foreach(list, i, o) if (!found && !strcmp(js(o, "source"), w->local) &&
	                                   !strcmp(js(o, "destination"), w->remote)) found = json_incref(o);
	json_decref(list);
	return found;
}

/* --- looks at the flow ------------------------------------------------------------------------ */

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void count_limit(struct why *y, const json_t *flow)
{
	static const char *const names[] = {
#define X(e, n) n,
	    WHY_LIMITS(X)
#undef X
	};

	y->looks++;
	for (unsigned i = 0; i < WHY_LIMIT_COUNT; i++)
		y->limit[i] += !strcmp(js(flow, "limit"), names[i]);
}

static bool same_flow(const json_t *a, const json_t *b)
{
	return ji(a, "vni") == ji(b, "vni") && qpn_fits(ji(a, "local_qpn"), ji(b, "local_qpn")) &&
	       qpn_fits(ji(a, "remote_qpn"), ji(b, "remote_qpn"));
}

/* Looks at it again and again. False: the gateway does not answer. */
static bool watch(const struct cli *cli, const struct wanted *w, struct why *y)
{
	const double begin = seconds_now();

	y->first = json_incref(y->flow);
	count_limit(y, y->flow);
	for (unsigned k = 1; k < LOOKS && w->interval > 0; k++) {
		json_t *list, *o;
		size_t i;

		usleep((useconds_t)(w->interval * 1e6 / (LOOKS - 1)));
		list = get_flows(cli, w);
		if (!list)
			return false;
		json_array_foreach(list, i, o)
		{
			if (!same_flow(o, y->first))
				continue;
			json_decref(y->flow);
			y->flow = json_incref(o);
			y->seconds = seconds_now() - begin;
			count_limit(y, o);
			break;
		}
		json_decref(list);
	}
	return true;
}

/* --- the command ------------------------------------------------------------------------------ */

static void list_flows(const json_t *flows)
{
	static const char *const columns[] = {
	    "TENANT", ">LOCAL QPN", ">REMOTE QPN", "STATE", "LIMIT", ">LAST PACKET", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)flows, i, o)
	{
		if (i == SHOWN_MAX)
			break;
		table_add(t, "%s", *js(o, "tenant") ? js(o, "tenant") : "-");
		table_add(t, ji(o, "local_qpn") ? "%lld" : "?", ji(o, "local_qpn"));
		table_add(t, ji(o, "remote_qpn") ? "%lld" : "?", ji(o, "remote_qpn"));
		table_add(t, "%s", js(o, "state"));
		table_add(t, "%s", *js(o, "limit") ? js(o, "limit") : "-");
		table_add(t, "%s ago", say_time(jn(o, "idle_seconds")));
	}
	table_print(t);
	if (json_array_size(flows) > SHOWN_MAX)
		printf("and %zu more\n", json_array_size(flows) - SHOWN_MAX);
}

static struct wanted exchanged(const struct wanted *w)
{
	struct wanted other = *w;

	memcpy(other.local, w->remote, sizeof(other.local));
	memcpy(other.remote, w->local, sizeof(other.remote));
	return other;
}

/* Finds the flow: y->flow, or NULL: there is none. Hosts that were named the wrong way round are
 * exchanged. Returns an exit code. */
static int find_flow(const struct cli *cli, struct wanted *w, struct why *y)
{
	json_t *list = get_flows(cli, w);

	if (list && !json_array_size(list)) {
		const struct wanted other = exchanged(w);

		json_decref(list);
		list = get_flows(cli, &other);
		if (json_array_size(list))
			*w = other;
	}
	if (!list)
		return EXIT_ERROR;
	if (json_array_size(list) > 1) {
		cli_error(
		    "%zu connections match: say the QPN of either end, or the tenant", json_array_size(list));
		if (!cli->json)
			list_flows(list);
		json_decref(list);
		return EXIT_ERROR;
	}
	y->flow = json_incref(json_array_get(list, 0));
	json_decref(list);
	return EXIT_OK;
}

static void cut_entries(json_t *entries, unsigned long most)
{
	while (json_array_size(entries) > most)
		json_array_remove(entries, 0);
}

static void print_why(const json_t *sentences, json_t *entries)
{
	const json_t *s;
	json_t *o;
	size_t i;

	json_array_foreach(sentences, i, s) print_fact("-", 1, json_string_value(s));
	if (!json_array_size(entries))
		return;
	putchar('\n');
	o = json_pack("{s:O}", "entries", entries);
	recorder_print(o);
	json_decref(o);
}

static json_t *ask_other(const struct wanted *w, const struct why *y)
{
	char entries[24];
	struct why_ask q = {w->other, w->local, w->remote, w->tenant, entries, w->qpn};

	if (!w->other)
		return NULL;
	snprintf(entries, sizeof(entries), "%lu", w->entries);
	if (y->flow && (ji(y->flow, "local_qpn") || ji(y->flow, "remote_qpn")))
		q.qpn = ji(y->flow, "local_qpn") ? ji(y->flow, "local_qpn") : ji(y->flow, "remote_qpn");
	return why_ask_other(&q);
}

static void tell(const struct cli *cli, const struct wanted *w, const struct why *y, json_t *sentences)
{
	if (cli->json) {
		json_t *o = json_pack("{s:o, s:O, s:O, s:o}", "flow",
		    y->flow ? json_incref(y->flow) : json_null(), "sentences", sentences, "entries",
		    y->entries, "other", y->other ? json_incref(y->other) : json_null());

		print_json(o);
		json_decref(o);
		return;
	}
	print_why(sentences, y->entries);
	if (y->other) {
		printf("\nThe other gateway, %s:\n\n", w->other);
		print_why(json_object_get(y->other, "sentences"), json_object_get(y->other, "entries"));
	}
}

static int explain(const struct cli *cli, struct wanted *w, struct why *y)
{
	json_t *sentences;

	if (y->flow ? !watch(cli, w, y) : w->tenant && !get_vni(cli, w))
		return EXIT_ERROR;
	y->entries = get_entries(cli, w, y->flow);
	/* Forgotten, and named the wrong way round. */
	if (!y->flow && !json_array_size(y->entries)) {
		const struct wanted other = exchanged(w);

		json_decref(y->entries);
		y->entries = get_entries(cli, &other, NULL);
		if (json_array_size(y->entries))
			*w = other;
	}
	if (!y->flow && !json_array_size(y->entries)) {
		cli_error("no connection of %s and %s%s, and no entry of one in the recorder", w->local,
		    w->remote, w->qpn ? " with this QPN" : "");
		return EXIT_ERROR;
	}
	if (y->flow && *js(y->flow, "tunnel")) {
		y->tunnel = pick(get_list(cli, "/v1/tunnels", "tunnels"), "name", js(y->flow, "tunnel"));
		y->tunnels = get_tunnel_entries(cli, js(y->flow, "tunnel"));
	}
	y->reservation = get_reservation(cli, w);
	y->other = ask_other(w, y);
	sentences = why_say(y);
	cut_entries(y->entries, w->entries);
	tell(cli, w, y, sentences);
	json_decref(sentences);
	return EXIT_OK;
}

static int run_why(const struct cli *cli)
{
	struct wanted w;
	struct why y = {0};
	int rc;

	if (!read_wanted(cli, &w))
		return EXIT_USAGE;
	rc = find_flow(cli, &w, &y);
	y.local = w.local;
	y.remote = w.remote;
	if (!rc)
		rc = explain(cli, &w, &y);
	json_decref(y.flow);
	json_decref(y.first);
	json_decref(y.entries);
	json_decref(y.tunnels);
	json_decref(y.tunnel);
	json_decref(y.reservation);
	json_decref(y.other);
	return rc;
}

const struct cli_cmd cmd_why = {.name = "why",
    .operand = "LOCAL REMOTE QPN",
    .many = true,
    .text = "why a queue pair is slow, or why it died",
    .more =
        "LOCAL is the host of this site, REMOTE the other one, QPN that of either end; it may be left out\n"
        "when only one connection of the two hosts matches. It watches the connection for --interval\n"
        "seconds, and shows what the flight recorder has of it. --other, or ROCEWAY_OTHER, names the\n"
        "gateway of REMOTE: the path of its API's socket, or a host where ssh starts `roceway why`.\n",
    .opts = opts,
    .run = run_why};
