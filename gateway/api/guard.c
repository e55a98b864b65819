/* SPDX-License-Identifier: Apache-2.0 */
/* Decides about requests at the API's socket: see guard.h. */
#include "gateway/api/guard.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/log.h"

#define LOG_BURST 10 /* lines at once */
#define WHY_MAX   512

static struct {
	struct api_counters count;
	unsigned readers; /* connections that are not operators' */
	rwy_time full;    /* the log has room for LOG_BURST lines at this time */
	uint64_t untold;  /* refusals that the log left out */
} guard;

void api_guard_user(int fd, struct api_user *out)
{
	struct gw_access access;
	struct api_peer peer;
	const int rc = api_peer_get(fd, &peer);

	gw_access_get(&access);
	*out = (struct api_user){.uid = peer.uid,
	    .gid = peer.gid,
	    .pid = peer.pid,
	    .role = rc ? API_NOBODY : api_peer_role(&peer, &access, geteuid())};
	api_peer_free(&peer);
}

/* A line gives back its room after a second. */
static bool log_has_room(void)
{
	const rwy_time now = gw_now();

	if (guard.full < now)
		guard.full = now;
	if (guard.full >= now + LOG_BURST * RWY_SEC)
		return false;
	guard.full += RWY_SEC;
	return true;
}

static void tell(const struct api_user *u, const char *what, const char *method, const char *url)
{
	if (!log_has_room()) {
		guard.untold++;
		return;
	}
	gw_log(GW_LOG_WARNING, "api",
	    "%s uid=%" PRIu32 " gid=%" PRIu32 " pid=%d role=%s request=%.16s %.128s not_logged=%" PRIu64,
	    what, u->uid, u->gid, u->pid, api_role_name(u->role), method, url, guard.untold);
	guard.untold = 0;
}

bool api_guard_open(int fd, bool *counted)
{
	struct api_user u;

	api_guard_user(fd, &u);
	*counted = u.role != API_OPERATOR && guard.readers < API_READERS_MAX;
	guard.readers += *counted;
	if (*counted || u.role == API_OPERATOR)
		return true;
	guard.count.refused_full++;
	tell(&u, "closed: readers have too many connections", "-", "-");
	return false;
}

void api_guard_close(bool counted)
{
	guard.readers -= counted;
}

bool api_guard_allows(const struct api_user *u, enum api_role needs, const char *method, const char *url,
    struct api_reply *reply)
{
	struct gw_access access;
	char why[WHY_MAX];

	if (u->role >= needs)
		return true;
	if (u->role == API_NOBODY)
		guard.count.refused_strangers++;
	else
		guard.count.refused_readers++;
	tell(u, "refused", method, url);
	gw_access_get(&access);
	api_role_refusal(&access, u->uid, u->role, why, sizeof(why));
	api_fail(reply, 403, "%s", why);
	return false;
}

void api_guard_tell(const struct api_user *u, const char *method, const char *url, unsigned status)
{
	gw_log(GW_LOG_NOTICE, "api", "uid=%" PRIu32 " pid=%d request=%.16s %.128s status=%u", u->uid, u->pid,
	    method, url, status);
}

void api_guard_counters(struct api_counters *out)
{
	*out = guard.count;
}
