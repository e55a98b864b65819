/* SPDX-License-Identifier: Apache-2.0 */
/* The page for people. */
#ifndef CONTROLLER_SERVER_PAGE_H
#define CONTROLLER_SERVER_PAGE_H

#include <stddef.h>

/* A file that is served at /, made from controller/page at build time. */
struct ctlr_page_file {
	const char *path, *type;
	const unsigned char *data;
	size_t len;
};
const struct ctlr_page_file *ctlr_page_find(const char *path);

#endif
