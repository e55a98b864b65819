/* SPDX-License-Identifier: Apache-2.0 */
#include "base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void gw_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;
	int s;

	if (n < 2 || n >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, n);
	if (path[0] == '@') /* abstract socket */
		a.sun_path[0] = 0;
	s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return;
	/* A failure is not reported: systemd's own time-out follows. */
	if (sendto(s, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&a,
	        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0) {
		close(s);
		return;
	}
	close(s);
}

rwy_dur gw_notify_watchdog(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!us || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(us, NULL, 10) * RWY_US;
}
