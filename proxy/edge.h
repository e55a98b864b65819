/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edge of a relay: sits between the LAN port and the engine and rewrites RoCEv2 packets. The
 * engine sees two hosts, and each host sees the relay. It decides, and rewrites the packet in
 * place; the caller carries out the action. It sends nothing and has no clock.
 *
 * Thread: the worker that owns the edge.
 */
#ifndef PROXY_EDGE_H
#define PROXY_EDGE_H

#include "proxy/hops.h"
#include "proxy/map.h"
#include "proxy/once.h"
#include "proxy/policy.h"

enum proxy_verdict {
	PROXY_PASS, /* the packet goes on, rewritten */
	PROXY_DROP, /* it is counted, and ends here */
};

#define PROXY_REPLY_MAX 336

/* Decision about one packet. */
struct proxy_act {
	enum proxy_verdict verdict;
	/* A packet for the sender of the one that came, from its IP header on; 0: none. */
	uint32_t reply_len;
	uint8_t reply[PROXY_REPLY_MAX];
	/* The link whose state the packet, or the answer to a PAIR, shows to a host; NULL: none. */
	const struct proxy_link *link;
};

/* Events of a link, for the log. */
enum proxy_news {
	PROXY_NEWS_ASKED,
	PROXY_NEWS_OPEN,
	PROXY_NEWS_REJECTED,
	PROXY_NEWS_CLOSED,
	PROXY_NEWS_GONE,
	PROXY_NEWS_ONWARD /* a relay between others: the REQ went on; the link is not kept */
};

/* X(field, sentence): monotonic. */
#define PROXY_COUNTERS(X)                                                                                    \
	X(relay_in_packets, "packets of local hosts rewritten")                                              \
	X(relay_in_bytes, "their bytes, from the IP header on")                                              \
	X(relay_out_packets, "packets to local hosts rewritten")                                             \
	X(relay_out_bytes, "their bytes, from the IP header on")                                             \
	X(onward_packets, "packets out of a tunnel that went on to another relay")                           \
	X(onward_bytes, "their bytes, from the IP header on")                                                \
	X(relay_cm_messages, "CM messages rewritten")                                                        \
	X(relay_cm_repeated, "REQs that their host sent again")                                              \
	X(relay_mra_sent, "MRAs sent to hosts that repeated a REQ while the answer was on its way")          \
	X(relay_rej_sent, "REJs sent for REQs that were refused here")                                       \
	X(asks, "requests of the libraries on hosts")                                                        \
	X(asks_refused, "requests of them that were not granted")                                            \
	X(once_made, "one-time ports given to hosts")                                                        \
	X(once_used, "one-time ports used by their REQ")                                                     \
	X(pairs_made, "links that a host began without CM")                                                  \
	X(links_asked, "links begun by a REQ")                                                               \
	X(links_opened, "links whose REP came")                                                              \
	X(links_rejected, "links ended by a REJ before they were open")                                      \
	X(links_closed, "open links ended by a DREP, a REJ, or their host")                                  \
	X(links_expired, "links forgotten for their age")                                                    \
	X(links_restored, "links of the process before that go on")                                          \
	X(links_unfit, "links of the process before, or of the other relay, that are not allowed here")      \
	X(links_broken, "records of links of the process before that were torn or made no sense")            \
	X(links_told, "messages about links to the other relay of the pair")                                 \
	X(links_heard, "messages about links of the other relay of the pair")                                \
	X(relay_waited, "CM messages and answers that waited until the other relay had their link")          \
	X(drop_relay_wait, "CM messages and answers for which there was no room to wait")                    \
	X(drop_told_malformed, "messages of the other relay that are malformed")                             \
	X(drop_told_gap, "messages of the other relay after one that was lost")                              \
	X(drop_told_full, "links of the other relay for which the table here has no room")                   \
	X(links_superseded, "links whose host began another with the same communication ID or queue pair")   \
	X(drop_relay_ask, "datagrams to ask_port that are no requests")                                      \
	X(drop_relay_malformed, "RoCE packets to a relay address that do not parse")                         \
	X(drop_relay_unknown_qpn, "packets to a relay address for a QPN that no link has")                   \
	X(drop_relay_foreign, "packets for a link from another host than its own")                           \
	X(drop_relay_no_link, "packets out of a tunnel that belong to no link")                              \
	X(drop_relay_not_open, "packets of a link whose REP has not come")                                   \
	X(drop_relay_not_cm, "management datagrams of other classes than CM, and UD")                        \
	X(drop_relay_cm_icrc, "CM messages with a wrong ICRC")                                               \
	X(drop_relay_cm_malformed, "CM messages that are malformed, or of a kind that relays do not carry")  \
	X(drop_relay_cm_foreign, "REQs that name other addresses than their packet's")                       \
	X(drop_relay_cm_unknown, "CM messages that name no link")                                            \
	X(drop_relay_cm_mismatch, "CM messages that name a link and contradict it")                          \
	X(drop_relay_cm_state, "CM messages that do not fit the state of their link")                        \
	X(refused_no_map, "REQs to a port that the listen map does not have")                                \
	X(refused_trailer, "REQs to the redirect port without a good trailer or one-time port")              \
	X(refused_acl, "REQs that the access list does not allow")                                           \
	X(refused_loop, "REQs whose target is this relay, or of another address family")                     \
	X(refused_relay_loop, "REQs that came back to a relay which had passed them on")                     \
	X(drop_onward_malformed, "packets for another relay that do not parse")                              \
	X(drop_onward_hops, "packets for another relay whose hop limit is used up")                          \
	X(drop_onward_loop, "packets that would go back to the relay that they came from")                   \
	X(drop_onward_acl, "packets for another relay, of hosts that the access list does not allow")        \
	X(refused_sidr, "SIDR_REQs of local hosts, whose UD is not carried: answered so")                    \
	X(refused_transport, "REQs for other transports than RC")                                            \
	X(refused_links_full, "REQs while the table of links is full")                                       \
	X(refused_half_open, "REQs while too many links are half-open")                                      \
	X(refused_source, "REQs of a host that has as many links as it may")                                 \
	X(refused_entry, "REQs to an entry of the listen map that has as many links as it may")              \
	X(refused_qpn, "links for which no QPN is left")                                                     \
	X(refused_no_address, "REQs for a local host for which there is no relay address")

struct proxy_counters {
#define X(f, s) uint64_t f;
	PROXY_COUNTERS(X)
#undef X
};

struct proxy_edge {
	const struct proxy_policy *policy; /* the caller's; may be exchanged between packets */
	struct proxy_map *map;
	struct proxy_map_view view; /* of it */
	struct proxy_counters c;
	struct proxy_once once;
	struct proxy_hops hops;
	/* Set by the caller after the begin: random, and secret. Of the desk's cookies. */
	uint8_t cookie_key[16];
	/* Called inside the functions below; may be NULL. why: IBA REJ reason of REJECTED. */
	void (*news)(void *ctx, enum proxy_news n, const struct proxy_link *l, unsigned why);
	void *ctx;
};

/* policy is the caller's and outlives the edge. Errors of proxy_map_new(). */
RWY_MUST_CHECK int proxy_edge_init(
    struct proxy_edge *e, const struct proxy_policy *policy, const struct proxy_map_cfg *cfg);
/* Frees the table with all its links. The journal keeps its records; policy stays the caller's. */
void proxy_edge_fini(struct proxy_edge *e);
/*
 * Links of an earlier edge that the table's journal has go on, if the policy still has their relay
 * address and allows them. Call it before the first packet. Errors of proxy_map_restore().
 */
RWY_MUST_CHECK int proxy_edge_restore(struct proxy_edge *e, rwy_time now);

/*
 * Whether the policy has the link's relay address, and allows the link; sets its entry of the
 * listen map.
 */
bool proxy_edge_fits(const struct proxy_edge *e, struct proxy_link *l);

/*
 * A packet of a local host to a relay address, `len` bytes from its IP header on. PASS: it is now
 * from that host to the remote one, and belongs into the engine. A reply goes to the local host.
 */
void proxy_edge_in(struct proxy_edge *e, uint8_t *ip, uint32_t len, struct proxy_act *act, rwy_time now);

/*
 * A packet of the engine to a local host. PASS: it is now from a relay address. One that was
 * rewritten before, because it is sent again, passes as it is. A reply goes into the engine, as
 * from the local host. hint: as of proxy_fast_out().
 */
void proxy_edge_out(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, uint64_t *hint, struct proxy_act *act, rwy_time now);

/*
 * A packet of the engine whose destination is behind another tunnel: this relay is between two
 * others. back: the source is behind the same tunnel. PASS: it goes into the engine, as from the
 * source; its hop limit is one less. A reply goes into the engine, as from the destination.
 */
void proxy_edge_onward(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, bool back, struct proxy_act *act, rwy_time now);

/*
 * A packet that came out of another tunnel than its source is behind; the engine has counted it,
 * and it ends here. A REQ that this relay has passed on went in a circle: the reply is its answer,
 * for its source.
 */
void proxy_edge_foreign(struct proxy_edge *e, uint8_t *ip, uint32_t len, struct proxy_act *act, rwy_time now);

/* Forgets what is over, a bounded part each time; call it about every 100 ms. */
void proxy_edge_tick(struct proxy_edge *e, rwy_time now);

#endif
