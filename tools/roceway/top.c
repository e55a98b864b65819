/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway top: tunnels, flows or tenants, live. This file is the terminal and its keys;
 * top_sample.c asks the gateway, top_show.c draws. Without a terminal it prints plain screens.
 */
#include "tools/roceway/top.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define KEY_ESC 27

static const struct cli_opt top_opts[] = {
    {"view", "tunnels|flows|tenants", "begin with these; default: tunnels"},
    {"interval", "SECONDS", "between two samples, 0.1 to 3600; default: 1"},
    {"count", "N", "end after N screens; default: never, and 1 without a terminal"},
    {NULL, NULL, NULL},
};

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	if (sig != SIGWINCH)
		ended = 1;
}

/* --- the terminal ---------------------------------------------------------------------------- */

static void terminal_size(struct top_look *look)
{
	struct winsize w;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col && w.ws_row) {
		look->width = w.ws_col;
		look->height = w.ws_row;
	}
}

/* The alternate screen, without a cursor; keys without Enter. */
static void terminal_begin(struct termios *saved)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct termios t;

	tcgetattr(STDIN_FILENO, saved);
	t = *saved;
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGWINCH, &sa, NULL);
	fputs("\x1b[?1049h\x1b[?25l", stdout);
}

static void terminal_end(const struct termios *saved)
{
	fputs("\x1b[?25h\x1b[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, saved);
}

/* --- keys ------------------------------------------------------------------------------------ */

struct top {
	struct top_look look;
	enum top_view view;
	size_t found;     /* rows that pass the filter */
	bool quit, again; /* again: take a new sample now */
};

static void change_view(struct top *t, enum top_view view)
{
	static const char *const first_sort[TOP_VIEWS] = {"SENDING", "SENDING", "FROM HOSTS"};
	const struct top_column *c = top_columns(view);

	t->view = view;
	t->again = true;
	t->look.first = 0;
	t->look.up = false;
	for (unsigned i = 0; c[i].title; i++)
		if (!strcmp(c[i].title, first_sort[view]))
			t->look.sort = i;
}

static void type_filter(struct top *t, int key)
{
	const size_t n = strlen(t->look.filter);

	t->look.first = 0;
	if (key == '\r' || key == '\n') {
		t->look.typing = false;
	} else if (key == KEY_ESC) {
		t->look.typing = false;
		*t->look.filter = 0;
	} else if ((key == 127 || key == 8) && n) {
		t->look.filter[n - 1] = 0;
	} else if (key >= ' ' && key < 127 && n < TOP_FILTER - 1) {
		t->look.filter[n] = (char)key;
		t->look.filter[n + 1] = 0;
	}
}

static void move_sort(struct top *t, int by)
{
	const struct top_column *c = top_columns(t->view);
	unsigned n = 0;

	while (c[n].title)
		n++;
	if (n)
		t->look.sort = (t->look.sort + n + (unsigned)by) % n;
}

static void scroll(struct top *t, long by)
{
	const size_t first = by < 0 && t->look.first < (size_t)-by ? 0 : t->look.first + (size_t)by;

	t->look.first = first < t->found ? first : t->found ? t->found - 1 : 0;
}

static void take_key(struct top *t, int key)
{
	if (t->look.typing) {
		type_filter(t, key);
		return;
	}
	if (key >= '1' && key < '1' + TOP_VIEWS)
		change_view(t, (enum top_view)(key - '1'));
	else if (key == '\t')
		change_view(t, (t->view + 1) % TOP_VIEWS);
	else if (key == '<' || key == '>')
		move_sort(t, key == '<' ? -1 : 1);
	else if (key == 'r')
		t->look.up = !t->look.up;
	else if (key == '/')
		t->look.typing = true;
	else if (key == ' ')
		t->look.paused = !t->look.paused;
	else if (key == 'j' || key == 'k')
		scroll(t, key == 'j' ? 1 : -1);
	else if (key == 'q')
		t->quit = true;
}

/* Arrow and page keys are ESC [ and a letter or number. Other sequences do nothing. */
static void take_keys(struct top *t)
{
	char b[64];
	const ssize_t n = read(STDIN_FILENO, b, sizeof(b));

	if (n <= 0)
		t->quit = true;
	for (ssize_t i = 0; i < n; i++) {
		if (b[i] != KEY_ESC || i + 2 >= n || b[i + 1] != '[') {
			take_key(t, (unsigned char)b[i]);
			continue;
		}
		i += 2;
		if (b[i] == 'A' || b[i] == 'B')
			scroll(t, b[i] == 'B' ? 1 : -1);
		else if (b[i] == 'C' || b[i] == 'D')
			move_sort(t, b[i] == 'D' ? -1 : 1);
		else if (b[i] == '5' || b[i] == '6')
			scroll(
			    t, (b[i] == '6' ? 1 : -1) * (long)(t->look.height > 6 ? t->look.height - 6 : 1));
		while (i + 1 < n && b[i] >= '0' && b[i] <= '9')
			i++;
	}
}

/* --- running --------------------------------------------------------------------------------- */

/* Shows the sample again after each key, until the interval is over or a new sample is needed. */
static void keys_until(struct top *t, struct top_sample *s, double seconds)
{
	double left = seconds * 1000;

	while (left > 0 && !t->quit && !t->again && !ended) {
		struct pollfd p = {STDIN_FILENO, POLLIN, 0};
		const int step = left < 50 ? (int)left + 1 : 50;
		const int got = poll(&p, 1, step);

		if (got > 0)
			take_keys(t);
		terminal_size(&t->look);
		if (got && !t->again && !t->quit) { /* a key, or a new size */
			fputs("\x1b[H", stdout);
			t->found = top_show(stdout, s, &t->look);
			fflush(stdout);
		}
		if (!t->look.paused && got <= 0)
			left -= step;
	}
}

static int run_screens(const struct cli *cli, struct top *t, double seconds, unsigned long count)
{
	struct top_sample now, before = {0};
	struct termios saved;
	bool good = true;

	if (!t->look.plain)
		terminal_begin(&saved);
	for (unsigned long i = 0; !t->quit && !ended && (!count || i < count); i++) {
		t->again = false;
		good = top_take(cli, t->view, &before, &now);
		if (!good)
			break;
		if (!t->look.plain) {
			terminal_size(&t->look);
			fputs("\x1b[H", stdout);
		} else if (i) {
			putchar('\n');
		}
		t->found = top_show(stdout, &now, &t->look);
		fflush(stdout);
		top_sample_free(&before);
		before = now;
		if (count && i + 1 == count)
			break;
		if (t->look.plain)
			usleep((useconds_t)(seconds * 1e6));
		else
			keys_until(t, &before, seconds);
	}
	top_sample_free(&before);
	if (!t->look.plain)
		terminal_end(&saved);
	if (!good && !t->look.plain) /* the first message is gone with the screen */
		cli_error("the gateway at %s does not answer", cli->socket);
	return good ? EXIT_OK : EXIT_ERROR;
}

static int run_top(const struct cli *cli)
{
	const char *view = cli_value(cli, "view"), *interval = cli_value(cli, "interval"),
	           *count = cli_value(cli, "count");
	struct top t = {.look = {.width = TABLE_WIDTH, .height = 24}};
	char *end = "";
	const double seconds = interval ? strtod(interval, &end) : 1;
	unsigned long n;
	unsigned v = 0;

	if (*end || !(seconds >= 0.1 && seconds <= 3600)) {
		cli_error("--interval: expected seconds from 0.1 to 3600, found %s", interval);
		return EXIT_USAGE;
	}
	n = count ? strtoul(count, &end, 10) : 0;
	if (count && (*count < '0' || *count > '9' || *end || !n)) {
		cli_error("--count: expected a number from 1 on, found %s", count);
		return EXIT_USAGE;
	}
	while (view && v < TOP_VIEWS && strcmp(view, top_view_name[v]) != 0)
		v++;
	if (v == TOP_VIEWS) {
		cli_error("--view: expected tunnels, flows or tenants, found %s", view);
		return EXIT_USAGE;
	}
	change_view(&t, (enum top_view)v);
	t.look.plain = !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
	if (t.look.plain)
		t.look.height = 0;
	return run_screens(cli, &t, seconds, n || !t.look.plain ? n : 1);
}

const struct cli_cmd cmd_top = {.name = "top",
    .no_json = true,
    .text = "tunnels, flows or tenants with their rates, live",
    .more = "Keys: 1 tunnels, 2 flows (the 1000 active last), 3 tenants, or Tab; < and > choose the column\n"
            "to sort by, r turns the order; / filters by a text, Esc ends that; j, k, arrows and page keys\n"
            "scroll; space pauses; q quits.\n",
    .opts = top_opts,
    .run = run_top};
