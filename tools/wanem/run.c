/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of wanem: receive, ask the link, hold, send, sleep. One thread. Decisions are link.c's.
 *
 * Sleeping: an idle emulator waits for frames without a time-out. While frames flow and the delay
 * allows it, it sleeps without listening for them, for `coalesce` at least, until the next is due:
 * frames carry the kernel's time stamp, so being read late costs nothing, and one wake-up serves
 * many.
 */
#include "tools/wanem/run.h"

#include "tools/wanem/ctl.h"
#include "tools/wanem/pcap.h"
#include "tools/wanem/stats.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#define BUDGET          256 /* frames of one direction before the other has its turn */
#define CTL_PERIOD      UINT64_C(1000000)
#define AUTO_GATHER_MAX UINT64_C(200000)
#define BLIND_MAX       UINT64_C(1000000) /* ns; the receive ring must hold what arrives */
#define DOWN_PERIOD     UINT64_C(200000000)
#define MAX_SKEW        UINT64_C(1000000000)
#define CLOCK_GAP_MAX   UINT64_C(20000) /* ns between two readings, if nothing came between */
#define CLOCK_TRIES     4
#define MAX_FDS         (4 + WANEM_CTL_FDS)

struct loop {
	uint64_t now;
	int64_t real_minus_mono;
	uint64_t ctl_at;   /* when the control sockets were served last */
	uint64_t stats_at; /* next line of statistics */
	bool is_busy;      /* frames moved in this round */
	bool is_full;      /* a budget was used up: do not sleep */
};

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static uint64_t clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* The wall clock's lead over ours, or a little less, never more: a lead that is too large makes
 * frames leave early. A thread that is set aside between two readings reads again. */
static int64_t clock_lead(void)
{
	uint64_t before, real, after, best = UINT64_MAX;
	int64_t lead = 0;

	for (unsigned i = 0; i < CLOCK_TRIES && best > CLOCK_GAP_MAX; i++) {
		before = clock_now();
		real = read_clock(CLOCK_REALTIME);
		after = clock_now();
		if (after - before < best) {
			best = after - before;
			lead = (int64_t)(real - after);
		}
	}
	return lead;
}

/* The kernel's time of arrival on our clock. A step of the wall clock must not become a delay. A
 * frame may be younger than the loop's time: it must not leave early by as much. */
static uint64_t arrival(struct wanem_dir *dir, struct loop *loop, const struct wanem_frame *frame)
{
	uint64_t t = frame->time_ns - (uint64_t)loop->real_minus_mono;

	if (t > loop->now)
		loop->now = clock_now();
	if (t > loop->now || loop->now - t > MAX_SKEW)
		t = loop->now;
	if (t < dir->last_in)
		t = dir->last_in;
	dir->last_in = t;
	return t;
}

static void receive_one(struct wanem_dir *dir, struct loop *loop, const struct wanem_frame *frame)
{
	struct wanem_outcome outcome;
	uint32_t slot;

	if (!frame->is_usable) {
		dir->link.ctr[WANEM_CTR_in_packets]++;
		dir->link.ctr[WANEM_CTR_in_bytes] += frame->len;
		dir->link.ctr[WANEM_CTR_drop_offload]++;
		return;
	}
	wanem_link_in(&dir->link, frame->len, &outcome, arrival(dir, loop, frame));
	for (unsigned i = 0; i < outcome.count; i++) {
		if (!wanem_line_get(&dir->line, &slot)) {
			dir->link.ctr[WANEM_CTR_drop_held]++;
			continue;
		}
		wanem_frame_copy(frame, wanem_line_data(&dir->line, slot));
		if (outcome.copy[i].corrupt_bits)
			wanem_copy_corrupt(&outcome.copy[i], wanem_line_data(&dir->line, slot), frame->len);
		wanem_line_push(&dir->line, slot, frame->len, outcome.copy[i].at);
	}
}

static void receive(struct wanem_dir *dir, struct loop *loop)
{
	struct wanem_frame frame;
	unsigned n;

	for (n = 0; n < BUDGET && wanem_netif_peek(dir->from, &frame); n++) {
		receive_one(dir, loop, &frame);
		wanem_netif_release(dir->from);
	}
	loop->is_busy |= n > 0;
	loop->is_full |= n == BUDGET;
}

/* Releases the first n pending frames, which have left or (is_lost) could not. */
static void retire(struct wanem *w, struct wanem_dir *dir, const struct loop *loop, unsigned n, bool is_lost)
{
	for (; n; n--, dir->pend_head++, dir->pend_count--) {
		const struct wanem_pkt *pkt = &dir->pend[dir->pend_head];

		if (is_lost) {
			dir->link.ctr[WANEM_CTR_drop_tx]++;
		} else {
			dir->link.ctr[WANEM_CTR_delivered_packets]++;
			dir->link.ctr[WANEM_CTR_delivered_bytes] += pkt->len;
			wanem_hist_add(&dir->late, loop->now - pkt->at);
			if (w->pcap)
				wanem_pcap_write(w->pcap, wanem_line_data(&dir->line, pkt->slot), pkt->len,
				    loop->now + (uint64_t)loop->real_minus_mono);
			w->pcap_failed |= !wanem_pcap_check(&w->pcap, false);
		}
		wanem_line_put(&dir->line, pkt->slot);
	}
}

/* Sends one batch of frames that are due. False if there is nothing to send or the kernel accepts
 * no more. */
static bool send_batch(struct wanem *w, struct wanem_dir *dir, struct loop *loop)
{
	struct wanem_out out[WANEM_TX_BATCH];
	int sent;

	loop->now = clock_now();
	if (!dir->pend_count) {
		dir->pend_head = 0;
		while (dir->pend_count < WANEM_TX_BATCH &&
		       wanem_line_pop(&dir->line, &dir->pend[dir->pend_count], loop->now))
			dir->pend_count++;
	}
	if (!dir->pend_count)
		return false;
	for (unsigned i = 0; i < dir->pend_count; i++) {
		const struct wanem_pkt *pkt = &dir->pend[dir->pend_head + i];

		out[i] = (struct wanem_out){wanem_line_data(&dir->line, pkt->slot), pkt->len};
	}
	sent = wanem_netif_send(dir->to, out, dir->pend_count);
	dir->is_blocked = sent == -EAGAIN;
	if (dir->is_blocked)
		return false;
	if (sent == -EINTR)
		return true;
	retire(w, dir, loop, sent > 0 ? (unsigned)sent : 1, sent <= 0);
	return true;
}

static void transmit(struct wanem *w, struct wanem_dir *dir, struct loop *loop)
{
	for (unsigned n = 0; send_batch(w, dir, loop); n++) {
		loop->is_busy = true;
		if (n == BUDGET / WANEM_TX_BATCH) {
			loop->is_full = true;
			return;
		}
	}
}

/* The least time between a frame's arrival and departure in either direction, except for the tail
 * of normal jitter. */
static uint64_t least_delay(const struct wanem *w)
{
	uint64_t least = UINT64_MAX;

	for (int d = 0; d < 2; d++) {
		const struct wanem_cfg *cfg = &w->dir[d].link.cfg;
		uint64_t spread = cfg->jitter_dist == WANEM_JITTER_NORMAL ? 3 * cfg->jitter : cfg->jitter;
		uint64_t delay = cfg->delay > spread ? cfg->delay - spread : 0;

		if (delay < least)
			least = delay;
	}
	return least;
}

/* The time to wake up while frames flow; 0: wait for frames. It lets frames gather, but is not long
 * after the next one is due, and early enough for those that arrive meanwhile. */
static uint64_t gather_until(const struct wanem *w, uint64_t due, uint64_t now)
{
	uint64_t least = least_delay(w), gather = w->coalesce, blind = least / 2;

	if (gather == WANEM_COALESCE_AUTO)
		gather = least / 20 < AUTO_GATHER_MAX ? least / 20 : AUTO_GATHER_MAX;
	if (!gather || least < 2 * gather)
		return 0;
	if (blind > BLIND_MAX)
		blind = BLIND_MAX;
	if (due > now + blind)
		due = now + blind;
	return due > now + gather ? due : now + gather;
}

static uint64_t next_due(const struct wanem *w)
{
	uint64_t next = UINT64_MAX;

	for (int d = 0; d < 2; d++) {
		uint64_t t = wanem_line_next(&w->dir[d].line);

		if (!w->dir[d].is_blocked && t < next)
			next = t;
	}
	return next;
}

/* Called after an error on a socket, and now and then while an interface is down. */
static bool check_interfaces(struct wanem *w, const struct pollfd *fd, unsigned count, struct wanem_err *err)
{
	bool is_error = false;

	for (unsigned i = 0; i < count; i++)
		is_error |= (fd[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
	for (int i = 0; i < 2; i++) {
		if ((!is_error && !w->nif[i].is_down) || wanem_netif_recover(&w->nif[i]))
			continue;
		snprintf(err->text, sizeof(err->text), "interface %s is gone", w->nif[i].name);
		return false;
	}
	return true;
}

/* Sleeps until there is work, and serves the control sockets. */
static int wait_for_work(struct wanem *w, struct loop *loop, const sigset_t *mask, struct wanem_err *err)
{
	uint64_t until = next_due(w), gather;
	struct pollfd fd[MAX_FDS];
	struct timespec ts, *timeout = &ts;
	unsigned n = 0, ours;
	bool is_timed = true;

	loop->now = clock_now();
	gather = loop->is_busy ? gather_until(w, until, loop->now) : 0;
	if (loop->is_full) {
		if (loop->now - loop->ctl_at < CTL_PERIOD)
			return 0;
		until = loop->now;
	} else if (gather) {
		until = gather;
	} else {
		for (int i = 0; i < 2; i++)
			fd[n++] = (struct pollfd){.fd = w->nif[i].rx_fd, .events = POLLIN};
		if (loop->stats_at < until)
			until = loop->stats_at;
		if ((w->nif[0].is_down || w->nif[1].is_down) && until > loop->now + DOWN_PERIOD)
			until = loop->now + DOWN_PERIOD;
		is_timed = until != UINT64_MAX;
	}
	for (int d = 0; d < 2; d++)
		if (w->dir[d].is_blocked)
			fd[n++] = (struct pollfd){.fd = w->dir[d].to->tx_fd, .events = POLLOUT};
	ours = n;
	if (w->ctl)
		n += wanem_ctl_poll(w->ctl, fd + n);
	until = until > loop->now ? until - loop->now : 0;
	ts = (struct timespec){.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
	if (!is_timed)
		timeout = NULL;
	if (ppoll(fd, n, timeout, mask) < 0)
		return 0; /* a signal */
	loop->ctl_at = loop->now = clock_now();
	if (!check_interfaces(w, fd, ours, err))
		return -1;
	if (w->ctl)
		wanem_ctl_serve(w->ctl, w, fd + ours, n - ours, loop->now);
	return 0;
}

static void report(struct wanem *w, struct loop *loop)
{
	if (loop->now < loop->stats_at)
		return;
	wanem_stats_line(stderr, w);
	loop->stats_at = loop->now + w->stats_interval;
	if (w->pcap)
		fflush(w->pcap);
	w->pcap_failed |= !wanem_pcap_check(&w->pcap, false);
}

int wanem_run(struct wanem *w, const volatile sig_atomic_t *stop, const sigset_t *mask, struct wanem_err *err)
{
	struct loop loop = {.stats_at = UINT64_MAX};

	w->started = loop.now = clock_now();
	if (w->stats_interval)
		loop.stats_at = w->started + w->stats_interval;
	while (!*stop) {
		loop.is_busy = loop.is_full = false;
		loop.now = clock_now();
		loop.real_minus_mono = clock_lead();
		for (int d = 0; d < 2; d++)
			receive(&w->dir[d], &loop);
		for (int d = 0; d < 2; d++)
			transmit(w, &w->dir[d], &loop);
		report(w, &loop);
		if (wait_for_work(w, &loop, mask, err))
			return -1;
	}
	return 0;
}
