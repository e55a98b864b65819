/* SPDX-License-Identifier: Apache-2.0 */
/* The code's tables, made by the first tunnel that needs them. Their layout depends on the CPU
 * (ISA-L). */
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>

#include "wan/fec/fec.h"

static struct wan_fec_code *code_new(void)
{
	enum { N = WAN_FEC_K_MAX + WAN_FEC_M_MAX };
	uint8_t *all = malloc((size_t)N * WAN_FEC_K_MAX);
	struct wan_fec_code *c = malloc(sizeof(*c));

	if (!all || !c) {
		free(c);
		c = NULL;
	} else {
		gf_gen_cauchy1_matrix(all, N, WAN_FEC_K_MAX);
		memcpy(c->coef, all + (size_t)WAN_FEC_K_MAX * WAN_FEC_K_MAX, sizeof(c->coef));
		ec_init_tables(WAN_FEC_K_MAX, WAN_FEC_M_MAX, c->coef[0], c->tbl);
	}
	free(all);
	return c;
}

const struct wan_fec_code *wan_fec_code(struct wan_fec *x)
{
	if (!*x->code)
		*x->code = code_new();
	return *x->code;
}
