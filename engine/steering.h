/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steering: which tunnel a flow is assigned to, and what is reserved for it there. The controller's
 * assignments become one set, which all workers' engines read.
 */
#ifndef ENGINE_STEERING_H
#define ENGINE_STEERING_H

#include "engine/engine.h"

/*
 * Tunnels are assigned to flows; prefixes decide for the others. An assignment is for packets of
 * local host src to dst, with dqpn only for those to that QP. Connections stay in their tunnel.
 * Each one also admits its pair (ENG_ADMIT_CONTROLLER); ENG_STEER_ANY does only that.
 *
 * An assignment may have a reservation: a share of the tunnel for what src sends to dst, requests
 * and responses, within the share of src's tenant. Assignments with one number use it together, and
 * all name the same share. A change reaches the connections that exist within about a second.
 */
#define ENG_STEER_ANY        ENG_TUNNELS_MAX
#define ENG_RESERVATIONS_MAX 65535
struct eng_steering;
struct eng_steer_cfg {
	struct rwy_ip src, dst;
	uint32_t vni, dqpn; /* dqpn 0: any */
	uint8_t tunnel;
	uint16_t reservation;       /* its number; 0: none */
	struct wan_class_cfg share; /* valid if it has one; `parent` is ignored */
};
/* Any thread: a set of n assignments, copied; of two for one flow the last counts. RWY_EINVAL: a
 * share out of range; RWY_ENOMEM. */
RWY_MUST_CHECK int eng_steering_new(struct eng_steering **out, const struct eng_steer_cfg *v, unsigned n);
/* Any thread. NULL allowed. */
void eng_steering_free(struct eng_steering *w);
/*
 * Decides by w from now on (NULL: no assignments), which stays the caller's and is only read:
 * several engines may share it. It must last until the engine gets another one.
 */
void eng_steering_set(struct eng *e, const struct eng_steering *w);

/* Sums what a reservation's number has sent in all tunnels of this engine; `cfg` is that of one. */
void eng_reservation_stats(const struct eng *e, unsigned reservation, struct wan_class_stats *out);

#endif
