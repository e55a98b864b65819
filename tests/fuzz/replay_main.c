/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A main() for fuzzers built without libFuzzer: passes each named file, and each file in a named
 * directory, to LLVMFuzzerTestOneInput. It finds nothing new, but shows that known faults stay
 * mended.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

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
	int bad = 0;

	for (int i = 1; i < argc; i++)
		bad |= path_feed(argv[i]);
	printf("%lu inputs\n", inputs);
	return bad ? 1 : 0;
}
