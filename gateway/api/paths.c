/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of tunnels, summed over the workers: in /v1/tunnels, and as metrics. */
#include "gateway/api/api.h"

#include <inttypes.h>
#include <string.h>

/* A path's state is that of the worker that is worst off. */
static const char *const worst_first[] = {
    "off", "unproven", "silent", "tried", "resting", "held", "spare", "usable"};
#define STATES  (sizeof(worst_first) / sizeof(*worst_first))
#define ANSWERS 3 /* and those behind it */
/* By enum conf_use. */
static const char *const use_word[] = {"always", "spare", "never", "granted"};

struct sum {
	unsigned state; /* index in worst_first */
	uint32_t loss_ppm, silences;
	rwy_dur srtt;
	uint64_t rate_Bps, inflight, tx_datagrams, tx_bytes, rx_datagrams, rx_bytes, lost, moved;
};

static unsigned state_of(const struct wan_path_stats *p)
{
	unsigned i = 0;

	while (p->state && i < STATES - 1 && strcmp(worst_first[i], p->state) != 0)
		i++;
	return i;
}

static struct sum sum_of(const struct api_snap *snap, unsigned workers, unsigned tunnel, unsigned path)
{
	struct sum s = {.state = STATES - 1};

	for (unsigned w = 0; w < workers; w++) {
		const struct wan_path_stats *p = &snap[w].path[tunnel][path];

		if (state_of(p) < s.state)
			s.state = state_of(p);
		if (p->srtt > s.srtt)
			s.srtt = p->srtt;
		if (p->loss_ppm > s.loss_ppm)
			s.loss_ppm = p->loss_ppm;
		s.silences += p->silences;
		s.rate_Bps += p->rate_Bps;
		s.inflight += p->inflight;
		s.tx_datagrams += p->tx_datagrams;
		s.tx_bytes += p->tx_bytes;
		s.rx_datagrams += p->rx_datagrams;
		s.rx_bytes += p->rx_bytes;
		s.lost += p->lost;
		s.moved += p->moved;
	}
	return s;
}

json_t *api_paths_json(const struct api_req *req, const struct api_snap *snap, unsigned tunnel)
{
	const struct conf_tunnel *t = &req->app->conf->tunnel[tunnel];
	json_t *list = json_array();

	for (unsigned k = 0; k <= t->paths; k++) {
		const struct sum s = sum_of(snap, req->app->workers, tunnel, k);
		const struct conf_path c = conf_tunnel_path(t, k);

		json_array_append_new(list,
		    json_pack(
		        "{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:i, s:f, s:f, s:I, s:I, s:I, s:I, "
		        "s:I, s:I, s:I, s:I, s:I}",
		        "path", (int)k, "label", c.label, "state", worst_first[s.state], "use",
		        use_word[c.use], "port", c.port, "local", api_json_ip(&c.local), "remote",
		        api_json_ip(&c.remote), "udp_port", (int)c.udp_port, "source_port",
		        (int)c.source_port, "dscp", (int)c.dscp, "rtt_seconds", (double)s.srtt / 1e9,
		        "loss_ratio", s.loss_ppm / 1e6, "rate_max_bytes_per_second", (json_int_t)c.rate_Bps,
		        "rate_bytes_per_second", (json_int_t)s.rate_Bps, "inflight_bytes",
		        (json_int_t)s.inflight, "tx_bytes", (json_int_t)s.tx_bytes, "rx_bytes",
		        (json_int_t)s.rx_bytes, "tx_datagrams", (json_int_t)s.tx_datagrams, "lost",
		        (json_int_t)s.lost, "moved", (json_int_t)s.moved, "silences",
		        (json_int_t)s.silences));
	}
	return list;
}

/* X(metric, type, sentence, expression over `s`) */
#define PATH_METRICS(X)                                                                                      \
	X("usable", "gauge", "1 when the path answers on every worker", s.state >= ANSWERS)                  \
	X("rtt_seconds", "gauge", "smoothed round-trip time, the slowest worker's", (double)s.srtt / 1e9)    \
	X("rate_bytes_per_second", "gauge", "rate that congestion control allows, all workers",              \
	    (double)s.rate_Bps)                                                                              \
	X("loss_ratio", "gauge", "smoothed share of datagrams lost, the worst worker's", s.loss_ppm / 1e6)   \
	X("tx_bytes_total", "counter", "UDP payload bytes sent", (double)s.tx_bytes)                         \
	X("rx_bytes_total", "counter", "UDP payload bytes accepted", (double)s.rx_bytes)                     \
	X("lost_total", "counter", "datagrams declared lost", (double)s.lost)                                \
	X("moved_total", "counter", "datagrams whose data went elsewhere when the path fell silent",         \
	    (double)s.moved)                                                                                 \
	X("silences_total", "counter", "times that the path fell silent", s.silences)

void api_paths_metrics(FILE *f, const struct api_req *req, const struct api_snap *snap)
{
	const struct conf *c = req->app->conf;
	unsigned several = 0;

	for (unsigned i = 0; i < c->tunnels; i++)
		several += *c->tunnel[i].name && c->tunnel[i].paths;
	if (!several && c->tunnels) /* without any tunnel: what --print-metrics prints */
		return;
#define X(m, type, text, expr)                                                                               \
	fprintf(f, "# HELP roceway_path_" m " " text "\n# TYPE roceway_path_" m " " type "\n");              \
	for (unsigned i = 0; i < c->tunnels; i++)                                                            \
		for (unsigned k = 0; *c->tunnel[i].name && c->tunnel[i].paths && k <= c->tunnel[i].paths;    \
		     k++) {                                                                                  \
			const struct sum s = sum_of(snap, req->app->workers, i, k);                          \
                                                                                                             \
			fprintf(f, "roceway_path_" m "{tunnel=\"%s\",path=\"%u\"} %.15g\n",                  \
			    c->tunnel[i].name, k, (double)(expr));                                           \
		}
	PATH_METRICS(X)
#undef X
}
