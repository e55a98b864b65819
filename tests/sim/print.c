/* SPDX-License-Identifier: Apache-2.0 */
/* A world, as --verbose and --packets print it. */
#include <stdio.h>

#include "tests/lib/rc_pkt.h"
#include "tests/sim/explore.h"

void sim_print_world(const struct run *r)
{
	for (unsigned i = 0; i < 2; i++)
		fprintf(stderr,
		    "wan from %c: delay %.1f ms rate %.1f MB/s queue %.0f ms loss %.3f burst %.0f reorder "
		    "%.3f dup %.3f corrupt %.3f mtu %u ack mode %d custody %llu rx_window %u buffers %u\n",
		    'A' + i, (double)r->cfg.wan[i].delay / 1e6, (double)r->cfg.wan[i].rate_Bps / 1e6,
		    (double)r->cfg.wan[i].queue / 1e6, r->cfg.wan[i].loss, r->cfg.wan[i].burst,
		    r->cfg.wan[i].reorder, r->cfg.wan[i].dup, r->cfg.wan[i].corrupt, r->cfg.wan_mtu,
		    r->cfg.ack_mode, (unsigned long long)r->cfg.custody_conn, r->cfg.rx_window,
		    r->cfg.buffers);
}

static void print_paths(const struct run *r, unsigned site)
{
	struct wan_path_stats p;

	for (unsigned k = 0; r->cfg.paths && eng_path_stats(sim_engine(r->w, site), 0, k, &p); k++)
		fprintf(stderr,
		    "site %c path %u: %s for %.3f s, %u silences, srtt %.1f ms, loss %u ppm, in flight %llu "
		    "of "
		    "%llu, sent %llu, received %llu, lost %llu, moved %llu\n",
		    'A' + site, k, p.state, (double)(sim_now(r->w) - p.since) / 1e9, p.silences,
		    (double)p.srtt / 1e6, p.loss_ppm, (unsigned long long)p.inflight,
		    (unsigned long long)p.cwnd, (unsigned long long)p.tx_datagrams,
		    (unsigned long long)p.rx_datagrams, (unsigned long long)p.lost,
		    (unsigned long long)p.moved);
}

static void print_buffers(const struct run *r, unsigned site)
{
	static const char *const kind[ENG_MEM_N] = {
#define X(k, name, text) name,
	    ENG_MEM_KINDS(X)
#undef X
	};
	struct eng_memory m;

	eng_memory(sim_engine(r->w, site), &m);
	fprintf(stderr, "site %c buffers:", 'A' + site);
	for (unsigned k = 0; k < ENG_MEM_N; k++)
		fprintf(stderr, " %s %u", kind[k], m.kind[k].bufs);
	fprintf(stderr, " cm %u reassembly %u fec %u dgrams %u order %u\n", m.cm, m.reassembly, m.fec,
	    m.dgrams, m.order);
}

static void print_worker(const struct run *r, unsigned site, unsigned worker)
{
	const struct eng *e = sim_worker(r->w, site, worker);
	const struct eng_counters *c = e ? eng_counters(e) : NULL;

	if (!c)
		return;
	fprintf(stderr, "site %c", 'A' + site);
	if (sim_workers(r->w) > 1)
		fprintf(stderr, " worker %u", worker);
	fprintf(stderr, ":");
#define X(f, s)                                                                                              \
	if (c->f)                                                                                            \
		fprintf(stderr, " %s=%llu", #f, (unsigned long long)c->f);
	ENG_COUNTERS(X)
#undef X
	fprintf(stderr, "\n");
}

void sim_print_counters(const struct run *r)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < sim_workers(r->w); k++)
			print_worker(r, i, k);
	for (unsigned i = 0; i < 2; i++) {
		print_paths(r, i);
		print_buffers(r, i);
	}
	if (r->faults & (F_MOVES | F_DETOUR))
		fprintf(stderr, "by the reliable carrier: %llu datagrams\n",
		    (unsigned long long)sim_streamed(r->w));
	if (r->cfg.buffers)
		fprintf(stderr, "no buffer for %llu packets\n", (unsigned long long)sim_no_buffer(r->w));
}

void sim_print_packet(
    const struct run *r, const struct side *s, const char *how, const uint8_t *ip, uint32_t len)
{
	if (!r->packets || (r->packets != s->qpn && r->packets != r->qp[s->idx][!s->site].qpn))
		return;
	fprintf(stderr, "%12.6f %c qpn=%u %-5s ", (double)sim_now(r->w) / 1e9, 'A' + s->site, s->qpn, how);
	rc_pkt_print(ip, len);
	fprintf(stderr, "  expects %u, unacknowledged %u\n", s->h.epsn, s->h.una);
}
