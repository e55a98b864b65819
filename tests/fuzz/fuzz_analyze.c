/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a capture: packets, each behind its time step (1 byte), its captured length (2
 * bytes) and by how much it was longer (1 byte). The analysis never fails but for memory, and its
 * figures stay sane.
 */
#include <stdint.h>
#include <stdlib.h>

#include "rwy/endian.h"
#include "tools/analyze/analyze.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())
#define HEAD     4
#define POINTS   64

static void check(const struct an *a)
{
	const struct an_totals *t = an_totals(a);

	for (const struct an_flow *f = an_flows(a); f; f = f->next) {
		rwy_dur all = 0;

		CHECK(!f->peer || f->peer->peer == f);
		CHECK(f->points <= POINTS);
		CHECK(f->findings <= AN_FINDINGS_MAX);
		CHECK(f->c.packets + f->c.resent_packets + f->c.acks + f->c.icrc_bad <= t->packets);
		for (unsigned p = 0; p < AN_PHASE_COUNT; p++)
			all += f->phase[p];
		CHECK(all <= rwy_since(t->first, t->last));
		CHECK(an_hist_quantile(&f->rtt, 0.5) <= f->rtt.max);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct an *a = an_new(POINTS);
	rwy_time now = RWY_SEC;

	CHECK(a);
	while (size >= HEAD) {
		uint32_t len = rwy_get16(data + 1), more = data[3];

		now += (rwy_dur)data[0] * data[0] * RWY_US;
		data += HEAD;
		size -= HEAD;
		if (len > size)
			len = (uint32_t)size;
		CHECK(an_frame(a, now, data, len, len + more, (len & 1) != 0) == 0);
		data += len;
		size -= len;
	}
	an_end(a);
	check(a);
	an_free(a);
	return 0;
}
