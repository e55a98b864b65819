/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants. Each has a number (VNI, VLAN), an address space, VTEPs, an ACL and a quality of service.
 * Two parts:
 *
 *   struct tenant, struct tenant_set     constant once published; workers read without locks
 *   struct tenant_db, struct tenant_txn  one thread at a time builds the next set with them
 *
 * In the gateway that is the thread that changes tenants, under gw_change_lock
 * (gateway/control/tenants.c).
 *
 * A change is: begin, add / set / del / acl, commit. Commit checks everything and returns the next
 * set, or reports an error and changes nothing. The caller publishes the set's pointer to its
 * workers, waits until all of them run its generation, and calls tenant_db_quiesced, which frees
 * what only older generations used. Sets share tenants that did not change.
 *
 * Indices: workers know a tenant by a small number that stays the same across generations as long
 * as a tenant of that name exists. 0 is the plain LAN without a tenant. The index of a removed
 * tenant is reused only after tenant_db_release: workers may still have connections, counters and
 * learned VTEPs of it.
 */
#ifndef TENANT_TENANT_H
#define TENANT_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ether.h"
#include "rwy/ip.h"
#include "tenant/acl.h"
#include "vxlan/ecn.h"
#include "tenant/range.h"

#define TENANT_NAME_MAX     32 /* bytes of a name, with the terminating 0 */
#define TENANT_COUNT_MAX    16384
#define TENANT_PREFIXES_MAX 1024
#define TENANT_VTEPS_MAX    256
#define TENANT_HOSTS_MAX    1024
#define TENANT_TUNNELS_MAX  64
#define TENANT_VNI_MAX      0xffffffu
#define TENANT_VLAN_MAX     4094
#define TENANT_WEIGHT_MAX   1000
#define TENANT_RATE_MIN     1000 /* bytes a second; lower bound of rates other than 0 */
#define TENANT_PRIORITY_MAX 7
#define TENANT_PPM          1000000

/* The place of an address. */
enum tenant_side {
	TENANT_NOWHERE, /* the address is in none of the tenant's prefixes */
	TENANT_LAN,     /* on this site, on the tenant's VLAN */
	TENANT_VTEP,    /* on this site, behind a VTEP, in the tenant's VNI */
	TENANT_TUNNEL,  /* behind another gateway */
};
struct tenant_at {
	uint8_t side;   /* enum tenant_side */
	uint8_t tunnel; /* TENANT_TUNNEL: number of the tunnel; else 0 */
};

struct tenant_prefix {
	struct prefix p;
	struct tenant_at at;
};

/* A host with a configured place: it is never learned elsewhere, and hardware may forward traffic
 * between two such hosts (offload/offload.h). */
struct tenant_host {
	struct rwy_ip addr; /* within a prefix with side LAN or VTEP */
	struct rwy_ip vtep; /* all 0: the host is on the VLAN */
	uint8_t mac[6];
};

/* When a host's request is acknowledged (docs/rc-semantics.md), in the order of the engine's
 * modes. */
enum tenant_ack { TENANT_ACK_NEAR, TENANT_ACK_FAR, TENANT_ACK_END, TENANT_ACK_CAUSAL, TENANT_ACK_SITE };

/* The tenant's rule for new RC connections, in the order of the engine's modes. */
enum tenant_admission { TENANT_ADMISSION_OPEN, TENANT_ADMISSION_CM, TENANT_ADMISSION_CONTROLLER };

/* How long its hosts may be silent (struct eng_timers), in ns. All 0: as on the plain LAN. */
struct tenant_timers {
	uint64_t ack_min, ack_max;
	uint8_t retry, rnr_retry;
};

/* A mode for some pairs of hosts. */
#define TENANT_MODES_MAX 16
struct tenant_mode {
	struct prefix from, to; /* the local host that asks, the host behind a tunnel */
	enum tenant_ack mode;
};

struct tenant_cfg {
	char name[TENANT_NAME_MAX]; /* letters, digits, '-', '_', '.'; not empty */
	uint32_t vni;               /* 1 .. TENANT_VNI_MAX; 0: none */
	/* 1 .. TENANT_VLAN_MAX; 0: none. At least one of VNI and VLAN is set. */
	uint16_t vlan;

	/* longest match wins; may overlap those of other tenants */
	const struct tenant_prefix *prefix;
	unsigned prefixes;
	const struct rwy_ip *vtep; /* VTEPs of the hosts */
	unsigned vteps;
	bool vtep_learn;                /* accept other VTEPs as well */
	const struct tenant_host *host; /* hosts with a configured place; others are learned */
	unsigned hosts;

	const struct acl_rule *rule;
	unsigned rules;
	bool allow_default;

	enum tenant_ack ack_mode;                  /* where no entry of `mode` matches */
	struct tenant_mode mode[TENANT_MODES_MAX]; /* the first that matches decides */
	unsigned modes;
	enum tenant_admission admission;
	struct tenant_timers timers;
	/* bytes a second on each tunnel that leads to its prefixes; 0: none */
	uint64_t guarantee_Bps;
	uint64_t limit_Bps; /* 0: none */
	uint32_t weight;    /* share of the capacity without guarantees: 1 .. TENANT_WEIGHT_MAX */
	uint8_t priority;   /* 0 .. 7; 7 is served first */
	struct vxlan_dscp dscp;
	/* policy for RoCE packets while their path is congested */
	struct vxlan_dscp dscp_congested;
	/* PCP of frames to its hosts, plus 1; 0: that of the frame in which the packet came */
	uint8_t pcp;
	/* reserved part of custody memory; 0: the tenant uses unreserved memory */
	uint32_t memory_ppm;

	/* the gateway's MAC in the tenant's network; needed with a VNI, gw_ip or proxy_arp */
	uint8_t gw_mac[6];
	struct rwy_ip gw_ip[2]; /* IPv4, IPv6, within a local prefix; all 0: none */
	/* answer ARP and ND for addresses behind tunnels or on the other side */
	bool proxy_arp;
};
/* The PCP of a frame to one of its hosts, as in struct rwy_buf; came: that of the packet. */
static inline uint8_t tenant_pcp(const struct tenant_cfg *cfg, uint8_t came)
{
	return cfg->pcp ? (uint8_t)(RWY_PCP_TAGGED + cfg->pcp - 1) : came;
}
/* Sets zeroes, except: weight 1, everything allowed, DSCP kept. */
void tenant_cfg_default(struct tenant_cfg *cfg);

/* A tenant as workers see it. Constant; tenant_db_quiesced frees it. */
struct tenant {
	uint32_t index; /* 1 and above */
	/* generation of its last change: what flows remember of the tenant is valid as long */
	uint64_t changed;
	struct tenant_cfg cfg; /* owns its arrays; vtep and host are sorted */
	uint64_t tunnels;      /* set of tunnels that lead to its prefixes */
	const struct acl *acl;
	/* Private: longest prefix match by range. */
	struct range_map map;
	struct tenant_at *at;
	size_t bytes;
};

/* Returns the place of an address of this tenant; TENANT_NOWHERE: in none of its prefixes. Costs
 * two to three cache lines. */
static inline struct tenant_at tenant_find(const struct tenant *t, const struct rwy_ip *a)
{
	return t->at[range_find(&t->map, a)];
}

struct tenant_set {
	uint64_t generation; /* 1, 2, ... */
	uint32_t n;          /* number of tenants */
	uint32_t top;        /* bound of all indices */
	/* private */
	const struct tenant **by_index;
	uint64_t *vni_slot;                 /* VNI << 16 | index; 0: empty */
	uint16_t *name_slot;                /* index; 0: empty */
	uint32_t vni_shift, name_mask;      /* a slot is hash >> shift */
	uint16_t vlan[TENANT_VLAN_MAX + 2]; /* index by VLAN ID */
};

/* Each returns NULL when there is no such tenant. */
static inline const struct tenant *tenant_by_index(const struct tenant_set *s, uint32_t index)
{
	return index < s->top ? s->by_index[index] : NULL;
}
static inline const struct tenant *tenant_by_vlan(const struct tenant_set *s, uint16_t vlan)
{
	/* by_index[0] is NULL */
	return vlan <= TENANT_VLAN_MAX ? s->by_index[s->vlan[vlan]] : NULL;
}
static inline const struct tenant *tenant_by_vni(const struct tenant_set *s, uint32_t vni)
{
	uint32_t n = 1u << (32 - s->vni_shift), at = vni * 0x9e3779b1u >> s->vni_shift;

	for (; s->vni_slot[at]; at = (at + 1) & (n - 1))
		if (s->vni_slot[at] >> 16 == vni)
			return s->by_index[s->vni_slot[at] & 0xffff];
	return NULL;
}
/* NULL: there is no such tenant. */
const struct tenant *tenant_by_name(const struct tenant_set *s, const char *name);

/* --- admission of packets from local hosts ---------------------------------------------------- */

/* X(enumerator, counter name, sentence); every reason except OK is a drop */
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
/* The name of the reason's counter; static text. */
const char *tenant_admit_name(enum tenant_admit r);

/* Finds the tenant of a VXLAN packet by its VNI and checks its VTEP and the VLAN ID of the inner
 * tag (0: untagged), which must be the tenant's. *t is set for every reason except UNKNOWN_VNI, so
 * that the drop counts for the tenant. */
enum tenant_admit tenant_of_vxlan(const struct tenant_set *s, uint32_t vni, const struct rwy_ip *vtep,
    uint16_t vlan, const struct tenant **t);
/* Checks the addresses of a packet that came in on `side` (TENANT_LAN or TENANT_VTEP), then the
 * ACL. *to: the packet's destination, also when DENIED; *rule: the rule that decided, for its
 * counter. */
enum tenant_admit tenant_admits(const struct tenant *t, enum tenant_side side, const struct acl_key *k,
    struct tenant_at *to, uint16_t *rule);

/* --- building --------------------------------------------------------------------------------- */

/* Faults of a configuration. X(enumerator, sentence) */
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
	X(TENANT_E_PREFIX, "prefix: bad length, host bits, or IPv6 that covers all of IPv4")                 \
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
	X(TENANT_E_RATE, "rate below the minimum, or limit below the guarantee")                             \
	X(TENANT_E_WEIGHT, "weight out of range")                                                            \
	X(TENANT_E_PRIORITY, "priority out of range")                                                        \
	X(TENANT_E_DSCP, "DSCP out of range")                                                                \
	X(TENANT_E_PCP, "PCP out of range")                                                                  \
	X(TENANT_E_SHARE, "memory share out of range, or the sum of all above the whole")                    \
	X(TENANT_E_GUARANTEE, "the sum of all guarantees is above the tunnel's rate")
enum tenant_error {
#define X(e, s) e,
	TENANT_ERRORS(X)
#undef X
	    TENANT_ERROR_COUNT
};

/* An error in a configuration and its place. */
struct tenant_err {
	enum tenant_error why;
	char name[TENANT_NAME_MAX];  /* name of the tenant */
	char other[TENANT_NAME_MAX]; /* VNI_TWICE, VLAN_TWICE: the tenant that has it */
	/* number of the prefix, VTEP or rule (from 0), or tunnel; -1: none */
	int item;
	enum acl_error rule_why; /* TENANT_E_RULE: the reason */
};
/* Writes one line without newline, cut to fit; returns buf. */
const char *tenant_err_text(const struct tenant_err *e, char *buf, size_t len);

struct tenant_limits {
	uint32_t tenants; /* 1 .. TENANT_COUNT_MAX at a time */
	unsigned tunnels; /* 0 .. TENANT_TUNNELS_MAX */
	/* upper bound of the sum of guarantees; 0: unknown, not checked */
	uint64_t capacity_Bps[TENANT_TUNNELS_MAX];
};

struct tenant_db;
/* Makes a db with an empty set of generation 1. RWY_EINVAL: limits out of range; RWY_ENOMEM. */
RWY_MUST_CHECK int tenant_db_new(struct tenant_db **out, const struct tenant_limits *limits);
/* Frees the db and all its sets: no worker may read them any more. */
void tenant_db_free(struct tenant_db *db);
/* Sets other limits, checked from the next transaction on. *was, if not NULL: the former limits.
 * RWY_EINVAL: out of range. */
RWY_MUST_CHECK int tenant_db_limits(
    struct tenant_db *db, const struct tenant_limits *limits, struct tenant_limits *was);
/* The present set. */
const struct tenant_set *tenant_db_current(const struct tenant_db *db);
/* Every worker runs `generation` or a later one: frees sets and tenants that only earlier ones
 * used. Returns the number freed. */
unsigned tenant_db_quiesced(struct tenant_db *db, uint64_t generation);
/* No worker has anything of this index: it may be reused. RWY_EAGAIN: its removal is not quiesced
 * yet; RWY_ENOENT: it is not waiting for release. */
int tenant_db_release(struct tenant_db *db, uint32_t index);

/*
 * A transaction. A db has at most one open. Each call below is atomic: on a negative return *err
 * has the reason and the transaction is unchanged. Errors: RWY_EINVAL, RWY_EEXIST, RWY_ENOENT
 * (unknown tenant), RWY_ENOMEM, RWY_EAGAIN (TENANT_E_BUSY). Errors within one tenant's
 * configuration are found here, errors between tenants at commit.
 */
struct tenant_txn;
/* Begins with the present tenants. RWY_EINVAL: another one is open; RWY_ENOMEM. *out is the
 * caller's until tenant_txn_commit or tenant_txn_abort. */
RWY_MUST_CHECK int tenant_txn_begin(struct tenant_txn **out, struct tenant_db *db);
/* Removes all tenants: the adds that follow make up the whole configuration (a reload). A tenant
 * added again under its name keeps its index and, when unchanged, its compiled form. */
void tenant_txn_clear(struct tenant_txn *x);
/* Add a tenant, change the one of that name, remove it. */
RWY_MUST_CHECK int tenant_txn_add(struct tenant_txn *x, const struct tenant_cfg *cfg, struct tenant_err *err);
RWY_MUST_CHECK int tenant_txn_set(struct tenant_txn *x, const struct tenant_cfg *cfg, struct tenant_err *err);
RWY_MUST_CHECK int tenant_txn_del(struct tenant_txn *x, const char *name, struct tenant_err *err);
/* Makes the set that commit would publish, after all its checks, for callers that must prepare
 * others for it. Valid until the transaction's next change or end; a commit before that cannot
 * fail. Errors as commit. */
RWY_MUST_CHECK int tenant_txn_prepare(
    struct tenant_txn *x, const struct tenant_set **next, struct tenant_err *err);
/* Makes the next set current and frees *x. After an error *x stays, to be corrected or aborted. */
RWY_MUST_CHECK int tenant_txn_commit(
    struct tenant_txn *x, const struct tenant_set **out, struct tenant_err *err);
void tenant_txn_abort(struct tenant_txn *x); /* NULL is allowed */

#endif
