/* SPDX-License-Identifier: Apache-2.0 */
/* roceway doctor: the checks of a machine that is, or becomes, a gateway. */
#include "tools/roceway/doctor.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_cpu(struct doctor *d)
{
	static const char *const needed[] = {" avx2", " bmi2", " fma", " movbe"};
	static char text[16384];

	if (!doctor_read(d, text, sizeof(text), "proc/cpuinfo"))
		return;
	for (char *c = text; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	for (unsigned i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!strstr(text, needed[i])) {
			doctor_add(d, DOCTOR_BAD, "processor",
			    "The programs need x86-64-v3: another machine, or a CPU model with AVX2 for the "
			    "virtual one.",
			    "it has no%s", needed[i]);
			return;
		}
	doctor_add(d, DOCTOR_OK, "processor", NULL, "it has what x86-64-v3 asks for");
}

static void check_hugepages(struct doctor *d)
{
	static const char two[] = "hugepages-2048kB", one[] = "hugepages-1048576kB";
	const long long n2 = doctor_number(d, "sys/kernel/mm/hugepages/%s/nr_hugepages", two),
	                f2 = doctor_number(d, "sys/kernel/mm/hugepages/%s/free_hugepages", two),
	                n1 = doctor_number(d, "sys/kernel/mm/hugepages/%s/nr_hugepages", one),
	                f1 = doctor_number(d, "sys/kernel/mm/hugepages/%s/free_hugepages", one);

	if (n2 <= 0 && n1 <= 0)
		doctor_add(d, DOCTOR_BAD, "hugepages",
		    "Set HUGEPAGES_2M or HUGEPAGES_1G in /etc/default/roceway-gateway, or hugepages= on the "
		    "kernel's "
		    "command line. Only software ports do without.",
		    "there are none");
	else
		doctor_add(d, DOCTOR_OK, "hugepages", NULL, "2 MiB: %lld, %lld free; 1 GiB: %lld, %lld free",
		    n2 < 0 ? 0 : n2, f2 < 0 ? 0 : f2, n1 < 0 ? 0 : n1, f1 < 0 ? 0 : f1);
}

static void check_isolation(struct doctor *d)
{
	char isolated[256], line[4096];
	const bool known = doctor_read(d, isolated, sizeof(isolated), "sys/devices/system/cpu/isolated");

	if (!known)
		return;
	if (!*isolated)
		doctor_add(d, DOCTOR_NOTE, "cpu isolation",
		    "With polling: busy, give workers CPUs of their own: isolcpus= and nohz_full= on the "
		    "kernel's "
		    "command line, and the same CPUs in eal.cores.",
		    "no CPU is isolated: other programs interrupt the workers");
	else
		doctor_add(d, DOCTOR_OK, "cpu isolation", NULL, "CPUs %s are isolated", isolated);
	if (*isolated && doctor_read(d, line, sizeof(line), "proc/cmdline") && !strstr(line, "nohz_full="))
		doctor_add(d, DOCTOR_NOTE, "cpu ticks", "Add nohz_full= with the same CPUs.",
		    "the timer interrupts the isolated CPUs");
}

static void check_frequency(struct doctor *d)
{
	char governor[64];

	if (doctor_read(
	        d, governor, sizeof(governor), "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") &&
	    strcmp(governor, "performance") != 0)
		doctor_add(d, DOCTOR_NOTE, "cpu frequency", "cpupower frequency-set -g performance",
		    "the governor is %s: the first packets after a pause are slow", governor);
}

static void check_clock(struct doctor *d)
{
	char clock[64];

	if (!doctor_read(
	        d, clock, sizeof(clock), "sys/devices/system/clocksource/clocksource0/current_clocksource") ||
	    !*clock)
		return;
	if (strcmp(clock, "tsc") != 0 && strcmp(clock, "kvm-clock") != 0)
		doctor_add(d, DOCTOR_BAD, "clock",
		    "Pacing needs a steady TSC: look for \"tsc: Marking TSC unstable\" in dmesg, and at BIOS "
		    "and hypervisor.",
		    "the clock source is %s", clock);
	else
		doctor_add(d, DOCTOR_OK, "clock", NULL, "the clock source is %s", clock);
}

static unsigned iommu_groups;

static void count_group(struct doctor *d, const char *name)
{
	iommu_groups++;
}

static void check_iommu(struct doctor *d)
{
	char unsafe[8];

	iommu_groups = 0;
	doctor_each(d, "sys/kernel/iommu_groups", count_group);
	if (iommu_groups)
		doctor_add(d, DOCTOR_OK, "iommu", NULL, "it is on: %u groups", iommu_groups);
	else
		doctor_add(d, DOCTOR_NOTE, "iommu",
		    "For PCI devices with vfio-pci: turn it on in the BIOS and with intel_iommu=on iommu=pt "
		    "(AMD: iommu=pt). "
		    "mlx5 and software ports do not need it.",
		    "it is off");
	if (doctor_read(d, unsafe, sizeof(unsafe), "sys/module/vfio/parameters/enable_unsafe_noiommu_mode") &&
	    *unsafe == 'Y')
		doctor_add(d, DOCTOR_NOTE, "vfio",
		    "Only for virtual machines: such a device can write to all memory.",
		    "it works without an IOMMU");
}

/* The driver's name of a network interface or PCI device. */
static bool driver_of(const struct doctor *d, const char *dev, char *out, size_t size)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s/driver", d->root, dev);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = 0;
	slash = strrchr(target, '/');
	snprintf(out, size, "%.63s", slash ? slash + 1 : target);
	return true;
}

/* An Ethernet controller that vfio-pci has. */
static void check_pci(struct doctor *d, const char *name)
{
	char class[32], driver[64], dev[320];
	const long long node = doctor_number(d, "sys/bus/pci/devices/%.64s/numa_node", name);

	snprintf(dev, sizeof(dev), "sys/bus/pci/devices/%.64s", name);
	if (!doctor_read(d, class, sizeof(class), "%s/class", dev) || strncmp(class, "0x0200", 6) != 0 ||
	    !driver_of(d, dev, driver, sizeof(driver)))
		return;
	if (!strcmp(driver, "vfio-pci"))
		doctor_add(d, DOCTOR_OK, "port", NULL, "%s is bound to vfio-pci, NUMA node %lld", name, node);
	else if (!strcmp(driver, "mlx5_core"))
		doctor_add(d, DOCTOR_OK, "port", NULL,
		    "%s is mlx5, which stays with its driver; NUMA node %lld", name, node);
	if (node > 0 &&
	    doctor_number(
	        d, "sys/devices/system/node/node%lld/hugepages/hugepages-2048kB/nr_hugepages", node) <= 0 &&
	    doctor_number(
	        d, "sys/devices/system/node/node%lld/hugepages/hugepages-1048576kB/nr_hugepages", node) <= 0)
		doctor_add(d, DOCTOR_BAD, "numa",
		    "Set HUGEPAGES_NODES in /etc/default/roceway-gateway, and take eal.cores of that node.",
		    "%s is at NUMA node %lld, which has no hugepages", name, node);
}

static void check_link(struct doctor *d, const char *name)
{
	const long long mtu = doctor_number(d, "sys/class/net/%.32s/mtu", name),
	                up = doctor_number(d, "sys/class/net/%.32s/carrier", name);
	char dev[320], driver[64];

	snprintf(dev, sizeof(dev), "sys/class/net/%.32s/device", name);
	if (!driver_of(d, dev, driver, sizeof(driver)))
		return; /* not a NIC */
	if (up != 1)
		doctor_add(d, DOCTOR_NOTE, "link",
		    "If it is to be a port: look at cable, transceiver and switch.", "%s (%s) has no link",
		    name, driver);
	else if (mtu < 4200)
		doctor_add(d, DOCTOR_NOTE, "mtu",
		    "As a WAN port, an MTU of 4300 or more saves splitting packets of hosts with RoCE MTU "
		    "4096, if the whole "
		    "path can.",
		    "%s (%s) has MTU %lld", name, driver, mtu);
	else
		doctor_add(d, DOCTOR_OK, "link", NULL, "%s (%s) is up with MTU %lld", name, driver, mtu);
}

static void check_irqbalance(struct doctor *d, const char *name)
{
	char comm[32];

	if (*name >= '0' && *name <= '9' && doctor_read(d, comm, sizeof(comm), "proc/%.16s/comm", name) &&
	    !strcmp(comm, "irqbalance"))
		doctor_add(d, DOCTOR_NOTE, "interrupts",
		    "Set IRQBALANCE_BANNED_CPULIST to the workers' CPUs in /etc/default/irqbalance.",
		    "irqbalance runs and may put interrupts on the workers' CPUs");
}

void doctor_gateway(struct doctor *d)
{
	check_cpu(d);
	check_hugepages(d);
	check_isolation(d);
	check_frequency(d);
	check_clock(d);
	check_iommu(d);
	doctor_each(d, "sys/bus/pci/devices", check_pci);
	doctor_each(d, "sys/class/net", check_link);
	doctor_each(d, "proc", check_irqbalance);
}
