/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of a capture: a small language (docs/capture.md has its grammar), parsed once into a
 * table of steps that a worker walks for each packet, without allocation, lock or branch on text.
 */
#ifndef GATEWAY_CAPTURE_FILTER_H
#define GATEWAY_CAPTURE_FILTER_H

#include "gateway/capture/facts.h"
#include "gateway/capture/reason.h"
#include "rwy/err.h"

#define GW_CAP_FILTER_MAX 1024 /* bytes of its text */
#define GW_CAP_STEPS      64
#define GW_CAP_DEPTH      32 /* of parentheses and `not` */
#define GW_CAP_SET        ((GW_CAP_REASONS + 63) / 64)

enum gw_cap_step_kind {
	GW_CAP_F_VNI,
	GW_CAP_F_HOST,
	GW_CAP_F_SRC,
	GW_CAP_F_DST,
	GW_CAP_F_QPN,
	GW_CAP_F_OPCODE,
	GW_CAP_F_STAGE,
	GW_CAP_F_DECISION,
	GW_CAP_F_REASON, /* of a packet with any decision */
	GW_CAP_F_AND,    /* of the two results before */
	GW_CAP_F_OR,
	GW_CAP_F_NOT,
};

struct gw_cap_step {
	enum gw_cap_step_kind kind;
	uint32_t value;
	struct rwy_ip addr, mask;
	uint64_t set[GW_CAP_SET]; /* opcodes or reasons, as bits */
};

struct gw_cap_filter {
	unsigned n;    /* 0: every packet */
	bool asks_qpn; /* a step is about QPNs: of the sender's, too */
	struct gw_cap_step step[GW_CAP_STEPS];
};

/* Finds the VNI of a tenant by its name. False: there is no such tenant. */
typedef bool gw_cap_tenant_fn(void *ctx, const char *name, uint32_t *vni);

/* An error of a filter and its place: bytes from the text's beginning, at most its length. */
struct gw_cap_fault {
	unsigned at;
	char text[160];
};

/*
 * Parses text; "" or only blanks: every packet. RWY_EINVAL: *fault says why, *f is undefined.
 * tenant is asked for each name; NULL: no name is known.
 */
RWY_MUST_CHECK int gw_cap_filter_parse(struct gw_cap_filter *f, const char *text, gw_cap_tenant_fn *tenant,
    void *ctx, struct gw_cap_fault *fault);

/* Whether the packet is wanted. Worker's thread: bounded by GW_CAP_STEPS. */
bool gw_cap_filter_takes(const struct gw_cap_filter *f, const struct gw_cap_facts *p);
/* Whether it may be, as far as is known before it is handled: its decision, reason and, unless it
 * is set, its sender's QPN are not. */
bool gw_cap_filter_may(const struct gw_cap_filter *f, const struct gw_cap_facts *p);

#endif
