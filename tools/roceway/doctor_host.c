/* SPDX-License-Identifier: Apache-2.0 */
/* roceway doctor --host: the checks of a host whose RDMA traffic goes through a gateway. */
#include "tools/roceway/doctor.h"

#include <stdlib.h>
#include <string.h>

static const char *device; /* the RDMA device and port being checked */
static unsigned devices, v2_gids;

static void check_gid(struct doctor *d, const char *index)
{
	char type[32], gid[64];

	if (doctor_read(d, type, sizeof(type), "sys/class/infiniband/%.40s/ports/1/gid_attrs/types/%.8s",
	        device, index) &&
	    !strcmp(type, "RoCE v2") &&
	    doctor_read(d, gid, sizeof(gid), "sys/class/infiniband/%.40s/ports/1/gids/%.8s", device, index) &&
	    strncmp(gid, "fe80", 4) != 0 && strncmp(gid, "0000:0000:0000:0000:0000:0000:0000", 34) != 0)
		v2_gids++;
}

static void check_counter(struct doctor *d, const char *name, const char *meaning, const char *todo)
{
	const long long n =
	    doctor_number(d, "sys/class/infiniband/%.40s/ports/1/hw_counters/%s", device, name);

	if (n > 0)
		doctor_add(d, DOCTOR_NOTE, name, todo, "%s: %lld since the start: %s", device, n, meaning);
}

static void check_counters(struct doctor *d)
{
	check_counter(d, "rnr_nak_retry_err", "a receiver posted no buffers, and the sender gave up",
	    "Use rnr_retry 7, or post more receives.");
	check_counter(d, "local_ack_timeout_err", "ACKs did not come in time",
	    "With a gateway they come from it: look at roceway flows there. Without one the timeout must "
	    "exceed the round trip.");
	check_counter(d, "rx_icrc_encapsulated", "packets came damaged",
	    "Look at cables, optics and switches of the LAN.");
	check_counter(d, "out_of_sequence", "packets were lost or reordered on the way to this host",
	    "Turn on PFC or ECN on the LAN, and look at its switches' drop counters.");
	check_counter(d, "retry_exceeded_err", "queue pairs died: transport retry count exceeded",
	    "See local_ack_timeout_err, and the gateway's log.");
}

static void check_netdev(struct doctor *d, const char *name)
{
	const long long mtu = doctor_number(d, "sys/class/net/%.32s/mtu", name);

	if (mtu < 0)
		return;
	if (mtu < 4200)
		doctor_add(d, DOCTOR_NOTE, "mtu",
		    "4200 or more lets RoCE use its MTU of 4096: fewer packets for the same data. All of the "
		    "LAN must have it.",
		    "%s: %s has MTU %lld", device, name, mtu);
	else
		doctor_add(d, DOCTOR_OK, "mtu", NULL, "%s: %s has MTU %lld", device, name, mtu);
	if (doctor_number(d, "sys/class/net/%.32s/carrier", name) != 1)
		doctor_add(d, DOCTOR_BAD, "link", "Look at the cable and the switch.", "%s: %s has no link",
		    device, name);
}

static void check_device(struct doctor *d, const char *name)
{
	char state[32], layer[32], dir[160];

	devices++;
	device = name;
	if (doctor_read(d, layer, sizeof(layer), "sys/class/infiniband/%.40s/ports/1/link_layer", name) &&
	    strcmp(layer, "Ethernet") != 0) {
		doctor_add(d, DOCTOR_NOTE, "link layer", "Gateways carry RoCEv2, which is over Ethernet.",
		    "%s is %s", name, layer);
		return;
	}
	if (doctor_read(d, state, sizeof(state), "sys/class/infiniband/%.40s/ports/1/state", name) &&
	    !strstr(state, "ACTIVE"))
		doctor_add(d, DOCTOR_BAD, "port", "Bring its network interface up, and look at the link.",
		    "%s is %s", name, state);
	else
		doctor_add(d, DOCTOR_OK, "port", NULL, "%s is active", name);
	v2_gids = 0;
	snprintf(dir, sizeof(dir), "sys/class/infiniband/%.40s/ports/1/gid_attrs/types", name);
	doctor_each(d, dir, check_gid);
	if (v2_gids)
		doctor_add(d, DOCTOR_OK, "gid", NULL, "%s has %u routable RoCE v2 GIDs", name, v2_gids);
	else
		doctor_add(d, DOCTOR_BAD, "gid",
		    "Give its interface a global address, and use the GID index of type RoCE v2 "
		    "(NCCL_IB_GID_INDEX, ib_write_bw -x): "
		    "RoCE v1 and link-local GIDs cannot be routed.",
		    "%s has no routable RoCE v2 GID", name);
	snprintf(dir, sizeof(dir), "sys/class/infiniband/%.40s/device/net", name);
	doctor_each(d, dir, check_netdev);
	check_counters(d);
}

void doctor_host(struct doctor *d)
{
	devices = 0;
	doctor_each(d, "sys/class/infiniband", check_device);
	if (!devices)
		doctor_add(d, DOCTOR_BAD, "devices",
		    "Load the NIC's RDMA driver: modprobe mlx5_ib, irdma, bnxt_re or rdma_rxe.",
		    "this host has no RDMA device");
	doctor_add(d, DOCTOR_NOTE, "not checked",
	    "mlnx_qos -i IF or dcb pfc show dev IF tells PFC; ib_write_bw -u sets a test's timeout.",
	    "PFC, timeouts of programs and ICRC settings of the NIC are not in /sys");
}
