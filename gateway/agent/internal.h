/* SPDX-License-Identifier: Apache-2.0 */
/* Private to ctrl.c, pair.c, register.c and report*.c. */
#ifndef GATEWAY_AGENT_INTERNAL_H
#define GATEWAY_AGENT_INTERNAL_H

#include <pthread.h>

#include "gateway/agent/ctrl.h"
#include "gateway/datapath/sessions.h"

#define CTRL_BATCH 500 /* sessions in one report */

/* A scan of all sessions besides the workers' rings. */
enum ctrl_scan { SCAN_NONE, SCAN_OPEN, SCAN_LOAD };

struct ctrl_standby {
	struct eng_standby_info i;
	bool is; /* one of a pair, and i is what its worker said */
};

/* What a path had sent when it was last reported. */
struct ctrl_sent {
	uint64_t bytes;
	rwy_time at; /* 0: not yet */
};

struct gw_ctrl {
	struct gw_app *app;
	struct agent *agent;
	pthread_t thread;
	char boot_id[17];
	char (*tunnel)[2][CONF_NAME]; /* tunnels of the document, with their peers */
	unsigned tunnels;

	/* pair.c */
	char member[CONF_NAME];      /* its name as one of a pair; "": it is none */
	struct ctrl_standby standby; /* as the control center was told */

	/* register.c */
	bool quic_asked;
	uint64_t quic_Bps; /* as measured; 0: not */

	/* report.c */
	enum ctrl_scan scan;
	unsigned scan_worker;
	uint32_t scan_cursor;
	uint64_t scan_part; /* of SCAN_OPEN: reports so far */
	rwy_time scanned;
	uint64_t lost[GW_WORKERS_MAX];
	rwy_time load_at;
	uint64_t load_bytes;
	rwy_dur load_busy;

	struct ctrl_sent sent[CONF_TUNNELS_MAX][CONF_PATHS_MAX]; /* report_paths.c */
};

/* register.c: an address as text. */
json_t *ctrl_ip(const struct rwy_ip *a);
/* register.c, report.c: agent_ops; ctx is the struct gw_ctrl. */
json_t *ctrl_registration(void *ctx);
json_t *ctrl_load(void *ctx);
json_t *ctrl_links(void *ctx);
json_t *ctrl_sessions(void *ctx, uint64_t *part, bool *last);
void ctrl_resync(void *ctx);
/* report_paths.c: what goes along the tunnel's paths that have a label; NULL: it has none. Under
 * gw_tunnels_read. */
json_t *ctrl_paths(struct gw_ctrl *k, unsigned tunnel, rwy_time now);

#endif
