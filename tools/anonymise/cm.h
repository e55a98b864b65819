/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a management datagram anonymous. One thread. */
#ifndef TOOLS_ANONYMISE_CM_H
#define TOOLS_ANONYMISE_CM_H

#include <stdint.h>

#include "tools/anonymise/map.h"

/* `mad`: ROCE_MAD_LEN bytes, changed in place. What is no field that is kept or replaced is 0. */
void anon_mad(const struct anon_key *key, uint8_t *mad);

#endif
