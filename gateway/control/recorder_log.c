/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs the decisions before a connection's failure: the flight recorder's ring may have overwritten
 * them by the time that somebody asks. The control thread looks once a second, so workers
 * write no more than the failure's own line. Of many failures at once only some are told.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/log.h"
#include "engine/recorder.h"
#include "gateway/setup.h"

#define FAILURES_MAX 4  /* of a worker in a second */
#define BEFORE_MAX   10 /* entries of each, with the failure itself */

/* The same connection: hosts and tenant, and no QPN that differs. */
static bool is_same(const struct eng_record *a, const struct eng_record *b)
{
	return a->side != ENG_OF_ENGINE && a->vni == b->vni && rwy_ip_eq(&a->local, &b->local) &&
	       rwy_ip_eq(&a->remote, &b->remote) &&
	       (a->local_qpn == b->local_qpn || !a->local_qpn || !b->local_qpn) &&
	       (a->remote_qpn == b->remote_qpn || !a->remote_qpn || !b->remote_qpn);
}

static const char *ip_text(char out[INET6_ADDRSTRLEN], const struct rwy_ip *a)
{
	const bool v4 = rwy_ip_is4(a);

	return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, out, INET6_ADDRSTRLEN) ? out : "?";
}

static void log_entry(unsigned worker, const struct eng_record *r, const struct eng_record *fail)
{
	char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN], text[256];

	eng_record_say(r, text, sizeof(text));
	gw_log(GW_LOG_INFO, "recorder",
	    "worker=%u local=%s local_qpn=%u remote=%s remote_qpn=%u before_ms=%.3f event=\"%s\"", worker,
	    ip_text(local, &r->local), r->local_qpn, ip_text(remote, &r->remote), r->remote_qpn,
	    (double)rwy_since(r->at, fail->at) / 1e6, text);
}

/* The failure with the newest entries of its connection before it, the oldest first. */
static void log_failure(unsigned worker, const struct eng_recorder_ring *ring, const struct eng_record *fail)
{
	struct eng_record v[BEFORE_MAX];
	unsigned n = 1;

	v[0] = *fail;
	for (uint32_t i = 1; i < ring->entries && n < BEFORE_MAX; i++)
		n += eng_recorder_get(ring, fail->seq - i, &v[n]) && is_same(&v[n], fail);
	while (n--)
		log_entry(worker, &v[n], fail);
}

static void look(struct gw_app *app, unsigned worker, const struct eng_recorder_ring *ring)
{
	const uint32_t newest = atomic_load_explicit(&ring->newest, memory_order_acquire);
	struct eng_record r;
	unsigned told = 0, untold = 0;

	for (uint32_t i = 0; i < ring->entries && newest - i != app->recorder_told[worker]; i++) {
		if (!eng_recorder_get(ring, newest - i, &r) || r.kind != ENG_REC_FAIL)
			continue;
		if (told < FAILURES_MAX) {
			log_failure(worker, ring, &r);
			told++;
		} else {
			untold++;
		}
	}
	app->recorder_told[worker] = newest;
	if (untold)
		gw_log(GW_LOG_INFO, "recorder", "worker=%u failures_untold=%u more=\"roceway recorder\"",
		    worker, untold);
}

void gw_recorder_log(struct gw_app *app)
{
	for (unsigned i = 0; i < app->workers; i++) {
		const struct eng_recorder_ring *ring = gw_recorder(app, i);

		if (ring)
			look(app, i, ring);
	}
}
