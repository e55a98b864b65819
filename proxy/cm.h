/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM splice: carries the CM messages of two hosts from one segment to the next. Only what names
 * hosts and queue pairs of the other segment is rewritten: IP addresses, GIDs, the addresses of the
 * IP-CM header, the service ID's port, QPNs. Communication IDs, CA GUIDs, PSNs, transaction IDs and
 * private data stay. The real REP or REJ is the answer; the relay itself sends an MRA, or a REJ for
 * what it refuses.
 *
 * Inside proxy/ only.
 */
#ifndef PROXY_CM_H
#define PROXY_CM_H

#include "proxy/edge.h"
#include "roce/parse.h"

/* pkt: parsed, and to the general services interface (roce_is_gsi()). */
void proxy_cm_in(struct proxy_edge *e, struct roce_pkt *pkt, struct proxy_act *act, rwy_time now);
void proxy_cm_out(struct proxy_edge *e, struct roce_pkt *pkt, struct proxy_act *act, rwy_time now);

#endif
