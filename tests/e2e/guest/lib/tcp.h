/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection by which the two processes of a lab's program tell each other of their queue
 * pairs. */
#ifndef RWY_GUEST_TCP_H
#define RWY_GUEST_TCP_H

#include <stddef.h>

/* Connects to a host, or with NULL waits for one client. Returns the socket; -1, with errno. */
int tcp_open(const char *host, const char *port);
/* Sends `size` bytes and receives as many. -1: the other end is gone. */
int tcp_swap(int fd, const void *mine, void *theirs, size_t size);

#endif
