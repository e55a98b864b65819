/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pcapng of a capture, made of the workers' records: in a bounded buffer, or in slots that the
 * reader has, too (base/slots.h), whole blocks in each. What does not fit stays in the rings. One
 * thread at a time.
 */
#ifndef GATEWAY_CAPTURE_STREAM_H
#define GATEWAY_CAPTURE_STREAM_H

#include "base/slots.h"
#include "gateway/capture/capture.h"
#include "gateway/capture/pcapng.h"

struct gw_cap_stream {
	const struct gw_app *app;
	struct gw_capture *cap; /* set it after gw_cap_stream_new() */
	struct gw_cap_out out;  /* with slots: the one that is being filled, or none */
	struct base_slots slots;
	size_t from;    /* of `out`: taken by the reader up to here; without slots */
	uint64_t count; /* packets at most; 0: no limit */
	uint64_t utc;   /* UTC of the gateway's time 0, ns */
	uint64_t packets;
	uint64_t *seen; /* packets, to know one that comes again */
	struct gw_cap_texts *texts;
	uint64_t taken_told[GW_CAP_IFS], lost_told[GW_CAP_IFS], lost_put[GW_CAP_IFS];
};

/* RWY_ENOMEM: free it all the same. */
RWY_MUST_CHECK int gw_cap_stream_new(
    struct gw_cap_stream *s, const struct gw_app *app, uint64_t count, uint64_t utc, bool slots);
void gw_cap_stream_free(struct gw_cap_stream *s);
/* Writes the head of the file. False: it has no room. */
bool gw_cap_stream_head(struct gw_cap_stream *s, const struct gw_cap_cfg *cfg);
/* The rings have nothing left, or there are enough packets; they have some for the next call; they
 * have some for which the reader must make room. */
enum gw_cap_moved { GW_CAP_ALL_MOVED, GW_CAP_MORE, GW_CAP_NO_ROOM };
/* Takes records. */
enum gw_cap_moved gw_cap_stream_move(struct gw_cap_stream *s);
/* Whether the reader has made room for a good deal of records. */
static inline bool gw_cap_stream_has_room(const struct gw_cap_stream *s)
{
	return s->out.len - s->from < s->out.max / 2;
}
/*
 * Statistics of interfaces with news, or of all. Of the first one always: a reader gets something.
 * False: no room.
 */
bool gw_cap_stream_statistics(struct gw_cap_stream *s, rwy_time now, bool all);
/* Whether `count` packets were written. */
bool gw_cap_stream_full(const struct gw_cap_stream *s);
/* Slots: what has been written is for the reader; it is not to wait for more. */
void gw_cap_stream_push(struct gw_cap_stream *s);
/* No slots: copies what is next for the reader. Returns how many bytes. */
size_t gw_cap_stream_take(struct gw_cap_stream *s, void *buf, size_t max);
/* Packets that are missing, by the statistics that were written last. */
uint64_t gw_cap_stream_lost(const struct gw_cap_stream *s);

#endif
