/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference models: other transports on the same link with the same losses. Each gets all it needs
 * to know without cost (no lost feedback, no decoding time, packets of our size), so its figures
 * are too good rather than too bad. One flow; messages one at a time, or one endless message if
 * `rtts` is set.
 */
#ifndef SIM_WAN_BASE_H
#define SIM_WAN_BASE_H

#include "cc/cc.h"
#include "tests/sim/wan/stat.h"

/* Selective repeat: the receiver names each missing packet, and the sender knows one round trip
 * after it was sent. */
void run_sr(const struct scen *s, struct result *r);
/* Blocks of 32 packets, each followed by 8 parity packets. A block that lost more than its parity
 * covers is repeated selectively, beginning one round trip after the message's end was sent. */
void run_ec(const struct scen *s, struct result *r);
/* Go-back-N, as RoCE NICs do: the first gap repeats everything from there; `timeout` if the end is
 * lost. */
void run_gbn(const struct scen *s, struct result *r);

/* One TCP connection (tcp.h) alone on the link, for `rtts`. */
void run_tcp(const struct scen *s, struct result *r, const struct cc_ops *ops);

/* The wire that they share. */
struct wire {
	double at;  /* ns: free from then on */
	double per; /* ns per packet */
	double rtt;
	struct loss *loss;
	double packet; /* bytes on the wire */
};

/* Waits: nothing is sent until then. */
void base_wait(struct wire *w, double until);

/* Sends one message of n packets, beginning at w->at. Returns when its last packet is at the far
 * host. `until`: stop there (HUGE_VAL: at the end); *have counts the packets that arrived. */
typedef double base_message(
    struct wire *w, const struct scen *s, struct result *r, uint64_t n, double until, uint64_t *have);
void base_run(const struct scen *s, struct result *r, base_message *one);

#endif
