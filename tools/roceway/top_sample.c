/* SPDX-License-Identifier: Apache-2.0 */
/* roceway top: a view's rows from the API, and what changed in a second since the sample before. */
#include "tools/roceway/top.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLOWS "/v1/flows?limit=1000&sort=recent"

const char *const top_view_name[TOP_VIEWS] = {"tunnels", "flows", "tenants"};

/* clang-format off: tables */
static const struct top_column columns[TOP_VIEWS][TOP_COLUMNS + 1] =
    {
        [TOP_TUNNELS] =
            {
                {"TUNNEL", 16, 0, true, "name", TOP_TEXT, false},
                {"STATE", 7, 0, true, "state", TOP_TEXT, false},
                {"RTT", 8, 0, false, "rtt_seconds", TOP_TIME, false},
                {"LOSS", 8, 0, false, "loss_ratio", TOP_SHARE, false},
                {"SENDING", 9, 0, false, "tx_bytes", TOP_BITS, true},
                {"RECEIVING", 10, 0, false, "rx_bytes", TOP_BITS, true},
                {"ALLOWED", 9, 2, false, "rate_bytes_per_second", TOP_BITS, false},
                {"QUEUED", 9, 1, false, "custody_bytes", TOP_BYTES, false},
                {"FLOWS", 6, 2, false, "flows", TOP_COUNT, false},
            },
        [TOP_FLOWS] =
            {
                {"LOCAL", 15, 0, true, "local", TOP_TEXT, false},
                {"QPN", 8, 0, false, "local_qpn", TOP_NUMBER, false},
                {"REMOTE", 15, 0, true, "remote", TOP_TEXT, false},
                {"QPN", 8, 5, false, "remote_qpn", TOP_NUMBER, false},
                {"STATE", 8, 1, true, "state", TOP_TEXT, false},
                {"SENDING", 9, 0, false, "tx_bytes", TOP_BITS, true},
                {"RECEIVING", 10, 0, false, "rx_bytes", TOP_BITS, true},
                {"CUSTODY", 8, 4, false, "custody_bytes", TOP_BYTES, false},
                {"LIMIT", 6, 2, true, "limit", TOP_TEXT, false},
                {"TENANT", 8, 3, true, "tenant", TOP_TEXT, false},
            },
        [TOP_TENANTS] =
            {
                {"TENANT", 20, 0, true, "name", TOP_TEXT, false},
                {"VNI", 8, 0, false, "vni", TOP_NUMBER, false},
                {"FLOWS", 7, 0, false, "flows", TOP_COUNT, false},
                {"FROM HOSTS", 11, 0, false, "rx_bytes", TOP_BITS, true},
                {"TO HOSTS", 9, 0, false, "tx_bytes", TOP_BITS, true},
                {"CUSTODY", 9, 0, false, "custody_bytes", TOP_BYTES, false},
                {"GUARANTEE", 9, 2, false, "guarantee_Bps", TOP_BITS, false},
                {"LIMIT", 9, 1, false, "limit_Bps", TOP_BITS, false},
            },
};
/* clang-format on */

const struct top_column *top_columns(enum top_view view)
{
	return columns[view];
}

static void show_number(const struct top_column *c, double v, char out[TOP_CELL])
{
	const char *text = "-";

	switch (c->show) {
	case TOP_TEXT:
		break;
	case TOP_NUMBER:
		snprintf(out, TOP_CELL, v > 0 ? "%.0f" : "-", v);
		return;
	case TOP_COUNT:
		text = say_count(v);
		break;
	case TOP_BYTES:
		text = say_bytes(v);
		break;
	case TOP_BITS:
		text = v > 0 ? say_bits(v) : "-";
		break;
	case TOP_TIME:
		text = v > 0 ? say_time(v) : "-";
		break;
	case TOP_SHARE:
		text = say_share(v);
		break;
	}
	snprintf(out, TOP_CELL, "%s", text);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct top_row *)a)->id, ((const struct top_row *)b)->id);
}

static void row_id(struct top_row *r, enum top_view view, const json_t *o)
{
	if (view == TOP_FLOWS)
		snprintf(r->id, sizeof(r->id), "%.31s %.45s %lld %.45s %lld", js(o, "tenant"), js(o, "local"),
		    ji(o, "local_qpn"), js(o, "remote"), ji(o, "remote_qpn"));
	else
		snprintf(r->id, sizeof(r->id), "%.63s", js(o, "name"));
}

/* Text from elsewhere, without control characters. */
static void put_text(char out[TOP_CELL], const char *text)
{
	size_t n = 0;

	for (; *text && n < TOP_CELL - 1; text++)
		out[n++] = *text >= ' ' && *text < 127 ? *text : '?';
	out[n] = 0;
}

/* FLOWS of a tunnel are the streams of both directions, as in `roceway tunnels`. */
static void sum_flows(json_t *tunnel)
{
	json_object_set_new(tunnel, "flows", json_integer(ji(tunnel, "tx_flows") + ji(tunnel, "rx_flows")));
}

static void fill_row(
    struct top_row *r, enum top_view view, const json_t *o, const struct top_row *old, double seconds)
{
	for (unsigned i = 0; columns[view][i].title; i++) {
		const struct top_column *c = &columns[view][i];

		if (c->show == TOP_TEXT) {
			put_text(r->cell[i], *js(o, c->key) ? js(o, c->key) : "-");
			continue;
		}
		r->raw[i] = r->value[i] = jn(o, c->key);
		if (c->rate)
			r->value[i] = old && seconds > 0 && r->raw[i] > old->raw[i]
			                  ? (r->raw[i] - old->raw[i]) / seconds
			                  : 0;
		show_number(c, r->value[i], r->cell[i]);
	}
}

/* All tenants, page by page; the others are one page. A new reference; NULL: no answer. */
static json_t *fetch(const struct cli *cli, enum top_view view, size_t *total)
{
	char page[256];
	json_t *all = json_array(), *j;

	snprintf(page, sizeof(page), "%s",
	    view == TOP_FLOWS     ? FLOWS
	    : view == TOP_TENANTS ? "/v1/tenants?limit=1000"
	                          : "/v1/tunnels");
	*total = 0;
	for (;;) {
		char next[128];

		j = api_get_json(cli, page, NULL);
		if (!j) {
			json_decref(all);
			return NULL;
		}
		json_array_extend(all, json_object_get(j, top_view_name[view]));
		if (view == TOP_FLOWS)
			*total = (size_t)ji(j, "total");
		snprintf(next, sizeof(next), "%s", view == TOP_TENANTS ? js(j, "next") : "");
		json_decref(j);
		if (!*next)
			break;
		snprintf(page, sizeof(page), "/v1/tenants?limit=1000");
		api_query(page, sizeof(page), "after", next);
	}
	if (*total < json_array_size(all))
		*total = json_array_size(all);
	return all;
}

bool top_take(
    const struct cli *cli, enum top_view view, const struct top_sample *before, struct top_sample *out)
{
	struct timespec ts;
	json_t *list, *o;
	size_t i;

	*out = (struct top_sample){.view = view};
	out->status = api_get_json(cli, "/v1/status", NULL);
	out->workers = out->status ? api_get_json(cli, "/v1/workers", NULL) : NULL;
	list = out->workers ? fetch(cli, view, &out->total) : NULL;
	if (list)
		out->row = calloc(json_array_size(list) + 1, sizeof(*out->row));
	if (!out->row) {
		if (list)
			cli_error("out of memory");
		json_decref(list);
		top_sample_free(out);
		return false;
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	out->at = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
	if (before && (!before->row || before->view != view))
		before = NULL;
	if (before)
		qsort(before->row, before->rows, sizeof(*before->row), by_id);
	json_array_foreach(list, i, o)
	{
		struct top_row *r = &out->row[out->rows++];

		if (view == TOP_TUNNELS)
			sum_flows(o);
		row_id(r, view, o);
		fill_row(r, view, o, before ? bsearch(r, before->row, before->rows, sizeof(*r), by_id) : NULL,
		    before ? out->at - before->at : 0);
	}
	json_decref(list);
	return true;
}

void top_sample_free(struct top_sample *s)
{
	json_decref(s->status);
	json_decref(s->workers);
	free(s->row);
	*s = (struct top_sample){0};
}
