/* SPDX-License-Identifier: Apache-2.0 */
/* A table of CM connections (roce/cm.h), and messages of hosts a and b passed to it. */
#ifndef TESTS_LIB_ROCE_CM_TRACK_H
#define TESTS_LIB_ROCE_CM_TRACK_H

#include "roce/cm.h"
#include "tests/lib/roce_cm_pkt.h"

#define CT_T0 (1000 * RWY_SEC)

extern const struct rwy_ip ct_a, ct_b;
/* a's REQ to b, and b's REP to that. */
extern const struct cp_req ct_req;
extern const struct cp_rep ct_rep;

/* Parses a MAD in a packet. Returns what roce_cm_parse() returns. */
int ct_parse(const uint8_t *mad, struct roce_cm_msg *msg);

/* roce_cm_tab_free() what these two return. */
struct roce_cm_tab *ct_new(uint32_t capacity, uint32_t half_open_max);
/* A table of 16 with the connection of ct_req and ct_rep; `ev` is its event. */
struct roce_cm_tab *ct_connected(struct roce_cm_event *ev);

/* Each passes a message, of b if it is not from a, and returns ev->kind. A REQ is from a, a REP
 * from b. */
enum roce_cm_event_kind ct_feed(
    struct roce_cm_tab *t, const uint8_t *mad, bool from_a, struct roce_cm_event *ev, rwy_time now);
enum roce_cm_event_kind ct_feed_req(
    struct roce_cm_tab *t, const struct cp_req *r, struct roce_cm_event *ev, rwy_time now);
enum roce_cm_event_kind ct_feed_rep(
    struct roce_cm_tab *t, const struct cp_rep *r, struct roce_cm_event *ev, rwy_time now);

struct roce_cm_stats ct_stats(const struct roce_cm_tab *t);

#endif
