/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway, the operator's command: the command line, choice of the command, help. Each command is
 * in the file that declares it.
 */
#include "tools/roceway/roceway.h"

#include <stdlib.h>
#include <string.h>

#include "base/word.h"

#define DEFAULT_SOCKET "/run/roceway/gateway.sock"
#define OPTION_MAX     32 /* bytes of an option's name */

static const struct cli_cmd cmd_help, cmd_list_commands, cmd_version;

static const struct cli_cmd *const commands[] = {
    &cmd_status,
    &cmd_top,
    &cmd_health,
    &cmd_flows,
    &cmd_recorder,
    &cmd_why,
    &cmd_tunnels,
    &cmd_memory,
    &cmd_counters,
    &cmd_ports,
    &cmd_neighbours,
    &cmd_links,
    &cmd_map,
    &cmd_siblings,
    &cmd_standby,
    &cmd_reservations,
    &cmd_workers,
    &cmd_offload,
    &cmd_tunnel,
    &cmd_tenant,
    &cmd_controller,
    &cmd_explain,
    &cmd_capture,
    &cmd_analyze,
    &cmd_anonymise,
    &cmd_replay,
    &cmd_reload,
    &cmd_drain,
    &cmd_metrics,
    &cmd_report,
    &cmd_doctor,
    &cmd_help,
    &cmd_list_commands,
    &cmd_completion,
    &cmd_version,
    NULL,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]) - 1)

static const struct cli_opt common_opts[] = {
    {"socket", "PATH", "the gateway's socket; default: $ROCEWAY_SOCKET, or " DEFAULT_SOCKET},
    {"json", NULL, "print JSON"},
    {"help", NULL, "this text"},
    {NULL, NULL, NULL},
};

static const struct cli_cmd *command_find(const char *name)
{
	for (unsigned i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

/* --- the nearest word ------------------------------------------------------------------------- */

static void nearer(const char *word, const char *candidate, const char **near, unsigned *best)
{
	const unsigned d = !strncmp(word, candidate, strlen(word)) ? 1 : base_word_distance(word, candidate);

	if (d < *best) {
		*best = d;
		*near = candidate;
	}
}

static int fail_command(const char *name)
{
	unsigned best = (unsigned)strlen(name) / 2 + 1;
	const char *near = NULL;

	for (unsigned i = 0; i < COMMANDS; i++)
		nearer(name, commands[i]->name, &near, &best);
	if (near)
		cli_error("no command %s: did you mean %s?", name, near);
	else
		cli_error("no command %s: roceway help lists them", name);
	return EXIT_USAGE;
}

static int fail_option(const struct cli_cmd *cmd, const char *name)
{
	unsigned best = (unsigned)strlen(name) / 2 + 1;
	const char *near = NULL;

	for (const struct cli_opt *o = cmd ? cmd->opts : NULL; o && o->name; o++)
		nearer(name, o->name, &near, &best);
	for (const struct cli_opt *o = common_opts; o->name; o++)
		nearer(name, o->name, &near, &best);
	if (near)
		cli_error("no option --%s: did you mean --%s?", name, near);
	else
		cli_error(
		    "no option --%s: roceway %s%s-h lists them", name, cmd ? cmd->name : "", cmd ? " " : "");
	return EXIT_USAGE;
}

/* --- help ------------------------------------------------------------------------------------- */

static void print_opts(const struct cli_cmd *c, const struct cli_opt *o)
{
	for (; o && o->name; o++) {
		char left[64];

		if (c && !cli_takes(c, o))
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		printf("  %-18s  %s\n", left, o->text);
	}
}

static void help_command(const struct cli_cmd *c)
{
	printf("roceway %s%s%s%s%s: %s\n", c->name, c->opts ? " [OPTIONS]" : "", c->operand ? " [" : "",
	    c->operand ? c->operand : "", c->operand ? "]" : "", c->text);
	if (c->more)
		printf("\n%s", c->more);
	printf("\nOptions:\n");
	print_opts(c, c->opts);
	print_opts(c, common_opts);
}

static void help_all(void)
{
	printf("roceway [OPTIONS] COMMAND ...: asks a Roceway gateway on this machine\n"
	       "or (explain) the control center; takes and reads captures (capture, analyze,\n"
	       "anonymise, replay)\n\nCommands:\n");
	for (unsigned i = 0; i < COMMANDS; i++)
		printf("  %-18s  %s\n", commands[i]->name, commands[i]->text);
	printf("\nOptions, before or after the command (COMMAND -h tells its own):\n");
	print_opts(NULL, common_opts);
	printf("  %-18s  %s\n", "-V, --version", "the version");
	printf("\nExit status: 0 done; 1 no answer, or refused; 2 wrong usage.\n");
}

static int run_help(const struct cli *cli)
{
	const struct cli_cmd *c = cli->operand ? command_find(cli->operand) : NULL;

	if (cli->operand && !c)
		return fail_command(cli->operand);
	if (c)
		help_command(c);
	else
		help_all();
	return EXIT_OK;
}

static const struct cli_cmd cmd_help = {.name = "help",
    .operand = "COMMAND",
    .no_json = true,
    .no_socket = true,
    .text = "help on commands",
    .run = run_help};

static json_t *json_opts(const struct cli_opt *o)
{
	json_t *list = json_array();

	for (; o && o->name; o++)
		json_array_append_new(list,
		    json_pack("{s:s, s:s?, s:s}", "name", o->name, "argument", o->arg, "text", o->text));
	return list;
}

/* The whole table: the manual page is made from it. */
static int list_json(void)
{
	json_t *list = json_array(), *all;

	for (unsigned i = 0; i < COMMANDS; i++) {
		const struct cli_cmd *c = commands[i];

		json_array_append_new(list,
		    json_pack("{s:s, s:s?, s:b, s:s, s:s?, s:o}", "name", c->name, "operand", c->operand,
		        "many", c->many, "text", c->text, "more", c->more, "options", json_opts(c->opts)));
	}
	all = json_pack("{s:o, s:o}", "commands", list, "options", json_opts(common_opts));
	print_json(all);
	json_decref(all);
	return EXIT_OK;
}

static int run_list_commands(const struct cli *cli)
{
	const struct cli_cmd *c = cli->operand ? command_find(cli->operand) : NULL;

	if (cli->operand && !c)
		return fail_command(cli->operand);
	if (cli->json)
		return list_json();
	for (unsigned i = 0; !c && i < COMMANDS; i++)
		puts(commands[i]->name);
	for (const struct cli_opt *o = c ? c->opts : NULL; o && o->name; o++)
		printf("--%s\n", o->name);
	for (const struct cli_opt *o = common_opts; c && o->name; o++)
		if (cli_takes(c, o))
			printf("--%s\n", o->name);
	return EXIT_OK;
}

static const struct cli_cmd cmd_list_commands = {.name = "list-commands",
    .operand = "COMMAND",
    .no_socket = true,
    .text = "the commands' names, or a command's options, one a line",
    .more = "With --json: every command with its operands, options and help.\n",
    .run = run_list_commands};

static int run_version(const struct cli *cli)
{
	if (cli->json)
		printf("{\"version\": \"%s\"}\n", RWY_VERSION);
	else
		printf("roceway %s\n", RWY_VERSION);
	return EXIT_OK;
}

static const struct cli_cmd cmd_version = {
    .name = "version", .no_socket = true, .text = "this program's version", .run = run_version};

/* --- the command line ------------------------------------------------------------------------- */

struct line {
	struct cli cli;
	bool help, version;
};

static void apply_common(struct line *l, const char *name, const char *value)
{
	if (!strcmp(name, "socket"))
		l->cli.socket = value;
	else if (!strcmp(name, "json"))
		l->cli.json = true;
	else
		l->help = true;
}

/* The option of a letter; NULL: there is none. */
static const char *letter_option(const struct cli_cmd *cmd, char letter)
{
	for (const char *const *l = cmd ? cmd->letters : NULL; l && *l; l++)
		if (**l == letter)
			return *l + 1;
	return NULL;
}

/* Reads --name, --name=value or --name value; -n value or -nvalue, of a letter that the command
 * has. Returns an exit code, and advances *argv to the last word used. */
static int read_option(struct line *l, char ***argv)
{
	const char *word = **argv + 2, *value = strchr(word, '=');
	char name[OPTION_MAX + 1];
	const struct cli_opt *table[2] = {l->cli.cmd ? l->cli.cmd->opts : NULL, common_opts};

	if (word[-1] == '-')
		snprintf(name, sizeof(name), "%.*s", (int)(value ? value - word : (long)strlen(word)), word);
	else
		snprintf(name, sizeof(name), "%s", letter_option(l->cli.cmd, word[-1]));
	if (word[-1] != '-')
		value = *word ? word - 1 : NULL; /* -wFILE */
	for (unsigned t = 0; t < 2; t++) {
		for (unsigned i = 0; table[t] && table[t][i].name; i++) {
			const struct cli_opt *o = &table[t][i];

			if (strcmp(o->name, name) != 0)
				continue;
			if (!o->arg && value) {
				cli_error("--%s takes no value", name);
				return EXIT_USAGE;
			}
			if (o->arg && !value && !(*argv)[1]) {
				cli_error("--%s needs a value: %s", name, o->arg);
				return EXIT_USAGE;
			}
			value = !o->arg ? "" : value ? value + 1 : *++*argv;
			if (t)
				apply_common(l, name, value);
			else
				l->cli.value[i] = value;
			return EXIT_OK;
		}
	}
	return fail_option(l->cli.cmd, name);
}

static int read_word(struct line *l, const char *word)
{
	if (!l->cli.cmd) {
		l->cli.cmd = command_find(word);
		return l->cli.cmd ? EXIT_OK : fail_command(word);
	}
	if (l->cli.cmd->many) {
		l->cli.word[l->cli.words++] = word;
		return EXIT_OK;
	}
	if (!l->cli.cmd->operand || l->cli.operand) {
		cli_error("%s: one word too many for %s", word, l->cli.cmd->name);
		return EXIT_USAGE;
	}
	l->cli.operand = word;
	return EXIT_OK;
}

static int read_line(struct line *l, char **argv)
{
	int rc = EXIT_OK;

	for (argv++; *argv && !rc; argv++) {
		if (!strcmp(*argv, "-h"))
			l->help = true;
		else if (!strcmp(*argv, "-V") || !strcmp(*argv, "--version"))
			l->version = true;
		else if (!strncmp(*argv, "--", 2) && (*argv)[2])
			rc = read_option(l, &argv);
		else if (**argv == '-' && letter_option(l->cli.cmd, (*argv)[1]))
			rc = read_option(l, &argv);
		else if (**argv == '-' && (*argv)[1]) {
			cli_error("no option %s: roceway -h lists them", *argv);
			rc = EXIT_USAGE;
		} else
			rc = read_word(l, *argv);
	}
	return rc;
}

static int run_line(struct line *l, char **argv)
{
	int rc = read_line(l, argv);

	if (rc)
		return rc;
	if (l->version)
		return run_version(&l->cli);
	if (l->help || !l->cli.cmd) {
		if (l->cli.cmd)
			help_command(l->cli.cmd);
		else
			help_all();
		return l->help ? EXIT_OK : EXIT_USAGE;
	}
	if (l->cli.json && l->cli.cmd->no_json) {
		cli_error("%s has no JSON", l->cli.cmd->name);
		return EXIT_USAGE;
	}
	rc = l->cli.cmd->run(&l->cli);
	if (rc == EXIT_ERROR && api_misused())
		rc = EXIT_USAGE;
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("cannot write to standard output");
		rc = rc ? rc : EXIT_ERROR;
	}
	return rc;
}

int main(int argc, char **argv)
{
	const char *env = getenv("ROCEWAY_SOCKET");
	struct line l = {
	    .cli = {
	        .socket = env && *env ? env : DEFAULT_SOCKET, .commands = commands, .common = common_opts}};
	int rc = EXIT_ERROR;

	l.cli.word = calloc((size_t)argc + 1, sizeof(*l.cli.word));
	if (l.cli.word)
		rc = run_line(&l, argv);
	else
		cli_error("out of memory");
	free(l.cli.word);
	return rc;
}
