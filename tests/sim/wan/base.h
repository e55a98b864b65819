/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference models: what others do, on the same link with the same losses. Each is told everything it needs
 * without cost (no lost feedback, no decoding time, packets of our own size), so a figure of theirs is rather
 * too good. One flow; messages one at a time, or one endless message when `rtts` is set.
 */
#ifndef SIM_WAN_BASE_H
#define SIM_WAN_BASE_H

#include "cc/cc.h"
#include "tests/sim/wan/stat.h"

/* Selective repeat: the receiver names each missing packet, the sender has it again one round trip after it
 * was sent. */
void run_sr(const struct scen *s, struct result *r);
/* Blocks of 32 packets and 8 of parity after each; blocks that lost more than their parity covers are
 * repeated selectively, beginning one round trip after the message's end was sent. */
void run_ec(const struct scen *s, struct result *r);
/* What a RoCE NIC does: the first gap sends everything from there again; `timeout` when the end is lost. */
void run_gbn(const struct scen *s, struct result *r);

/* One TCP connection (tcp.h), alone on the link, for `rtts`. */
void run_tcp(const struct scen *s, struct result *r, const struct cc_ops *ops);

/* The wire they share. */
struct wire {
	double at;  /* free from then on, ns */
	double per; /* ns a packet */
	double rtt;
	struct loss *loss;
	double packet; /* bytes on the wire */
};

/* Nothing is sent until then. */
void base_wait(struct wire *w, double until);

/* One message of n packets begun at w->at; returns when its last packet is at the far host. `until`: stop
 * there (HUGE_VAL: at the end); *have counts packets that arrived. */
typedef double base_message(
    struct wire *w, const struct scen *s, struct result *r, uint64_t n, double until, uint64_t *have);
void base_run(const struct scen *s, struct result *r, base_message *one);

#endif
