/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay's edge (datapath/edge.h) for other threads: counters, links, listen map. Any thread but a
 * worker's, unless it says otherwise.
 */
#ifndef GATEWAY_RELAY_H
#define GATEWAY_RELAY_H

#include "gateway/app.h"
#include "proxy/edge.h"

/* Copies the counters, field by field: monotonic, no snapshot. False: this is no relay. */
bool gw_relay_counters_get(const struct gw_app *app, struct proxy_counters *out);

/* A link by its name, and the relay address that its host is connected to. */
struct gw_link_name {
	uint64_t id; /* 0: of none */
	struct rwy_ip relay;
};
struct eng_session;
/* The link that a connection of the engine is of. The thread of the worker only, or gw_call(). */
struct gw_link_name gw_link_of(const struct gw_worker *w, const struct eng_session *s);

#define GW_LINKS_MAX 64 /* links of one call */
/*
 * Copies up to GW_LINKS_MAX links from *cursor on (0: the first) and moves the cursor; it is
 * UINT32_MAX after the last, and then nothing is copied. now: how many there are. Returns how many
 * were copied; RWY_ENOENT: this is no relay; RWY_EAGAIN: the worker does not answer.
 */
int gw_links_get(
    struct gw_app *app, uint32_t *cursor, struct proxy_link out[GW_LINKS_MAX], struct proxy_map_now *now);

/* An entry of the listen map, with its open links. */
struct gw_map_info {
	struct proxy_entry entry;
	uint32_t links;
};
/* Copies the listen map. Returns the number of entries, or an error of gw_links_get(). */
int gw_map_get(struct gw_app *app, struct gw_map_info out[CONF_MAP_MAX]);

/*
 * Adds an entry, or removes the one of this name, in force when they return; links stay. One call
 * at a time. RWY_EEXIST: the name, or the address and port, are another entry's; RWY_ENOENT: no
 * such entry, or no relay; RWY_ENOMEM: the map is full; RWY_EAGAIN: the worker does not answer.
 */
RWY_MUST_CHECK int gw_map_add(struct gw_app *app, const struct conf_map *m);
RWY_MUST_CHECK int gw_map_del(struct gw_app *app, const char *name);
/* The whole map becomes c's, at once; the entries of c do not contradict each other. Errors as
 * above, and nothing has changed. */
RWY_MUST_CHECK int gw_map_set(struct gw_app *app, const struct conf_relay *c);

#endif
