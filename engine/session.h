/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: connections as eng_ops.session reports them to the control plane. */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include "engine/eng.h"

/* Both QPNs are known: the session opens, unless it is open. */
void eng_session_open(struct eng_responder *rs);
/* The responder side is freed or failed: the session closes, if it is open. */
void eng_session_close(struct eng_responder *rs);

#endif
