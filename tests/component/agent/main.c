/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent (gateway/agent/agent.h) alone, for ctrl_agent.py: it writes each callback as a line of
 * JSON to standard output.
 *
 * ctrl_agent NAME CA CERTIFICATE KEY GENERATION KEEP URL...
 *
 * "status" on standard input prints its status; end of input ends the program. It refuses a
 * document whose first tunnel is named `bad`, delays one named `later` once, and saves others in
 * the file KEEP.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/agent/agent.h"
#include "gateway/agent/keep.h"

static struct {
	const char *keep;
	bool put_off;
	unsigned told; /* batches of sessions reported since the resync */
} me = {.told = 2};

static void line(json_t *o)
{
	flockfile(stdout); /* the agent's thread writes, too: one line at a time */
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
	json_decref(o);
}

static json_t *registration(void *ctx)
{
	return json_pack("{s:s, s:s, s:[], s:[s], s:[], s:{}}", "site", "here", "version", "1", "lan", "wan",
	    "192.0.2.1:4793", "ports", "capabilities");
}

static json_t *load(void *ctx)
{
	return json_pack(
	    "{s:i, s:i, s:i, s:i}", "sessions", 1, "rate_bps", 2, "cpu_ppm", 3, "custody_ppm", 4);
}

static json_t *links(void *ctx)
{
	return json_pack("[{s:s}]", "peer", "p");
}

static json_t *sessions(void *ctx, uint64_t *part, bool *last)
{
	if (me.told >= 2)
		return NULL;
	*part = me.told + 1;
	*last = me.told == 1;
	return json_pack("[{s:o, s:s}]", "id", json_sprintf("s%u", ++me.told), "event", "opened");
}

static void resync(void *ctx)
{
	me.told = 0;
	line(json_pack("{s:s}", "event", "resync"));
}

static void decided(void *ctx, const json_t *decisions)
{
	line(json_pack("{s:s, s:i}", "event", "decided", "n", (int)json_array_size(decisions)));
}

static int apply(void *ctx, const json_t *doc, const char *text, char why[AGENT_WHY])
{
	const json_t *t = json_array_get(json_object_get(doc, "tunnels"), 0);
	const char *name = json_string_value(json_object_get(t, "name"));

	if (name && !strcmp(name, "bad")) {
		snprintf(why, AGENT_WHY, "tunnel bad: it is bad");
		return RWY_EINVAL;
	}
	if (name && !strcmp(name, "later") && !me.put_off) {
		me.put_off = true;
		snprintf(why, AGENT_WHY, "a worker is late");
		return RWY_EAGAIN;
	}
	line(json_pack("{s:s, s:O, s:i}", "event", "apply", "generation", json_object_get(doc, "generation"),
	    "kept", keep_write(me.keep, text)));
	return 0;
}

static void log_line(void *ctx, int level, const char *msg)
{
	line(json_pack("{s:s, s:i, s:s}", "event", "log", "level", level, "text", msg));
}

static void *run(void *agent)
{
	agent_run(agent);
	return NULL;
}

static void print_status(struct agent *a)
{
	struct agent_status s;
	json_t *o;

	agent_status(a, &s);
	o = json_pack("{s:s, s:i, s:s, s:I, s:I, s:s, s:s, s:I, s:I}", "event", "status", "state",
	    (int)s.state, "url", s.url, "generation", (json_int_t)s.generation, "refused",
	    (json_int_t)s.refused, "why", s.why, "problem", s.problem, "ttl_ms", (json_int_t)s.ttl_ms,
	    "retry_ms", (json_int_t)s.retry_ms);
#define X(f, t) json_object_set_new(o, #f, json_integer((json_int_t)s.f));
	AGENT_COUNTERS(X)
#undef X
	line(o);
}

int main(int argc, char **argv)
{
	static const struct agent_ops ops = {.registration = registration,
	    .load = load,
	    .links = links,
	    .sessions = sessions,
	    .resync = resync,
	    .decided = decided,
	    .apply = apply,
	    .log = log_line};
	struct agent_cfg cfg;
	struct agent *a;
	pthread_t t;
	char word[64];

	if (argc < 8)
		return 2;
	agent_cfg_default(&cfg);
	cfg.name = argv[1];
	cfg.ca = argv[2];
	cfg.certificate = argv[3];
	cfg.key = argv[4];
	cfg.generation = strtoull(argv[5], NULL, 10);
	me.keep = argv[6];
	cfg.url = (const char *const *)argv + 7;
	cfg.urls = (unsigned)argc - 7;
	cfg.boot_id = "boot";
	cfg.links_ms = 300;
	cfg.poll_ms = 1000;
	cfg.backoff_ms = 50;
	cfg.backoff_max_ms = 400;
	if (agent_new(&a, &cfg, &ops, NULL) || pthread_create(&t, NULL, run, a))
		return 1;
	while (fgets(word, sizeof(word), stdin))
		if (!strcmp(word, "status\n"))
			print_status(a);
	agent_stop(a);
	pthread_join(t, NULL);
	agent_free(a);
	return 0;
}
