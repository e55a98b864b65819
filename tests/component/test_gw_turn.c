/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of things within one turn of a worker (gateway/datapath/worker.c): when frames came that workers
 * hand to each other; notes of other workers before what came after them; and what a capture says of both.
 * And what is left to a later turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <string.h>

#include "engine/note.h"
#include "gateway/datapath/capture.h"
#include "gateway/datapath/notes.h"
#include "gateway/datapath/rx.h"
#include "tests/bench/fp_run.h"

#define WORKERS 2
#define QPS     4

static struct fp_run run;

static struct gw_worker *worker(unsigned k)
{
	return run.lab.gw[FP_A].app.worker[k];
}

/* A host's packet comes to its owner. */
static unsigned owner_of(const struct fp_port *p, const struct rte_mbuf *m)
{
	struct gw_pkt k = {.off = GW_ETH};

	assert_int_equal(gw_pkt_ip(m, RWY_ETHER_IP4, &k), GW_PKT_OK);
	return gw_worker_of(&run.lab.gw[FP_A].app, 0, m, &k);
}

/* A frame that is too short for all. */
static struct rte_mbuf *junk(const struct gw_worker *w, uint16_t port)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pools->small);

	assert_non_null(m);
	m->port = port;
	return m;
}

/* A note with a packet that is none: it is dropped. */
static struct eng_note note(void)
{
	struct rwy_buf *b = gw_buf_ops.alloc(&run.lab.pools, 0, 64);

	assert_non_null(b);
	memset(b->data, 0, b->len);
	return (struct eng_note){.type = ENG_NOTE_PACKET, .b = b};
}

/* --- what happens when a worker looks for frames ------------------------------------------------------- */

static struct gw_worker *looks; /* NULL: nothing happens */
static rwy_time came;
static bool notes_left;

/* It is not scheduled for a while, and another worker hands it a frame then. */
static uint16_t stand_still(
    uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t most, void *arg)
{
	if (!looks)
		return n;
	rte_delay_us_block(1000);
	assert_int_equal(rte_ring_mp_enqueue(looks->handoff, junk(looks, port)), 0);
	came = gw_now();
	looks = NULL;
	return n;
}

static uint16_t see_notes(
    uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t most, void *arg)
{
	if (looks)
		notes_left = !rte_ring_empty(looks->notes);
	looks = NULL;
	return n;
}

static void turn(struct gw_worker *w, const struct gw_rxq *q, rte_rx_callback_fn fn)
{
	const struct rte_eth_rxtx_callback *cb = rte_eth_add_rx_callback(q->port->id, q->queue, fn, NULL);

	assert_non_null(cb);
	looks = w;
	gw_worker_turn(w);
	assert_null(looks);
	assert_int_equal(rte_eth_remove_rx_callback(q->port->id, q->queue, cb), 0);
}

/* --- tests -------------------------------------------------------------------------------------------- */

static void test_nothing_comes_before_its_time(void **state)
{
	struct gw_worker *w = worker(1);
	const uint64_t before = w->c.drop_rx_truncated;

	turn(w, &w->rxq[w->rxqs - 1], stand_still);
	assert_int_equal(w->c.drop_rx_truncated, before + 1);
	assert_true(w->now >= came);
}

/* eng_ops.note: a note comes before what comes to its worker later, by whatever port. */
static void test_notes_come_first(void **state)
{
	struct gw_worker *w = worker(0);
	const struct gw_rxq lan = w->rxq[0], wan = w->rxq[w->rxqs - 1];
	struct eng_note n = note();

	assert_int_equal(lan.port->conf->role, CONF_ROLE_LAN);
	assert_int_equal(wan.port->conf->role, CONF_ROLE_WAN);
	w->rxq[0] = wan;
	w->rxq[w->rxqs - 1] = lan;
	assert_true(gw_note_send(worker(1), 0, &n));
	assert_int_equal(
	    rte_ring_enqueue(run.lab.gw[FP_A].port[FP_WAN].rx[wan.queue], junk(w, wan.port->id)), 0);
	turn(w, &lan, see_notes);
	w->rxq[0] = lan;
	w->rxq[w->rxqs - 1] = wan;
	assert_false(notes_left);
}

/*
 * A capture says what became of each frame, by the counters that it changed. A note that comes within a burst
 * changes some, too.
 */
static void test_a_note_is_no_frame(void **state)
{
	struct fp_port *lan = &run.lab.gw[FP_A].port[FP_LAN];
	struct eng_note n = note();
	struct gw_pkt k = {.off = GW_ETH};
	struct gw_cap_sealed s;
	struct gw_worker *w;
	unsigned owner;
	void *m;

	fp_capture_begin(&run.lab, FP_A, 128, "");
	fp_hosts_send(run.hosts, 1);
	owner = rte_ring_empty(lan->rx[0]);
	w = worker(owner);
	assert_int_equal(rte_ring_dequeue(lan->rx[owner], &m), 0);
	gw_worker_turn(w); /* it begins to capture */
	assert_int_equal(gw_pkt_ip(m, RWY_ETHER_IP4, &k), GW_PKT_OK);
	gw_cap_burst_begin(w);
	gw_cap_rx_begin(w, &s, run.lab.gw[FP_A].app.port[FP_LAN], m);
	gw_rx_engine(w, m, &k, 0);
	gw_cap_rx_waits(w);
	assert_true(gw_note_send(worker(!owner), owner, &n));
	gw_cap_burst_end(w);
	assert_true(rte_ring_empty(w->notes));
	assert_int_equal(w->cap->rx_n, 1);
	assert_int_equal(w->cap->rx[0].facts.decision, GW_CAP_TAKE);
}

static void *works(void *w)
{
	gw_worker_main(w);
	return NULL;
}

/* The control thread is woken once in a while at most. Frames that wait for that do not wait for a sleep. */
static void test_no_sleep_before_the_kernel_has_its_frames(void **state)
{
	struct gw_worker *w = worker(1);
	const uint64_t turns = w->st.turns + 1000;
	pthread_t thread;

	run.lab.gw[FP_A].conf.polling = CONF_POLL_ADAPTIVE;
	w->kernel_fed = true;
	w->wake_at = gw_now() + RWY_SEC;
	assert_int_equal(pthread_create(&thread, NULL, works, w), 0);
	while (atomic_load(&w->heartbeat) < turns)
		rte_delay_us_sleep(100);
	atomic_store(&w->stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w->st.sleeps, 0);
}

static void with_steering(struct conf *c, enum fp_site s)
{
	c->steering = CONF_STEER_QP;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_comes_before_its_time),
	    cmocka_unit_test(test_notes_come_first),
	    cmocka_unit_test(test_a_note_is_no_frame),
	    cmocka_unit_test(test_no_sleep_before_the_kernel_has_its_frames),
	};
	const struct fp_cfg cfg = {.payload = 1024,
	    .qps = QPS,
	    .message = 4,
	    .batch = QPS,
	    .workers = WORKERS,
	    .queues = WORKERS,
	    .conf = with_steering};
	char *eal[] = {"test", "--no-huge", "--no-shconf", "-m", "400", "--no-pci", "--lcores", "0",
	    "--log-level", "error", NULL};

	fp_begin(10, eal, GW_LOG_ERROR);
	fp_lab_new(&run.lab, &cfg);
	run.lab.gw[FP_A].port[FP_LAN].queue_of = owner_of;
	run.hosts = fp_hosts_new(&run.lab);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
