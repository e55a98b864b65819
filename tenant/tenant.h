/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants. Each has a number (VNI, VLAN), an address space of its own, VTEPs, an ACL and a quality of
 * service. Two parts:
 *
 *   struct tenant, struct tenant_set   constant once published; workers read them without locks
 *   struct tenant_db, struct tenant_txn   the control thread's: builds the next set from the present one
 *
 * A change is: begin, add / set / del / acl, commit. Commit checks everything and returns the next set, or
 * says what is wrong and changes nothing. The caller publishes the set's pointer to its workers, waits until
 * all of them run its generation, and calls tenant_db_quiesced, which frees what only older generations saw.
 * Tenants that did not change are shared between sets, not built again.
 *
 * Indices: a tenant is known to workers by a small number that stays the same across generations as long as
 * the tenant (its name) exists. 0 is nobody's: the plain LAN. The index of a removed tenant is given to
 * another one only after tenant_db_release: workers may have connections, counters and learned VTEPs under
 * it.
 */
#ifndef TENANT_TENANT_H
#define TENANT_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"
#include "tenant/acl.h"
#include "vxlan/ecn.h"
#include "tenant/range.h"

#define TENANT_NAME_MAX     32 /* with the 0 at the end */
#define TENANT_COUNT_MAX    16384
#define TENANT_PREFIXES_MAX 1024
#define TENANT_VTEPS_MAX    256
#define TENANT_HOSTS_MAX    1024
#define TENANT_TUNNELS_MAX  64
#define TENANT_VNI_MAX      0xffffffu
#define TENANT_VLAN_MAX     4094
#define TENANT_WEIGHT_MAX   1000
#define TENANT_RATE_MIN     1000 /* bytes a second, where there is a rate */
#define TENANT_PRIORITY_MAX 7
#define TENANT_PPM          1000000

/* Where an address is. */
enum tenant_side {
	TENANT_NOWHERE, /* in none of the tenant's prefixes */
	TENANT_LAN,     /* here, on the tenant's VLAN */
	TENANT_VTEP,    /* here, behind a VTEP, in the tenant's VNI */
	TENANT_TUNNEL,  /* behind another gateway */
};
struct tenant_at {
	uint8_t side;   /* enum tenant_side */
	uint8_t tunnel; /* TENANT_TUNNEL: its number; else 0 */
};

struct tenant_prefix {
	struct prefix p;
	struct tenant_at at;
};

/* A host whose place is configured: it is never learned elsewhere, and what goes between two of them can be
 * left to hardware (offload/offload.h). */
struct tenant_host {
	struct rwy_ip addr; /* in a prefix that is here */
	struct rwy_ip vtep; /* all 0: on the VLAN */
	uint8_t mac[6];
};

/* When a host's request is acknowledged (docs/rc-semantics.md), in the engine's order. */
enum tenant_ack { TENANT_ACK_NEAR, TENANT_ACK_FAR, TENANT_ACK_END };

struct tenant_cfg {
	char name[TENANT_NAME_MAX]; /* letters, digits, '-', '_', '.'; not empty */
	uint32_t vni;               /* 1 .. TENANT_VNI_MAX; 0: none */
	uint16_t vlan;              /* 1 .. TENANT_VLAN_MAX; 0: none. One of the two there must be. */

	const struct tenant_prefix *prefix; /* longest match wins; may overlap those of other tenants */
	unsigned prefixes;
	const struct rwy_ip *vtep; /* the hosts' VTEPs */
	unsigned vteps;
	bool vtep_learn;                /* others than those are accepted, too */
	const struct tenant_host *host; /* those whose place is fixed; others are learned */
	unsigned hosts;

	const struct acl_rule *rule;
	unsigned rules;
	bool allow_default;

	enum tenant_ack ack_mode;
	uint64_t guarantee_Bps; /* bytes a second on each tunnel that it has prefixes behind; 0: none */
	uint64_t limit_Bps;     /* 0: none */
	uint32_t weight;        /* of what nobody is guaranteed: 1 .. TENANT_WEIGHT_MAX */
	uint8_t priority;       /* 0 .. 7; 7 is served first */
	struct vxlan_dscp dscp;
	struct vxlan_dscp dscp_congested; /* of RoCE packets while their path is congested */
	uint32_t
	    memory_ppm; /* of the custody memory, reserved for it; 0: it lives from what is not reserved */

	uint8_t
	    gw_mac[6]; /* the gateway's own in the tenant's network; needed with a VNI, gw_ip or proxy_arp */
	struct rwy_ip gw_ip[2]; /* IPv4, IPv6; all 0: none. In a prefix that is here. */
	bool proxy_arp;         /* answer ARP and ND for addresses behind tunnels or on the other side */
};
/* Zeroes, but: weight 1, everything allowed, DSCP kept. */
void tenant_cfg_default(struct tenant_cfg *cfg);

/* A tenant as workers see it. All const; freed by tenant_db_quiesced. */
struct tenant {
	uint32_t index; /* 1 .. */
	uint64_t
	    changed; /* generation in which it became what it is: what a flow remembers of it holds as long */
	struct tenant_cfg cfg; /* arrays are its own; vtep and host are sorted */
	uint64_t tunnels;      /* set of tunnels with prefixes behind them */
	const struct acl *acl;
	/* private: longest prefix match, by range */
	struct range_map map;
	struct tenant_at *at;
	size_t bytes;
};

/* Where an address of this tenant is; TENANT_NOWHERE when in none of its prefixes. Two to three cache lines.
 */
static inline struct tenant_at tenant_find(const struct tenant *t, const struct rwy_ip *a)
{
	return t->at[range_find(&t->map, a)];
}
bool tenant_has_vtep(const struct tenant *t, const struct rwy_ip *vtep); /* configured, or learning is on */

struct tenant_set {
	uint64_t generation; /* 1, 2, ... */
	uint32_t n;          /* tenants */
	uint32_t top;        /* every index is below */
	/* private */
	const struct tenant **by_index;
	uint64_t *vni_slot;                 /* VNI << 16 | index; 0: empty */
	uint16_t *name_slot;                /* index; 0: empty */
	uint32_t vni_shift, name_mask;      /* a slot is hash >> shift */
	uint16_t vlan[TENANT_VLAN_MAX + 2]; /* index */
};

/* NULL: no such tenant. */
static inline const struct tenant *tenant_by_index(const struct tenant_set *s, uint32_t index)
{
	return index < s->top ? s->by_index[index] : NULL;
}
static inline const struct tenant *tenant_by_vlan(const struct tenant_set *s, uint16_t vlan)
{
	return vlan <= TENANT_VLAN_MAX ? s->by_index[s->vlan[vlan]] : NULL; /* by_index[0] is NULL */
}
static inline const struct tenant *tenant_by_vni(const struct tenant_set *s, uint32_t vni)
{
	uint32_t n = 1u << (32 - s->vni_shift), at = vni * 0x9e3779b1u >> s->vni_shift;

	for (; s->vni_slot[at]; at = (at + 1) & (n - 1))
		if (s->vni_slot[at] >> 16 == vni)
			return s->by_index[s->vni_slot[at] & 0xffff];
	return NULL;
}
const struct tenant *tenant_by_name(const struct tenant_set *s, const char *name);

/* --- admission: is a packet that came from a local host its tenant's? ------------------------------- */

/* X(enumerator, counter name, sentence); every reason but OK is a drop */
#define TENANT_ADMIT(X)                                                                                      \
	X(TENANT_OK, "ok", "admitted")                                                                       \
	X(TENANT_UNKNOWN_VNI, "unknown_vni", "no tenant has this VNI")                                       \
	X(TENANT_UNKNOWN_VLAN, "unknown_vlan", "no tenant has this VLAN")                                    \
	X(TENANT_FOREIGN_VTEP, "foreign_vtep", "the VTEP is not one of the tenant's")                        \
	X(TENANT_FOREIGN_TAG, "foreign_tag", "the inner frame's VLAN is not the tenant's")                   \
	X(TENANT_FORGED_SOURCE, "forged_source",                                                             \
	    "the source address is not one of the tenant's on that side")                                    \
	X(TENANT_NO_ROUTE, "no_route", "the destination is in none of the tenant's prefixes")                \
	X(TENANT_DENIED, "acl_denied", "the tenant's ACL forbids it")
enum tenant_admit {
#define X(e, n, s) e,
	TENANT_ADMIT(X)
#undef X
	    TENANT_ADMIT_COUNT
};
const char *tenant_admit_name(enum tenant_admit r);

/* The tenant of a VXLAN packet: its VNI, its VTEP, and the VLAN ID of the inner tag (0: untagged), which must
 * be the tenant's own. *t is set for every reason but UNKNOWN_VNI, so that the drop counts as the tenant's.
 */
enum tenant_admit tenant_of_vxlan(const struct tenant_set *s, uint32_t vni, const struct rwy_ip *vtep,
    uint16_t vlan, const struct tenant **t);
/* Addresses of a packet that came in on `side` (TENANT_LAN or TENANT_VTEP), then the ACL. *to is where it
 * goes (also when DENIED); *rule the rule that decided, for its counter. */
enum tenant_admit tenant_admits(const struct tenant *t, enum tenant_side side, const struct acl_key *k,
    struct tenant_at *to, uint16_t *rule);

/* --- building --------------------------------------------------------------------------------------- */

/* X(enumerator, sentence) */
#define TENANT_ERRORS(X)                                                                                     \
	X(TENANT_E_NONE, "no error")                                                                         \
	X(TENANT_E_MEMORY, "out of memory")                                                                  \
	X(TENANT_E_BUSY, "indices of removed tenants are still in use by workers")                           \
	X(TENANT_E_COUNT, "too many tenants")                                                                \
	X(TENANT_E_NAME, "a name is 1 to 31 letters, digits, '-', '_' or '.'")                               \
	X(TENANT_E_EXISTS, "there is a tenant of this name already")                                         \
	X(TENANT_E_UNKNOWN, "there is no tenant of this name")                                               \
	X(TENANT_E_NUMBER, "neither VNI nor VLAN")                                                           \
	X(TENANT_E_VNI, "VNI out of range")                                                                  \
	X(TENANT_E_VNI_TWICE, "another tenant has this VNI")                                                 \
	X(TENANT_E_VLAN, "VLAN out of range")                                                                \
	X(TENANT_E_VLAN_TWICE, "another tenant has this VLAN")                                               \
	X(TENANT_E_PREFIXES, "too many prefixes")                                                            \
	X(TENANT_E_PREFIX, "prefix: bad length, bits behind it, or an IPv6 one over all of IPv4")            \
	X(TENANT_E_PREFIX_TWICE, "the same prefix twice")                                                    \
	X(TENANT_E_PLACE, "prefix: no such tunnel, on the LAN without a VLAN, at VTEPs without a VNI")       \
	X(TENANT_E_VTEPS, "too many VTEPs")                                                                  \
	X(TENANT_E_VTEP, "VTEP: not the address of one host, the same twice, or without a VNI")              \
	X(TENANT_E_HOSTS, "too many hosts")                                                                  \
	X(TENANT_E_HOST, "host: not in a prefix that is here, VTEP not the tenant's, no MAC, or twice")      \
	X(TENANT_E_GATEWAY, "gateway's own: wrong family, address not in a local prefix, or no MAC")         \
	X(TENANT_E_RULE, "rule")                                                                             \
	X(TENANT_E_RULE_OUTSIDE, "rule: prefix outside all of the tenant's prefixes")                        \
	X(TENANT_E_ACK_MODE, "ack mode does not exist")                                                      \
	X(TENANT_E_RATE, "rate below the least there is, or limit below the guarantee")                      \
	X(TENANT_E_WEIGHT, "weight out of range")                                                            \
	X(TENANT_E_PRIORITY, "priority out of range")                                                        \
	X(TENANT_E_DSCP, "DSCP out of range")                                                                \
	X(TENANT_E_SHARE, "memory share out of range, or the sum of all above the whole")                    \
	X(TENANT_E_GUARANTEE, "the sum of all guarantees is above what the tunnel has")
enum tenant_error {
#define X(e, s) e,
	TENANT_ERRORS(X)
#undef X
	    TENANT_ERROR_COUNT
};

/* An error in a configuration, and where it is. */
struct tenant_err {
	enum tenant_error why;
	char name[TENANT_NAME_MAX];  /* of the tenant */
	char other[TENANT_NAME_MAX]; /* VNI_TWICE, VLAN_TWICE: who has it already */
	int item;                    /* number of the prefix, VTEP, rule (from 0), tunnel; -1 */
	enum acl_error rule_why;     /* TENANT_E_RULE: why */
};
/* One line without newline, cut to fit; returns buf. */
const char *tenant_err_text(const struct tenant_err *e, char *buf, size_t len);

struct tenant_limits {
	uint32_t tenants;                          /* 1 .. TENANT_COUNT_MAX at a time */
	unsigned tunnels;                          /* 0 .. TENANT_TUNNELS_MAX */
	uint64_t capacity_Bps[TENANT_TUNNELS_MAX]; /* the guarantees' sum may not be above; 0: not known, not
	                                              checked */
};

struct tenant_db;
/* A db has an empty set of generation 1. RWY_EINVAL: limits out of range; RWY_ENOMEM. */
RWY_MUST_CHECK int tenant_db_new(struct tenant_db **out, const struct tenant_limits *limits);
void tenant_db_free(struct tenant_db *db); /* and all its sets: no worker may read them any more */
/* Other limits from now on: what is checked from the next transaction on. *was, if not NULL: those before.
 * RWY_EINVAL: out of range. */
RWY_MUST_CHECK int tenant_db_limits(
    struct tenant_db *db, const struct tenant_limits *limits, struct tenant_limits *was);
const struct tenant_set *tenant_db_current(const struct tenant_db *db);
/* Every worker runs generation `generation` or a later one: frees sets and tenants that only earlier ones
 * had. The number freed. */
unsigned tenant_db_quiesced(struct tenant_db *db, uint64_t generation);
/* The next index above `after` (0 to start) that waits for tenant_db_release; 0: none. */
uint32_t tenant_db_removed(const struct tenant_db *db, uint32_t after);
/* No worker has anything under this index. RWY_EAGAIN: its removal is not quiesced yet; RWY_ENOENT: it waits
 * for nothing. */
int tenant_db_release(struct tenant_db *db, uint32_t index);

/*
 * A transaction. At most one is open on a db; each of the following is atomic: with a negative return *err
 * says why and the transaction is as it was. RWY_EINVAL, RWY_EEXIST, RWY_ENOENT (unknown tenant), RWY_ENOMEM,
 * RWY_EAGAIN (TENANT_E_BUSY).
 * Errors within one tenant's configuration are found here, those between tenants at commit.
 */
struct tenant_txn;
RWY_MUST_CHECK int tenant_txn_begin(struct tenant_txn **out, struct tenant_db *db);
/* Removes all: then adds make up the whole new configuration (a reload). A tenant that is added again under
 * its name keeps its index, and when it is the same, its compiled form. */
void tenant_txn_clear(struct tenant_txn *x);
RWY_MUST_CHECK int tenant_txn_add(struct tenant_txn *x, const struct tenant_cfg *cfg, struct tenant_err *err);
RWY_MUST_CHECK int tenant_txn_set(struct tenant_txn *x, const struct tenant_cfg *cfg, struct tenant_err *err);
RWY_MUST_CHECK int tenant_txn_del(struct tenant_txn *x, const char *name, struct tenant_err *err);
/* Another ACL for a tenant, all else as it is. */
RWY_MUST_CHECK int tenant_txn_acl(struct tenant_txn *x, const char *name, const struct acl_rule *rules,
    unsigned n, bool allow_default, struct tenant_err *err);
/* The tenant as the transaction has it now, or NULL: what "set" begins from. Valid until the next call. */
const struct tenant *tenant_txn_get(const struct tenant_txn *x, const char *name);
/* The set that commit would give, after all of its checks, for who must prepare others for it. Holds until
 * the transaction's next change or its end; a commit in between cannot fail. On error as commit. */
RWY_MUST_CHECK int tenant_txn_prepare(
    struct tenant_txn *x, const struct tenant_set **next, struct tenant_err *err);
/* The next set, current from now on; *x is gone. On error *x stays, to be mended or aborted. */
RWY_MUST_CHECK int tenant_txn_commit(
    struct tenant_txn *x, const struct tenant_set **out, struct tenant_err *err);
void tenant_txn_abort(struct tenant_txn *x); /* NULL is allowed */

#endif
