/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The groups whose members may use the local API, as the configuration names them, and the files of
 * the API's sockets, which let them connect. gateway/api/role.h says what each may do. Any thread.
 */
#ifndef GATEWAY_CONTROL_ACCESS_H
#define GATEWAY_CONTROL_ACCESS_H

#include <stdint.h>

#include "conf/conf.h"

struct gw_app;

struct gw_access {
	char read_group[CONF_STR], operator_group[CONF_STR]; /* as in the file; "": none */
	uint32_t read_gid, operator_gid;                     /* CONF_NO_GID: none */
};

/* Modes of the sockets' files, besides the groups. The owner is the gateway's user. */
#define GW_ACCESS_API     0600
#define GW_ACCESS_METRICS 0660

/* Takes the groups of c. They count from the next request on. */
void gw_access_set(const struct conf *c);
void gw_access_get(struct gw_access *out);
/* Lets the groups that were set use the socket at path. A fault is logged, and then all may
 * connect: the gateway asks the kernel who they are in any case. */
void gw_access_file(const char *path, unsigned mode);
/* While the API runs: sets the groups of c, and changes the files of app's sockets. */
void gw_access_take(const struct gw_app *app, const struct conf *c);

#endif
