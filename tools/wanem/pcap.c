/* SPDX-License-Identifier: Apache-2.0
 * pcap file, see pcap.h. Numbers are in the byte order of this machine, as the format allows.
 */
#include "tools/wanem/pcap.h"

#include <errno.h>
#include <string.h>

#define MAGIC_NS      0xa1b23c4du
#define LINK_ETHERNET 1
#define BUFFER        (1 << 20)

FILE *wanem_pcap_open(const char *path)
{
	const uint32_t head[6] = {MAGIC_NS, 2 | 4 << 16, 0, 0, 65535, LINK_ETHERNET};
	FILE *f = fopen(path, "wbe");

	if (!f)
		return NULL;
	setvbuf(f, NULL, _IOFBF, BUFFER);
	fwrite(head, sizeof(head), 1, f);
	return f;
}

void wanem_pcap_write(FILE *f, const uint8_t *frame, uint32_t len, uint64_t realtime_ns)
{
	const uint32_t head[4] = {
	    (uint32_t)(realtime_ns / 1000000000), (uint32_t)(realtime_ns % 1000000000), len, len};

	fwrite(head, sizeof(head), 1, f);
	fwrite(frame, len, 1, f);
}

bool wanem_pcap_check(FILE **f, bool is_end)
{
	int error;

	if (!*f || (!is_end && !ferror(*f)))
		return true;
	error = ferror(*f) ? errno : 0; /* of the write before */
	if (fclose(*f) && !error)
		error = errno;
	*f = NULL;
	if (error)
		fprintf(stderr, "wanem: --pcap: %s: the capture ends here\n", strerror(error));
	return !error;
}
