/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of the local API: see access.h. They are in an access control list of the socket's file:
 * to give the file to a group would need CAP_CHOWN, which a gateway does not keep.
 */
#include "gateway/control/access.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fileacl.h"
#include "base/log.h"
#include "gateway/app.h"

static struct {
	pthread_mutex_t lock;
	struct gw_access is;
} access_now = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .is = {.read_gid = CONF_NO_GID, .operator_gid = CONF_NO_GID}};

void gw_access_set(const struct conf *c)
{
	struct gw_access a = {.read_gid = c->api_read_gid, .operator_gid = c->api_operator_gid};

	memcpy(a.read_group, c->api_read_group, sizeof(a.read_group));
	memcpy(a.operator_group, c->api_operator_group, sizeof(a.operator_group));
	pthread_mutex_lock(&access_now.lock);
	access_now.is = a;
	pthread_mutex_unlock(&access_now.lock);
}

void gw_access_get(struct gw_access *out)
{
	pthread_mutex_lock(&access_now.lock);
	*out = access_now.is;
	pthread_mutex_unlock(&access_now.lock);
}

void gw_access_file(const char *path, unsigned mode)
{
	uint32_t gid[2] = {0};
	const bool roles = mode == GW_ACCESS_API; /* whoever connects there is asked who he is */
	struct gw_access a;
	unsigned n = 0;

	gw_access_get(&a);
	if (a.read_gid != CONF_NO_GID)
		gid[n++] = a.read_gid;
	if (a.operator_gid != CONF_NO_GID && a.operator_gid != a.read_gid)
		gid[n++] = a.operator_gid;
	if (!base_fileacl_set(path, mode, gid, n))
		return;
	if (n)
		gw_log(GW_LOG_WARNING, "api", "%s cannot have an access control list (%s): %s", path,
		    strerror(errno),
		    roles ? "everybody may connect, and is refused then" : "groups may not connect");
	if (chmod(path, n && roles ? 0666 : mode))
		gw_log(GW_LOG_WARNING, "api", "%s: chmod: %s", path, strerror(errno));
}

void gw_access_take(const struct gw_app *app, const struct conf *c)
{
	struct conf_listen l;

	gw_access_set(c);
	gw_access_file(app->conf->api_socket, GW_ACCESS_API);
	if (*app->conf->api_metrics && conf_listen_parse(app->conf->api_metrics, &l) && l.path)
		gw_access_file(l.path, GW_ACCESS_METRICS);
}
