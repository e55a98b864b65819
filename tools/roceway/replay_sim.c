/* SPDX-License-Identifier: Apache-2.0 */
/* roceway replay --sim: its options, and what each connection experienced beside the capture. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tools/replay/sim.h"
#include "tools/roceway/replay.h"
#include "tools/wanem/set.h"

#define RTT_MAX   (20 * RWY_SEC)
#define FAULT_MAX (3600 * RWY_SEC)
#define QUEUE_MS  50 /* of the WAN at its rate */
#define BITS      8

/* --- options --------------------------------------------------------------------------------- */

static bool wanem_bad(const char *opt, const struct wanem_err *err)
{
	cli_error("--%s: %s", opt, err->text);
	return false;
}

/* Sets a key of both directions. */
static bool set_both(struct rp_sim_cfg *c, const char *opt, const char *key, const char *value)
{
	struct wanem_err err;

	for (unsigned i = 0; i < 2; i++)
		if (wanem_set_key(&c->wan[i], key, value, &err) != 0)
			return wanem_bad(opt, &err);
	return true;
}

static bool read_link(const struct cli *cli, struct rp_sim_cfg *c)
{
	const char *rtt = cli_value(cli, "rtt"), *loss = cli_value(cli, "loss");
	const char *rate = cli_value(cli, "rate"), *wan = cli_value(cli, "wan");
	struct wanem_err err;
	uint64_t t;

	if (wanem_set_time(rtt ? rtt : "20ms", RTT_MAX, &t, &err) != 0)
		return wanem_bad("rtt", &err);
	c->wan[0].delay = c->wan[1].delay = t / 2;
	if (!set_both(c, "rate", "rate", rate ? rate : "10Gbit") ||
	    (loss && !set_both(c, "loss", "loss", loss)))
		return false;
	for (unsigned i = 0; i < 2; i++) {
		c->wan[i].queue_in_bytes = true;
		c->wan[i].queue =
		    c->wan[i].rate ? c->wan[i].rate / BITS / 1000 * QUEUE_MS + 65536 : UINT32_MAX;
		if (wan && wanem_set_list(&c->wan[i], wan, &err) != 0)
			return wanem_bad("wan", &err);
	}
	if (c->wan[0].rate)
		c->wan_Bps = c->wan[0].rate / BITS;
	return true;
}

/* outage@T+D, a-b@T+D, b-a@T+D: no WAN, or one direction of it, from T on for D. */
static bool read_fault(char *word, struct rp_fault *f)
{
	char *at = strchr(word, '@'), *plus = at ? strchr(at, '+') : NULL;
	struct wanem_err err;

	if (!at || !plus)
		return false;
	*at = *plus = '\0';
	f->way[0] = !strcmp(word, "outage") || !strcmp(word, "a-b");
	f->way[1] = !strcmp(word, "outage") || !strcmp(word, "b-a");
	if (wanem_set_time(at + 1, FAULT_MAX, &f->from, &err) != 0 ||
	    wanem_set_time(plus + 1, FAULT_MAX, &f->to, &err) != 0)
		return false;
	f->to += f->from;
	return f->way[0] || f->way[1];
}

static bool read_faults(const struct cli *cli, struct rp_sim_cfg *c)
{
	const char *list = cli_value(cli, "fault");
	char *copy = list ? strdup(list) : NULL, *save = NULL, whole[64];

	for (char *w = copy ? strtok_r(copy, ",", &save) : NULL; w; w = strtok_r(NULL, ",", &save)) {
		snprintf(whole, sizeof(whole), "%s", w);
		if (c->faults == RP_FAULTS_MAX || !read_fault(w, &c->fault[c->faults])) {
			cli_error("--fault: '%s' is not outage@TIME+TIME, a-b@TIME+TIME or b-a@TIME+TIME; "
			          "at most %d",
			    whole, RP_FAULTS_MAX);
			free(copy);
			return false;
		}
		c->faults++;
	}
	free(copy);
	return true;
}

static bool read_mode(const struct cli *cli, struct rp_sim_cfg *c)
{
	const char *text = cli_value(cli, "ack-mode");

	if (!text)
		return true;
	for (unsigned m = ENG_ACK_NEAR; m <= ENG_ACK_CAUSAL; m++)
		if (!strcmp(text, eng_ack_mode_name((enum eng_ack_mode)m))) {
			c->ack_mode = (enum eng_ack_mode)m;
			return true;
		}
	cli_error("--ack-mode: '%s' is not near, far, end or causal", text);
	return false;
}

static bool read_seed(const struct cli *cli, struct rp_sim_cfg *c)
{
	const char *text = cli_value(cli, "seed");
	char *end;

	if (!text)
		return true;
	c->seed = strtoull(text, &end, 0);
	if (end != text && !*end && *text != '-')
		return true;
	cli_error("--seed: '%s' is no number", text);
	return false;
}

static bool is_host(const struct rp_schedule *s, const struct rwy_ip *ip)
{
	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; j < 2; j++)
			if (rwy_ip_eq(&s->conn[i].side[j].ip, ip))
				return true;
	return false;
}

static bool read_options(
    const struct cli *cli, const struct rp_schedule *s, struct rp_sim_cfg *c, struct rwy_ip *near)
{
	const char *as = cli_value(cli, "as");

	rp_sim_cfg_default(c);
	if (!replay_speed(cli, &c->speed) || !read_link(cli, c) || !read_faults(cli, c) ||
	    !read_mode(cli, c) || !read_seed(cli, c))
		return false;
	if (!as)
		return true;
	if (!replay_ip_read("as", as, near))
		return false;
	if (!is_host(s, near)) {
		cli_error("--as: %s has no RC connection in %s", as, cli->word[0]);
		return false;
	}
	c->near = near;
	return true;
}

/* --- output ---------------------------------------------------------------------------------- */

static void print_sides(const struct rp_schedule *s, const struct rp_sim_conn *k)
{
	static const char *const columns[] = {"~HOST QPN > HOST QPN", ">MESSAGES", ">DATA", ">P50", ">WAS",
	    ">P99", ">WAS", ">RESENT", ">WAS", "~RESULT", NULL};
	struct table *t = table_new(columns);

	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; j < 2; j++) {
			const struct rp_side *d = &k[i].conn->side[j];
			const struct rp_host *h = k[i].host ? &k[i].host[j] : NULL;
			char name[REPLAY_NAME_MAX];

			if (!d->msgs || !h)
				continue;
			replay_name(k[i].conn, j, name);
			table_add(t, "%s", name);
			table_add(t, "%llu of %u", (unsigned long long)h->stats.completed, d->msgs);
			table_add(t, "%s", say_bytes((double)h->stats.bytes));
			table_add(t, "%s", replay_quantile(&h->stats.completion, 0.5));
			table_add(t, "%s", replay_quantile(&d->flow->completion, 0.5));
			table_add(t, "%s", replay_quantile(&h->stats.completion, 0.99));
			table_add(t, "%s", replay_quantile(&d->flow->completion, 0.99));
			table_add(t, "%llu", (unsigned long long)h->reqr.resent);
			table_add(t, "%llu", (unsigned long long)d->flow->c.resent_packets);
			table_add(t, "%s", replay_result(h));
		}
	table_print(t);
}

static void print_as_json(
    const struct rp_schedule *s, const struct rp_sim *sim, const struct rp_sim_result *r)
{
	const struct rp_sim_conn *k = rp_sim_conns(sim);
	json_t *sides = json_array(), *o;
	char hash[20];

	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; k[i].host && j < 2; j++)
			if (k[i].conn->side[j].msgs)
				json_array_append_new(sides, replay_side_json(k[i].conn, j, &k[i].host[j]));
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)r->hash);
	o = json_pack("{so, ss, sf, sb, sI, sI, sI, sI, sI, sI, sI, sI, sI, so}", "capture",
	    replay_schedule_json(s), "hash", hash, "seconds", (double)r->took / 1e9, "stalled", r->stalled,
	    "packets", (json_int_t)r->packets, "left_out", (json_int_t)r->left_out, "same_queue_pairs",
	    (json_int_t)r->same_qps, "cm", (json_int_t)r->cm, "cm_differ", (json_int_t)r->cm_differ,
	    "wan_sent_a", (json_int_t)r->wan[0].sent, "wan_lost_a", (json_int_t)r->wan[0].lost, "wan_sent_b",
	    (json_int_t)r->wan[1].sent, "wan_lost_b", (json_int_t)r->wan[1].lost, "sides", sides);
	print_json(o);
	json_decref(o);
}

static void print_run(const struct rp_schedule *s, const struct rp_sim *sim, const struct rp_sim_result *r)
{
	const struct rp_sim_conn *k = rp_sim_conns(sim);

	printf("%u connections, %llu messages in %s; captured in %s\n", s->conns - r->left_out,
	    (unsigned long long)rp_schedule_messages(s), say_time((double)r->took / 1e9),
	    say_time((double)rwy_since(s->first, s->last) / 1e9));
	if (r->cm)
		printf("%u of them set up by CM\n", r->cm);
	if (r->cm_differ)
		printf("%llu CM messages came otherwise than they were sent\n",
		    (unsigned long long)r->cm_differ);
	printf("WAN: %llu datagrams from a, %llu of them lost; %llu from b, %llu lost\n",
	    (unsigned long long)r->wan[0].sent, (unsigned long long)r->wan[0].lost,
	    (unsigned long long)r->wan[1].sent, (unsigned long long)r->wan[1].lost);
	if (r->left_out > r->same_qps)
		printf(
		    "%u connections are left out: both hosts are at one site\n", r->left_out - r->same_qps);
	if (r->same_qps)
		printf("%u connections are left out: hosts of another VNI have their addresses and queue "
		       "pairs\n",
		    r->same_qps);
	if (r->stalled)
		printf("the run ended before all messages were complete: nothing moved any more\n");
	printf("hash %016llx\n\n", (unsigned long long)r->hash);
	print_sides(s, k);
	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; k[i].host && j < 2; j++)
			replay_differences(k[i].conn, j, &k[i].host[j]);
}

static bool is_good(const struct rp_schedule *s, const struct rp_sim *sim, const struct rp_sim_result *r)
{
	const struct rp_sim_conn *k = rp_sim_conns(sim);
	bool good = r->up && !r->stalled;

	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; k[i].host && j < 2; j++)
			good &= !k[i].host[j].failed && !rp_host_differences(&k[i].host[j]);
	return good;
}

static void progress(rwy_dur at, uint64_t done, uint64_t all)
{
	fprintf(stderr, "\rroceway: %s simulated, %llu of %llu messages", say_time((double)at / 1e9),
	    (unsigned long long)done, (unsigned long long)all);
	fflush(stderr);
}

int replay_sim(const struct cli *cli, const struct rp_schedule *s)
{
	struct rp_sim_result r;
	struct rp_sim_cfg c;
	struct rwy_ip near;
	struct rp_sim *sim;
	int rc;

	if (!read_options(cli, s, &c, &near))
		return EXIT_USAGE;
	c.progress = isatty(2) ? progress : NULL;
	rc = rp_sim_new(&sim, s, &c);
	if (rc) {
		cli_error(rc == RWY_ENOMEM
		              ? "not enough memory"
		              : "the capture's hosts do not fit two sites: at most %d at one, and a "
		                "connection between them",
		    ENG_PREFIXES_MAX);
		return EXIT_ERROR;
	}
	rp_sim_run(sim, &r);
	if (isatty(2))
		fputs("\r\033[K", stderr);
	if (!r.up)
		cli_error("the WAN is so bad that the gateways do not find each other in 30 s");
	else if (cli->json)
		print_as_json(s, sim, &r);
	else
		print_run(s, sim, &r);
	rc = is_good(s, sim, &r) ? EXIT_OK : EXIT_ERROR;
	rp_sim_free(sim);
	return rc;
}
