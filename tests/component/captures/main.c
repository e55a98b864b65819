/* SPDX-License-Identifier: Apache-2.0 */
/*
 * captures FOLDER: writes the prepared captures, FOLDER/NAME.pcap, and a line for each to standard
 * output: name, file, QPN, expected word, `held` if it was written after the analysis, what it is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/cap_world.h"

#define EPOCH      1700000000u /* second of the beginning */
#define MAGIC_NANO 0xa1b23c4du
#define FRAME_MOST 65535u
#define ETHERNET   1u

struct out {
	FILE *f;
	enum cap_place place;
};

static void put(FILE *f, const void *p, size_t n)
{
	if (fwrite(p, n, 1, f) != 1) {
		perror("captures");
		exit(1);
	}
}

static void take(
    void *ctx, rwy_time at, const uint8_t *frame, uint32_t captured, uint32_t len, enum cap_place place)
{
	struct out *o = ctx;
	uint32_t head[4] = {EPOCH + (uint32_t)(at / RWY_SEC), (uint32_t)(at % RWY_SEC), captured, len};

	if (place != o->place)
		return;
	put(o->f, head, sizeof(head));
	put(o->f, frame, captured);
}

static bool write_one(const char *folder, const struct cap_scene *s, bool held)
{
	uint32_t head[6] = {MAGIC_NANO, 4u << 16 | 2, 0, 0, FRAME_MOST, ETHERNET};
	struct out o = {.place = s->place};
	struct cap_result r;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.pcap", folder, s->name);
	o.f = fopen(path, "wb");
	if (!o.f) {
		perror(path);
		return false;
	}
	put(o.f, head, sizeof(head));
	r = cap_play(s, take, &o);
	if (fclose(o.f) != 0 || !r.up) {
		fprintf(stderr, "captures: %s: %s\n", s->name, r.up ? "not written" : "the tunnel is down");
		return false;
	}
	printf("%s\t%s\t%u\t%s\t%s\t%s\n", s->name, path, CAP_QPN_B + s->asked, s->expect,
	    held ? "held" : "-", s->about);
	return true;
}

int main(int argc, char **argv)
{
	bool ok = argc == 2;

	if (!ok)
		fprintf(stderr, "usage: captures FOLDER\n");
	for (unsigned i = 0; ok && i < cap_scenes_n; i++)
		ok = write_one(argv[1], &cap_scenes[i], false);
	for (unsigned i = 0; ok && i < cap_held_n; i++)
		ok = write_one(argv[1], &cap_held[i], true);
	return ok ? 0 : 1;
}
