/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the running gateway's configuration, one at a time: the whole file again (SIGHUP,
 * `roceway reload`), or a change through the local API. Elsewhere: the meaning of tenants
 * (tenants.h), the keys that need a restart (conf/schema.c).
 */
#ifndef GATEWAY_CONTROL_RELOAD_H
#define GATEWAY_CONTROL_RELOAD_H

#include "gateway/app.h"
#include "gateway/control/tunnels.h"

struct gw_reload_done {
	struct gw_network_done network;
	int log_level; /* the new level */
	bool log_level_changed;
	rwy_dur took; /* includes reading the file */
};

/* Reads app->conf_path again and applies what may change while the gateway runs. On error, with one
 * message in *err, nothing changes: RWY_EINVAL, or an error of gw_network_apply. Reports the result
 * in the log and to systemd. Any thread except a worker's; waits for other changes. */
RWY_MUST_CHECK int gw_reload(struct gw_app *app, struct gw_reload_done *done, struct conf_error *err);

/* The same on a thread of its own, for a caller that cannot wait: the control thread, on SIGHUP.
 * When such a thread already runs, it reads the file once more afterwards. */
void gw_reload_start(struct gw_app *app);
/* Waits until no reload thread runs. Call it before the workers end. */
void gw_reload_finish(void);

#endif
