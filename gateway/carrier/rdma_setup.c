/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/carrier/rdma_setup.h"

/*
 * An event that is out of turn ends the connection. The end that was asked sends when its REP went
 * out, so the RTU changes nothing for it: a message of the peer may even overtake it.
 */
/* clang-format off */
#define GO(s, d) {GW_RDMA_##s, GW_RDMA_DO_##d}
#define LOSE     {GW_RDMA_ENDED, GW_RDMA_DO_LOSE}
#define OVER     {GW_RDMA_ENDED, GW_RDMA_DO_NOTHING}
static const struct gw_rdma_step steps[GW_RDMA_STATE_COUNT][GW_RDMA_EVENT_COUNT] = {
    /*                     RESOLVED          ROUTED            ESTABLISHED  FAILED  DISCONNECTED */
    [GW_RDMA_ADDRESS]   = {GO(ROUTE, ROUTE), LOSE,                   LOSE,            LOSE,  LOSE},
    [GW_RDMA_ROUTE]     = {LOSE,             GO(REQUESTED, CONNECT), LOSE,            LOSE,  LOSE},
    [GW_RDMA_REQUESTED] = {LOSE,             LOSE,                   GO(UP, OPEN),    LOSE,  LOSE},
    [GW_RDMA_ACCEPTED]  = {LOSE,             LOSE,                   GO(UP, NOTHING), LOSE,  LOSE},
    [GW_RDMA_UP]        = {LOSE,             LOSE,                   LOSE,            LOSE,  LOSE},
    [GW_RDMA_ENDED]     = {OVER,             OVER,                   OVER,            OVER,  OVER},
};
/* clang-format on */

struct gw_rdma_step gw_rdma_step(enum gw_rdma_state s, enum gw_rdma_event e)
{
	return steps[s][e];
}

const char *gw_rdma_state_name(enum gw_rdma_state s)
{
	static const char *const name[] = {
#define X(s) #s,
	    GW_RDMA_STATES(X)
#undef X
	};

	return name[s];
}
