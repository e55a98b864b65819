/* SPDX-License-Identifier: Apache-2.0
 * The client of the control socket: `wanem ctl PATH COMMAND...`.
 */
#include "tools/wanem/ctl.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REPLY_TIMEOUT_S 5

static int join(char *buf, size_t size, int argc, char **argv)
{
	size_t len = 0;

	for (int i = 0; i < argc; i++) {
		int n = snprintf(buf + len, size - len, "%s%s", i ? " " : "", argv[i]);

		if (n < 0 || (size_t)n + 2 > size - len || strchr(argv[i], '\n'))
			return -1;
		len += (size_t)n;
	}
	memcpy(buf + len, "\n", 2);
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = REPLY_TIMEOUT_S};
	int fd;

	errno = ENAMETOOLONG;
	if (strlen(path) >= sizeof(addr.sun_path))
		return -1;
	memcpy(addr.sun_path, path, strlen(path) + 1); /* its length is checked above */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Prints the reply, errors on standard error. Returns the exit code. */
static int print_reply(int fd)
{
	bool is_first = true, is_error = false;
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		if (is_first)
			is_error = n >= 6 && !memcmp(buf, "error:", 6);
		is_first = false;
		if (is_error)
			fprintf(stderr, "wanem: %.*s", (int)n, buf);
		else
			fwrite(buf, 1, (size_t)n, stdout);
	}
	if (n < 0 || is_first) {
		fprintf(stderr, "wanem: no reply: %s\n", n < 0 ? strerror(errno) : "connection closed");
		return 1;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "wanem: cannot write to standard output\n");
		return 1;
	}
	return is_error;
}

int wanem_ctl_client(int argc, char **argv)
{
	char line[1000];
	int fd, rc;

	if (argc < 2) {
		fprintf(stderr, "wanem: usage: wanem ctl PATH set|outage|stats|help ... (stats [--json])\n");
		return 2;
	}
	/* People get a table by default; programs ask for JSON. */
	if (!strcmp(argv[1], "stats") && argc == 2)
		snprintf(line, sizeof(line), "stats text\n");
	else if (!strcmp(argv[1], "stats") && argc == 3 && !strcmp(argv[2], "--json"))
		snprintf(line, sizeof(line), "stats\n");
	else if (join(line, sizeof(line), argc - 1, argv + 1)) {
		fprintf(stderr, "wanem: the command is too long or has a line break\n");
		return 2;
	}
	fd = connect_to(argv[0]);
	if (fd < 0 || send(fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line)) {
		fprintf(stderr, "wanem: control socket %s: %s\n", argv[0], strerror(errno));
		if (fd >= 0)
			close(fd);
		return 1;
	}
	shutdown(fd, SHUT_WR);
	rc = print_reply(fd);
	close(fd);
	return rc;
}
