/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario of the data-center simulator; it decides the whole run. Rates in bit/s, times in ns,
 * sizes in bytes. docs/simulator.md has the keys. */
#ifndef SIM_DC_SCEN_H
#define SIM_DC_SCEN_H

#include <stdbool.h>
#include <stddef.h>

enum scen_mode { MODE_ROCEWAY, MODE_NATIVE };
enum scen_rule { RULE_NONE, RULE_THEMIS, RULE_GRC };
enum scen_onoff { SCEN_OFF, SCEN_ON };
enum scen_host { HOST_GBN, HOST_SR };
enum scen_op { OP_WRITE, OP_SEND };
enum scen_payload { PAYLOAD_AUTO, PAYLOAD_THIN, PAYLOAD_FULL };
enum scen_place { PLACE_PAIRS, PLACE_INCAST, PLACE_ONESRC, PLACE_ALL };
enum scen_sizes { SIZES_WEBSEARCH, SIZES_FIXED };
enum scen_ack { ACK_NEAR, ACK_FAR, ACK_END, ACK_CAUSAL }; /* as enum eng_ack_mode */
enum scen_xop { XOP_RC, XOP_IP };
enum scen_slow { SLOW_PORT, SLOW_NIC };
enum scen_hostile { HOSTILE_NONE, HOSTILE_DEAF, HOSTILE_BOGUS, HOSTILE_CM };

#define DC_TENANTS_MAX 16

struct scen {
	double seed;
	unsigned mode, rule;
	/* A site's fabric. */
	double leaves, hosts, spines, rate, frate, delay;
	double buf, bbuf, alpha, pfc_alpha, kmin, kmax, pmax;
	unsigned pfc, ecn;
	/* Between the sites: each two have a link of their own, `rtt` from one to the next one. */
	unsigned sites; /* 2, or 3 (train.h) */
	double wan, rtt, loss, jitter, wkmin, wkmax, outage_at, outage_len;
	/* The gateways. */
	double gwrate, wake, credit, custody, np_min, np_max, hwin, ccrate;
	char cc[16];
	unsigned np, rp, fec, payload, ack;
	double beat;
	/* The hosts. */
	double pmtu, depth, msg, window, ackreq, rto, backoff, retry, cnp;
	unsigned host, dcqcn, op;
	/* The work. */
	double load, isize, flows, bidir, start, stagger, stop, fsize, xload, xqps, xsize;
	unsigned sizes, place, xop;
	double slow_at, slow_len, slow_rate;
	unsigned slow;
	double time, skip, drain, sample;
	/* hostile.h; the tenant, and what its host sends */
	unsigned hostile;
	double htenant, hrate;
	/* Tenants: lists of one value each, see tenants.h; the tenant of the Poisson messages;
	 * hosts that only the flows use; one change while it runs. */
	double tenants, xtenant, fhosts, set_at, set_tenant, set_guarantee, set_limit, set_weight;
	char t_guarantee[160], t_limit[160], t_weight[96], t_priority[64], t_custody[160], t_reserve[96],
	    t_flows[96], t_start[160];
};

void scen_default(struct scen *s);
bool scen_word(struct scen *s, const char *word, const char *where, char *err, size_t size);
bool scen_file(struct scen *s, const char *path, char *err, size_t size);
/* Checks that concern several keys. False: err has one line. */
bool scen_check(const struct scen *s, char *err, size_t size);
/* The scenario with all values that follow from others (0, auto) filled in. */
struct scen scen_resolved(const struct scen *s);
/* Prints the words that repeat this run. */
void scen_print(const struct scen *s, char *out, size_t size);

#endif
