/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to what one worker's engine is told. No thread of its own, no lock: callers own what
 * they pass. Errors are logged. */
#ifndef GATEWAY_DATAPATH_ENGCFG_H
#define GATEWAY_DATAPATH_ENGCFG_H

#include "conf/conf.h"
#include "engine/engine.h"
#include "rwy/err.h"

/* The whole of one worker. RWY_EINVAL: an unknown congestion control, or too many prefixes. */
RWY_MUST_CHECK int gw_eng_cfg(struct eng_cfg *out, const struct conf *c, unsigned worker);
/* One tunnel of it. */
RWY_MUST_CHECK int gw_eng_tunnel_cfg(
    struct eng_tunnel_cfg *e, const struct conf *c, unsigned idx, unsigned worker);
/* The plain LAN's prefixes behind one tunnel, after *n others; ENG_PREFIXES_MAX at most. */
RWY_MUST_CHECK int gw_eng_prefixes(
    struct eng_prefix *prefix, unsigned *n, const struct conf *c, unsigned tunnel);
/* Bounds on one of `tunnels` tunnels, by the packet buffers that there are (gw_eng_cfg_memory). */
void gw_eng_tunnel_memory(
    struct wan_cfg *w, unsigned tunnels, unsigned workers, uint32_t buffers, uint32_t cost);

/* Bounds that follow from the packet buffers there are: `buffers` in all, `cost` bytes of memory each. At
 * most half of a worker's share may be in custody and a quarter held for the hosts; the rest is for what is
 * under way. */
void gw_eng_cfg_memory(struct eng_cfg *out, unsigned workers, uint32_t buffers, uint32_t cost);

#endif
