/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RDMA carrier of a tunnel with keys, between two gateways (carrier/lab.h) and over a made-up
 * device: what can be read on the wire, an attacker who writes into the queue pair, certificates
 * that are not the peer's, one end without keys, new keys under load. With one worker and two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <string.h>

#include "gateway/carrier/rdma.h"
#include "tests/component/carrier/lab.h"
#include "tests/lib/rdma/fake.h"

/* --- the wire --------------------------------------------------------------------------------- */
#define RUN 24 /* bytes of a host's payload in a row, each 31 more than the one before: nothing else is so */

static struct {
	_Atomic uint64_t sends, bytes, readable, heads;
	_Atomic uint64_t of[256]; /* bytes by value */
} wire;

static void listener(const uint8_t *p, uint32_t n)
{
	unsigned run = 0;

	wire.sends++;
	wire.bytes += n;
	wire.heads += n >= GW_RDMA_HEAD && p[2] < GW_RDMA_TLS; /* a record in the clear */
	for (uint32_t i = 0; i < n; i++) {
		wire.of[p[i]] += i >= GW_RDMA_HEAD;
		run = i && (uint8_t)(p[i] - p[i - 1]) == 31 ? run + 1 : 0;
		if (run == RUN) {
			wire.readable++;
			break;
		}
	}
}

static void listen_begin(void)
{
	memset(&wire, 0, sizeof(wire));
	rdma_fake_listen(listener);
}

/* There and back, and nothing that hosts write can be read; no byte is much more frequent than
 * others. */
static void test_nothing_to_read(void **state)
{
	struct gw_carrier_info was[2] = {cl_info(FP_A), cl_info(FP_B)};
	uint64_t most = 0;

	listen_begin();
	cl_moves_there_and_back(WAN_CARRIER_RDMA, cl_both_rdma);
	rdma_fake_listen(NULL);
	assert_true(wire.sends > 20000 && wire.bytes > 20000 * 1024);
	assert_int_equal(wire.readable, 0);
	assert_int_equal(wire.heads, 0);
	for (unsigned i = 0; i < 256; i++)
		most = wire.of[i] > most ? wire.of[i] : most;
	if (most > wire.bytes / 256 * 11 / 10)
		fail_msg("a byte is there %lu times of %lu", (unsigned long)most, (unsigned long)wire.bytes);
	for (unsigned s = 0; s < FP_SITES; s++) {
		struct gw_carrier_info i = cl_info(s);

		assert_int_equal(i.c.moves_to_rdma, was[s].c.moves_to_rdma + 1);
		assert_int_equal(i.c.refused_forged + i.c.refused_malformed + i.early + i.c.fallbacks, 0);
	}
	assert_true(cl_info(FP_B).c.tx_credits > was[FP_B].c.tx_credits);
}

/* The same search where there are no keys. */
static void test_something_to_read(void **state)
{
	for (unsigned s = 0; s < FP_SITES; s++) {
		struct conf_tunnel t = cl.fp.gw[s].conf.tunnel[0];

		t.security = CONF_SEC_NONE;
		assert_int_equal(gw_carrier_tunnel(cl_app((enum fp_site)s), 0, &t), 0);
	}
	listen_begin();
	cl_ask(FP_A, WAN_CARRIER_RDMA);
	cl_until(cl_both_rdma, true);
	cl_carry(2000);
	rdma_fake_listen(NULL);
	assert_true(wire.readable > 1000 && wire.heads > 1000);
	for (unsigned s = 0; s < FP_SITES; s++)
		assert_int_equal(
		    gw_carrier_tunnel(cl_app((enum fp_site)s), 0, &cl.fp.gw[s].conf.tunnel[0]), 0);
	cl_until(cl_both_native, true);
	cl_check_hosts();
}

/* --- an attacker in the fabric ---------------------------------------------------------------- */
static bool all_rdma(void)
{
	cl_hurry();
	return cl_both_rdma();
}

static bool attacked(void)
{
	return !rdma_fake_waits() && cl_both_fell();
}

/* Each writes once into a queue pair. The connection ends, by name; nothing of it comes to a host,
 * and all is there in the end. */
static void test_attacks(void **state)
{
	static const enum rdma_fake_fault way[] = {
	    RDMA_FAKE_FLIP, RDMA_FAKE_REPEAT, RDMA_FAKE_SWALLOW, RDMA_FAKE_CREDIT, RDMA_FAKE_FLIP};

	gw_log_set(-1);
	cl_ask(FP_A, WAN_CARRIER_RDMA);
	for (unsigned i = 0; i < 5; i++) {
		const uint64_t forged = cl_info(FP_A).c.refused_forged + cl_info(FP_B).c.refused_forged;

		cl_until(all_rdma, true);
		cl_carry(1000);
		for (unsigned s = 0; s < FP_SITES; s++)
			cl.fallbacks[s] = cl_info(s).c.fallbacks;
		rdma_fake_fault(way[i]);
		cl_until(attacked, true);
		if (cl_info(FP_A).c.refused_forged + cl_info(FP_B).c.refused_forged != forged + 1)
			fail_msg("attack %u: `%s`, `%s`", i, cl_info(FP_A).problem, cl_info(FP_B).problem);
		/* The end of the tunnel's other connections may be what is said last. */
		if (!strstr(cl_info(FP_B).problem, "the peer did not seal") &&
		    !strstr(cl_info(FP_B).problem, "the peer closed") && !cl_both_rdma())
			fail_msg("attack %u: `%s`", i, cl_info(FP_B).problem);
		cl_carry(1000);
	}
	cl_until(all_rdma, true);
	gw_log_set(GW_LOG_WARNING);
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	cl_check_hosts();
	for (unsigned s = 0; s < FP_SITES; s++)
		assert_int_equal(cl_info(s).c.refused_malformed, 0);
}

/* A queue pair of the test's, as a stranger in the fabric would have with the peer's address. */
struct dialled {
	struct rdma_event_channel *events;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t bytes[256];
	char said[64]; /* private data of a REJ */
};

static void dial(struct dialled *d, uint8_t cipher)
{
	struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 16}};
	uint8_t said[GW_RDMA_GREETING];
	struct rdma_conn_param param = {.private_data = said, .private_data_len = sizeof(said)};
	struct rwy_ip from = CL_RDMA(1 + FP_B), to = CL_RDMA(1 + FP_A);
	struct base_sockaddr src, dst;
	struct rdma_cm_event *ev;

	memset(d, 0, sizeof(*d));
	d->events = rdma_create_event_channel();
	base_sockaddr_make(&src, &from, 0);
	base_sockaddr_make(&dst, &to, cl.port);
	gw_rdma_greeting_put(said, &(struct gw_rdma_greeting){.slots = 64, .cipher = cipher});
	assert_int_equal(rdma_create_id(d->events, &d->id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(
	    rdma_resolve_addr(d->id, (struct sockaddr *)&src.ss, (struct sockaddr *)&dst.ss, 0), 0);
	assert_int_equal(rdma_get_cm_event(d->events, &ev), 0);
	rdma_ack_cm_event(ev);
	d->channel = ibv_create_comp_channel(d->id->verbs);
	d->cq = ibv_create_cq(d->id->verbs, 64, NULL, d->channel, 0);
	a.send_cq = a.recv_cq = d->cq;
	assert_int_equal(rdma_create_qp(d->id, NULL, &a), 0);
	d->mr = ibv_reg_mr(d->id->pd, d->bytes, sizeof(d->bytes), 0);
	for (unsigned i = 0; i < 16; i++) {
		struct ibv_sge sge = {(uintptr_t)d->bytes + 128, 128, d->mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		assert_int_equal(ibv_post_recv(d->id->qp, &wr, &bad), 0);
	}
	assert_int_equal(rdma_connect(d->id, &param), 0);
}

/* The next event of the connection manager. */
static enum rdma_cm_event_type answer(struct dialled *d)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *ev;
	const char *why;

	while (rdma_get_cm_event(d->events, &ev) != 0)
		cl_turn(false);
	type = ev->event;
	why = gw_rdma_refusal_get(
	    ev->param.conn.private_data ? ev->param.conn.private_data : "", ev->param.conn.private_data_len);
	snprintf(d->said, sizeof(d->said), "%s", type == RDMA_CM_EVENT_REJECTED && why ? why : "");
	rdma_ack_cm_event(ev);
	return type;
}

static void say(struct dialled *d, const uint8_t *p, uint32_t n, uint32_t immediate)
{
	struct ibv_sge sge = {(uintptr_t)d->bytes, n, d->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
	                       .num_sge = 1,
	                       .opcode = IBV_WR_SEND_WITH_IMM,
	                       .imm_data = htonl(immediate)},
	                   *bad;

	memcpy(d->bytes, p, n);
	assert_int_equal(ibv_post_send(d->id->qp, &wr, &bad), 0);
}

static void hang_up(struct dialled *d)
{
	rdma_disconnect(d->id);
	rdma_destroy_qp(d->id);
	ibv_destroy_cq(d->cq);
	ibv_destroy_comp_channel(d->channel);
	ibv_dereg_mr(d->mr);
	rdma_destroy_id(d->id);
	rdma_destroy_event_channel(d->events);
}

/* Somebody with the peer's address and without its key: in the clear, with another cipher, and with
 * anything else than TLS. */
static void test_strangers(void **state)
{
	uint8_t hello[WAN_REC_HELLO_LEN], rubbish[100] = {0, 96, GW_RDMA_TLS},
	                                  sealed[64] = {0, 60, GW_RDMA_SEALED};
	const struct {
		const uint8_t *p;
		uint32_t n;
	} says[] = {{hello, sizeof(hello)}, {rubbish, sizeof(rubbish)}, {sealed, sizeof(sealed)}};
	struct gw_carrier_info was = cl_info(FP_A);
	struct wan_conn conn;
	struct dialled d;

	gw_log_set(-1);
	dial(&d, 0);
	assert_int_equal(answer(&d), RDMA_CM_EVENT_REJECTED);
	assert_string_equal(d.said, "only one end has keys: `security` differs");
	hang_up(&d);
	dial(&d, 1 + AEAD_AES_256_GCM);
	assert_int_equal(answer(&d), RDMA_CM_EVENT_REJECTED);
	assert_string_equal(d.said, "the peer has another `keys.cipher`");
	hang_up(&d);
	assert_int_equal(cl_info(FP_A).c.refused_tunnel, was.c.refused_tunnel + 2);
	wan_conn_init(&conn, conf_tunnel_id(&cl.fp.gw[FP_A].conf.tunnel[0], 0), 77, 78, true);
	assert_int_equal(wan_conn_put(&conn, hello), sizeof(hello));
	for (unsigned i = 0; i < 3; i++) {
		dial(&d, 1 + AEAD_AES_128_GCM);
		assert_int_equal(answer(&d), RDMA_CM_EVENT_ESTABLISHED);
		say(&d, says[i].p, says[i].n, 64);
		assert_int_equal(answer(&d), RDMA_CM_EVENT_DISCONNECTED);
		hang_up(&d);
		assert_int_equal(cl_info(FP_A).early, was.early + i + 1);
	}
	dial(&d, 1 + AEAD_AES_128_GCM); /* one that says nothing */
	assert_int_equal(answer(&d), RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(answer(&d), RDMA_CM_EVENT_DISCONNECTED);
	hang_up(&d);
	assert_int_equal(cl_info(FP_A).slow, was.slow + 1);
	gw_log_set(GW_LOG_WARNING);
}

/* --- certificates, and one end without keys --------------------------------------------------- */
/* Site A's certificate and the CA that it believes. */
static void certificates(const char *own, const char *ca)
{
	struct conf_tunnel_keys k = cl_app(FP_A)->conf->keys;

	snprintf(k.certificate, sizeof(k.certificate), "%s/%s.pem", cl.certs, own);
	snprintf(k.key, sizeof(k.key), "%s/%s.key", cl.certs, own);
	snprintf(k.ca, sizeof(k.ca), "%s/%s.pem", cl.certs, ca);
	gw_carrier_certs(cl_app(FP_A), &k);
}

/* The fault is mended: RDMA carries, and the tunnel leaves it. */
static void carries_and_ends(void)
{
	cl_until(all_rdma, true);
	cl_carry(1000);
	gw_log_set(GW_LOG_WARNING);
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	cl_check_hosts();
}

static const char *expected[FP_SITES];

static bool both_say(void)
{
	cl_hurry();
	return strstr(cl_info(FP_A).problem, expected[FP_A]) && strstr(cl_info(FP_B).problem, expected[FP_B]);
}

static bool b_says(void)
{
	cl_hurry();
	return strstr(cl_info(FP_B).problem, expected[FP_B]);
}

/* Its CA is gone while the connection is in use: it ends at once, and there is no other one, whoever
 * opens it. The other way round, too: a certificate of a foreign CA. */
static void test_certificates(void **state)
{
	gw_log_set(-1);
	cl_ask(FP_A, WAN_CARRIER_RDMA);
	cl_until(all_rdma, true);
	cl_carry(1000);
	certificates("a", "other");
	cl_until(cl_both_native, true);
	expected[FP_A] = "certificate";
	expected[FP_B] = "the peer ended TLS: ";
	cl_until(both_say, true);
	cl_carry(1000);
	assert_true(cl_both_native());
	certificates("x", "ca");
	expected[FP_B] = "certificate";
	expected[FP_A] = "the peer ended TLS: ";
	cl_until(both_say, true);
	assert_true(cl_both_native());
	certificates("a", "ca");
	carries_and_ends();
}

static bool a_refused_tunnel(void)
{
	cl_hurry();
	return cl_info(FP_A).c.refused_tunnel > 0;
}

/* The peer's certificate has another name than the tunnel's peer. */
static void test_names(void **state)
{
	struct conf_tunnel t = cl.fp.gw[FP_A].conf.tunnel[0];

	gw_log_set(-1);
	snprintf(t.peer_name, sizeof(t.peer_name), "site-c");
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &t), 0);
	cl_ask(FP_B, WAN_CARRIER_RDMA);
	cl_until(a_refused_tunnel, true); /* B's certificate is not for site-c */
	assert_true(cl_both_native());
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &cl.fp.gw[FP_A].conf.tunnel[0]), 0);
	carries_and_ends();
}

/* One end says `security: none`: refused by name, and never in the clear. */
static void test_one_end(void **state)
{
	struct conf_tunnel t = cl.fp.gw[FP_A].conf.tunnel[0];

	gw_log_set(-1);
	t.security = CONF_SEC_NONE;
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &t), 0);
	cl_ask(FP_B, WAN_CARRIER_RDMA);
	expected[FP_B] = "the peer refuses the RDMA connection: only one end has keys";
	listen_begin();
	cl_until(b_says, true);
	rdma_fake_listen(NULL);
	assert_int_equal(wire.sends, 0);
	assert_true(cl_info(FP_A).c.refused_tunnel > 0);
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &cl.fp.gw[FP_A].conf.tunnel[0]), 0);
	cl_until(all_rdma, true);
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	gw_log_set(GW_LOG_WARNING);
	cl_check_hosts();
}

/* --- new keys under load ---------------------------------------------------------------------- */
static void test_rekey(void **state)
{
	struct gw_carrier_info was[FP_SITES];

	for (unsigned s = 0; s < FP_SITES; s++) {
		was[s] = cl_info(s);
		gw_carriers_lock(cl_app(s)->carriers);
		cl_app(s)->carriers->rekey = 2 * RWY_MS;
		pthread_mutex_unlock(&cl_app(s)->carriers->lock);
	}
	cl_moves_there_and_back(WAN_CARRIER_RDMA, cl_both_rdma);
	for (unsigned s = 0; s < FP_SITES; s++) {
		const struct gw_carrier_info i = cl_info(s);

		assert_true(i.c.key_updates > was[s].c.key_updates + 20);
		assert_int_equal(i.c.refused_forged, was[s].c.refused_forged);
		assert_int_equal(i.c.fallbacks, was[s].c.fallbacks);
	}
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(test_nothing_to_read),
	    cmocka_unit_test(test_something_to_read),
	    cmocka_unit_test(test_attacks),
	    cmocka_unit_test(test_strangers),
	    cmocka_unit_test(test_rekey),
	    cmocka_unit_test(test_certificates),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_one_end),
	    cmocka_unit_test(cl_test_end),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	cl.keys = true;
	return cl_main(argc, argv, tests);
}
