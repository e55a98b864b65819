/* SPDX-License-Identifier: Apache-2.0 */
/* The device, and librdmacm: ids and their events. fake_verbs.c has libibverbs. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/lib/rdma/fake_int.h"

#define SAID 64

struct rdma_fake rdma_fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
    .device = {.device = &rdma_fake.what},
    .pd = {.context = &rdma_fake.device}};
static uint8_t net = 10;

struct event {
	struct rdma_cm_event pub;
	uint8_t said[SAID];
	struct event *next;
};

struct channel {
	struct rdma_event_channel pub;
	struct event *first;
};

static struct rdma_fake_id *ids;

void rdma_fake_fault(enum rdma_fake_fault f)
{
	pthread_mutex_lock(&rdma_fake.lock);
	rdma_fake.fault = f;
	pthread_mutex_unlock(&rdma_fake.lock);
}

bool rdma_fake_waits(void)
{
	bool waits;

	pthread_mutex_lock(&rdma_fake.lock);
	waits = rdma_fake.fault > RDMA_FAKE_CUT;
	pthread_mutex_unlock(&rdma_fake.lock);
	return waits;
}

void rdma_fake_listen(void (*fn)(const uint8_t *p, uint32_t n))
{
	pthread_mutex_lock(&rdma_fake.lock);
	rdma_fake.hears = fn;
	pthread_mutex_unlock(&rdma_fake.lock);
}

void rdma_fake_counters(const char *folder)
{
	snprintf(rdma_fake.what.ibdev_path, sizeof(rdma_fake.what.ibdev_path), "%s", folder);
}

void rdma_fake_net(uint8_t first)
{
	net = first;
}

struct rdma_fake_count rdma_fake_count(void)
{
	struct rdma_fake_count c;

	pthread_mutex_lock(&rdma_fake.lock);
	c = rdma_fake.count;
	pthread_mutex_unlock(&rdma_fake.lock);
	return c;
}

void *rdma_fake_make(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		RDMA_FAKE_DIE("no memory\n");
	__atomic_add_fetch(&rdma_fake.count.objects, 1, __ATOMIC_RELAXED);
	return p;
}

void rdma_fake_unmake(void *p)
{
	__atomic_sub_fetch(&rdma_fake.count.objects, 1, __ATOMIC_RELAXED);
	free(p);
}

void rdma_fake_ring(int fd)
{
	if (write(fd, &(uint64_t){1}, 8) < 0)
		RDMA_FAKE_DIE("eventfd\n");
}

/* --- the connection manager: events ----------------------------------------------------------- */
static void tell(struct rdma_fake_id *to, enum rdma_cm_event_type type, struct rdma_fake_id *listener,
    const struct rdma_conn_param *param)
{
	struct channel *ch = (struct channel *)to->pub.channel;
	struct event *e = rdma_fake_make(sizeof(*e)), **at = &ch->first;

	e->pub = (struct rdma_cm_event){
	    .id = &to->pub, .listen_id = listener ? &listener->pub : NULL, .event = type};
	if (param && param->private_data_len) {
		memcpy(e->said, param->private_data, param->private_data_len);
		e->pub.param.conn.private_data = e->said;
		e->pub.param.conn.private_data_len = SAID - 8; /* padded with zeros */
	}
	while (*at)
		at = &(*at)->next;
	*at = e;
	rdma_fake_ring(ch->pub.fd);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *ch = rdma_fake_make(sizeof(*ch));

	ch->pub.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return &ch->pub;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct channel *ch = (struct channel *)channel;

	if (ch->first)
		RDMA_FAKE_DIE("events of a destroyed channel\n");
	close(ch->pub.fd);
	rdma_fake_unmake(ch);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct channel *ch = (struct channel *)channel;
	uint64_t n;

	pthread_mutex_lock(&rdma_fake.lock);
	if (!ch->first) {
		(void)!read(ch->pub.fd, &n, 8);
		pthread_mutex_unlock(&rdma_fake.lock);
		return rdma_fake_fail(EAGAIN);
	}
	*event = &ch->first->pub;
	ch->first = ch->first->next;
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	rdma_fake_unmake(event);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return "event of the fake";
}

void rdma_fake_remove(void)
{
	pthread_mutex_lock(&rdma_fake.lock);
	net = 0;
	for (struct rdma_fake_id *i = ids; i; i = i->next)
		tell(i, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL, NULL);
	pthread_mutex_unlock(&rdma_fake.lock);
}

/* --- ids -------------------------------------------------------------------------------------- */
static struct rdma_fake_id *id_new(struct rdma_event_channel *channel, void *context)
{
	struct rdma_fake_id *i = rdma_fake_make(sizeof(*i));

	i->pub.channel = channel;
	i->pub.context = context;
	i->next = ids;
	ids = i;
	return i;
}

int rdma_create_id(
    struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	pthread_mutex_lock(&rdma_fake.lock);
	*id = &id_new(channel, context)->pub;
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

static void part(struct rdma_fake_id *i, const struct rdma_conn_param *said)
{
	struct rdma_fake_id *peer = i->peer;

	if (!peer)
		return;
	if (i->connected)
		tell(peer, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL);
	else if (i->asks)
		tell(peer, RDMA_CM_EVENT_REJECTED, NULL, said);
	i->connected = peer->connected = false;
	i->peer = peer->peer = NULL;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct rdma_fake_id *i = (struct rdma_fake_id *)id, **at = &ids;
	struct event **e, *gone;

	pthread_mutex_lock(&rdma_fake.lock);
	if (id->qp)
		RDMA_FAKE_DIE("an id with a queue pair\n");
	part(i, NULL);
	for (e = &((struct channel *)id->channel)->first; *e;)
		if ((*e)->pub.id == id) {
			gone = *e;
			*e = gone->next;
			rdma_fake_unmake(gone);
		} else {
			e = &(*e)->next;
		}
	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	rdma_fake_unmake(i);
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

static void device_set(struct rdma_cm_id *id)
{
	id->verbs = &rdma_fake.device;
	id->port_num = 1;
	id->pd = &rdma_fake.pd;
}

static bool has_device(const struct sockaddr *a)
{
	return a->sa_family == AF_INET &&
	       (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24) == net;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (!has_device(addr))
		return rdma_fake_fail(ENODEV);
	memcpy(&id->route.addr.src_storage, addr, sizeof(struct sockaddr_in));
	device_set(id);
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	((struct rdma_fake_id *)id)->listens = true;
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	if (rdma_bind_addr(id, src))
		return -1;
	memcpy(&id->route.addr.dst_storage, dst, sizeof(struct sockaddr_in));
	pthread_mutex_lock(&rdma_fake.lock);
	tell((struct rdma_fake_id *)id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL);
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	pthread_mutex_lock(&rdma_fake.lock);
	tell((struct rdma_fake_id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL);
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct rdma_fake_id *i = (struct rdma_fake_id *)id, *l = ids, *asked;

	pthread_mutex_lock(&rdma_fake.lock);
	while (l && !(l->listens && !memcmp(&l->pub.route.addr.src_sin, &id->route.addr.dst_sin, 8)))
		l = l->next;
	if (!l || rdma_fake.fault == RDMA_FAKE_CUT) {
		tell(i, l ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED, NULL, NULL);
	} else {
		asked = id_new(l->pub.channel, l->pub.context);
		asked->pub.route.addr.dst_sin = id->route.addr.src_sin;
		device_set(&asked->pub);
		asked->asks = true;
		asked->peer = i;
		i->peer = asked;
		tell(asked, RDMA_CM_EVENT_CONNECT_REQUEST, l, param);
	}
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct rdma_fake_id *i = (struct rdma_fake_id *)id;

	pthread_mutex_lock(&rdma_fake.lock);
	if (!i->peer) {
		pthread_mutex_unlock(&rdma_fake.lock);
		return rdma_fake_fail(ENOTCONN);
	}
	i->asks = false;
	i->connected = i->peer->connected = true;
	tell(i->peer, RDMA_CM_EVENT_ESTABLISHED, NULL, param);
	tell(i, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL);
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	const struct rdma_conn_param said = {.private_data = data, .private_data_len = len};

	pthread_mutex_lock(&rdma_fake.lock);
	part((struct rdma_fake_id *)id, &said);
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return rdma_reject(id, NULL, 0);
}
