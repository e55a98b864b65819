/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a capture file (pcap, pcapng, by libpcap): it is read or refused with one line, and
 * what anonymise writes has as many RoCEv2 packets as it says. The same bytes as a gateway's answer
 * to roceway capture: cut into blocks, however they come.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/analyze/file.h"
#include "tools/anonymise/file.h"
#include "tools/roceway/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())

struct mem_file {
	int fd;
	char path[32];
};

static struct mem_file file_new(const uint8_t *data, size_t size)
{
	struct mem_file f = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};

	CHECK(f.fd >= 0);
	snprintf(f.path, sizeof(f.path), "/proc/self/fd/%d", f.fd);
	CHECK(write(f.fd, data, size) == (ssize_t)size);
	return f;
}

/* Counts the packets of a file; false: it is refused. */
static bool analyze(const char *path, struct an_totals *t)
{
	struct an *a = an_new(16);
	struct an_file_error err = {0};
	const char *cut_short;
	bool ok;

	CHECK(a);
	ok = an_files_read(a, &path, 1, &cut_short, NULL, &err) == 0;
	CHECK(ok || *err.text);
	CHECK(!strchr(err.text, '\n'));
	an_end(a);
	*t = *an_totals(a);
	an_free(a);
	return ok;
}

static void anonymise(const char *path, const struct an_totals *before)
{
	static const struct anon_key key = {{1}};
	struct mem_file out = file_new(NULL, 0);
	struct anon_count n;
	struct anon_error err = {0};
	struct an_totals t;

	if (anon_file(&key, path, out.path, &n, &err) == 0) {
		CHECK(n.kept + n.left_out == before->packets);
		CHECK(analyze(out.path, &t) && t.roce == n.kept && t.packets == n.kept);
	} else {
		CHECK(*err.text && !strchr(err.text, '\n'));
	}
	close(out.fd);
}

struct sum {
	size_t bytes, blocks;
};

static bool on_block(void *ctx, const uint8_t *block, size_t len)
{
	struct sum *s = ctx;
	size_t n;

	s->bytes += len;
	s->blocks++;
	(void)cap_block_interface(block);
	if (cap_block_type(block) == CAP_PACKET || cap_block_type(block) == CAP_STATISTICS)
		for (unsigned code = 0; code < 8; code++) {
			const uint8_t *v = cap_block_option(block, len, code, &n);

			CHECK(!v || (v > block && v + n <= block + len));
		}
	return s->blocks < 1000;
}

static struct sum cut_into_blocks(const uint8_t *data, size_t size, size_t piece)
{
	struct cap_blocks b = {0};
	struct sum s = {0};

	for (size_t n; size; data += n, size -= n) {
		n = piece < size ? piece : size;
		if (cap_blocks_add(&b, data, n, on_block, &s) != 0)
			break;
	}
	free(b.data);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mem_file in = file_new(data, size);
	struct an_totals t;
	struct sum one, many;

	if (analyze(in.path, &t))
		anonymise(in.path, &t);
	close(in.fd);
	one = cut_into_blocks(data, size, size);
	many = cut_into_blocks(data, size, 7);
	CHECK(one.blocks == many.blocks && one.bytes == many.bytes && one.bytes <= size);
	return 0;
}
