/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the configuration into that of one worker's engine. No thread of its own, no lock: callers
 * own the arguments. Errors are logged. */
#ifndef GATEWAY_DATAPATH_ENGCFG_H
#define GATEWAY_DATAPATH_ENGCFG_H

#include "conf/conf.h"
#include "engine/engine.h"
#include "rwy/err.h"

/* Makes the whole configuration of one worker. RWY_EINVAL: unknown congestion control, or too many
 * prefixes. */
RWY_MUST_CHECK int gw_eng_cfg(struct eng_cfg *out, const struct conf *c, unsigned worker);
/* Makes the configuration of one tunnel. */
RWY_MUST_CHECK int gw_eng_tunnel_cfg(
    struct eng_tunnel_cfg *e, const struct conf *c, unsigned idx, unsigned worker);
/* Appends the plain LAN's prefixes behind one tunnel; at most ENG_PREFIXES_MAX in all. */
RWY_MUST_CHECK int gw_eng_prefixes(
    struct eng_prefix *prefix, unsigned *n, const struct conf *c, unsigned tunnel);
/* Sets the memory bounds of one of `tunnels` tunnels from the number of packet buffers
 * (gw_eng_cfg_memory). */
void gw_eng_tunnel_memory(
    struct wan_cfg *w, unsigned tunnels, unsigned workers, uint32_t buffers, uint32_t cost);

/* Sets the bounds that follow from the packet buffers: `buffers` in all, `cost` bytes of memory
 * each. At most half of a worker's share may be in custody and a quarter held for the hosts; the
 * rest is for packets in flight. */
void gw_eng_cfg_memory(struct eng_cfg *out, unsigned workers, uint32_t buffers, uint32_t cost);

#endif
