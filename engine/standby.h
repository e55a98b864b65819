/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two gateways of a site as a pair: one is active, the other one stores what the active one may not
 * lose, and takes over (docs/standby.md). They share the addresses of their ports, so only one of
 * them may speak. The gateway at the other end of the first tunnel is the witness: it gives the
 * tunnel to one of them (wan_claim()).
 *
 * The active gateway sends a copy of each request of ack mode `site` over the pair's own tunnel and
 * acknowledges it when the standby has it (copy.h). The standby stores copies (store.h) until the
 * far host has the request. When the active gateway is silent, the standby makes connections of
 * them (takeover.c).
 *
 * A *term* is the time in which one of them serves. Terms are numbered: one that begins to serve
 * adds 1 to the highest term that it knows of. So two that both start know which of them served
 * last.
 */
#ifndef ENGINE_STANDBY_H
#define ENGINE_STANDBY_H

#include "engine/eng.h"

/* It serves hosts: it may send to them, and takes their packets. */
static inline bool eng_sb_serves(const struct eng *e)
{
	return e->sb.state <= ENG_SB_LOSING;
}

/*
 * As eng_sb_serves(). But after this process stood still, only once the witness has confirmed it:
 * the other gateway may serve, and what waited in the NIC meanwhile is of no use to hosts.
 */
static inline bool eng_sb_speaks(const struct eng *e)
{
	return eng_sb_serves(e) && !e->sb.still;
}

/* Requests are copied to the standby. */
static inline bool eng_sb_copies(const struct eng *e)
{
	return e->sb.state >= ENG_SB_COPYING && e->sb.state <= ENG_SB_PAIRED && !e->sb.broken;
}

/* In mode `site` nothing is acknowledged that the standby does not have. */
static inline bool eng_sb_gates(const struct eng *e)
{
	return e->sb.state >= ENG_SB_PAIRING && e->sb.state <= ENG_SB_YIELDING;
}

/* COPYING, PAIRING: the walk over all connections is at its end. */
static inline bool eng_sb_walked(const struct eng *e)
{
	return e->sb.cursor > e->table_mask;
}

/* This tunnel leads to the other gateway of the pair. */
static inline bool eng_sb_is_pair(const struct eng *e, unsigned tunnel)
{
	return e->cfg.standby.on && tunnel == e->cfg.standby.tunnel;
}

/* It is one of several workers: worker 0, or another one, which does as worker 0 says (board.h). */
static inline bool eng_sb_leads(const struct eng *e)
{
	return e->cfg.standby.board && !e->cfg.worker;
}
static inline bool eng_sb_follows(const struct eng *e)
{
	return e->cfg.standby.board && e->cfg.worker;
}

/* Workers of a pair's gateway, as the other gateway is told; 0: there is one. */
static inline uint8_t eng_sb_workers(const struct eng *e)
{
	return e->cfg.standby.board ? e->cfg.workers : 0;
}

/* --- standby.c: the table --- */
extern const char *const eng_sb_names[ENG_SB_STATE_COUNT];
/*
 * eng_sb_claim() makes claim c of one tunnel; eng_sb_claim_own() the claim that the state asks for,
 * eng_sb_claim_all() that of each tunnel. A claim that is made already stays as it is.
 */
void eng_sb_claim(struct eng *e, unsigned tunnel, enum wan_claim c, rwy_time now);
void eng_sb_claim_own(struct eng *e, unsigned tunnel, rwy_time now);
void eng_sb_claim_all(struct eng *e, rwy_time now);
/*
 * An event: of this worker's own, which a follower only reports to its leader; and one that changes
 * this worker's state. The latter must be possible in this state.
 */
void eng_sb_event(struct eng *e, enum eng_sb_event ev, rwy_time now);
void eng_sb_change(struct eng *e, enum eng_sb_event ev, rwy_time now);
/* The standby has more copies of rs: what waited for them goes on. */
void eng_sb_copied(struct eng_responder *rs, rwy_time now);
/* This gateway may speak again: answers and requests that waited go on. */
void eng_sb_pass_answers(struct eng *e, rwy_time now);

/* --- standby_board.c: several workers; without a board each says what one worker alone says --- */
/* The leader's state has changed, or it has everything; the standby threw its copies away. */
void eng_sb_lead(struct eng *e);
void eng_sb_cleared(struct eng *e);
/*
 * Every follower acts by the leader's state, and has reported nothing else. One whose witness has
 * not granted its tunnels yet does not serve, though its leader does.
 */
bool eng_sb_followed(const struct eng *e);
/* The same, and each serves and has its tunnel to the other gateway: copies may begin. */
bool eng_sb_linked(const struct eng *e);
/* The same, and each has looked at all its connections. */
bool eng_sb_all_walked(const struct eng *e);
/* A follower: what it has done, and has. */
void eng_sb_report_follow(struct eng *e);
/* Something happened to it that the leader must decide about. */
void eng_sb_report(struct eng *e, enum eng_sb_event ev);
/* It stood still: it does not speak until the leader says that it may. */
void eng_sb_report_still(struct eng *e);

/* --- standby_follow.c: several workers, once a turn --- */
/* The leader: what happened to its followers. */
void eng_sb_collect(struct eng *e, rwy_time now);
/* A follower: does what the leader's state asks for. */
void eng_sb_follow(struct eng *e, rwy_time now);

/* --- standby_witness.c --- */
#define ENG_SB_NO_WITNESS ENG_TUNNELS_MAX /* there is no tunnel but the pair's */
/*
 * Returns the number of the witness's tunnel, or ENG_SB_NO_WITNESS. It is the first tunnel of the
 * file that is not the pair's own. If the file has none, it is the control center's with the
 * smallest id: their numbers depend on the order in which they came, and both gateways must choose
 * the same one. While it is asked who serves, it stays the same.
 */
unsigned eng_sb_witness(const struct eng *e);
/* The state has changed: notes the witness if it is asked who serves from now on. */
void eng_sb_pin_witness(struct eng *e);
/* The question who serves is open, and the witness is asked. */
bool eng_sb_asks_who(const struct eng *e);
/* The tunnel is to be removed, since its remove_at; but its far end is asked who serves. */
bool eng_sb_witness_stays(const struct eng *e, unsigned tunnel, rwy_time now);
/* Until when it stays so; RWY_NEVER: no tunnel of a witness that is asked is to be removed. */
rwy_time eng_sb_witness_until(const struct eng *e);

/* --- standby_events.c: messages, answers, timers --- */
/*
 * This process stood still for so long that the other gateway may have acted. One that serves does
 * not speak before the witness has. One that asks believes nothing that was said meanwhile: it asks
 * again, and listens when a silence has passed.
 */
void eng_sb_stood_still(struct eng *e, rwy_time now);
/* Before e->now changes: notices that this process stood still. */
static inline void eng_sb_clock(struct eng *e, rwy_time now)
{
	if (e->sb.state >= e->sb.still_from && e->sb.state <= ENG_SB_ASKING &&
	    rwy_since(e->now, now) >= e->sb.silence)
		eng_sb_stood_still(e, now);
}
/* Before the tunnels are made: state ASKING, if eng_cfg has a standby. */
void eng_sb_init(struct eng *e, rwy_time now);
/* A message of the other gateway: its state. Takes b. */
void eng_sb_message(struct eng *e, struct rwy_buf *b, rwy_time now);
/* The pair's tunnel is up, or silent: up, this gateway says its state. */
void eng_sb_link(struct eng *e, bool up, rwy_time now);
/* A tunnel came up. */
void eng_sb_tunnel_up(struct eng *e, unsigned tunnel, rwy_time now);
/* A tunnel was made. */
void eng_sb_tunnel_made(struct eng *e, unsigned tunnel, rwy_time now);
/*
 * The tunnel is being removed, since its remove_at. False: the witness at its end is asked who
 * serves; call again later. True: nobody asks it any more, and it is not the witness's.
 */
bool eng_sb_tunnel_leaves(struct eng *e, unsigned tunnel, rwy_time now);
/* The gateway at the other end of a tunnel granted the present claim; or refused us. */
void eng_sb_granted(struct eng *e, unsigned tunnel, rwy_time now);
void eng_sb_refused(struct eng *e, unsigned tunnel, rwy_time now);
/* Timers and walks: once a turn if eng_cfg has a standby. When it must be called at the latest. */
void eng_sb_tick(struct eng *e, rwy_time now);
rwy_time eng_sb_next(const struct eng *e);

/* --- states.c --- */
/* Changes the state, and nothing else. */
void eng_sb_enter(struct eng *e, enum eng_sb_state to);

/* --- takeover.c --- */
/*
 * Makes connections of what is stored, before the tunnels are up. What cannot be made one is
 * counted and logged.
 */
void eng_takeover(struct eng *e, rwy_time now);
/* The witness refused: frees all connections. */
void eng_takeover_undo(struct eng *e, rwy_time now);

/* --- standby_msg.c --- */
/*
 * Tells the other gateway the state and the witness's proof, unless it knows them. Without a buffer
 * it tries again with the next turn.
 */
void eng_sb_tell(struct eng *e, rwy_time now);
struct eng_sb_msg {
	uint64_t to;            /* epoch of the process that it is meant for */
	uint8_t state;          /* enum eng_sb_state of the sender, without note and paths */
	uint64_t term;          /* in which the sender serves, or served last; 0: it did not */
	struct wan_proof proof; /* of the witness; zeros: none */
	const uint8_t *note;    /* points into the message; NULL: it is none */
	uint32_t note_len;
	enum eng_standby_kind note_kind;
	const uint8_t *paths; /* the same, of rates of paths */
	uint32_t paths_len;
};
/* False: it is malformed. b stays the caller's, and holds the note. */
bool eng_sb_msg_read(const struct rwy_buf *b, struct eng_sb_msg *m);
/*
 * Tells the standby what the tunnels' paths carry; the standby notes it for its own tunnels, which
 * begin with that when it takes over (wan_resume_set).
 */
void eng_sb_tell_paths(struct eng *e, rwy_time now);
void eng_sb_hear_paths(struct eng *e, const struct eng_sb_msg *m);

/* --- standby_port.c --- */
extern const struct wan_ops eng_standby_ops; /* the callbacks of the pair's tunnel */

#endif
