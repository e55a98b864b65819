/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder's file of a process that is gone (engine/recorder.h). */
#include "tools/roceway/recorder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/recorder.h"

bool recorder_read_ip(const char *option, const char *text, struct rwy_ip *out)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		*out = rwy_ip_from4(v4);
	else if (inet_pton(AF_INET6, text, out->b) != 1) {
		cli_error("%s: expected an IP address, found %s", option, text);
		return false;
	}
	return true;
}

struct wanted {
	struct rwy_ip local, remote;
	bool by_local, by_remote;
	long worker, qpn, vni; /* -1: any */
	enum eng_record_kind kind;
};

static bool read_number(const char *option, const char *text, long max, long *out)
{
	char *end;

	*out = -1;
	if (!text)
		return true;
	*out = strtol(text, &end, !strncmp(text, "0x", 2) ? 16 : 10);
	if (*text >= '0' && *text <= '9' && !*end && *out <= max)
		return true;
	cli_error("--%s: expected a number up to %ld, found %s", option, max, text);
	return false;
}

static bool read_wanted(const struct recorder_filter *f, struct wanted *w)
{
	*w = (struct wanted){.by_local = f->local, .by_remote = f->remote};
	if ((f->local && !recorder_read_ip("--local", f->local, &w->local)) ||
	    (f->remote && !recorder_read_ip("--remote", f->remote, &w->remote)) ||
	    !read_number("worker", f->worker, 1023, &w->worker) ||
	    !read_number("qpn", f->qpn, 0xffffff, &w->qpn) || !read_number("vni", f->vni, 0xffffff, &w->vni))
		return false;
	w->kind = f->kind ? eng_record_find(f->kind) : ENG_REC_NONE;
	if (f->kind && !w->kind)
		cli_error("--kind: there is no kind %s", f->kind);
	return !f->kind || w->kind;
}

static bool matches(const struct wanted *w, const struct eng_record *r)
{
	if (w->kind && r->kind != w->kind)
		return false;
	if (r->side == ENG_OF_ENGINE)
		return !w->by_local && !w->by_remote && w->qpn < 0 && w->vni < 0;
	return (w->vni < 0 || w->vni == r->vni) && (!w->by_local || rwy_ip_eq(&w->local, &r->local)) &&
	       (!w->by_remote || rwy_ip_eq(&w->remote, &r->remote)) &&
	       (w->qpn < 0 || w->qpn == r->local_qpn || w->qpn == r->remote_qpn);
}

/* --- entries as JSON -------------------------------------------------------------------------- */

static json_t *ip_json(const struct rwy_ip *a, bool none)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (!none)
		inet_ntop(
		    rwy_ip_is4(a) ? AF_INET : AF_INET6, rwy_ip_is4(a) ? a->b + 12 : a->b, text, sizeof(text));
	return json_string(text);
}

static json_t *record_json(const struct eng_recorder_head *h, const struct eng_record *r, unsigned worker)
{
	const uint64_t wall = atomic_load(&h->wall) + r->at;
	const bool engine = r->side == ENG_OF_ENGINE;
	const time_t s = (time_t)(wall / RWY_SEC);
	char when[40], text[256], name[sizeof(r->name) + 1] = "";
	struct tm tm;
	size_t n = strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));

	snprintf(when + n, sizeof(when) - n, ".%06uZ", (unsigned)(wall % RWY_SEC / RWY_US));
	eng_record_say(r, text, sizeof(text));
	if (engine)
		memcpy(name, r->name, sizeof(r->name));
	return json_pack(
	    "{s:i, s:I, s:s, s:f, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:s}", "worker",
	    (int)worker, "number", (json_int_t)r->seq, "time", when, "ago_seconds",
	    (double)rwy_since(r->at, atomic_load(&h->alive)) / 1e9, "kind",
	    eng_record_name((enum eng_record_kind)r->kind), "side", eng_record_side_name(r->side), "local",
	    ip_json(&r->local, engine), "remote", ip_json(&r->remote, engine), "local_qpn",
	    (json_int_t)r->local_qpn, "remote_qpn", (json_int_t)r->remote_qpn, "vni", (json_int_t)r->vni,
	    "tunnel", name, "from", eng_record_from(r), "to", eng_record_to(r), "psn", (json_int_t)r->psn,
	    "value", (json_int_t)r->value, "text", text);
}

struct found {
	struct eng_record r;
	unsigned worker;
};

static int newest_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->r.at != y->r.at)
		return x->r.at > y->r.at ? -1 : 1;
	if (x->worker != y->worker)
		return x->worker > y->worker ? -1 : 1;
	return (int32_t)(y->r.seq - x->r.seq);
}

static json_t *entries_of(
    const struct eng_recorder_head *h, const struct wanted *w, unsigned long limit, struct found *v)
{
	json_t *list = json_array();
	size_t n = 0;

	for (unsigned i = 0; i < h->workers; i++) {
		const struct eng_recorder_ring *ring = eng_recorder_in(h, i);
		const uint32_t newest = ring ? atomic_load(&ring->newest) : 0;

		if (w->worker >= 0 && w->worker != (long)i)
			continue;
		for (uint32_t k = 0; ring && k < ring->entries; k++) {
			v[n].worker = i;
			n += eng_recorder_get(ring, newest - k, &v[n].r) && matches(w, &v[n].r);
		}
	}
	qsort(v, n, sizeof(*v), newest_first);
	for (size_t k = n < limit ? n : limit; k--;)
		json_array_append_new(list, record_json(h, &v[k].r, v[k].worker));
	return json_pack("{s:o}", "entries", list);
}

/* Maps the file; NULL, after cli_error(). */
static struct eng_recorder_head *file_map(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = MAP_FAILED;
	struct stat st;

	*size = 0;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= (off_t)ENG_RECORDER_HEAD) {
		*size = (size_t)st.st_size;
		p = mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0);
	}
	if (fd < 0)
		cli_error("%s: %s", path, strerror(errno));
	else if (p == MAP_FAILED || !eng_recorder_head_ok(p, *size))
		cli_error("%s: not the file of a flight recorder", path);
	if (fd >= 0)
		close(fd);
	if (p != MAP_FAILED && eng_recorder_head_ok(p, *size))
		return p;
	if (p != MAP_FAILED)
		munmap(p, *size);
	return NULL;
}

json_t *recorder_file_read(const char *path, const struct recorder_filter *f, int *rc)
{
	struct eng_recorder_head *h;
	struct wanted w;
	struct found *v;
	json_t *j = NULL;
	size_t size;

	*rc = EXIT_USAGE;
	if (!read_wanted(f, &w))
		return NULL;
	*rc = EXIT_ERROR;
	h = file_map(path, &size);
	if (!h)
		return NULL;
	v = malloc(((size_t)h->workers * h->entries + 1) * sizeof(*v));
	if (w.worker >= (long)h->workers)
		cli_error("--worker: %s has workers 0 to %u", path, h->workers - 1);
	else if (v)
		j = entries_of(h, &w, f->limit, v);
	else
		cli_error("out of memory");
	free(v);
	munmap(h, size);
	if (j)
		*rc = EXIT_OK;
	return j;
}
