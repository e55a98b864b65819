/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwyperf: perftest in virtual time. Two Soft-RoCE hosts (tests/lib/rc_host.h) behind links of
 * their own, and queue pairs that have a number of messages to do, posted at once; between the
 * hosts two gateways (tests/sim/world.h), or nothing. What the hosts' links carry is beside the
 * result. The time of processors is not modelled. docs/simulator.md, "Perftest".
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/dc/words.h"
#include "tests/sim/perf/perf.h"

#define BAD_INPUT 2
#define K(key, unit, lo, hi)                                                                                 \
	{                                                                                                    \
#key, unit, offsetof(struct perf_scen, key), lo, hi, NULL                                    \
	}
#define CHOICE(key, of)                                                                                      \
	{                                                                                                    \
#key, W_CHOICE, offsetof(struct perf_scen, key), 0, 0, of                                    \
	}

static const struct word keys[] = {
    K(seed, W_WHOLE, 0, 9e15),
    CHOICE(op, "read write send"),
    CHOICE(mode, "native roceway"),
    K(qps, W_WHOLE, 1, PERF_QPS_MAX),
    K(size, W_BYTES, 1, 1 << 24),
    K(messages, W_WHOLE, 1, 1e6),
    K(rtt, W_TIME, 2e3, 10e9),
    K(loss, W_SHARE, 0, .5),
    K(jitter, W_TIME, 0, 1e9),
    K(wan, W_BITS, 1e6, 1e12),
    K(rate, W_BITS, 1e6, 1e12),
    K(queue, W_WHOLE, 1, 1e7),
    K(window, W_WHOLE, 1, 1 << 22),
    K(rd_max, W_WHOLE, 1, RC_HOST_RES),
    K(timeout, W_TIME, 1e6, 1e12),
    K(time, W_TIME, 0, 900e9),
    K(skip, W_TIME, 0, 900e9),
    K(stalls, W_WHOLE, 0, 1e5),
    K(stall, W_TIME, 1, 10e9),
    K(pauses, W_WHOLE, 0, 1e5),
    K(pause, W_TIME, 1, 10e9),
    K(change, W_TIME, 0, 900e9),
    K(rtt2, W_TIME, 2e3, 10e9),
    K(loss2, W_SHARE, 0, .5),
    K(cc, W_NAME, 0, sizeof(((struct perf_scen *)0)->cc)),
};
static const struct words words = {keys, sizeof(keys) / sizeof(keys[0])};

static const struct perf_scen defaults = {.seed = 1,
    .op = PERF_READ,
    .mode = PERF_ROCEWAY,
    .qps = 1,
    .size = 1 << 16,
    .messages = 256,
    .rtt = 20e6,
    .wan = 10e9,
    .rate = 32e6,
    .queue = 60000,
    .window = 128,
    .rd_max = 16,
    .timeout = 268e6,
    .stall = 4e6,
    .pause = 400e6,
    .rtt2 = 20e6,
    .cc = "auto"};

static void show_gateways(const struct perf *p)
{
	const struct eng_counters *a = eng_counters(sim_engine(p->w, 0)),
	                          *b = eng_counters(sim_engine(p->w, 1));
	struct wan_stats near, far;

	eng_tunnel_stats(sim_engine(p->w, 0), 0, &near);
	eng_tunnel_stats(sim_engine(p->w, 1), 0, &far);
	printf(", \"timeouts\": %" PRIu64 ", \"implied_naks\": %" PRIu64 ", \"sent_again\": %" PRIu64
	       ", \"old\": %" PRIu64,
	    b->local_ack_timeout_err, b->implied_nak_seq_err, b->host_resent, b->drop_old_response);
	printf(", \"repeats_of_host\": %" PRIu64 ", \"asked\": %" PRIu64,
	    a->duplicate_read + a->duplicate_request, a->accepted);
	printf(", \"wan_repeats\": %" PRIu64 ", \"repairs\": %" PRIu64 ", \"rebuilt\": %" PRIu64,
	    near.c.tx_retransmit + far.c.tx_retransmit, near.c.repair_sent + far.c.repair_sent,
	    near.c.rebuilt + far.c.rebuilt);
}

/* One line of JSON. */
static void show(const struct perf *p, bool good)
{
	double sec = (double)(p->ended - p->began) / 1e9;

	printf("{\"good\": %s, \"MBps\": %.4f, \"seconds\": %.4f, \"of_line\": %.4f, \"packets\": %" PRIu64
	       ", \"host_sent_again\": %u",
	    good ? "true" : "false", (double)p->packets * PERF_MTU / sec / 1e6, sec,
	    perf_line_seconds(p) / sec, p->packets, perf_resent(p));
	if (p->s.mode == PERF_ROCEWAY)
		show_gateways(p);
	printf("}\n");
}

static const char *fault(const struct perf_scen *s)
{
	if (s->time && s->skip >= s->time)
		return "skip leaves nothing to measure";
	if (!cc_find(s->cc))
		return "cc: there is no such algorithm";
	return NULL;
}

int main(int argc, char **argv)
{
	static struct perf p;
	char err[512], where[24];
	bool good;

	p.s = defaults;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			words_help(&words, "rwyperf",
			    "What perftest does between two hosts, over gateways or without, in virtual "
			    "time.");
			return 0;
		}
		snprintf(where, sizeof(where), "word %d", i);
		if (!words_set(&words, &p.s, argv[i], where, err, sizeof(err))) {
			fprintf(stderr, "rwyperf: %s\n", err);
			return BAD_INPUT;
		}
	}
	if (fault(&p.s)) {
		fprintf(stderr, "rwyperf: %s\n", fault(&p.s));
		return BAD_INPUT;
	}
	good = perf_run(&p);
	show(&p, good);
	perf_free(&p);
	return good ? 0 : 1;
}
