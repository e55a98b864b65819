/* SPDX-License-Identifier: Apache-2.0 */
/* Why a port's device was not found, from a sysfs of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/port/device.h"

static void test_why(void **state)
{
	static const struct {
		const char *device, *why;
	} cases[] = {
	    {"0000:3b:00.0", "kernel driver ice has it: bind it to vfio-pci (VFIO_DEVICES in "},
	    {"3b:00.0,some=thing", "kernel driver ice has it: "},
	    {"0000:3B:00.0", "kernel driver ice has it: "},
	    {"0000:3b:00.1", "no kernel driver has it: bind it to vfio-pci"},
	    {"0000:3b:00.2", "the reason is above; if there is none, DPDK has no driver for it"},
	    {"0000:3b:00.3", "the reason is above; if there is none"},
	    {"0000:3c:00.0", "this machine has no PCI device 0000:3c:00.0"},
	    {"net_af_packet0,iface=eth1", "the reason is above"},
	    {"auxiliary:mlx5_core.sf.4", "the reason is above"},
	};
	char folder[] = "/tmp/rwy-device-XXXXXX", command[1024], why[160];

	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command),
	    "cd %s && mkdir -p bus/pci/devices && cd bus/pci/devices && mkdir 0000:3b:00.0 0000:3b:00.1 "
	    "0000:3b:00.2 0000:3b:00.3 && ln -s ../../drivers/ice 0000:3b:00.0/driver && "
	    "ln -s ../../drivers/vfio-pci 0000:3b:00.2/driver && "
	    "ln -s ../../drivers/mlx5_core 0000:3b:00.3/driver",
	    folder);
	assert_int_equal(system(command), 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		gw_device_why(folder, cases[i].device, why, sizeof(why));
		if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0)
			fail_msg("%s: %s", cases[i].device, why);
	}
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_why)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
