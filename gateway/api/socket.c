/* SPDX-License-Identifier: Apache-2.0 */
/* The local API's Unix socket: removal of a stale one, and its file. */
#include "gateway/api/api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/control/access.h"

/* Removes the socket of a dead gateway; refuses to touch anything else. */
static int socket_clear(const struct sockaddr_un *sa)
{
	struct stat st;
	int fd, rc;

	if (lstat(sa->sun_path, &st))
		return 0; /* nothing there; bind() reports other faults */
	if (!S_ISSOCK(st.st_mode)) {
		gw_log(GW_LOG_ERROR, "api", "%s exists and is no socket", sa->sun_path);
		return RWY_EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? 0 : connect(fd, (const struct sockaddr *)sa, sizeof(*sa));
	if (fd >= 0)
		close(fd);
	if (rc && errno == ECONNREFUSED && (!unlink(sa->sun_path) || errno == ENOENT))
		return 0;
	gw_log(
	    GW_LOG_ERROR, "api", rc ? "%s is in the way" : "%s: another gateway answers there", sa->sun_path);
	return RWY_EEXIST;
}

static void make_parent(const char *path)
{
	char dir[CONF_STR];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = 0;
		if (mkdir(dir, 0755) && errno != EEXIST)
			gw_log(GW_LOG_WARNING, "api", "cannot make %s: %s", dir, strerror(errno));
	}
}

int api_socket_open(const char *path, unsigned mode)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		gw_log(GW_LOG_ERROR, "api", "%s is too long for a Unix socket", path);
		return RWY_EINVAL;
	}
	memcpy(sa.sun_path, path, strlen(path));
	make_parent(path);
	if (socket_clear(&sa))
		return RWY_EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa));
	/* nobody can connect before listen(): the mode is set in time */
	if (!rc)
		gw_access_file(path, mode);
	if (rc || listen(fd, API_CONNECTIONS_MAX)) {
		gw_log(GW_LOG_ERROR, "api", "cannot listen on %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return RWY_EINVAL;
	}
	return fd;
}

int api_listen_open(const char *text)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct conf_listen l;
	bool is4;
	int fd, on = 1;

	if (!conf_listen_parse(text, &l))
		return RWY_EINVAL; /* the configuration was checked */
	if (l.path)
		return api_socket_open(l.path, GW_ACCESS_METRICS);
	is4 = rwy_ip_is4(&l.addr);
	six.sin6_port = four.sin_port = htons(l.port);
	memcpy(&six.sin6_addr, l.addr.b, 16);
	memcpy(&four.sin_addr, l.addr.b + 12, 4);
	fd = socket(is4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    (is4 || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) &&
	    !bind(fd, is4 ? (struct sockaddr *)&four : (struct sockaddr *)&six,
	        is4 ? sizeof(four) : sizeof(six)) &&
	    !listen(fd, API_CONNECTIONS_MAX))
		return fd;
	gw_log(GW_LOG_ERROR, "api", "metrics: cannot listen on %s: %s", text, strerror(errno));
	if (fd >= 0)
		close(fd);
	return RWY_EINVAL;
}
