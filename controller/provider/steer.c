/* SPDX-License-Identifier: Apache-2.0 */
/* How datagrams get into a path, in JSON: see json.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/provider/json.h"

#define PORT_LEAST 1024
#define PORT_MOST  65535
#define DSCP_MOST  63

/* Reads ADDRESS[/LENGTH]. Returns its family; 0: it is neither. */
static int family_of(const char *text)
{
	char addr[PLAN_NAME_MAX], *slash, *end;
	uint8_t b[16];
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	unsigned long len;

	(void)snprintf(addr, sizeof(addr), "%s", text);
	slash = strchr(addr, '/');
	if (slash)
		*slash++ = '\0';
	if (inet_pton(family, addr, b) != 1)
		return 0;
	if (!slash)
		return family;
	len = strtoul(slash, &end, 10);
	return *slash < '0' || *slash > '9' || *end || len > (family == AF_INET ? 32u : 128u) ? 0 : family;
}

static const char *read_net(char out[PLAN_NAME_MAX], const json_t *v)
{
	const char *s = json_string_value(v);

	if (!s || strlen(s) != json_string_length(v) || strlen(s) >= PLAN_NAME_MAX || !family_of(s))
		return "is no address or prefix";
	memcpy(out, s, strlen(s) + 1);
	return NULL;
}

static const char *read_number(unsigned *out, const json_t *v, unsigned lo, unsigned hi)
{
	if (!json_is_integer(v))
		return "is no integer";
	if (json_integer_value(v) < lo || json_integer_value(v) > hi)
		return "is out of range";
	*out = (unsigned)json_integer_value(v);
	return NULL;
}

static const char *read_one(struct plan_steer *s, const char *key, const json_t *v)
{
	unsigned n = 0;
	const char *bad;

	if (strcmp(key, "first") == 0)
		return read_net(s->net[0], v);
	if (strcmp(key, "second") == 0)
		return read_net(s->net[1], v);
	if (strcmp(key, "dscp") == 0) {
		bad = read_number(&n, v, 1, DSCP_MOST);
		s->dscp = (uint8_t)n;
		return bad;
	}
	if (strcmp(key, "source_port") == 0) {
		bad = read_number(&n, v, PORT_LEAST, PORT_MOST);
		s->source_port = (uint16_t)n;
		return bad;
	}
	return "is not known";
}

bool provider_json_steer(struct plan_steer *out, const json_t *o, char *why, size_t size)
{
	const char *key, *bad;
	json_t *v;

	memset(out, 0, sizeof(*out));
	if (!json_is_object(o)) {
		(void)snprintf(why, size, "steer is no object");
		return false;
	}
	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		bad = read_one(out, key, v);
		if (!bad)
			continue;
		(void)snprintf(why, size, "steer.%.40s %s", key, bad);
		return false;
	}
	if (!plan_steers(out)) {
		(void)snprintf(why, size, "steer says nothing: first, second, dscp or source_port");
		return false;
	}
	if (*out->net[0] && *out->net[1] && family_of(out->net[0]) != family_of(out->net[1])) {
		(void)snprintf(why, size, "steer.second is of another family than steer.first");
		return false;
	}
	return true;
}

json_t *provider_steer_json(const struct plan_steer *s)
{
	json_t *o = json_object();

	if (*s->net[0])
		json_object_set_new(o, "first", json_string(s->net[0]));
	if (*s->net[1])
		json_object_set_new(o, "second", json_string(s->net[1]));
	if (s->dscp)
		json_object_set_new(o, "dscp", json_integer(s->dscp));
	if (s->source_port)
		json_object_set_new(o, "source_port", json_integer(s->source_port));
	return o;
}
