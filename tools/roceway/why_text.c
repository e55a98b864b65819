/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of `roceway why` about a connection that is there: what bounds its rate. */
#include "tools/roceway/why.h"

#include <stdlib.h>
#include <string.h>

/* Growth of a counter between the two looks. */
static double grown(const struct why *w, const char *key)
{
	return jn(w->flow, key) - jn(w->first, key);
}

/* Bytes a second of a counter; 0: it was not watched. */
static double rate(const struct why *w, const char *key)
{
	const double d = grown(w, key);

	return w->seconds > 0 && d > 0 ? d / w->seconds : 0;
}

/* "once", "7 times". Valid until the next call. */
static const char *times(unsigned n)
{
	static char text[24];

	snprintf(text, sizeof(text), "%u times", n);
	return n == 1 ? "once" : text;
}

static const char *qpn_text(long long qpn, char out[24])
{
	snprintf(out, 24, qpn ? "QPN %lld" : "QPN not known", qpn);
	return out;
}

/* --- state ------------------------------------------------------------------------------------ */

static void say_state(const struct why *w, json_t *list)
{
	const char *state = js(w->flow, "state");
	char l[24], r[24];

	why_add(list, "%s (%s) and %s (%s)%s%s: %s, last packet %s ago.", w->local,
	    qpn_text(ji(w->flow, "local_qpn"), l), w->remote, qpn_text(ji(w->flow, "remote_qpn"), r),
	    *js(w->flow, "tunnel") ? " through tunnel " : "", js(w->flow, "tunnel"), state,
	    say_time(jn(w->flow, "idle_seconds")));
	if (!strcmp(state, "learning"))
		why_add(list,
		    "It is not paired yet: until the far host has answered its first packet, requests are "
		    "carried and nothing is acknowledged early. `turn_end` below: that host did not answer.");
	if (!strcmp(state, "closing"))
		why_add(list, "The hosts have disconnected; it is forgotten as soon as nothing is owed.");
	if (jb(w->flow, "impatient"))
		why_add(list,
		    "%s gives up after %s without an ACK, which is less than the round trip, and ack mode "
		    "`%s` needs one: it will fail. Raise its timeout or retries, or use ack mode `near`.",
		    w->local, say_time(jn(w->flow, "patience_seconds")), js(w->flow, "ack_mode"));
}

/* --- the local host's requests ---------------------------------------------------------------- */

static double round_trip(const struct why *w)
{
	return w->tunnel ? jn(w->tunnel, "rtt_seconds") : 0;
}

static void say_window(const struct why *w, const char *part, json_t *list)
{
	const double bps = rate(w, "tx_bytes"), rtt = round_trip(w);

	why_add(list,
	    "%s all that %s gave was on its way: it waits for its own window (its queue depth), or its "
	    "program "
	    "gives no more. Nothing of the gateways bounds it.",
	    part, w->local);
	if (bps > 0 && rtt > 0 && strcmp(js(w->flow, "ack_mode"), "near") != 0 &&
	    strcmp(js(w->flow, "ack_mode"), "causal") != 0)
		why_add(list,
		    "In ack mode `%s` completions take a round trip, %s: it has about %s under way, and more "
		    "outstanding requests would be faster.",
		    js(w->flow, "ack_mode"), say_time(rtt), say_bytes(bps * rtt));
}

static void say_host(const struct why *w, const char *part, json_t *list)
{
	why_add(list, "%s the far host %s took no more: ask the gateway beside it, `roceway why %s %s`.",
	    part, w->remote, w->remote, w->local);
	if (jn(w->flow, "remote_drain_Bps") > 0)
		why_add(list, "That gateway measured that %s takes %s; %s may be on the way for it.",
		    w->remote, say_bits(jn(w->flow, "remote_drain_Bps")),
		    say_bytes(jn(w->flow, "remote_window")));
}

static void say_limit(const struct why *w, enum why_limit limit, const char *part, json_t *list)
{
	switch (limit) {
	case WHY_IDLE:
		why_add(list, "%s no request of %s was under way.", part, w->local);
		return;
	case WHY_WINDOW:
		say_window(w, part, list);
		return;
	case WHY_SHARE:
		why_add(list,
		    "%s its requests waited for the limit of %s (`roceway tenant`, `roceway reservations`), "
		    "not "
		    "for the path.",
		    part, w->reservation ? "its reservation or its tenant" : "its tenant");
		return;
	case WHY_PATH:
		why_add(list,
		    "%s its requests waited for the tunnel: its rate, its congestion control, or other "
		    "flows.",
		    part);
		return;
	case WHY_HOST:
		say_host(w, part, list);
		return;
	case WHY_FAR:
		why_add(list,
		    "%s the credit of the far gateway was used up: its memory is short, or %s is slow "
		    "(`roceway memory` there).",
		    part, w->remote);
		return;
	case WHY_MEMORY:
		why_add(list,
		    "%s its ACKs waited because custody memory is short: it holds %s (`roceway memory`).",
		    part, say_bytes(jn(w->flow, "custody_bytes")));
		return;
	case WHY_READ:
		why_add(list,
		    "%s its ACKs waited so that a READ behind its WRITEs is answered before it gives up.",
		    part);
		return;
	case WHY_NEAR_SOURCE:
		why_add(list,
		    "%s this gateway's CNPs slowed it down: its requests came faster than the path takes "
		    "them, or a switch had marked them.",
		    part);
		return;
	case WHY_DRAIN:
		why_add(list, "%s the gateway was being drained: requests wait for the far host.", part);
		return;
	case WHY_LIMIT_COUNT:
		break;
	}
}

/* The limits, the most frequent first; those of less than a tenth of the looks are left out. */
static void say_limits(const struct why *w, json_t *list)
{
	unsigned left[WHY_LIMIT_COUNT];
	char part[64];

	memcpy(left, w->limit, sizeof(left));
	for (;;) {
		unsigned best = 0;

		for (unsigned i = 1; i < WHY_LIMIT_COUNT; i++)
			if (left[i] > left[best])
				best = i;
		if (!left[best] || left[best] * 10 < w->looks)
			return;
		if (w->looks == 1)
			snprintf(part, sizeof(part), "At this moment");
		else
			snprintf(part, sizeof(part), "In %u of %u looks", left[best], w->looks);
		say_limit(w, (enum why_limit)best, part, list);
		left[best] = 0;
	}
}

static void say_requests(const struct why *w, json_t *list)
{
	if (w->seconds > 0)
		why_add(list, "%s sends %s to %s, watched for %s.", w->local, say_bits(rate(w, "tx_bytes")),
		    w->remote, say_time(w->seconds));
	say_limits(w, list);
	if (w->reservation && jb(w->reservation, "limited"))
		why_add(list, "The rate of its plan bounds it: %s of job %s.",
		    say_bits(jn(w->reservation, "rate_bps") / 8), js(w->reservation, "job"));
	if (ji(w->flow, "withheld_times"))
		why_add(list, "Since it began its ACKs waited %s, for %s in all%s%s.",
		    times((unsigned)ji(w->flow, "withheld_times")), say_time(jn(w->flow, "withheld_seconds")),
		    grown(w, "withheld_seconds") > 0 ? ", of which just now " : "",
		    grown(w, "withheld_seconds") > 0 ? say_time(grown(w, "withheld_seconds")) : "");
	if (ji(w->flow, "naks_sent"))
		why_add(list,
		    "%s got %lld NAKs of this gateway: packets between them are lost or reordered, or it "
		    "sent "
		    "what is not allowed (`nak_sent` below).",
		    w->local, ji(w->flow, "naks_sent"));
}

/* --- the remote host's requests, which the local host answers --------------------------------- */

static void say_answers(const struct why *w, json_t *list)
{
	const struct {
		const char *key, *text;
	} counts[] = {
	    {"host_timeouts", "times it did not answer in time"},
	    {"rnr_naks", "RNR NAKs of it: it posts receives too slowly"},
	    {"seq_naks", "sequence NAKs of it: packets to it are lost on the LAN"},
	    {"host_resent", "packets sent to it again"},
	};

	if (w->seconds > 0 && grown(w, "rx_bytes") > 0)
		why_add(list, "%s takes %s of %s's requests%s%s.", w->local, say_bits(rate(w, "rx_bytes")),
		    w->remote, jn(w->flow, "requester_rtt_seconds") > 0 ? ", and answers in " : "",
		    jn(w->flow, "requester_rtt_seconds") > 0 ? say_time(jn(w->flow, "requester_rtt_seconds"))
		                                             : "");
	if (ji(w->flow, "requester_queue"))
		why_add(list, "%lld requests of %s wait for it.", ji(w->flow, "requester_queue"), w->remote);
	if (jn(w->flow, "requester_rate_Bps") > 0)
		why_add(list, "Its own CNPs bound what it gets to %s.",
		    say_bits(jn(w->flow, "requester_rate_Bps")));
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (ji(w->flow, counts[i].key))
			why_add(list, "Towards %s: %lld %s%s%s%s.", w->local, ji(w->flow, counts[i].key),
			    counts[i].text, grown(w, counts[i].key) > 0 ? " (" : "",
			    grown(w, counts[i].key) > 0 ? say_count(grown(w, counts[i].key)) : "",
			    grown(w, counts[i].key) > 0 ? " just now)" : "");
}

/* --- the path --------------------------------------------------------------------------------- */

static unsigned count_to(const json_t *entries, const char *kind, const char *to)
{
	const json_t *o;
	unsigned n = 0;
	size_t i;

	json_array_foreach((json_t *)entries, i, o) n +=
	    !strcmp(js(o, "kind"), kind) && !strcmp(js(o, "to"), to);
	return n;
}

static void say_path(const struct why *w, json_t *list)
{
	const json_t *bad = w->tunnel ? json_object_get(w->tunnel, "congestion") : NULL;
	unsigned down = count_to(w->tunnels, "tunnel", "down"),
	         restarts = count_to(w->tunnels, "tunnel", "the gateway at its other end restarted");

	if (!w->tunnel)
		return;
	if (strcmp(js(w->tunnel, "state"), "up") != 0)
		why_add(list, "Tunnel %s is %s since %s.", js(w->tunnel, "name"), js(w->tunnel, "state"),
		    js(w->tunnel, "since"));
	else
		why_add(list, "Tunnel %s: round trip %s, loss %s, rate %s.", js(w->tunnel, "name"),
		    say_time(round_trip(w)), say_share(jn(w->tunnel, "loss_ratio")),
		    say_bits(jn(w->tunnel, "rate_bytes_per_second")));
	if (bad && *js(bad, "by") && strcmp(js(bad, "by"), "none") != 0)
		why_add(list, "Its path is congested persistently, by %s, since %s.", js(bad, "by"),
		    js(bad, "since"));
	if (down)
		why_add(list, "The recorder saw the tunnel go down %s.", times(down));
	if (restarts)
		why_add(list, "The recorder saw the gateway at its other end restart %s.", times(restarts));
}

json_t *why_say(const struct why *w)
{
	json_t *list = json_array();
	const bool failed = w->flow && !strcmp(js(w->flow, "state"), "failed");

	if (w->flow)
		say_state(w, list);
	else
		why_add(list, "The gateway has no such connection now.");
	why_say_failed(w, list);
	if (w->flow && !failed) {
		say_requests(w, list);
		say_answers(w, list);
	}
	say_path(w, list);
	return list;
}
