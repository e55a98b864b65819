/* SPDX-License-Identifier: Apache-2.0 */
/* A host at each site of eng_pair, A and B, with one queue pair. */
#ifndef TESTS_LIB_ENG_TWO_HOSTS_H
#define TESTS_LIB_ENG_TWO_HOSTS_H

#include "engine/responder.h"
#include "engine/table.h"
#include "tests/lib/eng_pair.h"

#define QPN_A 0x51
#define QPN_B 0x50
/* Addresses, as struct rc_mk has them. */
#define HOST_A                                                                                               \
	{                                                                                                    \
		10, 1, 0, 3                                                                                  \
	}
#define HOST_B                                                                                               \
	{                                                                                                    \
		10, 2, 0, 3                                                                                  \
	}

/* The key of A's requests. */
static inline struct eng_key eng_key_of_a(void)
{
	return (struct eng_key){
	    .src = rwy_ip_from4((uint8_t[4])HOST_A), .dst = rwy_ip_from4((uint8_t[4])HOST_B), .qpn = QPN_B};
}

/* Their responder side, which there is. */
static inline struct eng_responder *eng_side_of_a(void)
{
	const struct eng_key k = eng_key_of_a();
	struct eng_side *s = eng_find(site[0].e, &k, false);

	assert_non_null(s);
	return (struct eng_responder *)s;
}

#endif
