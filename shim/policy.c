/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/policy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/ask.h"
#include "rwy/prefix.h"

#define BLANKS " \t"

/* A line on its way through the parser. */
struct line {
	struct shim_policy *p;
	char *rest;
	char *err;
	size_t size;
};

static int fail(const struct line *l, const char *expected, const char *found)
{
	snprintf(l->err, l->size, "expected %s, found %s%.60s%s", expected, found ? "`" : "",
	    found ? found : "nothing", found ? "`" : "");
	return RWY_EINVAL;
}

/* --- words ------------------------------------------------------------------------------------ */

/* False: no IP address. */
static bool ip_parse(const char *s, struct rwy_ip *a)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, s, v4) == 1) {
		*a = rwy_ip_from4(v4);
		return true;
	}
	return inet_pton(AF_INET6, s, a->b) == 1 && !rwy_ip_is4(a);
}

static bool number_parse(const char *s, long max, long *n)
{
	char *end;

	errno = 0;
	*n = strtol(s, &end, 10);
	return !errno && end != s && !*end && *s != '-' && *s != '+' && *n <= max;
}

static int prefix_parse(const struct line *l, char *word, struct shim_rule *r)
{
	static const uint8_t zero[16];
	char *slash = word ? strchr(word, '/') : NULL;
	char whole[64];
	struct rwy_ip rest;
	long len;

	snprintf(whole, sizeof(whole), "%s", word ? word : "");
	if (slash)
		*slash = '\0';
	if (!word || !ip_parse(word, &r->addr))
		return fail(l, "a prefix", word ? whole : NULL);
	len = rwy_ip_is4(&r->addr) ? 32 : 128;
	if (slash && !number_parse(slash + 1, len, &len))
		return fail(l, "a prefix", whole);
	r->len = (uint8_t)(rwy_ip_is4(&r->addr) ? 96 + len : len);
	rest = r->addr;
	for (unsigned i = 0; i < r->len; i++)
		rest.b[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	if (memcmp(rest.b, zero, sizeof(zero)) != 0)
		return fail(l, "a prefix without bits behind its length", whole);
	return 0;
}

/* One of the words behind a relay's address. */
static int option_parse(const struct line *l, char *word, struct shim_relay *r)
{
	long n;

	if (!strncmp(word, "weight=", 7) && number_parse(word + 7, 100, &n) && n)
		r->weight = (uint8_t)n;
	else if (!strncmp(word, "port=", 5) && number_parse(word + 5, 65535, &n) && n)
		r->port = (uint16_t)n;
	else if (!strcmp(word, "down"))
		r->down = true;
	else
		return fail(l, "weight=1..100, port=1..65535 or down", word);
	return 0;
}

/* Takes a relay into the policy, behind the others. */
static int relay_parse(const struct line *l, char *word, uint8_t order)
{
	struct shim_relay r = {.port = PROXY_ASK_PORT, .weight = 1, .order = order};
	char *save, *addr = strtok_r(word, ",", &save);
	int rc = 0;

	if (!addr || !ip_parse(addr, &r.addr))
		return fail(l, "the address of a relay", addr);
	for (char *o; !rc && (o = strtok_r(NULL, ",", &save));)
		rc = option_parse(l, o, &r);
	if (rc)
		return rc;
	if (l->p->relays == SHIM_RELAYS_MAX)
		return fail(l, "fewer relays", word);
	l->p->relay[l->p->relays++] = r;
	return 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

static int fail_family(const struct line *l, const struct rwy_ip *a)
{
	const bool v4 = rwy_ip_is4(a);
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, text, sizeof(text));
	return fail(l, "relays of the prefix's family", text);
}

static int relays_parse(const struct line *l, char *save, struct shim_rule *r)
{
	uint8_t order = 0;

	r->first = (uint16_t)l->p->relays;
	for (char *word; (word = strtok_r(NULL, BLANKS, &save));) {
		bool is_else = !strcmp(word, "else");
		int rc = is_else ? 0 : relay_parse(l, word, order);

		if (rc)
			return rc;
		if (!is_else)
			continue;
		if (l->p->relays == r->first || l->p->relay[l->p->relays - 1].order != order || order == 255)
			return fail(l, "a relay before `else`", word);
		order++;
	}
	r->relays = (uint16_t)(l->p->relays - r->first);
	if (!r->relays || l->p->relay[l->p->relays - 1].order != order)
		return fail(l, "the address of a relay", NULL);
	for (unsigned i = r->first; i < l->p->relays; i++)
		if (rwy_ip_is4(&l->p->relay[i].addr) != rwy_ip_is4(&r->addr))
			return fail_family(l, &l->p->relay[i].addr);
	return 0;
}

static int line_parse(const struct line *l)
{
	struct shim_rule r = {0};
	char *save, *word = strtok_r(l->rest, BLANKS, &save);
	int rc;

	if (!word)
		return 0;
	if (strcmp(word, "redirect") != 0)
		return fail(l, "redirect PREFIX via RELAY ...", word);
	rc = prefix_parse(l, strtok_r(NULL, BLANKS, &save), &r);
	if (rc)
		return rc;
	word = strtok_r(NULL, BLANKS, &save);
	if (!word || strcmp(word, "via") != 0)
		return fail(l, "`via`", word);
	rc = relays_parse(l, save, &r);
	if (rc)
		return rc;
	for (unsigned i = 0; i < l->p->rules; i++)
		if (l->p->rule[i].len == r.len && rwy_ip_eq(&l->p->rule[i].addr, &r.addr))
			return fail(l, "a prefix of its own", "one of a line before");
	if (l->p->rules == SHIM_RULES_MAX)
		return fail(l, "fewer lines", word);
	l->p->rule[l->p->rules++] = r;
	return 0;
}

/* Returns the number of the line that is wrong, and says why; 0: none is. */
static unsigned lines_parse(struct shim_policy *p, const char *text, char *why, size_t size)
{
	snprintf(why, size, "no memory");
	memset(p, 0, sizeof(*p));
	for (unsigned n = 1; *text; n++) {
		size_t len = strcspn(text, "\n");
		char *one = strndup(text, strcspn(text, "#\r\n"));
		struct line l = {p, one, why, size};
		int rc = one ? line_parse(&l) : RWY_ENOMEM;

		free(one);
		if (rc)
			return n;
		text += len + (text[len] == '\n');
	}
	return 0;
}

int shim_policy_parse(struct shim_policy *p, const char *text, char *err, size_t size)
{
	char why[200];
	const unsigned line = lines_parse(p, text, why, sizeof(why));

	if (line)
		snprintf(err, size, "line %u: %s", line, why);
	return line ? RWY_EINVAL : 0;
}

int shim_policy_via(struct shim_policy *p, const char *relays, char *err, size_t size)
{
	static const char *const all[] = {"0.0.0.0/0", "::/0"};
	char words[2][1026] = {"", ""}, copy[1024], text[2200], *save;

	if (strlen(relays) >= sizeof(copy)) {
		snprintf(err, size, "expected fewer relays");
		return RWY_EINVAL;
	}
	snprintf(copy, sizeof(copy), "%s", relays);
	for (char *w = strtok_r(copy, BLANKS, &save); w; w = strtok_r(NULL, BLANKS, &save)) {
		char *of = words[strchr(w, ':') != NULL];
		size_t n = strlen(of);

		snprintf(of + n, sizeof(words[0]) - n, " %s", w);
	}
	text[0] = '\0';
	for (unsigned i = 0; i < 2; i++)
		if (*words[i])
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "redirect %s via%s\n",
			    all[i], words[i]);
	if (!*text) {
		snprintf(err, size, "expected the address of a relay, found nothing");
		return RWY_EINVAL;
	}
	/* The line would be of the text above, which nobody wrote. */
	return lines_parse(p, text, err, size) ? RWY_EINVAL : 0;
}

/* --- files ------------------------------------------------------------------------------------ */

/* A zero byte would end the text: what stands behind it would not count, without a word. */
static bool text_whole(const char *path, const char *text, size_t n, char *err, size_t size)
{
	const char *zero = memchr(text, 0, n);
	unsigned line = 1;

	for (const char *c = text; zero && c < zero; c++)
		line += *c == '\n';
	if (zero)
		snprintf(err, size, "%s:%u: expected text, found a zero byte", path, line);
	return !zero;
}

/* A FIFO that nobody writes is empty: fopen() would wait for a writer. */
static FILE *file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *f = fd < 0 || fcntl(fd, F_SETFL, 0) ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

char *shim_text_file(const char *path, char *err, size_t size)
{
	FILE *f = file_open(path);
	char *text = f ? malloc(SHIM_FILE_MAX + 1) : NULL;
	size_t n = text ? fread(text, 1, SHIM_FILE_MAX + 1, f) : 0;
	bool good = false;

	if (!f || (text && ferror(f)))
		snprintf(err, size, "%s: %s", path, strerror(errno));
	else if (!text)
		snprintf(err, size, "%s: no memory", path);
	else if (n > SHIM_FILE_MAX)
		snprintf(
		    err, size, "%s: expected a file of at most %d bytes, found more", path, SHIM_FILE_MAX);
	else
		good = text_whole(path, text, n, err, size);
	if (f)
		fclose(f);
	if (good) {
		text[n] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

int shim_policy_file(struct shim_policy *p, const char *path, char *err, size_t size)
{
	char *text = shim_text_file(path, err, size), why[200];
	const unsigned line = text ? lines_parse(p, text, why, sizeof(why)) : 0;
	int rc;

	if (line)
		snprintf(err, size, "%s:%u: %s", path, line, why);
	rc = text && !line ? 0 : RWY_EINVAL;
	free(text);
	return rc;
}

const struct shim_rule *shim_policy_find(const struct shim_policy *p, const struct rwy_ip *target)
{
	static const struct rwy_ip link_local = {.b = {0xfe, 0x80}};
	const struct shim_rule *best = NULL;

	if (rwy_prefix_match(&link_local, 10, target))
		return NULL;
	if (rwy_ip_is4(target) && target->b[12] == 127)
		return NULL;
	for (unsigned i = 0; i < p->relays; i++)
		if (rwy_ip_eq(&p->relay[i].addr, target))
			return NULL;
	for (unsigned i = 0; i < p->rules; i++) {
		const struct shim_rule *r = &p->rule[i];

		/* ::/0 does not have the IPv4 addresses. */
		if (rwy_ip_is4(target) == rwy_ip_is4(&r->addr) &&
		    rwy_prefix_match(&r->addr, r->len, target) && (!best || r->len > best->len))
			best = r;
	}
	return best;
}
