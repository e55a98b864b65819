/* SPDX-License-Identifier: Apache-2.0 */
/* Rules as written: classes, checks, and the linear matcher. The compiled form is in
 * acl_compile.c. */
#include "tenant/acl.h"

#include <string.h>

#define QP1 1

enum acl_class acl_class_of(uint8_t opcode, uint32_t dqpn)
{
	const struct roce_opinfo *i = roce_op(opcode);

	if (!roce_op_is_valid(i))
		return ACL_OTHER;
	if (i->transport == ROCE_UD)
		return dqpn == QP1 ? ACL_CM : ACL_UD;
	switch ((enum roce_op)i->op) {
	case ROCE_OP_SEND:
		return ACL_SEND;
	case ROCE_OP_WRITE:
		return ACL_WRITE;
	case ROCE_OP_READ_REQ:
		return ACL_READ;
	case ROCE_OP_CMP_SWAP:
	case ROCE_OP_FETCH_ADD:
		return ACL_ATOMIC;
	case ROCE_OP_READ_RESP:
	case ROCE_OP_ACK:
	case ROCE_OP_ATOMIC_ACK:
		return ACL_RESPONSE;
	case ROCE_OP_CNP:
		return ACL_CNP;
	case ROCE_OP_NONE:
	case ROCE_OP_RESYNC:
	case ROCE_OP_UNCARRIED:
		return ACL_OTHER;
	}
	rwy_unreachable();
}

const char *acl_error_text(enum acl_error e)
{
	static const char *const texts[] = {
#define X(e, s) s,
	    ACL_ERRORS(X)
#undef X
	};

	return (unsigned)e < ACL_ERROR_COUNT ? texts[e] : "?";
}

static enum acl_error rule_check(const struct acl_rule *r)
{
	if (!prefix_ok(&r->src))
		return ACL_E_SRC;
	if (!prefix_ok(&r->dst))
		return ACL_E_DST;
	if (r->src.len && r->dst.len && prefix_is4(&r->src) != prefix_is4(&r->dst))
		return ACL_E_FAMILY;
	if (r->sport_lo > r->sport_hi)
		return ACL_E_PORTS;
	if (!r->classes || r->classes & ~ACL_ALL)
		return ACL_E_CLASSES;
	return ACL_E_NONE;
}

int acl_check(const struct acl_rule *rules, unsigned n, struct acl_err *err)
{
	*err = (struct acl_err){ACL_E_NONE, 0};
	if (n > ACL_RULES_MAX) {
		*err = (struct acl_err){ACL_E_RULES, n};
		return RWY_EINVAL;
	}
	for (unsigned i = 0; i < n; i++) {
		enum acl_error e = rule_check(&rules[i]);

		if (e != ACL_E_NONE) {
			*err = (struct acl_err){e, i};
			return RWY_EINVAL;
		}
	}
	return 0;
}
