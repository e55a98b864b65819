/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of new connections, by the tenant's mode. The gateway beside the requesting host asks
 * for its requests, the one beside the responding host for flows that its peer opens.
 */
#include <stdio.h>

#include "engine/admission.h"
#include "engine/emit.h"
#include "engine/steer.h"
#include "engine/tenants.h"

#define LOG_INTERVAL RWY_SEC

/* A connection that was idle for long is forgotten here, but not by CM. */
static bool cm_knows(const struct eng_tenant *t, const struct eng_key *k)
{
	const struct roce_cm_conn *c = t->cm ? roce_cm_find(t->cm, &k->dst, k->qpn) : NULL;

	return c && (rwy_ip_eq(&c->a.ip, &k->src) || rwy_ip_eq(&c->b.ip, &k->src));
}

bool eng_admits(const struct eng *e, const struct eng_key *k, bool by_cm)
{
	const struct eng_tenant *t = eng_tenant(e, k->tenant);

	if (!t)
		return false;
	switch (t->cfg.admission) {
	case ENG_ADMIT_OPEN:
		return true;
	case ENG_ADMIT_CM:
		return by_cm || cm_knows(t, k);
	case ENG_ADMIT_CONTROLLER:
		return eng_steer_names(e, t->cfg.vni, &k->src, &k->dst, k->qpn);
	}
	rwy_unreachable();
}

static const char *ip_text(char out[40], const struct rwy_ip *a)
{
	const uint8_t *b = a->b;
	int n = 0;

	if (rwy_ip_is4(a))
		snprintf(out, 40, "%u.%u.%u.%u", b[12], b[13], b[14], b[15]);
	else
		for (unsigned i = 0; i < 16; i += 2)
			n += snprintf(out + n, 40 - (size_t)n, "%s%x", i ? ":" : "", b[i] << 8 | b[i + 1]);
	return out;
}

void eng_admission_refuse(struct eng *e, const struct eng_key *k, rwy_time now)
{
	const struct eng_tenant *t = eng_tenant(e, k->tenant);
	char src[40], dst[40];

	e->c.drop_not_admitted++;
	eng_record_key(e, k, eng_route_in(e, k->tenant, &k->src) >= 0,
	    &(struct eng_record){
	        .kind = ENG_REC_REFUSED, .value = eng_counter_number(e, &e->c.drop_not_admitted)},
	    now);
	e->refusals.untold++;
	if (e->refusals.told_at && now - e->refusals.told_at < LOG_INTERVAL)
		return;
	eng_log(e, 1, "host=%s destination=%s qpn=%u vni=%u event=\"RC refused: %s\" packets=%llu",
	    ip_text(src, &k->src), ip_text(dst, &k->dst), k->qpn, t ? t->cfg.vni : 0,
	    t && t->cfg.admission == ENG_ADMIT_CM ? "CM did not open the connection"
	                                          : "the controller did not authorise the connection",
	    (unsigned long long)e->refusals.untold);
	e->refusals.told_at = now;
	e->refusals.untold = 0;
}
