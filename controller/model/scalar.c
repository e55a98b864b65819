/* SPDX-License-Identifier: Apache-2.0 */
/* Names, addresses and prefixes as text: checks them and writes their canonical form. */
#include "controller/model/json.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool word_of(const char *s, size_t max)
{
	const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	/* the same rule as for names in the gateway's file */
	return n && n <= max && !s[n] && !strchr("._-", *s);
}

bool mdl_is_name(const char *s)
{
	return word_of(s, MDL_NAME - 1);
}

bool mdl_is_ident(const char *s)
{
	return word_of(s, MDL_ID - 1);
}

/* Whether the first bits of an IPv6 address, at most 96, are those of the IPv4-mapped ones. */
static bool begins_mapped(const uint8_t b[16], unsigned bits)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	for (unsigned i = 0; i < bits && i < 96; i++)
		if ((b[i / 8] ^ mapped[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

/* Fills the address's bytes. Returns its length in bits by its family, or 0. An IPv4 address has
 * one form: a mapped one would be the same host under another name. */
static unsigned parse(const char *s, uint8_t b[16])
{
	if (inet_pton(AF_INET, s, b) == 1)
		return 32;
	return inet_pton(AF_INET6, s, b) == 1 && !begins_mapped(b, 96) ? 128 : 0;
}

static void print_address(unsigned bits, const uint8_t b[16], char *out)
{
	inet_ntop(bits == 32 ? AF_INET : AF_INET6, b, out, INET6_ADDRSTRLEN);
}

bool mdl_ip(const char *s, char out[MDL_ADDR])
{
	uint8_t b[16];
	const unsigned bits = parse(s, b);

	if (!bits)
		return false;
	if (bits == 32 ? b[0] == 0 || b[0] >= 224 : b[0] == 0xff || !memcmp(b, (uint8_t[16]){0}, 16))
		return false; /* not a host's address: unspecified, multicast or reserved */
	print_address(bits, b, out);
	return true;
}

/* Reads a decimal number without sign, blanks or leading zeros. */
static bool number(const char *s, unsigned max, unsigned *out)
{
	const size_t n = strspn(s, "0123456789");

	if (!n || n > 5 || s[n] || (n > 1 && *s == '0'))
		return false;
	*out = (unsigned)strtoul(s, NULL, 10);
	return *out <= max;
}

bool mdl_prefix(const char *s, char out[MDL_ADDR])
{
	const char *slash = strchr(s, '/');
	char addr[INET6_ADDRSTRLEN];
	unsigned bits, len;
	uint8_t b[16];

	if (!slash || (size_t)(slash - s) >= sizeof(addr))
		return false;
	memcpy(addr, s, (size_t)(slash - s));
	addr[slash - s] = 0;
	bits = parse(addr, b);
	if (!bits || !number(slash + 1, bits, &len))
		return false;
	if (bits == 128 && begins_mapped(b, len))
		return false; /* gateways take none that has IPv4's addresses in it */
	for (unsigned i = len; i < bits; i++)
		if (b[i / 8] >> (7 - i % 8) & 1)
			return false;
	print_address(bits, b, addr);
	snprintf(out, MDL_ADDR, "%s/%u", addr, len);
	return true;
}

bool mdl_ip_port(const char *s, char out[MDL_ADDR])
{
	const char *colon = strrchr(s, ':');
	const bool six = *s == '[';
	const size_t n = colon ? (size_t)(colon - s) : 0;
	char addr[MDL_ADDR], canon[MDL_ADDR];
	unsigned port;

	if (!colon || n >= sizeof(addr) || n < 3 || (six && s[n - 1] != ']'))
		return false;
	memcpy(addr, s + six, n - 2 * six);
	addr[n - 2 * six] = 0;
	if (!mdl_ip(addr, canon) || six != (strchr(canon, ':') != NULL) || !number(colon + 1, 65535, &port) ||
	    !port)
		return false;
	snprintf(out, MDL_ADDR, six ? "[%.45s]:%u" : "%.45s:%u", canon, port);
	return true;
}

const char *mdl_text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

uint64_t mdl_number_of(const json_t *j, const char *key)
{
	const json_int_t v = json_integer_value(json_object_get(j, key));

	return v > 0 ? (uint64_t)v : 0;
}

bool mdl_leg_is(const json_t *leg, const char *edge, const char *path)
{
	return !strcmp(mdl_text_of(leg, "edge"), edge) && !strcmp(mdl_text_of(leg, "path"), path);
}
