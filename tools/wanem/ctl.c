/* SPDX-License-Identifier: Apache-2.0
 * Control socket of the running emulator, server side; see ctl.h. The client is in client.c.
 */
#include "tools/wanem/ctl.h"

#include "tools/wanem/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_MAX_LEN 1024
#define MAX_OUTAGE   UINT64_C(86400000000000)

struct client {
	int fd; /* -1: free */
	size_t len;
	char buf[LINE_MAX_LEN];
};

struct wanem_ctl {
	int fd;
	struct sockaddr_un addr;
	struct client client[WANEM_CTL_CLIENTS];
};

static const char command_help[] =
    "set both|a-to-b|b-to-a KEY=VALUE...         change settings; frames in flight keep their time and "
    "order\n"
    "outage [both|a-to-b|b-to-a] on|off|TIME     cut the link, mend it, or cut it for that long\n"
    "stats [text]                                counters as one line of JSON, or as a table\n"
    "help                                        this\n"
    "keys: ";

static void help(FILE *reply)
{
	fputs(command_help, reply);
	for (const struct wanem_key *k = wanem_set_keys(); k->name; k++)
		fprintf(reply, "%s ", k->name);
	fputc('\n', reply);
}

/* The directions that a word names: bit 0 a-to-b, bit 1 b-to-a; 0: none. */
static unsigned directions(const char *word)
{
	if (!strcmp(word, "both"))
		return 3;
	if (!strcmp(word, "a-to-b"))
		return 1;
	return strcmp(word, "b-to-a") ? 0 : 2;
}

static int command_set(struct wanem *w, char *args, struct wanem_err *err)
{
	char *save = NULL, *word = strtok_r(args, " \t", &save);
	unsigned which = word ? directions(word) : 0;
	struct wanem_cfg cfg[2];

	if (!which) {
		snprintf(err->text, sizeof(err->text), "set: expected both, a-to-b or b-to-a");
		return -1;
	}
	for (unsigned d = 0; d < 2; d++) { /* both or none */
		cfg[d] = w->dir[d].link.cfg;
		if ((which >> d & 1) && wanem_set_list(&cfg[d], save, err))
			return -1;
	}
	for (unsigned d = 0; d < 2; d++)
		if (which >> d & 1)
			wanem_link_set(&w->dir[d].link, &cfg[d]);
	return 0;
}

static int command_outage(struct wanem *w, char *args, struct wanem_err *err, uint64_t now)
{
	char *save = NULL, *word = strtok_r(args, " \t", &save);
	unsigned which = word ? directions(word) : 0;
	uint64_t until = 0;

	if (which)
		word = strtok_r(NULL, " \t", &save);
	else
		which = 3;
	if (!word || strtok_r(NULL, " \t", &save)) {
		snprintf(err->text, sizeof(err->text), "outage: expected [both|a-to-b|b-to-a] on|off|TIME");
		return -1;
	}
	if (!strcmp(word, "on")) {
		until = WANEM_FOREVER;
	} else if (strcmp(word, "off") != 0) {
		if (wanem_set_time(word, MAX_OUTAGE, &until, err))
			return -1;
		until += now;
	}
	for (unsigned d = 0; d < 2; d++)
		if (which >> d & 1)
			wanem_link_outage(&w->dir[d].link, until);
	return 0;
}

/* Executes one command and prints the reply, one line but for `help` and `stats text`. */
static void execute_command(struct wanem *w, char *line, FILE *reply, uint64_t now)
{
	size_t word_len = strcspn(line, " \t");
	char *args = line + word_len + strspn(line + word_len, " \t");
	struct wanem_err err;
	int rc = 0;

	line[word_len] = '\0';
	if (!strcmp(line, "set")) {
		rc = command_set(w, args, &err);
	} else if (!strcmp(line, "outage")) {
		rc = command_outage(w, args, &err, now);
	} else if (!strcmp(line, "stats") && !*args) {
		wanem_stats_json(reply, w, now);
		return;
	} else if (!strcmp(line, "stats") && !strcmp(args, "text")) {
		wanem_stats_text(reply, w, now);
		return;
	} else if (!strcmp(line, "help")) {
		help(reply);
		return;
	} else {
		rc = -1;
		snprintf(err.text, sizeof(err.text), "unknown command '%.40s' (try help)", line);
	}
	if (rc)
		fprintf(reply, "error: %s\n", err.text);
	else
		fputs("ok\n", reply);
}

static int listen_on(struct wanem_ctl *ctl)
{
	const struct sockaddr *addr = (const struct sockaddr *)&ctl->addr;
	struct stat st;

	ctl->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ctl->fd < 0)
		return -1;
	if (!lstat(ctl->addr.sun_path, &st)) {
		if (!S_ISSOCK(st.st_mode)) {
			errno = S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
			return -1;
		}
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool is_stale = connect(probe, addr, sizeof(ctl->addr)) && errno == ECONNREFUSED;

		close(probe);
		if (is_stale)
			unlink(ctl->addr.sun_path);
	}
	if (bind(ctl->fd, addr, sizeof(ctl->addr)))
		return -1;
	return listen(ctl->fd, WANEM_CTL_CLIENTS);
}

int wanem_ctl_open(struct wanem_ctl **out, const char *path, struct wanem_err *err)
{
	struct wanem_ctl *ctl = calloc(1, sizeof(*ctl));

	*out = NULL;
	if (!ctl)
		goto fail;
	for (unsigned i = 0; i < WANEM_CTL_CLIENTS; i++)
		ctl->client[i].fd = -1;
	ctl->fd = -1;
	ctl->addr.sun_family = AF_UNIX;
	errno = ENAMETOOLONG;
	if (strlen(path) >= sizeof(ctl->addr.sun_path))
		goto fail;
	memcpy(ctl->addr.sun_path, path, strlen(path) + 1);
	if (listen_on(ctl))
		goto fail;
	*out = ctl;
	return 0;
fail:
	snprintf(err->text, sizeof(err->text), "control socket %.100s: %s", path, strerror(errno));
	if (ctl && ctl->fd >= 0)
		close(ctl->fd);
	free(ctl);
	return -1;
}

static void client_close(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

void wanem_ctl_close(struct wanem_ctl *ctl)
{
	if (!ctl)
		return;
	for (unsigned i = 0; i < WANEM_CTL_CLIENTS; i++)
		if (ctl->client[i].fd >= 0)
			client_close(&ctl->client[i]);
	close(ctl->fd);
	unlink(ctl->addr.sun_path);
	free(ctl);
}

unsigned wanem_ctl_poll(const struct wanem_ctl *ctl, struct pollfd *fd)
{
	unsigned n = 0;

	fd[n++] = (struct pollfd){.fd = ctl->fd, .events = POLLIN};
	for (unsigned i = 0; i < WANEM_CTL_CLIENTS; i++)
		if (ctl->client[i].fd >= 0)
			fd[n++] = (struct pollfd){.fd = ctl->client[i].fd, .events = POLLIN};
	return n;
}

static void accept_client(struct wanem_ctl *ctl)
{
	int fd = accept4(ctl->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (unsigned i = 0; i < WANEM_CTL_CLIENTS; i++) {
		if (ctl->client[i].fd >= 0)
			continue;
		ctl->client[i].fd = fd;
		ctl->client[i].len = 0;
		return;
	}
	close(fd); /* too many clients */
}

/* False if the client does not read its reply: wanem does not wait for it. */
static bool answer(struct client *c, struct wanem *w, char *line, uint64_t now)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	bool is_sent;

	if (!f)
		return false;
	execute_command(w, line, f, now);
	fclose(f);
	is_sent = send(c->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
	free(text);
	return is_sent;
}

static void serve_client(struct client *c, struct wanem *w, uint64_t now)
{
	ssize_t got = recv(c->fd, c->buf + c->len, sizeof(c->buf) - c->len, 0);
	char *line = c->buf, *end;

	if (got <= 0) {
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			client_close(c);
		return;
	}
	c->len += (size_t)got;
	while ((end = memchr(line, '\n', c->len - (size_t)(line - c->buf)))) {
		*end = '\0';
		if (end > line && end[-1] == '\r')
			end[-1] = '\0';
		if (!answer(c, w, line, now)) {
			client_close(c);
			return;
		}
		line = end + 1;
	}
	c->len -= (size_t)(line - c->buf);
	memmove(c->buf, line, c->len);
	if (c->len == sizeof(c->buf))
		client_close(c); /* a line that does not end */
}

void wanem_ctl_serve(
    struct wanem_ctl *ctl, struct wanem *w, const struct pollfd *fd, unsigned count, uint64_t now)
{
	for (unsigned i = 0; i < count; i++) {
		if (!fd[i].revents)
			continue;
		if (fd[i].fd == ctl->fd) {
			accept_client(ctl);
			continue;
		}
		for (unsigned c = 0; c < WANEM_CTL_CLIENTS; c++)
			if (ctl->client[c].fd == fd[i].fd)
				serve_client(&ctl->client[c], w, now);
	}
}
