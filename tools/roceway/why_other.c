/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `roceway why` at the other gateway: the same command there, by its API's socket or by ssh. Each
 * gateway knows its own host, so what is the local host here is the remote one there.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/roceway/why.h"

#define ANSWER_MAX (16u << 20)
#define WAIT_MS    30000
#define ARGS_MAX   32

extern char **environ;

struct args {
	const char *v[ARGS_MAX]; /* ends with a NULL */
	unsigned n;
};

static void add(struct args *a, const char *word)
{
	if (a->n + 1 < ARGS_MAX)
		a->v[a->n++] = word;
}

/* The shell at the other end takes it as one word. */
static bool is_plain(const char *s)
{
	while (*s && (isalnum((unsigned char)*s) || strchr("._:-", *s)))
		s++;
	return !*s;
}

/* False, after cli_error(): it cannot be asked. */
static bool command_of(struct args *a, const struct why_ask *q, const char *qpn)
{
	*a = (struct args){.n = 0};
	if (strchr(q->where, '/')) {
		add(a, "/proc/self/exe");
		add(a, "--socket");
		add(a, q->where);
	} else if (q->tenant && !is_plain(q->tenant)) {
		cli_error("--other: the name of tenant %s cannot be given to ssh", q->tenant);
		return false;
	} else {
		static const char *const ssh[] = {
		    "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "--"};

		for (unsigned i = 0; i < sizeof(ssh) / sizeof(ssh[0]); i++)
			add(a, ssh[i]);
		add(a, q->where);
		add(a, "roceway");
	}
	add(a, "why");
	add(a, "--json");
	add(a, "--other="); /* that one asks nobody, whatever its environment says */
	add(a, q->remote);
	add(a, q->local);
	if (*qpn)
		add(a, qpn);
	add(a, "--interval");
	add(a, "0");
	add(a, "--entries");
	add(a, q->entries);
	if (q->tenant) {
		add(a, "--tenant");
		add(a, q->tenant);
	}
	return true;
}

/* Starts it; *out is what it writes. False, after cli_error(). */
static bool start(const struct args *a, pid_t *pid, int *out)
{
	posix_spawn_file_actions_t actions;
	int fd[2], rc;

	if (pipe(fd) != 0) {
		cli_error("%s", strerror(errno));
		return false;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fd[0]);
	posix_spawn_file_actions_addclose(&actions, fd[1]);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
	rc = posix_spawnp(pid, a->v[0], &actions, NULL, (char *const *)(const void *)a->v, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fd[1]);
	*out = fd[0];
	if (!rc)
		return true;
	cli_error("%s: %s", a->v[0], strerror(rc));
	close(fd[0]);
	return false;
}

static long long ms_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Reads to the end. NULL: it takes too long, or is too much. The caller frees the text. */
static char *read_answer(int fd, size_t *len)
{
	const long long end = ms_now() + WAIT_MS;
	char *text = malloc(ANSWER_MAX);

	*len = 0;
	while (text && *len < ANSWER_MAX) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const long long left = end - ms_now();
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			break;
		n = read(fd, text + *len, ANSWER_MAX - *len);
		if (n == 0)
			return text;
		if (n > 0)
			*len += (size_t)n;
		else if (errno != EINTR)
			break;
	}
	free(text);
	return NULL;
}

/* The gateway of our local host answered: the same one. */
static bool is_of(const json_t *answer, const char *local)
{
	const json_t *flow = json_object_get(answer, "flow"),
	             *entry = json_array_get(json_object_get(answer, "entries"), 0);

	return !strcmp(js(json_is_object(flow) ? flow : entry, "local"), local);
}

/* True: it is an answer of the other gateway. */
static bool is_good(const struct why_ask *q, const json_t *j)
{
	if (!json_is_array(json_object_get(j, "sentences")) || !json_is_array(json_object_get(j, "entries")))
		cli_error("the other gateway, %s, gives no answer", q->where);
	else if (is_of(j, q->local))
		cli_error("%s is the gateway of %s itself, not the other one", q->where, q->local);
	else
		return true;
	return false;
}

json_t *why_ask_other(const struct why_ask *q)
{
	char qpn[24] = "", *text;
	int fd, status = 0;
	json_t *j = NULL;
	struct args a;
	size_t len;
	pid_t pid;

	if (q->qpn)
		snprintf(qpn, sizeof(qpn), "%lld", q->qpn);
	if (!command_of(&a, q, qpn) || !start(&a, &pid, &fd))
		return NULL;
	text = read_answer(fd, &len);
	close(fd);
	if (!text)
		kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (text && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		j = json_loadb(text, len, 0, NULL);
	free(text);
	if (is_good(q, j))
		return j;
	json_decref(j);
	return NULL;
}
