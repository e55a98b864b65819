/* SPDX-License-Identifier: Apache-2.0 */
/* Gives up what the process does not need. */
#include "gateway/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sandbox.h"

#define BIT(c) ((uint64_t)1 << (c))

/*
 * For raw sockets, interfaces and addresses; pinned pages, huge pages and devices; thread
 * priorities; files of another owner that root may open. roceway-gateway.service names the same,
 * but for ports below 1024, which a gateway that is started by hand may listen on.
 */
static const uint64_t needed = BIT(CAP_NET_ADMIN) | BIT(CAP_NET_RAW) | BIT(CAP_NET_BIND_SERVICE) |
                               BIT(CAP_IPC_LOCK) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_RAWIO) |
                               BIT(CAP_SYS_NICE) | BIT(CAP_DAC_OVERRIDE);

static void failed(const char *what)
{
	gw_log(GW_LOG_WARNING, "main", "capabilities stay as they were: %s: %s", what, strerror(errno));
}

/* Without CAP_SETPCAP the bounding set stays; PR_SET_NO_NEW_PRIVS is as good. */
static void bound(void)
{
	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		if (!(needed & BIT(c)))
			(void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
}

void gw_privileges_drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	bound();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		failed("PR_SET_NO_NEW_PRIVS");
	if (syscall(SYS_capget, &head, data) != 0) {
		failed("capget");
		return;
	}
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(needed >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data) != 0)
		failed("capset");
}

/* The driver's program is taken off an interface when its port is closed. */
static enum base_sandbox kind_of(const struct conf *c)
{
	for (unsigned i = 0; i < c->ports; i++)
		if (!strncmp(c->port[i].device, "net_af_xdp", strlen("net_af_xdp")))
			return BASE_SANDBOX_AF_XDP;
	return BASE_SANDBOX_GATEWAY;
}

int gw_privileges_sandbox(const struct conf *c)
{
	char why[128];

	if (!c->sandbox) {
		gw_log(GW_LOG_WARNING, "main",
		    "sandbox: off: an intruder in this process can use all system calls and start programs");
		return 0;
	}
	if (!base_sandbox_enter(kind_of(c), why, sizeof(why)))
		return 0;
	gw_log(GW_LOG_ERROR, "main",
	    "cannot give up system calls: %s; `gateway.sandbox: off` runs the gateway without that", why);
	return RWY_EINVAL;
}

void gw_privileges_no_core(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
