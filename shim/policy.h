/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relays by which a host reaches its targets: as roceway-host-agent writes, else as
 * /etc/roceway/redirect.conf or roceway-run says. A line is
 *
 *     redirect PREFIX via RELAY[,weight=N][,port=N][,down] ... [else RELAY ...]
 *
 * The longest prefix decides. Relays behind `else` are asked when none before them answers; of
 * those before, each gets connections by its weight. One that is `down` is asked when no other is
 * left.
 */
#ifndef SHIM_POLICY_H
#define SHIM_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"

#define SHIM_RULES_MAX  1024
#define SHIM_RELAYS_MAX 4096 /* of all rules */
#define SHIM_FILE_MAX   (512 << 10)
#define SHIM_FILE       "/etc/roceway/redirect.conf"
/* The agent's, which comes first where there is one. */
#define SHIM_AGENT_FILE "/run/roceway-host/redirect.conf"
/* Environment: a file in place of both; relays for all targets in place of a file. */
#define SHIM_ENV_FILE "ROCEWAY_REDIRECT"
#define SHIM_ENV_VIA  "ROCEWAY_VIA"

struct shim_relay {
	struct rwy_ip addr;
	uint16_t port;       /* where it is asked */
	uint8_t weight;      /* 1..100 */
	uint8_t order;       /* 0: first */
	bool down;           /* as the file says */
	rwy_time down_until; /* it did not answer; changed by shim/talk.c */
};

struct shim_rule {
	struct rwy_ip addr;
	uint8_t len; /* as in rwy_prefix_match() */
	uint16_t first, relays;
};

struct shim_policy {
	struct shim_rule rule[SHIM_RULES_MAX];
	struct shim_relay relay[SHIM_RELAYS_MAX];
	unsigned rules, relays;
};

/*
 * Reads the text of a file, which ends with a NUL. RWY_EINVAL: err says the line and why, and *p is
 * not to be used.
 */
RWY_MUST_CHECK int shim_policy_parse(struct shim_policy *p, const char *text, char *err, size_t size);
/*
 * All targets of a relay's family by these relays: words as behind `via`, without `else`.
 * RWY_EINVAL: err says why, and *p is not to be used.
 */
RWY_MUST_CHECK int shim_policy_via(struct shim_policy *p, const char *relays, char *err, size_t size);
/* The text of a file of at most SHIM_FILE_MAX bytes, which the caller frees. NULL: err says why. */
RWY_MUST_CHECK char *shim_text_file(const char *path, char *err, size_t size);
/* The policy of a file. RWY_EINVAL: err says what is wrong with it. */
RWY_MUST_CHECK int shim_policy_file(struct shim_policy *p, const char *path, char *err, size_t size);

/*
 * The rule of a target; NULL: it is reached directly. A relay and link-local addresses always are.
 */
const struct shim_rule *shim_policy_find(const struct shim_policy *p, const struct rwy_ip *target);

#endif
