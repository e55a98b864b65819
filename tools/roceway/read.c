/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/roceway/read.h"

#include <stdio.h>
#include <unistd.h>

#include "tools/analyze/file.h"
#include "tools/roceway/roceway.h"

static void progress(uint64_t done, uint64_t total)
{
	if (total)
		fprintf(stderr, "\rroceway: read %3.0f %%", 100.0 * (double)done / (double)total);
	else
		fprintf(stderr, "\rroceway: read %s", say_bytes((double)done));
	fflush(stderr);
}

bool cli_read_captures(const struct cli *cli, struct an *a, const bool *too_large)
{
	const bool tty = isatty(2);
	struct an_file_error err;
	const char *cut_short;
	int rc = an_files_read(a, cli->word, cli->words, &cut_short, tty ? progress : NULL, &err);

	if (tty)
		fputs("\r\033[K", stderr);
	if (rc) {
		if (too_large && *too_large)
			cli_error("%s: more than 2 GiB of RoCEv2: replay a part of it", cli->word[0]);
		else
			cli_error("%s", err.text);
		return false;
	}
	if (cut_short)
		cli_error("%s: ends in the middle of a packet; read up to there", cut_short);
	return true;
}
