/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/states.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct sim_states *into;

/* The action of each cell: the words of the tables. */
static const char *const requester_word[ENG_Q_STATES][ENG_QE_EVENTS] = {
#define ROW(s, f, m, r, t) [ENG_Q_##s] = {#f, #m, #r, #t},
    ENG_REQUESTER_TABLE(ROW)
#undef ROW
};
static const char *const responder_word[ENG_R_STATES][ENG_RE_EVENTS] = {
#define ROW(s, q, u, p, y, w, f, m, r) [ENG_R_##s] = {#q, #u, #p, #y, #w, #f, #m, #r},
    ENG_RESPONDER_TABLE(ROW)
#undef ROW
};
static const char *const resp_word[ROCE_RS_COUNT][ROCE_RSE_COUNT] = {
#define ROW(s, p, n, a, r, m, f, l, w, o, x, y) [ROCE_RS_##s] = {#p, #n, #a, #r, #m, #f, #l, #w, #o, #x, #y},
    ROCE_RESP_TABLE(ROW)
#undef ROW
};
static const char *const standby_word[ENG_SB_STATE_COUNT][ENG_SB_EVENT_COUNT] = {
#define ROW(s, e, c, l, o, t, a, y, q, w, g, r, v, k, x, h)                                                  \
	[ENG_SB_##s] = {#e, #c, #l, #o, #t, #a, #y, #q, #w, #g, #r, #v, #k, #x, #h},
    ENG_SB_TABLE(ROW)
#undef ROW
};

#define X(c, a, s) #c,
static const char *const reuse_case[] = {ENG_REUSE_CASES(X)};
static const char *const reuse_event[] = {"decides"};
#undef X
#define X(c, a, s) #a,
static const char *const reuse_word[] = {ENG_REUSE_CASES(X)};
#undef X
#define X(e, n, s) n,
static const char *const requester_state[] = {ENG_REQUESTER_STATES(X)};
static const char *const requester_event[] = {ENG_REQUESTER_EVENTS(X)};
static const char *const responder_state[] = {ENG_RESPONDER_STATES(X)};
static const char *const responder_event[] = {ENG_RESPONDER_EVENTS(X)};
static const char *const resp_state[] = {ROCE_RESP_STATES(X)};
static const char *const resp_event[] = {ROCE_RESP_EVENTS(X)};
static const char *const standby_state[] = {ENG_SB_STATES(X)};
static const char *const standby_event[] = {ENG_SB_EVENTS(X)};
#undef X

void sim_states_into(struct sim_states *s)
{
	into = s;
}

void sim_states_add(const struct eng_states_seen *seen)
{
	if (!into)
		return;
	for (unsigned s = 0; s < ENG_Q_STATES; s++)
		for (unsigned e = 0; e < ENG_QE_EVENTS; e++)
			into->requester[s][e] += seen->requester[s][e];
	for (unsigned s = 0; s < ENG_R_STATES; s++)
		for (unsigned e = 0; e < ENG_RE_EVENTS; e++)
			into->responder[s][e] += seen->responder[s][e];
	for (unsigned c = 0; c < ENG_REUSE_CASE_COUNT; c++)
		into->reuse[c] += seen->reuse[c];
	for (unsigned s = 0; s < ROCE_RS_COUNT; s++)
		for (unsigned e = 0; e < ROCE_RSE_COUNT; e++)
			into->resp[s][e] += seen->resp.cell[s][e];
	for (unsigned s = 0; s < ENG_SB_STATE_COUNT; s++)
		for (unsigned e = 0; e < ENG_SB_EVENT_COUNT; e++)
			into->standby[s][e] += seen->standby[s][e];
}

struct cells {
	const char *side;
	unsigned states, events;
	const char *const *state, *const *event, *const *word;
	const _Atomic uint64_t *count;
	unsigned possible, entered;
};

static void print_cells(struct cells *c, bool all)
{
	for (unsigned s = 0; s < c->states; s++)
		for (unsigned e = 0; e < c->events; e++) {
			unsigned i = s * c->events + e;
			bool possible = strcmp(c->word[i], "IMPOSSIBLE") != 0;

			c->possible += possible;
			c->entered += possible && c->count[i];
			if (all)
				printf("  %s %s, %s: %s, %" PRIu64 " times\n", c->side, c->state[s],
				    c->event[e], c->word[i], c->count[i]);
		}
}

void sim_states_print(const struct sim_states *s, bool all)
{
	struct cells c[] = {{"requester", ENG_Q_STATES, ENG_QE_EVENTS, requester_state, requester_event,
	                        requester_word[0], s->requester[0], 0, 0},
	    {"responder", ENG_R_STATES, ENG_RE_EVENTS, responder_state, responder_event, responder_word[0],
	        s->responder[0], 0, 0},
	    {"reuse", ENG_REUSE_CASE_COUNT, 1, reuse_case, reuse_event, reuse_word, s->reuse, 0, 0},
	    {"resp", ROCE_RS_COUNT, ROCE_RSE_COUNT, resp_state, resp_event, resp_word[0], s->resp[0], 0, 0},
	    {"standby", ENG_SB_STATE_COUNT, ENG_SB_EVENT_COUNT, standby_state, standby_event, standby_word[0],
	        s->standby[0], 0, 0}};
	unsigned entered = 0, possible = 0;

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		print_cells(&c[i], all);
		entered += c[i].entered;
		possible += c[i].possible;
	}
	printf("state tables: %u of %u possible cells entered%s\n", entered, possible,
	    all ? "" : " (--states: each)");
}
