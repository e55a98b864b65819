/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside conf/ only: the table of keys, the tree that YAML becomes, the parsers of scalars, the
 * passes. conf.h is for other folders.
 */
#ifndef CONF_SCHEMA_H
#define CONF_SCHEMA_H

#include "conf/conf.h"

#define CONF_FILE_MAX  (64u << 20) /* bytes of a file */
#define CONF_NODES_MAX 2000000     /* in a file; 16384 tenants with 10 rules have 1.7 million */
#define CONF_DEPTH_MAX 6           /* nesting in a file: the operations of a rule are that deep */

/* --- the schema ------------------------------------------------------------------------------ */

enum conf_type {
	CONF_T_GROUP,   /* a mapping of keys */
	CONF_T_GROUPS,  /* a list of mappings */
	CONF_T_INT,     /* decimal */
	CONF_T_PERCENT, /* in millionths: "0.5" is 5000 */
	/* one of `words`, stored as its index (int), or as text if the size is CONF_NAME */
	CONF_T_ENUM,
	CONF_T_NAME,     /* letters, digits, '.', '_', '-' */
	CONF_T_STRING,   /* printable text */
	CONF_T_PATH,     /* an absolute path, short enough for a Unix socket's address */
	CONF_T_CPUS,     /* "0-3,8" */
	CONF_T_SIZE,     /* bytes: 64KiB */
	CONF_T_DURATION, /* stored in ns: 10min */
	CONF_T_RATE,     /* bits per second, stored as bytes per second: 10Gbps */
	CONF_T_IP,       /* the address of a host */
	CONF_T_MAC,      /* of one station: 02:00:00:00:00:01 */
	CONF_T_PREFIX,   /* prefix/length without host bits, or `any` */
	CONF_T_UDP,      /* UDP ports "49152-65535", stored as first and last */
	CONF_T_DSCP,     /* 0..63 or `keep`, stored as a map of all 64 values */
	/* the place of a prefix: vtep, vlan or a tunnel's name, stored as struct tenant_at */
	CONF_T_PLACE,
	CONF_T_ADDRS,    /* list of address/length, with host bits */
	CONF_T_PREFIXES, /* list of prefix/length, without host bits */
	CONF_T_STRINGS,  /* list of texts, each malloced */
	CONF_T_WORDS,    /* list of words, stored as a set of bits */
	CONF_T_IPS,      /* list of hosts' addresses */
	/* list of an IPv4 address, an IPv6 address or both, stored in an array of two */
	CONF_T_IP_EACH,
};

struct conf_key {
	const char *path; /* "gateway.name", "ports[].mtu" */
	enum conf_type type;
	uint64_t min, max; /* numbers: the range; lists: the number of entries */
	const char *dflt;  /* as a file has it; NULL: the key is required; "": it may be omitted */
	/* CONF_T_ENUM, CONF_T_WORDS: "near far end"; other types: a word that means 0 (or any) */
	const char *words;
	/* offset in the group's struct; lists: also an element's size and the count's offset */
	uint32_t offset, size, count;
	bool malloced;    /* for lists: the field is a pointer to a malloced array */
	bool restart;     /* a change needs a restart */
	const char *text; /* a sentence for operators */
};
extern const struct conf_key conf_keys[];
extern const unsigned conf_keys_count;

/* Describes the values of this key: "an integer from 1 to 64". */
void conf_key_describe(const struct conf_key *k, char *out, size_t size);
const char *conf_key_name(const struct conf_key *k); /* the last part of its path */
/* The part of a key's path after its group, if it is in it: "ports[].name" is "name" in "ports[]".
 * NULL: it is not. */
const char *conf_key_in_group(const struct conf_key *k, const char *group);
bool conf_key_is_list(const struct conf_key *k); /* true for lists of scalars */

/* A group's keys in the table, without the keys of groups inside it. */
struct conf_group {
	const struct conf_key *first;
	unsigned count;
};
#define CONF_GROUP_KEYS_MAX 64
struct conf_group conf_group_find(const char *path); /* "", "gateway", "ports[]" */

/* Copies the idx-th of words separated by blanks; false: there are fewer. */
bool conf_word_at(const char *words, unsigned idx, char out[CONF_NAME]);
/* The index of a word in k->words; -1: it is not one of them. */
int conf_word_find(const struct conf_key *k, const char *text);

/* --- YAML ------------------------------------------------------------------------------------ */

enum conf_kind { CONF_SCALAR, CONF_MAP, CONF_SEQ };

struct conf_node {
	enum conf_kind kind;
	bool plain; /* a scalar without quotes */
	unsigned line, column;
	char *text; /* of a scalar */
	size_t len;
	char *key; /* if the parent is a map */
	unsigned key_line, key_column;
	struct conf_node *child, *last, *next;
};

struct conf_tree {
	struct conf_node *root; /* a map */
	unsigned nodes;
};

/* Parses YAML into a tree, which conf_tree_free() frees. RWY_EINVAL with *err: the text is no YAML,
 * exceeds a limit above, or memory ran out. */
RWY_MUST_CHECK int conf_tree_parse(struct conf_tree *t, const char *text, size_t len, struct conf_error *err);
void conf_tree_free(struct conf_tree *t);
/* The value of a map's key; NULL: the map does not have it. */
const struct conf_node *conf_node_get(const struct conf_node *map, const char *key);
/* The idx-th entry of a list; NULL: it has fewer. */
const struct conf_node *conf_node_at(const struct conf_node *seq, unsigned idx);
/* Refuses a key that the map has before n already. */
RWY_MUST_CHECK int conf_node_once(
    const struct conf_node *map, const struct conf_node *n, struct conf_error *err);
/* True for `key:` without a value. */
bool conf_node_is_null(const struct conf_node *n);
/* Describes a node for a message: "`10x`", "a list", "nothing"; safe to print. */
void conf_node_found(const struct conf_node *n, char *out, size_t size);

/* --- scalars: false if the text is not one, or something follows it --------------------------- */

/* Units of *out: bytes (size), ns (duration), bit/s (rate), ppm (percent). conf_scan_ports() gives
 * the first and the last port, conf_scan_cpus() the number of CPUs. */
bool conf_scan_int(const char *s, uint64_t *out);
bool conf_scan_size(const char *s, uint64_t *out);
bool conf_scan_duration(const char *s, uint64_t *out);
bool conf_scan_rate(const char *s, uint64_t *bits_per_s);
bool conf_scan_percent(const char *s, uint64_t *ppm);
bool conf_scan_ports(const char *s, uint16_t lo_hi[2]);
bool conf_scan_mac(const char *s, uint8_t mac[6]); /* of one station, not all 0 */
bool conf_scan_ip(const char *s, struct rwy_ip *out);
bool conf_ip_unicast(const struct rwy_ip *a); /* true if a host or gateway can have it */
bool conf_scan_prefix(const char *s, struct conf_prefix *out);
bool conf_scan_cpus(const char *s, unsigned *count);
bool conf_scan_name(const char *s, size_t max);
bool conf_scan_printable(const char *s);

/* Prints a value with the largest unit that divides it. */
void conf_print_value(enum conf_type type, uint64_t v, char *out, size_t size);
void conf_print_ip(const struct rwy_ip *a, char *out, size_t size);
void conf_print_prefix(const struct conf_prefix *p, char *out, size_t size);

/* Prints a scalar as a file has it; "": it is absent, or a list. c has the names of tunnels. */
#define CONF_TEXT 256
void conf_value_text(const struct conf *c, const struct conf_key *k, const void *at, char out[CONF_TEXT]);

/* True if the prefix contains the address; true if the prefixes have an address in common. */
bool conf_prefix_has(const struct conf_prefix *p, const struct rwy_ip *a);
bool conf_prefix_overlap(const struct conf_prefix *a, const struct conf_prefix *b);
struct rwy_ip conf_prefix_base(const struct conf_prefix *p); /* host bits cleared */

/* --- the passes ------------------------------------------------------------------------------ */

/* Fills *err with a place and a message. Returns RWY_EINVAL. */
int conf_fail(struct conf_error *err, unsigned line, unsigned column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int conf_fail_at(struct conf_error *err, const struct conf_node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The candidate closest to a mistyped word; NULL: none is close. `words` is NULL-terminated. */
const char *conf_nearest(const char *word, const char *const *words);

/* Fills all keys from the tree. RWY_EINVAL with *err, RWY_ENOMEM, as the functions below. */
RWY_MUST_CHECK int conf_fill(struct conf *c, const struct conf_tree *t, struct conf_error *err);
/* Fills one top-level key and all below it. n: its value; NULL: the file does not have it. */
RWY_MUST_CHECK int conf_fill_top(
    struct conf *c, const char *key, const struct conf_node *n, struct conf_error *err);
/* Fills the keys of a group from its map into the struct at base. map NULL: the file does not have
 * it. keep: omitted keys keep their values instead of getting their defaults, and none is required.
 * given: a key that is not required; may be NULL. */
RWY_MUST_CHECK int conf_fill_group(const struct conf *c, void *base, const char *path,
    const struct conf_node *map, bool keep, const char *given, struct conf_error *err);
/* Fills *err: "expected ... for `key`, found ...". Returns RWY_EINVAL. */
int conf_fail_type(struct conf_error *err, const struct conf_key *k, const struct conf_node *n);
/* The same of a list with too few entries. */
int conf_fail_few(
    struct conf_error *err, const struct conf_key *k, const struct conf_node *list, unsigned count);
/* True if the value was given; false: it is derived from other keys. */
bool conf_tenant_own_mac(const struct conf_tenant *t);
bool conf_tenant_own_congested(const struct conf_tenant *t);
/*
 * The key of `connections` that gives this key of a tenant its default: the one of its name, of the
 * same size. NULL: there is none.
 */
const struct conf_key *conf_tenant_inherits(const struct conf_key *k);
/* Fills the fields of a tenant that follow from others. base: as in conf_tenant_parse(). */
void conf_tenant_finish(
    const struct conf *c, struct conf_tenant *t, const struct conf_node *map, const struct conf_tenant *base);

/* Checks the rules over more than one key. RWY_EINVAL with *err. */
RWY_MUST_CHECK int conf_check(const struct conf *c, const struct conf_tree *t, struct conf_error *err);
/* The same for tunnels and tenants alone; the first `own` tunnels of c are not in the text. */
RWY_MUST_CHECK int conf_check_network(
    const struct conf *c, const struct conf_tree *t, unsigned own, struct conf_error *err);
/* Checks `keys`. */
RWY_MUST_CHECK int conf_check_keys(
    const struct conf *c, const struct conf_node *root, struct conf_error *err);
/* The paths of c's tunnel i, path 0 too; tunnel: its entry, or NULL. */
RWY_MUST_CHECK int conf_check_paths(
    const struct conf *c, unsigned i, const struct conf_node *tunnel, struct conf_error *err);
/* One tunnel of c's; n: its entry, NULL if it is not from the text. The second one: what its
 * carriers need, whose ports must be free of the paths of all tunnels. */
RWY_MUST_CHECK int conf_check_security(
    const struct conf *c, const struct conf_tunnel *t, const struct conf_node *n, struct conf_error *err);
RWY_MUST_CHECK int conf_check_carriers(
    const struct conf *c, const struct conf_tunnel *t, const struct conf_node *n, struct conf_error *err);

/* Checks the times of `connections`. */
RWY_MUST_CHECK int conf_check_connections(
    const struct conf *c, const struct conf_node *root, struct conf_error *err);
/* The same for a tenant; map: its node, or NULL. */
RWY_MUST_CHECK int conf_check_tenant_connections(
    const struct conf *c, const struct conf_tenant *t, const struct conf_node *map, struct conf_error *err);
/* Checks `api`. */
RWY_MUST_CHECK int conf_check_api(const struct conf *c, const struct conf_node *root, struct conf_error *err);
/* Checks the siblings of a file. */
RWY_MUST_CHECK int conf_check_siblings(
    const struct conf *c, const struct conf_node *root, struct conf_error *err);
/* A control center's part of the configuration is checked without the list of its URLs. */
static inline bool conf_has_controller(const struct conf *c)
{
	return c->controller.urls || *c->controller.ca;
}
/* Checks the tunnel of a pair, with what it needs of ports and other keys; root: NULL, or a text
 * that the first `own` tunnels of c are not in. */
RWY_MUST_CHECK int conf_check_standby(
    const struct conf *c, const struct conf_node *root, unsigned own, struct conf_error *err);
/* Checks `relay`. */
RWY_MUST_CHECK int conf_check_relay(
    const struct conf *c, const struct conf_node *root, struct conf_error *err);
void conf_resolve_ports(struct conf *c);
/* Certificates that `keys` omits are those of `controller`. */
void conf_finish_keys(struct conf *c); /* fills tunnels' port_idx from their port's name */
void conf_finish_standby(struct conf *c, const struct conf_tree *t);
void conf_finish_tenants(struct conf *c, const struct conf_tree *t);
/* Finds the numbers of the API's groups; CONF_NO_GID if there is no such group, which
 * conf_check_api() reports. */
void conf_finish_api(struct conf *c);
/* Checks that keys which need a restart equal those of the running gateway. */
RWY_MUST_CHECK int conf_check_restart(
    const struct conf *c, const struct conf *running, const struct conf_tree *t, struct conf_error *err);
/* Checks n tenants at t; `map` is the first one's node, the others follow it. */
RWY_MUST_CHECK int conf_check_tenants(const struct conf *c, const struct conf_tenant *t, unsigned n,
    const struct conf_node *map, struct conf_error *err);

#endif
