/* SPDX-License-Identifier: Apache-2.0 */
/* Which site has an address: the longest prefix of a VNI (0: nobody's). One look-up for each prefix length in
 * use. */
#ifndef CONTROLLER_STATE_LPM_H
#define CONTROLLER_STATE_LPM_H

#include "controller/state/map.h"
#include "rwy/ip.h"

struct ctlr_lpm {
	struct ctlr_map map;
	uint32_t used[129]; /* entries of a length; IPv4 counts from 96 */
};

/* Canonical text as controller/model has it. */
bool ctlr_lpm_ip(const char *text, struct rwy_ip *out);

/* RWY_EEXIST: the same prefix of the same VNI is there. */
RWY_MUST_CHECK int ctlr_lpm_add(struct ctlr_lpm *l, uint32_t vni, const char *prefix, void *value);
void ctlr_lpm_del(struct ctlr_lpm *l, uint32_t vni, const char *prefix);
void *ctlr_lpm_get(const struct ctlr_lpm *l, uint32_t vni, const char *prefix); /* exactly this one */
void *ctlr_lpm_find(const struct ctlr_lpm *l, uint32_t vni, const struct rwy_ip *a);
void ctlr_lpm_free(struct ctlr_lpm *l);

#endif
