/* SPDX-License-Identifier: Apache-2.0 */
/* A capture at one gateway of the lab, with a reader that throws it away. */
#include <time.h>

#include "gateway/capture/capture.h"
#include "gateway/publish.h"
#include "tests/bench/fp_lab.h"

static struct gw_cap_session *session;
static const struct gw_capture *capture;

static void nothing(void *ctx)
{
	(void)ctx;
}

static bool stays(void *ctx)
{
	(void)ctx;
	return false;
}

void fp_capture_begin(struct fp_lab *l, enum fp_site s, uint32_t snap, const char *filter)
{
	static const char *const comment[] = {NULL};
	static struct gw_cap_cfg cfg;
	const struct gw_cap_reader reader = {.wake = nothing, .gone = stays, .wait = nothing};
	struct gw_cap_fault fault;

	cfg.snap = snap;
	cfg.comment = comment;
	if (gw_cap_filter_parse(&cfg.filter, filter, NULL, NULL, &fault))
		fp_die("the filter is wrong");
	if (gw_cap_begin(&session, &l->gw[s].app, &cfg, &reader))
		fp_die("no capture");
	capture = gw_published_get(l->gw[s].app.publisher, GW_CAPTURE);
}

/* As a reader on another processor: the rings are empty when the next batch comes. */
void fp_capture_drain(void)
{
	static uint8_t buf[1u << 18];
	const struct gw_cap_ring *ring;

	if (!session)
		return;
	ring = &capture->worker[0]->ring;
	while (atomic_load(&ring->head) != atomic_load(&ring->tail))
		if (gw_cap_read(session, buf, sizeof(buf)) <= 0)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

uint64_t fp_capture_packets(const struct fp_lab *l, enum fp_site s)
{
	return l->gw[s].w->c.capture_packets;
}

uint64_t fp_capture_lost(const struct fp_lab *l, enum fp_site s)
{
	return l->gw[s].w->c.capture_lost;
}
