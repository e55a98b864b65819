/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a session's explanation: the decision, its rule, the inputs with source and age, the
 * alternatives. */
#include "tools/roceway/explain.h"

#include <string.h>

#define FACT 10 /* columns of a fact's name */

__attribute__((format(printf, 2, 3))) static void fact(const char *name, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_fact(name, FACT, text);
}

/* --- the decision ----------------------------------------------------------------------------- */

static void print_session(const json_t *s)
{
	char qp[64] = "", vni[32] = "", share[64] = "";

	if (ji(s, "source_qpn") || ji(s, "destination_qpn"))
		snprintf(
		    qp, sizeof(qp), ", QPNs %lld and %lld", ji(s, "source_qpn"), ji(s, "destination_qpn"));
	if (ji(s, "vni"))
		snprintf(vni, sizeof(vni), ", VNI %lld", ji(s, "vni"));
	if (ji(s, "rate_bps"))
		snprintf(share, sizeof(share), ", %s of it a job's", explain_bps(s, "rate_bps"));
	fact("session", "%s", js(s, "id"));
	fact("from, to", "%s to %s%s%s", js(s, "source"), js(s, "destination"), qp, vni);
	fact("open", "for %s, %s carried%s", say_time(jn(s, "age_ms") / 1e3), say_bytes(jn(s, "bytes")),
	    share);
}

static void print_decision(const json_t *x)
{
	const json_t *d = json_object_get(x, "decision"), *in = json_object_get(x, "inputs");
	const json_t *s = json_object_get(x, "session");

	if (!d) {
		fact("decision", "none");
		fact("because", "%s", js(x, "reason"));
		return;
	}
	/* the decision made for this answer differs */
	if (strcmp(js(s, "carrier"), js(d, "carrier")) != 0)
		fact("decision", "%s by %s, so far %s", js(d, "carrier"), js(s, "pair"), js(s, "carrier"));
	else
		fact("decision", "%s by %s", js(d, "carrier"), js(s, "pair"));
	fact("planned", "%s of payload: %s at the gateways, %s at the WAN's edge", explain_bps(d, "n_bps"),
	    explain_bps(d, "gateway_bps"), explain_bps(d, "edge_bps"));
	if (jn(in, "demand_bps") > 0)
		fact("demand", "%s", explain_bps(in, "demand_bps"));
	else
		fact("demand", "not known: as much as there is");
	if (*js(d, "decided_by") && strcmp(js(d, "decided_by"), js(x, "rule")) != 0)
		fact("carrier", "%s: %s", js(d, "decided_by"), js(d, "decided_reason"));
	fact(strcmp(js(d, "decided_by"), js(x, "rule")) ? "now" : "carrier", "%s: %s", js(x, "rule"),
	    js(x, "reason"));
	if (*js(x, "pair_rule"))
		fact("gateways", "%s: %s", js(x, "pair_rule"), js(x, "pair_reason"));
}

/* --- alternatives ---------------------------------------------------------------------------- */

static void print_carriers(const json_t *list)
{
	static const char *const columns[] = {
	    "CARRIER", ">PREDICTED", "TAKEN", "~WHY NOT", "~BOUND BY", NULL};
	struct table *t = table_new(columns);
	const json_t *a, *chosen = NULL;
	size_t i;

	json_array_foreach((json_t *)list, i, a) if (jb(a, "chosen")) chosen = a;
	json_array_foreach((json_t *)list, i, a)
	{
		const bool possible = jn(a, "goodput_bps") > 0;
		const double mine = jn(a, "goodput_bps"), best = jn(chosen, "goodput_bps");
		const double less = best > 0 ? 100 * (mine < best ? 1 - mine / best : mine / best - 1) : 0;

		table_add(t, "%s", js(a, "carrier"));
		table_add(t, "%s", explain_bps(a, "goodput_bps"));
		table_add(t, "%s", a == chosen ? "yes" : "no");
		if (a == chosen)
			table_add(t, "-");
		else if (!possible)
			table_add(t, "%s", js(a, "why"));
		else if (mine != best)
			table_add(t, less >= 10 ? "carries %.0f %% %s" : "carries %.1f %% %s", less,
			    mine < best ? "less" : "more, see the rule");
		else
			table_add(t, "as good, but later in order");
		table_add(t, "%s", possible ? js(a, "why") : "-");
	}
	table_print(t);
}

static const char *not_taken(const json_t *x, const json_t *p)
{
	const char *rule = js(x, "pair_rule");

	if (!jb(p, "up"))
		return "no tunnel between them is up";
	if (!strcmp(rule, "job"))
		return "the job's plan names another one";
	if (!strcmp(rule, "under-way"))
		return "the session was on another one";
	return ji(p, "weight") ? "rendezvous by weight took another one" : "no weight";
}

/* Adds a pair of gateways. The API orders by site; people read from the source on (turn). */
static void add_pair(struct table *t, const char *pair, bool turn)
{
	const char *slash = strchr(pair, '/');

	if (turn && slash)
		table_add(t, "%s/%.*s", slash + 1, (int)(slash - pair), pair);
	else
		table_add(t, "%s", pair);
}

static void print_pairs(const json_t *x, const json_t *list)
{
	static const char *const columns[] = {
	    "~PAIR OF GATEWAYS", ">WEIGHT", ">SHARE", "STATE", ">FLOWS", "TAKEN", "~WHY NOT", NULL};
	struct table *t = table_new(columns);
	const json_t *p;
	const char *mine = js(json_object_get(x, "session"), "pair");
	bool turn = false;
	double all = 0;
	size_t i;

	json_array_foreach((json_t *)list, i, p)
	{
		all += jb(p, "up") ? jn(p, "weight") : 0;
		turn |= jb(p, "chosen") && strcmp(js(p, "pair"), mine) != 0;
	}
	json_array_foreach((json_t *)list, i, p)
	{
		add_pair(t, js(p, "pair"), turn);
		table_add(t, "%lld", ji(p, "weight"));
		table_add(
		    t, all > 0 && jb(p, "up") ? "%.0f %%" : "-", all > 0 ? 100 * jn(p, "weight") / all : 0);
		table_add(t, "%s", jb(p, "up") ? "up" : "lost");
		table_add(t, "%lld", ji(p, "flows"));
		table_add(t, "%s", jb(p, "chosen") ? "yes" : "no");
		table_add(t, "%s", jb(p, "chosen") ? "-" : not_taken(x, p));
	}
	table_print(t);
}

/* --- inputs ---------------------------------------------------------------------------------- */

static const char *value(const char *key, const json_t *v)
{
	static char text[32];

	if (!strcmp(key, "bandwidth_bps"))
		return jn(v, "value") > 0 ? explain_bps(v, "value") : "not known";
	if (!strcmp(key, "loss_ppm"))
		return say_share(jn(v, "value") / 1e6);
	if (!strcmp(key, "burst")) {
		snprintf(text, sizeof(text), "%lld", ji(v, "value"));
		return text;
	}
	return explain_us(v, "value");
}

/* Adds a value: one row for all carriers that have the same value from the same source. */
static void add_values(struct table *t, const char *name, const char *key, json_t *path)
{
	const char *c, *k;
	json_t *leg, *other;

	json_object_foreach(path, c, leg)
	{
		const json_t *v = json_object_get(leg, key);
		const bool assumed = !strcmp(js(v, "source"), "assumed");
		char of[64] = "";
		bool first = true, mine = false;

		json_object_foreach(path, k, other)
		{
			if (!json_equal((json_t *)v, json_object_get(other, key)))
				continue;
			mine |= k == c || !strcmp(k, c);
			if (!mine)
				first = false; /* part of the row before */
			snprintf(of + strlen(of), sizeof(of) - strlen(of), "%s%s", *of ? " " : "", k);
		}
		if (!first || !v)
			continue;
		table_add(t, "%s", name);
		table_add(t, "%s", of);
		table_add(t, "%s", value(key, v));
		table_add(t, "%s", js(v, "source"));
		table_add(t, "%s", assumed ? "-" : say_time(jn(v, "age_ms") / 1e3));
	}
}

/* Adds a gateway's capabilities, as it registered them. */
static void add_gateway(struct table *t, const char *name, json_t *caps)
{
	const char *key;
	json_t *v;

	json_object_foreach(caps, key, v)
	{
		if (!json_is_integer(v) || !json_integer_value(v))
			continue;
		table_add(t, "bandwidth of %s", name);
		table_add(t, "%s", key);
		table_add(t, "%s", explain_bps(caps, key));
		table_add(t, "%s", name);
		table_add(t, "-");
	}
	table_add(t, "CNPs of %s", name);
	table_add(t, "native");
	table_add(t, "%s", jb(caps, "cnp") ? "yes" : "no");
	table_add(t, "%s", name);
	table_add(t, "-");
}

static void print_inputs(json_t *in)
{
	static const char *const columns[] = {"~INPUT", "CARRIERS", ">VALUE", "~SOURCE", ">AGE", NULL};
	static const char *const keys[][2] = {{"bandwidth", "bandwidth_bps"}, {"round trip", "rtt_us"},
	    {"jitter", "jitter_us"}, {"loss", "loss_ppm"}, {"lost in a row", "burst"}};
	struct table *t = table_new(columns);
	const char *key;
	json_t *v;

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		add_values(t, keys[i][0], keys[i][1], json_object_get(in, "path"));
	json_object_foreach(in, key, v) if (strcmp(key, "path") != 0 && json_is_object(v))
	    add_gateway(t, key, v);
	printf("\nThe path is %s:\n", js(in, "class"));
	table_print(t);
}

static void print_network(json_t *network)
{
	json_t *list = json_pack("[O]", network);

	printf("\nIn the network, for job %s: %s\n", js(network, "job"), js(network, "reason"));
	explain_print_network(list);
	json_decref(list);
}

/* Where the gateways send what they have in networks' tunnels, or why they do not. */
static void print_paths(const json_t *x)
{
	static const char *const columns[] = {
	    "~SENT ALONG", ">AT MOST", ">AT THE EDGE", ">DSCP", "~ADDRESSES", NULL};
	struct table *t = table_new(columns);
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(x, "paths"), i, p)
	{
		if (!ji(p, "bandwidth_bps"))
			continue;
		table_add(t, "%s/%s", js(p, "edge"), js(p, "path"));
		table_add(t, "%s", explain_bps(p, "rate_bps"));
		table_add(t, "%s", explain_bps(p, "bandwidth_bps"));
		if (ji(p, "dscp"))
			table_add(t, "%lld", ji(p, "dscp"));
		else
			table_add(t, "-");
		if (*js(p, "first") || *js(p, "second"))
			table_add(t, "%s, %s", *js(p, "first") ? js(p, "first") : "-",
			    *js(p, "second") ? js(p, "second") : "-");
		else
			table_add(t, "-");
	}
	putchar('\n');
	table_print(t);
	if (*js(x, "unsteered"))
		printf("The gateways send along none of it: %s\n", js(x, "unsteered"));
}

void explain_print(const json_t *x, const json_t *events)
{
	const json_t *carriers = json_object_get(x, "alternatives"), *pairs = json_object_get(x, "pairs");
	json_t *in = json_object_get(x, "inputs"), *network = json_object_get(x, "network");

	print_session(json_object_get(x, "session"));
	print_decision(x);
	if (json_array_size(carriers)) {
		putchar('\n');
		print_carriers(carriers);
	}
	if (json_array_size(pairs)) {
		putchar('\n');
		print_pairs(x, pairs);
	}
	if (in)
		print_inputs(in);
	if (network)
		print_network(network);
	if (json_array_size(json_object_get(x, "paths")) || *js(x, "unsteered"))
		print_paths(x);
	if (json_array_size(events)) {
		printf("\nWhat happened to tunnel %s:\n", js(json_object_get(x, "decision"), "tunnel"));
		explain_print_events(events);
	}
}
