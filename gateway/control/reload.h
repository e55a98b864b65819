/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the running gateway's configuration, one at a time: the whole file again (SIGHUP, `roceway
 * reload`), or what the local API changes. Not here: what tenants are (tenants.h), which keys need a restart
 * (conf/schema.c).
 */
#ifndef GATEWAY_CONTROL_RELOAD_H
#define GATEWAY_CONTROL_RELOAD_H

#include "gateway/app.h"
#include "gateway/control/tunnels.h"

struct gw_reload_done {
	struct gw_network_done network;
	int log_level; /* from now on */
	bool log_level_changed;
	rwy_dur took; /* with reading the file */
};

/* Reads app->conf_path again and applies what may change while it runs, or, with one message in *err and a
 * negative return, nothing: RWY_EINVAL, or as gw_network_apply. Says so in the log and to systemd. Any
 * thread but a worker's; waits for other changes. */
RWY_MUST_CHECK int gw_reload(struct gw_app *app, struct gw_reload_done *done, struct conf_error *err);

/* The same in a thread of its own, for who cannot wait: the control thread, on SIGHUP. When one is at work
 * already, the file is read once more after it. */
void gw_reload_start(struct gw_app *app);
/* Before the workers end: until no such thread is at work. */
void gw_reload_finish(void);

#endif
