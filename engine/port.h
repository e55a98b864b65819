/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as the user of wan/: its callbacks and its tunnels. */
#ifndef ENGINE_PORT_H
#define ENGINE_PORT_H

#include "engine/eng.h"

/* The callbacks of every tunnel; their context is its struct eng_tunnel. */
extern const struct wan_ops eng_wan_ops;

/* tunnel.c: makes the tunnels of eng_cfg. RWY_ENOMEM, RWY_EINVAL: eng_free removes those made. */
int eng_tunnels_init(struct eng *e, rwy_time now);

#endif
