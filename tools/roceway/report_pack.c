/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/roceway/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/roceway/roceway.h"

extern char **environ;

volatile sig_atomic_t report_stopped;

/* --- programs --------------------------------------------------------------------------------- */

int report_start(const char *const *argv, bool errors, int *from, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	int p[2], rc;

	if (pipe2(p, O_CLOEXEC))
		return errno;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	if (errors)
		posix_spawn_file_actions_adddup2(&fa, p[1], 2);
	else
		posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(pid, argv[0], &fa, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	*from = p[0];
	if (rc)
		close(p[0]);
	return rc;
}

int report_copy(int from, int to)
{
	static char buf[65536];

	while (!report_stopped) {
		const ssize_t n = read(from, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : 0;
		for (ssize_t at = 0; at < n;) {
			const ssize_t done = write(to, buf + at, (size_t)(n - at));

			if (done < 0 && errno != EINTR)
				return errno;
			at += done > 0 ? done : 0;
		}
	}
	return EINTR;
}

int report_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* --- the archive ------------------------------------------------------------------------------ */

/* The file that is written, and the one that it becomes. */
struct target {
	int fd;
	char path[PATH_MAX];
	char made[PATH_MAX + 8]; /* "": a device or a pipe, which is written as it is */
};

/* 0 or an errno. */
static int target_open(struct target *t, const char *output)
{
	struct stat st;
	const bool is = !stat(output, &st);

	*t->made = 0;
	if (is && !S_ISREG(st.st_mode)) {
		t->fd = open(output, O_WRONLY | O_CLOEXEC);
		return t->fd < 0 ? errno : 0;
	}
	/* of a symbolic link the file that it leads to: the link stays */
	if (!is && !lstat(output, &st))
		return ENOENT;
	if (is && !realpath(output, t->path))
		return errno;
	if (!is && (size_t)snprintf(t->path, sizeof(t->path), "%s", output) >= sizeof(t->path))
		return ENAMETOOLONG;
	snprintf(t->made, sizeof(t->made), "%s.XXXXXX", t->path);
	t->fd = mkostemp(t->made, O_CLOEXEC); /* its mode is 0600 */
	if (t->fd < 0)
		*t->made = 0;
	return t->fd < 0 ? errno : 0;
}

/* rc: 0 if the file is whole, else an errno. 0 or an errno. */
static int target_close(struct target *t, int rc)
{
	if (close(t->fd) && !rc)
		rc = errno;
	if (*t->made && !rc && rename(t->made, t->path))
		rc = errno;
	if (*t->made && rc)
		unlink(t->made);
	return rc;
}

int report_pack(const char *dir, const char *output)
{
	/* One folder, for people who unpack it where they are. */
	const char *const argv[] = {
	    "tar", "-cz", "--transform", "s,^\\.,roceway-report,", "-C", dir, ".", NULL};
	struct target to;
	int from = -1, rc = target_open(&to, output), ran, status = 0;
	pid_t pid = 0;

	if (rc) {
		cli_error("cannot write %s: %s", output, strerror(rc));
		return EXIT_ERROR;
	}
	ran = report_start(argv, false, &from, &pid);
	if (!ran) {
		rc = report_copy(from, to.fd);
		close(from);
		status = report_wait(pid);
	}
	rc = target_close(&to, ran ? ran : rc ? rc : status ? ECHILD : 0);
	if (ran)
		cli_error("cannot run tar: %s", strerror(ran));
	else if (rc == ECHILD && status)
		cli_error("cannot write %s: tar failed", output);
	else if (rc)
		cli_error("cannot write %s: %s", output, report_stopped ? "interrupted" : strerror(rc));
	else
		printf("%s\n", output);
	return rc ? EXIT_ERROR : EXIT_OK;
}
