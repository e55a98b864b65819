/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all commands: the values of options, and the line on standard error after a fault. */
#include "tools/roceway/roceway.h"

#include <stdarg.h>
#include <string.h>

void cli_error(const char *fmt, ...)
{
	va_list ap;

	fputs("roceway: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

bool cli_takes(const struct cli_cmd *c, const struct cli_opt *common)
{
	return !(c->no_json && !strcmp(common->name, "json")) &&
	       !(c->no_socket && !strcmp(common->name, "socket"));
}

const char *cli_value(const struct cli *cli, const char *opt)
{
	for (unsigned i = 0; cli->cmd->opts && cli->cmd->opts[i].name; i++)
		if (!strcmp(cli->cmd->opts[i].name, opt))
			return cli->value[i];
	return NULL;
}
