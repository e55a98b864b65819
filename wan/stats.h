/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and figures of a tunnel. Part of wan/wan.h, which includes it. */
#ifndef WAN_STATS_H
#define WAN_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"
#include "wan/congest.h"
#include "wan/fec/stats.h"
#include "wan/wire/limits.h"

struct wan_tunnel;

/* Counters for operators and tests: X(field, sentence). All are monotonic. */
#define WAN_COUNTERS(X)                                                                                      \
	X(tx_datagrams, "datagrams sent")                                                                    \
	X(tx_bytes, "UDP payload bytes sent")                                                                \
	X(rx_datagrams, "datagrams accepted")                                                                \
	X(rx_bytes, "UDP payload bytes accepted")                                                            \
	X(tx_data, "inner packets handed to the wire for the first time")                                    \
	X(tx_runs, "datagrams that carried several small packets of a flow, repeats included")               \
	X(tx_bundles, "datagrams that carried small packets of several flows")                               \
	X(tx_retransmit, "datagrams that carried data again, for one of the five reasons below")             \
	X(retransmit_lost, "of these, sent because the earlier one was declared lost")                       \
	X(retransmit_probe, "of these, sent by a probe timeout: no answer came in time")                     \
	X(retransmit_copy, "of these, second copies of retransmissions, on a path with heavy loss")          \
	X(retransmit_moved, "of these, sent because their path fell silent or their carrier changed")        \
	X(retransmit_detour,                                                                                 \
	    "of these, sent by the reliable carrier because the native path had lost them repeatedly")       \
	X(detours, "times that detours by the reliable carrier began, after at least a second without")      \
	X(detour_no_room, "lost datagrams that found no room on the reliable carrier and went natively")     \
	X(detour_late, "datagrams by detour without an acknowledgement in time: given up there")             \
	X(rx_data, "inner packets handed to the engine")                                                     \
	X(rx_held_back, "buffers that had to wait for the delivery of another flow")                         \
	X(rx_duplicate, "data received twice and dropped")                                                   \
	X(spurious_retransmit, "datagrams declared lost and acknowledged later")                             \
	X(lost, "datagrams declared lost")                                                                   \
	X(pto, "probe timeouts")                                                                             \
	X(acks_sent, "ACK frames sent")                                                                      \
	X(acks_received, "ACK frames accepted")                                                              \
	X(repair_sent, "repair datagrams sent (forward error correction)")                                   \
	X(repair_bytes, "UDP payload bytes of repair datagrams sent")                                        \
	X(repair_received, "repair datagrams received")                                                      \
	X(repair_unused, "repair datagrams received and not needed, or too few for their block")             \
	X(rebuilt, "datagrams that were lost and rebuilt from repairs")                                      \
	X(drop_bad_repair, "repair datagram inconsistent, or its block rebuilds other data")                 \
	X(dgram_sent, "best-effort packets sent")                                                            \
	X(dgram_received, "best-effort packets received")                                                    \
	X(drop_short, "datagram shorter than its header")                                                    \
	X(drop_version, "unknown version or type")                                                           \
	X(drop_crc, "datagram checksum wrong")                                                               \
	X(drop_no_key, "sealed with keys that are not here, or in the clear")                                \
	X(drop_forged, "not sealed by the peer: changed, or forged")                                         \
	X(key_sets, "key sets that a handshake gave and that were used")                                     \
	X(key_updates_sent, "times that a new key took over for what is sent")                               \
	X(key_updates_received, "times that the peer's new key took over")                                   \
	X(key_no_memory, "new keys for which there was no memory")                                           \
	X(drop_unknown_tunnel, "tunnel index is not ours (a stranger, or from before a restart)")            \
	X(drop_silent,                                                                                       \
	    "datagrams that came while this gateway did not have the tunnel, but its pair's other")          \
	X(drop_refused,                                                                                      \
	    "HELLOs of a gateway that may not have the tunnel: the other one of its pair has it")            \
	X(drop_duplicate_pn, "packet number seen before")                                                    \
	X(drop_bad_frame, "frame malformed")                                                                 \
	X(drop_unknown_flow, "data for a flow that was refused or closed")                                   \
	X(drop_no_credit, "data beyond the advertised credit")                                               \
	X(drop_no_buffer, "no buffer to reassemble a fragment, or for a packet of a run")                    \
	X(drop_dgram_queue, "best-effort packet dropped: too many wait")                                     \
	X(stream_sent, "datagrams given to the reliable carrier")                                            \
	X(stream_received, "datagrams accepted from the reliable carrier")                                   \
	X(stream_lost, "datagrams lost with the reliable carrier when it broke")                             \
	X(stream_breaks, "the reliable carrier broke, or was closed, with datagrams in flight")              \
	X(peer_restarts, "the peer came back with a new epoch")                                              \
	X(went_down, "the peer went silent")                                                                 \
	X(cc_nonsense, "answers of congestion control that were out of bounds, and were clamped")
struct wan_counters {
#define X(f, s) uint64_t f;
	WAN_COUNTERS(X)
#undef X
};
struct wan_stats {
	struct wan_counters c;
	struct wan_fec_stats fec[WAN_PATHS_MAX];
	bool up;
	rwy_time since; /* time of the last up/down change; before the first: creation */
	rwy_dur srtt, min_rtt, rttvar;
	uint64_t rate_Bps, cwnd, inflight; /* of the path controller */
	uint32_t lease;                    /* of the tunnel's rates, in 1/65536 (lease.h) */
	uint64_t tx_queued_bytes;          /* custody in all tx flows */
	uint64_t rx_held_bytes;            /* received, not delivered, as rx_cost counts */
	/* buffers of them that wait for an earlier one, or for the rest of them */
	uint32_t rx_waiting;
	uint32_t fec_bufs;   /* repairs to be sent, and received ones that may be of use */
	uint32_t dgram_bufs; /* best-effort packets */
	uint32_t order_bufs; /* lists of order flows in custody */
	uint32_t tx_flows, rx_flows;
	/* mean burst of losses of the first usable path: see measure.h */
	uint32_t burst16;
	uint64_t path_Bps;                /* recent best rate of all that carry; 0: unknown */
	rwy_time measured_at;             /* time of the last round-trip measurement; 0: never */
	uint32_t loss_ppm;                /* smoothed share of datagrams lost, parts per million */
	const char *ecn;                  /* "off", "trying", "on" */
	uint32_t ce;                      /* marks that the peer reported for that path */
	struct wan_congest_state congest; /* congestion of that path */
	/* sending by the reliable carrier: RTT and rate are its own */
	bool stream;
	/* Detours by it (stream.h): after so many losses, 0: off; it carries them now; what waits
	 * for it. */
	unsigned detour_after;
	bool detour_proven;
	uint32_t detour_waiting;
	uint64_t peer_epoch;
	char cc[96]; /* description by the algorithm */
};
/* Copies the statistics; cheap enough for one call a second. */
void wan_get_stats(const struct wan_tunnel *t, struct wan_stats *out);
/* Its own counters, without those of repairs, for as long as the tunnel lives. */
const struct wan_counters *wan_counters(const struct wan_tunnel *t);

/* One path. */
struct wan_path_stats {
	/* "off", "unproven", "silent", "tried", "resting", "held", "spare", "usable" */
	const char *state;
	rwy_time since; /* time of the last change of it; before the first: creation */
	rwy_dur srtt, min_rtt;
	uint64_t rate_Bps, cwnd, inflight;
	uint32_t loss_ppm;
	uint32_t silences; /* how often it fell silent */
	/* Datagrams and bytes of UDP payload: sent, received; datagrams declared lost; those whose
	 * data went elsewhere when the path fell silent. */
	uint64_t tx_datagrams, tx_bytes, rx_datagrams, rx_bytes, lost, moved;
};
/* The number of paths; and the statistics of one below that. */
unsigned wan_paths(const struct wan_tunnel *t);
void wan_get_path_stats(const struct wan_tunnel *t, unsigned path, struct wan_path_stats *out);

#endif
