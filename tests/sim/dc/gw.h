/* SPDX-License-Identifier: Apache-2.0 */
/* A Roceway gateway in the data-center simulator: the engine, its port, and the most it held. */
#ifndef SIM_DC_GW_H
#define SIM_DC_GW_H

#include "tests/sim/dc/dc.h"

struct gw_peaks {
	/* bytes accepted from local hosts that the far host has not acknowledged */
	uint64_t custody;
	/* bytes from the WAN that the local host has not acknowledged, at the samples */
	uint64_t rx_held;
	uint64_t lan_queue; /* the part of rx_held in front of the gateway's port */
	uint64_t wan_queue; /* bytes in front of the WAN link */
	uint64_t bufs;      /* buffers in all */
};

void dc_gw_init(struct dc *dc, unsigned site);
void dc_gw_fini(struct dc *dc, unsigned site); /* a leak is a violation */
bool dc_gw_up(const struct gw *g);             /* all its tunnels */
bool dc_gw_quiet(const struct gw *g);
struct port *dc_gw_port(struct gw *g);
struct eng *dc_gw_engine(const struct gw *g);
/* Bytes from the WAN that a local host has not acknowledged. */
uint64_t dc_gw_held(const struct gw *g);
uint64_t dc_gw_resent(const struct gw *g); /* datagrams, to all other sites */
struct dc_tenant;
/* Adds or changes the tenant, in one call. */
void dc_gw_tenant(struct gw *g, unsigned i, const struct dc_tenant *t);
uint64_t dc_gw_sent(const struct gw *g, unsigned tenant); /* bytes on the wire so far */
void dc_gw_sample(struct gw *g);                          /* updates rx_held */
const struct gw_peaks *dc_gw_peaks(const struct gw *g);
void dc_gw_peaks_reset(struct gw *g);
uint64_t dc_gw_wan_lost(const struct gw *g);

#endif
