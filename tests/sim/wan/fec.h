/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the scenario's `fec` word into the tunnel's configuration. */
#ifndef SIM_WAN_FEC_H
#define SIM_WAN_FEC_H

#include "wan/wan.h"

/* "default" keeps the choice of wan_cfg_default(). False: wan/ has no such setting. */
bool fec_configure(struct wan_cfg *c, const char *word);

#endif
