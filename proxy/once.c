/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/once.h"

static bool is_live(const struct proxy_once_entry *e, rwy_time now)
{
	return e->source_port && rwy_since(e->since, now) < PROXY_ONCE_TTL;
}

static bool is_of(const struct proxy_once_entry *e, const struct rwy_ip *host, const struct rwy_ip *relay,
    uint16_t source_port)
{
	return e->source_port == source_port && rwy_ip_eq(&e->host, host) && rwy_ip_eq(&e->relay, relay);
}

int proxy_once_add(struct proxy_once *o, const struct rwy_ip *host, const struct rwy_ip *relay,
    uint16_t source_port, const struct proxy_target *target, rwy_time now)
{
	struct proxy_once_entry *same = NULL, *room = NULL;
	unsigned hosts = 0;

	for (unsigned i = 0; i < PROXY_ONCE_MAX; i++) {
		struct proxy_once_entry *e = &o->entry[i];

		if (!is_live(e, now)) {
			room = room ? room : e;
			continue;
		}
		hosts += rwy_ip_eq(&e->host, host);
		if (is_of(e, host, relay, source_port))
			same = e;
	}
	if (!same && (!room || hosts >= PROXY_ONCE_HOST))
		return RWY_ENOMEM;
	*(same ? same : room) = (struct proxy_once_entry){*host, *relay, source_port, *target, now};
	return 0;
}

const struct proxy_target *proxy_once_find(const struct proxy_once *o, const struct rwy_ip *host,
    const struct rwy_ip *relay, uint16_t source_port, rwy_time now)
{
	for (unsigned i = 0; i < PROXY_ONCE_MAX; i++)
		if (is_live(&o->entry[i], now) && is_of(&o->entry[i], host, relay, source_port))
			return &o->entry[i].target;
	return NULL;
}

bool proxy_once_remove(
    struct proxy_once *o, const struct rwy_ip *host, const struct rwy_ip *relay, uint16_t source_port)
{
	for (unsigned i = 0; i < PROXY_ONCE_MAX; i++)
		if (source_port && is_of(&o->entry[i], host, relay, source_port)) {
			o->entry[i].source_port = 0;
			return true;
		}
	return false;
}
