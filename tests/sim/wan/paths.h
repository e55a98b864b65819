/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths of a tunnel: what of each differs from the first, the links of a world, and arrivals in
 * the order of their time.
 */
#ifndef SIM_WAN_PATHS_H
#define SIM_WAN_PATHS_H

#include "tests/sim/wan/scen.h"

struct wan_cfg;
struct world;
struct end;
struct link;

/* Reads words of a path, "rtt=60ms,loss=1%", into s. False: err has one line that names `key`. */
bool paths_words(struct scen *s, char *text, const char *key, char *err, size_t size);
/* Reads "1:rate=4G,rtt=30ms/2:loss=1%" into the scenario of each path: rate, rrate, rtt, loss,
 * rloss, jitter, queue, mark. False: err has one line. */
bool paths_parse(const struct scen *s, struct scen out[PATHS_MAX], char *err, size_t size);
/* The highest path that `path` or `changes` name. */
double paths_named(const struct scen *s);
/* What these paths carry together, bit/s. */
double paths_carry(const struct scen *s, const struct scen each[PATHS_MAX]);
double paths_capacity(const struct scen *s);

/* Sets number, MTU and (with `fixed`) rate of the paths. */
void paths_configure(const struct scen *s, struct wan_cfg *c);
/* Makes the links of a world. False: no memory. */
bool paths_init(struct world *w, uint64_t *seed);
void paths_fini(struct world *w);
/* The link by which the next datagram arrives at an end, and when; NULL: none is under way. */
struct link *paths_next(const struct end *e, rwy_time *at);

#endif
