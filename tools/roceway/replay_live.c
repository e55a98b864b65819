/* SPDX-License-Identifier: Apache-2.0 */
/* roceway replay on a LAN: its options, and what the host's connections experienced. */
#include "tools/replay/live/live.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tools/roceway/replay.h"

#define PAIR_WAIT (120 * RWY_SEC)
#define PATIENCE  (10 * RWY_SEC)
#define STALL     (60 * RWY_SEC)

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

/* --- options --------------------------------------------------------------------------------- */

struct words {
	struct rwy_ip to, with, own, via;
	const char *interface, *pair;
	bool has_own, has_via;
};

static bool address(const struct cli *cli, const char *opt, struct rwy_ip *out, bool *has)
{
	const char *text = cli_value(cli, opt);

	*has = text;
	return !text || replay_ip_read(opt, text, out);
}

static bool is_peer(const struct rp_conn *c, const struct rwy_ip *as, const struct rwy_ip **peer)
{
	for (unsigned j = 0; j < 2; j++)
		if (rwy_ip_eq(&c->side[j].ip, as)) {
			*peer = &c->side[!j].ip;
			return true;
		}
	return false;
}

/* The peer in the capture: --with, or the only one. */
static bool find_with(
    const struct cli *cli, const struct rp_schedule *s, const struct rwy_ip *as, struct rwy_ip *with)
{
	const char *text = cli_value(cli, "with");
	const struct rwy_ip *peer, *found = NULL;

	if (text && !replay_ip_read("with", text, with))
		return false;
	for (uint32_t i = 0; i < s->conns; i++) {
		if (!is_peer(&s->conn[i], as, &peer) || (text && !rwy_ip_eq(peer, with)))
			continue;
		if (found && !rwy_ip_eq(found, peer)) {
			cli_error("%s has connections with several hosts, %s and %s: name one by --with",
			    cli_value(cli, "as"), replay_ip(found), replay_ip(peer));
			return false;
		}
		found = peer;
	}
	if (!found) {
		cli_error("--as: %s has no RC connection%s%s in %s", cli_value(cli, "as"),
		    text ? " with " : "", text ? text : "", cli->word[0]);
		return false;
	}
	*with = *found;
	return true;
}

static bool missing(const char *what)
{
	cli_error("replay: %s is missing; roceway replay -h tells what it is", what);
	return false;
}

static bool read_words(const struct cli *cli, struct words *w)
{
	bool has;

	w->interface = cli_value(cli, "interface");
	w->pair = cli_value(cli, "pair");
	if (!cli_value(cli, "as"))
		return missing("--as IP, or --sim,");
	if (!cli_value(cli, "to"))
		return missing("--to");
	if (!w->interface)
		return missing("--interface");
	if (!w->pair)
		return missing("--pair");
	if (!address(cli, "to", &w->to, &has) || !address(cli, "address", &w->own, &w->has_own) ||
	    !address(cli, "via", &w->via, &w->has_via))
		return false;
	if (!rp_pair_is(w->pair)) {
		cli_error("--pair: '%s' is not HOST:PORT or :PORT", w->pair);
		return false;
	}
	if (rp_is_lab(&w->to) || cli_value(cli, "yes-this-host"))
		return true;
	cli_error("--to: %s is no address of a laboratory (private, link-local, benchmark or documentation): "
	          "add --yes-this-host to send RDMA to it",
	    replay_ip(&w->to));
	return false;
}

/* --- output ---------------------------------------------------------------------------------- */

static void print_run(const struct rp_live *l)
{
	static const char *const columns[] = {"~QPN > QPN", "~MESSAGES", ">DATA", "~GOT", ">P50", ">P99",
	    ">LATE", ">P99", ">TIME", ">RESENT", "~RESULT", NULL};
	struct table *t = table_new(columns);

	printf("%u connections as %s with %s, over %s in %s; %llu packets sent, %llu received\n\n", l->conns,
	    replay_ip(&l->cfg.as), replay_ip(&l->cfg.to), l->lan->name,
	    say_time((double)rwy_since(l->began, l->ended) / 1e9), (unsigned long long)l->lan->stats.sent,
	    (unsigned long long)l->lan->stats.received);
	for (uint32_t i = 0; i < l->conns; i++) {
		const struct rp_live_conn *k = &l->conn[i];
		const struct rp_host *h = &k->host;
		double x = replay_stretch(h);

		table_add(t, "%#x > %#x", h->mine->qpn, h->peer->qpn);
		table_add(t, "%llu of %u", (unsigned long long)h->stats.completed, h->mine->msgs);
		table_add(t, "%s", say_bytes((double)h->stats.bytes));
		table_add(t, "%llu of %u", (unsigned long long)h->stats.received, h->peer->msgs);
		table_add(t, "%s", replay_quantile(&h->stats.completion, 0.5));
		table_add(t, "%s", replay_quantile(&h->stats.completion, 0.99));
		table_add(t, "%s", replay_quantile(&h->stats.late, 0.5));
		table_add(t, "%s", replay_quantile(&h->stats.late, 0.99));
		table_add(t, x > 0 ? "%.3gx" : "-", x);
		table_add(t, "%llu", (unsigned long long)h->reqr.resent);
		table_add(t, "%s", replay_result(h));
	}
	table_print(t);
	if (l->cm_differ)
		printf("\n%llu CM messages came otherwise than captured\n", (unsigned long long)l->cm_differ);
	for (uint32_t i = 0; i < l->conns; i++)
		replay_differences(l->conn[i].conn, l->conn[i].side, &l->conn[i].host);
}

static void print_as_json(const struct rp_live *l)
{
	json_t *sides = json_array(), *o;

	for (uint32_t i = 0; i < l->conns; i++) {
		const struct rp_live_conn *k = &l->conn[i];
		json_t *side = replay_side_json(k->conn, k->side, &k->host);

		json_object_set_new(side, "late", replay_hist_json(&k->host.stats.late));
		json_object_set_new(side, "expected", json_integer((json_int_t)k->host.peer->msgs));
		json_array_append_new(sides, side);
	}
	o = json_pack("{so, ss, ss, sf, sb, sb, sb, sI, sI, sI, sI, sI, sI, sI, so}", "capture",
	    replay_schedule_json(l->cfg.schedule), "as", replay_ip(&l->cfg.as), "to", replay_ip(&l->cfg.to),
	    "seconds", (double)rwy_since(l->began, l->ended) / 1e9, "stalled", l->stalled, "interrupted",
	    l->stopped, "alone", l->alone, "cm", (json_int_t)l->cms, "cm_differ", (json_int_t)l->cm_differ,
	    "packets_sent", (json_int_t)l->lan->stats.sent, "packets_received",
	    (json_int_t)l->lan->stats.received, "not_sent", (json_int_t)l->lan->stats.not_sent, "unknown_qpn",
	    (json_int_t)l->unknown, "icrc_bad", (json_int_t)l->bad, "sides", sides);
	print_json(o);
	json_decref(o);
}

static bool is_good(const struct rp_live *l)
{
	bool good = !l->stalled && !l->stopped && !l->alone && !l->cm_differ;

	for (uint32_t i = 0; i < l->conns; i++)
		good &= rp_host_sent_all(&l->conn[i].host) && !l->conn[i].host.failed &&
		        !rp_host_differences(&l->conn[i].host);
	return good;
}

static void tell(const struct cli *cli, const struct rp_live *l)
{
	if (cli->json)
		print_as_json(l);
	else
		print_run(l);
	if (l->stalled)
		cli_error("nothing moved for %s: not complete", say_time((double)l->cfg.stall / 1e9));
	if (l->alone)
		cli_error("the other side ended before all was done");
	if (l->stopped)
		cli_error("interrupted: not complete");
}

/* --- the run --------------------------------------------------------------------------------- */

static void progress(uint64_t done, uint64_t all)
{
	fprintf(
	    stderr, "\rroceway: %llu of %llu messages", (unsigned long long)done, (unsigned long long)all);
	fflush(stderr);
}

static int play(
    const struct cli *cli, const struct rp_live_cfg *cfg, struct rp_lan *lan, struct rp_pair *pair)
{
	struct rp_error err;
	struct rp_live *l;
	int rc = EXIT_ERROR;

	if (rp_live_new(&l, cfg, lan, pair, &err) != 0) {
		cli_error("%s", err.text);
		return EXIT_ERROR;
	}
	if (rp_live_run(l, &err) != 0) {
		cli_error("%s", err.text);
	} else {
		if (cfg->progress)
			fputs("\r\033[K", stderr);
		tell(cli, l);
		rc = is_good(l) ? EXIT_OK : EXIT_ERROR;
	}
	rp_live_free(l);
	return rc;
}

int replay_live(const struct cli *cli, const struct rp_schedule *s)
{
	struct rp_live_cfg cfg = {.schedule = s,
	    .patience = PATIENCE,
	    .stall = STALL,
	    .stop = &stop,
	    .progress = isatty(2) ? progress : NULL};
	struct words w = {0};
	struct rp_error err;
	struct rp_pair pair;
	struct rp_lan lan;
	int rc = EXIT_ERROR;

	if (!read_words(cli, &w) || !replay_speed(cli, &cfg.speed) ||
	    !replay_ip_read("as", cli_value(cli, "as"), &cfg.as) || !find_with(cli, s, &cfg.as, &cfg.with))
		return EXIT_USAGE;
	cfg.to = w.to;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (rp_lan_open(
	        &lan, w.interface, w.has_own ? &w.own : NULL, &w.to, w.has_via ? &w.via : NULL, &err) != 0) {
		cli_error("%s", err.text);
		return EXIT_ERROR;
	}
	if (rp_pair_open(&pair, w.pair, PAIR_WAIT, &err) != 0)
		cli_error("%s", err.text);
	else
		rc = play(cli, &cfg, &lan, &pair);
	rp_pair_close(&pair);
	rp_lan_close(&lan);
	return rc;
}
