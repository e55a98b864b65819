/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to gateway/api/: decides about each request at the API's socket, by the user's role
 * (role.h) and the page's (routes.h), and tells of those that it refuses: a counter each, and log
 * lines, at most one a second in the long run.
 */
#ifndef GATEWAY_API_GUARD_H
#define GATEWAY_API_GUARD_H

#include "gateway/api/role.h"
#include "gateway/api/routes.h"

/* Connections that users who are no operators may hold; the rest of them is the operators'. */
#define API_READERS_MAX (API_CONNECTIONS_MAX - 8)

/* A user at the API's socket. */
struct api_user {
	uint32_t uid, gid;
	int pid;
	enum api_role role; /* at the time of the request */
};
/* fd: the connection. Any thread. */
void api_guard_user(int fd, struct api_user *out);

/* Below here: one thread at a time, as for pages. */

/* A connection begins. False: it is to be closed, for there are too many. *counted goes to
 * api_guard_close(). */
bool api_guard_open(int fd, bool *counted);
void api_guard_close(bool counted);

/* True: the user may do this. Else the reply is failed with 403, and it is counted and logged.
 * url: as the user sent it. */
bool api_guard_allows(const struct api_user *u, enum api_role needs, const char *method, const char *url,
    struct api_reply *reply);

/* Logs who asked for something that only an operator may, and the status of the answer. */
void api_guard_tell(const struct api_user *u, const char *method, const char *url, unsigned status);

void api_guard_counters(struct api_counters *out);

#endif
