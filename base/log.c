/* SPDX-License-Identifier: Apache-2.0 */
/* The logger. DPDK's messages come here as well (gateway/port/eal.c). */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static _Atomic int log_level = GW_LOG_INFO;
static bool log_journal, log_json;

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

void gw_log_init(int level)
{
	atomic_store(&log_level, level);
	log_journal = stderr_is_journal();
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

void gw_log(int level, const char *module, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES * 2 + 160], message[LINE_MAX_BYTES];
	va_list ap;
	int n;

	if (!gw_log_on(level))
		return;
	va_start(ap, fmt);
	if (vsnprintf(message, sizeof(message), fmt, ap) < 0)
		*message = 0;
	va_end(ap);
	if (log_json) {
		n = json_line(line, sizeof(line), level, module, message);
	} else {
		n = prefix(line, sizeof(line), level, module);
		n += snprintf(line + n, LINE_MAX_BYTES - 1 - (size_t)n, "%s", message);
		if (n > LINE_MAX_BYTES - 2)
			n = LINE_MAX_BYTES - 2;
	}
	/* one event is one line, whatever a peer's name or a file name contains */
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = ' ';
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* there is no place to report this */
}
