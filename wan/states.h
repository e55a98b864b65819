/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of a tunnel's handshake. One table says what each event does in each state; handshake.c
 * executes it. docs/states.md draws it, and a test compares the page with the table.
 */
#ifndef WAN_STATES_H
#define WAN_STATES_H

/* X(enumerator, name, sentence). The peer answers in UP and all later states. */
#define WAN_HS_STATES(X)                                                                                     \
	X(WAN_HS_ASKING, "asking", "no peer is known: HELLOs look for one")                                  \
	X(WAN_HS_SILENT, "silent", "the peer is known, and was silent for too long: HELLOs ask it")          \
	X(WAN_HS_UP, "up", "the peer answers")                                                               \
	X(WAN_HS_CONFIRMING, "confirming",                                                                   \
	    "the same; it may not have accepted us: our HELLO is "                                           \
	    "repeated")                                                                                      \
	X(WAN_HS_CHALLENGING, "challenging", "the same; a HELLO of another epoch came: HELLOs verify it")

/* X(enumerator, name, sentence) */
#define WAN_HS_EVENTS(X)                                                                                     \
	X(WAN_HSE_TIMER, "timer", "the HELLO timer expired, and a HELLO was sent")                           \
	X(WAN_HSE_ASKED, "asked", "a HELLO of the peer's epoch wants an answer")                             \
	X(WAN_HSE_OTHER, "other", "a HELLO of another epoch wants an answer")                                \
	X(WAN_HSE_PROOF, "proof", "a HELLO echoes our nonce")                                                \
	X(WAN_HSE_RESTART, "restart", "a HELLO of another epoch echoes our nonce")                           \
	X(WAN_HSE_DATAGRAM, "datagram", "a datagram of the session")                                         \
	X(WAN_HSE_SILENCE, "silence", "nothing came for four keep-alive intervals")                          \
	X(WAN_HSE_STRANGER, "stranger", "a datagram that is not of the session")

/*
 * ROW(state, one word per event). A word names the action function hs_WORD; IMPOSSIBLE: the event
 * cannot occur in this state, which is asserted.
 */
#define WAN_HS_TABLE(ROW)                                                                                    \
	ROW(ASKING, ask_later, IMPOSSIBLE, answer, meet, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, ask_now)        \
	ROW(SILENT, count_down, answer, challenge, believe, restart, back, IMPOSSIBLE, ignore)               \
	ROW(UP, IMPOSSIBLE, answer, challenge, believe, restart, ignore, go_down, ignore)                    \
	ROW(CONFIRMING, count_down, answer, challenge, believe, restart, confirmed, go_down, ignore)         \
	ROW(CHALLENGING, count_down, answer, answer, believe, restart, confirmed, go_down, ignore)

/* X(from, to): all changes of state. */
#define WAN_HS_CHANGES(X)                                                                                    \
	X(ASKING, UP)                                                                                        \
	X(ASKING, CONFIRMING)                                                                                \
	X(SILENT, UP)                                                                                        \
	X(SILENT, CONFIRMING)                                                                                \
	X(SILENT, CHALLENGING)                                                                               \
	X(UP, SILENT)                                                                                        \
	X(UP, CONFIRMING)                                                                                    \
	X(UP, CHALLENGING)                                                                                   \
	X(CONFIRMING, SILENT)                                                                                \
	X(CONFIRMING, UP)                                                                                    \
	X(CONFIRMING, CHALLENGING)                                                                           \
	X(CHALLENGING, SILENT)                                                                               \
	X(CHALLENGING, UP)                                                                                   \
	X(CHALLENGING, CONFIRMING)

enum wan_hs_state {
#define X(e, n, s) e,
	WAN_HS_STATES(X)
#undef X
	    WAN_HS_STATE_COUNT
};

enum wan_hs_event {
#define X(e, n, s) e,
	WAN_HS_EVENTS(X)
#undef X
	    WAN_HS_EVENT_COUNT
};

#endif
