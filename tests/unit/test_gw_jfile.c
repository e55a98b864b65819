/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's file (gateway/datapath/jfile.c): taken over from the last process, and from nobody else. Its
 * directory must be the user's own and closed to others. Run as root it also tries other owners.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/setup.h"
#include "proxy/journal.h"

#define OTHER 65534 /* a user without rights */

static struct conf conf;
static struct gw_app app;
static char top[64], said[4096];
static int log_fd, stderr_fd;

static const char *path(const char *name)
{
	static char text[2][256];
	static unsigned i;

	i ^= 1;
	snprintf(text[i], sizeof(text[i]), "%s/%s", top, name);
	return text[i];
}

static int set_up(void **state)
{
	snprintf(top, sizeof(top), "/tmp/test_gw_jfile.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	conf = (struct conf){.name = "g", .workers = 2, .conns_max = 100};
	snprintf(conf.journal_dir, sizeof(conf.journal_dir), "%s", path("journal"));
	app = (struct gw_app){.conf = &conf, .workers = 2};
	/* The log goes to a file. */
	log_fd = open(path("log"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	stderr_fd = dup(2);
	return log_fd < 0 || stderr_fd < 0 || dup2(log_fd, 2) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	char command[128];

	gw_jfile_close(&app);
	dup2(stderr_fd, 2);
	close(stderr_fd);
	close(log_fd);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static int journal_open(void)
{
	int rc = gw_jfile_open(&app);
	ssize_t n = pread(log_fd, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = 0;
	(void)!ftruncate(log_fd, 0);
	lseek(log_fd, 0, SEEK_SET);
	return rc;
}

/* It refuses, with one line that says why. */
static void assert_refused(const char *why)
{
	assert_int_equal(journal_open(), RWY_EINVAL);
	assert_non_null(strstr(said, why));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	gw_jfile_close(&app);
}

static struct eng_journal_entry *entries(unsigned worker, uint32_t *n)
{
	struct eng_cfg cfg = {0};

	gw_jfile_region(&app, worker, &cfg);
	*n = cfg.journal_n;
	return cfg.journal;
}

static unsigned used(void)
{
	unsigned sum = 0;

	for (unsigned w = 0; w < app.workers; w++) {
		uint32_t n;
		struct eng_journal_entry *j = entries(w, &n);

		for (uint32_t i = 0; i < n; i++)
			sum += j[i].used;
	}
	return sum;
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(path(name), &st), 0);
	return st.st_mode & 07777;
}

static bool there(const char *name)
{
	return access(path(name), F_OK) == 0;
}

/* A promise of this process. */
static void promise(void)
{
	uint32_t n;
	struct eng_journal_entry *j = entries(0, &n);

	assert_true(n >= 50);
	j[3] = (struct eng_journal_entry){.used = 1, .acked = 77, .qpn = 5, .lqpn = 6};
}

static void test_made(void **state)
{
	umask(0);
	assert_int_equal(journal_open(), 0);
	assert_string_equal(said, "");
	assert_int_equal(mode_of("journal"), 0700);
	assert_int_equal(mode_of("journal/roceway-g.journal"), 0600);
	assert_int_equal(used(), 0);
	gw_jfile_close(&app);
	assert_false(there("journal/roceway-g.journal")); /* nothing was promised */
	assert_false(there("journal/roceway-g.journal.new"));
}

static void test_taken_over(void **state)
{
	assert_int_equal(journal_open(), 0);
	promise();
	gw_jfile_close(&app);
	assert_true(there("journal/roceway-g.journal"));
	conf.workers = app.workers = 1;
	assert_int_equal(journal_open(), 0);
	assert_int_equal(used(), 1);
	assert_false(there("journal/roceway-g.journal.new"));
}

static struct eng_cfg region(void)
{
	struct eng_cfg cfg = {0};

	gw_jfile_region(&app, 0, &cfg);
	return cfg;
}

#define ALIVE_AT 16 /* in the file: after its magic number and two sizes */
#define HALF     (30 * RWY_SEC)

/* Half of the time that promises last has passed since the process was alive. */
static void grow_old(void)
{
	int fd = open(path("journal/roceway-g.journal"), O_RDWR);
	uint64_t alive;

	assert_int_equal(pread(fd, &alive, sizeof(alive), ALIVE_AT), sizeof(alive));
	alive -= HALF;
	assert_int_equal(pwrite(fd, &alive, sizeof(alive), ALIVE_AT), sizeof(alive));
	close(fd);
}

/* Whether the promises are as good as new when the process says that it lives. */
static bool made_young(enum gw_pair pair)
{
	atomic_store(&app.pair, pair);
	gw_jfile_alive(&app);
	return region().journal_for > HALF;
}

/* The next process, and what it says of the journal of the one before. */
static bool next_has_whole(void)
{
	gw_jfile_close(&app);
	assert_int_equal(journal_open(), 0);
	return region().journal_whole;
}

/* Far gateways tell a process what may be lost: one that ends before leaves no whole journal. */
static void test_not_whole_until_told(void **state)
{
	assert_int_equal(journal_open(), 0); /* there is no file: the machine died */
	assert_false(region().journal_whole);
	assert_false(region().follows); /* nor a directory */
	promise();
	app.start = 1;
	gw_jfile_told(&app, false);
	assert_false(next_has_whole());
	assert_true(region().follows);
	assert_false(next_has_whole());
	gw_jfile_told(&app, true);
	gw_jfile_told(&app, false); /* a tunnel was added */
	assert_false(next_has_whole());
	gw_jfile_told(&app, true);
	assert_true(next_has_whole());
	gw_jfile_told(&app, false); /* nothing can be lost: nobody needs to tell */
	assert_true(next_has_whole());
}

/* A connection found no entry. */
static void test_not_whole_after_a_gap(void **state)
{
	assert_int_equal(journal_open(), 0);
	promise();
	app.start = 1;
	gw_jfile_told(&app, true);
	assert_true(next_has_whole());
	*region().journal_gap = 1;
	gw_jfile_told(&app, true);
	assert_false(next_has_whole());
	assert_false(next_has_whole());
	*region().journal_gap = 1; /* the same again, of this process */
	gw_jfile_told(&app, true);
	assert_false(next_has_whole());
	gw_jfile_told(&app, true);
	assert_true(next_has_whole());
}

#define LINKS 16

static void link_write(unsigned place, uint32_t alias)
{
	struct proxy_record *r = &gw_jfile_links(&app)[2 * place];

	*r = (struct proxy_record){.alias = alias};
	proxy_record_seal(r, 1, alias);
}

static unsigned links_used(void)
{
	const struct proxy_record *r = gw_jfile_links(&app);
	unsigned n = 0;

	for (unsigned i = 0; i < conf.relay.links_max; i++)
		n += proxy_record_latest(&r[2 * i]) >= 0;
	return n;
}

/* A relay's links are behind the promises, and keep the file alone. */
static void test_links(void **state)
{
	assert_int_equal(journal_open(), 0);
	assert_null(gw_jfile_links(&app)); /* it is no relay */
	gw_jfile_close(&app);
	conf.relay.addrs = 1;
	conf.relay.links_max = LINKS;
	assert_int_equal(journal_open(), 0);
	assert_int_equal(links_used(), 0);
	link_write(3, 30);
	link_write(9, 90);
	gw_jfile_close(&app);
	assert_true(there("journal/roceway-g.journal"));
	conf.workers = app.workers = 1;
	conf.relay.links_max = 2 * LINKS;
	assert_int_equal(journal_open(), 0);
	assert_int_equal(links_used(), 2);
	assert_int_equal(gw_jfile_links(&app)[2].alias, 90);
	promise();
	gw_jfile_close(&app);
	conf.relay.links_max = 1;
	assert_int_equal(journal_open(), 0);
	assert_non_null(strstr(said, "links=1 have no room"));
	assert_int_equal(links_used(), 1);
	assert_int_equal(used(), 1);
	memset(gw_jfile_links(&app), 0, 2 * sizeof(struct proxy_record));
	entries(0, &(uint32_t){0})[0].used = 0;
	gw_jfile_close(&app);
	assert_false(there("journal/roceway-g.journal"));
}

#define VERSION_AT 40 /* in the file: of the links' records */

/* Records of another version are left, and promises are not. */
static void test_links_of_another_version(void **state)
{
	uint32_t version = PROXY_RECORD_VERSION + 1;
	int fd;

	conf.relay.addrs = 1;
	conf.relay.links_max = LINKS;
	assert_int_equal(journal_open(), 0);
	link_write(0, 5);
	promise();
	gw_jfile_close(&app);
	fd = open(path("journal/roceway-g.journal"), O_RDWR);
	assert_int_equal(pwrite(fd, &version, sizeof(version), VERSION_AT), sizeof(version));
	close(fd);
	assert_int_equal(journal_open(), 0);
	assert_non_null(strstr(said, "version 2, this one reads version 1"));
	assert_int_equal(links_used(), 0);
	assert_int_equal(used(), 1);
}

/* The other gateway of a pair may serve hosts while this one asks who does. */
static void test_grows_old(void **state)
{
	assert_int_equal(journal_open(), 0);
	promise();
	*region().term = 3;
	gw_jfile_close(&app);
	atomic_store(&app.pair, GW_PAIR_ASKS);
	assert_int_equal(journal_open(), 0);
	grow_old();
	assert_false(made_young(GW_PAIR_ASKS));
	assert_false(made_young(GW_PAIR_HIDES));
	gw_jfile_close(&app);
	assert_int_equal(journal_open(), 0); /* another process that asks */
	assert_int_equal(used(), 1);
	assert_true(region().journal_for <= HALF);
	*region().term = 0; /* it stores the other one's */
	assert_true(made_young(GW_PAIR_HIDES));
	*region().term = 4;
	grow_old();
	assert_false(made_young(GW_PAIR_HIDES));
	assert_true(made_young(GW_PAIR_SERVES));
}

static void test_in_use(void **state)
{
	struct gw_app first;

	assert_int_equal(journal_open(), 0);
	promise();
	first = app;
	app.jfile = NULL;
	assert_refused("is in use");
	app = first;
	assert_int_equal(used(), 1);
	assert_true(there("journal/roceway-g.journal"));
}

/* As /dev/shm is. */
static void test_open_to_others(void **state)
{
	static const mode_t modes[] = {01777, 0777, 0770, 0750, 0701};

	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		assert_int_equal(mkdir(path("journal"), 0700), 0);
		assert_int_equal(chmod(path("journal"), modes[i]), 0);
		assert_refused("mode 0700");
		assert_false(there("journal/roceway-g.journal"));
		assert_false(there("journal/roceway-g.journal.new"));
		assert_int_equal(rmdir(path("journal")), 0);
	}
}

static void test_of_another_user(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(path("journal"), 0700), 0);
	assert_int_equal(chown(path("journal"), OTHER, OTHER), 0);
	assert_refused("of user 65534");
	assert_false(there("journal/roceway-g.journal"));
}

static void test_linked_directory(void **state)
{
	assert_int_equal(mkdir(path("elsewhere"), 0700), 0);
	assert_int_equal(symlink(path("elsewhere"), path("journal")), 0);
	assert_refused("journal_dir=");
	assert_false(there("elsewhere/roceway-g.journal"));
}

static void test_no_directory(void **state)
{
	snprintf(conf.journal_dir, sizeof(conf.journal_dir), "%s", path("no/such/place"));
	assert_refused("No such file or directory");
}

static void test_file_in_its_place(void **state)
{
	close(open(path("journal"), O_WRONLY | O_CREAT, 0600));
	assert_refused("journal_dir=");
}

static void write_text(const char *name, mode_t mode)
{
	int fd = open(path(name), O_WRONLY | O_CREAT | O_EXCL, mode);

	assert_true(fd >= 0 && write(fd, "precious", 8) == 8);
	close(fd);
}

static void assert_untouched(const char *name)
{
	char text[16] = "";
	int fd = open(path(name), O_RDONLY);

	assert_int_equal(read(fd, text, sizeof(text)), 8);
	assert_string_equal(text, "precious");
	close(fd);
}

/* What somebody put there is neither followed nor overwritten. */
static void test_planted(void **state)
{
	assert_int_equal(mkdir(path("journal"), 0700), 0);
	write_text("precious", 0600);
	assert_int_equal(symlink(path("precious"), path("journal/roceway-g.journal")), 0);
	assert_refused("roceway-g.journal");
	assert_int_equal(unlink(path("journal/roceway-g.journal")), 0);
	assert_int_equal(link(path("precious"), path("journal/roceway-g.journal")), 0);
	assert_refused("a file of this user alone");
	assert_int_equal(unlink(path("journal/roceway-g.journal")), 0);
	assert_int_equal(mkdir(path("journal/roceway-g.journal"), 0700), 0);
	assert_refused("roceway-g.journal");
	assert_int_equal(rmdir(path("journal/roceway-g.journal")), 0);
	write_text("journal/roceway-g.journal", 0660);
	assert_refused("a file of this user alone");
	assert_int_equal(unlink(path("journal/roceway-g.journal")), 0);
	/* the new one's name: the link goes, its target stays */
	assert_int_equal(symlink(path("precious"), path("journal/roceway-g.journal.new")), 0);
	assert_int_equal(journal_open(), 0);
	assert_untouched("precious");
}

static void test_planted_by_another_user(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(path("journal"), 0700), 0);
	write_text("journal/roceway-g.journal", 0600);
	assert_int_equal(chown(path("journal/roceway-g.journal"), OTHER, OTHER), 0);
	assert_refused("a file of this user alone");
}

/* Of another version, or cut off: nothing is taken over, and it is replaced. */
static void test_useless(void **state)
{
	assert_int_equal(mkdir(path("journal"), 0700), 0);
	write_text("journal/roceway-g.journal", 0600);
	assert_int_equal(journal_open(), 0);
	assert_int_equal(used(), 0);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_made),
	    CASE(test_taken_over),
	    CASE(test_not_whole_until_told),
	    CASE(test_not_whole_after_a_gap),
	    CASE(test_links),
	    CASE(test_links_of_another_version),
	    CASE(test_grows_old),
	    CASE(test_in_use),
	    CASE(test_open_to_others),
	    CASE(test_of_another_user),
	    CASE(test_linked_directory),
	    CASE(test_no_directory),
	    CASE(test_file_in_its_place),
	    CASE(test_planted),
	    CASE(test_planted_by_another_user),
	    CASE(test_useless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
