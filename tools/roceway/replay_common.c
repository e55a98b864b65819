/* SPDX-License-Identifier: Apache-2.0 */
/* roceway replay: names, options and notes of both its ways. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tools/roceway/replay.h"
#include "tools/wanem/set.h"

#define AWAY_MAX (20 * RWY_SEC)

const char *replay_ip(const struct rwy_ip *ip)
{
	static char text[2][INET6_ADDRSTRLEN];
	static unsigned turn;
	char *out = text[turn ^= 1];

	if (rwy_ip_is4(ip))
		inet_ntop(AF_INET, ip->b + 12, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, ip->b, out, INET6_ADDRSTRLEN);
	return out;
}

void replay_name(const struct rp_conn *c, unsigned side, char out[REPLAY_NAME_MAX])
{
	const struct rp_side *a = &c->side[side], *b = &c->side[!side];

	snprintf(
	    out, REPLAY_NAME_MAX, "%s %#x > %s %#x", replay_ip(&a->ip), a->qpn, replay_ip(&b->ip), b->qpn);
}

bool replay_ip_read(const char *opt, const char *text, struct rwy_ip *out)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		*out = rwy_ip_from4(v4);
		return true;
	}
	if (inet_pton(AF_INET6, text, out->b) == 1)
		return true;
	cli_error("--%s: '%s' is no IP address", opt, text);
	return false;
}

bool replay_speed(const struct cli *cli, double *out)
{
	const char *text = cli_value(cli, "speed");
	char *end;

	*out = 1;
	if (!text)
		return true;
	*out = strtod(text, &end);
	if (end != text && !*end && *out >= 0 && *out <= 1e6)
		return true;
	cli_error("--speed: '%s' is no number from 0 to 1000000", text);
	return false;
}

/* IP=TIME of --away, into the schedule. */
static bool away_one(struct rp_schedule *s, const char *word)
{
	const char *equals = strchr(word, '=');
	struct wanem_err err;
	struct rwy_ip ip;
	char host[64];
	uint64_t t;

	snprintf(host, sizeof(host), "%.*s", equals ? (int)(equals - word) : 0, word);
	if (!equals || wanem_set_time(equals + 1, AWAY_MAX, &t, &err) != 0) {
		cli_error("--away: '%s' is not IP=TIME, such as 10.2.0.2=20ms", word);
		return false;
	}
	if (!replay_ip_read("away", host, &ip))
		return false;
	if (rp_schedule_away(s, &ip, t))
		return true;
	cli_error("--away: %s has no RC connection in the capture", host);
	return false;
}

bool replay_away(const struct cli *cli, struct rp_schedule *s)
{
	const char *list = cli_value(cli, "away");
	char *copy = list ? strdup(list) : NULL, *save = NULL;
	bool good = true;

	for (char *w = copy ? strtok_r(copy, ",", &save) : NULL; w && good; w = strtok_r(NULL, ",", &save))
		good = away_one(s, w);
	free(copy);
	return good;
}

static void losses_add(struct rp_losses *sum, const struct rp_losses *l)
{
#define X(f, s) sum->f += l->f;
	RP_LOSSES(X)
#undef X
}

static struct rp_losses losses_of(const struct rp_schedule *s)
{
	struct rp_losses sum = {0};

	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; j < 2; j++)
			losses_add(&sum, &s->conn[i].side[j].lost);
	return sum;
}

void replay_notes(const struct rp_schedule *s)
{
	const struct an_totals *t = an_totals(s->an);
	const struct rp_losses sum = losses_of(s);

#define X(f, text)                                                                                           \
	if (sum.f)                                                                                           \
		fprintf(stderr, "note: %llu %s\n", (unsigned long long)sum.f, text);
	RP_LOSSES(X)
#undef X
	if (s->cut)
		fprintf(stderr, "note: %llu packets are cut by the snap length: zeros instead\n",
		    (unsigned long long)s->cut);
	if (s->headless)
		fprintf(stderr, "note: %llu packets are left out: the snap length cut their headers\n",
		    (unsigned long long)s->headless);
	if (s->unpaired)
		fprintf(stderr, "note: %llu flows are left out: the capture lacks their other direction\n",
		    (unsigned long long)s->unpaired);
	if (t->backwards)
		fprintf(stderr, "note: %llu packets have an earlier time than the one before\n",
		    (unsigned long long)t->backwards);
}

json_t *replay_schedule_json(const struct rp_schedule *s)
{
	const struct rp_losses sum = losses_of(s);
	json_t *o = json_pack("{sI, sI, sf, sI, sI, sI}", "connections", (json_int_t)s->conns, "messages",
	    (json_int_t)rp_schedule_messages(s), "seconds", (double)rwy_since(s->first, s->last) / 1e9, "cut",
	    (json_int_t)s->cut, "headless", (json_int_t)s->headless, "unpaired", (json_int_t)s->unpaired);

#define X(f, text) json_object_set_new(o, #f, json_integer((json_int_t)sum.f));
	RP_LOSSES(X)
#undef X
	return o;
}
