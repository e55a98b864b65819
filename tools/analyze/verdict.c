/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From counts to sentences. Errors come first, in the order in which they explain one another; then
 * the phases that took the most time. A phase below a tenth of the time is not worth a sentence.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/say.h"
#include "tools/analyze/requester.h"

#define WORTH_SAYING 0.1
#define STALLED      2 /* repeats without an answer at the end */
#define FULL_10G     1.25e9

static double seconds(rwy_dur d)
{
	return (double)d / 1e9;
}

static void __attribute__((format(printf, 3, 4)))
find(struct an_flow *f, const char *word, const char *fmt, ...)
{
	struct an_finding *n = &f->finding[f->findings];
	va_list ap;

	if (f->findings == AN_FINDINGS_MAX)
		return;
	f->findings++;
	n->word = word;
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
}

static const char *nak_text(uint8_t syndrome)
{
	switch (roce_aeth_value(syndrome)) {
	case ROCE_NAK_INV_REQ:
		return "invalid request: the operation is not allowed, or longer than the buffer that was "
		       "posted";
	case ROCE_NAK_REM_ACCESS:
		return "remote access error: the rkey, the address or the rights of the memory region";
	case ROCE_NAK_REM_OP:
		return "remote operational error: the responder itself failed";
	default:
		return "a NAK that ends the queue pair";
	}
}

static void errors(struct an_flow *f)
{
	const struct an_requester *q = f->rq;
	const struct an_sent *oldest = &q->sent[q->una & q->sent_mask];
	rwy_dur timer = an_hist_quantile(&f->timer, 0.5);

	if (f->fatal)
		find(f, "nak", "The responder ended it: %s.", nak_text(f->fatal));
	if (f->c.icrc_bad)
		find(f, "icrc",
		    "%llu packets have a wrong ICRC: a NIC drops them without a word. Something on the way "
		    "changes "
		    "packets without making the ICRC anew.",
		    (unsigned long long)f->c.icrc_bad);
	if (f->stalled && q->acked_len && oldest->len > q->acked_len)
		find(f, "mtu",
		    "Packets of %u bytes of payload are never answered, those of up to %u are: the path MTU "
		    "is "
		    "larger than a link on the way can carry.",
		    oldest->len, q->acked_len);
	if (f->stalled)
		find(f, "dead",
		    "Nobody answers any more: %u repeats, about %s apart, then silence. The program sees "
		    "\"transport "
		    "retry counter exceeded\".",
		    f->stalled_resends, say_time(seconds(timer)));
	if (q->timer_needless * 10 > f->c.resends)
		find(f, "timer",
		    "The requester's timer is too short: it fires after %s, an answer takes %s to %s. %llu "
		    "of %llu "
		    "repeats were for packets that had arrived.",
		    say_time(seconds(timer)), say_time(seconds(f->rtt.min)),
		    say_time(seconds(an_hist_quantile(&f->rtt, 0.99))), (unsigned long long)q->timer_needless,
		    (unsigned long long)f->c.resends);
}

static void say_window(struct an_flow *f, double share)
{
	double rtt = seconds(an_hist_quantile(&f->waited, 0.5));

	find(f, "window",
	    "%.0f %% of the time everything posted is under way: at most %s in %u message%s, for a round "
	    "trip "
	    "of %s. "
	    "That is %s at most; 10 Gbps needs %s outstanding.",
	    share * 100, say_bytes((double)f->most_bytes), f->most_messages, f->most_messages == 1 ? "" : "s",
	    say_time(rtt), say_bits((double)f->most_bytes / (rtt > 0 ? rtt : 1)), say_bytes(FULL_10G * rtt));
}

static void say_reads(struct an_flow *f, double share)
{
	char cm[64] = "";

	if (f->cm.known)
		snprintf(cm, sizeof(cm), " (CM agreed on %u)", f->cm.read_depth);
	find(f, "read depth",
	    "%.0f %% of the time a READ or ATOMIC waits for an earlier one: at most %u are outstanding%s, "
	    "and one "
	    "takes %s.",
	    share * 100, f->most_reads, cm, say_time(seconds(an_hist_quantile(&f->completion, 0.5))));
}

static void say_repair(struct an_flow *f, enum an_phase p, double share)
{
	unsigned long long n = p == AN_TIMEOUT ? f->c.resends_timeout : f->c.resends_nak;
	double each = f->c.resends ? (double)f->c.resent_packets / (double)f->c.resends : 0;

	find(f, an_phase_name(p),
	    "%.0f %% of the time goes into the repair of losses: %llu times the requester went back %s, and "
	    "sent %.1f "
	    "packets again each time (go-back-N); %s of what it sent are repeats.",
	    share * 100, n, p == AN_TIMEOUT ? "after its timer" : "after a NAK", each,
	    say_share((double)f->c.resent_packets / (double)(f->c.packets + f->c.resent_packets)));
	if (p == AN_LOSS && f->c.reordered && f->c.reordered * 2 >= f->c.resends_nak)
		find(f, "reordering",
		    "%llu packets were not lost but came late, behind others. The responder asks for those "
		    "again, too: the path should keep the order of a queue pair's packets.",
		    (unsigned long long)f->c.reordered);
	if (p == AN_TIMEOUT)
		find(f, "timer value", "The timer is about %s.",
		    say_time(seconds(an_hist_quantile(&f->timer, 0.5))));
}

static void say_phase(struct an_flow *f, enum an_phase p, double share)
{
	switch (p) {
	case AN_WINDOW:
		say_window(f, share);
		break;
	case AN_READS:
		say_reads(f, share);
		break;
	case AN_LOSS:
	case AN_TIMEOUT:
		say_repair(f, p, share);
		break;
	case AN_RNR:
		find(f, "rnr",
		    "%.0f %% of the time the responder has no receive posted: %llu RNR NAKs. Its program "
		    "posts "
		    "receives too late or too few.",
		    share * 100, (unsigned long long)f->c.naks_rnr);
		break;
	case AN_CNP:
		find(f, "cnp",
		    "%.0f %% of the time the requester holds back after CNPs (%llu, and %llu packets marked "
		    "CE): "
		    "a switch or gateway on the way is congested.",
		    share * 100, (unsigned long long)f->c.cnps, (unsigned long long)f->c.ce_marked);
		break;
	case AN_QUEUE:
		find(f, "queue",
		    "%.0f %% of the time ACKs wait in a queue: they take %s where %s is possible. The path "
		    "or the "
		    "responder is slower than the requester.",
		    share * 100, say_time(seconds(an_hist_quantile(&f->rtt, 0.5))),
		    say_time(seconds(f->rtt.min)));
		break;
	default:
		find(f, an_phase_name(p), "%.0f %% of the time: %s.", share * 100, an_phase_text(p));
	}
}

void an_verdict(struct an_flow *f, rwy_time end)
{
	double all = 0;
	bool said[AN_PHASE_COUNT] = {0};

	if (!f->c.packets && !f->c.resent_packets)
		return;
	an_requester_end(f);
	f->stalled = f->stalled_resends >= STALLED && f->rq->back && f->rq->una < f->rq->nxt &&
	             rwy_since(f->rq->last_progress, end) > 0;
	for (unsigned p = 0; p < AN_PHASE_COUNT; p++)
		all += (double)f->phase[p];
	errors(f);
	for (unsigned n = 0; n < AN_PHASE_COUNT && all > 0; n++) {
		unsigned best = AN_PHASE_COUNT;

		for (unsigned p = 0; p < AN_PHASE_COUNT; p++)
			if (!said[p] && (best == AN_PHASE_COUNT || f->phase[p] > f->phase[best]))
				best = p;
		said[best] = true;
		if ((double)f->phase[best] < WORTH_SAYING * all)
			break;
		say_phase(f, (enum an_phase)best, (double)f->phase[best] / all);
	}
	if (f->c.not_captured)
		find(f, "capture",
		    "The capture is incomplete: %llu packets were acknowledged and are not in it.",
		    (unsigned long long)f->c.not_captured);
	if (f->c.unasked)
		find(f, "capture",
		    "%llu responses are to packets that are not in the capture, and were ignored. Or a queue "
		    "pair number was used again, which the analysis notices after some responses.",
		    (unsigned long long)f->c.unasked);
}
