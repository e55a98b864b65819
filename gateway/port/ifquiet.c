/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel interface under an af_packet or af_xdp port. The kernel sees its frames too. The
 * gateway's addresses are on the taps in the same namespace, so the kernel would answer ARP and
 * ping a second time, send "port unreachable" for tunnel datagrams, or route the hosts' packets
 * itself. Strict reverse-path filtering (their routes lead to the tap), no ARP and no IPv6 prevent
 * that. Changed settings are restored at exit. An interface with addresses of its own belongs to
 * somebody else: it is left alone, with a warning.
 */
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/setup.h"

#define CHANGES_MAX (3 * CONF_PORTS_MAX)

static struct {
	char path[128];
	char old[16];
} changed[CHANGES_MAX];
static unsigned changes;

static bool file_read(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	out[n] = 0;
	out[strcspn(out, "\n")] = 0;
	return true;
}

bool gw_sysctl_write(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	if (fd >= 0)
		close(fd);
	return ok;
}

static void sysctl_change(const char *ifname, const char *dir, const char *key, const char *value)
{
	char path[128], old[16];

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", dir, ifname, key);
	if (!file_read(path, old, sizeof(old)) || !strcmp(old, value) || changes == CHANGES_MAX)
		return;
	if (!gw_sysctl_write(path, value)) {
		gw_log(GW_LOG_WARNING, "port", "cannot set %s to %s: the kernel may answer on %s too", path,
		    value, ifname);
		return;
	}
	memcpy(changed[changes].path, path, sizeof(path));
	memcpy(changed[changes].old, old, sizeof(old));
	changes++;
}

/* Whether the interface has configured addresses; the automatic link-local one does not count. */
static bool has_address(const char *ifname)
{
	struct ifaddrs *all, *a;
	bool found = false;

	if (getifaddrs(&all) != 0)
		return false;
	for (a = all; a; a = a->ifa_next) {
		if (!a->ifa_addr || strcmp(a->ifa_name, ifname) != 0)
			continue;
		if (a->ifa_addr->sa_family == AF_INET)
			found = true;
		if (a->ifa_addr->sa_family == AF_INET6 &&
		    !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr))
			found = true;
	}
	freeifaddrs(all);
	return found;
}

void gw_ifquiet_set(const char *ifname)
{
	if (has_address(ifname)) {
		gw_log(GW_LOG_WARNING, "port",
		    "%s has addresses of its own: the kernel answers there, too; remove them", ifname);
		return;
	}
	sysctl_change(ifname, "ipv4", "rp_filter", "1");
	sysctl_change(ifname, "ipv4", "arp_ignore", "8");
	sysctl_change(ifname, "ipv6", "disable_ipv6", "1");
}

void gw_ifquiet_restore(void)
{
	while (changes) {
		changes--;
		/* the interface may be gone */
		gw_sysctl_write(changed[changes].path, changed[changes].old);
	}
}
