/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind the engines' journals (engine/journal.h): a mapping in tmpfs that outlives the
 * process, not the machine. A new process reads the entries of the last one, distributes them to
 * its workers and writes a file of its own, which replaces the old one atomically: whenever a
 * process dies, there is one complete file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/engine.h"
#include "gateway/gw.h"
#include "base/log.h"
#include "gateway/setup.h"

#define MAGIC   UINT64_C(0x524f434557415931) /* "ROCEWAY1" */
#define HEAD    4096
#define PER_MAX (1u << 22)
/* by then hosts have given up, and other connections may use their QPNs */
#define TOO_LONG (60 * RWY_SEC)

struct head {
	uint64_t magic;
	uint32_t workers, per_worker;
	_Atomic uint64_t alive; /* CLOCK_BOOTTIME, ns: the process was alive */
};

struct gw_jfile {
	struct head *head;
	size_t size;
	char path[CONF_STR + CONF_NAME + 32];
	int fd; /* locked: no other process takes it over */
};

static uint64_t boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * RWY_SEC + (uint64_t)ts.tv_nsec;
}

static size_t size_of(uint32_t workers, uint32_t per)
{
	return HEAD + (size_t)workers * per * sizeof(struct eng_journal_entry);
}

static struct eng_journal_entry *entries(const struct head *h)
{
	return (struct eng_journal_entry *)(void *)((uint8_t *)(uintptr_t)h + HEAD);
}

/* Whether the file is ours, complete, and of a process that was alive recently. */
static bool usable(const struct head *h, size_t size)
{
	uint64_t now = boot_ns();

	return h->magic == MAGIC && h->workers >= 1 && h->workers <= GW_WORKERS_MAX && h->per_worker >= 1 &&
	       h->per_worker <= PER_MAX && size_of(h->workers, h->per_worker) == size && h->alive <= now &&
	       now - h->alive <= TOO_LONG;
}

/* Gives an entry to the worker that owns its flow now. */
static void take_over(struct head *to, const struct head *from)
{
	uint32_t *used = calloc(to->workers, sizeof(*used));

	for (uint64_t i = 0; used && i < (uint64_t)from->workers * from->per_worker; i++) {
		struct eng_journal_entry *j = &entries(from)[i];
		uint32_t w;

		if (!atomic_load(&j->used))
			continue;
		w = gw_owner(j->vni, &j->src, &j->dst, to->workers);
		if (used[w] < to->per_worker)
			memcpy(&entries(to)[(size_t)w * to->per_worker + used[w]++], j, sizeof(*j));
	}
	free(used);
}

/* Reads the last process's entries. RWY_EAGAIN: that process still runs. */
static int read_old(struct head *to, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), rc = 0;
	struct stat st;
	void *p;

	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		rc = RWY_EAGAIN;
	} else if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_size >= HEAD) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED) {
			if (usable(p, (size_t)st.st_size))
				take_over(to, p);
			munmap(p, (size_t)st.st_size);
		}
	}
	close(fd);
	return rc;
}

static int map_new(struct gw_jfile *f, const char *path, uint32_t workers, uint32_t per)
{
	void *p;

	f->size = size_of(workers, per);
	unlink(path); /* left by a process that died before the rename */
	f->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->fd < 0 || flock(f->fd, LOCK_EX | LOCK_NB) != 0 || ftruncate(f->fd, (off_t)f->size) != 0)
		return -errno;
	p = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	f->head = p;
	f->head->workers = workers;
	f->head->per_worker = per;
	f->head->magic = MAGIC;
	atomic_store(&f->head->alive, boot_ns());
	return 0;
}

int gw_jfile_open(struct gw_app *app)
{
	const struct conf *c = app->conf;
	char fresh[sizeof(((struct gw_jfile *)0)->path) + 8], *path;
	struct gw_jfile *f;
	int rc;

	if (!c->journal_dir[0])
		return 0; /* only the benchmark has none; a file always names one */
	f = calloc(1, sizeof(*f));
	if (!f)
		return RWY_ENOMEM;
	f->fd = -1;
	app->jfile = f;
	path = f->path;
	snprintf(path, sizeof(f->path), "%s/roceway-%s.journal", c->journal_dir, c->name);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	rc = map_new(f, fresh, c->workers, c->conns_max / c->workers + 1);
	if (!rc && (rc = read_old(f->head, path)) == RWY_EAGAIN) {
		gw_log(GW_LOG_ERROR, "main", "journal=%s is in use: does another gateway of this name run?",
		    path);
		unlink(fresh);
	} else if (!rc && rename(fresh, path) != 0) {
		rc = -errno;
	}
	if (rc && rc != RWY_EAGAIN)
		gw_log(GW_LOG_ERROR, "main", "journal=%s: %s", path, strerror(-rc));
	return rc ? RWY_EINVAL : 0;
}

void gw_jfile_region(const struct gw_app *app, unsigned worker, struct eng_cfg *out)
{
	const struct gw_jfile *f = app->jfile;

	if (!f)
		return;
	out->journal_n = f->head->per_worker;
	out->journal = entries(f->head) + (size_t)worker * f->head->per_worker;
}

void gw_jfile_alive(const struct gw_app *app)
{
	if (app->jfile && app->jfile->head)
		atomic_store(&app->jfile->head->alive, boot_ns());
}

static bool promised_anything(const struct gw_jfile *f)
{
	for (uint64_t i = 0; i < (uint64_t)f->head->workers * f->head->per_worker; i++)
		if (atomic_load_explicit(&entries(f->head)[i].used, memory_order_relaxed))
			return true;
	return false;
}

void gw_jfile_close(struct gw_app *app)
{
	struct gw_jfile *f = app->jfile;

	if (!f)
		return;
	gw_jfile_alive(app); /* the next process measures from this time */
	if (f->head && f->path[0] && !promised_anything(f))
		unlink(f->path);
	if (f->head)
		munmap(f->head, f->size);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
	app->jfile = NULL;
}
