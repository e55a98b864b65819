/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that wait in one direction between a socket and TLS. Thread: the one that runs the
 * exchange. A zeroed struct is empty.
 */
#ifndef GATEWAY_TLS_BYTES_H
#define GATEWAY_TLS_BYTES_H

#include <stddef.h>
#include <stdint.h>

#define GW_BYTES_MAX (64u << 10) /* bytes that wait at most */

struct gw_bytes {
	uint8_t *p;
	size_t at, n, room; /* p[at .. n) waits */
};

/* Appends a copy of n bytes. RWY_ENOMEM: no memory, or more than GW_BYTES_MAX: nothing changed. */
int gw_bytes_put(struct gw_bytes *b, const void *p, size_t n);
/* Wipes and frees them; they may have been secret. */
void gw_bytes_free(struct gw_bytes *b);

#endif
