/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/ask.h"

#include <string.h>

#include "rwy/endian.h"

#define MAGIC  0x52777941u /* "RwyA" */
#define ANSWER 0x80        /* bit of the kind */

enum {
	AT_VERSION = 4,
	AT_KIND = 5,
	AT_ANSWER = 6,
	AT_ID = 8,
	AT_COOKIE = 16,
	AT_TARGET = 24,
	AT_PORT = 40,
	AT_SOURCE_PORT = 42,
	AT_REDIRECT_PORT = 44,
	AT_LQPN = 48,
	AT_RQPN = 52,
	AT_ALIAS = 56,
};

void proxy_ask_write(uint8_t out[PROXY_ASK_LEN], const struct proxy_ask *a)
{
	memset(out, 0, PROXY_ASK_LEN);
	rwy_put32(out, MAGIC);
	out[AT_VERSION] = PROXY_ASK_VERSION;
	out[AT_KIND] = (uint8_t)(a->kind | (a->is_answer ? ANSWER : 0));
	out[AT_ANSWER] = a->answer;
	rwy_put64(out + AT_ID, a->id);
	rwy_put64(out + AT_COOKIE, a->cookie);
	memcpy(out + AT_TARGET, a->target.addr.b, 16);
	rwy_put16(out + AT_PORT, a->target.port);
	rwy_put16(out + AT_SOURCE_PORT, a->source_port);
	rwy_put16(out + AT_REDIRECT_PORT, a->redirect_port);
	rwy_put32(out + AT_LQPN, a->lqpn);
	rwy_put32(out + AT_RQPN, a->rqpn);
	rwy_put32(out + AT_ALIAS, a->alias);
}

int proxy_ask_read(const uint8_t *p, size_t len, struct proxy_ask *a)
{
	memset(a, 0, sizeof(*a));
	if (len < PROXY_ASK_LEN || rwy_get32(p) != MAGIC)
		return RWY_EMALFORMED;
	a->version = p[AT_VERSION];
	a->kind = p[AT_KIND] & (uint8_t)~ANSWER;
	a->is_answer = p[AT_KIND] & ANSWER;
	a->answer = p[AT_ANSWER];
	a->id = rwy_get64(p + AT_ID);
	if (a->version != PROXY_ASK_VERSION)
		return 0;
	a->cookie = rwy_get64(p + AT_COOKIE);
	memcpy(a->target.addr.b, p + AT_TARGET, 16);
	a->target.port = rwy_get16(p + AT_PORT);
	a->source_port = rwy_get16(p + AT_SOURCE_PORT);
	a->redirect_port = rwy_get16(p + AT_REDIRECT_PORT);
	a->lqpn = rwy_get32(p + AT_LQPN);
	a->rqpn = rwy_get32(p + AT_RQPN);
	a->alias = rwy_get32(p + AT_ALIAS);
	if ((a->lqpn | a->rqpn | a->alias) >> 24)
		return RWY_EMALFORMED;
	return 0;
}

static const char *const names[] = {
#define X(e, n, s) n,
    PROXY_ANSWERS(X)
#undef X
};

static const char *const texts[] = {
#define X(e, n, s) s,
    PROXY_ANSWERS(X)
#undef X
};

const char *proxy_answer_name(unsigned answer)
{
	return answer < PROXY_ANSWER_COUNT ? names[answer] : "?";
}

const char *proxy_answer_text(unsigned answer)
{
	return answer < PROXY_ANSWER_COUNT ? texts[answer]
	                                   : "the relay gives an answer that is not known here";
}
