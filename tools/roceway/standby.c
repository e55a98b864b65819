/* SPDX-License-Identifier: Apache-2.0 */
/* roceway standby: the gateway as one of a pair. */
#include "tools/roceway/roceway.h"

/* What made it serve, or lose its standby. */
static void print_event(const char *name, const json_t *e)
{
	char text[160];

	if (!json_is_object(e))
		return;
	snprintf(
	    text, sizeof(text), "%s ago, %s: %s", say_time(jn(e, "seconds")), js(e, "by"), js(e, "meaning"));
	print_fact(name, 8, text);
}

static void print_standby(const json_t *s)
{
	const char *other = js(s, "other");

	printf("state     %s for %s, since %s\n", js(s, "state"), say_time(jn(s, "seconds")), js(s, "since"));
	print_fact("meaning", 8, js(s, "meaning"));
	printf("other     %s\n", *other ? other : "silent");
	printf("tunnel    %s\n", js(s, "tunnel"));
	printf("witness   %s\n", *js(s, "witness") ? js(s, "witness") : "none: no tunnel leads to one");
	printf("serves    %s\n", jb(s, "serves") ? "yes" : "no");
	printf("epoch     %lld\n", ji(s, "epoch"));
	print_event(jb(s, "serves") ? "since" : "served", json_object_get(s, "serves_by"));
	print_event("lost", json_object_get(s, "lost_by"));
	printf("site      %s\n",
	    jb(s, "site") ? "in effect: both gateways have what is acknowledged" : "as `near` now");
	printf("%s  %lld connections, %s\n", jb(s, "serves") ? "copies  " : "stored  ", ji(s, "flows"),
	    say_bytes(jn(s, "bytes")));
	if (jb(s, "degraded"))
		printf("\nthe other gateway could not take over without loss now\n");
}

static int run_standby(const struct cli *cli)
{
	json_t *j = api_get_json(cli, "/v1/standby", NULL), *s;

	if (!j)
		return EXIT_ERROR;
	s = json_object_get(j, "standby");
	if (cli->json)
		print_json(j);
	else if (!json_is_object(s))
		printf("this gateway is not one of a pair: docs/standby.md\n");
	else
		print_standby(s);
	json_decref(j);
	return EXIT_OK;
}

const struct cli_cmd cmd_standby = {.name = "standby",
    .text = "this gateway as one of a pair",
    .more =
        "state is this gateway's, other is what the other gateway last said of itself; docs/standby.md has\n"
        "the states. paired and ready are good; in all others the pair has no standby, or not all copies.\n"
        "epoch counts who serves: the one that begins adds one. since says what made it serve, lost what\n"
        "made it lose its standby. witness is the tunnel to the gateway that says who serves. copies are\n"
        "on their way to the other gateway, stored are kept for it.\n",
    .run = run_standby};
