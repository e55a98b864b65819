/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway with a bounded number of packet buffers: the bounds that the product derives from it. */
#ifndef TESTS_SIM_BOUNDS_H
#define TESTS_SIM_BOUNDS_H

#include "engine/engine.h"

/* Bytes above which ACKs wait, of a gateway with so many buffers of `cost` bytes. */
uint64_t sim_custody_bound(uint32_t buffers, uint32_t cost);
/* Sets all bounds, like gw_eng_cfg_memory() in gateway/datapath/engcfg.c. */
void sim_bound_memory(struct eng_cfg *c, uint32_t buffers, uint32_t cost);

/*
 * True if an arriving packet finds a buffer; `held` of `all` are in use. The last sixteenth is for
 * packets from the WAN and for those of local hosts that free memory, like gw_rx_frees_memory() in
 * gateway/datapath/rx_out.c.
 */
bool sim_finds_buffer(const struct rwy_buf *b, bool lan, uint64_t held, uint32_t all);

#endif
