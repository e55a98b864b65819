/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles at the local API. The kernel tells who is at the other end of a connection to the Unix
 * socket (SO_PEERCRED, SO_PEERGROUPS); the configuration names a group for each role; the
 * table of routes (gateway/api/routes.c) says which role a request needs.
 */
#ifndef GATEWAY_API_ROLE_H
#define GATEWAY_API_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/control/access.h"
#include "rwy/err.h"

/* In order: who has a role may do all that those before it may. */
enum api_role {
	API_NOBODY,
	API_READER,   /* member of api.read_group */
	API_OPERATOR, /* root, the gateway's own user, member of api.operator_group */
};

/* "nobody", "reader", "operator". */
const char *api_role_name(enum api_role r);

/* The process that connected, as it was then: a group that it left later still counts. */
struct api_peer {
	uint32_t uid, gid;
	int pid;         /* 0: of another PID namespace */
	uint32_t *group; /* malloced */
	unsigned groups; /* supplementary */
};
/* Asks the kernel about the other end of a Unix socket. RWY_ENOMEM; RWY_EINVAL: not to be known,
 * and it gets no role: *out is no user's then. Any thread. */
RWY_MUST_CHECK int api_peer_get(int fd, struct api_peer *out);
void api_peer_free(struct api_peer *p);

/* own_uid: the gateway's user. */
enum api_role api_peer_role(const struct api_peer *p, const struct gw_access *a, uint32_t own_uid);

/* Writes one line for a user who has `has` and needs more: it names the group that would do. */
void api_role_refusal(const struct gw_access *a, uint32_t uid, enum api_role has, char *out, size_t size);

/* The counters of group `api`: X(field, sentence). */
#define API_COUNTERS(X)                                                                                      \
	X(refused_strangers, "requests at the API's socket of users without a role")                         \
	X(refused_readers, "requests of readers at the API's socket that only an operator may make")         \
	X(refused_full, "connections to the API's socket closed: readers had all that are not operators'")
struct api_counters {
#define X(f, s) uint64_t f;
	API_COUNTERS(X)
#undef X
};

#endif
