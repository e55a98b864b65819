/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rules of an ACL in order: the reference for the compiled form. */
#ifndef TESTS_LIB_ACL_LINEAR_H
#define TESTS_LIB_ACL_LINEAR_H

#include "tenant/acl.h"

static inline struct acl_verdict acl_linear(
    const struct acl_rule *rules, unsigned n, bool allow_default, const struct acl_key *k)
{
	for (unsigned i = 0; i < n; i++) {
		const struct acl_rule *r = &rules[i];

		if (r->classes >> k->cls & 1 && k->sport >= r->sport_lo && k->sport <= r->sport_hi &&
		    prefix_has(&r->src, &k->src) && prefix_has(&r->dst, &k->dst))
			return (struct acl_verdict){(uint16_t)i, r->allow};
	}
	return (struct acl_verdict){ACL_DEFAULT, allow_default};
}

#endif
