/* SPDX-License-Identifier: Apache-2.0 */
/* Private to proxy/mirror*.c: the messages of two relays, and the standby's part. */
#ifndef PROXY_MIRROR_INT_H
#define PROXY_MIRROR_INT_H

#include "proxy/mirror.h"

/* Numbers are on the wire: new ones come last. */
enum proxy_mirror_type {
	PROXY_MIRROR_BEGIN = 1, /* all links follow */
	PROXY_MIRROR_LINK = 2,  /* a link, new or changed */
	PROXY_MIRROR_LINK_GONE = 3,
	PROXY_MIRROR_DONE = 4, /* all links that there were at BEGIN have been told */
	PROXY_MIRROR_HAD = 5,  /* by the standby: it has all messages up to this number */
};

/* mirror_msg.c: l of LINK and LINK_GONE. Returns the length. */
uint32_t proxy_mirror_write(
    uint8_t out[PROXY_MIRROR_LEN], enum proxy_mirror_type type, uint64_t number, const struct proxy_link *l);
void proxy_mirror_number(uint8_t *msg, uint64_t number);
/* False: it is malformed. */
bool proxy_mirror_read(
    const uint8_t *msg, uint32_t len, enum proxy_mirror_type *type, uint64_t *number, struct proxy_link *l);

/* mirror_hear.c: confirms what came, and forgets what was not told. Returns the messages sent. */
unsigned proxy_mirror_standby_turn(struct proxy_mirror *m);

#endif
