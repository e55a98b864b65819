/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of the flight recorder in words. */
#include <stdio.h>
#include <string.h>

#include "engine/connection.h"
#include "engine/counters.h"
#include "engine/recorder.h"
#include "engine/why.h"

static const char *const names[] = {[ENG_REC_NONE] = "",
#define X(e, n, s) [e] = n,
    ENG_RECORD_KINDS(X)
#undef X
};

static const char *const sentences[] = {[ENG_REC_NONE] = "",
#define X(e, n, s) [e] = s,
    ENG_RECORD_KINDS(X)
#undef X
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The word with that number; "?": the entry is of a newer program, or damaged. */
static const char *word(const char *const *v, size_t n, unsigned i)
{
	return i < n && v[i] ? v[i] : "?";
}

const char *eng_record_name(enum eng_record_kind kind)
{
	return word(names, COUNT(names), kind);
}

const char *eng_record_sentence(enum eng_record_kind kind)
{
	return word(sentences, COUNT(sentences), kind);
}

enum eng_record_kind eng_record_find(const char *name)
{
	for (unsigned i = 1; i < ENG_REC_KINDS; i++)
		if (!strcmp(names[i], name))
			return (enum eng_record_kind)i;
	return ENG_REC_NONE;
}

const char *eng_record_side_name(unsigned side)
{
	static const char *const sides[] = {
	    [ENG_OF_ENGINE] = "engine", [ENG_OF_RESPONDER] = "responder", [ENG_OF_REQUESTER] = "requester"};

	return word(sides, COUNT(sides), side);
}

/* --- names of the fields' numbers ---------------------------------------------------------- */

static const char *responder_state(unsigned i)
{
	static const char *const v[] = {
#define X(e, n, s) n,
	    ENG_RESPONDER_STATES(X)
#undef X
	};

	return word(v, COUNT(v), i);
}

static const char *requester_state(unsigned i)
{
	static const char *const v[] = {
#define X(e, n, s) n,
	    ENG_REQUESTER_STATES(X)
#undef X
	};

	return word(v, COUNT(v), i);
}

static const char *drain_state(unsigned i)
{
	static const char *const v[] = {[ENG_SERVING] = "serving",
	    [ENG_SETTLING] = "settling",
	    [ENG_CLOSING] = "closing",
	    [ENG_SETTLED] = "settled"};

	return word(v, COUNT(v), i);
}

static const char *learned(unsigned i)
{
	static const char *const v[] = {[ENG_BY_CM] = "CM",
	    [ENG_BY_PROBE] = "the local host's answer",
	    [ENG_BY_PEER] = "the other gateway"};

	return word(v, COUNT(v), i);
}

static const char *reuse_case(unsigned i)
{
	static const char *const v[] = {
#define X(c, answer, s) #c,
	    ENG_REUSE_CASES(X)
#undef X
	};

	return word(v, COUNT(v), i);
}

static const char *message(unsigned i)
{
	static const char *const v[] = {[ENG_CTRL_SYNC] = "SYNC",
	    [ENG_CTRL_REWIND] = "REWIND",
	    [ENG_CTRL_FAIL] = "FAIL",
	    [ENG_CTRL_RESUME] = "RESUME",
	    [ENG_CTRL_MOVED] = "MOVED"};

	return word(v, COUNT(v), i);
}

static const char *congestion(unsigned i)
{
	if (i > WAN_CONGEST_DELAY)
		return "?";
	return i == WAN_CONGEST_NONE ? "nothing any more" : wan_congest_name((enum wan_congest_by)i);
}

static const char *tunnel_state(unsigned i)
{
	static const char *const v[] = {[ENG_TUNNEL_DOWN] = "down",
	    [ENG_TUNNEL_UP] = "up",
	    [ENG_TUNNEL_RESTARTED] = "the gateway at its other end restarted"};

	return word(v, COUNT(v), i);
}

static const char *waits_for(unsigned i)
{
	static const char *const v[] = {
	    [ENG_WAIT_MEMORY] = "memory", [ENG_WAIT_READ] = "a READ that may come"};

	return word(v, COUNT(v), i);
}

/* An AETH syndrome (IBA 9.3.5.2). */
static const char *syndrome(unsigned i)
{
	static const char *const naks[] = {[ROCE_NAK_PSN_SEQ] = "PSN sequence error",
	    [ROCE_NAK_INV_REQ] = "invalid request",
	    [ROCE_NAK_REM_ACCESS] = "remote access error",
	    [ROCE_NAK_REM_OP] = "remote operational error",
	    [ROCE_NAK_INV_RD] = "invalid RD request"};

	switch (roce_aeth_type((uint8_t)i)) {
	case ROCE_AETH_NAK:
		return word(naks, COUNT(naks), roce_aeth_value((uint8_t)i));
	case ROCE_AETH_RNR:
		return "receiver not ready";
	case ROCE_AETH_ACK:
		return "ACK";
	case ROCE_AETH_RSVD:
		break;
	}
	return "?";
}

static const char *counter(unsigned i)
{
	static const char *const v[] = {
#define X(f, s) s,
	    ENG_COUNTERS(X)
#undef X
	};

	return word(v, COUNT(v), i);
}

/* --- fields -------------------------------------------------------------------------------- */

const char *eng_record_from(const struct eng_record *r)
{
	switch (r->kind) {
	case ENG_REC_RESPONDER:
		return responder_state(r->from);
	case ENG_REC_REQUESTER:
		return requester_state(r->from);
	case ENG_REC_DRAIN:
		return drain_state(r->from);
	}
	return "";
}

const char *eng_record_to(const struct eng_record *r)
{
	switch (r->kind) {
	case ENG_REC_RESPONDER:
		return responder_state(r->to);
	case ENG_REC_REQUESTER:
		return requester_state(r->to);
	case ENG_REC_DRAIN:
		return drain_state(r->to);
	case ENG_REC_TUNNEL:
		return tunnel_state(r->to);
	case ENG_REC_CONGESTED:
		return congestion(r->to);
	case ENG_REC_PAIR:
		return learned(r->to);
	case ENG_REC_RESTART:
		return reuse_case(r->to);
	case ENG_REC_SENT:
	case ENG_REC_OWED:
	case ENG_REC_RECEIVED:
		return message(r->to);
	case ENG_REC_NAK_SENT:
	case ENG_REC_NAK_RECEIVED:
	case ENG_REC_FAIL:
		return syndrome(r->to);
	case ENG_REC_WITHHELD:
		return waits_for(r->to);
	}
	return "";
}

const char *eng_record_why(const struct eng_record *r)
{
	switch (r->kind) {
	case ENG_REC_FAIL:
	case ENG_REC_LOST:
		return eng_why_text(r->value, (uint8_t)r->to, r->side == ENG_OF_REQUESTER);
	case ENG_REC_REFUSED:
		return counter(r->value);
	}
	return "";
}

/* --- sentence ------------------------------------------------------------------------------ */

/* The text of the field that `at` begins with; *len gets the length of its name. */
static const char *field(
    const struct eng_record *r, const char *at, size_t *len, char number[16], char name[32])
{
	static const char *const fields[] = {"from", "to", "value", "psn", "side", "name"};
	unsigned i = 0;

	while (i < COUNT(fields) && strncmp(at, fields[i], strlen(fields[i])) != 0)
		i++;
	if (i == COUNT(fields))
		return NULL;
	*len = strlen(fields[i]);
	snprintf(number, 16, "%u", i == 2 ? r->value : r->psn);
	if (i == 0)
		return eng_record_from(r);
	if (i == 1)
		return eng_record_to(r);
	if (i == 2 && *eng_record_why(r))
		return eng_record_why(r);
	if (i == 4)
		return eng_record_side_name(r->side);
	if (i < 4)
		return number;
	memcpy(name, r->name, 31);
	name[31] = 0;
	return name;
}

void eng_record_say(const struct eng_record *r, char *out, size_t size)
{
	const char *s = eng_record_sentence((enum eng_record_kind)r->kind);
	size_t n = 0, len;

	for (; *s && n + 1 < size; s++) {
		char number[16], name[32];
		const char *text = *s == '%' ? field(r, s + 1, &len, number, name) : NULL;

		if (!text) {
			out[n++] = *s;
			continue;
		}
		while (*text && n + 1 < size)
			out[n++] = *text++;
		s += len;
	}
	if (size)
		out[n] = 0;
}
