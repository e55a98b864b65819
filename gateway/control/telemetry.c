/* SPDX-License-Identifier: Apache-2.0 */
/* Two commands for dpdk-telemetry.py. The API has everything; DPDK's replies are small (16 KiB). */
#include <rte_pdump.h>
#include <rte_telemetry.h>

#include "gateway/app.h"
#include "base/log.h"
#include "gateway/setup.h"

static struct gw_app *the_app; /* callbacks get no context */

static int workers(const char *cmd, const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	for (unsigned i = 0; i < the_app->workers; i++) {
		struct gw_worker_stats s;
		struct rte_tel_data *t = rte_tel_data_alloc();
		char name[16];

		if (!t)
			return -1;
		gw_worker_stats_get(the_app, i, &s);
		rte_tel_data_start_dict(t);
		rte_tel_data_add_dict_u64(t, "turns", s.turns);
		rte_tel_data_add_dict_u64(t, "busy_turns", s.busy_turns);
		rte_tel_data_add_dict_u64(t, "sleeps", s.sleeps);
		rte_tel_data_add_dict_u64(t, "busy_ns", s.busy);
		rte_tel_data_add_dict_u64(t, "idle_ns", s.idle);
		rte_tel_data_add_dict_u64(t, "asleep_ns", s.asleep);
		rte_tel_data_add_dict_u64(t, "turn_max_ns", s.turn_max);
		rte_tel_data_add_dict_u64(t, "rx_bursts", s.rx_bursts);
		rte_tel_data_add_dict_u64(t, "rx_packets", s.rx_packets);
		snprintf(name, sizeof(name), "%u", i);
		rte_tel_data_add_dict_container(d, name, t, 0);
	}
	return 0;
}

static int counters(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct gw_overlay_counters o;
	struct gw_counters c;

	gw_counters_get(the_app, the_app->workers, &c);
	rte_tel_data_start_dict(d);
#define X(f, s) rte_tel_data_add_dict_u64(d, #f, c.f);
	GW_COUNTERS(X)
#undef X
	gw_overlay_counters_get(the_app, the_app->workers, &o);
	for (unsigned i = 0; i < GW_OVERLAY_COUNTERS; i++)
		rte_tel_data_add_dict_u64(
		    d, gw_overlay_names[i].name, ((const uint64_t *)(const void *)&o)[i]);
	return 0;
}

void gw_telemetry_start(struct gw_app *app)
{
	the_app = app;
	if (rte_telemetry_register_cmd(
	        "/roceway/workers", workers, "Packet threads: turns, sleeps, time. No parameters") ||
	    rte_telemetry_register_cmd(
	        "/roceway/counters", counters, "The application's counters, all workers. No parameters"))
		gw_log(GW_LOG_NOTICE, "main", "DPDK telemetry is off");
	if (rte_pdump_init() != 0)
		gw_log(GW_LOG_INFO, "main",
		    "dpdk-dumpcap is off: it needs secondary processes (no --in-memory)");
}
