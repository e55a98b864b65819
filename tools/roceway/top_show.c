/* SPDX-License-Identifier: Apache-2.0 */
/* roceway top: a screen of a sample. It fits the terminal: columns of less use are left out. */
#include "tools/roceway/top.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEAD_LINES 4 /* three of the gateway, one of the columns */
#define FOOT_LINES 1
#define LINE       512

static unsigned sort_column;
static bool sort_up, sort_text;

static int compare(const void *pa, const void *pb)
{
	const struct top_row *a = pa, *b = pb;
	const double va = a->value[sort_column], vb = b->value[sort_column];
	int d = sort_text ? strcmp(a->cell[sort_column], b->cell[sort_column]) : va < vb ? -1 : va > vb;

	if (sort_up == sort_text) /* numbers: largest first; texts: by alphabet */
		d = -d;
	return d ? d : strcmp(a->id, b->id);
}

static bool passes(const struct top_row *r, const struct top_column *c, const char *filter)
{
	if (!*filter)
		return true;
	for (unsigned i = 0; c[i].title; i++)
		if (c[i].show != TOP_BITS && strcasestr(r->cell[i], filter))
			return true;
	return false;
}

/* Writes a line, cut at the terminal's width. mark: bold, or reversed. */
static void put_line(FILE *out, const struct top_look *look, const char *mark, const char *text)
{
	const bool marked = mark && !look->plain;

	fprintf(out, "%s%.*s%s%s\n", marked ? mark : "", (int)look->width, text, marked ? "\x1b[0m" : "",
	    look->plain ? "" : "\x1b[K\r");
}

static double busy_share(const json_t *workers)
{
	double busy = 0, all = 0;
	const json_t *w;
	size_t i;

	json_array_foreach(json_object_get(workers, "workers"), i, w)
	{
		busy += jn(w, "busy_seconds");
		all += jn(w, "busy_seconds") + jn(w, "idle_seconds") + jn(w, "asleep_seconds");
	}
	return all > 0 ? busy / all : 0;
}

static void put_head(FILE *out, const struct top_sample *s, const struct top_look *look)
{
	const json_t *j = s->status;
	char line[LINE];

	const json_t *drain = json_object_get(j, "drain");
	const bool running = !strcmp(js(j, "state"), "running");

	snprintf(line, sizeof(line), "%s: %s%s for %s, Roceway %s%s", js(j, "name"),
	    *js(drain, "state") ? js(drain, "state") : js(j, "state"), running ? "" : ", up",
	    say_time(jn(j, "uptime_seconds")), js(j, "version"), look->paused ? "  PAUSED" : "");
	put_line(out, look, "\x1b[1m", line);
	snprintf(line, sizeof(line), "tunnels %lld of %lld up  ports %lld of %lld up  workers %lld, busy %s",
	    ji(j, "tunnels_up"), ji(j, "tunnels"), ji(j, "ports_up"), ji(j, "ports"), ji(j, "workers"),
	    say_share(busy_share(s->workers)));
	put_line(out, look, NULL, line);
	snprintf(line, sizeof(line), "flows %s  custody %s of %s  buffers %s free of %s",
	    say_count(jn(j, "flows")), say_bytes(jn(j, "custody_bytes")),
	    say_bytes(jn(j, "custody_max_bytes")), say_count(jn(j, "buffers_free")),
	    say_count(jn(j, "buffers")));
	put_line(out, look, NULL, line);
}

/* Columns with this rank and above do not fit. */
static int rank_limit(const struct top_column *c, unsigned width)
{
	for (int limit = 9; limit > 0; limit--) {
		unsigned all = 0;

		for (unsigned i = 0; c[i].title; i++)
			if (c[i].rank < limit)
				all += (unsigned)c[i].width + (all ? 2 : 0);
		if (all <= width)
			return limit;
	}
	return 1;
}

static void add_cell(char line[LINE], const struct top_column *c, const char *text)
{
	const size_t used = strlen(line);
	const int n = (int)strlen(text);

	/* a long text keeps its end: addresses differ there */
	if (n > c->width)
		snprintf(line + used, LINE - used, "%s..%s", used ? "  " : "", text + n - c->width + 2);
	else
		snprintf(line + used, LINE - used, "%s%*s", used ? "  " : "", c->text ? -c->width : c->width,
		    text);
}

static void put_titles(FILE *out, const struct top_column *c, const struct top_look *look, int limit)
{
	char line[LINE] = "", title[TOP_CELL];

	for (unsigned i = 0; c[i].title; i++) {
		if (c[i].rank >= limit)
			continue;
		snprintf(
		    title, sizeof(title), "%s%s", c[i].title, i == look->sort ? (look->up ? "^" : "v") : "");
		if (strlen(title) > (size_t)c[i].width)
			snprintf(
			    title, sizeof(title), "%.*s%c", c[i].width - 1, c[i].title, look->up ? '^' : 'v');
		add_cell(line, &c[i], title);
	}
	put_line(out, look, "\x1b[7m", line);
}

static void put_foot(FILE *out, const struct top_sample *s, const struct top_look *look, size_t found)
{
	char line[LINE];

	if (look->typing)
		snprintf(line, sizeof(line), "filter: %s_   Enter: keep  Esc: none", look->filter);
	else
		snprintf(line, sizeof(line),
		    "%s%s%s%s%zu of %zu  1 2 3 view  < > sort  r turn  / filter  space pause  q quit",
		    top_view_name[s->view], *look->filter ? " with " : "", look->filter, ": ", found,
		    s->total);
	fprintf(out, "\x1b[1m%.*s\x1b[0m\x1b[K\x1b[J", (int)look->width, line);
}

size_t top_show(FILE *out, struct top_sample *s, const struct top_look *look)
{
	const struct top_column *c = top_columns(s->view);
	const size_t room = !look->height                            ? s->rows
	                    : look->height > HEAD_LINES + FOOT_LINES ? look->height - HEAD_LINES - FOOT_LINES
	                                                             : 1;
	const int limit = rank_limit(c, look->width);
	size_t found = 0;

	sort_column = look->sort;
	sort_up = look->up;
	sort_text = c[look->sort].text;
	qsort(s->row, s->rows, sizeof(*s->row), compare);
	put_head(out, s, look);
	put_titles(out, c, look, limit);
	for (size_t i = 0; i < s->rows; i++) {
		const struct top_row *r = &s->row[i];
		char line[LINE] = "";

		if (!passes(r, c, look->filter))
			continue;
		found++;
		if (found <= look->first || found > look->first + room)
			continue;
		for (unsigned k = 0; c[k].title; k++)
			if (c[k].rank < limit)
				add_cell(line, &c[k], r->cell[k]);
		put_line(out, look, NULL, line);
	}
	if (!look->plain)
		put_foot(out, s, look, found);
	return found;
}
