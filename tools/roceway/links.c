/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway links: the links of this relay, or with --network those of all relays, as the control
 * center knows them: the segments of both ends and the tunnel between them.
 */
#include "tools/roceway/links.h"

#include <stdio.h>
#include <string.h>

static const struct cli_opt opts[] = {
    {"detail", NULL, "everything that is known, line by line"},
    {"segments", NULL, "each link's segments with their rates in a second, RTT and losses"},
    {"network", NULL, "the links of all relays, asked of the control center"},
    CONTROL_OPTS{NULL, NULL, NULL},
};

static void print_lines(const json_t *list)
{
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, o)
	{
		if (i)
			putchar('\n');
		print_object(o);
	}
}

/* --- of this relay ---------------------------------------------------------------------------- */

static void print_own(const json_t *list)
{
	static const char *const columns[] = {
	    "LINK", "STATE", "~LOCAL", ">QPN", "~RELAY", ">ALIAS", "~REMOTE", ">QPN", ">IN", ">OUT", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, o)
	{
		table_add(t, "%s", js(o, "link"));
		table_add(t, "%s", js(o, "state"));
		table_add(t, "%s", js(o, "local"));
		table_add(t, "%lld", ji(o, "local_qpn"));
		table_add(t, "%s", js(o, "relay"));
		table_add(t, "%lld", ji(o, "alias_qpn"));
		table_add(t, "%s", js(o, "remote"));
		table_add(t, "%lld", ji(o, "remote_qpn"));
		table_add(t, "%s", say_count(jn(o, "in_packets")));
		table_add(t, "%s", say_count(jn(o, "out_packets")));
	}
	table_print(t);
}

static int run_own(const struct cli *cli)
{
	json_t *j = api_get_json(cli, "/v1/links", NULL);

	if (!j)
		return EXIT_ERROR;
	if (cli->json)
		print_json(j);
	else if (cli_value(cli, "detail"))
		print_lines(json_object_get(j, "links"));
	else
		print_own(json_object_get(j, "links"));
	json_decref(j);
	return EXIT_OK;
}

/* --- of the network --------------------------------------------------------------------------- */

static bool link_add(void *all, json_t *l)
{
	json_array_append(all, l);
	return true;
}

/* Adds a link of another replica: its ends to those of the same link, if that is there. */
static bool link_merge(void *list, json_t *l)
{
	json_t *all = list, *o, *e;
	size_t i, k;

	json_array_foreach(all, i, o)
	{
		if (strcmp(js(o, "link"), js(l, "link")) != 0)
			continue;
		json_array_foreach(json_object_get(l, "ends"), k, e)
		    json_array_append(json_object_get(o, "ends"), e);
		json_object_update_missing(o, l);
		return true;
	}
	return link_add(all, l);
}

/* A line for each end: the tunnel is the same. */
static void print_network(const json_t *list)
{
	static const char *const columns[] = {
	    "LINK", "~HOST", ">QPN", "~RELAY", "~GATEWAY", ">CARRIED", "~TUNNEL", ">RTT", ">LOSS", NULL};
	struct table *t = table_new(columns);
	const json_t *l, *e;
	size_t i, k;

	json_array_foreach((json_t *)(uintptr_t)list, i, l)
	{
		json_array_foreach(json_object_get(l, "ends"), k, e)
		{
			table_add(t, "%s", js(l, "link"));
			table_add(t, "%s", js(e, "host"));
			table_add(t, "%lld", ji(e, "qpn"));
			table_add(t, "%s", js(e, "relay"));
			table_add(t, "%s", js(e, "gateway"));
			table_add(t, "%s", say_bytes(jn(e, "bytes")));
			table_add(t, "%s", *js(l, "tunnel") ? js(l, "tunnel") : "none");
			table_add(t, "%s", ji(l, "rtt_us") ? say_time(jn(l, "rtt_us") / 1e6) : "-");
			table_add(t, "%s",
			    json_object_get(l, "loss_ppm") ? say_share(jn(l, "loss_ppm") / 1e6) : "-");
		}
	}
	table_print(t);
}

static int run_network(const struct cli *cli)
{
	json_t *all = json_array(), *o;
	int rc;
	struct control *k = control_new(cli, &rc);
	bool any = false;

	for (unsigned i = 0; k && i < control_count(k); i++)
		any |= control_each(k, i, "/v1/relay-links", "links", i ? link_merge : link_add, all);
	if (k && control_tell(k) && !any)
		rc = EXIT_ERROR;
	if (any) {
		rc = EXIT_OK;
		o = json_pack("{s:O}", "links", all);
		if (cli->json)
			print_json(o);
		else if (cli_value(cli, "detail"))
			print_lines(all);
		else
			print_network(all);
		json_decref(o);
	}
	json_decref(all);
	control_free(k);
	return rc;
}

static int run_links(const struct cli *cli)
{
	if (cli_value(cli, "segments") && cli_value(cli, "network")) {
		cli_error("--segments is of this relay, --network of all");
		return EXIT_USAGE;
	}
	if (cli_value(cli, "segments"))
		return links_segments(cli);
	return cli_value(cli, "network") ? run_network(cli) : run_own(cli);
}

const struct cli_cmd cmd_links = {.name = "links",
    .text = "links of a relay (roceway-proxy), or of all",
    .more =
        "LINK is the same at all its relays. To LOCAL, RELAY and ALIAS stand for REMOTE and its QPN.\n"
        "IN, OUT: packets from and to LOCAL. --detail has more, as `port` and the host that asked\n"
        "(`asked_by`).\n"
        "--segments: LOCAL host to relay, relay to relay, far relay to REMOTE. OUT, IN: bits a second; for\n"
        "the far host OUT is what the far relay measures of it. AGAIN: packets sent again to the host,\n"
        "datagrams lost by the tunnel.\n"
        "--network: a line for each relay of a link, with its host and what it carried for it, and the\n"
        "tunnel between the relays.\n",
    .opts = opts,
    .run = run_links};
