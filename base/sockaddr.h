/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses of either family. Any thread. */
#ifndef BASE_SOCKADDR_H
#define BASE_SOCKADDR_H

#include <stdint.h>
#include <sys/socket.h>

#include "rwy/ip.h"

struct base_sockaddr {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* The socket address of an address and a port. */
void base_sockaddr_make(struct base_sockaddr *out, const struct rwy_ip *a, uint16_t port);
/* The address in a socket address of the kernel. */
void base_sockaddr_ip(const struct base_sockaddr *a, struct rwy_ip *out);
/* The pending error of a socket, a positive errno; 0: none. */
int base_socket_error(int fd);

#endif
