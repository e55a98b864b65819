/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a kernel interface or an RDMA device, by libpcap: for hosts without a gateway. */
#include <errno.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/roceway/capture.h"

#define SNAP    262144
#define WAKE_MS 100 /* a stop is noticed that soon */
#define BURST   64  /* packets at a time */

volatile sig_atomic_t cap_stopped;

struct run {
	pcap_t *pcap;
	pcap_dumper_t *out;
	uint64_t n;
	int error; /* of a packet that could not be written; 0: none */
	/* Packets that are surely in the file, and its length then. */
	uint64_t written;
	int64_t size;
	uint64_t advised; /* cap_leave_cache() */
};

static void on_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct run *r = (struct run *)(void *)user;

	pcap_dump((u_char *)r->out, h, data);
	r->n++;
	/* Behind an error libpcap drops packets without a word, and has nothing to flush. */
	if (!r->error && ferror(pcap_dump_file(r->out)))
		r->error = errno;
}

/* Opens the interface. NULL, after cli_error(). */
static pcap_t *open_interface(const char *name, const struct cap_limits *l)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_create(name, err);
	int rc;

	if (!p) {
		cli_error("%s: %s", name, err);
		return NULL;
	}
	pcap_set_snaplen(p, l->snap ? (int)l->snap : SNAP);
	pcap_set_timeout(p, WAKE_MS);
	pcap_set_immediate_mode(p, 1);
	rc = pcap_activate(p);
	if (rc < 0) {
		cli_error("%s: %s", name, *pcap_geterr(p) ? pcap_geterr(p) : pcap_statustostr(rc));
		pcap_close(p);
		return NULL;
	}
	/* A blocking read of a quiet interface does not come back, so copy() waits before it reads.
	 * An RDMA device cannot be set so, but what poll() found there is read without a wait. */
	pcap_setnonblock(p, 1, err);
	return p;
}

static bool set_filter(pcap_t *p, const char *filter)
{
	struct bpf_program code;
	bool ok;

	if (!*filter)
		return true;
	ok = pcap_compile(p, &code, filter, 1, PCAP_NETMASK_UNKNOWN) == 0;
	if (ok) {
		ok = pcap_setfilter(p, &code) == 0;
		pcap_freecode(&code);
	}
	if (!ok)
		cli_error("filter of libpcap: %s", pcap_geterr(p));
	return ok;
}

/* Waits for packets, at most WAKE_MS. False: there are none. */
static bool wait_packets(struct run *r)
{
	struct pollfd pfd = {.fd = pcap_get_selectable_fd(r->pcap), .events = POLLIN};

	/* A device without a file descriptor is asked each time. */
	return poll(&pfd, 1, WAKE_MS) > 0 || pfd.fd < 0;
}

/* What was taken is in the file. */
static bool flush(struct run *r)
{
	if (!r->error && pcap_dump_flush(r->out))
		r->error = errno;
	if (r->error) {
		cli_error("cannot write the capture: %s", strerror(r->error));
		return false;
	}
	r->written = r->n;
	r->size = pcap_dump_ftell64(r->out);
	if (r->size > 0)
		cap_leave_cache(fileno(pcap_dump_file(r->out)), (uint64_t)r->size, &r->advised);
	return true;
}

static bool copy(struct run *r, const struct cap_limits *l)
{
	const time_t end = time(NULL) + (time_t)l->seconds;
	int rc = 0, most = BURST;

	if (!flush(r)) /* the file's header */
		return false;
	while (
	    rc >= 0 && !cap_stopped && (!l->seconds || time(NULL) < end) && (!l->count || r->n < l->count)) {
		const uint64_t left = l->count ? l->count - r->n : BURST;

		/* After a full burst there may be more that makes no descriptor readable (RDMA). */
		if (rc < most && !wait_packets(r))
			continue;
		most = left < BURST ? (int)left : BURST;
		rc = pcap_dispatch(r->pcap, most, on_packet, (u_char *)r);
		if (!flush(r))
			return false;
	}
	if (rc == PCAP_ERROR)
		cli_error("%s", pcap_geterr(r->pcap));
	return rc != PCAP_ERROR;
}

/* The disk is full: the file ends with its last whole packet. */
static void cut(const struct run *r, const char *path)
{
	struct stat st;

	if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode) && r->size > 0 &&
	    truncate(path, r->size))
		cli_error("its last packet is cut");
}

int cap_interface(
    const struct cli *cli, const char *name, const char *filter, const struct cap_limits *l, const char *path)
{
	struct run r = {.pcap = open_interface(name, l)};
	struct pcap_stat lost = {0};
	bool ok = r.pcap && set_filter(r.pcap, filter);

	if (ok && !(r.out = pcap_dump_open(r.pcap, path))) {
		cli_error("%s", pcap_geterr(r.pcap));
		ok = false;
	}
	ok = ok && copy(&r, l);
	if (r.out) {
		unsigned long long missing = r.n - r.written;

		pcap_stats(r.pcap, &lost);
		missing += lost.ps_drop;
		pcap_dump_close(r.out);
		if (r.written < r.n)
			cut(&r, path);
		fprintf(stderr, "%llu packets written, %llu lost\n", (unsigned long long)r.written, missing);
	}
	if (r.pcap)
		pcap_close(r.pcap);
	return ok ? EXIT_OK : EXIT_ERROR;
}
