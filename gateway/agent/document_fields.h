/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of a controller's document, and names what is wrong. Private to document*.c. */
#ifndef GATEWAY_AGENT_DOCUMENT_FIELDS_H
#define GATEWAY_AGENT_DOCUMENT_FIELDS_H

#include <jansson.h>

#include "conf/conf.h"

#define DOCUMENT_BPS_MAX 1000000000000000u /* bit/s, as of the control center */

/* Fills err. Returns RWY_EINVAL. */
int document_fail(struct conf_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Checks that every key of o is one of `keys` ("a b c") and that those before '|' are present. */
int document_keys(const json_t *o, const char *what, const char *keys, struct conf_error *err);
/* RWY_EINVAL: there is no such text, or it has a zero byte. */
int document_text(
    const json_t *o, const char *what, const char *key, const char **out, struct conf_error *err);
/* RWY_EINVAL: there is no such number, or it is out of range. */
int document_number(const json_t *o, const char *what, const char *key, uint64_t lo, uint64_t hi,
    uint64_t *out, struct conf_error *err);
/* Reads an address of either family. */
bool document_ip(const char *text, struct rwy_ip *out);
/* The name of the WAN port that has this address; NULL: none has. */
const char *document_port(const struct conf *c, const char *local);
/* Prints a rate as in a configuration file, exact to the bit; at most CONF_TUNNEL_BPS_MAX. */
void document_rate(uint64_t bps, char out[32]);
/* document_paths.c: the paths of tunnel t, if it has any, in the words of the file. */
int document_paths(
    const struct conf *base, const json_t *t, const char *what, json_t *to, struct conf_error *err);

#endif
