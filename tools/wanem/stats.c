/* SPDX-License-Identifier: Apache-2.0
 * Printing of the counters; see stats.h.
 */
#include "tools/wanem/stats.h"

#include <inttypes.h>
#include <string.h>

static const char *const ctr_name[] = {
#define X(name, text) #name,
#include "tools/wanem/counters.def"
#undef X
};

static const char *const ctr_text[] = {
#define X(name, text) text,
#include "tools/wanem/counters.def"
#undef X
};

static void gather_ring_drops(struct wanem *w)
{
	for (int d = 0; d < 2; d++)
		w->dir[d].link.ctr[WANEM_CTR_drop_rx_ring] += wanem_netif_ring_drops(w->dir[d].from);
}

static void hist_json(FILE *f, const struct wanem_hist *h)
{
	fprintf(f,
	    "{\"count\":%" PRIu64 ",\"min\":%" PRIu64 ",\"mean\":%" PRIu64 ",\"p50\":%" PRIu64
	    ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64 "}",
	    h->count, h->min, wanem_hist_mean(h), wanem_hist_quantile(h, 0.5), wanem_hist_quantile(h, 0.99),
	    h->max);
}

static void dir_json(FILE *f, struct wanem_dir *dir, uint64_t now)
{
	uint64_t bytes;
	uint32_t queued = wanem_link_queue(&dir->link, &bytes, now);

	fprintf(f, "{\"from\":\"%s\",\"to\":\"%s\",\"up\":%s,\"config\":{", dir->from->name, dir->to->name,
	    wanem_link_is_down(&dir->link, now) ? "false" : "true");
	wanem_set_json(f, &dir->link.cfg);
	fputs("},\"counters\":{", f);
	for (unsigned i = 0; i < WANEM_CTR_COUNT; i++)
		fprintf(f, "%s\"%s\":%" PRIu64, i ? "," : "", ctr_name[i], dir->link.ctr[i]);
	fprintf(f,
	    "},\"queue\":{\"packets\":%u,\"bytes\":%" PRIu64 ",\"max_packets\":%u,\"max_bytes\":%" PRIu64
	    "},\"held\":{\"packets\":%u,\"max_packets\":%u},\"late_ns\":",
	    queued, bytes, dir->link.queue_max, dir->link.queue_max_bytes, wanem_line_held(&dir->line),
	    dir->line.held_max);
	hist_json(f, &dir->late);
	fputc('}', f);
}

void wanem_stats_json(FILE *f, struct wanem *w, uint64_t now)
{
	gather_ring_drops(w);
	fprintf(f, "{\"seed\":%" PRIu64 ",\"uptime_ns\":%" PRIu64 ",\"a_to_b\":", w->seed, now - w->started);
	dir_json(f, &w->dir[0], now);
	fputs(",\"b_to_a\":", f);
	dir_json(f, &w->dir[1], now);
	fputs("}\n", f);
}

static void dir_text(FILE *f, struct wanem_dir *dir, uint64_t now)
{
	uint32_t queued = wanem_link_queue(&dir->link, NULL, now);
	const struct wanem_hist *h = &dir->late;

	fprintf(f, "%s (%s -> %s) %s: ", dir->name, dir->from->name, dir->to->name,
	    wanem_link_is_down(&dir->link, now) ? "DOWN" : "up");
	wanem_set_text(f, &dir->link.cfg);
	fputc('\n', f);
	for (unsigned i = 0; i < WANEM_CTR_COUNT; i++)
		if (dir->link.ctr[i] || strncmp(ctr_name[i], "drop", 4))
			fprintf(f, "  %-18s %12" PRIu64 "  %s\n", ctr_name[i], dir->link.ctr[i], ctr_text[i]);
	fprintf(f, "  queue %u now, %u at most; held %u now, %u at most\n", queued, dir->link.queue_max,
	    wanem_line_held(&dir->line), dir->line.held_max);
	fprintf(f, "  left late by (us): min %.1f mean %.1f p50 %.1f p99 %.1f max %.1f\n",
	    (double)h->min / 1e3, (double)wanem_hist_mean(h) / 1e3, (double)wanem_hist_quantile(h, 0.5) / 1e3,
	    (double)wanem_hist_quantile(h, 0.99) / 1e3, (double)h->max / 1e3);
}

void wanem_stats_text(FILE *f, struct wanem *w, uint64_t now)
{
	gather_ring_drops(w);
	for (int d = 0; d < 2; d++)
		dir_text(f, &w->dir[d], now);
}

void wanem_stats_line(FILE *f, struct wanem *w)
{
	gather_ring_drops(w);
	fputs("wanem:", f);
	for (int d = 0; d < 2; d++) {
		const struct wanem_dir *dir = &w->dir[d];
		uint64_t lost = 0;

		for (unsigned i = 0; i < WANEM_CTR_COUNT; i++)
			if (!strncmp(ctr_name[i], "drop", 4))
				lost += dir->link.ctr[i];
		fprintf(f, "%s %s in %" PRIu64 " out %" PRIu64 " dropped %" PRIu64 " late p99 %.0fus",
		    d ? ";" : "", dir->name, dir->link.ctr[WANEM_CTR_in_packets],
		    dir->link.ctr[WANEM_CTR_delivered_packets], lost,
		    (double)wanem_hist_quantile(&dir->late, 0.99) / 1e3);
	}
	fputc('\n', f);
}
