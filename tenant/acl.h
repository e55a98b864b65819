/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access control within a tenant: an ordered list of rules over source and destination prefix, UDP
 * source port and class of packet. The first rule that matches decides, else the default. In
 * compiled form a lookup costs three searches and at most ACL_RULES_MAX / 64 steps over bitmaps,
 * whatever the rules are (bit vectors per field with a summary word: Lakshman and Stiliadis,
 * SIGCOMM 1998; Baboescu and Varghese, SIGCOMM 2001).
 *
 * Thread: one compiles, in the gateway the one that changes tenants; then it is constant, and any
 * number of workers reads it.
 */
#ifndef TENANT_ACL_H
#define TENANT_ACL_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/opcode.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "tenant/range.h"

#define ACL_RULES_MAX 1024
#define ACL_DEFAULT   UINT16_MAX /* no rule matched */

/* Classes of packets. X(enumerator, word in configurations, sentence) */
#define ACL_CLASSES(X)                                                                                       \
	X(ACL_SEND, "send", "SEND of a connected transport, with immediate or invalidate too")               \
	X(ACL_WRITE, "write", "RDMA WRITE")                                                                  \
	X(ACL_READ, "read", "RDMA READ request")                                                             \
	X(ACL_ATOMIC, "atomic", "compare and swap, fetch and add")                                           \
	X(ACL_RESPONSE, "response", "ACK, NAK, READ response, ATOMIC ACK")                                   \
	X(ACL_CNP, "cnp", "congestion notification")                                                         \
	X(ACL_CM, "cm", "datagram to QP1: connection management")                                            \
	X(ACL_UD, "ud", "other unreliable datagram")                                                         \
	X(ACL_OTHER, "other", "all packets other than RoCEv2 (TCP, ICMP, ...), and reserved opcodes")

enum acl_class {
#define X(e, w, s) e,
	ACL_CLASSES(X)
#undef X
	    ACL_CLASS_COUNT
};
#define ACL_ALL ((uint16_t)((1u << ACL_CLASS_COUNT) - 1))

/* Returns the class of a RoCEv2 packet from its BTH. */
enum acl_class acl_class_of(uint8_t opcode, uint32_t dqpn);

struct acl_rule {
	struct prefix src, dst;      /* both are of one family, or len 0: any */
	uint16_t sport_lo, sport_hi; /* UDP source ports, both ends included; 0..65535: any */
	uint16_t classes;            /* set of bits 1 << enum acl_class */
	bool allow;
};

struct acl_key {
	struct rwy_ip src, dst;
	/* UDP source port; 0 for other packets: they match rules whose range begins at 0 */
	uint16_t sport;
	uint8_t cls; /* enum acl_class */
};

struct acl_verdict {
	uint16_t rule; /* index of the rule, for its counter; or ACL_DEFAULT */
	bool allow;
};

/* Reasons why rules do not compile. X(enumerator, sentence) */
#define ACL_ERRORS(X)                                                                                        \
	X(ACL_E_NONE, "no error")                                                                            \
	X(ACL_E_RULES, "too many rules")                                                                     \
	X(ACL_E_SRC, "source prefix: bad length, host bits, or IPv6 that covers all of IPv4")                \
	X(ACL_E_DST, "destination prefix: bad length, host bits, or IPv6 that covers all of IPv4")           \
	X(ACL_E_FAMILY, "source and destination are of different families: no packet can match")             \
	X(ACL_E_PORTS, "first source port is above the last one")                                            \
	X(ACL_E_CLASSES, "no operation, or one that does not exist")                                         \
	X(ACL_E_MEMORY, "out of memory")
enum acl_error {
#define X(e, s) e,
	ACL_ERRORS(X)
#undef X
	    ACL_ERROR_COUNT
};
/* The fault as a sentence; static text. */
const char *acl_error_text(enum acl_error e);

struct acl_err {
	enum acl_error why;
	unsigned rule; /* index; 0 for ACL_E_MEMORY; the given number of rules for ACL_E_RULES */
};

/* Makes the same checks without compiling. Returns 0, or RWY_EINVAL with *err. */
RWY_MUST_CHECK int acl_check(const struct acl_rule *rules, unsigned n, struct acl_err *err);

struct acl;
/* Compiles rules; copies what it needs of them. Returns RWY_EINVAL or RWY_ENOMEM with *err; *out is
 * then unchanged. n may be 0: then `allow_default` decides everything. */
RWY_MUST_CHECK int acl_new(
    struct acl **out, const struct acl_rule *rules, unsigned n, bool allow_default, struct acl_err *err);
void acl_free(struct acl *a);            /* NULL is allowed */
uint64_t acl_bytes(const struct acl *a); /* memory in use */

/* The verdict for a packet. */
struct acl_verdict acl_lookup(const struct acl *a, const struct acl_key *k);
/* Returns the set of allowed classes; k->cls is ignored. A flow table asks when a flow is made and
 * when the tenant's generation changes; then a packet costs a bit test. */
uint16_t acl_allowed(const struct acl *a, const struct acl_key *k);

#endif
