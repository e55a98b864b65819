/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about keys and the revocation list for operators; the wait after a failure. */
#include <stdio.h>

#include "base/crl.h"
#include "base/random.h"
#include "gateway/keys/internal.h"
#include "rwy/spread.h"

#define BACKOFF_MIN (200 * RWY_MS)
#define BACKOFF_MAX (5 * RWY_SEC)
#define SAY_AGAIN   (60 * RWY_SEC)
#define CRL_AGAIN   (24 * 3600 * RWY_SEC)

const char *gw_keys_state_name(enum gw_keys_state s)
{
	static const char *const names[] = {
#define X(e, n, t) n,
	    GW_KEYS_STATES(X)
#undef X
	};

	return names[s];
}

/* It was not logged lately. */
static bool news(struct keys_tun *t, rwy_time now)
{
	const uint64_t sentence = rwy_spread_id(t->problem);
	struct keys_said *s = NULL;

	for (unsigned i = 0; i < KEYS_SAID && !s; i++)
		if (t->said[i].at && t->said[i].sentence == sentence)
			s = &t->said[i];
	if (s && rwy_since(s->at, now) < SAY_AGAIN)
		return false;
	if (!s)
		s = &t->said[t->said_next++ % KEYS_SAID];
	*s = (struct keys_said){sentence, now};
	return true;
}

void keys_tun_problem(struct keys_tun *t, const char *why, rwy_time now)
{
	snprintf(t->problem, sizeof(t->problem), "%s", why);
	if (news(t, now))
		gw_log(GW_LOG_WARNING, "keys", "tunnel=%s state=%s event=\"%s\"", t->conf.name,
		    gw_keys_state_name(t->state), t->problem);
}

void keys_crl_say(struct gw_keys *k, rwy_time now)
{
	char text[BASE_CRL_TEXT];

	k->crl_say_at = now + CRL_AGAIN;
	if (base_crl_old(gw_cert_crl_ends(k->cert), time(NULL), text, sizeof(text)))
		gw_log(GW_LOG_WARNING, "keys", "crl=%s %s", k->files.crl, text);
}

rwy_time keys_tun_later(rwy_dur *backoff, rwy_time now)
{
	*backoff = !*backoff ? BACKOFF_MIN : *backoff * 2 < BACKOFF_MAX ? *backoff * 2 : BACKOFF_MAX;
	return now + *backoff / 2 + base_random64() % *backoff;
}
