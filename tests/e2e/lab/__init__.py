# SPDX-License-Identifier: Apache-2.0
# The lab's Python: two QEMU hosts with Soft-RoCE, two gateways, an emulated WAN; standard library
# only. Test files import from here: the decorators and the usual bad WAN.
from .dsl import BAD_WAN, CM_TIMER, PINGPONG_TIMER, TIMEOUT, ci, each, needs, short  # noqa: F401
