/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/control/tunnel_watch.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tunnel_watch_init(struct tunnel_watch *w, rwy_time now)
{
	*w = (struct tunnel_watch){
	    .start = now, .since = now, .before = now, .lines = WATCH_BURST, .refill_at = now + WATCH_REFILL};
}

static void refill(struct tunnel_watch *w, rwy_time now)
{
	for (; now >= w->refill_at; w->refill_at += WATCH_REFILL)
		if (w->lines < WATCH_BURST)
			w->lines++;
		else
			w->refill_at = now;
}

static void state_change(struct tunnel_watch *w, rwy_time at)
{
	w->before = w->since;
	w->since = at;
	w->changes++;
}

enum watch_line tunnel_watch_step(struct tunnel_watch *w, bool up, rwy_time changed_at, rwy_time now)
{
	refill(w, now);
	if (up != w->up)
		state_change(w, changed_at > w->since ? changed_at : now);
	/* it changed and changed back since the last step */
	else if (w->was_up && changed_at > w->since) {
		state_change(w, changed_at);
		state_change(w, changed_at);
	}
	w->up = up;
	w->was_up = w->was_up || up;
	if (!w->lines)
		return WATCH_NOTHING;
	if (!w->was_up) {
		if (w->absent_logged || rwy_since(w->start, now) < WATCH_PATIENCE)
			return WATCH_NOTHING;
		w->absent_logged = true;
		w->lines--;
		return WATCH_ABSENT;
	}
	if (w->changes == w->logged)
		return WATCH_NOTHING;
	w->lines--;
	return up ? WATCH_UP : WATCH_DOWN;
}

/* --- sentences ------------------------------------------------------------------------------- */

/* Returns the most certain cause of a tunnel that does not come up. */
static const char *cause(const struct watch_facts *f)
{
	if (!f->link)
		return "its port has no link";
	if (!f->resolved)
		return "the MAC address of the next hop is not known: no route to `remote`, or no answer to "
		       "ARP";
	if (f->workers_up)
		return "a part of the workers has no answer: `workers` differs at the peer, or some UDP "
		       "ports do "
		       "not get through";
	if (f->other_version)
		return "the peer speaks another version of the protocol";
	if (f->other_tunnel)
		return "HELLOs come for a tunnel that is not this one: `local`, `remote`, `port` or "
		       "`workers` "
		       "differ at the peer";
	if (f->received)
		return "HELLOs come, ours have no answer: the path carries one direction only";
	if (f->strangers)
		return "no HELLO from `remote`, but datagrams from other addresses: the peer's `local`, or "
		       "NAT on "
		       "the path";
	return "no HELLO was answered: the peer does not run, has other addresses or another `port` for this "
	       "tunnel, or the path does not let UDP through";
}

static const char *went(const struct watch_facts *f)
{
	if (!f->link || !f->resolved || f->workers_up)
		return cause(f);
	return "the peer is silent: it has stopped, or the path is broken";
}

static void text_append(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void text_append(char *out, size_t size, const char *fmt, ...)
{
	const size_t n = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + n, size - n, fmt, ap);
	va_end(ap);
}

static void add_ip(char *out, size_t size, const char *key, const struct rwy_ip *a)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(rwy_ip_is4(a) ? AF_INET : AF_INET6, rwy_ip_is4(a) ? a->b + 12 : a->b, text, sizeof(text));
	text_append(out, size, " %s=%s", key, text);
}

static void add_time(char *out, size_t size, const char *key, rwy_dur t)
{
	text_append(
	    out, size, " %s=%" PRIu64 ".%" PRIu64 "s", key, t / RWY_SEC, t % RWY_SEC / (RWY_SEC / 10));
}

void tunnel_watch_text(char *out, size_t size, enum watch_line line, const struct watch_facts *f)
{
	const struct conf_tunnel *c = f->conf;

	snprintf(out, size, "tunnel=%s state=%s", c->name, line == WATCH_UP ? "up" : "down");
	add_ip(out, size, "remote", &c->remote);
	add_ip(out, size, "local", &c->local);
	text_append(out, size, " port=%s udp_port=%u workers_up=%u/%u", c->port, c->udp_port, f->workers_up,
	    f->workers);
	text_append(out, size, " sent=%" PRIu64 " received=%" PRIu64, f->sent, f->received);
	if (line == WATCH_UP) {
		add_time(out, size, "down_for", f->lasted);
		if (f->rtt) /* 0: nothing was measured yet */
			text_append(out, size, " rtt_ms=%.2f", (double)f->rtt / RWY_MS);
	} else if (line == WATCH_DOWN) {
		add_time(out, size, "up_for", f->lasted);
	}
	if (f->flaps)
		text_append(out, size, " changes_untold=%u", f->flaps);
	if (line == WATCH_ABSENT)
		text_append(out, size, " event=\"does not come up: %s\"", cause(f));
	else if (line == WATCH_DOWN)
		text_append(out, size, " event=\"%s\"", went(f));
}
