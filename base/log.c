/* SPDX-License-Identifier: Apache-2.0 */
/* The logger. DPDK's messages come here as well (gateway/port/eal.c). */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024
#define LINE_ROOM      (LINE_MAX_BYTES * 2 + 160) /* as JSON */

static _Atomic int log_level = GW_LOG_INFO;
static bool log_journal, log_json;
static int log_terminal = -1;

/* journald sets JOURNAL_STREAM to device:inode of the stream that it reads; a child of another
 * service may have inherited it. */
static bool stderr_is_journal(void)
{
	const char *s = getenv("JOURNAL_STREAM");
	unsigned long dev, ino;
	struct stat st;

	return s && sscanf(s, "%lu:%lu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

/*
 * A blocking write to a terminal with room for part of a line waits for the rest. So the terminal
 * is opened once more with O_NONBLOCK, which then holds for this process alone. -1: it is none, or
 * somebody else's.
 */
static int open_terminal(void)
{
	return isatty(STDERR_FILENO) ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
	                             : -1;
}

void gw_log_init(int level)
{
	atomic_store(&log_level, level);
	log_journal = stderr_is_journal();
	if (log_terminal >= 0)
		close(log_terminal);
	log_terminal = open_terminal();
}

void gw_log_json(bool on)
{
	log_json = on;
}

int gw_log_set(int level)
{
	return atomic_exchange(&log_level, level);
}

static int gw_log_on(int level)
{
	return level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static const char *level_name(int level)
{
	static const char *const name[] = {"error", "warning", "notice", "info", "debug"};

	return name[level < GW_LOG_ERROR || level > GW_LOG_DEBUG ? GW_LOG_ERROR : level];
}

static int stamp(char *out, size_t size)
{
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	return snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", tm.tm_year + 1900, tm.tm_mon + 1,
	    tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000);
}

static int prefix(char *out, size_t size, int level, const char *module)
{
	static const char syslog_prio[] = {'3', '4', '5', '6', '7'};
	int n;

	if (level < GW_LOG_ERROR || level > GW_LOG_DEBUG)
		level = GW_LOG_ERROR;
	if (log_journal)
		return snprintf(out, size, "<%c>%s: ", syslog_prio[level], module);
	n = stamp(out, size);
	return n + snprintf(out + n, size - (size_t)n, " %s %s: ", level_name(level), module);
}

/* Copies text as the inside of a JSON string; bytes that are not ASCII become '?', since a peer's
 * name may not be UTF-8. Returns the length; at most size - 1. */
static size_t json_text(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 2 < size; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			out[n++] = '\\';
		out[n++] = (char)(c < ' ' ? ' ' : c > 126 ? '?' : c);
	}
	return n;
}

/* The line as JSON. Returns its length, without the line end. */
static int json_line(char *out, size_t size, int level, const char *module, const char *message)
{
	int n = snprintf(out, size, "{\"time\":\"");

	n += stamp(out + n, size - (size_t)n);
	n += snprintf(out + n, size - (size_t)n, "\",\"level\":\"%s\",\"module\":\"%.32s\",\"message\":\"",
	    level_name(level), module);
	n += (int)json_text(out + n, size - (size_t)n - 3, message);
	out[n++] = '"';
	out[n++] = '}';
	return n;
}

/* The line of a message, with its end. Returns its length. */
static size_t line_make(char line[LINE_ROOM], int level, const char *module, const char *message)
{
	int n;

	if (log_json) {
		n = json_line(line, LINE_ROOM, level, module, message);
	} else {
		n = prefix(line, LINE_MAX_BYTES, level, module);
		n += snprintf(line + n, LINE_MAX_BYTES - 1 - (size_t)n, "%s", message);
		if (n > LINE_MAX_BYTES - 2)
			n = LINE_MAX_BYTES - 2;
	}
	/* one event is one line, whatever a peer's name or a file name contains */
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = ' ';
	line[n++] = '\n';
	return (size_t)n;
}

/* --- output ----------------------------------------------------------------------------------- */

static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t lost; /* lines since the last one that was written */
static bool is_cut;   /* of the last one a terminal took a part */

/* False: it is not written, or a part of it is. A pipe, or a socket of journald, that has room
 * takes a whole line without waiting. */
static bool put(const char *line, size_t n)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	ssize_t done;

	if (poll(&p, 1, 0) == 0)
		return false;
	done = write(log_terminal >= 0 ? log_terminal : STDERR_FILENO, line, n);
	if (log_terminal < 0 || done == (ssize_t)n)
		return true;
	is_cut |= done > 0 && line[done - 1] != '\n';
	return done < 0 && errno != EAGAIN; /* a terminal that is gone */
}

static bool say_lost(void)
{
	char line[LINE_ROOM], message[96];

	if (is_cut && !put("\n", 1))
		return false;
	is_cut = false;
	snprintf(message, sizeof(message), "lines missing here, because nobody read the log: %" PRIu64, lost);
	if (!put(line, line_make(line, GW_LOG_WARNING, "log", message)))
		return false;
	lost = 0;
	return true;
}

/*
 * A thread that carries packets does not wait for whoever reads the log: while that has no room,
 * lines are lost and counted.
 */
static void line_put(const char *line, size_t n)
{
	pthread_mutex_lock(&out_lock);
	if ((lost && !say_lost()) || !put(line, n))
		lost++;
	pthread_mutex_unlock(&out_lock);
}

void gw_log(int level, const char *module, const char *fmt, ...)
{
	char line[LINE_ROOM], message[LINE_MAX_BYTES];
	va_list ap;

	if (!gw_log_on(level))
		return;
	va_start(ap, fmt);
	if (vsnprintf(message, sizeof(message), fmt, ap) < 0)
		*message = 0;
	va_end(ap);
	line_put(line, line_make(line, level, module, message));
}
