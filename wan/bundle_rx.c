/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A received bundle: its packets get buffers of their own, and each goes to its flow (run_rx.c does
 * the same for a run). With many flows each step fetches what the next one reads of all packets.
 */
#include "wan/ahead.h"
#include "wan/tunnel.h"

struct packet {
	struct wan_f_data d;
	struct rwy_buf *b;
};

/* Reads the packets behind the first. */
static void read_all(
    const struct wan_f_data *bundle, const uint8_t *p, const uint8_t *at[], uint32_t len[], struct packet v[])
{
	v[0].d = *bundle;
	v[0].d.run = 0;
	at[0] = p;
	len[0] = bundle->first;
	for (unsigned i = 1; i < bundle->run; i++) {
		v[i].d = v[0].d;
		at[i] = wan_f_bundle_next(at[i - 1] + len[i - 1], &v[i].d, &len[i]);
	}
}

/* Gives the packets buffers. Returns how many have one. */
static unsigned take_buffers(
    struct wan_tunnel *t, unsigned n, const uint8_t *const at[], const uint32_t len[], struct packet v[])
{
	unsigned i = 0;

	while (i < n && (v[i].b = wan_run_packet(t, at[i], len[i])))
		i++;
	return i;
}

static void fetch_flows(const struct wan_tunnel *t, const struct packet *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (WAN_SLOT(v[i].d.flow) < t->rx_cap)
			rwy_prefetch(t->rx[WAN_SLOT(v[i].d.flow)].f, WAN_RXFLOW_LINES);
}

static void fetch_users(const struct wan_tunnel *t, const struct packet *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct wan_rxflow *f = wan_rx_find(t, v[i].d.flow);

		if (f)
			wan_fetch_rx_user(t, f);
	}
}

enum wan_accept wan_bundle_rx(
    struct wan_tunnel *t, const struct wan_f_data *bundle, const uint8_t *p, rwy_time now)
{
	struct packet v[WAN_BUNDLE_MAX];
	const uint8_t *at[WAN_BUNDLE_MAX];
	uint32_t len[WAN_BUNDLE_MAX];
	const bool many = t->rx_flows > WAN_MANY_FLOWS;
	enum wan_accept r = WAN_ACCEPT;
	unsigned n;

	read_all(bundle, p, at, len, v);
	if (many)
		fetch_flows(t, v, bundle->run);
	n = take_buffers(t, bundle->run, at, len, v);
	if (many)
		fetch_users(t, v, n);
	for (unsigned i = 0; i < n; i++)
		if (wan_rx_data(t, &v[i].d, v[i].b, now) == WAN_ACCEPT_RETRY)
			r = WAN_ACCEPT_RETRY;
	if (n < bundle->run) {
		t->c.drop_no_buffer++;
		return WAN_ACCEPT_RETRY;
	}
	return r;
}
