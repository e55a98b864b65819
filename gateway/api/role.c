/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of users at the local API: see role.h. */
#include "gateway/api/role.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */

const char *api_role_name(enum api_role r)
{
	switch (r) {
	case API_NOBODY:
		return "nobody";
	case API_READER:
		return "reader";
	case API_OPERATOR:
		return "operator";
	}
	rwy_unreachable();
}

int api_peer_get(int fd, struct api_peer *out)
{
	struct ucred cred;
	socklen_t n = sizeof(cred), bytes = 64 * sizeof(gid_t);
	int rc = ERANGE;

	*out = (struct api_peer){.uid = UINT32_MAX, .gid = UINT32_MAX};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) || n != sizeof(cred))
		return RWY_EINVAL;
	/* with too little room the kernel says how much there must be */
	while (rc == ERANGE && bytes <= GROUPS_MAX * sizeof(gid_t)) {
		free(out->group);
		out->group = malloc(bytes);
		if (!out->group)
			return RWY_ENOMEM;
		rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, out->group, &bytes) ? errno : 0;
	}
	if (rc) {
		api_peer_free(out);
		return RWY_EINVAL;
	}
	out->groups = (unsigned)(bytes / sizeof(gid_t));
	out->uid = cred.uid;
	out->gid = cred.gid;
	out->pid = cred.pid;
	return 0;
}

void api_peer_free(struct api_peer *p)
{
	free(p->group);
	*p = (struct api_peer){.uid = UINT32_MAX, .gid = UINT32_MAX};
}

static bool in_group(const struct api_peer *p, uint32_t gid)
{
	if (gid == CONF_NO_GID)
		return false;
	for (unsigned i = 0; i < p->groups; i++)
		if (p->group[i] == gid)
			return true;
	return p->gid == gid;
}

enum api_role api_peer_role(const struct api_peer *p, const struct gw_access *a, uint32_t own_uid)
{
	if (p->uid == 0 || p->uid == own_uid || in_group(p, a->operator_gid))
		return API_OPERATOR;
	return in_group(p, a->read_gid) ? API_READER : API_NOBODY;
}

void api_role_refusal(const struct gw_access *a, uint32_t uid, enum api_role has, char *out, size_t size)
{
	const char *all = a->operator_group, *read = a->read_group;

	if (has == API_READER && *all)
		snprintf(out, size,
		    "user %u may only read: this is for root and members of group `%s` (api.operator_group)",
		    uid, all);
	else if (has == API_READER)
		snprintf(out, size,
		    "user %u may only read: this is for root, since api.operator_group names no group", uid);
	else if (*all && *read)
		snprintf(out, size,
		    "user %u has no role: members of group `%s` (api.read_group) may read, those of `%s` "
		    "(api.operator_group) may do everything",
		    uid, read, all);
	else if (*all || *read)
		snprintf(out, size, "user %u has no role: members of group `%s` (%s) may %s", uid,
		    *all ? all : read, *all ? "api.operator_group" : "api.read_group",
		    *all ? "do everything" : "read");
	else
		snprintf(out, size,
		    "user %u has no role: only root has one, since neither api.read_group nor "
		    "api.operator_group names a group",
		    uid);
}
