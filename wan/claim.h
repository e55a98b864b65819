/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two gateways of a site may be a *pair*: one is active, the other its standby. They share
 * tunnel_id and the addresses of their ports; each process has its own epoch. At most one of them
 * may have the tunnel. The gateway at the other end decides which: it is the *witness*. It needs no
 * configuration for it, and may itself be one of a pair, whose witness is this end. What it decides
 * is in wan/witness.c; what it says is believed only with proof (handshake.c).
 *
 * An older gateway confirms no claim, and refuses nobody: wan_claim_granted stays false.
 */
#ifndef WAN_CLAIM_H
#define WAN_CLAIM_H

#include "wan/wan.h"

enum wan_claim {
	/* Not one of a pair. */
	WAN_CLAIM_NONE,
	/* Standby: the tunnel sends nothing at all, and drops what comes (drop_silent). It counts
	 * as down; if it was up, the next wan_tick says so. */
	WAN_CLAIM_SILENT,
	/* Handing over: no frames are sent, those that come are dropped (drop_silent), and nothing
	 * is asked. It answers HELLOs, and is still the witness of its peer. At its own witness
	 * the claim before stays. */
	WAN_CLAIM_YIELD,
	/* It has just started and is to become the active one, as the other one of the pair, which
	 * has just started too, agrees: KEEP of a gateway that did not have the tunnel before. */
	WAN_CLAIM_START,
	/* Active, without a standby: while this one is up, the witness gives the tunnel to no
	 * other. */
	WAN_CLAIM_KEEP,
	/* Active, with a standby that has everything: the same, but one that takes gets it. */
	WAN_CLAIM_HOLD,
	/* Standby that takes over. It stays so until the engine claims HOLD or KEEP. */
	WAN_CLAIM_TAKE,
	/* The same; its active gateway asked it to. The witness treats both in the same way. */
	WAN_CLAIM_INHERIT
};
/*
 * Changes the claim; the present one again: nothing happens. It takes effect at once: the next
 * wan_poll has a HELLO with it, which is repeated until the witness confirms it. A new tunnel has
 * WAN_CLAIM_NONE; a claim made before the first wan_poll is the first that the peer hears of. May
 * be called from any of wan_ops. Calls none of them.
 */
void wan_claim(struct wan_tunnel *t, enum wan_claim c, rwy_time now);
/*
 * This tunnel is one of several between the same two gateways, and another one of them decides
 * which process of the peer's pair has them all: `epoch`; 0: it does not know yet. HELLOs of
 * another process of a pair wait until it is named. May call wan_ops.
 */
void wan_claim_led(struct wan_tunnel *t, uint64_t epoch, rwy_time now);
/*
 * This gateway may have been replaced itself, and asks who serves at its site: as the witness of
 * its peer it gives this tunnel to no other process until it knows (on: false).
 */
void wan_claim_question(struct wan_tunnel *t, bool on);
/* The present claim. */
enum wan_claim wan_claimed(const struct wan_tunnel *t);
/*
 * The witness refused this process for good: another one replaced it. Only a new process may claim.
 */
bool wan_claim_over(const struct wan_tunnel *t);
/*
 * The witness has confirmed the present claim, by an answer to a HELLO that carried it. An answer
 * to an earlier claim does not count. It ends when the claim changes, when the peer falls silent
 * and when it restarts; the claim is then repeated until it is confirmed again. Never true for
 * SILENT and YIELD, and for NONE unless another claim was made before.
 *
 * The witness is bound as long as it hears from us: for four of *its* keep-alive intervals.
 */
bool wan_claim_granted(const struct wan_tunnel *t);
/*
 * A proof of freshness that the peer has given and not got back, for the other gateway of a pair:
 * its first HELLO with it is believed at once, and answered, instead of challenged. It is good for
 * one HELLO. False: there is none.
 */
struct wan_proof {
	uint64_t epoch, nonce; /* of the peer */
};
bool wan_proof_spare(const struct wan_tunnel *t, struct wan_proof *out);
/* Uses a proof that the witness gave to the other gateway of the pair. Call it before the claim. */
void wan_proof_use(struct wan_tunnel *t, const struct wan_proof *p);
/* The epoch of the peer that is believed; 0: none is known. */
uint64_t wan_peer_epoch(const struct wan_tunnel *t);

#endif
