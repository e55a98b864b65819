/* SPDX-License-Identifier: Apache-2.0 */
/* Reads capture files (pcap, pcapng; libpcap) into an analysis. One thread. */
#ifndef TOOLS_ANALYZE_FILE_H
#define TOOLS_ANALYZE_FILE_H

#include "tools/analyze/analyze.h"

#define AN_FILES_MAX 64

struct an_file_error {
	char text[400]; /* one line: the file, and what is wrong with it */
};

/*
 * Reads n files (1..AN_FILES_MAX) of one place, in the order of their packets' times; "-": standard
 * input. Link types: Ethernet, Linux cooked, raw IP. A file that ends in mid-packet is read up to
 * there: *cut_short gets its name. progress: called about once a second with the bytes read and
 * their total (0: not known), or NULL. 0, or -1 and *err.
 */
int an_files_read(struct an *a, const char *const *path, unsigned n, const char **cut_short,
    void (*progress)(uint64_t done, uint64_t total), struct an_file_error *err);

#endif
