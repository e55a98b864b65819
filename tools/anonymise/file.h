/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a capture file, anonymous. One thread. */
#ifndef TOOLS_ANONYMISE_FILE_H
#define TOOLS_ANONYMISE_FILE_H

#include <stdint.h>

#include "tools/anonymise/map.h"

struct anon_error {
	char text[400]; /* one line: the file, and what is wrong with it */
};

struct anon_count {
	uint64_t kept;     /* RoCEv2 packets written */
	uint64_t left_out; /* packets that are none, or do not parse */
	uint8_t cut_short; /* 1: the input ends in the middle of a packet */
};

/*
 * Reads a key of 32 hexadecimal digits from the file `path`; where there is no such file, makes a
 * key and the file, with mode 0600. path NULL: a key that is known to nobody. 0, or -1 and *err.
 */
int anon_key_get(struct anon_key *key, const char *path, struct anon_error *err);

/*
 * Reads `in` (pcap, pcapng; "-": standard input) and writes `out` (pcap with nanoseconds; "-":
 * standard output). Ethernet with up to two VLAN tags, Linux cooked, raw IP. Fills *n. 0, or -1 and
 * *err; then a file `out` that was begun is removed.
 */
int anon_file(const struct anon_key *key, const char *in, const char *out, struct anon_count *n,
    struct anon_error *err);

#endif
