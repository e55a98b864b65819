/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of an engine. Operators see each by its name, with its sentence. Thread: the
 * engine's worker writes, any thread may read field by field.
 */
#ifndef ENGINE_COUNTERS_H
#define ENGINE_COUNTERS_H

#include <stdint.h>

/* X(field, sentence): monotonic counts. Names follow the kernel's hw_counters where one fits. */
#define ENG_COUNTERS(X)                                                                                      \
	X(lan_rx_packets, "packets from local hosts")                                                        \
	X(lan_rx_bytes, "bytes from local hosts, from the IP header on")                                     \
	X(lan_tx_packets, "packets to local hosts")                                                          \
	X(lan_tx_bytes, "bytes to local hosts")                                                              \
	X(roce_rx, "RoCEv2 packets from local hosts")                                                        \
	X(acks_sent, "ACKs made for local hosts")                                                            \
	X(naks_sent, "NAKs made for local hosts")                                                            \
	X(np_ecn_marked, "packets of local hosts that a switch had marked (ECN CE)")                         \
	X(np_cnp_sent, "CNPs sent to local hosts: slow down")                                                \
	X(rp_cnp_handled, "CNPs received from local hosts")                                                  \
	X(accepted, "requests taken into custody")                                                           \
	X(delivered, "requests the far host acknowledged")                                                   \
	X(duplicate_request, "requests seen before")                                                         \
	X(duplicate_read, "READs or ATOMICs answered from memory")                                           \
	X(read_cache_full, "READ responses not kept for their host: those of others fill the memory")        \
	X(out_of_sequence, "request ahead of the expected PSN")                                              \
	X(drop_resuming,                                                                                     \
	    "requests that came before the far gateway reported the state of a restored connection")         \
	X(drop_draining, "requests that came while the gateway was about to stop: hosts send them again")    \
	X(parked, "requests held until the path MTU is known")                                               \
	X(host_resent, "packets sent again to a local host")                                                 \
	X(host_asked, "sent again only to ask for an ACK: the rest of the message is late")                  \
	X(packet_seq_err, "PSN sequence NAKs received from local hosts")                                     \
	X(rnr_nak_received, "RNR NAKs received from local hosts")                                            \
	X(local_ack_timeout_err, "a local host did not answer in time")                                      \
	X(implied_nak_seq_err, "a response was lost on the LAN (implied NAK)")                               \
	X(conns_lost, "connections ended at both hosts because acknowledged requests are lost")              \
	X(conns_forgotten, "connections of an earlier process that only the far gateway knew: ended")        \
	X(conns_failed, "connections ended with an error")                                                   \
	X(conns_opened, "flows entered in the flow table")                                                   \
	X(conns_paired, "connections whose two directions were paired")                                      \
	X(conns_expired, "flows removed for idleness")                                                       \
	X(cm_messages, "CM messages carried")                                                                \
	X(cm_connections, "connections learned from CM")                                                     \
	X(conns_placed, "connections given to another worker by their queue pair (gateway.steering)")        \
	X(conns_redirected, "flows whose far gateway has their queue pair at another worker")                \
	X(dgrams, "UD, UC and other IP packets carried best effort")                                         \
	X(ack_blocked, "ACKs held back for lack of custody memory")                                          \
	X(ack_for_read, "ACKs held back so that READs and ATOMICs behind are answered in time")              \
	X(ack_single, "held ACKs sent one at a time to hosts whose timer expired")                           \
	X(reservation_no_memory,                                                                             \
	    "flows with their tenant's share, not their reservation, for lack of memory")                    \
	X(copies_sent, "copies of requests sent to the standby gateway")                                     \
	X(copy_failed, "times that a copy was not possible: for lack of memory, or the standby refused it")  \
	X(taken_over, "connections taken over from the active gateway")                                      \
	X(causal_lists, "messages that tell the far gateway the order of several queue pairs")               \
	X(drop_standby, "packets that came to a standby gateway, or were not sent by one")                   \
	X(drop_store_full, "copies for which the standby had no memory: it refuses their connection")        \
	X(drop_not_ip, "not an IP packet")                                                                   \
	X(drop_unknown_tenant, "a packet or flow of a tenant that this gateway does not have")               \
	X(drop_note_full, "messages between workers for which there was no room")                            \
	X(drop_no_route, "no tunnel leads to the destination")                                               \
	X(drop_no_tunnel, "a datagram of a tunnel that has been removed")                                    \
	X(drop_truncated, "shorter than its headers say")                                                    \
	X(drop_bad_ip, "bad IP header")                                                                      \
	X(drop_ip_fragment, "an IP fragment of a RoCE packet")                                               \
	X(drop_bad_udp_length, "UDP length does not fit the IP length")                                      \
	X(drop_bad_bth, "bad BTH")                                                                           \
	X(drop_unknown_opcode, "BTH opcode reserved")                                                        \
	X(drop_uncarried, "RC requests of operations not carried (FLUSH, ATOMIC WRITE): answered with NAK")  \
	X(drop_uncarried_unknown, "the same on unknown connections: cannot be answered")                     \
	X(drop_xrc, "XRC packets: not carried; answered with NAK if CM announced the connection")            \
	X(drop_rd, "RD packets: not carried, cannot be answered")                                            \
	X(drop_vendor_opcode, "BTH opcodes of a manufacturer's own transport: cannot be answered")           \
	X(drop_bad_length, "payload does not fit the opcode")                                                \
	X(drop_icrc, "ICRC wrong")                                                                           \
	X(drop_unknown_qpn, "response for a connection that is not known")                                   \
	X(drop_ack_in_flight, "resent while the ACK for it was on the way, or right after it")               \
	X(drop_reused, "requests still in custody when their hosts began a new connection on the QPN")       \
	X(drop_stale_psn, "PSN outside the connection's window")                                             \
	X(drop_after_stale, "behind a PSN from before the connection's first one: the host sends it again")  \
	X(drop_bad_sequence, "opcode out of sequence or wrong length: answered with NAK")                    \
	X(drop_read_on_its_way, "repeated READs whose responses may still reach the host")                   \
	X(drop_too_many_outstanding, "too many READs or ATOMICs outstanding")                                \
	X(drop_after_error, "request on a failed connection: answered with NAK")                             \
	X(drop_flow_table_full, "flow table is full")                                                        \
	X(drop_not_admitted,                                                                                 \
	    "request or flow of a connection that CM did not open, or no controller allowed")                \
	X(drop_half_open, "too many unpaired flows")                                                         \
	X(half_open_replaced, "unpaired flows forgotten for a newer one of their host: nobody answered")     \
	X(drop_unpaired_full, "too many packets of an unpaired flow, or of all of a host")                   \
	X(drop_memory_conn, "requests above their connection's bound of memory: asked for again later")      \
	X(drop_memory_share, "requests above the share of memory of their host or tenant: the same")         \
	X(drop_memory_read, "READ responses for which there was no memory: asked for again later")           \
	X(drop_ghost_ack, "ACKs that say nothing: of a PSN that is not outstanding, NAKs during their wait") \
	X(drop_old_response, "response seen before or unexpected")                                           \
	X(cm_foreign, "CM requests that name other hosts than their packets: carried, not believed")         \
	X(cm_held, "DREQs that waited until the far host had what their host was acknowledged")              \
	X(drop_cm_repeated, "DREQ sent again while the first one waits")                                     \
	X(drop_cm_lost, "DREQs of connections that their gateway has lost: CM repeats them")                 \
	X(drop_cm_share, "CM messages above the share of their host or tenant: CM repeats them")             \
	X(drop_bad_cm, "malformed CM message")                                                               \
	X(drop_no_buffer, "no packet buffer")                                                                \
	X(drop_ttl, "TTL exceeded")                                                                          \
	X(drop_foreign_source, "packets out of a tunnel whose source is not behind it")                      \
	X(drop_tunnel_msg, "malformed message inside a tunnel")                                              \
	X(drop_wan_icrc, "responses damaged between the ICRC checks of both gateways: answered with NAK")
struct eng_counters {
#define X(f, s) uint64_t f;
	ENG_COUNTERS(X)
#undef X
};

#endif
