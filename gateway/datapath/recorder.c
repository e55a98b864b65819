/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind the flight recorders (engine/recorder.h): a mapping beside the journal, in tmpfs.
 * It outlives the process, so that a crash can be looked into: `roceway recorder --file` reads it.
 * The next process renames what it finds, to .last, or to .crash if that process did not stop in
 * order. A restart in order keeps the record of a crash before it.
 *
 * The directory is the journal's, which jfile.c has checked and locked. A gateway that cannot have
 * the file runs without it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/gw.h"
#include "gateway/setup.h"

#define ENTRY ((uint32_t)sizeof(struct eng_record))

struct gw_recorders {
	struct eng_recorder_head *head;
	size_t size;
};

const struct eng_recorder_ring *gw_recorder(const struct gw_app *app, unsigned worker)
{
	return worker < app->workers && app->worker[worker] ? eng_recorder(app->worker[worker]->eng) : NULL;
}

/* Entries of each worker: a power of two. */
static uint32_t entries_of(const struct gw_app *app)
{
	uint64_t wanted = app->conf->recorder_size / ENTRY;
	uint32_t n = 1;

	if (!wanted)
		return ENG_RECORDER_ENTRIES;
	while (2 * (uint64_t)n <= wanted && n < ENG_RECORDER_MAX)
		n *= 2;
	return n;
}

/* --- what the last process left ------------------------------------------------------------ */

/* True: it is complete, and the process that wrote it did not stop in order. */
static bool is_of_a_crash(int fd, size_t size)
{
	struct eng_recorder_head *h;
	bool crash;

	if (size < ENG_RECORDER_HEAD)
		return false;
	h = mmap(NULL, ENG_RECORDER_HEAD, PROT_READ, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return false;
	crash = eng_recorder_head_ok(h, size) && !atomic_load(&h->ended);
	munmap(h, ENG_RECORDER_HEAD);
	return crash;
}

static void keep_old(const struct gw_app *app, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char kept[CONF_NAME + 40];
	struct stat st;
	bool crash;

	if (fd < 0)
		return;
	crash = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_of_a_crash(fd, (size_t)st.st_size);
	close(fd);
	snprintf(kept, sizeof(kept), "%s.%s", name, crash ? "crash" : "last");
	if (renameat(dir, name, dir, kept) != 0)
		gw_log(GW_LOG_WARNING, "recorder", "file=%s: %s", name, strerror(errno));
	else if (crash)
		gw_log(GW_LOG_WARNING, "recorder",
		    "the process before did not stop in order: its last decisions: roceway recorder --file "
		    "%s/%s",
		    app->conf->journal_dir, kept);
}

/* --- the file of this process -------------------------------------------------------------- */

static void note_time(struct eng_recorder_head *h)
{
	atomic_store(&h->wall, gw_utc(0));
	atomic_store(&h->alive, gw_now());
}

static int file_map(struct gw_recorders *f, const struct gw_app *app, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), rc;
	void *p = MAP_FAILED;

	if (fd < 0)
		return -errno;
	/* All of it at once: a full tmpfs would kill a worker later, and a page fault delay it. */
	rc = -posix_fallocate(fd, 0, (off_t)f->size);
	if (!rc) {
		p = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
		rc = p == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (rc) {
		unlinkat(dir, name, 0);
		return rc;
	}
	f->head = p;
	f->head->workers = app->workers;
	f->head->entries = entries_of(app);
	f->head->pid = (uint32_t)getpid();
	snprintf(f->head->name, sizeof(f->head->name), "%s", app->conf->name);
	snprintf(f->head->version, sizeof(f->head->version), "%s", app->version);
	note_time(f->head);
	f->head->magic = ENG_RECORDER_MAGIC;
	return 0;
}

void gw_recorder_open(struct gw_app *app)
{
	const int dir = gw_jfile_dir(app);
	struct gw_recorders *f;
	char name[CONF_NAME + 32];
	int rc;

	if (dir < 0)
		return;
	f = calloc(1, sizeof(*f));
	if (!f)
		return;
	f->size = ENG_RECORDER_HEAD + app->workers * ENG_RECORDER_SIZE(entries_of(app));
	snprintf(name, sizeof(name), "roceway-%s.recorder", app->conf->name);
	keep_old(app, dir, name);
	rc = file_map(f, app, dir, name);
	if (rc) {
		gw_log(GW_LOG_WARNING, "recorder",
		    "file=%s: %s: the flight recorder does not survive a crash", name, strerror(-rc));
		free(f);
		return;
	}
	app->recorders = f;
}

void gw_recorder_region(const struct gw_app *app, unsigned worker, struct eng_cfg *out)
{
	out->recorder_n = entries_of(app);
	if (app->recorders)
		out->recorder =
		    (struct eng_recorder_ring *)(void *)((uint8_t *)app->recorders->head + ENG_RECORDER_HEAD +
		                                         worker * ENG_RECORDER_SIZE(out->recorder_n));
}

void gw_recorder_alive(const struct gw_app *app)
{
	if (app->recorders)
		note_time(app->recorders->head);
}

void gw_recorder_close(struct gw_app *app)
{
	struct gw_recorders *f = app->recorders;

	if (!f)
		return;
	note_time(f->head);
	atomic_store(&f->head->ended, 1);
	munmap(f->head, f->size);
	free(f);
	app->recorders = NULL;
}
