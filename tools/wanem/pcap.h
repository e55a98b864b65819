/* SPDX-License-Identifier: Apache-2.0
 * Writes frames to a pcap file with nanosecond time stamps, buffered. Does not read any.
 */
#ifndef WANEM_PCAP_H
#define WANEM_PCAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Opens a capture file; NULL with errno on failure. wanem_pcap_check() closes it. */
FILE *wanem_pcap_open(const char *path);
void wanem_pcap_write(FILE *f, const uint8_t *frame, uint32_t len, uint64_t realtime_ns);
/*
 * Call it behind a write. It closes the file if that failed, or is_end; *f is NULL then. False: not
 * all is in the file, and a line on standard error says why.
 */
bool wanem_pcap_check(FILE **f, bool is_end);

#endif
