/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page. */
#ifndef CONTROLLER_SERVER_PAGE_H
#define CONTROLLER_SERVER_PAGE_H

#include <stddef.h>

/* A file below /, embedded from controller/page at build time. */
struct ctlr_page_file {
	const char *path, *type;
	const unsigned char *data;
	size_t len;
};
/* The file of a path; NULL: there is none. "/" is /index.html. */
const struct ctlr_page_file *ctlr_page_find(const char *path);

#endif
