/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's patience: how long it waits for an ACK until its queue pair fails, as CM said it. Where
 * ACKs come from the far site (ack modes `far` and `end`), a round trip above it is fatal.
 */
#include "engine/responder.h"
#include "engine/emit.h"

#define UNIT ((rwy_dur)4096) /* ns of CM's timeout 0; each step doubles (IBA 9.7.6.1.3) */

rwy_dur eng_patience(const struct eng_responder *rs)
{
	if (rs->ack_timeout <= 1 || rs->retry == ENG_RETRY_UNKNOWN)
		return RWY_NEVER;
	return (rwy_dur)(rs->retry + 1u) * (UNIT << (rs->ack_timeout - 1u));
}

void eng_patience_check(struct eng_responder *rs)
{
	rwy_dur rtt = rs->side.e->tunnel[rs->side.tunnel].min_rtt, patience = eng_patience(rs);
	enum eng_ack_mode mode = eng_ack_mode(rs);
	bool before = rs->ack_too_late;

	rs->ack_too_late = (mode == ENG_ACK_FAR || mode == ENG_ACK_END) && patience < rtt;
	if (!rs->ack_too_late || before)
		return;
	eng_record_side(&rs->side,
	    &(struct eng_record){.kind = ENG_REC_IMPATIENT, .value = (uint32_t)(patience / RWY_MS)},
	    rs->side.e->now);
	eng_log_side(rs->side.e, 1, &rs->side, "the host gives up before an ACK can come");
	eng_log(rs->side.e, 1, "host_patience=%.1fms rtt=%.1fms ack_mode=%s", (double)patience / 1e6,
	    (double)rtt / 1e6, eng_ack_mode_name(mode));
}
