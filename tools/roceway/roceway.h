/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the roceway command only: commands, the connection to the gateway's API, tables for people.
 * Not here: anything the gateway knows; this program only asks its API.
 */
#ifndef TOOLS_ROCEWAY_H
#define TOOLS_ROCEWAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2 };

#define CLI_OPTS_MAX 16

struct cli_opt {
	const char *name, *arg; /* "limit", "N"; arg NULL: a flag */
	const char *text;
};

struct cli {
	const char *socket;
	bool json;
	const struct cli_cmd *cmd;
	const char *value[CLI_OPTS_MAX]; /* of cmd->opts, "" for a flag, NULL: not given */
	const char *operand;             /* NULL: none */
	const char **word;               /* all of them, when the command takes many */
	unsigned words;
};

/* One command, declared in the file of its handler and listed in main.c. */
struct cli_cmd {
	const char *name, *operand;        /* operand: "PATTERN", or NULL */
	bool many;                         /* any number of them */
	const char *text;                  /* one line */
	const char *more;                  /* paragraphs for -h, or NULL */
	const struct cli_opt *opts;        /* up to a NULL name, or NULL */
	int (*run)(const struct cli *cli); /* returns an exit code */
};
extern const struct cli_cmd cmd_status, cmd_health, cmd_flows, cmd_tunnels, cmd_counters, cmd_ports,
    cmd_neighbours, cmd_siblings, cmd_workers, cmd_offload, cmd_tenant, cmd_tunnel, cmd_controller,
    cmd_reload, cmd_metrics, cmd_help, cmd_list_commands, cmd_version;

const char *cli_value(const struct cli *cli, const char *opt); /* NULL: not given */
/* One line on standard error, "roceway: ...". */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- the API: http.c ---------------------------------------------------------------------------- */

/* GETs a page; NULL, after cli_error, when there is no good answer. *status (may be NULL) gets the HTTP
 * status; without it, anything but 200 is an error. malloced. */
char *api_get(const struct cli *cli, const char *page, long *status);
json_t *api_get_json(const struct cli *cli, const char *page, long *status);
/* Sends `body` (NULL: nothing) with another method, "PUT". NULL, after telling why, unless the gateway did
 * it: in one line that begins with `about` (NULL: none). */
json_t *api_send(
    const struct cli *cli, const char *method, const char *page, const char *body, const char *file);
/* A page's address with a name in it, escaped. */
void api_page_of(char *page, size_t size, const char *path, const char *name);
/* name=value, escaped, appended to a page's address with ? or &. */
void api_query(char *page, size_t size, const char *name, const char *value);

/* --- for people: table.c --------------------------------------------------------------------------- */

#define TABLE_WIDTH 100

struct table;
/* Columns: a heading each; '>' in front: right-aligned; '~' in front: may be wrapped when the table is too
 * wide. NULL ends. */
struct table *table_new(const char *const *columns);
void table_add(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* the next cell; rows fill up */
void table_print(struct table *t);         /* and frees */

/* Texts for cells, in a ring of static buffers: good for one row. */
const char *say_bytes(double bytes);
const char *say_bits(double bytes_per_second);
const char *say_time(double seconds);
const char *say_count(double n);
const char *say_share(double ratio);

/* An object's members line by line; arrays on one line. */
void print_object(const json_t *o);
void print_json(const json_t *j);

const char *js(const json_t *o, const char *key); /* a string, "" when there is none */
double jn(const json_t *o, const char *key);      /* a number, 0 when there is none */
long long ji(const json_t *o, const char *key);
bool jb(const json_t *o, const char *key);

#endif
