/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/control/site_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define DIGITS (2 * BASE_SIPHASH_KEY)

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool key_parse(uint8_t key[BASE_SIPHASH_KEY], const char *text, size_t n)
{
	if (n != DIGITS && !(n == DIGITS + 1 && text[DIGITS] == '\n'))
		return false;
	for (unsigned i = 0; i < BASE_SIPHASH_KEY; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

int gw_site_key_read(uint8_t key[BASE_SIPHASH_KEY], const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const char *why = NULL;
	char text[DIGITS + 8];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		why = "expected a file of the gateway's user with mode 0600, closed to others";
	else if ((n = read(fd, text, sizeof(text))) < 0 || !key_parse(key, text, (size_t)n))
		why = "expected 32 hexadecimal digits";
	if (fd >= 0)
		close(fd);
	if (why)
		gw_log(GW_LOG_ERROR, "sibling", "site_key=%s: %s", path, why);
	return why ? RWY_EINVAL : 0;
}
