/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway's capture in memory that both processes have (base/slots.h): the request asks to switch
 * to it, and the blocks are copied from there. A gateway of an earlier version answers as if it
 * were not asked.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/roceway/capture.h"

#define HEAD_MAX 8192
#define WAIT_MS  100

/* A socket to the gateway; -1: cannot. */
static int dial(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(a.sun_path))
		return -1;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool readable(int fd, int most_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, most_ms) > 0;
}

/* Reads the answer's head and not a byte more: the next one brings the memory. */
static bool switched(int fd)
{
	static const char want[] = "HTTP/1.1 101 ";
	char head[HEAD_MAX];
	size_t n = 0;

	for (; n < sizeof(head); n++) {
		if (!readable(fd, CAP_SILENCE_MS) || recv(fd, head + n, 1, 0) != 1)
			return false;
		if (n + 1 == sizeof(want) - 1 && memcmp(head, want, sizeof(want) - 1) != 0)
			return false;
		if (n >= 3 && !memcmp(head + n - 3, "\r\n\r\n", 4))
			return readable(fd, CAP_SILENCE_MS);
	}
	return false;
}

int cap_slots_open(struct cap_slots *s, const char *socket_path, const char *target)
{
	static const char format[] =
	    "GET %s HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: roceway-capture\r\n\r\n";
	char ask[HEAD_MAX];
	const int n = snprintf(ask, sizeof(ask), format, target);

	*s = (struct cap_slots){.fd = dial(socket_path), .memory.fd = -1};
	if (s->fd >= 0 && n > 0 && (size_t)n < sizeof(ask) &&
	    send(s->fd, ask, (size_t)n, MSG_NOSIGNAL) == n && switched(s->fd) &&
	    !base_slots_receive(&s->memory, s->fd))
		return 0;
	cap_slots_close(s);
	return RWY_EAGAIN;
}

enum cap_slots_end cap_slots_run(struct cap_slots *s,
    bool (*blocks)(void *ctx, const uint8_t *data, size_t len), bool (*tick)(void *ctx), void *ctx)
{
	bool ended, gone = false;
	int64_t heard = cap_now_ms();
	const uint8_t *data;
	size_t len;

	for (;;) {
		data = base_slots_next(&s->memory, &len, &ended);
		if (data) {
			if (!blocks(ctx, data, len))
				return CAP_SLOTS_STOPPED;
			base_slots_free_slot(&s->memory, s->fd);
			heard = cap_now_ms();
			if (!tick(ctx)) /* packets may come without a pause */
				return CAP_SLOTS_STOPPED;
			continue;
		}
		if (ended)
			return CAP_SLOTS_OVER;
		if (gone)
			return CAP_SLOTS_GONE;
		if (cap_now_ms() - heard > CAP_SILENCE_MS)
			return CAP_SLOTS_SILENT;
		if (!tick(ctx))
			return CAP_SLOTS_STOPPED;
		if (base_slots_wait(&s->memory) && readable(s->fd, WAIT_MS))
			gone = !base_slots_woken(s->fd); /* it may have ended before it went */
	}
}

void cap_slots_close(struct cap_slots *s)
{
	base_slots_close(&s->memory);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
