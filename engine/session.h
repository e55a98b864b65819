/* SPDX-License-Identifier: Apache-2.0 */
/* Connections as they are reported to the control plane. */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include "engine/eng.h"

/* A connection is one as soon as both its QPNs are known, until its responder side goes or fails. */
void eng_session_open(struct eng_responder *rs);
void eng_session_close(struct eng_responder *rs);
void eng_session_of(const struct eng_responder *rs, struct eng_session *out);

#endif
