/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway explain: why the control center decided as it did about a session or a job, and how it
 * stands with a gateway. It looks in all replicas that --controller names, since each knows the
 * sessions that were reported to it. explain_text.c, explain_job.c and explain_gateway.c print the
 * answer.
 */
#include "tools/roceway/explain.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define PAGE        1000
#define SHOWN_MAX   20 /* sessions listed when several match */
#define EVENTS_MAX  5
#define PAIR_EVENTS 12
#define LIMIT_MAX   (1 << 30)

static const struct cli_opt opts[] = {
    CONTROL_OPTS{"job", "NAME", "explain a job's plan instead"},
    {"gateway", "NAME", "a gateway instead: of a pair, which one serves and why"},
    {"vni", "N", "only sessions of this VNI"},
    {"limit", "N", "list at most N sessions (default 100), or all"},
    {NULL, NULL, NULL},
};

/* The sessions to find. Addresses are in the form of inet_ntop(); "" or -1: any. */
struct wanted {
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];
	long long vni, qpn;
	bool both; /* a and b are an address pair; if false `a`, if set, is either end */
};

static bool canonical(const char *s, char out[INET6_ADDRSTRLEN])
{
	unsigned char ip[16];
	const int family = strchr(s, ':') ? AF_INET6 : AF_INET;

	return inet_pton(family, s, ip) == 1 && inet_ntop(family, ip, out, INET6_ADDRSTRLEN);
}

static bool addr_is(const json_t *o, const char *key, const char *addr)
{
	char text[INET6_ADDRSTRLEN];

	return canonical(js(o, key), text) && !strcmp(text, addr);
}

static bool matches(const json_t *s, const struct wanted *w, bool reverse)
{
	const char *from = reverse ? "destination" : "source", *to = reverse ? "source" : "destination";

	if ((w->vni >= 0 && ji(s, "vni") != w->vni) ||
	    (w->qpn >= 0 && ji(s, "source_qpn") != w->qpn && ji(s, "destination_qpn") != w->qpn))
		return false;
	if (w->both)
		return addr_is(s, from, w->a) && addr_is(s, to, w->b);
	return !*w->a || addr_is(s, from, w->a) || addr_is(s, to, w->a);
}

/* Reads a number from an option or word, also "0x...". */
static bool number(const char *what, const char *s, long long min, long long max, long long *out)
{
	char *end;

	*out = strtoll(s, &end, 0);
	if (*s >= '0' && *s <= '9' && !*end && *out >= min && *out <= max)
		return true;
	cli_error("%s: expected a number from %lld to %lld, found %s", what, min, max, s);
	return false;
}

static bool read_wanted(const struct cli *cli, struct wanted *w)
{
	const char *vni = cli_value(cli, "vni");

	*w = (struct wanted){.vni = -1, .qpn = -1, .both = cli->words > 1};
	if (cli->words > 3) {
		cli_error("%s: one word too many: a session's id, or SRC DST [QPN]", cli->word[3]);
		return false;
	}
	for (unsigned i = 0; i < 2 && i < cli->words; i++)
		if (!canonical(cli->word[i], i ? w->b : w->a) && w->both) {
			cli_error("expected an address, found %s: a session's id is one word", cli->word[i]);
			return false;
		}
	return (!vni || number("--vni", vni, 0, 0xffffff, &w->vni)) &&
	       (cli->words < 3 || number("QPN", cli->word[2], 1, 0xffffff, &w->qpn));
}

/* --- requests --------------------------------------------------------------------------------- */

/* The answer of the first replica that knows the object. NULL: none does, and an error is
 * printed. */
static json_t *record_find(struct control *k, const char *page, const char *what, const char *name)
{
	bool known = false; /* a replica answered that the object does not exist */
	json_t *j;
	long status;

	for (unsigned i = 0; i < control_count(k); i++) {
		j = control_get(k, i, page, &status);
		if (j && status == 200)
			return j;
		known |= j != NULL;
		json_decref(j);
	}
	if (known)
		cli_error("there is no %s %s", what, name);
	control_tell(k);
	return NULL;
}

/* The last events with that name, from the first replica that answers. The caller frees them. */
static json_t *events_of(struct control *k, const char *name, size_t most)
{
	json_t *all = json_array(), *j = NULL, *list, *e;
	char page[128];
	long long after = 0, next;
	long status;
	size_t i;
	unsigned replica = 0;

	while (*name && replica < control_count(k)) {
		snprintf(page, sizeof(page), "/v1/events?limit=%d&after=%lld", PAGE, after);
		j = control_get(k, replica, page, &status);
		if (!j || status != 200) {
			json_decref(j);
			replica++;
			continue;
		}
		list = json_object_get(j, "events");
		json_array_foreach(list, i, e) if (!strcmp(js(e, "name"), name)) json_array_append(all, e);
		next = json_array_size(list) < PAGE ? after : ji(j, "next");
		json_decref(j);
		if (next <= after)
			break;
		after = next;
	}
	while (json_array_size(all) > most)
		json_array_remove(all, 0);
	return all;
}

static bool has_id(const json_t *all, const char *id)
{
	const json_t *s;
	size_t i;

	json_array_foreach((json_t *)all, i, s) if (!strcmp(js(s, "id"), id)) return true;
	return false;
}

/* The sessions that are looked for. */
struct search {
	const struct wanted *wanted;
	bool reverse;
	unsigned long limit;
	json_t *all;
	bool others; /* `all` has another replica's: a session that both know has one id */
};

/* At most one more than the limit. */
static bool session_add(void *ctx, json_t *s)
{
	const struct search *x = ctx;

	if (json_array_size(x->all) <= x->limit && matches(s, x->wanted, x->reverse) &&
	    !(x->others && has_id(x->all, js(s, "id"))))
		json_array_append(x->all, s);
	return json_array_size(x->all) <= x->limit;
}

/* The matching sessions of all replicas; the caller frees them. NULL: no replica can be asked, and
 * an error is printed. */
static json_t *sessions(struct control *k, const struct wanted *w, bool reverse, unsigned long limit)
{
	struct search x = {.wanted = w, .reverse = reverse, .limit = limit, .all = json_array()};
	bool any = false;

	for (unsigned i = 0; i < control_count(k); i++) {
		x.others = json_array_size(x.all);
		any |= control_each(k, i, "/v1/sessions", "sessions", session_add, &x);
	}
	if (any)
		return x.all;
	control_tell(k);
	json_decref(x.all);
	return NULL;
}

/* --- answers --------------------------------------------------------------------------------- */

static void print_sessions(const json_t *all, size_t limit)
{
	static const char *const columns[] = {
	    "~SESSION", ">VNI", "~FROM", "~TO", ">QPNS", "~GATEWAYS", "CARRIER", ">OPEN", NULL};
	struct table *t = table_new(columns);
	const json_t *s;
	size_t i;

	json_array_foreach((json_t *)all, i, s)
	{
		if (i == limit)
			break;
		table_add(t, "%s", js(s, "id"));
		table_add(t, "%lld", ji(s, "vni"));
		table_add(t, "%s", js(s, "source"));
		table_add(t, "%s", js(s, "destination"));
		table_add(t, ji(s, "source_qpn") || ji(s, "destination_qpn") ? "%lld %lld" : "-",
		    ji(s, "source_qpn"), ji(s, "destination_qpn"));
		table_add(t, "%s", *js(s, "pair") ? js(s, "pair") : "none");
		table_add(t, "%s", *js(s, "carrier") ? js(s, "carrier") : "-");
		table_add(t, "%s", say_time(jn(s, "age_ms") / 1e3));
	}
	table_print(t);
}

static int run_list(const struct cli *cli, struct control *k, const struct wanted *w)
{
	const char *s = cli_value(cli, "limit");
	long long limit = 100;
	json_t *all, *o;
	bool more;

	if (s && !strcmp(s, "all"))
		limit = LIMIT_MAX;
	else if (s && !number("--limit", s, 1, LIMIT_MAX, &limit))
		return EXIT_USAGE;
	all = sessions(k, w, false, (unsigned long)limit);
	if (!all)
		return EXIT_ERROR;
	more = json_array_size(all) > (size_t)limit;
	if (more)
		json_array_remove(all, (size_t)limit);
	if (cli->json) {
		o = json_pack("{s:O, s:b}", "sessions", all, "more", more);
		print_json(o);
		json_decref(o);
	} else {
		if (json_array_size(all))
			print_sessions(all, (size_t)limit);
		printf("%s%zu session%s%s\n", json_array_size(all) ? "\n" : "", json_array_size(all),
		    json_array_size(all) == 1 ? "" : "s", more ? "; there are more: --limit" : "");
	}
	if (*w->a && !more && !json_array_size(all))
		cli_error("there is no session of %s", w->a);
	more = *w->a && !json_array_size(all);
	json_decref(all);
	return more ? EXIT_ERROR : EXIT_OK;
}

static int explain_id(const struct cli *cli, struct control *k, const char *id)
{
	char page[1024], escaped[900];
	json_t *x, *events;

	api_page_of(escaped, sizeof(escaped), "/v1/sessions/", id);
	snprintf(page, sizeof(page), "%s/explain", escaped);
	x = record_find(k, page, "session", id);
	if (!x)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(x);
	} else {
		events = events_of(k, js(json_object_get(x, "decision"), "tunnel"), EVENTS_MAX);
		explain_print(x, events);
		json_decref(events);
	}
	json_decref(x);
	return EXIT_OK;
}

/* Explains an address pair; if nobody reported this direction, the other one. */
static int explain_pair(const struct cli *cli, struct control *k, const struct wanted *w)
{
	json_t *all = sessions(k, w, false, SHOWN_MAX);
	char id[128];
	size_t n;

	if (all && !json_array_size(all)) {
		json_decref(all);
		all = sessions(k, w, true, SHOWN_MAX);
	}
	if (!all)
		return EXIT_ERROR;
	n = json_array_size(all);
	if (n == 1) {
		snprintf(id, sizeof(id), "%s", js(json_array_get(all, 0), "id"));
		json_decref(all);
		return explain_id(cli, k, id);
	}
	if (!n) {
		cli_error("there is no session from %s to %s%s", w->a, w->b,
		    w->vni >= 0 || w->qpn >= 0 ? " with these numbers" : "");
		control_tell(k);
	} else {
		if (!cli->json)
			print_sessions(all, SHOWN_MAX);
		cli_error("%s%zu sessions match: name one by its id, or add --vni or a QPN",
		    n > SHOWN_MAX ? "more than " : "", n > SHOWN_MAX ? (size_t)SHOWN_MAX : n);
	}
	json_decref(all);
	return EXIT_ERROR;
}

/* Explains what has a name, a page of its own and events: a job, a gateway. */
static int explain_named(const struct cli *cli, struct control *k, const char *what, const char *name,
    void (*print)(const json_t *j, const json_t *events), size_t most)
{
	json_t *j, *events;
	char page[1024], pages[32];

	snprintf(pages, sizeof(pages), "/v1/%ss/", what);
	api_page_of(page, sizeof(page), pages, name);
	j = record_find(k, page, what, name);
	if (j && cli->json) {
		print_json(j);
	} else {
		events = events_of(k, name, most);
		if (j)
			print(j, events);
		else if (json_array_size(events))
			explain_print_events(events);
		json_decref(events);
	}
	json_decref(j);
	return j ? EXIT_OK : EXIT_ERROR;
}

static int run_explain(const struct cli *cli)
{
	const char *job = cli_value(cli, "job"), *gateway = cli_value(cli, "gateway");
	struct control *k;
	struct wanted w;
	int rc;

	if (job && gateway) {
		cli_error("--job and --gateway exclude each other");
		return EXIT_USAGE;
	}
	if ((job || gateway) && cli->words) {
		cli_error("%s: one word too many for --%s", cli->word[0], job ? "job" : "gateway");
		return EXIT_USAGE;
	}
	if (!read_wanted(cli, &w))
		return EXIT_USAGE;
	k = control_new(cli, &rc);
	if (!k)
		return rc;
	if (job)
		rc = explain_named(cli, k, "job", job, explain_print_job, EVENTS_MAX);
	else if (gateway)
		rc = explain_named(cli, k, "gateway", gateway, explain_print_gateway, PAIR_EVENTS);
	else if (w.both)
		rc = explain_pair(cli, k, &w);
	else if (cli->words && !*w.a)
		rc = explain_id(cli, k, cli->word[0]);
	else
		rc = run_list(cli, k, &w);
	control_free(k);
	return rc;
}

const struct cli_cmd cmd_explain = {.name = "explain",
    .operand = "SESSION | SRC DST [QPN]",
    .no_socket = true,
    .many = true,
    .text = "why the control center decided as it did",
    .more = "SESSION is GATEWAY:ID, as the list has it. Without one the sessions are listed; with one\n"
            "address, its own. SRC DST finds a session by its addresses, QPN is at either end. The\n"
            "control center is asked over HTTPS with an operator's or a scheduler's certificate; of\n"
            "several URLs the next one when one does not answer, or does not know the session.\n",
    .opts = opts,
    .run = run_explain};
