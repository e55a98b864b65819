/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a scenario, their bounds and defaults. */
#include "tests/sim/dc/scen.h"

#include <stdio.h>
#include <string.h>

#include "cc/cc.h"
#include "tests/sim/dc/tenants.h"
#include "tests/sim/dc/words.h"

#define K(key, unit, lo, hi)                                                                                 \
	{                                                                                                    \
#key, unit, offsetof(struct scen, key), lo, hi, NULL                                         \
	}
#define CHOICE(key, choices)                                                                                 \
	{                                                                                                    \
#key, W_CHOICE, offsetof(struct scen, key), 0, 0, choices                                    \
	}
#define LIST(key, f)                                                                                         \
	{                                                                                                    \
		key, W_NAME, offsetof(struct scen, f), 0, sizeof(((struct scen *)0)->f), NULL                \
	}
#define DC_SITE_MAX 250
#define DAY         864e11

static const struct word keys[] = {
    K(seed, W_WHOLE, 0, 9e15),
    CHOICE(mode, "roceway native"),
    CHOICE(rule, "none themis grc"),
    K(leaves, W_WHOLE, 1, 64),
    K(hosts, W_WHOLE, 1, 64),
    K(spines, W_WHOLE, 1, 64),
    K(rate, W_BITS, 1e6, 1e12),
    K(frate, W_BITS, 0, 1e13),
    K(delay, W_TIME, 1, 1e9),
    K(buf, W_BYTES, 1e4, 1e12),
    K(bbuf, W_BYTES, 1e4, 1e12),
    K(alpha, W_NUMBER, .001, 100),
    K(pfc_alpha, W_NUMBER, .001, 100),
    K(kmin, W_BYTES, 1, 1e12),
    K(kmax, W_BYTES, 1, 1e12),
    K(pmax, W_SHARE, 0, 1),
    CHOICE(pfc, "off on"),
    CHOICE(ecn, "off on"),
    K(wan, W_BITS, 1e6, 1e12),
    K(rtt, W_TIME, 2e3, 10e9),
    K(loss, W_SHARE, 0, .9),
    K(jitter, W_TIME, 0, 1e9),
    K(outage_at, W_TIME, 0, DAY),
    K(outage_len, W_TIME, 0, DAY),
    K(wkmin, W_BYTES, 0, 1e12),
    K(wkmax, W_BYTES, 0, 1e12),
    K(gwrate, W_BITS, 0, 1e13),
    K(wake, W_TIME, 100, 1e9),
    K(credit, W_NUMBER, .1, 100),
    K(custody, W_NUMBER, .1, 100),
    K(np_min, W_BYTES, 0, 1e12),
    K(np_max, W_BYTES, 0, 1e12),
    K(hwin, W_WHOLE, 1, 4096),
    K(ccrate, W_BITS, 0, 1e12),
    {"cc", W_NAME, offsetof(struct scen, cc), 0, sizeof(((struct scen *)0)->cc), NULL},
    CHOICE(np, "off on"),
    CHOICE(rp, "off on"),
    CHOICE(fec, "off on"),
    CHOICE(payload, "auto thin full"),
    CHOICE(ack, "near far end causal"),
    K(beat, W_TIME, 0, 1e9),
    K(pmtu, W_WHOLE, 256, 4096),
    K(depth, W_WHOLE, 1, 65536),
    K(msg, W_BYTES, 1, 1 << 30),
    K(window, W_BYTES, 0, 1e12),
    K(ackreq, W_WHOLE, 1, 4096),
    K(rto, W_TIME, 1e3, 1e12),
    K(backoff, W_NUMBER, 1, 16),
    K(retry, W_WHOLE, 0, 255),
    K(cnp, W_TIME, 1, 1e9),
    CHOICE(host, "gbn sr"),
    CHOICE(dcqcn, "off on"),
    CHOICE(op, "write send"),
    K(load, W_SHARE, 0, .95),
    CHOICE(sizes, "websearch fixed"),
    K(isize, W_BYTES, 1, 1 << 30),
    K(flows, W_WHOLE, 0, 4096),
    K(bidir, W_WHOLE, 0, 1),
    CHOICE(place, "pairs incast onesrc all"),
    K(start, W_TIME, 0, DAY),
    K(stagger, W_TIME, 0, DAY),
    K(stop, W_TIME, 0, DAY),
    K(fsize, W_BYTES, 0, 1e15),
    K(xload, W_SHARE, 0, .95),
    K(xqps, W_WHOLE, 1, 4096),
    K(xsize, W_BYTES, 0, 1 << 30),
    CHOICE(xop, "rc ip"),
    CHOICE(slow, "port nic"),
    K(slow_at, W_TIME, 0, DAY),
    K(slow_len, W_TIME, 0, DAY),
    K(slow_rate, W_BITS, 1e6, 1e12),
    CHOICE(hostile, "none deaf bogus cm"),
    K(htenant, W_WHOLE, 0, DC_TENANTS_MAX),
    K(hrate, W_BITS, 0, 1e12),
    K(time, W_TIME, 1e3, DAY),
    K(skip, W_TIME, 0, DAY),
    K(drain, W_TIME, 0, DAY),
    K(sample, W_TIME, 1e3, DAY),
    K(tenants, W_WHOLE, 0, DC_TENANTS_MAX),
    K(xtenant, W_WHOLE, 0, DC_TENANTS_MAX),
    K(fhosts, W_WHOLE, 0, DC_SITE_MAX),
    K(set_at, W_TIME, 0, DAY),
    K(set_tenant, W_WHOLE, 0, DC_TENANTS_MAX),
    K(set_guarantee, W_BITS, 0, 1e12),
    K(set_limit, W_BITS, 0, 1e12),
    K(set_weight, W_WHOLE, 0, 1000),
    LIST("guarantee", t_guarantee),
    LIST("limit", t_limit),
    LIST("weight", t_weight),
    LIST("priority", t_priority),
    LIST("tcustody", t_custody),
    LIST("treserve", t_reserve),
    LIST("tflows", t_flows),
    LIST("tstart", t_start),
};
static const struct words words = {keys, sizeof(keys) / sizeof(keys[0])};

void scen_default(struct scen *s)
{
	*s = (struct scen){.seed = 1,
	    .leaves = 4,
	    .hosts = 8,
	    .spines = 4,
	    .rate = 100e9,
	    .delay = 1e3,
	    .buf = 32 << 20,
	    .bbuf = 256 << 20,
	    .alpha = 1,
	    .pfc_alpha = .125,
	    .kmin = 400e3,
	    .kmax = 1600e3,
	    .pmax = .2,
	    .pfc = SCEN_ON,
	    .ecn = SCEN_ON,
	    .sites = 2,
	    .wan = 100e9,
	    .rtt = 25e6,
	    .wake = 1e3,
	    .credit = 3,
	    .custody = 3,
	    .hwin = 128,
	    .np = SCEN_ON,
	    .rp = SCEN_ON,
	    .fec = SCEN_ON,
	    .pmtu = 4096,
	    .depth = 128,
	    .msg = 65536,
	    .ackreq = 16,
	    .rto = 2e6,
	    .backoff = 2,
	    .retry = 7,
	    .cnp = 50e3,
	    .dcqcn = SCEN_ON,
	    .isize = 65536,
	    .xqps = 64,
	    .time = 100e6,
	    .drain = 20e9,
	    .sample = 100e3};
	snprintf(s->cc, sizeof(s->cc), "fixed");
}

bool scen_word(struct scen *s, const char *word, const char *where, char *err, size_t size)
{
	return words_set(&words, s, word, where, err, size);
}

bool scen_file(struct scen *s, const char *path, char *err, size_t size)
{
	return words_file(&words, s, path, err, size);
}

/* All flows that belong to tenants. */
static double tenants_flows(const struct scen *s)
{
	struct dc_tenant t[DC_TENANTS_MAX + 1];
	double n = 0;
	char err[200];

	if (!*s->t_flows || !dc_tenants_read(s, t, err, sizeof(err)))
		return 0;
	for (unsigned i = 1; i <= (unsigned)s->tenants; i++)
		n += t[i].flows;
	return n;
}

struct scen scen_resolved(const struct scen *given)
{
	struct scen s = *given;

	if (*s.t_flows)
		s.flows = tenants_flows(&s);
	if (!s.frate)
		s.frate = s.rate * s.hosts / s.spines;
	if (!s.gwrate)
		s.gwrate = s.wan;
	if (!s.ccrate && strcmp(s.cc, "fixed") == 0)
		s.ccrate = s.wan;
	if (!s.hrate)
		s.hrate = s.rate;
	if (!s.stop)
		s.stop = s.time;
	if (!s.wkmin)
		s.wkmin = s.kmin * s.wan / 100e9;
	if (!s.wkmax)
		s.wkmax = s.kmax * s.wan / 100e9;
	if (s.payload == PAYLOAD_AUTO)
		s.payload =
		    s.loss > 0 || s.outage_len > 0 || s.ack == ACK_CAUSAL ? PAYLOAD_FULL : PAYLOAD_THIN;
	if (s.payload == PAYLOAD_THIN)
		s.fec = SCEN_OFF;
	return s;
}

bool scen_check(const struct scen *given, char *err, size_t size)
{
	struct scen r = scen_resolved(given), *s = &r;
	struct dc_tenant t[DC_TENANTS_MAX + 1];
	const char *why = NULL;

	if (!dc_tenants_read(s, t, err, size))
		return false;

	if (!cc_find(s->cc))
		why = "cc: there is no such algorithm";
	else if (s->kmin > s->kmax || s->wkmin > s->wkmax || (s->np_max > 0 && s->np_min > s->np_max))
		why = "a marking threshold's minimum is above its maximum";
	else if (s->leaves * s->hosts < 2 && s->load > 0)
		why = "load wants two hosts a site";
	else if (s->leaves * s->hosts > DC_SITE_MAX)
		why = "more than 250 hosts a site";
	else if (s->pmtu != 256 && s->pmtu != 512 && s->pmtu != 1024 && s->pmtu != 2048 && s->pmtu != 4096)
		why = "pmtu is 256, 512, 1024, 2048 or 4096";
	else if (s->skip >= s->time)
		why = "skip leaves nothing of time to measure";
	else if (s->stop > s->time || s->start >= s->time)
		why = "start and stop lie within time";
	else if (s->payload == PAYLOAD_THIN && s->ack == ACK_CAUSAL)
		why = "the gateways' lists of flows need every byte: payload=full";
	else if (s->payload == PAYLOAD_THIN && (s->loss > 0 || s->outage_len > 0))
		why = "with loss the gateways' repairs need every byte: payload=full";
	else if (s->sites > 2 && (s->tenants > 0 || s->rule != RULE_NONE))
		why = "tenants and rule are for two sites";
	else if (s->mode == MODE_ROCEWAY && s->rule != RULE_NONE)
		why = "rule is of the native border switch: mode=native";
	else if (s->mode == MODE_ROCEWAY && s->host == HOST_SR)
		why = "host=sr is a baseline of mode=native";
	else if (s->tenants > 0 && s->mode == MODE_NATIVE)
		why = "tenants are the gateways': mode=roceway";
	else if (s->xtenant > s->tenants || s->set_tenant > s->tenants)
		why = "xtenant and set_tenant are one of the tenants";
	else if (s->fhosts >= s->leaves * s->hosts && s->fhosts > 0)
		why = "fhosts leaves no host for others";
	else if (s->htenant > s->tenants)
		why = "htenant is one of the tenants";
	else if (s->hostile != HOSTILE_NONE && s->mode == MODE_NATIVE)
		why = "a hostile tenant is for the gateways: mode=roceway";
	else if (s->hostile == HOSTILE_CM && s->payload == PAYLOAD_THIN)
		why = "the gateways read CM messages: payload=full";
	else if (s->xop == XOP_IP && (s->xsize < 8 || s->xsize > s->pmtu))
		why = "a message of xop=ip is a packet: xsize is from 8 to pmtu";
	else if (s->flows > 4096)
		why = "more than 4096 flows";
	else if (s->set_at > 0 && !s->set_tenant)
		why = "set_at wants set_tenant";
	else if (s->slow_at > 0 && !s->slow_rate)
		why = "slow_at wants slow_rate";
	if (why)
		snprintf(err, size, "scenario: %s", why);
	return !why;
}

void scen_print(const struct scen *s, char *out, size_t size)
{
	struct scen base;

	scen_default(&base);
	words_print(&words, s, &base, out, size);
}
