/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: as text and as JSON, whatever a message contains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pty.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/log.h"

/* What a message of this module becomes, without its line end. */
static void logged(char *out, size_t size, const char *module, const char *message)
{
	int p[2], old = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(p), 0);
	dup2(p[1], STDERR_FILENO);
	gw_log(GW_LOG_WARNING, module, "%s", message);
	dup2(old, STDERR_FILENO);
	close(old);
	close(p[1]);
	n = read(p[0], out, size - 1);
	close(p[0]);
	assert_true(n > 0 && out[n - 1] == '\n');
	out[n - 1] = 0;
	assert_null(strchr(out, '\n'));
}

static void text(void **state)
{
	char line[4096], big[3000];

	gw_log_init(GW_LOG_INFO);
	gw_log_json(false);
	logged(line, sizeof(line), "port", "port=a\nforged: line\x1b[0m");
	assert_non_null(strstr(line, "Z warning port: port=a forged: line [0m"));
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	logged(line, sizeof(line), "port", big);
	assert_in_range(strlen(line), 1000, 1023);
}

static void json(void **state)
{
	static const char *const nasty[] = {
	    "plain key=value", "a \"quoted\" \\ name", "two\nlines\ttab", "\xff\xfe\xc3", ""};
	char line[8192], big[3000];
	json_t *j;

	gw_log_init(GW_LOG_INFO);
	gw_log_json(true);
	for (unsigned i = 0; i < sizeof(nasty) / sizeof(nasty[0]); i++) {
		logged(line, sizeof(line), "tunnel", nasty[i]);
		j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(j);
		assert_int_equal(json_object_size(j), 4);
		assert_string_equal(json_string_value(json_object_get(j, "level")), "warning");
		assert_string_equal(json_string_value(json_object_get(j, "module")), "tunnel");
		assert_int_equal(strlen(json_string_value(json_object_get(j, "time"))), 27);
		assert_int_equal(strlen(json_string_value(json_object_get(j, "message"))), strlen(nasty[i]));
		if (!i || i == 1)
			assert_string_equal(json_string_value(json_object_get(j, "message")), nasty[i]);
		json_decref(j);
	}
	memset(big, '"', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	logged(line, sizeof(line), "tunnel", big);
	j = json_loads(line, 0, NULL);
	assert_non_null(j);
	assert_int_equal(strlen(json_string_value(json_object_get(j, "message"))), 1023);
	json_decref(j);
	gw_log_json(false);
}

/* Nobody reads: no thread waits, and the next line comes behind one that tells what is missing. */
static void unread(void **state)
{
	char fill[4096] = {0}, said[8192];
	int p[2], old = dup(STDERR_FILENO);
	ssize_t n;

	gw_log_init(GW_LOG_INFO);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(fcntl(p[1], F_SETPIPE_SZ, sizeof(fill)), sizeof(fill));
	assert_int_equal(write(p[1], fill, sizeof(fill)), sizeof(fill));
	dup2(p[1], STDERR_FILENO);
	for (unsigned i = 0; i < 3; i++)
		gw_log(GW_LOG_WARNING, "port", "a line that nobody has room for");
	assert_int_equal(read(p[0], fill, sizeof(fill)), sizeof(fill));
	gw_log(GW_LOG_WARNING, "port", "another line");
	assert_int_equal(fcntl(p[1], F_SETPIPE_SZ, 4 * sizeof(fill)), 4 * sizeof(fill));
	gw_log(GW_LOG_WARNING, "port", "the next one");
	dup2(old, STDERR_FILENO);
	close(old);
	close(p[1]);
	n = read(p[0], said, sizeof(said) - 1);
	close(p[0]);
	assert_true(n > 0);
	said[n] = 0;
	assert_non_null(strstr(said, " warning log: lines missing here, because nobody read the log: 3\n"));
	assert_null(strstr(said, "has room for"));
	/* the page of the pipe had room for one line, or for both */
	assert_true(strstr(said, "another line") || strstr(said, "nobody read the log: 1\n"));
	assert_non_null(strstr(said, "the next one\n"));
}

/* Reads what the terminal shows until `want` is in it. */
static void read_until(int fd, char *said, size_t size, const char *want)
{
	size_t n = 0;

	*said = 0;
	while (!strstr(said, want)) {
		const ssize_t got = read(fd, said + n, size - 1 - n);

		assert_true(got > 0);
		n += (size_t)got;
		said[n] = 0;
	}
}

/* A terminal that shows nothing more: it is full in the middle of a line, or it was stopped (^S). */
static void frozen(void **state)
{
	static char said[1 << 20];
	char big[1000] = {0};
	int shown, terminal, old = dup(STDERR_FILENO);

	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(openpty(&shown, &terminal, NULL, NULL, NULL), 0);
	dup2(terminal, STDERR_FILENO);
	gw_log_init(GW_LOG_INFO);
	for (unsigned i = 0; i < 400; i++)
		gw_log(GW_LOG_WARNING, "port", "%u %s", i, big);
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0); /* others have it, too */
	gw_log(GW_LOG_WARNING, "port", "the last of them");
	read_until(shown, said, sizeof(said), " warning port: 3 ");
	do { /* as much as it takes until it has room */
		gw_log(GW_LOG_WARNING, "port", "the next one");
		assert_true(read(shown, said, 4096) > 0);
	} while (!memmem(said, 4096, "nobody read the log: ", 21));
	assert_null(memmem(said, 4096, "399 x", 5));
	gw_log(GW_LOG_WARNING, "port", "all of it is there");
	read_until(shown, said, sizeof(said), " warning port: all of it is there\r\n");
	assert_int_equal(tcflow(terminal, TCOOFF), 0);
	gw_log(GW_LOG_WARNING, "port", "while it was stopped");
	assert_int_equal(tcflow(terminal, TCOON), 0);
	gw_log(GW_LOG_WARNING, "port", "goes on");
	read_until(shown, said, sizeof(said), " warning port: goes on\r\n");
	assert_non_null(strstr(said, "nobody read the log: 1\r\n"));
	assert_null(strstr(said, "while it was"));
	dup2(old, STDERR_FILENO);
	gw_log_init(GW_LOG_INFO);
	close(old);
	close(shown);
	close(terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(text), cmocka_unit_test(json),
	    cmocka_unit_test(unread), cmocka_unit_test(frozen)};

	unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
