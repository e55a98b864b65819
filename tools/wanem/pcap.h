/* SPDX-License-Identifier: Apache-2.0
 * Writes frames to a pcap file with nanosecond time stamps, buffered. Does not read any.
 */
#ifndef WANEM_PCAP_H
#define WANEM_PCAP_H

#include <stdint.h>
#include <stdio.h>

/* Opens a capture file; NULL with errno on failure. fclose() closes it. */
FILE *wanem_pcap_open(const char *path);
void wanem_pcap_write(FILE *f, const uint8_t *frame, uint32_t len, uint64_t realtime_ns);

#endif
