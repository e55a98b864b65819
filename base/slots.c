/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slots.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC   0x52575953u
#define VERSION 1u
#define SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3, which may be told to refuse memory without it */
#endif

static_assert(sizeof(struct base_slots_head) <= BASE_SLOTS_AT, "the head is within the first page");

static uint8_t *slot(const struct base_slots *s)
{
	return (uint8_t *)s->head + BASE_SLOTS_AT + (size_t)(s->turn % BASE_SLOTS) * BASE_SLOT_SIZE;
}

static void send_byte(int socket)
{
	/* A full socket has bytes that wake; one that is gone is noticed by base_slots_woken(). */
	(void)!send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool map(struct base_slots *s, int fd)
{
	/* The pages are made now, and not while somebody waits for what is in them. */
	void *m = mmap(NULL, BASE_SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	s->head = m == MAP_FAILED ? NULL : m;
	return s->head;
}

void base_slots_close(struct base_slots *s)
{
	if (s->head)
		munmap(s->head, BASE_SLOTS_BYTES);
	if (s->head && s->fd >= 0)
		close(s->fd);
	*s = (struct base_slots){.fd = -1};
}

/* --- writer ----------------------------------------------------------------------------------- */

static int memory_new(void)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	const int fd = memfd_create("roceway-slots", flags | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create("roceway-slots", flags) : fd;
}

int base_slots_new(struct base_slots *s)
{
	const int fd = memory_new();

	*s = (struct base_slots){.fd = -1};
	if (fd < 0)
		return RWY_ENOMEM;
	/* Without the seals a reader could cut the memory under the writer, and kill it so. */
	if (ftruncate(fd, BASE_SLOTS_BYTES) || fcntl(fd, F_ADD_SEALS, SEALS) || !map(s, fd)) {
		close(fd);
		return RWY_ENOMEM;
	}
	s->fd = fd;
	s->head->magic = MAGIC;
	s->head->version = VERSION;
	s->head->slots = BASE_SLOTS;
	s->head->slot_size = BASE_SLOT_SIZE;
	return 0;
}

union fd_message {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

bool base_slots_send(const struct base_slots *s, int socket)
{
	union fd_message control = {0};
	struct iovec byte = {.iov_base = (char[1]){0}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &byte,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &s->fd, sizeof(int));
	return sendmsg(socket, &m, MSG_NOSIGNAL) == 1;
}

uint8_t *base_slots_room(struct base_slots *s)
{
	struct base_slots_head *h = s->head;

	if (s->turn - atomic_load(&h->freed) < BASE_SLOTS)
		return slot(s);
	atomic_store(&h->writer_waits, 1);
	/* it may have given one back just before it could know */
	if (s->turn - atomic_load(&h->freed) >= BASE_SLOTS)
		return NULL;
	atomic_store(&h->writer_waits, 0);
	return slot(s);
}

void base_slots_fill(struct base_slots *s, uint32_t len)
{
	s->head->len[s->turn % BASE_SLOTS] = len;
	atomic_store(&s->head->filled, ++s->turn);
}

void base_slots_end(struct base_slots *s)
{
	atomic_store(&s->head->ended, 1);
}

void base_slots_wake_reader(const struct base_slots *s, int socket)
{
	if (atomic_load(&s->head->reader_waits) && atomic_exchange(&s->head->reader_waits, 0))
		send_byte(socket);
}

/* --- reader ----------------------------------------------------------------------------------- */

/* The file descriptor that comes with a byte; -1: none. */
static int receive_fd(int socket)
{
	union fd_message control;
	char byte;
	struct iovec to = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &to,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof(control.room)};
	const struct cmsghdr *c;
	int fd;

	if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

int base_slots_receive(struct base_slots *s, int socket)
{
	const int fd = receive_fd(socket);
	struct stat st;

	*s = (struct base_slots){.fd = -1};
	if (fd < 0)
		return RWY_EINVAL;
	if (fstat(fd, &st) || st.st_size != BASE_SLOTS_BYTES || !map(s, fd)) {
		close(fd);
		return RWY_EINVAL;
	}
	s->fd = fd;
	if (s->head->magic == MAGIC && s->head->version == VERSION && s->head->slots == BASE_SLOTS &&
	    s->head->slot_size == BASE_SLOT_SIZE)
		return 0;
	base_slots_close(s);
	return RWY_EINVAL;
}

const uint8_t *base_slots_next(const struct base_slots *s, size_t *len, bool *ended)
{
	const struct base_slots_head *h = s->head;
	const bool over = atomic_load(&h->ended);
	uint32_t n;

	*ended = false;
	*len = 0;
	if (atomic_load(&h->filled) == s->turn) {
		*ended = over; /* looked at first: what was filled before the end is seen */
		return NULL;
	}
	n = h->len[s->turn % BASE_SLOTS];
	*len = n < BASE_SLOT_SIZE ? n : BASE_SLOT_SIZE;
	return slot(s);
}

void base_slots_free_slot(struct base_slots *s, int socket)
{
	struct base_slots_head *h = s->head;

	atomic_store(&h->freed, ++s->turn);
	if (atomic_load(&h->writer_waits) && atomic_exchange(&h->writer_waits, 0))
		send_byte(socket);
}

bool base_slots_wait(const struct base_slots *s)
{
	struct base_slots_head *h = s->head;

	atomic_store(&h->reader_waits, 1);
	return atomic_load(&h->filled) == s->turn && !atomic_load(&h->ended);
}

/* --- both ------------------------------------------------------------------------------------- */

bool base_slots_woken(int socket)
{
	char bytes[4096];
	/* Once: the other side may send without end. What is left wakes again. */
	const ssize_t n = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}
