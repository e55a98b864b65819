/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the site of an address by longest prefix match within a VNI (0: the underlay). One look-up
 * for each prefix length in use. */
#ifndef CONTROLLER_STATE_LPM_H
#define CONTROLLER_STATE_LPM_H

#include "controller/state/map.h"
#include "rwy/ip.h"

struct ctlr_lpm {
	struct ctlr_map map;
	uint32_t used[129]; /* entries of each length; IPv4 lengths count from 96 */
	/* It was emptied and is filled anew: ctlr_lpm_del() has no effect. */
	bool filling;
};

/* Parses an address in the canonical text of controller/model/. */
bool ctlr_lpm_parse_ip(const char *text, struct rwy_ip *out);

/* RWY_EEXIST: this VNI has the prefix already. RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_lpm_add(struct ctlr_lpm *l, uint32_t vni, const char *prefix, void *value);
/* Removes the prefix; no effect if it is not there, or has another value. */
void ctlr_lpm_del(struct ctlr_lpm *l, uint32_t vni, const char *prefix, const void *value);
/* The value of exactly this prefix; NULL: none. */
void *ctlr_lpm_get(const struct ctlr_lpm *l, uint32_t vni, const char *prefix);
/* The value of the longest prefix that contains the address; NULL: none does. */
void *ctlr_lpm_find(const struct ctlr_lpm *l, uint32_t vni, const struct rwy_ip *a);
/* Frees all entries; it is empty then. */
void ctlr_lpm_free(struct ctlr_lpm *l);

#endif
