/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalars from text and back: numbers with units, addresses, CPU lists, names. The whole text must
 * be a value: "10x" is no number. Ranges and messages are in fill.c.
 */
#include "conf/schema.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "rwy/prefix.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit sizes[] = {
    {"TiB", UINT64_C(1) << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}, {NULL, 0}};
static const struct unit durations[] = {{"h", 3600 * RWY_SEC}, {"min", 60 * RWY_SEC}, {"s", RWY_SEC},
    {"ms", RWY_MS}, {"us", RWY_US}, {"ns", 1}, {NULL, 0}};
static const struct unit rates[] = {{"Tbps", UINT64_C(1000000000000)}, {"Gbps", 1000000000},
    {"Mbps", 1000000}, {"kbps", 1000}, {"bps", 1}, {NULL, 0}};

/* Reads digits without a leading zero. Returns the rest of the text, or NULL. */
static const char *scan_digits(const char *s, uint64_t *out)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)*s) || (s[0] == '0' && isdigit((unsigned char)s[1])))
		return NULL;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return NULL;
	*out = v;
	return s;
}

bool conf_scan_int(const char *s, uint64_t *out)
{
	const char *end = scan_digits(s, out);

	return end && !*end;
}

/* Reads "1.5GiB": at most 6 decimals, and the result must be whole. */
static bool scan_unit(const char *s, const struct unit *units, uint64_t *out)
{
	uint64_t v, frac = 0, scale = 1;
	unsigned __int128 all;

	s = scan_digits(s, &v);
	if (!s)
		return false;
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return false;
		for (; isdigit((unsigned char)*s); s++) {
			if (scale == 1000000)
				return false;
			frac = frac * 10 + (uint64_t)(*s - '0');
			scale *= 10;
		}
	}
	for (; units->name; units++)
		if (!strcmp(units->name, s))
			break;
	if (!units->name)
		return false;
	all = ((unsigned __int128)v * scale + frac) * units->factor;
	if (all % scale || all / scale > UINT64_MAX)
		return false;
	*out = (uint64_t)(all / scale);
	return true;
}

bool conf_scan_size(const char *s, uint64_t *out)
{
	return scan_unit(s, sizes, out);
}

bool conf_scan_duration(const char *s, uint64_t *out)
{
	return scan_unit(s, durations, out);
}

bool conf_scan_rate(const char *s, uint64_t *bits_per_s)
{
	return scan_unit(s, rates, bits_per_s);
}

/* Reads "0.5": at most 4 decimals. */
bool conf_scan_percent(const char *s, uint64_t *ppm)
{
	static const struct unit percent[] = {{"", 10000}, {"%", 10000}, {NULL, 0}};

	return scan_unit(s, percent, ppm);
}

/* Reads "4791" or "49152-65535". */
bool conf_scan_ports(const char *s, uint16_t lo_hi[2])
{
	uint64_t lo, hi;

	s = scan_digits(s, &lo);
	hi = lo;
	if (s && *s == '-')
		s = scan_digits(s + 1, &hi);
	if (!s || *s || lo > hi || hi > UINT16_MAX)
		return false;
	lo_hi[0] = (uint16_t)lo;
	lo_hi[1] = (uint16_t)hi;
	return true;
}

bool conf_scan_mac(const char *s, uint8_t mac[6])
{
	uint8_t any = 0;

	for (unsigned i = 0; i < 6; i++, s += 3) {
		const char hex[3] = {s[0], s[0] ? s[1] : 0};

		if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]) ||
		    s[2] != (i < 5 ? ':' : 0))
			return false;
		mac[i] = (uint8_t)strtoul(hex, NULL, 16);
		any |= mac[i];
	}
	return any && !(mac[0] & 1);
}

static void print_percent(uint64_t ppm, char *out, size_t size)
{
	int n = snprintf(out, size, "%" PRIu64 ".%04" PRIu64, ppm / 10000, ppm % 10000);

	while (n > 0 && (size_t)n < size && out[n - 1] == '0')
		out[--n] = 0;
	if (n > 0 && (size_t)n < size && out[n - 1] == '.')
		out[n - 1] = 0;
}

void conf_print_value(enum conf_type type, uint64_t v, char *out, size_t size)
{
	const struct unit *u = type == CONF_T_SIZE       ? sizes
	                       : type == CONF_T_DURATION ? durations
	                       : type == CONF_T_RATE     ? rates
	                                                 : NULL;

	if (type == CONF_T_PERCENT) {
		print_percent(v, out, size);
		return;
	}
	if (!u) {
		snprintf(out, size, "%" PRIu64, v);
		return;
	}
	while (u[1].name && (v < u->factor || v % u->factor))
		u++;
	snprintf(out, size, "%" PRIu64 "%s", v / u->factor, u->name);
}

bool conf_scan_ip(const char *s, struct rwy_ip *out)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, s, v4) == 1) {
		*out = rwy_ip_from4(v4);
		return true;
	}
	/* an IPv4-mapped address has only one form: as IPv4 */
	return inet_pton(AF_INET6, s, out->b) == 1 && !rwy_ip_is4(out);
}

/* True unless unspecified, loopback, multicast or broadcast. */
bool conf_ip_unicast(const struct rwy_ip *a)
{
	static const struct rwy_ip zero;

	if (rwy_ip_is4(a))
		return a->b[12] != 0 && a->b[12] != 127 && a->b[12] < 224;
	return a->b[0] != 0xff && memcmp(a->b, zero.b, 15) != 0;
}

bool conf_scan_prefix(const char *s, struct conf_prefix *out)
{
	const char *slash = strchr(s, '/');
	char host[INET6_ADDRSTRLEN];
	uint64_t len;

	if (!slash || (size_t)(slash - s) >= sizeof(host))
		return false;
	memcpy(host, s, (size_t)(slash - s));
	host[slash - s] = 0;
	if (!conf_scan_ip(host, &out->addr) || !conf_scan_int(slash + 1, &len))
		return false;
	if (len > (rwy_ip_is4(&out->addr) ? 32 : 128))
		return false;
	out->len = (uint8_t)(len + (rwy_ip_is4(&out->addr) ? 96 : 0));
	return true;
}

void conf_print_ip(const struct rwy_ip *a, char *out, size_t size)
{
	if (rwy_ip_is4(a))
		inet_ntop(AF_INET, a->b + 12, out, (socklen_t)size);
	else
		inet_ntop(AF_INET6, a->b, out, (socklen_t)size);
}

void conf_print_prefix(const struct conf_prefix *p, char *out, size_t size)
{
	char host[INET6_ADDRSTRLEN];

	conf_print_ip(&p->addr, host, sizeof(host));
	snprintf(out, size, "%s/%d", host, rwy_ip_is4(&p->addr) ? p->len - 96 : p->len);
}

struct rwy_ip conf_prefix_base(const struct conf_prefix *p)
{
	struct rwy_ip a = p->addr;

	for (unsigned bit = p->len; bit < 128; bit++)
		a.b[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
	return a;
}

bool conf_prefix_has(const struct conf_prefix *p, const struct rwy_ip *a)
{
	return rwy_prefix_match(&p->addr, p->len, a);
}

bool conf_prefix_overlap(const struct conf_prefix *a, const struct conf_prefix *b)
{
	return a->len < b->len ? conf_prefix_has(a, &b->addr) : conf_prefix_has(b, &a->addr);
}

/* Reads "0-3,8". Numbers ascend, so that none is counted twice. */
bool conf_scan_cpus(const char *s, unsigned *count)
{
	uint64_t next = 0, from, to;

	*count = 0;
	for (;; s++) {
		s = scan_digits(s, &from);
		if (!s || from < next || from > 1023)
			return false;
		to = from;
		if (*s == '-')
			s = scan_digits(s + 1, &to);
		if (!s || to < from || to > 1023)
			return false;
		*count += (unsigned)(to - from + 1);
		next = to + 1;
		if (!*s)
			return true;
		if (*s != ',')
			return false;
	}
}

bool conf_scan_name(const char *s, size_t max)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return n && n <= max && !s[n] && isalnum((unsigned char)*s);
}

bool conf_scan_printable(const char *s)
{
	for (; *s; s++)
		if (*s < 0x20 || *s > 0x7e)
			return false;
	return true;
}
