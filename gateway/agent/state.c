/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's state as others see it, and the effect of failures on it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "gateway/agent/request.h"

#define NEXT_MS 50 /* delay before the next controller is tried */

uint64_t agent_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void agent_log(const struct agent *a, int level, const char *fmt, ...)
{
	char msg[AGENT_WHY + 256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	a->ops->log(a->ctx, level, msg);
}

/* Returns a random time between ms / 2 and ms: many gateways must not come back at once. */
uint64_t agent_jitter(struct agent *a, uint64_t ms)
{
	a->random = a->random * 1664525u + 1013904223u;
	return ms / 2 + (ms / 2 + 1) * (a->random >> 8) / (1u << 24);
}

void agent_state_set(struct agent *a, enum agent_state s)
{
	pthread_mutex_lock(&a->lock);
	if (a->st.state != s)
		a->since = agent_ms();
	a->st.state = s;
	snprintf(a->st.url, sizeof(a->st.url), "%s", a->cfg.url[a->at]);
	pthread_mutex_unlock(&a->lock);
}

void agent_retry(struct agent *a, uint64_t ms)
{
	pthread_mutex_lock(&a->lock);
	a->retry_at = agent_ms() + ms;
	pthread_mutex_unlock(&a->lock);
}

static uint64_t backoff(struct agent *a)
{
	unsigned round = a->failed / a->cfg.urls;
	uint64_t ms = a->cfg.backoff_ms;

	if (a->failed % a->cfg.urls)
		return agent_jitter(a, 2 * NEXT_MS);
	while (--round && ms < a->cfg.backoff_max_ms)
		ms *= 2;
	return agent_jitter(a, ms < a->cfg.backoff_max_ms ? ms : a->cfg.backoff_max_ms);
}

/* Gives up this controller and tries the next one. The running document stays in force. */
void agent_give_up(struct agent *a, const char *fmt, ...)
{
	char why[AGENT_WHY];
	va_list ap;
	bool repeated;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	agent_req_end(&a->req);
	agent_req_end(&a->poll);
	a->failed++;
	pthread_mutex_lock(&a->lock);
	repeated = a->st.state != AGENT_REGISTERED && !strcmp(a->st.problem, why);
	memcpy(a->st.problem, why, sizeof(why));
	a->st.failures++;
	pthread_mutex_unlock(&a->lock);
	agent_log(a, repeated ? GW_LOG_DEBUG : GW_LOG_WARNING, "controller=%s %s", a->cfg.url[a->at], why);
	a->at = (a->at + 1) % a->cfg.urls;
	agent_retry(a, backoff(a));
	agent_state_set(a, AGENT_AWAY);
}

const char *agent_what_name(enum agent_what what)
{
	switch (what) {
	case REQ_REGISTER:
		return "registration";
	case REQ_LEASE:
		return "lease";
	case REQ_SESSIONS:
		return "session report";
	case REQ_LINKS:
		return "link report";
	case REQ_DOCUMENT:
		return "document";
	case REQ_NONE:
		break;
	}
	return "";
}
