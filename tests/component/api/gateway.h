/* SPDX-License-Identifier: Apache-2.0 */
/* The made-up gateway of server.c, for what engine.c and tunnels.c say of it. */
#ifndef TESTS_COMPONENT_API_GATEWAY_H
#define TESTS_COMPONENT_API_GATEWAY_H

#include "gateway/app.h"

#define FAKE_UPTIME (100000 * RWY_SEC)

struct eng {
	unsigned worker;
};

struct fake_gateway {
	struct gw_app app;
	struct conf *conf;
	struct eng eng[GW_WORKERS_MAX];
	uint32_t flows;
	int stuck;
	bool down, siblings, losing, sparse; /* sparse: some parts of the flow table are empty */
};
extern struct fake_gateway fake_gateway;

#endif
