/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside conf/ only: the schema table, the tree that YAML becomes, and the scalar parsers.
 * Not here: what other folders may use (conf.h).
 */
#ifndef CONF_SCHEMA_H
#define CONF_SCHEMA_H

#include "conf/conf.h"

#define CONF_FILE_MAX  (64u << 20) /* bytes of a file */
#define CONF_NODES_MAX 2000000     /* values in a file: 16384 tenants with 10 rules each have 1.7 million */
#define CONF_DEPTH_MAX 6           /* nesting of a file: a rule's operations are that deep */

/* --- the schema ------------------------------------------------------------------------------ */

enum conf_type {
	CONF_T_GROUP,    /* a mapping of keys */
	CONF_T_GROUPS,   /* a list of mappings */
	CONF_T_INT,      /* decimal */
	CONF_T_PERCENT,  /* stored in millionths: 0.5 */
	CONF_T_ENUM,     /* one of words, stored as its index (int) or, size CONF_NAME, as text */
	CONF_T_NAME,     /* letters, digits, '.', '_', '-' */
	CONF_T_STRING,   /* printable text */
	CONF_T_PATH,     /* an absolute path that fits a Unix socket address */
	CONF_T_CPUS,     /* "0-3,8" */
	CONF_T_SIZE,     /* bytes: 64KiB */
	CONF_T_DURATION, /* stored in ns: 10min */
	CONF_T_RATE,     /* bits per second, stored in bytes per second: 10Gbps */
	CONF_T_IP,       /* a host's address */
	CONF_T_MAC,      /* of one station: 02:00:00:00:00:01 */
	CONF_T_PREFIX,   /* prefix/length without host bits, or `any` */
	CONF_T_UDP,      /* UDP ports "49152-65535", stored as the first and the last */
	CONF_T_DSCP,     /* 0..63 or `keep`, stored as a map of all 64 */
	CONF_T_PLACE,    /* where a prefix is: vtep, vlan or a tunnel's name, stored as struct tenant_at */
	CONF_T_ADDRS,    /* list of address/length, host bits kept */
	CONF_T_PREFIXES, /* list of prefix/length, no host bits */
	CONF_T_STRINGS,  /* list of text, each malloced */
	CONF_T_WORDS,    /* list of words, stored as a set of bits */
	CONF_T_IPS,      /* list of hosts' addresses */
	CONF_T_IP_EACH,  /* list of an IPv4 address, an IPv6 address or both, in an array of these two */
};

struct conf_key {
	const char *path; /* "gateway.name", "ports[].mtu" */
	enum conf_type type;
	uint64_t min, max; /* numbers: the range; lists: how many */
	const char *dflt;  /* as written in a file; NULL: required; "": may be left out */
	const char
	    *words; /* CONF_T_ENUM, CONF_T_WORDS: "near far end"; others: a word that means 0 (or any) */
	uint32_t offset, size,
	    count;        /* in the struct of its group; lists: element size, offset of the count */
	bool malloced;    /* lists: a pointer is there, to an array of its own */
	bool restart;     /* a change needs a restart */
	const char *text; /* a sentence for operators */
};
extern const struct conf_key conf_keys[];
extern const unsigned conf_keys_count;

/* A sentence on the values of this key: "an integer from 1 to 64". */
void conf_key_describe(const struct conf_key *k, char *out, size_t size);
const char *conf_key_name(const struct conf_key *k); /* the last part of its path */
/* The part of a key's path behind its group, when it is in it: "ports[].name" is "name" in "ports[]". */
const char *conf_key_in_group(const struct conf_key *k, const char *group);
bool conf_key_is_list(const struct conf_key *k); /* of scalars */

/* A group's keys in the table; the keys of groups inside it are not among them. */
struct conf_group {
	const struct conf_key *first;
	unsigned count;
};
#define CONF_GROUP_KEYS_MAX 32
struct conf_group conf_group_find(const char *path); /* "", "gateway", "ports[]" */

/* The idx-th of words separated by blanks; false when there are fewer. */
bool conf_word_at(const char *words, unsigned idx, char out[CONF_NAME]);
/* The number of a word of k->words; -1. */
int conf_word_find(const struct conf_key *k, const char *text);

/* --- YAML ------------------------------------------------------------------------------------ */

enum conf_kind { CONF_SCALAR, CONF_MAP, CONF_SEQ };

struct conf_node {
	enum conf_kind kind;
	bool plain; /* scalar without quotes */
	unsigned line, column;
	char *text; /* scalar */
	size_t len;
	char *key; /* when the parent is a map */
	unsigned key_line, key_column;
	struct conf_node *child, *last, *next;
};

struct conf_tree {
	struct conf_node *root; /* a map */
	unsigned nodes;
};

RWY_MUST_CHECK int conf_tree_parse(struct conf_tree *t, const char *text, size_t len, struct conf_error *err);
void conf_tree_free(struct conf_tree *t);
/* The value of a map's key, or NULL. */
const struct conf_node *conf_node_get(const struct conf_node *map, const char *key);
const struct conf_node *conf_node_at(const struct conf_node *seq, unsigned idx);
/* `key:` with nothing behind it. */
bool conf_node_is_null(const struct conf_node *n);
/* "`10x`", "a list", "nothing": what stands there, safe to print. */
void conf_node_found(const struct conf_node *n, char *out, size_t size);

/* --- scalars: false when the text is not one (trailing junk included) ------------------------ */

bool conf_scan_int(const char *s, uint64_t *out);
bool conf_scan_size(const char *s, uint64_t *out);
bool conf_scan_duration(const char *s, uint64_t *out);
bool conf_scan_rate(const char *s, uint64_t *bits_per_s);
bool conf_scan_percent(const char *s, uint64_t *ppm);
bool conf_scan_ports(const char *s, uint16_t lo_hi[2]);
bool conf_scan_mac(const char *s, uint8_t mac[6]); /* of one station, not all 0 */
bool conf_scan_ip(const char *s, struct rwy_ip *out);
bool conf_ip_unicast(const struct rwy_ip *a); /* a host or gateway can have it */
bool conf_scan_prefix(const char *s, struct conf_prefix *out);
bool conf_scan_cpus(const char *s, unsigned *count);
bool conf_scan_name(const char *s, size_t max);
bool conf_scan_printable(const char *s);

/* The reverse, with the largest unit that divides. */
void conf_print_value(enum conf_type type, uint64_t v, char *out, size_t size);
void conf_print_ip(const struct rwy_ip *a, char *out, size_t size);
void conf_print_prefix(const struct conf_prefix *p, char *out, size_t size);

/* A scalar as it is written in a file; "": there is none, or it is a list. c for the names of tunnels. */
#define CONF_TEXT 256
void conf_value_text(const struct conf *c, const struct conf_key *k, const void *at, char out[CONF_TEXT]);

bool conf_prefix_has(const struct conf_prefix *p, const struct rwy_ip *a);
bool conf_prefix_overlap(const struct conf_prefix *a, const struct conf_prefix *b);
struct rwy_ip conf_prefix_base(const struct conf_prefix *p); /* host bits cleared */

/* --- the passes ------------------------------------------------------------------------------ */

/* Fills *err and returns RWY_EINVAL. */
int conf_fail(struct conf_error *err, unsigned line, unsigned column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int conf_fail_at(struct conf_error *err, const struct conf_node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The candidate that is closest to a mistyped word, or NULL if none is near. `words`: NULL-terminated. */
const char *conf_nearest(const char *word, const char *const *words);

RWY_MUST_CHECK int conf_fill(struct conf *c, const struct conf_tree *t, struct conf_error *err);
/* One key of the top and what is in it. n: its value, NULL: it is not there. */
RWY_MUST_CHECK int conf_fill_top(
    struct conf *c, const char *key, const struct conf_node *n, struct conf_error *err);
/* The keys of a group from its map into the struct at base. map NULL: there is none. keep: what is left out
 * stays as it is, instead of its default, and nothing is required. given: a key that is not required; NULL.
 */
RWY_MUST_CHECK int conf_fill_group(const struct conf *c, void *base, const char *path,
    const struct conf_node *map, bool keep, const char *given, struct conf_error *err);
/* "expected ... for `key`, found ..." */
int conf_fail_type(struct conf_error *err, const struct conf_key *k, const struct conf_node *n);
/* Whether these were given, or derived from other keys. */
bool conf_tenant_own_mac(const struct conf_tenant *t);
bool conf_tenant_own_congested(const struct conf_tenant *t);
/* Fills the fields of a tenant that follow from others. base: as in conf_tenant_parse. */
void conf_tenant_finish(
    const struct conf *c, struct conf_tenant *t, const struct conf_node *map, const struct conf_tenant *base);

RWY_MUST_CHECK int conf_check(const struct conf *c, const struct conf_tree *t, struct conf_error *err);
/* The same of tunnels and tenants alone; `own`: so many tunnels come before those of the text. */
RWY_MUST_CHECK int conf_check_network(
    const struct conf *c, const struct conf_tree *t, unsigned own, struct conf_error *err);
/* The siblings of a file. */
RWY_MUST_CHECK int conf_check_siblings(
    const struct conf *c, const struct conf_node *root, struct conf_error *err);
void conf_resolve_ports(struct conf *c); /* tunnels' port_idx, by their port's name */
void conf_finish_tenants(struct conf *c, const struct conf_tree *t);
/* Keys that need a restart are as in the running gateway. */
RWY_MUST_CHECK int conf_check_restart(
    const struct conf *c, const struct conf *running, const struct conf_tree *t, struct conf_error *err);
/* n tenants at `t`, whose maps are `map` and what follows it. */
RWY_MUST_CHECK int conf_check_tenants(const struct conf *c, const struct conf_tenant *t, unsigned n,
    const struct conf_node *map, struct conf_error *err);

#endif
