/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/analyze/file.h"

#include <pcap/pcap.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "rwy/endian.h"
#include "rwy/ether.h"

#define SLL_LEN    16
#define SLL2_LEN   20
#define LOOK_EVERY 65536 /* packets between two looks at the clock */

struct source {
	const char *path;
	pcap_t *pcap;
	int link;
	struct pcap_pkthdr *head; /* the next packet; NULL: no more */
	const uint8_t *data;
};

static int fail(struct an_file_error *err, const char *path, const char *why)
{
	size_t n = strlen(path);

	/* libpcap begins some of its messages with the name of the file. */
	if (!strncmp(why, path, n) && why[n] == ':')
		snprintf(err->text, sizeof(err->text), "%s", why);
	else
		snprintf(err->text, sizeof(err->text), "%s: %s", path, why);
	return -1;
}

static int source_open(struct source *s, const char *path, struct an_file_error *err)
{
	char why[PCAP_ERRBUF_SIZE] = "";

	struct stat st;

	s->path = path;
	/* libpcap reports whatever errno was for these. */
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		return fail(err, path, "is empty");
	s->pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!s->pcap)
		return fail(err, path, why);
	s->link = pcap_datalink(s->pcap);
	switch (s->link) {
	case DLT_EN10MB:
	case DLT_LINUX_SLL:
	case DLT_LINUX_SLL2:
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		return 0;
	default:
		snprintf(why, sizeof(why), "link type %s is not Ethernet, Linux cooked or raw IP",
		    pcap_datalink_val_to_name(s->link) ? pcap_datalink_val_to_name(s->link) : "unknown");
		return fail(err, path, why);
	}
}

/* The next packet of s. */
static int source_next(struct source *s, const char **cut_short, struct an_file_error *err)
{
	int rc = pcap_next_ex(s->pcap, &s->head, &s->data);

	if (rc == 1)
		return 0;
	s->head = NULL;
	if (rc == PCAP_ERROR_BREAK)
		return 0;
	if (strstr(pcap_geterr(s->pcap), "truncated")) {
		*cut_short = s->path;
		return 0;
	}
	return fail(err, s->path, pcap_geterr(s->pcap));
}

static rwy_time time_of(const struct source *s)
{
	int64_t sec = s->head->ts.tv_sec;

	/* libpcap reads the 32 bits of a pcap file as a number with a sign. */
	return (rwy_time)(sec < 0 ? (uint32_t)sec : sec) * RWY_SEC + (rwy_time)s->head->ts.tv_usec;
}

static int take(struct an *a, const struct source *s)
{
	uint32_t len = s->head->caplen, wire = s->head->len, skip = 0;
	uint16_t type = RWY_ETHER_IP4;

	if (s->link == DLT_EN10MB)
		return an_frame(a, time_of(s), s->data, len, wire, false);
	if (s->link == DLT_LINUX_SLL) {
		skip = SLL_LEN;
		type = len >= SLL_LEN ? rwy_get16(s->data + SLL_LEN - 2) : 0;
	} else if (s->link == DLT_LINUX_SLL2) {
		skip = SLL2_LEN;
		type = len >= SLL2_LEN ? rwy_get16(s->data) : 0;
	}
	if (len < skip || (type != RWY_ETHER_IP4 && type != RWY_ETHER_IP6))
		skip = len;
	return an_frame(a, time_of(s), s->data + skip, len - skip, wire - skip, true);
}

static struct source *earliest(struct source *s, unsigned n)
{
	struct source *first = NULL;

	for (unsigned i = 0; i < n; i++)
		if (s[i].head && (!first || time_of(&s[i]) < time_of(first)))
			first = &s[i];
	return first;
}

static uint64_t sizes(const char *const *path, unsigned n)
{
	struct stat st;
	uint64_t all = 0;

	for (unsigned i = 0; i < n; i++) {
		if (stat(path[i], &st) != 0 || !S_ISREG(st.st_mode))
			return 0;
		all += (uint64_t)st.st_size;
	}
	return all;
}

static int read_all(struct an *a, struct source *s, unsigned n, const char **cut_short,
    void (*progress)(uint64_t done, uint64_t total), uint64_t total, struct an_file_error *err)
{
	uint64_t packets = 0, bytes = 0;
	time_t said = time(NULL);
	struct source *next;

	for (unsigned i = 0; i < n; i++)
		if (source_next(&s[i], cut_short, err) != 0)
			return -1;
	while ((next = earliest(s, n))) {
		bytes += next->head->caplen + 16u;
		if (take(a, next) != 0)
			return fail(err, next->path, "not enough memory");
		if (source_next(next, cut_short, err) != 0)
			return -1;
		if (progress && ++packets % LOOK_EVERY == 0 && time(NULL) != said) {
			said = time(NULL);
			progress(bytes, total);
		}
	}
	return 0;
}

int an_files_read(struct an *a, const char *const *path, unsigned n, const char **cut_short,
    void (*progress)(uint64_t done, uint64_t total), struct an_file_error *err)
{
	struct source s[AN_FILES_MAX] = {0};
	unsigned open = 0;
	int rc = 0;

	*cut_short = NULL;
	for (; open < n && !rc; open++)
		rc = source_open(&s[open], path[open], err);
	if (!rc)
		rc = read_all(a, s, n, cut_short, progress, sizes(path, n), err);
	for (unsigned i = 0; i < open; i++)
		if (s[i].pcap)
			pcap_close(s[i].pcap);
	return rc;
}
