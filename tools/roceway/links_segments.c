/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway links --segments: the three reliable segments of each link of this relay. It asks the API
 * twice, a second apart, for the rates. A relay measures its own host and its tunnel; of the far
 * host it knows the rate that the far relay reports.
 */
#include "tools/roceway/links.h"

#include <string.h>
#include <time.h>

#define FLOWS "/v1/flows?limit=1000&sort=recent" /* as many as links that the API gives */

struct sample {
	json_t *links, *flows, *tunnels;
	double at; /* s */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sample_free(struct sample *s)
{
	json_decref(s->links);
	json_decref(s->flows);
	json_decref(s->tunnels);
}

/* False, after cli_error(): the relay does not answer. */
static bool sample_take(const struct cli *cli, struct sample *s)
{
	*s = (struct sample){.at = now()};
	s->links = api_get_json(cli, "/v1/links", NULL);
	s->flows = s->links ? api_get_json(cli, FLOWS, NULL) : NULL;
	s->tunnels = s->flows ? api_get_json(cli, "/v1/tunnels", NULL) : NULL;
	return s->tunnels;
}

static const json_t *by_text(const json_t *list, const char *key, const char *value)
{
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, o)
	{
		if (!strcmp(js(o, key), value))
			return o;
	}
	return NULL;
}

/* The connection of a link: its local host's queue pair; NULL: no data passed yet. */
static const json_t *flow_of(const struct sample *s, const json_t *link)
{
	const json_t *list = json_object_get(s->flows, "flows"), *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, o)
	{
		if (ji(o, "local_qpn") == ji(link, "local_qpn") && !strcmp(js(o, "local"), js(link, "local")))
			return o;
	}
	return NULL;
}

static double rate(const struct sample *before, const struct sample *after, const json_t *was,
    const json_t *is, const char *key)
{
	const double seconds = after->at - before->at;

	return was && seconds > 0 && jn(is, key) > jn(was, key) ? (jn(is, key) - jn(was, key)) / seconds : 0;
}

static json_t *host_segment(
    const struct sample *before, const struct sample *after, const json_t *link, const json_t *flow)
{
	const json_t *was = by_text(json_object_get(before->links, "links"), "link", js(link, "link"));
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:f, s:f}", "segment", "host", "from", js(link, "local"),
	    "to", js(link, "relay"), "state", flow ? js(flow, "state") : js(link, "state"),
	    "out_bytes_per_second", rate(before, after, was, link, "in_bytes"), "in_bytes_per_second",
	    rate(before, after, was, link, "out_bytes"));

	if (flow) {
		json_object_set_new(o, "rtt_seconds", json_real(jn(flow, "requester_rtt_seconds")));
		json_object_set_new(o, "resent", json_integer(ji(flow, "host_resent")));
		json_object_set_new(o, "limit", json_string(js(flow, "limit")));
	}
	return o;
}

static json_t *tunnel_segment(const struct sample *before, const struct sample *after, const json_t *flow)
{
	const char *name = flow ? js(flow, "tunnel") : "";
	const json_t *is = by_text(json_object_get(after->tunnels, "tunnels"), "name", name);
	const json_t *was = by_text(json_object_get(before->tunnels, "tunnels"), "name", name);

	if (!is)
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:I, s:s, s:s}", "segment", "tunnel",
	    "from", js(is, "local"), "to", js(is, "remote"), "state", js(is, "state"), "out_bytes_per_second",
	    rate(before, after, was, is, "tx_bytes"), "in_bytes_per_second",
	    rate(before, after, was, is, "rx_bytes"), "rtt_seconds", jn(is, "rtt_seconds"), "loss_ratio",
	    jn(is, "loss_ratio"), "lost", (json_int_t)ji(is, "lost"), "carrier",
	    js(json_object_get(is, "carrier"), "sending"), "tunnel", name);
}

static json_t *far_segment(const json_t *link, const json_t *flow)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:f}", "segment", "far host", "from", "far relay", "to",
	    js(link, "remote"), "state", js(link, "state"), "drain_bytes_per_second",
	    flow ? jn(flow, "remote_drain_Bps") : 0.0);
}

/* A new list of the links, each with its `segments`. */
static json_t *segments(const struct sample *before, const struct sample *after)
{
	json_t *out = json_array(), *link;
	size_t i;

	json_array_foreach(json_object_get(after->links, "links"), i, link)
	{
		const json_t *flow = flow_of(after, link);
		json_t *list = json_array(), *tunnel = tunnel_segment(before, after, flow);

		json_array_append_new(list, host_segment(before, after, link, flow));
		if (tunnel)
			json_array_append_new(list, tunnel);
		json_array_append_new(list, far_segment(link, flow));
		json_object_set_new(link, "segments", list);
		json_array_append(out, link);
	}
	return out;
}

static void add_measured(struct table *t, const json_t *o, const char *key, const char *(*say)(double v))
{
	table_add(t, "%s", json_object_get(o, key) && jn(o, key) > 0 ? say(jn(o, key)) : "-");
}

static void print_segments(const json_t *list)
{
	static const char *const columns[] = {
	    "LINK", "~SEGMENT", "STATE", ">OUT", ">IN", ">RTT", ">LOSS", ">AGAIN", NULL};
	struct table *t = table_new(columns);
	const json_t *l, *s;
	size_t i, k;

	json_array_foreach((json_t *)(uintptr_t)list, i, l)
	{
		json_array_foreach(json_object_get(l, "segments"), k, s)
		{
			const bool far = !strcmp(js(s, "segment"), "far host");

			table_add(t, "%s", k ? "" : js(l, "link"));
			table_add(
			    t, "%s %s", js(s, "segment"), far ? js(s, "to") : js(s, k ? "tunnel" : "from"));
			table_add(t, "%s", js(s, "state"));
			add_measured(t, s, far ? "drain_bytes_per_second" : "out_bytes_per_second", say_bits);
			add_measured(t, s, "in_bytes_per_second", say_bits);
			add_measured(t, s, "rtt_seconds", say_time);
			table_add(
			    t, "%s", json_object_get(s, "loss_ratio") ? say_share(jn(s, "loss_ratio")) : "-");
			if (json_object_get(s, "lost") || json_object_get(s, "resent"))
				table_add(t, "%s",
				    say_count(jn(s, json_object_get(s, "lost") ? "lost" : "resent")));
			else
				table_add(t, "-");
		}
	}
	table_print(t);
}

int links_segments(const struct cli *cli)
{
	struct sample before, after;
	int rc = EXIT_ERROR;

	if (!sample_take(cli, &before)) {
		sample_free(&before);
		return EXIT_ERROR;
	}
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	if (sample_take(cli, &after)) {
		json_t *list = segments(&before, &after);
		json_t *all = json_pack("{s:O}", "links", list);

		rc = EXIT_OK;
		if (cli->json)
			print_json(all);
		else
			print_segments(list);
		json_decref(all);
		json_decref(list);
	}
	sample_free(&before);
	sample_free(&after);
	return rc;
}
