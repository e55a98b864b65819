/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recursive descent parser that writes the steps in postfix order. `or` binds less than `and`,
 * `and` less than `not`.
 */
#include "gateway/capture/filter.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "roce/opcode.h"

#define WORD_MAX 96
#define QPN_MAX  0xffffffu
static_assert(GW_CAP_STEPS <= 64, "results on the stack are bits of one word");
static_assert(GW_CAP_REASONS >= 256, "a set has room for all opcodes");

struct parser {
	struct gw_cap_filter *f;
	const char *text;
	unsigned at;   /* of the present word */
	unsigned next; /* behind it */
	unsigned depth;
	char word[WORD_MAX]; /* "": the end */
	gw_cap_tenant_fn *tenant;
	void *ctx;
	struct gw_cap_fault *fault;
};

static int fail_at(struct parser *p, unsigned at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int fail_at(struct parser *p, unsigned at, const char *fmt, ...)
{
	va_list ap;

	p->fault->at = at;
	va_start(ap, fmt);
	vsnprintf(p->fault->text, sizeof(p->fault->text), fmt, ap);
	va_end(ap);
	return RWY_EINVAL;
}

/* --- words ------------------------------------------------------------------------------------ */

/* Goes on to the next word: a parenthesis, or what is between blanks and parentheses. */
static int advance(struct parser *p)
{
	const char *s = p->text + p->next;
	size_t n;

	s += strspn(s, " \t\r\n");
	p->at = (unsigned)(s - p->text);
	n = *s == '(' || *s == ')' ? 1 : strcspn(s, " \t\r\n()");
	if (n >= WORD_MAX)
		return fail_at(p, p->at, "this word is too long");
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x21 || (unsigned char)s[i] > 0x7e)
			return fail_at(p, p->at + (unsigned)i, "this character is not allowed");
	memcpy(p->word, s, n);
	p->word[n] = 0;
	p->next = p->at + (unsigned)n;
	return 0;
}

static bool is(const struct parser *p, const char *word)
{
	return !strcasecmp(p->word, word);
}

/* Whether the present word cannot be the value of a key. */
static bool ends_term(const struct parser *p)
{
	return !*p->word || is(p, "and") || is(p, "or") || is(p, ")");
}

static struct gw_cap_step *emit(struct parser *p, enum gw_cap_step_kind kind)
{
	struct gw_cap_step *s;

	if (p->f->n == GW_CAP_STEPS) {
		(void)fail_at(p, p->at, "the filter has too many parts: at most %d", GW_CAP_STEPS);
		return NULL;
	}
	s = &p->f->step[p->f->n++];
	*s = (struct gw_cap_step){.kind = kind};
	return s;
}

/* --- values ----------------------------------------------------------------------------------- */

static int number(struct parser *p, struct gw_cap_step *s, uint32_t max)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(p->word, &end, !strncasecmp(p->word, "0x", 2) ? 16 : 10);
	if (!isdigit((unsigned char)*p->word) || *end || errno || v > max)
		return fail_at(p, p->at, "expected a number up to %u", max);
	s->value = (uint32_t)v;
	return 0;
}

static void mask_make(struct rwy_ip *mask, unsigned bits)
{
	for (unsigned i = 0; i < 16; i++, bits -= bits < 8 ? bits : 8)
		mask->b[i] = (uint8_t)(0xff00u >> (bits < 8 ? bits : 8));
}

static int address(struct parser *p, struct gw_cap_step *s)
{
	char *slash = strchr(p->word, '/'), *end;
	unsigned base = 0, most = 128;
	unsigned long len;
	uint8_t v4[4];

	if (slash)
		*slash = 0;
	if (inet_pton(AF_INET, p->word, v4) == 1) {
		s->addr = rwy_ip_from4(v4);
		base = 96;
		most = 32;
	} else if (inet_pton(AF_INET6, p->word, s->addr.b) != 1) {
		return fail_at(p, p->at, "expected an IP address, or ADDRESS/LENGTH");
	}
	len = most;
	if (slash) {
		len = strtoul(slash + 1, &end, 10);
		if (!isdigit((unsigned char)slash[1]) || *end || len > most)
			return fail_at(p, p->at + (unsigned)(slash + 1 - p->word),
			    "expected a prefix length up to %u", most);
	}
	mask_make(&s->mask, base + (unsigned)len);
	for (unsigned i = 0; i < 16; i++)
		s->addr.b[i] &= s->mask.b[i];
	return 0;
}

static void set_add(struct gw_cap_step *s, unsigned bit)
{
	s->set[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* An opcode's own name, with or without its transport; or a kind of operation. */
static bool opcode_is(unsigned opcode, const char *word)
{
	static const char *const kind[] = {[ROCE_OP_SEND] = "send",
	    [ROCE_OP_WRITE] = "write",
	    [ROCE_OP_READ_REQ] = "read",
	    [ROCE_OP_READ_RESP] = "read",
	    [ROCE_OP_ACK] = "ack",
	    [ROCE_OP_ATOMIC_ACK] = "atomic",
	    [ROCE_OP_CMP_SWAP] = "atomic",
	    [ROCE_OP_FETCH_ADD] = "atomic",
	    [ROCE_OP_RESYNC] = "resync",
	    [ROCE_OP_CNP] = "cnp"};
	const struct roce_opinfo *o = roce_op((uint8_t)opcode);
	const char *tail;

	if (!roce_op_is_valid(o))
		return false;
	tail = strchr(o->name, '_');
	return !strcasecmp(word, o->name) || (tail && !strcasecmp(word, tail + 1)) ||
	       (o->op < sizeof(kind) / sizeof(kind[0]) && kind[o->op] && !strcasecmp(word, kind[o->op]));
}

static int opcode(struct parser *p, struct gw_cap_step *s)
{
	bool any = false;

	for (unsigned i = 0; i < 256; i++)
		if (opcode_is(i, p->word)) {
			set_add(s, i);
			any = true;
		}
	if (any)
		return 0;
	if (isdigit((unsigned char)*p->word)) {
		const int rc = number(p, s, 255);

		if (!rc)
			set_add(s, s->value);
		return rc;
	}
	return fail_at(
	    p, p->at, "no opcode has this name: send, write, read, atomic, ack, cnp, or as tshark has it");
}

static int one_of(struct parser *p, struct gw_cap_step *s, const char *const *name, unsigned n)
{
	char all[96] = "";

	for (unsigned i = 0; i < n; i++) {
		const size_t used = strlen(all);

		if (is(p, name[i])) {
			s->value = i;
			return 0;
		}
		snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", name[i]);
	}
	return fail_at(p, p->at, "expected one of %s", all);
}

/* The counters of this name; drops also without their `drop_`. */
static int reason(struct parser *p, struct gw_cap_step *s, bool drops)
{
	bool any = false;

	for (unsigned i = 1; i < GW_CAP_REASONS; i++) {
		const char *name = gw_cap_reason_name(i);
		const enum gw_cap_says says = gw_cap_reason_says(i);

		if (says == GW_CAP_SAYS_NOTHING || (drops && says != GW_CAP_SAYS_DROP))
			continue;
		if (is(p, name) || (!strncmp(name, "drop_", 5) && is(p, name + 5))) {
			set_add(s, i);
			any = true;
		}
	}
	if (any)
		return 0;
	return fail_at(p, p->at,
	    drops ? "no drop counter has this name: roceway counters lists them"
	          : "no counter that a capture gives as a reason has this name");
}

static int tenant(struct parser *p, struct gw_cap_step *s)
{
	return p->tenant && p->tenant(p->ctx, p->word, &s->value)
	           ? 0
	           : fail_at(p, p->at, "no tenant has this name");
}

/* --- grammar ---------------------------------------------------------------------------------- */

static const struct key {
	const char *name;
	enum gw_cap_step_kind kind;
} keys[] = {{"tenant", GW_CAP_F_VNI}, {"vni", GW_CAP_F_VNI}, {"host", GW_CAP_F_HOST}, {"src", GW_CAP_F_SRC},
    {"dst", GW_CAP_F_DST}, {"qpn", GW_CAP_F_QPN}, {"opcode", GW_CAP_F_OPCODE}, {"stage", GW_CAP_F_STAGE},
    {"decision", GW_CAP_F_DECISION}, {"verdict", GW_CAP_F_DECISION}, {"reason", GW_CAP_F_REASON}};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static int value(struct parser *p, struct gw_cap_step *s, const char *key)
{
	switch (s->kind) {
	case GW_CAP_F_VNI:
		return *key == 't' ? tenant(p, s) : number(p, s, QPN_MAX);
	case GW_CAP_F_HOST:
	case GW_CAP_F_SRC:
	case GW_CAP_F_DST:
		return address(p, s);
	case GW_CAP_F_QPN:
		p->f->asks_qpn = true;
		return number(p, s, QPN_MAX);
	case GW_CAP_F_OPCODE:
		return opcode(p, s);
	case GW_CAP_F_STAGE:
		return one_of(p, s, gw_cap_stage_name, GW_CAP_STAGE_COUNT);
	case GW_CAP_F_DECISION:
		return one_of(p, s, gw_cap_decision_name, GW_CAP_DECISION_COUNT);
	case GW_CAP_F_REASON:
		return reason(p, s, false);
	case GW_CAP_F_AND:
	case GW_CAP_F_OR:
	case GW_CAP_F_NOT:
		break;
	}
	return RWY_EINVAL; /* no key has these */
}

/* drop [REASON] */
static int drop(struct parser *p)
{
	struct gw_cap_step *s;
	int rc = advance(p);

	if (rc)
		return rc;
	s = emit(p, ends_term(p) ? GW_CAP_F_DECISION : GW_CAP_F_REASON);
	if (!s)
		return RWY_EINVAL;
	s->value = GW_CAP_DROP;
	if (s->kind == GW_CAP_F_DECISION)
		return 0;
	rc = reason(p, s, true);
	return rc ? rc : advance(p);
}

static int term(struct parser *p)
{
	const struct key *k = keys;
	struct gw_cap_step *s;
	int rc;

	if (is(p, "drop"))
		return drop(p);
	while (k < keys + KEYS && !is(p, k->name))
		k++;
	if (k == keys + KEYS)
		return *p->word ? fail_at(p, p->at,
		                      "expected tenant, vni, host, src, dst, qpn, opcode, stage, decision, "
		                      "reason, drop, not or (")
		                : fail_at(p, p->at, "the filter ends here: something is missing");
	rc = advance(p);
	if (rc)
		return rc;
	if (ends_term(p))
		return fail_at(p, p->at, "%s needs a value", k->name);
	s = emit(p, k->kind);
	if (!s)
		return RWY_EINVAL;
	rc = value(p, s, k->name);
	return rc ? rc : advance(p);
}

static int any_of(struct parser *p);

static int negation(struct parser *p)
{
	const bool not = is(p, "not"), open = is(p, "(");
	const unsigned at = p->at;
	int rc;

	if (!not &&!open)
		return term(p);
	if (p->depth == GW_CAP_DEPTH)
		return fail_at(p, at, "nested too deeply: at most %d", GW_CAP_DEPTH);
	p->depth++;
	rc = advance(p);
	if (!rc)
		rc = not ? negation(p) : any_of(p);
	if (!rc && not &&!emit(p, GW_CAP_F_NOT))
		rc = RWY_EINVAL;
	if (!rc && open && !is(p, ")"))
		rc = fail_at(p, at, "this parenthesis is not closed");
	else if (!rc && open)
		rc = advance(p);
	p->depth--;
	return rc;
}

static int all_of(struct parser *p)
{
	int rc = negation(p);

	while (!rc && is(p, "and")) {
		rc = advance(p);
		if (!rc)
			rc = negation(p);
		if (!rc && !emit(p, GW_CAP_F_AND))
			rc = RWY_EINVAL;
	}
	return rc;
}

static int any_of(struct parser *p)
{
	int rc = all_of(p);

	while (!rc && is(p, "or")) {
		rc = advance(p);
		if (!rc)
			rc = all_of(p);
		if (!rc && !emit(p, GW_CAP_F_OR))
			rc = RWY_EINVAL;
	}
	return rc;
}

int gw_cap_filter_parse(struct gw_cap_filter *f, const char *text, gw_cap_tenant_fn *tenant_of, void *ctx,
    struct gw_cap_fault *fault)
{
	struct parser p = {.f = f, .text = text, .tenant = tenant_of, .ctx = ctx, .fault = fault};
	int rc;

	f->n = 0;
	f->asks_qpn = false;
	if (strlen(text) > GW_CAP_FILTER_MAX)
		return fail_at(
		    &p, GW_CAP_FILTER_MAX, "the filter is too long: at most %d bytes", GW_CAP_FILTER_MAX);
	rc = advance(&p);
	if (rc || !*p.word)
		return rc;
	rc = any_of(&p);
	if (!rc && *p.word)
		rc =
		    fail_at(&p, p.at, is(&p, ")") ? "no parenthesis is open here" : "expected `and` or `or`");
	return rc;
}

/* --- a packet --------------------------------------------------------------------------------- */

static bool in_prefix(const struct gw_cap_step *s, const struct rwy_ip *a)
{
	uint64_t v[2], mask[2], want[2];

	memcpy(v, a->b, 16);
	memcpy(mask, s->mask.b, 16);
	memcpy(want, s->addr.b, 16);
	return (v[0] & mask[0]) == want[0] && (v[1] & mask[1]) == want[1];
}

static bool in_set(const struct gw_cap_step *s, unsigned bit)
{
	return s->set[bit / 64] >> bit % 64 & 1;
}

static bool fits(const struct gw_cap_step *s, const struct gw_cap_facts *p)
{
	switch (s->kind) {
	case GW_CAP_F_VNI:
		return p->ip && p->vni == s->value;
	case GW_CAP_F_HOST:
		return p->ip && (in_prefix(s, &p->src) || in_prefix(s, &p->dst));
	case GW_CAP_F_SRC:
		return p->ip && in_prefix(s, &p->src);
	case GW_CAP_F_DST:
		return p->ip && in_prefix(s, &p->dst);
	case GW_CAP_F_QPN:
		return p->roce && (p->dqpn == s->value || (p->sqpn && p->sqpn == s->value));
	case GW_CAP_F_OPCODE:
		return p->roce && in_set(s, p->opcode);
	case GW_CAP_F_STAGE:
		return p->stage == s->value;
	case GW_CAP_F_DECISION:
		return p->decision == s->value;
	case GW_CAP_F_REASON:
		return in_set(s, p->reason);
	case GW_CAP_F_AND:
	case GW_CAP_F_OR:
	case GW_CAP_F_NOT:
		break;
	}
	return false;
}

/* The results of the steps so far, the last one in bit 0: it may be true, it may be false. */
struct results {
	uint64_t yes, no;
};

static struct results combine(const struct gw_cap_step *s, struct results r)
{
	const uint64_t keep = ~UINT64_C(1);

	if (s->kind == GW_CAP_F_NOT)
		return (struct results){(r.yes & keep) | (r.no & 1), (r.no & keep) | (r.yes & 1)};
	if (s->kind == GW_CAP_F_AND)
		return (struct results){r.yes >> 1 & (r.yes | keep), r.no >> 1 | (r.no & 1)};
	return (struct results){r.yes >> 1 | (r.yes & 1), r.no >> 1 & (r.no | keep)};
}

static bool is_open(const struct gw_cap_step *s, const struct gw_cap_facts *p)
{
	return s->kind == GW_CAP_F_DECISION || s->kind == GW_CAP_F_REASON ||
	       (s->kind == GW_CAP_F_QPN && p->roce && !p->sqpn) || (p->unread && s->kind != GW_CAP_F_STAGE);
}

static bool result(const struct gw_cap_filter *f, const struct gw_cap_facts *p, bool early)
{
	struct results r = {1, 0}; /* an empty filter takes all */

	for (unsigned i = 0; i < f->n; i++) {
		const struct gw_cap_step *s = &f->step[i];
		bool fit;

		if (s->kind >= GW_CAP_F_AND) {
			r = combine(s, r);
			continue;
		}
		fit = fits(s, p);
		r.yes = r.yes << 1 | (fit || (early && is_open(s, p)));
		r.no = r.no << 1 | (!fit || (early && is_open(s, p)));
	}
	return r.yes & 1;
}

bool gw_cap_filter_takes(const struct gw_cap_filter *f, const struct gw_cap_facts *p)
{
	return result(f, p, false);
}

bool gw_cap_filter_may(const struct gw_cap_filter *f, const struct gw_cap_facts *p)
{
	return result(f, p, true);
}
