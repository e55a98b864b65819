/* SPDX-License-Identifier: Apache-2.0 */
/* Private to proxy/map*.c: what a table is made from. */
#ifndef PROXY_MAP_INT_H
#define PROXY_MAP_INT_H

#include "proxy/map.h"

bool proxy_map_cfg_valid(const struct proxy_map_cfg *c);
/* Memory for free(); NULL: none. Links are zeroed, buckets PROXY_NIL. */
struct proxy_link *proxy_map_links_new(uint32_t n);
uint32_t *proxy_map_index_new(uint32_t buckets);

#endif
