/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind the engines' journals (engine/journal.h) and a relay's links (proxy/journal.h): a
 * mapping in tmpfs that outlives the process, not the machine. A new process reads what the last
 * one left, distributes the entries to its workers and writes a file of its own, which replaces the
 * old one atomically: whenever a process dies, there is one complete file.
 *
 * A process that can write the file can end connections, and one that takes its name keeps the
 * gateway from starting. So it is in a directory that belongs to this user and is closed to others
 * (mode 0700), made here if need be; anything else there under its name is refused, never followed.
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
#include "proxy/journal.h"

#define MAGIC   UINT64_C(0x524f434557415931) /* "ROCEWAY1" */
#define HEAD    4096
#define PER_MAX (1u << 22)
#define PLACE   ((uint32_t)(2 * sizeof(struct proxy_record))) /* of a link */
/* by then hosts have given up, and other connections may use their QPNs */
#define TOO_LONG (60 * RWY_SEC)

/*
 * head.gap: this process noted all promises, but the one before did not leave a whole journal.
 * Far gateways tell this process, which may end before they have.
 */
#define GAP_BEFORE 2

struct head {
	uint64_t magic;
	uint32_t workers, per_worker;
	_Atomic uint64_t alive; /* CLOCK_BOOTTIME, ns: the process was alive */
	_Atomic uint64_t term;  /* eng_cfg.term */
	_Atomic uint32_t gap;   /* eng_cfg.journal_gap, or GAP_BEFORE */
	/* of a relay, behind the entries; the size is that of the version */
	uint32_t links, link_version, link_size;
};

struct gw_jfile {
	struct head *head;
	size_t size;
	char name[CONF_NAME + 32]; /* in the directory */
	int dir;
	bool in_place; /* it has its name */
	bool whole;    /* eng_cfg.journal_whole */
	bool follows;  /* eng_cfg.follows */
	int fd;        /* locked: no other process takes it over */
};

static uint64_t boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * RWY_SEC + (uint64_t)ts.tv_nsec;
}

static size_t links_at(const struct head *h)
{
	return HEAD + (size_t)h->workers * h->per_worker * sizeof(struct eng_journal_entry);
}

static size_t size_of(const struct head *h)
{
	return links_at(h) + (size_t)h->links * h->link_size;
}

static struct eng_journal_entry *entries(const struct head *h)
{
	return (struct eng_journal_entry *)(void *)((uint8_t *)(uintptr_t)h + HEAD);
}

static struct proxy_record *links(const struct head *h)
{
	return (struct proxy_record *)(void *)((uint8_t *)(uintptr_t)h + links_at(h));
}

/* For so long the promises in it are still good; 0: no longer. */
static rwy_dur good_for(const struct head *h)
{
	uint64_t now = boot_ns(), alive = atomic_load(&h->alive);

	return alive <= now && now - alive < TOO_LONG ? TOO_LONG - (now - alive) : 0;
}

/* Whether the file is ours, complete, and of a process that was alive recently. */
static bool usable(const struct head *h, size_t size)
{
	return h->magic == MAGIC && h->workers >= 1 && h->workers <= GW_WORKERS_MAX && h->per_worker >= 1 &&
	       h->per_worker <= PER_MAX && size_of(h) == size && good_for(h);
}

/*
 * Gives each entry to the worker that owns its flow now. by_qp: workers steer by queue pair, and
 * the far gateway has the flow at the worker of the same number as before. False: some are missing.
 */
static bool take_over(struct head *to, const struct head *from, bool by_qp)
{
	uint32_t *used = calloc(to->workers, sizeof(*used));
	bool whole = used && !atomic_load(&from->gap);

	for (uint64_t i = 0; used && i < (uint64_t)from->workers * from->per_worker; i++) {
		struct eng_journal_entry *j = &entries(from)[i];
		uint32_t w;

		if (!atomic_load(&j->used))
			continue;
		w = by_qp && to->workers == from->workers ? (uint32_t)(i / from->per_worker)
		                                          : eng_owner(j->vni, &j->src, &j->dst, to->workers);
		if (used[w] < to->per_worker)
			memcpy(&entries(to)[(size_t)w * to->per_worker + used[w]++], j, sizeof(*j));
		else
			whole = false;
	}
	free(used);
	atomic_store(&to->term, atomic_load(&from->term));
	atomic_store(&to->alive, atomic_load(&from->alive));
	return whole;
}

static void take_links(struct head *to, const struct head *from)
{
	uint32_t left;

	if (!to->links || !from->links)
		return;
	if (from->link_version != to->link_version || from->link_size != to->link_size) {
		gw_log(GW_LOG_WARNING, "relay",
		    "links=lost: the process before wrote them as version %u, this one reads version %u",
		    from->link_version, to->link_version);
		return;
	}
	left = proxy_journal_take(links(to), to->links, links(from), from->links);
	if (left)
		gw_log(GW_LOG_WARNING, "relay", "links=%u have no room: `relay.links_max` is smaller", left);
}

static void log_failure(const struct conf *c, const char *name, const char *why)
{
	gw_log(
	    GW_LOG_ERROR, "main", "journal_dir=%s%s%s: %s", c->journal_dir, *name ? " file=" : "", name, why);
}

/* --- directory -------------------------------------------------------------------------------- */

/* /run/roceway, where no unit makes it. What is wrong with it, the next call finds. */
static void parent_make(const char *dir)
{
	char parent[CONF_STR];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", dir);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return;
	*slash = 0;
	(void)!mkdir(parent, 0755);
}

/* Returns the directory, or -1 after a log line. *made: it was not there. */
static int directory_open(const struct conf *c, bool *made)
{
	char why[160];
	struct stat st;
	int fd;

	parent_make(c->journal_dir);
	*made = mkdir(c->journal_dir, 0700) == 0;
	if (!*made && errno != EEXIST) {
		log_failure(c, "", strerror(errno));
		return -1;
	}
	fd = open(c->journal_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		log_failure(c, "", strerror(errno));
	} else if (st.st_uid != geteuid() || (st.st_mode & 077)) {
		snprintf(why, sizeof(why),
		    "expected a directory of user %u with mode 0700, closed to others, found one of user %u "
		    "with "
		    "mode %04o",
		    (unsigned)geteuid(), (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
		log_failure(c, "", why);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* --- files ------------------------------------------------------------------------------------ */

/* A regular file of this user, without another name, closed to others. */
static bool is_own(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 && !(st->st_mode & 077);
}

static void map_old(struct gw_jfile *f, int fd, size_t size, bool by_qp)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return;
	if (usable(p, size)) {
		f->whole = take_over(f->head, p, by_qp);
		take_links(f->head, p);
	}
	munmap(p, size);
}

/* Reads the last process's entries. RWY_EINVAL after a log line. */
static int read_old(const struct conf *c, struct gw_jfile *f)
{
	int fd = openat(f->dir, f->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const char *why = NULL;
	struct stat st;

	if (fd < 0) {
		if (errno == ENOENT)
			return 0;
		log_failure(c, f->name, strerror(errno));
		return RWY_EINVAL;
	}
	if (fstat(fd, &st) != 0)
		why = strerror(errno);
	else if (!is_own(&st))
		why = "expected a file of this user alone with mode 0600; remove it";
	else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		why = "is in use: does another gateway of this name run?";
	else if (st.st_size >= HEAD)
		map_old(f, fd, (size_t)st.st_size, c->steering == CONF_STEER_QP);
	close(fd);
	if (why)
		log_failure(c, f->name, why);
	return why ? RWY_EINVAL : 0;
}

static int map_new(struct gw_jfile *f, const char *name, const struct head *h)
{
	void *p;
	int rc;

	f->size = size_of(h);
	unlinkat(f->dir, name, 0); /* left by a process that died before the rename */
	f->fd = openat(f->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->fd < 0 || flock(f->fd, LOCK_EX | LOCK_NB) != 0)
		return -errno;
	/* All pages now: a write to one that cannot be had later is a SIGBUS. */
	do
		rc = posix_fallocate(f->fd, 0, (off_t)f->size);
	while (rc == EINTR);
	if (rc)
		return -rc;
	p = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	f->head = p;
	*f->head = *h;
	atomic_store(&f->head->alive, boot_ns());
	return 0;
}

/* --- open, close ----------------------------------------------------------------------------- */

/* The new file, with the entries of the old one, takes the old one's place. */
static int replace_old(const struct conf *c, struct gw_jfile *f)
{
	const struct head h = {.magic = MAGIC,
	    .workers = c->workers,
	    .per_worker = c->conns_max / c->workers + 1,
	    .links = c->relay.addrs ? c->relay.links_max : 0,
	    .link_version = PROXY_RECORD_VERSION,
	    .link_size = PLACE};
	char fresh[sizeof(f->name) + 8];
	int rc;

	snprintf(fresh, sizeof(fresh), "%s.new", f->name);
	rc = map_new(f, fresh, &h);
	if (rc) {
		log_failure(c, fresh, strerror(-rc));
		return RWY_EINVAL;
	}
	rc = read_old(c, f);
	if (!f->whole)
		atomic_store(&f->head->gap, GAP_BEFORE);
	if (!rc && renameat(f->dir, fresh, f->dir, f->name) != 0) {
		log_failure(c, f->name, strerror(errno));
		rc = RWY_EINVAL;
	}
	if (rc)
		unlinkat(f->dir, fresh, 0);
	f->in_place = !rc;
	return rc;
}

int gw_jfile_open(struct gw_app *app)
{
	const struct conf *c = app->conf;
	struct gw_jfile *f;
	bool made;

	if (!c->journal_dir[0])
		return 0; /* only the benchmark has none; a file always names one */
	f = calloc(1, sizeof(*f));
	if (!f)
		return RWY_ENOMEM;
	f->fd = -1;
	app->jfile = f;
	snprintf(f->name, sizeof(f->name), "roceway-%s.journal", c->name);
	/* A process that promised nothing leaves no file, but it may have asked hosts. */
	f->dir = directory_open(c, &made);
	f->follows = !made;
	return f->dir < 0 ? RWY_EINVAL : replace_old(c, f);
}

void gw_jfile_region(const struct gw_app *app, unsigned worker, struct eng_cfg *out)
{
	const struct gw_jfile *f = app->jfile;
	rwy_dur left;

	if (!f)
		return;
	left = good_for(f->head);
	out->journal_n = f->head->per_worker;
	out->journal_for = left ? left : 1; /* 0 is for ever */
	out->journal_whole = f->whole;
	out->follows = f->follows;
	out->journal_gap = &f->head->gap;
	out->term = &f->head->term;
	out->journal = entries(f->head) + (size_t)worker * f->head->per_worker;
}

struct proxy_record *gw_jfile_links(const struct gw_app *app)
{
	const struct gw_jfile *f = app->jfile;

	return f && f->head->links ? links(f->head) : NULL;
}

int gw_jfile_dir(const struct gw_app *app)
{
	return app->jfile ? app->jfile->dir : -1;
}

void gw_jfile_alive(const struct gw_app *app)
{
	int pair = atomic_load(&app->pair);
	struct head *h = app->jfile ? app->jfile->head : NULL;

	/*
	 * While the other gateway of a pair may serve, the promises of an earlier process grow old.
	 * A standby has none, and no term.
	 */
	if (h && (pair == GW_PAIR_NONE || pair == GW_PAIR_SERVES || !atomic_load(&h->term)))
		atomic_store(&h->alive, boot_ns());
}

void gw_jfile_told(const struct gw_app *app, bool all)
{
	uint32_t is = all ? GAP_BEFORE : 0;

	/* A tunnel may have been added: its far gateway has not told. An engine's 1 stays. */
	if (app->jfile && !app->jfile->whole)
		atomic_compare_exchange_strong(&app->jfile->head->gap, &is, all ? 0 : GAP_BEFORE);
}

static bool promised_anything(const struct gw_jfile *f)
{
	for (uint64_t i = 0; i < (uint64_t)f->head->workers * f->head->per_worker; i++)
		if (atomic_load_explicit(&entries(f->head)[i].used, memory_order_relaxed))
			return true;
	return proxy_journal_any(links(f->head), f->head->links);
}

void gw_jfile_close(struct gw_app *app)
{
	struct gw_jfile *f = app->jfile;

	if (!f)
		return;
	if (app->start) /* else it never ran, and the promises are those of the process before */
		gw_jfile_alive(app);
	/*
	 * The promises of a gateway that was replaced are the other gateway's, which knows better.
	 */
	if (f->in_place && (!promised_anything(f) || atomic_load(&app->pair) == GW_PAIR_REPLACED))
		unlinkat(f->dir, f->name, 0);
	if (f->head)
		munmap(f->head, f->size);
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir >= 0)
		close(f->dir);
	free(f);
	app->jfile = NULL;
}
