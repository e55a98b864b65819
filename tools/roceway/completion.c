/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway completion: scripts for bash, zsh and fish, written from the table of commands. A script
 * asks no program when it runs.
 */
#include "tools/roceway/roceway.h"

#include <string.h>

/* The kinds of completion of an argument or operand. */
enum kind { NOTHING, FILES, WORDS, COMMANDS };

static enum kind kind_of(const char *arg)
{
	if (!arg)
		return NOTHING;
	if (!strcmp(arg, "FILE") || !strcmp(arg, "PATH"))
		return FILES;
	if (!strcmp(arg, "COMMAND"))
		return COMMANDS;
	return strchr(arg, '|') && *arg >= 'a' && *arg <= 'z' ? WORDS : NOTHING;
}

/* Prints the words of "a|b ..." with blanks between them; NULL: none. */
static void put_words(const char *arg)
{
	for (; arg && *arg && *arg != ' '; arg++)
		putchar(*arg == '|' ? ' ' : *arg);
}

static void put_names(const struct cli *cli)
{
	for (unsigned i = 0; cli->commands[i]; i++)
		printf("%s%s", i ? " " : "", cli->commands[i]->name);
}

static void put_values(const struct cli *cli, const char *arg)
{
	if (kind_of(arg) == COMMANDS)
		put_names(cli);
	else if (kind_of(arg) == WORDS)
		put_words(arg);
}

/* Prints a text inside single quotes of a shell; fish and the others differ only in the quote. */
static void put_quoted(const char *text, const char *quote)
{
	putchar('\'');
	for (; *text; text++)
		if (*text == '\'')
			fputs(quote, stdout);
		else
			putchar(*text);
	putchar('\'');
}

/* --- bash ------------------------------------------------------------------------------------ */

/* c: the command whose common options these are; NULL: take all. */
static void bash_options(const struct cli_cmd *c, const struct cli_opt *o)
{
	for (; o && o->name; o++)
		if (!c || cli_takes(c, o))
			printf(" --%s", o->name);
}

/* The case of `what prev` for each option with an argument. */
static void bash_arguments(const char *cmd, const struct cli_opt *o)
{
	for (; o && o->name; o++) {
		if (!o->arg)
			continue;
		printf("\t'%s --%s') ", cmd, o->name);
		if (kind_of(o->arg) == FILES) {
			puts("files=1 ;;");
		} else {
			fputs("words='", stdout);
			put_words(kind_of(o->arg) == WORDS ? o->arg : NULL);
			puts("' ;;");
		}
	}
}

/* The options that take a value, for a shell's pattern. */
static void bash_valued(const struct cli *cli)
{
	fputs("--socket", stdout);
	for (unsigned i = 0; cli->commands[i]; i++)
		for (const struct cli_opt *o = cli->commands[i]->opts; o && o->name; o++)
			if (o->arg)
				printf(" | %s:--%s", cli->commands[i]->name, o->name);
}

static void bash(const struct cli *cli)
{
	puts("_roceway()\n{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	     "\tlocal cmd= words= files= i\n"
	     "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	     "\t\tcase ${COMP_WORDS[i]} in");
	puts("\t\t--socket) ((i++)) ;;\n\t\t-*) ;;\n\t\t*) cmd=${COMP_WORDS[i]}; break ;;\n\t\tesac\n\tdone\n"
	     "\tcase $cmd:$prev in");
	fputs("\t*:", stdout);
	bash_valued(cli);
	puts(") ;;\n\t*) prev= ;;\n\tesac\n\tcase \"${prev:+${cmd} $prev}\" in");
	puts("\t*' --socket') files=1 ;;");
	for (unsigned i = 0; cli->commands[i]; i++)
		bash_arguments(cli->commands[i]->name, cli->commands[i]->opts);
	fputs("\t*)\n\t\tcase \"$cmd $cur\" in\n\t\t' '*) words='", stdout);
	put_names(cli);
	bash_options(NULL, cli->common);
	puts("' ;;");
	for (unsigned i = 0; cli->commands[i]; i++) {
		const struct cli_cmd *c = cli->commands[i];

		printf("\t\t'%s -'*) words='", c->name);
		bash_options(NULL, c->opts);
		bash_options(c, cli->common);
		puts("' ;;");
		printf("\t\t'%s '*) ", c->name);
		if (kind_of(c->operand) == FILES) {
			puts("files=1 ;;");
			continue;
		}
		fputs("words='", stdout);
		put_values(cli, c->operand);
		puts("' ;;");
	}
	puts("\t\tesac ;;\n\tesac\n"
	     "\tif [[ $files ]]; then\n\t\tcompopt -o filenames 2>/dev/null\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n\telse\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n\tfi\n}\n"
	     "complete -F _roceway roceway");
}

/* --- zsh ------------------------------------------------------------------------------------- */

/* A text of _arguments: brackets and colons have a meaning there. */
static void zsh_text(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'') {
			fputs("'\\''", stdout);
			continue;
		}
		if (strchr(special, *text))
			putchar('\\');
		putchar(*text);
	}
}

static void zsh_action(const struct cli *cli, const char *arg)
{
	const enum kind kind = kind_of(arg);

	if (kind == FILES) {
		fputs("_files", stdout);
	} else if (kind == WORDS || kind == COMMANDS) {
		putchar('(');
		put_values(cli, arg);
		putchar(')');
	}
}

/* c: the command whose common options these are; NULL: take all. */
static void zsh_options(const struct cli *cli, const struct cli_cmd *c, const struct cli_opt *o)
{
	for (; o && o->name; o++) {
		if (c && !cli_takes(c, o))
			continue;
		printf(" \\\n\t\t\t'--%s[", o->name);
		zsh_text(o->text, "[]:\\");
		putchar(']');
		if (o->arg) {
			putchar(':');
			zsh_text(kind_of(o->arg) == WORDS ? o->name : o->arg, "[]:\\");
			putchar(':');
			zsh_action(cli, o->arg);
		}
		putchar('\'');
	}
}

static void zsh(const struct cli *cli)
{
	puts("#compdef roceway\n_roceway()\n{\n\tlocal curcontext=$curcontext state line\n"
	     "\tlocal -a commands=(");
	for (unsigned i = 0; cli->commands[i]; i++) {
		printf("\t\t'%s:", cli->commands[i]->name);
		zsh_text(cli->commands[i]->text, ":\\");
		puts("'");
	}
	fputs("\t)\n\t_arguments -C", stdout);
	zsh_options(cli, NULL, cli->common);
	puts(" \\\n\t\t'1: :->command' '*:: :->rest'\n\tcase $state in\n"
	     "\tcommand) _describe command commands ;;\n\trest)\n\t\tcase $words[1] in");
	for (unsigned i = 0; cli->commands[i]; i++) {
		const struct cli_cmd *c = cli->commands[i];

		printf("\t\t%s)\n\t\t\t_arguments", c->name);
		zsh_options(cli, NULL, c->opts);
		zsh_options(cli, c, cli->common);
		if (kind_of(c->operand) != NOTHING) {
			const bool all = c->many && kind_of(c->operand) == FILES;

			printf(" \\\n\t\t\t'%s:%s:", all ? "*" : "1",
			    kind_of(c->operand) == WORDS ? "action" : c->operand);
			zsh_action(cli, c->operand);
			putchar('\'');
		}
		puts(" ;;");
	}
	puts("\t\tesac ;;\n\tesac\n}\n"
	     "if [ \"$funcstack[1]\" = _roceway ]; then _roceway \"$@\"; else compdef _roceway roceway; fi");
}

/* --- fish ------------------------------------------------------------------------------------ */

/* An option, or one of the common options: with all commands that take it. */
static void fish_when(const struct cli *cli, const char *when, const struct cli_opt *o)
{
	const char *head = " -n 'not __fish_seen_subcommand_from";

	fputs(when, stdout);
	for (unsigned i = 0; !*when && cli->commands[i]; i++) {
		if (cli_takes(cli->commands[i], o))
			continue;
		printf("%s %s", head, cli->commands[i]->name);
		head = "";
	}
	if (!*head)
		putchar('\'');
}

static void fish_options(const struct cli *cli, const char *when, const struct cli_opt *o)
{
	for (; o && o->name; o++) {
		fputs("complete -c roceway", stdout);
		fish_when(cli, when, o);
		printf(" -l %s", o->name);
		if (o->arg)
			fputs(kind_of(o->arg) == FILES ? " -r -F" : " -x", stdout);
		if (kind_of(o->arg) == WORDS) {
			fputs(" -a '", stdout);
			put_values(cli, o->arg);
			putchar('\'');
		}
		fputs(" -d ", stdout);
		put_quoted(o->text, "\\'");
		putchar('\n');
	}
}

static void fish(const struct cli *cli)
{
	char when[128];

	puts("complete -c roceway -f");
	fish_options(cli, "", cli->common);
	for (unsigned i = 0; cli->commands[i]; i++) {
		printf("complete -c roceway -n __fish_use_subcommand -a %s -d ", cli->commands[i]->name);
		put_quoted(cli->commands[i]->text, "\\'");
		putchar('\n');
	}
	for (unsigned i = 0; cli->commands[i]; i++) {
		const struct cli_cmd *c = cli->commands[i];
		const enum kind kind = kind_of(c->operand);

		snprintf(when, sizeof(when), " -n '__fish_seen_subcommand_from %s'", c->name);
		fish_options(cli, when, c->opts);
		if (kind == FILES)
			printf("complete -c roceway%s -F\n", when);
		if (kind == WORDS || kind == COMMANDS) {
			printf("complete -c roceway%s -a '", when);
			put_values(cli, c->operand);
			puts("'");
		}
	}
}

/* --- the command ------------------------------------------------------------------------------ */

static int run_completion(const struct cli *cli)
{
	static const struct {
		const char *name;
		void (*print)(const struct cli *cli);
	} shell[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

	for (unsigned i = 0; cli->operand && i < sizeof(shell) / sizeof(shell[0]); i++) {
		if (strcmp(shell[i].name, cli->operand) != 0)
			continue;
		if (strcmp(cli->operand, "zsh") != 0) /* there #compdef must be the first line */
			puts("# Completion for roceway, made by `roceway completion`.");
		shell[i].print(cli);
		return EXIT_OK;
	}
	cli_error("completion: expected bash, zsh or fish");
	return EXIT_USAGE;
}

const struct cli_cmd cmd_completion = {.name = "completion",
    .no_json = true,
    .no_socket = true,
    .operand = "bash|zsh|fish",
    .text = "a completion script for a shell",
    .more = "For this shell only: source <(roceway completion bash); roceway completion fish | source.\n"
            "Packages install the three scripts where shells look for them.\n",
    .run = run_completion};
