/* SPDX-License-Identifier: Apache-2.0 */
/* Sets queue pairs of two model hosts up by CM, each through its relay. */
#ifndef TESTS_COMPONENT_RC_CM_H
#define TESTS_COMPONENT_RC_CM_H

#include "rwy/ip.h"
#include "tests/component/rc/lan.h"

struct cm_side {
	const struct lan *lan;
	struct rwy_ip host, relay; /* relay: that this host knows */
	uint32_t qpn, psn;
	uint32_t alias; /* result: the QPN of the other host, as this one knows it */
};

/*
 * Host 0 asks for a connection at this port of its relay, and host 1 accepts it. n: a number of the
 * connection's own. Returns 0; the reason of the REJ that host 0 got; -1: nothing came in 20 s.
 */
int cm_connect(struct cm_side side[2], uint16_t port, unsigned n);

#endif
