/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON <-> structs by tables, strictly: an unknown field, a wrong type, a value out of range, a missing or a
 * repeated field is an error that names the field. A struct is all there or not at all. Not here: what the
 * tables describe (model.h).
 */
#ifndef CONTROLLER_MODEL_JSON_H
#define CONTROLLER_MODEL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define MDL_NAME  32 /* bytes of a name, with the 0 */
#define MDL_ID    64 /* of a boot's or a session's id */
#define MDL_ADDR  56 /* of an address or prefix as text, with a port: the canonical form */
#define MDL_DEPTH 16

struct mdl_error {
	char field[128]; /* "ports[1].speed_bps"; "": the whole */
	char text[256];
};

struct mdl_table;

struct mdl_list {
	void *at; /* malloced */
	unsigned n;
};

enum mdl_type {
	MDL_INT,     /* uint64_t, min..max; negative only with MDL_SIGNED: int64_t */
	MDL_BOOL,    /* bool */
	MDL_TEXT,    /* char *, malloced; NULL when absent; min..max bytes, no control characters */
	MDL_NAMED,   /* char[MDL_NAME]: letters, digits, '.', '_', '-' */
	MDL_IDENT,   /* char[MDL_ID]: the same, longer */
	MDL_HEX,     /* uint64_t as exactly 16 hexadecimal digits */
	MDL_WORD,    /* uint8_t: which one of `words` */
	MDL_IP,      /* char[MDL_ADDR]: an address of a host */
	MDL_IP_PORT, /* char[MDL_ADDR]: address:port, [address]:port */
	MDL_PREFIX,  /* char[MDL_ADDR]: without host bits */
	MDL_OBJECT,  /* a struct of table `of` in place; absent: all 0 */
	MDL_LIST, /* struct mdl_list of structs of table `of`, or of scalars of type `item`; min..max entries
	           */
	MDL_RAW,  /* json_t *, a reference; NULL when absent; any value of JSON type min (json_type) */
};

#define MDL_REQUIRED 1u
#define MDL_SIGNED   2u /* min and max are int64_t */
#define MDL_PRESENCE                                                                                         \
	4u /* the bool in front of the struct of an MDL_OBJECT, or `has` at offset aux: it was there */

struct mdl_field {
	const char *name;
	enum mdl_type type;
	unsigned flags;
	size_t offset;
	uint64_t min, max;
	const char *words;          /* MDL_WORD: separated by blanks */
	const struct mdl_table *of; /* MDL_OBJECT, MDL_LIST */
	enum mdl_type item;         /* MDL_LIST without `of`: MDL_NAMED, MDL_IP, MDL_IP_PORT, MDL_PREFIX */
	size_t aux;                 /* MDL_PRESENCE: offset of a bool */
};

struct mdl_table {
	const char *what;
	size_t size; /* the struct's, bytes */
	const struct mdl_field *field;
	unsigned fields;
};

/* Parses text: one JSON object, UTF-8, no repeated keys, at most MDL_DEPTH deep. NULL with *err. */
json_t *mdl_parse(const char *text, size_t len, struct mdl_error *err);
/* *out is all 0 on failure: RWY_EINVAL with *err, RWY_ENOMEM. Else: mdl_free. */
RWY_MUST_CHECK int mdl_read(const json_t *j, const struct mdl_table *t, void *out, struct mdl_error *err);
/* The reverse; absent fields are left out. NULL: out of memory. */
json_t *mdl_write(const struct mdl_table *t, const void *in);
void mdl_free(const struct mdl_table *t, void *s); /* frees everything below s; s is all 0 then */
/* "native", ... of a MDL_WORD. */
const char *mdl_word(const char *words, unsigned i, char out[MDL_NAME]);

/* Scalars by themselves, of paths and queries. */
bool mdl_is_name(const char *s);
bool mdl_is_ident(const char *s);
/* Canonical text of an address or prefix; false when it is none. */
bool mdl_ip(const char *s, char out[MDL_ADDR]);
bool mdl_prefix(const char *s, char out[MDL_ADDR]);
bool mdl_ip_port(const char *s, char out[MDL_ADDR]);

/* A record that was checked when it was stored has: a text, "" when there is none (it is j's); a number, 0
 * when there is none or it is negative. */
const char *mdl_text_of(const json_t *j, const char *key);
uint64_t mdl_number_of(const json_t *j, const char *key);

#endif
