/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the roceway command only: commands, the connection to the gateway's API, tables for
 * people. The command knows nothing of the gateway but its API.
 */
#ifndef TOOLS_ROCEWAY_H
#define TOOLS_ROCEWAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/say.h"

enum { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2 };

#define CLI_OPTS_MAX 24

/* FILE and PATH as an arg or operand: completed as files; "a|b": as these words. */
struct cli_opt {
	const char *name, *arg; /* "limit", "N"; arg NULL: a flag */
	const char *text;
};

struct cli {
	const char *socket;
	bool json;
	const struct cli_cmd *cmd;
	const char *value[CLI_OPTS_MAX]; /* values of cmd->opts; "": a set flag; NULL: not given */
	const char *operand;             /* NULL: none */
	const char **word;               /* all operands of a command that takes several */
	unsigned words;
	const struct cli_cmd *const *commands; /* all, NULL-terminated: for commands about them */
	const struct cli_opt *common;          /* options of every command */
};

/* A command, declared in the file of its handler and listed in main.c. */
struct cli_cmd {
	const char *name, *operand;        /* operand: "PATTERN", or NULL */
	bool many;                         /* any number of operands */
	bool no_json;                      /* it refuses --json */
	bool no_socket;                    /* it asks no gateway: its help leaves --socket out */
	const char *text;                  /* one line */
	const char *more;                  /* paragraphs for --help, or NULL */
	const char *const *letters;        /* "wwrite": -w is --write; up to a NULL; or NULL */
	const struct cli_opt *opts;        /* ends with a NULL name; or NULL */
	int (*run)(const struct cli *cli); /* returns an exit code */
};
extern const struct cli_cmd cmd_status, cmd_health, cmd_flows, cmd_tunnels, cmd_memory, cmd_counters,
    cmd_ports, cmd_neighbours, cmd_links, cmd_map, cmd_siblings, cmd_reservations, cmd_workers, cmd_offload,
    cmd_tenant, cmd_tunnel, cmd_controller, cmd_reload, cmd_drain, cmd_explain, cmd_analyze, cmd_metrics,
    cmd_completion, cmd_standby, cmd_top, cmd_report, cmd_doctor, cmd_anonymise, cmd_replay, cmd_capture,
    cmd_recorder, cmd_why;

/* Options and errors: cli.c */
const char *cli_value(const struct cli *cli, const char *opt); /* NULL: not given */
/* Whether the command takes this one of the common options. */
bool cli_takes(const struct cli_cmd *c, const struct cli_opt *common);
/* Prints "roceway: ..." and a line end on standard error. */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- the API: http.c ------------------------------------------------------------------------- */

/* Prints one line about a gateway that could not be asked: os_error, errno of the connection, or
 * why if that is 0. */
void cli_unreachable(const struct cli *cli, const char *why, long os_error);

/* GETs a page; the caller frees the text. NULL, after cli_error(): there is no good answer. *status
 * gets the HTTP status; with status NULL anything but 200 is an error. */
char *api_get(const struct cli *cli, const char *page, long *status);
/* The same as JSON; the caller owns it. */
json_t *api_get_json(const struct cli *cli, const char *page, long *status);
/* A GET was refused with 400: what the user wrote is wrong. */
bool api_misused(void);
/* Sends `body` (NULL: none) with another method, such as "PUT". NULL unless the gateway did it;
 * then an error line is printed that begins with `about` (NULL: nothing). */
json_t *api_send(
    const struct cli *cli, const char *method, const char *page, const char *body, const char *file);
/* Writes a page's path with a name in it, escaped. */
void api_page_of(char *page, size_t size, const char *path, const char *name);
/* Appends name=value, escaped, to a page's path, with ? or &. */
void api_query(char *page, size_t size, const char *name, const char *value);

/* --- the control center's API, over HTTPS: control.c ----------------------------------------- */

#define CONTROLS_MAX 16 /* replicas that --controller may name */

/* Options of a command that asks the control center. The environment replaces those that are
 * missing. */
#define CONTROL_OPTS                                                                                         \
	{"controller", "URLS", "the control center: URL[,URL]; default: $ROCEWAY_CONTROLLER"},               \
	    {"ca", "FILE", "its CA; default: $ROCEWAY_CA"},                                                  \
	    {"certificate", "FILE", "the client's certificate; default: $ROCEWAY_CERTIFICATE"},              \
	    {"key", "FILE", "its key; default: $ROCEWAY_KEY"},

struct control;
/* NULL, after cli_error(): an option is missing or wrong; *rc gets the exit code. */
struct control *control_new(const struct cli *cli, int *rc);
void control_free(struct control *k);
unsigned control_count(const struct control *k); /* number of replicas */
/* GETs a page of one replica. Returns the answer, a JSON object, with its HTTP status: 200 or 404.
 * NULL: the replica could not be asked; control_tell() reports why. */
json_t *control_get(struct control *k, unsigned replica, const char *page, long *status);
/*
 * Calls `each` with every entry of a list that a replica gives in pages (`path`, its member
 * `list`), until it returns false. The entry is the answer's: `each` takes a reference to keep it.
 * False: the replica could not be asked; control_tell() reports why.
 */
bool control_each(struct control *k, unsigned replica, const char *path, const char *list,
    bool (*each)(void *ctx, json_t *entry), void *ctx);
/* Calls cli_error() for each replica that could not be asked since control_new(). Returns how
 * many. */
unsigned control_tell(const struct control *k);

/* --- output: table.c ------------------------------------------------------------------------- */

#define TABLE_WIDTH 100

struct table;
/* Makes a table; `columns` has the headings, NULL-terminated. '>' in front: right-aligned; '~' in
 * front: may be wrapped if the table is too wide. */
struct table *table_new(const char *const *columns);
/* Adds the next cell; rows fill up. */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(struct table *t); /* prints and frees it */

/* An object's members line by line; arrays on one line. */
void print_object(const json_t *o);
void print_json(const json_t *j);
/* Prints "name value" with the name padded to `width`; a long value continues on further lines. */
void print_fact(const char *name, size_t width, const char *value);

const char *js(const json_t *o, const char *key); /* the member's text; "": there is none */
double jn(const json_t *o, const char *key);      /* the member's number; 0: there is none */
long long ji(const json_t *o, const char *key);
bool jb(const json_t *o, const char *key);

#endif
