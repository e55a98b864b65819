/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keyed one-to-one maps from the names in a capture to other names: who has no key cannot go back.
 * The same key gives the same names in every capture. Pure functions: any thread.
 */
#ifndef TOOLS_ANONYMISE_MAP_H
#define TOOLS_ANONYMISE_MAP_H

#include <stdint.h>

#include "base/siphash.h"
#include "rwy/ip.h"

struct anon_key {
	uint8_t k[BASE_SIPHASH_KEY];
};

/* The kinds of numbers; each has a map of its own. */
enum anon_kind {
	ANON_QPN,
	ANON_RKEY,
	ANON_COMM_ID,
	ANON_TID,
	ANON_PORT,
	ANON_VA,
	ANON_MAC,
	ANON_IP4,
	ANON_IP6
};

/*
 * Replaces an address. Two addresses that share a prefix of n bits share one of n bits afterwards.
 * The bits that tell the kind of an address stay: the class of an IPv4 address, the first 3 bits of
 * an IPv6 address, 10 from fc00:: up. An address of zeros stays.
 */
void anon_ip4(const struct anon_key *key, uint8_t ip[4]);
void anon_ip6(const struct anon_key *key, uint8_t ip[16]);
/* The same of a GID: IPv4 if it is a mapped address (::ffff:a.b.c.d), so that it stays the one of
 * its packets. */
void anon_gid(const struct anon_key *key, uint8_t gid[16]);

/* Replaces a MAC address by a locally administered one; a group address stays. */
void anon_mac(const struct anon_key *key, uint8_t mac[6]);

/* A queue pair or EE context number, 24 bits. 0, 1 and 0xffffff have a meaning and stay. */
uint32_t anon_qpn(const struct anon_key *key, uint32_t qpn);
uint32_t anon_32(const struct anon_key *key, enum anon_kind kind, uint32_t v);
uint64_t anon_64(const struct anon_key *key, enum anon_kind kind, uint64_t v);
/* A virtual address of the region that rkey (the original) names: all of a region move by the same
 * distance, so that one packet still goes on where the one before ended. */
uint64_t anon_va(const struct anon_key *key, uint32_t rkey, uint64_t va);
/* A UDP source port; those below 49152, which RoCEv2 hosts do not choose, stay. */
uint16_t anon_port(const struct anon_key *key, uint16_t port);

#endif
