/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of etcd's JSON: base64 both ways, 64-bit numbers as strings. */
#include "controller/store/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t store_etcd_u64(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);
	const char *s = json_string_value(v);

	if (s && *s >= '0' && *s <= '9')
		return strtoull(s, NULL, 10);
	return json_is_integer(v) ? (uint64_t)json_integer_value(v) : 0;
}

json_t *store_etcd_key(const struct store_etcd *s, const char *key, bool end)
{
	char text[2 * STORE_KEY_MAX];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s%s", s->prefix, key);
	char *b64;
	json_t *j;

	if (end) /* the range ends where keys begin with the next byte value */
		text[n - 1]++;
	b64 = store_etcd_b64(text, n);
	j = b64 ? json_string(b64) : NULL;
	free(b64);
	return j;
}

int store_etcd_kv_tell(const struct store_etcd *s, const json_t *j, bool deleted, store_kv_cb *cb, void *ctx)
{
	const char *key64 = json_string_value(json_object_get(j, "key"));
	const char *value64 = json_string_value(json_object_get(j, "value"));
	const size_t skip = strlen(s->prefix);
	struct store_kv kv = {.create_rev = store_etcd_u64(j, "create_revision"),
	    .mod_rev = store_etcd_u64(j, "mod_revision"),
	    .lease = store_etcd_u64(j, "lease")};
	size_t n = 0;
	char *key = key64 ? store_etcd_unb64(key64, &n) : NULL,
	     *value = store_etcd_unb64(value64 ? value64 : "", &kv.len);
	int rc = key && value ? 0 : STORE_EDOWN;

	/* a key of another length or form belongs to somebody else */
	if (!rc && strlen(key) == n && n > skip && n - skip < STORE_KEY_MAX &&
	    !strncmp(key, s->prefix, skip)) {
		kv.key = key + skip;
		kv.value = deleted ? NULL : value;
		rc = cb(ctx, &kv);
	}
	free(key);
	free(value);
	return rc;
}
