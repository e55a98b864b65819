/* SPDX-License-Identifier: Apache-2.0 */
/* A device with rte_flow: see device.h. */
#include "tests/component/queues/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <rte_errno.h>
#include <string.h>

struct device device;

static int says(struct rte_flow_error *e, int rc, const char *words)
{
	*e = (struct rte_flow_error){.message = words};
	rte_errno = rc;
	return -rc;
}

static bool all_ones(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)p)[i] != 0xff)
			return false;
	return true;
}

/* Reads a flow, and fails unless it matches exactly what it should. */
static struct rte_flow flow_read(uint16_t port, const struct rte_flow_attr *attr,
    const struct rte_flow_item *item, const struct rte_flow_action *act)
{
	struct rte_flow f = {.used = true, .port = port};

	assert_true(attr->ingress && !attr->egress && !attr->transfer && !attr->group && !attr->priority);
	assert_int_equal(item->type, RTE_FLOW_ITEM_TYPE_ETH);
	assert_null(item->spec);
	item++;
	if (item->type == RTE_FLOW_ITEM_TYPE_VLAN) {
		assert_true(!item->spec && !item->mask && !item->last);
		f.vlan = true;
		item++;
	}
	if (item->type == RTE_FLOW_ITEM_TYPE_IPV4) {
		const struct rte_flow_item_ipv4 *s = item->spec, *m = item->mask;

		assert_int_equal(s->hdr.next_proto_id, IPPROTO_UDP);
		assert_int_equal(m->hdr.next_proto_id, 0xff);
		assert_true(all_ones(&m->hdr.dst_addr, 4) && !m->hdr.src_addr && !m->hdr.fragment_offset);
		f.dst = rwy_ip_from4((const uint8_t *)&s->hdr.dst_addr);
	} else {
		const struct rte_flow_item_ipv6 *s = item->spec, *m = item->mask;

		assert_int_equal(item->type, RTE_FLOW_ITEM_TYPE_IPV6);
		assert_int_equal(s->hdr.proto, IPPROTO_UDP);
		assert_int_equal(m->hdr.proto, 0xff);
		assert_true(all_ones(m->hdr.dst_addr, 16) && !m->hdr.src_addr[0]);
		memcpy(f.dst.b, s->hdr.dst_addr, 16);
	}
	item++;
	assert_int_equal(item->type, RTE_FLOW_ITEM_TYPE_UDP);
	{
		const struct rte_flow_item_udp *s = item->spec, *m = item->mask;

		assert_true(m->hdr.dst_port == 0xffff && !m->hdr.src_port && !m->hdr.dgram_len);
		f.udp_port = rte_be_to_cpu_16(s->hdr.dst_port);
	}
	assert_int_equal(item[1].type, RTE_FLOW_ITEM_TYPE_END);
	assert_int_equal(act[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	f.queue = ((const struct rte_flow_action_queue *)act[0].conf)->index;
	assert_int_equal(act[1].type, RTE_FLOW_ACTION_TYPE_END);
	return f;
}

unsigned device_flows(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < DEVICE_FLOWS; i++)
		n += device.flow[i].used;
	return n;
}

int __wrap_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
    const struct rte_flow_item *item, const struct rte_flow_action *act, struct rte_flow_error *e);
int __wrap_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
    const struct rte_flow_item *item, const struct rte_flow_action *act, struct rte_flow_error *e)
{
	const struct rte_flow f = flow_read(port, attr, item, act);

	device.asked++;
	if (rwy_ip_is4(&f.dst) ? device.no4 : device.no6)
		return says(e, ENOTSUP, "no such pattern");
	return 0;
}

struct rte_flow *__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
    const struct rte_flow_item *item, const struct rte_flow_action *act, struct rte_flow_error *e);
struct rte_flow *__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
    const struct rte_flow_item *item, const struct rte_flow_action *act, struct rte_flow_error *e)
{
	const struct rte_flow f = flow_read(port, attr, item, act);

	if (device.busy || device_flows() == device.room) {
		says(e, device.busy ? EBUSY : ENOSPC, device.busy ? "busy" : "table full");
		return NULL;
	}
	for (unsigned i = 0; i < DEVICE_FLOWS; i++) {
		struct rte_flow *at = &device.flow[i];

		assert_false(at->used && at->port == f.port && at->udp_port == f.udp_port &&
		             rwy_ip_eq(&at->dst, &f.dst)); /* twice the same */
	}
	for (unsigned i = 0; i < DEVICE_FLOWS; i++)
		if (!device.flow[i].used) {
			device.flow[i] = f;
			device.made++;
			return &device.flow[i];
		}
	fail_msg("no place");
	return NULL;
}

int __wrap_rte_flow_destroy(uint16_t port, struct rte_flow *f, struct rte_flow_error *e);
int __wrap_rte_flow_destroy(uint16_t port, struct rte_flow *f, struct rte_flow_error *e)
{
	assert_true(f->used && f->port == port);
	f->used = false;
	device.removed++;
	return 0;
}

int __real_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	const int rc = __real_rte_eth_dev_info_get(port, info);

	if (device.keeps)
		info->dev_capa |= RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP;
	return rc;
}

int __wrap_rte_eth_dev_callback_register(
    uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_register(
    uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg)
{
	for (unsigned i = 0; i < RTE_DIM(device.watch); i++)
		if (!device.watch[i].fn) {
			device.watch[i].fn = fn;
			device.watch[i].arg = arg;
			device.watch[i].port = port;
			device.watch[i].event = event;
			return 0;
		}
	return -ENOMEM;
}

int __wrap_rte_eth_dev_callback_unregister(
    uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_unregister(
    uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg)
{
	for (unsigned i = 0; i < RTE_DIM(device.watch); i++)
		if (device.watch[i].arg == arg && device.watch[i].event == event)
			device.watch[i].fn = NULL;
	return 0;
}

void device_event(uint16_t port, enum rte_eth_event_type event, bool anew)
{
	for (unsigned i = 0; anew && i < DEVICE_FLOWS; i++)
		device.flow[i].used &= device.flow[i].port != port;
	for (unsigned i = 0; i < RTE_DIM(device.watch); i++)
		if (device.watch[i].fn && device.watch[i].port == port && device.watch[i].event == event)
			device.watch[i].fn(port, event, device.watch[i].arg, NULL);
}

int device_queue(uint16_t port, const struct rwy_ip *dst, uint16_t udp_port)
{
	for (unsigned i = 0; i < DEVICE_FLOWS; i++) {
		const struct rte_flow *f = &device.flow[i];

		if (f->used && f->port == port && f->udp_port == udp_port && rwy_ip_eq(&f->dst, dst))
			return f->queue;
	}
	return -1;
}
