/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulators' model hosts compared with Soft-RoCE: tests/unit/rxe/ has requests to a real
 * responder, in wire order, and its answers (captured in the lab over a path with loss, reordering
 * and duplication; made by rxe/convert). The model must give the same answers: opcodes, PSNs,
 * syndromes, MSNs, in this order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rc_host.h"
#include "roce/wire.h"

#define MEM  (1u << 20)
#define MOST 4096

struct answer {
	unsigned opcode, psn, syndrome, msn, len;
};

struct trace {
	struct rc_mk ask[MOST];
	struct answer want[MOST], got[MOST];
	unsigned asks, wants, gots;
};

static void on_done(void *ctx, const struct rc_comp *c)
{
}

static void load(struct trace *t, const char *name)
{
	char path[128], line[160];
	FILE *f;

	memset(t, 0, sizeof(*t));
	snprintf(path, sizeof(path), "tests/unit/rxe/%s.txt", name);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct rc_mk *m = &t->ask[t->asks];
		struct answer *a = &t->want[t->wants];
		unsigned op, psn, req, n, len;
		unsigned long long va, add, cmp;

		if (sscanf(line, "> %x %x %u %u %llx %x %llx %llx", &op, &psn, &req, &n, &va, &len, &add,
		        &cmp) == 8) {
			assert_true(t->asks < MOST);
			*m = (struct rc_mk){.opcode = (uint8_t)op,
			    .psn = psn,
			    .ack_req = req,
			    .payload_len = n,
			    .va = va,
			    .rkey = 1,
			    .len = len,
			    .swap_add = add,
			    .compare = cmp};
			t->asks++;
		} else if (sscanf(line, "< %x %x %x %x %u", &a->opcode, &a->psn, &a->syndrome, &a->msn,
		               &a->len) == 5) {
			assert_true(++t->wants < MOST);
		} else {
			assert_int_equal(line[0], '#');
		}
	}
	fclose(f);
}

/* Compares the model's answers. */
static void hear(struct trace *t, struct rc_host *h)
{
	uint8_t out[RC_PKT_MAX];
	struct roce_pkt pkt;
	uint32_t len;

	while ((len = rc_host_output(h, out, RWY_SEC))) {
		struct answer *a = &t->got[t->gots];

		assert_true(rc_pkt_read(out, len, &pkt));
		assert_true(t->gots++ < MOST);
		*a = (struct answer){.opcode = pkt.opcode, .psn = pkt.psn, .len = pkt.payload_len};
		if (pkt.info->flags & ROCE_F_AETH) {
			a->syndrome = roce_aeth_syndrome(&pkt);
			a->msn = roce_aeth_msn(&pkt);
		}
	}
}

static void play(const char *name, unsigned least)
{
	static struct trace t;
	struct rc_host_cfg cfg;
	struct rc_host h;
	uint8_t *mem = calloc(1, MEM), bytes[RC_PKT_MAX];

	assert_non_null(mem);
	load(&t, name);
	rc_host_cfg_default(&cfg);
	cfg.mtu = 1024;
	cfg.rkey = 1;
	cfg.rq_psn = t.ask[0].psn;
	cfg.done = on_done;
	cfg.resources = RC_HOST_RES;
	cfg.continues = true;
	rc_host_init(&h, &cfg, mem, MEM);
	for (unsigned i = 0; i < 4096; i++)
		rc_host_post_recv(&h, 0, 8192);
	for (unsigned i = 0; i < t.asks; i++) {
		rc_host_input(&h, bytes, rc_pkt_make(bytes, &t.ask[i]), RWY_SEC);
		hear(&t, &h);
	}
	for (unsigned i = 0; i < t.wants && i < t.gots; i++)
		if (memcmp(&t.want[i], &t.got[i], sizeof(t.want[i])) != 0)
			fail_msg("%s, answer %u: %02x psn %06x syndrome %02x msn %06x len %u; Soft-RoCE: "
			         "%02x psn %06x syndrome "
			         "%02x msn %06x len %u",
			    name, i, t.got[i].opcode, t.got[i].psn, t.got[i].syndrome, t.got[i].msn,
			    t.got[i].len, t.want[i].opcode, t.want[i].psn, t.want[i].syndrome, t.want[i].msn,
			    t.want[i].len);
	assert_int_equal(t.gots, t.wants);
	assert_true(t.wants >= least);
	rc_host_fini(&h);
	free(mem);
}

static void test_write(void **state)
{
	play("write", 90);
}

static void test_send(void **state)
{
	play("send", 270);
}

static void test_read(void **state)
{
	play("read", 1500);
}

static void test_atomic(void **state)
{
	play("atomic", 190);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_write),
	    cmocka_unit_test(test_send),
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_atomic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
