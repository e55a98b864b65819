/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder's file (gateway/datapath/recorder.c): what a process wrote is there when it is gone,
 * however it ended, and the next one keeps it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/eng.h"
#include "gateway/setup.h"

static struct conf conf;
static struct gw_app app;
static char top[64];

rwy_time gw_now(void)
{
	return 5 * RWY_SEC;
}

static const char *path(const char *name)
{
	static char text[2][256];
	static unsigned i;

	i ^= 1;
	snprintf(text[i], sizeof(text[i]), "%s/journal/roceway-g.recorder%s", top, name);
	return text[i];
}

static int set_up(void **state)
{
	snprintf(top, sizeof(top), "/tmp/test_gw_recorder.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	conf = (struct conf){.name = "g", .workers = 2, .conns_max = 100};
	snprintf(conf.journal_dir, sizeof(conf.journal_dir), "%s/journal", top);
	app = (struct gw_app){.conf = &conf, .workers = 2, .version = "1"};
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void begin(void)
{
	assert_int_equal(gw_jfile_open(&app), 0);
	gw_recorder_open(&app);
}

static void end(void)
{
	gw_recorder_close(&app);
	gw_jfile_close(&app);
}

/* Records `n` decisions of each worker in the file. */
static void record(uint32_t n)
{
	for (unsigned w = 0; w < app.workers; w++) {
		struct eng *e = calloc(1, sizeof(*e));

		assert_non_null(e);
		gw_recorder_region(&app, w, &e->cfg);
		assert_non_null(e->cfg.recorder);
		assert_int_equal((uintptr_t)e->cfg.recorder % 64, 0);
		assert_int_equal(eng_recorder_init(e), 0);
		for (uint32_t i = 1; i <= n; i++)
			eng_record_engine(
			    e, &(struct eng_record){.kind = ENG_REC_START, .value = 100 * w + i}, NULL, i);
		eng_recorder_fini(e);
		free(e);
	}
}

/* A process that records and is killed. */
static void die(uint32_t n)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		begin();
		record(n);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* The file has the newest entry of each worker, with this number. */
static void assert_has(const char *name, uint32_t newest, bool ended)
{
	int fd = open(path(name), O_RDONLY);
	const struct eng_recorder_head *h;
	struct eng_record r;
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	h = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(h != MAP_FAILED);
	assert_true(eng_recorder_head_ok(h, (uint64_t)st.st_size));
	assert_false(eng_recorder_head_ok(h, (uint64_t)st.st_size - 1));
	assert_int_equal(h->ended, ended);
	assert_string_equal(h->name, "g");
	for (unsigned w = 0; w < 2; w++) {
		const struct eng_recorder_ring *ring = eng_recorder_in(h, w);

		assert_non_null(ring);
		assert_int_equal(ring->newest, newest);
		assert_true(eng_recorder_get(ring, newest, &r));
		assert_int_equal(r.value, 100 * w + newest);
	}
	assert_null(eng_recorder_in(h, 2));
	munmap((void *)(uintptr_t)h, (size_t)st.st_size);
	close(fd);
}

static bool there(const char *name)
{
	return access(path(name), F_OK) == 0;
}

static void test_crash(void **state)
{
	die(5);
	assert_has("", 5, false);
	begin();
	assert_has(".crash", 5, false);
	record(7);
	end();
	assert_has("", 7, true);
	/* A restart in order keeps the record of the crash. */
	begin();
	assert_has(".last", 7, true);
	assert_has(".crash", 5, false);
	end();
	die(3);
	begin();
	assert_has(".crash", 3, false); /* the latest one */
	end();
}

/* Longer than the ring. */
static void test_many(void **state)
{
	die(3 * ENG_RECORDER_ENTRIES + 1);
	begin();
	assert_has(".crash", 3 * ENG_RECORDER_ENTRIES + 1, false);
	end();
}

/* Its size is configured, and that of the process before may be another one. */
static void test_size(void **state)
{
	struct eng_cfg cfg = {0};

	die(5);
	conf.recorder_size = 300 << 10; /* no power of two */
	begin();
	gw_recorder_region(&app, 1, &cfg);
	assert_int_equal(cfg.recorder_n, 4096);
	assert_has(".crash", 5, false);
	end();
	conf.recorder_size = 64 << 20;
	die((1 << 20) + 7);
	begin();
	assert_has(".crash", (1 << 20) + 7, false);
	end();
}

/* Something else in its place is kept, too, and followed by nobody. */
static void test_other_file(void **state)
{
	char text[16] = "";
	int fd;

	begin();
	end();
	assert_int_equal(unlink(path("")), 0);
	fd = open(path(""), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "precious", 8), 8);
	close(fd);
	begin();
	record(1);
	assert_has("", 1, false);
	fd = open(path(".last"), O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), 8);
	assert_string_equal(text, "precious");
	close(fd);
	end();
	assert_int_equal(unlink(path("")), 0);
	assert_int_equal(symlink("elsewhere", path("")), 0);
	begin();
	assert_null(app.recorders); /* it runs without the file */
	assert_false(there("/../elsewhere"));
	end();
}

/* Without a journal there is no file, and the engine has memory of its own. */
static void test_no_directory(void **state)
{
	struct eng_cfg cfg = {0};

	conf.journal_dir[0] = 0;
	begin();
	gw_recorder_region(&app, 0, &cfg);
	assert_null(cfg.recorder);
	gw_recorder_alive(&app);
	end();
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_crash), TEST(test_many), TEST(test_size),
	    TEST(test_other_file), TEST(test_no_directory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
