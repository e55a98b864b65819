/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device with rte_flow for test_gw_queues.c, whose ports are memory: the functions of rte_flow and the
 * driver's events are these. A flow that is not exactly a queue rule fails the test.
 */
#ifndef TESTS_COMPONENT_QUEUES_DEVICE_H
#define TESTS_COMPONENT_QUEUES_DEVICE_H

#include <rte_ethdev.h>
#include <rte_flow.h>

#include "rwy/ip.h"

#define DEVICE_FLOWS 64

struct rte_flow {
	bool used, vlan;
	uint16_t port, udp_port, queue;
	struct rwy_ip dst;
};

/* All ports together. A test clears it, with room. */
extern struct device {
	struct rte_flow flow[DEVICE_FLOWS];
	unsigned room; /* flows that it takes */
	bool no4, no6; /* it refuses a family */
	bool busy;     /* it creates none now */
	bool keeps;    /* it restores flows when it recovers */
	unsigned asked, made, removed;
	struct {
		rte_eth_dev_cb_fn fn;
		void *arg;
		uint16_t port;
		enum rte_eth_event_type event;
	} watch[8];
} device;

unsigned device_flows(void); /* that it has */
/* The queue of a datagram at a port; -1: no flow names one. */
int device_queue(uint16_t port, const struct rwy_ip *dst, uint16_t udp_port);
/* The driver reports an event. anew: the port has lost its flows. */
void device_event(uint16_t port, enum rte_eth_event_type event, bool anew);

#endif
