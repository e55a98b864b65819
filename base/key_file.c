/* SPDX-License-Identifier: Apache-2.0 */
#include "base/key_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool base_key_private(const char *path, char *why, size_t size)
{
	struct stat st;

	if (stat(path, &st) != 0) {
		snprintf(why, size, "%.160s: %s", path, strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode) || (st.st_mode & 037)) {
		snprintf(why, size,
		    "%.160s: expected a file that others can neither read nor write (mode 0600 or 0640), "
		    "found mode %04o",
		    path, (unsigned)(st.st_mode & 07777));
		return false;
	}
	return true;
}
