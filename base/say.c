/* SPDX-License-Identifier: Apache-2.0 */
#include "base/say.h"

#include <stdio.h>

static char *ring(void)
{
	static char buf[16][32];
	static unsigned next;

	return buf[next++ % 16];
}

/* Three digits and a unit: units from small to large, `step` apart. */
static const char *scaled(double v, double step, const char *const *unit)
{
	char *out = ring();

	while (unit[1] && v >= step) {
		v /= step;
		unit++;
	}
	snprintf(out, 32,
	    v < 10 && v != (long long)v    ? "%.2f%s"
	    : v < 100 && v != (long long)v ? "%.1f%s"
	                                   : "%.0f%s",
	    v, *unit);
	return out;
}

const char *say_bytes(double bytes)
{
	static const char *const unit[] = {" B", " KiB", " MiB", " GiB", " TiB", NULL};

	return scaled(bytes, 1024, unit);
}

const char *say_bits(double bytes_per_second)
{
	static const char *const unit[] = {" bps", " kbps", " Mbps", " Gbps", " Tbps", NULL};

	return scaled(bytes_per_second * 8, 1000, unit);
}

const char *say_count(double n)
{
	static const char *const unit[] = {"", "k", "M", "G", "T", NULL};

	return scaled(n, 1000, unit);
}

const char *say_share(double ratio)
{
	char *out = ring();

	snprintf(out, 32, ratio && ratio < 0.001 ? "%.4f %%" : "%.2f %%", ratio * 100);
	return out;
}

const char *say_time(double seconds)
{
	static const char *const unit[] = {" ns", " us", " ms", " s", NULL};
	const unsigned long long s = (unsigned long long)seconds;
	char *out = ring();

	if (seconds < 100)
		return scaled((double)(long long)(seconds * 1e9), 1000, unit);
	if (s < 3600)
		snprintf(out, 32, "%llu min %llu s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, 32, "%llu h %llu min", s / 3600, s / 60 % 60);
	else
		snprintf(out, 32, "%llu d %llu h", s / 86400, s / 3600 % 24);
	return out;
}
