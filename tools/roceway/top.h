/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `roceway top` only: what it shows. top.c has the terminal and the keys. */
#ifndef TOOLS_ROCEWAY_TOP_H
#define TOOLS_ROCEWAY_TOP_H

#include "tools/roceway/roceway.h"

#define TOP_COLUMNS 12
#define TOP_CELL    48
#define TOP_FILTER  64

enum top_view { TOP_TUNNELS, TOP_FLOWS, TOP_TENANTS, TOP_VIEWS };

struct top_column {
	const char *title; /* NULL: no more columns */
	int width;
	int rank;        /* 0: always shown; the highest are left out first on a narrow terminal */
	bool text;       /* aligned to the left, and compared with the filter */
	const char *key; /* member of the API's object */
	enum top_show { TOP_TEXT, TOP_NUMBER, TOP_COUNT, TOP_BYTES, TOP_BITS, TOP_TIME, TOP_SHARE } show;
	bool rate; /* the change of the member in a second */
};

struct top_row {
	char id[160]; /* the same in each sample */
	char cell[TOP_COLUMNS][TOP_CELL];
	double value[TOP_COLUMNS]; /* what is sorted by; text: 0 */
	double raw[TOP_COLUMNS];   /* of rates: the member itself */
};

/* One view at one time. */
struct top_sample {
	enum top_view view;
	double at; /* seconds */
	struct top_row *row;
	size_t rows, total; /* total: also those that the gateway did not send */
	json_t *status, *workers;
};

extern const char *const top_view_name[TOP_VIEWS];
const struct top_column *top_columns(enum top_view view);

/* Asks the gateway; rates are against `before` (NULL, or of another view: they are 0). false, after
 * cli_error(): no answer. top_sample_free() frees it. */
bool top_take(
    const struct cli *cli, enum top_view view, const struct top_sample *before, struct top_sample *out);
void top_sample_free(struct top_sample *s);

/* How it is shown. */
struct top_look {
	unsigned width, height; /* of the terminal; height 0: all rows */
	unsigned sort;          /* column */
	bool up;                /* smallest first */
	size_t first;           /* rows scrolled over */
	char filter[TOP_FILTER];
	bool typing, paused; /* the filter is being typed */
	bool plain;          /* no terminal: no escape sequences */
};
/* Writes a screen. Sorts the sample's rows. Returns the number of rows that pass the filter. */
size_t top_show(FILE *out, struct top_sample *s, const struct top_look *look);

#endif
