/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A main() for fuzzers built without libFuzzer: [--change ROUNDS] PATH...
 *
 * Passes each named file, and each file in a named directory, to LLVMFuzzerTestOneInput: known
 * faults stay mended. With --change also ROUNDS variants of each: bytes changed, left out, doubled,
 * the end cut off. They are the same each time. The variant that fails is left in the file
 * fuzz-NAME.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The sanitizers', when they are there. */
void __attribute__((weak)) __sanitizer_set_death_callback(void (*callback)(void));

#define CHANGES_MAX 8
#define PIECE_MAX   64

static unsigned long inputs, rounds;
static char kept[256];         /* the file for a variant that fails */
static const uint8_t *variant; /* that runs now */
static size_t variant_size;

static void say(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text));
}

/* The process dies: keeps the variant. It may be a signal's handler. */
static void keep(void)
{
	int fd = variant ? open(kept, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

	if (fd < 0)
		return;
	(void)!write(fd, variant, variant_size);
	close(fd);
	say("a variant fails, it is in ");
	say(kept);
	say("\n");
}

static void on_signal(int sig)
{
	keep();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Changes v[*size], which has room for PIECE_MAX bytes more, in one place. */
static void change(uint8_t *v, size_t *size, uint64_t *rng)
{
	static const uint8_t word[] = {0, 1, 0x7f, 0x80, 0xff};
	size_t at = rng_below(rng, (uint32_t)*size), n = 1 + rng_below(rng, PIECE_MAX);

	n = n < *size - at ? n : *size - at;
	switch (rng_below(rng, 6)) {
	case 0:
		v[at] ^= (uint8_t)(1u << rng_below(rng, 8));
		break;
	case 1:
		v[at] = word[rng_below(rng, sizeof(word))];
		break;
	case 2: /* a number of 2 or 4 bytes */
		memset(v + at, word[rng_below(rng, sizeof(word))], n < 4 ? n : 4);
		break;
	case 3:
		memmove(v + at, v + at + n, *size - at - n);
		*size -= n;
		break;
	case 4:
		memmove(v + at + n, v + at, *size - at);
		*size += n;
		break;
	default:
		*size = at + 1;
	}
}

static void variants_feed(const uint8_t *data, size_t size)
{
	uint64_t rng = size;

	for (unsigned long i = 0; i < rounds && size; i++) {
		uint8_t *v = malloc(size + (size_t)CHANGES_MAX * PIECE_MAX), *exact;
		size_t n = size;

		if (!v)
			abort();
		memcpy(v, data, size);
		for (uint32_t k = 1 + rng_below(&rng, CHANGES_MAX); k && n; k--)
			change(v, &n, &rng);
		exact = realloc(v, n ? n : 1); /* so that a sanitizer sees overreads */
		if (!exact)
			abort();
		variant = exact;
		variant_size = n;
		LLVMFuzzerTestOneInput(exact, n);
		variant = NULL;
		free(exact);
	}
}

static int file_feed(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	/* exactly as large as the input, so that a sanitizer sees overreads */
	uint8_t *data = malloc(size ? size : 1);
	size_t got;

	if (!f || !data) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		if (f)
			fclose(f);
		free(data);
		return -1;
	}
	got = fread(data, 1, size, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, got);
	inputs++;
	snprintf(kept, sizeof(kept), "fuzz-%s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	variants_feed(data, got);
	free(data);
	return 0;
}

static int path_feed(const char *path);

static int dir_feed(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	int bad = 0;

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	while ((e = readdir(d)) != NULL) {
		char sub[4096];
		int n = snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);

		if (e->d_name[0] != '.' && n > 0 && (size_t)n < sizeof(sub))
			bad |= path_feed(sub);
	}
	closedir(d);
	return bad;
}

static int path_feed(const char *path)
{
	struct stat st;

	if (stat(path, &st)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	return S_ISDIR(st.st_mode) ? dir_feed(path) : file_feed(path, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	int bad = 0, i = 1;

	if (argc > 2 && !strcmp(argv[1], "--change")) {
		rounds = strtoul(argv[2], NULL, 10);
		i = 3;
		signal(SIGABRT, on_signal);
		if (__sanitizer_set_death_callback)
			__sanitizer_set_death_callback(keep);
		else
			signal(SIGSEGV, on_signal);
	}
	for (; i < argc; i++)
		bad |= path_feed(argv[i]);
	printf("%lu inputs\n", inputs);
	return bad ? 1 : 0;
}
