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
static bool log_journal;

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

int gw_log_set(int level)
{
	return atomic_exchange(&log_level, level);
}

static int gw_log_on(int level)
{
	return level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static int prefix(char *out, size_t size, int level, const char *module)
{
	static const char *const name[] = {"error", "warning", "notice", "info", "debug"};
	static const char syslog_prio[] = {'3', '4', '5', '6', '7'};
	struct timespec ts;
	struct tm tm;

	if (level < GW_LOG_ERROR || level > GW_LOG_DEBUG)
		level = GW_LOG_ERROR;
	if (log_journal)
		return snprintf(out, size, "<%c>%s: ", syslog_prio[level], module);
	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	return snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ %s %s: ", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000, name[level],
	    module);
}

void gw_log(int level, const char *module, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list ap;
	int n, k;

	if (!gw_log_on(level))
		return;
	n = prefix(line, sizeof(line), level, module);
	va_start(ap, fmt);
	k = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	n = k < 0 ? n : n + k;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	/* one event is one line, whatever a peer's name or a file name contains */
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = ' ';
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* there is no place to report this */
}
