/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a user of wan/: its callbacks, its tunnels. */
#ifndef ENGINE_PORT_H
#define ENGINE_PORT_H

#include "engine/eng.h"

extern const struct wan_ops eng_wan_ops;

/* tunnel.c: those of the configuration. RWY_ENOMEM, RWY_EINVAL. */
int eng_tunnels_init(struct eng *e, rwy_time now);

#endif
