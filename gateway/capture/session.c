/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture from its beginning to its end, on a thread of its own: it takes records out of the
 * workers' rings, oldest first, and writes pcapng into a buffer, or into memory that the reader
 * has, too. When that is full because the reader is slow, the rings fill, and workers count what
 * they cannot put there.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/capture/stream.h"
#include "gateway/publish.h"

#define NAP      (50 * RWY_MS)  /* a worker whose ring fills, or the reader, ends it */
#define NAP_RATE (2 * RWY_MS)   /* with a rate, whose budget is filled at each */
#define TELL     RWY_SEC        /* interval of statistics */
#define ASK      (100 * RWY_MS) /* and of asking whether the reader has left */
#define END_WAIT RWY_SEC        /* the reader's time to take the rest when the gateway stops */
#define BURST    (10 * RWY_MS)  /* of the rate */
#define SILENCE  (10 * RWY_SEC) /* a reader in memory that takes nothing for so long gets no rest */

struct gw_cap_session {
	struct gw_app *app;
	struct gw_capture *cap;
	struct gw_cap_reader reader;
	pthread_mutex_t lock; /* of all below, and of calls to the reader */
	struct gw_cap_stream stream;
	bool waiting;     /* the reader, for wake() */
	bool blocked;     /* the thread, for room in the stream */
	bool left;        /* the reader is gone */
	bool ended;       /* nothing follows in the stream */
	bool over;        /* and the thread is about to leave */
	int socket;       /* to a reader in memory; -1: none */
	bool stop;        /* the gateway stops */
	unsigned holders; /* the reader, and the thread */
	rwy_time until;
	/* the thread's own */
	uint64_t rate;
	rwy_time filled, told, asked;
};

/* The one that runs. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t over;
	struct gw_cap_session *now;
	bool closed; /* the gateway stops: none begins */
} captures = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

/* --- the thread ------------------------------------------------------------------------------- */

static void budget_fill(struct gw_cap_session *s, rwy_time now)
{
	const uint64_t more = (uint64_t)((unsigned __int128)s->rate * rwy_since(s->filled, now) / RWY_SEC);
	int64_t most = (int64_t)(s->rate * BURST / RWY_SEC), left;

	if (!s->rate || !more)
		return;
	s->filled += more * RWY_SEC / s->rate;
	most = most < 1 ? 1 : most;
	left = atomic_load(&s->cap->budget);
	left = left < 0 ? 0 : left;
	left += (int64_t)(more < (uint64_t)most ? more : (uint64_t)most);
	atomic_store(&s->cap->budget, left < most ? left : most);
}

/* A reader in memory that has nothing gets what there is. */
static void push(struct gw_cap_session *s)
{
	if (s->ended || atomic_load(&s->stream.slots.head->reader_waits))
		gw_cap_stream_push(&s->stream);
	if (s->ended)
		base_slots_end(&s->stream.slots);
	if (s->socket >= 0 && (s->ended || base_slots_filled(&s->stream.slots)))
		base_slots_wake_reader(&s->stream.slots, s->socket);
}

static void wake(struct gw_cap_session *s)
{
	if (s->reader.over) {
		push(s);
		return;
	}
	if (!s->waiting || s->left || (s->stream.out.len == s->stream.from && !s->ended))
		return;
	s->waiting = false;
	s->reader.wake(s->reader.ctx);
}

/* A reader that waits may have gone without a word. */
static void ask(struct gw_cap_session *s)
{
	if (s->waiting && !s->left && s->reader.gone(s->reader.ctx)) {
		s->ended = true;
		s->stream.out.len = s->stream.from;
		s->left = true;
		s->waiting = false;
		s->reader.wake(s->reader.ctx);
	}
}

/* Under the lock. True: the capture is over. */
static bool step(struct gw_cap_session *s, enum gw_cap_moved *moved)
{
	const rwy_time now = gw_now();

	budget_fill(s, now);
	*moved = gw_cap_stream_move(&s->stream);
	s->blocked = *moved == GW_CAP_NO_ROOM;
	if (now - s->told >= TELL) {
		(void)gw_cap_stream_statistics(&s->stream, now, false);
		s->told = now;
	}
	if (now - s->asked >= ASK) {
		ask(s);
		s->asked = now;
	}
	wake(s);
	return s->left || s->stop || gw_cap_stream_full(&s->stream) || now >= s->until;
}

/* Sleeps, at most `most`, until a worker, the reader or another thread wakes it. */
static void nap(struct gw_cap_session *s, rwy_dur most)
{
	struct pollfd p[2] = {{.fd = s->cap->wake_fd, .events = POLLIN}, {.events = POLLIN}};
	uint64_t v;

	pthread_mutex_lock(&s->lock);
	p[1].fd = s->left ? -1 : s->socket;
	pthread_mutex_unlock(&s->lock);
	atomic_store(&s->cap->asleep, true);
	if (poll(p, 2, (int)(most / RWY_MS)) > 0) {
		(void)!read(s->cap->wake_fd, &v, sizeof(v));
		if (p[1].revents && !base_slots_woken(p[1].fd)) {
			pthread_mutex_lock(&s->lock);
			s->left = true;
			pthread_mutex_unlock(&s->lock);
		}
	}
	atomic_store(&s->cap->asleep, false);
}

/* Any thread. */
static void stir(const struct gw_cap_session *s)
{
	if (write(s->cap->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}

/* When a reader in memory has given a slot back last, as the thread saw it. */
struct given {
	uint32_t slots;
	rwy_time at;
};

/* The HTTP server looks after a reader of its own. */
static bool reader_stands(const struct gw_cap_session *s, struct given *g)
{
	const uint32_t slots = s->reader.over ? base_slots_given_back(&s->stream.slots) : 0;

	if (!s->reader.over || slots != g->slots)
		*g = (struct given){slots, gw_now()};
	return rwy_since(g->at, gw_now()) > SILENCE;
}

/* Writes what is left, as far as the reader takes it. Workers have no part any more. */
static void finish(struct gw_cap_session *s)
{
	const rwy_time end = gw_now() + END_WAIT;
	struct given given = {.at = gw_now()};
	bool done = false, moved = false;

	while (!done) {
		pthread_mutex_lock(&s->lock);
		moved = moved || gw_cap_stream_move(&s->stream) == GW_CAP_ALL_MOVED;
		done = s->left || (moved && gw_cap_stream_statistics(&s->stream, gw_now(), true)) ||
		       (s->stop && gw_now() > end) || reader_stands(s, &given);
		s->ended = done;
		ask(s);
		wake(s);
		pthread_mutex_unlock(&s->lock);
		if (!done)
			nap(s, NAP_RATE);
	}
}

static void session_release(struct gw_cap_session *s)
{
	unsigned left;

	pthread_mutex_lock(&s->lock);
	left = --s->holders;
	pthread_mutex_unlock(&s->lock);
	if (left)
		return;
	pthread_mutex_destroy(&s->lock);
	gw_capture_release(s->cap);
	gw_cap_stream_free(&s->stream);
	free(s);
}

static void tell(const struct gw_cap_session *s)
{
	gw_log(GW_LOG_INFO, "capture", "ended packets=%" PRIu64 " lost=%" PRIu64, s->stream.packets,
	    gw_cap_stream_lost(&s->stream));
}

/* A reader in memory reads the rest without this thread. */
static void detach(struct gw_cap_session *s)
{
	bool attached;

	pthread_mutex_lock(&s->lock);
	attached = s->socket >= 0;
	s->socket = -1;
	s->over = true;
	pthread_mutex_unlock(&s->lock);
	if (attached)
		s->reader.over(s->reader.ctx);
}

static void *session_main(void *arg)
{
	struct gw_cap_session *s = arg;
	struct gw_publisher *p = s->app->publisher;
	enum gw_cap_moved moved = GW_CAP_MORE;
	bool over = false;

	while (!over) {
		pthread_mutex_lock(&s->lock);
		over = step(s, &moved);
		pthread_mutex_unlock(&s->lock);
		if (!over && moved != GW_CAP_MORE)
			nap(s, s->rate ? NAP_RATE : NAP);
	}
	(void)gw_publish_wait(p, gw_publish(p, GW_CAPTURE, NULL, NULL), GW_TAKE_UP_WAIT);
	finish(s);
	tell(s);
	detach(s);
	pthread_mutex_lock(&captures.lock);
	captures.now = NULL;
	pthread_cond_broadcast(&captures.over);
	pthread_mutex_unlock(&captures.lock);
	session_release(s);
	return NULL;
}

/* --- begin, end ------------------------------------------------------------------------------- */

static struct gw_cap_session *session_new(
    struct gw_app *app, const struct gw_cap_cfg *cfg, const struct gw_cap_reader *reader)
{
	struct gw_cap_session *s = calloc(1, sizeof(*s));
	const rwy_time now = gw_now();

	if (!s)
		return NULL;
	s->app = app;
	s->reader = *reader;
	s->holders = 1;
	s->socket = -1;
	s->rate = cfg->rate;
	s->until = cfg->seconds ? now + cfg->seconds * RWY_SEC : RWY_NEVER;
	s->filled = s->told = s->asked = now;
	pthread_mutex_init(&s->lock, NULL);
	if (!gw_cap_stream_new(&s->stream, app, cfg->count, gw_utc(0), reader->over))
		s->cap = s->stream.cap = gw_capture_new(app, cfg);
	if (s->cap && gw_cap_stream_head(&s->stream, cfg)) {
		atomic_store(&s->cap->budget, 1); /* more comes with time */
		return s;
	}
	session_release(s);
	return NULL;
}

static int thread_start(struct gw_cap_session *s)
{
	pthread_t thread;
	sigset_t all, old;
	int rc;

	s->holders++;     /* the thread */
	sigfillset(&all); /* signals belong to the control thread */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, session_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		s->holders--;
		return RWY_ENOMEM;
	}
	(void)!pthread_setname_np(thread, "rwy-capture");
	pthread_detach(thread);
	return 0;
}

/* Publishes and starts. A failure leaves nothing. */
static int session_start(struct gw_cap_session *s)
{
	struct gw_publisher *p = s->app->publisher;

	atomic_fetch_add(&s->cap->holders, 1); /* the publisher */
	if (!gw_publish(p, GW_CAPTURE, s->cap, gw_capture_release)) {
		atomic_fetch_sub(&s->cap->holders, 1); /* not the last: the session holds it, too */
	} else if (!thread_start(s)) {
		return 0;
	} else {
		(void)gw_publish(p, GW_CAPTURE, NULL, NULL);
	}
	session_release(s);
	return RWY_ENOMEM;
}

/* Under captures.lock: waits a little for one that is ending because its reader has left. */
static void wait_for_last(void)
{
	struct timespec end;
	bool left;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	while (captures.now) {
		struct gw_cap_session *s = captures.now;

		pthread_mutex_lock(&s->lock);
		ask(s);
		left = s->left || s->ended;
		pthread_mutex_unlock(&s->lock);
		if (!left || pthread_cond_timedwait(&captures.over, &captures.lock, &end) == ETIMEDOUT)
			return;
	}
}

int gw_cap_begin(struct gw_cap_session **out, struct gw_app *app, const struct gw_cap_cfg *cfg,
    const struct gw_cap_reader *reader)
{
	struct gw_cap_session *s = NULL;
	int rc = RWY_EEXIST;

	pthread_mutex_lock(&captures.lock);
	wait_for_last();
	if (!captures.now && !captures.closed) {
		s = session_new(app, cfg, reader);
		rc = s ? session_start(s) : RWY_ENOMEM;
	}
	if (!rc)
		*out = captures.now = s;
	pthread_mutex_unlock(&captures.lock);
	if (!rc)
		gw_log(GW_LOG_INFO, "capture", "begins snap=%u", cfg->snap);
	return rc;
}

bool gw_cap_attach(struct gw_cap_session *s, int socket)
{
	bool sent;

	pthread_mutex_lock(&s->lock);
	/* One that is over has all in the memory. */
	sent = !s->left && base_slots_send(&s->stream.slots, socket) && !s->over;
	if (sent)
		s->socket = socket;
	stir(s);
	pthread_mutex_unlock(&s->lock);
	return sent;
}

ssize_t gw_cap_read(struct gw_cap_session *s, void *buf, size_t max)
{
	ssize_t n;

	pthread_mutex_lock(&s->lock);
	n = (ssize_t)gw_cap_stream_take(&s->stream, buf, max);
	if (!n && s->ended)
		n = -1;
	if (s->blocked && gw_cap_stream_has_room(&s->stream)) {
		s->blocked = false;
		stir(s);
	}
	s->waiting = n == 0;
	if (s->waiting)
		s->reader.wait(s->reader.ctx);
	pthread_mutex_unlock(&s->lock);
	return n;
}

void gw_cap_leave(struct gw_cap_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->left = true;
	s->socket = -1; /* the server closes it */
	s->waiting = false;
	stir(s);
	pthread_mutex_unlock(&s->lock);
	session_release(s);
}

bool gw_cap_end(void)
{
	bool runs;

	pthread_mutex_lock(&captures.lock);
	runs = captures.now;
	if (runs) {
		pthread_mutex_lock(&captures.now->lock);
		captures.now->until = 0;
		stir(captures.now);
		pthread_mutex_unlock(&captures.now->lock);
	}
	pthread_mutex_unlock(&captures.lock);
	return runs;
}

void gw_cap_stop(void)
{
	pthread_mutex_lock(&captures.lock);
	captures.closed = true;
	while (captures.now) {
		pthread_mutex_lock(&captures.now->lock);
		captures.now->stop = true;
		stir(captures.now);
		pthread_mutex_unlock(&captures.now->lock);
		pthread_cond_wait(&captures.over, &captures.lock);
	}
	pthread_mutex_unlock(&captures.lock);
}
