/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a site's gateways (gateway.site_key, gateway/datapath/sibling_seal.h). */
#ifndef GATEWAY_CONTROL_SITE_KEY_H
#define GATEWAY_CONTROL_SITE_KEY_H

#include "base/siphash.h"
#include "rwy/err.h"

/*
 * Reads the file: 32 hexadecimal digits and nothing else but a line end, of this user and closed to
 * others. RWY_EINVAL: logged, without the key.
 */
RWY_MUST_CHECK int gw_site_key_read(uint8_t key[BASE_SIPHASH_KEY], const char *path);

#endif
