/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway analyze --html: one page, drawings in SVG, nothing from elsewhere. For each flow its
 * findings, where the time went, PSNs over time, bytes over time, and how long messages took.
 */
#include "tools/roceway/analyze.h"

#include "base/say.h"

#define W         920 /* of a drawing */
#define H         260
#define LEFT      70
#define BOTTOM    34
#define TOP       12
#define PLOT_W    (W - LEFT - 10)
#define PLOT_H    (H - BOTTOM - TOP)
#define TICKS     5
#define QUANTILES 200

static const char *const phase_color[AN_PHASE_COUNT] = {[AN_SENDING] = "#4c9a52",
    [AN_IDLE] = "#c9ced6",
    [AN_WINDOW] = "#3b6fb6",
    [AN_READS] = "#6a8fd0",
    [AN_CREDITS] = "#8a6fc0",
    [AN_QUEUE] = "#b98a2f",
    [AN_LOSS] = "#c0392b",
    [AN_TIMEOUT] = "#7d1f17",
    [AN_RNR] = "#d9822b",
    [AN_CNP] = "#b03a8c",
    [AN_PACED] = "#8d99a6"};

static const struct {
	const char *color, *text;
	double r;
} mark_style[] = {[AN_MARK_SENT] = {"#3b6fb6", "sent", 1.2},
    [AN_MARK_RESENT] = {"#c0392b", "sent again", 1.6},
    [AN_MARK_ACK] = {"#9aa5b1", "acknowledged", 1.0},
    [AN_MARK_NAK] = {"#e67e22", "NAK", 3},
    [AN_MARK_RNR] = {"#f1c40f", "RNR NAK", 3},
    [AN_MARK_TIMEOUT] = {"#7d1f17", "timeout", 3},
    [AN_MARK_CNP] = {"#b03a8c", "CNP", 2.5}};

static double seconds(rwy_dur d)
{
	return (double)d / 1e9;
}

static void escape(FILE *o, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '<':
			fputs("&lt;", o);
			break;
		case '>':
			fputs("&gt;", o);
			break;
		case '&':
			fputs("&amp;", o);
			break;
		case '"':
			fputs("&quot;", o);
			break;
		default:
			putc(*s, o);
		}
}

/* Axes from 0 to `most_x` seconds and 0 to `most_y`, which say_y writes. */
static void axes(FILE *o, double most_x, double most_y, const char *(*say_y)(double), const char *title)
{
	fprintf(o, "<figure><figcaption>%s</figcaption><svg viewBox='0 0 %d %d' role='img'>", title, W, H);
	for (int i = 0; i <= TICKS; i++) {
		double x = LEFT + (double)PLOT_W * i / TICKS, y = TOP + (double)PLOT_H * (TICKS - i) / TICKS;

		fprintf(o, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' class='grid'/>", LEFT, y, W - 10, y);
		fprintf(o, "<text x='%d' y='%.1f' text-anchor='end'>%s</text>", LEFT - 6, y + 4,
		    say_y(most_y * i / TICKS));
		fprintf(o, "<text x='%.1f' y='%d' text-anchor='%s'>%s</text>", x, H - 12,
		    i == TICKS ? "end" : "middle", say_time(most_x * i / TICKS));
	}
}

static void legend(FILE *o, const bool seen[AN_MARK_CNP + 1])
{
	fputs("<p class='legend'>", o);
	for (unsigned m = 0; m <= AN_MARK_CNP; m++)
		if (seen[m])
			fprintf(o, "<span><i style='background:%s'></i>%s</span>", mark_style[m].color,
			    mark_style[m].text);
	fputs("</p>", o);
}

static void sequence(FILE *o, const struct an_flow *f)
{
	bool seen[AN_MARK_CNP + 1] = {0};
	double span = seconds(rwy_since(f->first, f->last));
	uint64_t most = 1;

	if (!f->points || span <= 0)
		return;
	for (size_t i = 0; i < f->points; i++)
		most = f->point[i].psn > most ? f->point[i].psn : most;
	axes(o, span, (double)most, say_count, "Packets over time (PSN since the first)");
	/* Plain points first, so that events lie on top. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < f->points; i++) {
			const struct an_point *p = &f->point[i];
			bool plain = p->mark == AN_MARK_SENT || p->mark == AN_MARK_ACK;

			if (plain == (pass == 1))
				continue;
			seen[p->mark] = true;
			fprintf(o, "<circle cx='%.1f' cy='%.1f' r='%.1f' fill='%s'/>",
			    LEFT + PLOT_W * seconds(rwy_since(f->first, p->at)) / span,
			    TOP + PLOT_H * (1 - (double)p->psn / (double)most), mark_style[p->mark].r,
			    mark_style[p->mark].color);
		}
	fputs("</svg></figure>", o);
	legend(o, seen);
}

static void throughput(FILE *o, const struct an_flow *f)
{
	const struct an_bins *b = &f->bins;
	double most = 1, width = seconds(b->width);
	unsigned n = 0;

	for (unsigned i = 0; i < AN_BINS; i++)
		if (b->fresh[i] + b->again[i]) {
			double y = (double)(b->fresh[i] + b->again[i]) / width;

			n = i + 1;
			most = y > most ? y : most;
		}
	if (n < 2)
		return;
	axes(o, n * width, most, say_bits, "Payload over time (red: sent again)");
	for (unsigned i = 0; i < n; i++) {
		double x = LEFT + (double)PLOT_W * i / n, w = (double)PLOT_W / n;
		double fresh = PLOT_H * (double)b->fresh[i] / width / most,
		       again = PLOT_H * (double)b->again[i] / width / most;

		fprintf(o, "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='#3b6fb6'/>", x,
		    TOP + PLOT_H - fresh, w, fresh);
		if (again > 0)
			fprintf(o, "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='#c0392b'/>", x,
			    TOP + PLOT_H - fresh - again, w, again);
	}
	fputs("</svg></figure>", o);
}

static void completions(FILE *o, const struct an_flow *f)
{
	double most;

	if (f->completion.n < 2)
		return;
	most = seconds(f->completion.max);
	axes(o, most, 1, say_share, "Messages completed within a time");
	fputs("<polyline fill='none' stroke='#3b6fb6' stroke-width='2' points='", o);
	for (unsigned i = 0; i <= QUANTILES; i++) {
		double q = (double)i / QUANTILES;

		fprintf(o, "%.1f,%.1f ", LEFT + PLOT_W * seconds(an_hist_quantile(&f->completion, q)) / most,
		    TOP + PLOT_H * (1 - q));
	}
	fputs("'/></svg></figure>", o);
}

static void phases(FILE *o, const struct an_flow *f)
{
	double all = 0, x = 0;

	for (unsigned p = 0; p < AN_PHASE_COUNT; p++)
		all += (double)f->phase[p];
	if (all <= 0)
		return;
	fprintf(o, "<figure><figcaption>Where the time went</figcaption><svg viewBox='0 0 %d 26'>", W);
	for (unsigned p = 0; p < AN_PHASE_COUNT; p++) {
		double w = W * (double)f->phase[p] / all;

		fprintf(o, "<rect x='%.1f' y='0' width='%.1f' height='26' fill='%s'><title>%s</title></rect>",
		    x, w, phase_color[p], an_phase_name((enum an_phase)p));
		x += w;
	}
	fputs("</svg></figure><p class='legend'>", o);
	for (unsigned p = 0; p < AN_PHASE_COUNT; p++)
		if ((double)f->phase[p] > all / 1000)
			fprintf(o, "<span title=\"%s\"><i style='background:%s'></i>%s %s</span>",
			    an_phase_text((enum an_phase)p), phase_color[p], an_phase_name((enum an_phase)p),
			    say_share((double)f->phase[p] / all));
	fputs("</p>", o);
}

static void flow(FILE *o, const struct an_flow *f, size_t n)
{
	char name[ANALYZE_NAME_MAX];

	analyze_name(f, name);
	fprintf(o, "<section id='f%zu'><h2>", n);
	escape(o, name);
	fprintf(o,
	    "</h2><p class='facts'>%s in %s: %s. %llu messages, %llu packets, %llu sent again, path MTU %u. ",
	    say_bytes((double)f->c.bytes), say_time(seconds(rwy_since(f->first, f->last))),
	    say_bits(analyze_rate(f)), (unsigned long long)f->c.messages, (unsigned long long)f->c.packets,
	    (unsigned long long)f->c.resent_packets, f->pmtu);
	if (f->rtt.n)
		fprintf(o, "Round trip %s (smallest %s, 99 %% %s).",
		    say_time(seconds(an_hist_quantile(&f->rtt, 0.5))), say_time(seconds(f->rtt.min)),
		    say_time(seconds(an_hist_quantile(&f->rtt, 0.99))));
	fputs("</p><ol>", o);
	for (unsigned i = 0; i < f->findings; i++) {
		fputs("<li><b>", o);
		escape(o, f->finding[i].word);
		fputs("</b> ", o);
		escape(o, f->finding[i].text);
		fputs("</li>", o);
	}
	fputs("</ol>", o);
	phases(o, f);
	sequence(o, f);
	throughput(o, f);
	completions(o, f);
	fputs("</section>", o);
}

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:980px;margin:2em auto;padding:0 1em;color:#1d2733;"
    "background:#fff}h1{font-size:1.5em}h2{font-size:1.1em;margin-top:2.5em;border-top:1px solid "
    "#ccd;padding-top:1em}"
    "table{border-collapse:collapse;width:100%}td,th{padding:.25em .6em;text-align:right;border-bottom:1px "
    "solid "
    "#e3e7ec}td:first-child,th:first-child{text-align:left}figure{margin:1em 0}figcaption{font-weight:600}"
    "svg{width:100%;height:auto}svg text{font-size:11px;fill:#5a6673}.grid{stroke:#e3e7ec}.legend span{"
    "margin-right:1.2em;white-space:nowrap}.legend "
    "i{display:inline-block;width:.8em;height:.8em;margin-right:.35em;"
    "border-radius:2px}a{color:#2b5fa8}li b{display:inline-block;min-width:6em}";

int analyze_html(FILE *out, const char *title, const struct an_totals *t,
    const struct an_flow *const *flow_of, size_t flows)
{
	fprintf(out,
	    "<!DOCTYPE html><html lang='en'><head><meta "
	    "charset='utf-8'><title>%s</title><style>%s</style></head><body>"
	    "<h1>%s</h1><p>%llu packets in %s, %llu of them RoCEv2.</p><table><tr><th>requester &gt; "
	    "responder</th>"
	    "<th>data</th><th>rate</th><th>round trip</th><th>sent again</th><th>limit</th></tr>",
	    title, style, title, (unsigned long long)t->packets,
	    say_time(seconds(rwy_since(t->first, t->last))), (unsigned long long)t->roce);
	for (size_t i = 0; i < flows; i++) {
		const struct an_flow *f = flow_of[i];
		char name[ANALYZE_NAME_MAX];

		analyze_name(f, name);
		fprintf(out, "<tr><td><a href='#f%zu'>", i);
		escape(out, name);
		fprintf(out, "</a></td><td>%s</td><td>%s</td><td>%s</td><td>%llu</td><td>%s</td></tr>",
		    say_bytes((double)f->c.bytes), say_bits(analyze_rate(f)),
		    f->rtt.n ? say_time(seconds(an_hist_quantile(&f->rtt, 0.5))) : "-",
		    (unsigned long long)f->c.resent_packets, f->findings ? f->finding[0].word : "-");
	}
	fputs("</table>", out);
	for (size_t i = 0; i < flows; i++)
		flow(out, flow_of[i], i);
	fputs("</body></html>\n", out);
	return ferror(out) ? -1 : 0;
}
