/* SPDX-License-Identifier: Apache-2.0 */
/* The key: at random, or in a file that only its owner reads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "rwy/endian.h"
#include "tools/anonymise/file.h"

#define DIGITS (2 * BASE_SIPHASH_KEY)

static int fail(struct anon_error *err, const char *path, const char *why)
{
	snprintf(err->text, sizeof(err->text), "%s: %s", path, why);
	return -1;
}

static int read_key(struct anon_key *key, int fd)
{
	static const char hex[] = "0123456789abcdef";
	char text[DIGITS + 2];
	ssize_t n = read(fd, text, sizeof(text));

	if (n < DIGITS || n > DIGITS + 1 || (n > DIGITS && text[DIGITS] != '\n'))
		return -1;
	for (unsigned i = 0; i < DIGITS; i++) {
		const char *at = memchr(hex, text[i], sizeof(hex) - 1);

		if (!at)
			return -1;
		key->k[i / 2] = (uint8_t)(key->k[i / 2] << 4 | (at - hex));
	}
	return 0;
}

static int write_key(const struct anon_key *key, int fd)
{
	char text[DIGITS + 2];

	for (unsigned i = 0; i < BASE_SIPHASH_KEY; i++)
		snprintf(text + (size_t)2 * i, 3, "%02x", key->k[i]);
	text[DIGITS] = '\n';
	return write(fd, text, DIGITS + 1) == DIGITS + 1 ? 0 : -1;
}

int anon_key_get(struct anon_key *key, const char *path, struct anon_error *err)
{
	int fd, rc;

	rwy_put64(key->k, base_random64());
	rwy_put64(key->k + 8, base_random64());
	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		rc = write_key(key, fd);
		if (close(fd) != 0 || rc != 0) {
			unlink(path);
			return fail(err, path, "cannot write the key");
		}
		return 0;
	}
	if (errno != EEXIST || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return fail(err, path, strerror(errno));
	rc = read_key(key, fd);
	close(fd);
	return rc == 0 ? 0 : fail(err, path, "is no key: 32 digits of 0-9a-f are one");
}
