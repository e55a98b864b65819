/* SPDX-License-Identifier: Apache-2.0 */
/* The last document on disk: see keep.h. An incomplete file never appears under its name. */
#include "gateway/agent/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *text)
{
	size_t n = strlen(text);

	while (n) {
		const ssize_t w = write(fd, text, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return errno ? -errno : -EIO;
		text += w;
		n -= (size_t)w;
	}
	return fsync(fd) ? -errno : 0;
}

static int dir_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[256];

	if (!slash || (size_t)(slash - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (mkdir(*dir ? dir : "/", 0750) && errno != EEXIST)
		return -errno;
	int fd = open(*dir ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int keep_write(const char *path, const char *text)
{
	char tmp[300];
	int dir = dir_open(path), fd, rc;

	if (dir < 0)
		return dir;
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	rc = fd < 0 ? -errno : write_all(fd, text);
	if (fd >= 0)
		close(fd);
	if (!rc && rename(tmp, path))
		rc = -errno;
	if (rc && fd >= 0)
		unlink(tmp);
	if (!rc && fsync(dir))
		rc = -errno;
	close(dir);
	return rc;
}

int keep_read(const char *path, json_t **out, char *why, size_t size)
{
	json_error_t e;
	struct stat st;

	if (stat(path, &st) != 0) {
		if (errno != ENOENT) {
			snprintf(why, size, "%s", strerror(errno));
			return RWY_EINVAL;
		}
		snprintf(why, size, "there is none");
		return RWY_ENOENT;
	}
	if (S_ISDIR(st.st_mode)) { /* jansson has no words for it */
		snprintf(why, size, "%s", strerror(EISDIR));
		return RWY_EINVAL;
	}
	*out = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (json_is_object(*out))
		return 0;
	snprintf(why, size, "%s", *out ? "expected a JSON object" : e.text);
	json_decref(*out);
	*out = NULL;
	return RWY_EINVAL;
}
