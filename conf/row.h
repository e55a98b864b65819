/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For conf/schema.c only: how a row of the schema names its field. C(), P(), RA(), RM() and LIST()
 * mark a key that needs a restart; the others one that reload applies.
 */
#ifndef CONF_ROW_H
#define CONF_ROW_H

#include <stddef.h>

#include "conf/schema.h"

#define KIB  UINT64_C(1024)
#define MIB  (KIB << 10)
#define GIB  (KIB << 20)
#define TIB  (KIB << 30)
#define TBPS UINT64_C(1000000000000)

/* clang-format off: a table reads best as one */
#define C(f)    .offset = offsetof(struct conf, f), .size = sizeof(((struct conf *)0)->f), .restart = true
#define LIVE(f) .offset = offsetof(struct conf, f), .size = sizeof(((struct conf *)0)->f)
#define P(f)                                                                                                 \
	.offset = offsetof(struct conf_port, f), .size = sizeof(((struct conf_port *)0)->f), .restart = true
#define T(f)  .offset = offsetof(struct conf_tunnel, f), .size = sizeof(((struct conf_tunnel *)0)->f)
#define NP(f) .offset = offsetof(struct conf_path, f), .size = sizeof(((struct conf_path *)0)->f)
#define S(f)  .offset = offsetof(struct conf_sibling, f), .size = sizeof(((struct conf_sibling *)0)->f)
#define RA(f)                                                                                                \
	.offset = offsetof(struct conf_allow, f), .size = sizeof(((struct conf_allow *)0)->f), .restart = true
#define RM(f) .offset = offsetof(struct conf_map, f), .size = sizeof(((struct conf_map *)0)->f)
#define N(f)  .offset = offsetof(struct conf_tenant, f), .size = sizeof(((struct conf_tenant *)0)->f)
#define NX(f) .offset = offsetof(struct tenant_prefix, f), .size = sizeof(((struct tenant_prefix *)0)->f)
#define NH(f) .offset = offsetof(struct tenant_host, f), .size = sizeof(((struct tenant_host *)0)->f)
#define NM(f) .offset = offsetof(struct tenant_mode, f), .size = sizeof(((struct tenant_mode *)0)->f)
#define NA(f) .offset = offsetof(struct acl_rule, f), .size = sizeof(((struct acl_rule *)0)->f)
#define MALLOCED(s, f, n)                                                                                    \
	.offset = offsetof(struct s, f), .size = sizeof(*((struct s *)0)->f),                                \
	.count = offsetof(struct s, n), .malloced = true
#define LIST(s, f, n)                                                                                        \
	.offset = offsetof(struct s, f), .size = sizeof(((struct s *)0)->f[0]),                              \
	.count = offsetof(struct s, n), .restart = true
#define LIVE_LIST(s, f, n)                                                                                   \
	.offset = offsetof(struct s, f), .size = sizeof(((struct s *)0)->f[0]), .count = offsetof(struct s, n)
/* clang-format on */

#endif
