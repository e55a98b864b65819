/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder of the made-up gateway: the engine's own ring, with a story of the flows that server.c
 * makes. Flow 0 waits for memory, flow 1 is learned, flow 2 has failed; tunnel site-b went down and came up.
 */
#include "engine/eng.h"
#include "engine/why.h"
#include "tests/component/api/drain.h"

static struct eng ring[2]; /* of the workers; only their recorders are used */
static rwy_time at;

const struct eng_recorder_ring *gw_recorder(const struct gw_app *app, unsigned worker)
{
	return worker < app->workers && worker < 2 ? eng_recorder(&ring[worker]) : NULL;
}

static void say(unsigned worker, uint8_t flow, bool requester, const struct eng_record *r)
{
	const uint8_t local[4] = {10, 1, 0, flow}, remote[4] = {10, 2, 0, flow};
	struct eng *e = &ring[worker];
	struct eng_requester rq = {.side.is_requester = true};
	struct eng_responder rs = {.side.is_requester = false};
	struct eng_side *side = requester ? &rq.side : &rs.side;
	static struct eng_tenant plain;

	at += 2 * RWY_MS;
	side->e = e;
	side->tenant = &plain;
	rs.local_qpn = rq.side.key.qpn = 16u + flow + (worker << 20);
	rq.remote_qpn = rs.side.key.qpn = 0xffff00u + flow;
	if (flow % 3 == 1)
		rs.local_qpn = 0;
	side->key.src = rwy_ip_from4(requester ? remote : local);
	side->key.dst = rwy_ip_from4(requester ? local : remote);
	eng_record_side(side, r, at);
}

static void tunnel(unsigned worker, enum eng_record_tunnel to)
{
	at += RWY_SEC;
	eng_record_engine(
	    &ring[worker], &(struct eng_record){.kind = ENG_REC_TUNNEL, .to = (uint8_t)to}, "site-b", at);
}

static void tell(unsigned worker)
{
	eng_record_engine(&ring[worker], &(struct eng_record){.kind = ENG_REC_START}, NULL, at);
	tunnel(worker, ENG_TUNNEL_UP);
	say(worker, 0, false, &(struct eng_record){.kind = ENG_REC_BEGIN});
	say(worker, 0, false, &(struct eng_record){.kind = ENG_REC_PAIR, .to = ENG_BY_PEER});
	say(worker, 0, false,
	    &(struct eng_record){
	        .kind = ENG_REC_RESPONDER, .from = ENG_R_WAITING, .to = ENG_R_RUNNING, .psn = 17});
	say(worker, 1, false, &(struct eng_record){.kind = ENG_REC_BEGIN});
	say(worker, 2, false, &(struct eng_record){.kind = ENG_REC_BEGIN});
	say(worker, 2, true, &(struct eng_record){.kind = ENG_REC_BEGIN});
	say(worker, 2, true, &(struct eng_record){.kind = ENG_REC_RNR_NAK, .psn = 4, .value = 640});
	tunnel(worker, ENG_TUNNEL_DOWN);
	say(worker, 0, false,
	    &(struct eng_record){.kind = ENG_REC_WITHHELD, .to = ENG_WAIT_MEMORY, .value = 31744});
	tunnel(worker, ENG_TUNNEL_UP);
	say(worker, 0, false, &(struct eng_record){.kind = ENG_REC_RELEASED, .value = 1004000});
	for (unsigned i = 1; i < 8; i++) {
		say(worker, 2, true, &(struct eng_record){.kind = ENG_REC_TIMEOUT, .psn = 5, .value = i});
		say(worker, 2, true, &(struct eng_record){.kind = ENG_REC_RESENT, .psn = 5, .value = 1});
	}
	say(worker, 2, true,
	    &(struct eng_record){.kind = ENG_REC_FAIL, .psn = 5, .to = 0x63, .value = ENG_END_SILENT});
	say(worker, 2, true,
	    &(struct eng_record){.kind = ENG_REC_REQUESTER, .from = ENG_Q_RUNNING, .to = ENG_Q_FAILED});
	say(worker, 2, true, &(struct eng_record){.kind = ENG_REC_SENT, .to = ENG_CTRL_FAIL, .psn = 5});
}

int fake_recorder_start(rwy_time now)
{
	for (unsigned i = 0; i < 2; i++) {
		int rc = eng_recorder_init(&ring[i]);

		if (rc)
			return rc;
		at = now - 100 * RWY_SEC + i * 10 * RWY_SEC;
		tell(i);
	}
	return 0;
}

void fake_recorder_stop(void)
{
	for (unsigned i = 0; i < 2; i++)
		eng_recorder_fini(&ring[i]);
}
