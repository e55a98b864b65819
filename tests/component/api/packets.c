/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of the made-up gateway: a thread stands for worker 0 and gives a capture so many packets
 * a second, each from a local host (lan-in) and to the far gateway (wan-out), in bursts.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "gateway/capture/capture.h"
#include "gateway/publish.h"
#include "tests/component/api/drain.h"

#define TURN  (2 * RWY_MS)
#define FRAME 1098u /* bytes: 1 KiB of payload in a WRITE, with its headers */

static struct {
	struct gw_app *app;
	uint64_t rate;
	uint64_t done;
	pthread_t thread;
	atomic_bool stop;
	struct gw_counters c;
	uint8_t frame[FRAME];
} world;

static void packet_put(struct gw_cap_worker *cw, uint64_t n, rwy_time now)
{
	struct gw_cap_facts f = {.stage = GW_CAP_LAN_IN,
	    .decision = GW_CAP_TAKE,
	    .src = rwy_ip_from4((const uint8_t[]){10, 1, 0, 2}),
	    .dst = rwy_ip_from4((const uint8_t[]){10, 2, 0, 2}),
	    .dqpn = 17,
	    .sqpn = 18,
	    .psn = (uint32_t)n & 0xffffff,
	    .opcode = 7, /* RC RDMA WRITE MIDDLE */
	    .ip = true,
	    .roce = true};
	const struct iovec part = {world.frame, sizeof(world.frame)};

	gw_cap_put(cw, &f, 0, now, &part, 1);
	f.stage = GW_CAP_WAN_OUT;
	f.decision = GW_CAP_SEND;
	gw_cap_put(cw, &f, 1, now, &part, 1);
}

static void turn(rwy_time begin)
{
	const struct gw_capture *cap = gw_published_get(world.app->publisher, GW_CAPTURE);
	struct gw_cap_worker *cw = gw_cap_of(cap, 0);
	const rwy_time now = gw_now();
	const uint64_t due = (uint64_t)((unsigned __int128)(now - begin) * world.rate / RWY_SEC);

	if (cw)
		cw->c = &world.c;
	for (; world.done < due; world.done++)
		if (cw)
			packet_put(cw, world.done, now);
}

static void *packets_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = TURN};
	const rwy_time begin = gw_now();

	while (!atomic_load(&world.stop)) {
		gw_reader_quiescent(world.app->publisher, 0);
		turn(begin);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int fake_packets_start(struct gw_app *app, uint64_t rate)
{
	if (!rate)
		return 0;
	world.app = app;
	world.rate = rate;
	memset(world.frame, 0x5a, sizeof(world.frame));
	gw_reader_join(app->publisher, 0);
	if (!pthread_create(&world.thread, NULL, packets_main, NULL))
		return 0;
	world.rate = 0;
	return RWY_ENOMEM;
}

uint64_t fake_packets_lost(void)
{
	return __atomic_load_n(&world.c.capture_lost, __ATOMIC_RELAXED);
}

void fake_packets_stop(void)
{
	if (!world.rate)
		return;
	atomic_store(&world.stop, true);
	pthread_join(world.thread, NULL);
	gw_reader_leave(world.app->publisher, 0);
}
