/* SPDX-License-Identifier: Apache-2.0 */
/* roceway replay: what a host experienced, as text and as JSON. */
#include "tools/roceway/replay.h"

static const char *why(const struct rp_host *h)
{
	static char text[48];

	switch (h->end) {
	case ROCE_REQR_REFUSED:
		snprintf(text, sizeof(text), "refused (syndrome %#x)", h->fail_syndrome);
		return text;
	case ROCE_REQR_SILENT:
		return "no answer";
	case ROCE_REQR_NOT_READY:
		return "receiver not ready";
	}
	return "";
}

const char *replay_result(const struct rp_host *h)
{
	if (h->failed)
		return why(h);
	if (!rp_host_sent_all(h))
		return "not complete";
	return rp_host_differences(h) ? "differs" : "as captured";
}

const char *replay_quantile(const struct an_hist *h, double q)
{
	return h->n ? say_time((double)an_hist_quantile(h, q) / 1e9) : "-";
}

/* Prints the differences that this host saw in what it received. */
void replay_differences(const struct rp_conn *c, unsigned side, const struct rp_host *h)
{
	char name[REPLAY_NAME_MAX];

	if (!rp_host_differences(h))
		return;
	replay_name(c, side, name);
	printf("\n%s: the first difference at %s: %s\n", name, replay_ip(&h->mine->ip), h->differs);
#define X(f, text)                                                                                           \
	if (h->stats.differs.f)                                                                              \
		printf("  %llu %s\n", (unsigned long long)h->stats.differs.f, text);
	RP_DIFFERENCES(X)
#undef X
}

json_t *replay_hist_json(const struct an_hist *h)
{
	if (!h->n)
		return json_null();
	return json_pack("{sI, sf, sf, sf}", "count", (json_int_t)h->n, "p50",
	    (double)an_hist_quantile(h, 0.5) / 1e9, "p99", (double)an_hist_quantile(h, 0.99) / 1e9, "max",
	    (double)h->max / 1e9);
}

double replay_stretch(const struct rp_host *h)
{
	const struct rp_side *d = h->mine;
	rwy_dur was = d->msgs ? d->msg[d->msgs - 1].at - d->msg[0].at : 0;

	if (!was || !h->stats.posted || h->cfg.speed <= 0)
		return 0;
	return (double)rwy_since(h->stats.first, h->stats.sent) / ((double)was / h->cfg.speed);
}

json_t *replay_side_json(const struct rp_conn *c, unsigned side, const struct rp_host *h)
{
	const struct rp_side *d = &c->side[side];
	char name[REPLAY_NAME_MAX];
	json_t *o, *differs = json_object();

	replay_name(c, side, name);
#define X(f, text) json_object_set_new(differs, #f, json_integer((json_int_t)h->stats.differs.f));
	RP_DIFFERENCES(X)
#undef X
	o = json_pack("{ss, ss, sI, sI, sI, sI, sI, sI, sI, sI, sI, sI, sf, so, so, so, ss}", "requests",
	    name, "result", replay_result(h), "messages", (json_int_t)d->msgs, "completed",
	    (json_int_t)h->stats.completed, "bytes", (json_int_t)h->stats.bytes, "received",
	    (json_int_t)h->stats.received, "resent", (json_int_t)h->reqr.resent, "resent_captured",
	    (json_int_t)d->flow->c.resent_packets, "timeouts", (json_int_t)h->reqr.timeouts, "sequence_naks",
	    (json_int_t)h->reqr.seq_naks, "rnr_naks", (json_int_t)h->reqr.rnr_naks, "duplicates",
	    (json_int_t)h->stats.duplicates, "time", replay_stretch(h), "completion",
	    replay_hist_json(&h->stats.completion), "completion_captured",
	    replay_hist_json(&d->flow->completion), "differs", differs, "first_difference", h->differs);
	return o;
}
