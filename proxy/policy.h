/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a relay: its addresses, its access list, and the listen map.
 * Without an entry that allows it, nothing passes. Not changed while an edge uses it.
 */
#ifndef PROXY_POLICY_H
#define PROXY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/ip.h"

#define PROXY_ADDRS_MAX 16
#define PROXY_NAME_MAX  32

struct proxy_prefix {
	struct rwy_ip addr;
	uint8_t len; /* 0..128; IPv4: 96 + length */
};

/* Hosts in `from` may connect to hosts in `to`, on these ports. */
struct proxy_acl {
	struct proxy_prefix from, to;
	uint16_t port_lo, port_hi;
};

/* Entry of the listen map: connections to this relay address and port go to this target. */
struct proxy_entry {
	char name[PROXY_NAME_MAX]; /* unique */
	struct rwy_ip listen;      /* a relay address */
	uint16_t port;
	struct rwy_ip target; /* of the same family */
	uint16_t target_port;
	uint32_t links_max; /* 0: not bounded */
};

struct proxy_policy {
	struct rwy_ip addr[PROXY_ADDRS_MAX];
	unsigned addrs;
	const struct proxy_acl *acl;
	unsigned acls;
	const struct proxy_entry *entry;
	unsigned entries;
	/* port of relay addresses where the REQ has its target in a trailer; 0: none */
	uint16_t redirect_port;
	uint16_t ask_port; /* UDP port of relay addresses, see proxy/desk.h; 0: none */
};

bool proxy_is_relay(const struct proxy_policy *p, const struct rwy_ip *a);
bool proxy_allows(
    const struct proxy_policy *p, const struct rwy_ip *from, const struct rwy_ip *to, uint16_t port);
/*
 * Whether queue pairs of a and b may belong together, without CM and so without a port: an entry
 * for all ports allows it, of whichever of the two it is from.
 */
bool proxy_allows_pair(const struct proxy_policy *p, const struct rwy_ip *a, const struct rwy_ip *b);
/* Whether these two may connect at all, on any port and in either direction. */
bool proxy_allows_hosts(const struct proxy_policy *p, const struct rwy_ip *a, const struct rwy_ip *b);
/* The index of the entry; -1: none. */
int proxy_entry_find(const struct proxy_policy *p, const struct rwy_ip *listen, uint16_t port);

#endif
