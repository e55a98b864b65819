/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts JSON to structs and back by tables. Reading is strict: an unknown field, a wrong type, a
 * value out of range, a missing field or a repeated one is an error that names the field. A struct
 * is filled completely or not at all. The tables themselves are in model.h.
 *
 * Thread: no state; any thread may call any function.
 */
#ifndef CONTROLLER_MODEL_JSON_H
#define CONTROLLER_MODEL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define MDL_NAME  32 /* bytes of a name with its 0 */
#define MDL_ID    64 /* bytes of a boot's or session's id with its 0 */
#define MDL_ADDR  56 /* bytes of an address or prefix, with port, in canonical text */
#define MDL_DEPTH 16

struct mdl_error {
	char field[128]; /* "ports[1].speed_bps"; "": the document itself */
	char text[256];
};

struct mdl_table;

struct mdl_list {
	void *at; /* malloced; mdl_free() frees it */
	unsigned n;
};

enum mdl_type {
	MDL_INT,     /* uint64_t, min..max; negative only with MDL_SIGNED: int64_t */
	MDL_BOOL,    /* bool */
	MDL_TEXT,    /* char *, malloced; NULL when absent; min..max bytes, no control characters */
	MDL_NAMED,   /* char[MDL_NAME]: letters, digits, '.', '_', '-' */
	MDL_IDENT,   /* char[MDL_ID]: the same characters as MDL_NAMED */
	MDL_HEX,     /* uint64_t as exactly 16 hexadecimal digits */
	MDL_WORD,    /* uint8_t: index into `words` */
	MDL_IP,      /* char[MDL_ADDR]: the address of a host */
	MDL_IP_PORT, /* char[MDL_ADDR]: address:port or [address]:port */
	MDL_PREFIX,  /* char[MDL_ADDR]: a prefix; a host bit that is set is an error */
	MDL_OBJECT,  /* a struct of table `of`, in place; all 0 when absent */
	/* struct mdl_list; entries are structs of table `of` or scalars of type `item`; min..max
	 * entries */
	MDL_LIST,
	/* json_t *, a reference of its own; NULL when absent; min is the json_type it must have */
	MDL_RAW,
};

#define MDL_REQUIRED 1u
#define MDL_SIGNED   2u /* min and max are int64_t */
/* A bool says that the field was there: in front of the struct (MDL_OBJECT), or at offset aux. */
#define MDL_PRESENCE 4u

struct mdl_field {
	const char *name;
	enum mdl_type type;
	unsigned flags;
	size_t offset;
	uint64_t min, max;
	const char *words;          /* MDL_WORD: the words, separated by blanks */
	const struct mdl_table *of; /* MDL_OBJECT, MDL_LIST */
	/* MDL_LIST without `of`: MDL_NAMED, MDL_IDENT, MDL_IP, MDL_IP_PORT, MDL_PREFIX */
	enum mdl_type item;
	size_t aux; /* MDL_PRESENCE: offset of the bool */
};

struct mdl_table {
	const char *what;
	size_t size; /* bytes of the struct */
	const struct mdl_field *field;
	unsigned fields;
};

/* Parses text: one JSON object, UTF-8, no repeated keys, at most MDL_DEPTH deep. The caller owns
 * the result (json_decref). On an error returns NULL and fills *err. */
json_t *mdl_parse(const char *text, size_t len, struct mdl_error *err);
/* Fills *out, whose content must be freed with mdl_free(). RWY_EINVAL with *err, or RWY_ENOMEM;
 * *out is all 0 then. */
RWY_MUST_CHECK int mdl_read(const json_t *j, const struct mdl_table *t, void *out, struct mdl_error *err);
/* The struct as a JSON object, without its absent fields. The caller owns it. NULL: out of
 * memory. */
json_t *mdl_write(const struct mdl_table *t, const void *in);
/* Frees all that s owns and sets s to 0; s itself stays the caller's. */
void mdl_free(const struct mdl_table *t, void *s);
/* The i-th of the words of an MDL_WORD ("native", ...). Returns out. */
const char *mdl_word(const char *words, unsigned i, char out[MDL_NAME]);

/* Single scalars, as paths and queries have them. */
bool mdl_is_name(const char *s);
bool mdl_is_ident(const char *s);
/* Writes an address or prefix in canonical text; false when s is neither. */
bool mdl_ip(const char *s, char out[MDL_ADDR]);
bool mdl_prefix(const char *s, char out[MDL_ADDR]);
bool mdl_ip_port(const char *s, char out[MDL_ADDR]);

/* Fields of a record that was checked when it was stored. mdl_text_of() gives a text that belongs
 * to j, "" when the field is absent; mdl_number_of() a number, 0 when it is absent or negative. */
const char *mdl_text_of(const json_t *j, const char *key);
uint64_t mdl_number_of(const json_t *j, const char *key);
/* This part of a record is a leg along the path of this name at this edge. */
bool mdl_leg_is(const json_t *leg, const char *edge, const char *path);

#endif
