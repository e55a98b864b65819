/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: who may begin an RC connection. Connections that exist go on. */
#ifndef ENGINE_ADMISSION_H
#define ENGINE_ADMISSION_H

#include "engine/eng.h"

/*
 * A connection with this key may begin. by_cm: CM opened it, or the gateway beside its host knows
 * both QPNs already. Without a table entry, so that a refused packet costs no memory.
 */
bool eng_admits(const struct eng *e, const struct eng_key *k, bool by_cm);
/* Counts a refused packet or flow with this key; a line in the log, at most one a second. */
void eng_admission_refuse(struct eng *e, const struct eng_key *k, rwy_time now);

#endif
