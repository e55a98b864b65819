/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared captures that were written after the analysis, which was not changed to fit them but
 * where docs/analyze.md says so.
 */
#include "tests/lib/cap_world.h"

#define WAY (10 * RWY_MS) /* one way over the WAN */

const struct cap_scene cap_held[] = {
    /* Native. */
    {"held-reorder", "loss", "1 % of packets come 100 us late over 20 ms, seen by the responder",
        .place = CAP_AT_B, .window = 4096, .program = {{RC_WRITE, 65536, 60, 60}},
        .to_b = {.delay = WAY, .reorder = 0.01, .reorder_extra = 100 * RWY_US}, .to_a.delay = WAY},
    {"held-outage", "timeout", "the path carries nothing for 400 ms", .program = {{RC_WRITE, 4096, 2000, 16}},
        .to_b = {.outage_from = RWY_SEC + RWY_MS, .outage_to = RWY_SEC + 401 * RWY_MS}},
    {"held-two", "rnr", "two queue pairs with nearly the same PSNs, one with late receives", .asked = 1,
        .program = {{RC_WRITE, 4096, 2000, 4}, {RC_SEND, 2048, 60, 4, .recv_every = 3 * RWY_MS}}},
    {"held-atomic", "read depth", "one FETCH ADD outstanding of 16 posted, over 20 ms",
        .program = {{RC_FAA, 8, 60, 16, .rd_max = 1}}, .to_b.delay = WAY, .to_a.delay = WAY},
    {"held-nic", "loss", "NICs with deep windows, 0.2 % loss over 1 ms", .nic = true,
        .program = {{RC_WRITE, 65536, 100, 100}}, .to_b = {.delay = RWY_MS / 2, .loss = 0.002},
        .to_a.delay = RWY_MS / 2},
    {"held-credits", "credits", "a receive each 3 ms over 20 ms", .credits = true,
        .program = {{RC_SEND, 1024, 100, 32, .recv_every = 3 * RWY_MS, .recvs = 8}}, .to_b.delay = WAY,
        .to_a.delay = WAY},
    {"held-timer", "timer", "a timer of 12 ms over 20 ms, cut packets in VXLAN", .timeout = 12 * RWY_MS,
        .snap = 128, .vni = 5, .program = {{RC_WRITE, 2048, 40, 2}}, .to_b.delay = WAY, .to_a.delay = WAY},
    /* Through two gateways. */
    {"held-gateway-lan", "timeout", "1 % loss between host A and its gateway, one message at a time",
        .gateways = true, .program = {{RC_WRITE, 4096, 300, 1}}, .lan_a.loss = 0.01, .to_b.delay = WAY,
        .to_a.delay = WAY},
    {"held-gateway-slow", "queue", "the far host takes 50 us for each packet, 1 MiB of custody",
        .gateways = true, .serve = 50 * RWY_US, .custody = 1 << 20, .program = {{RC_WRITE, 65536, 100, 16}},
        .to_b.delay = WAY, .to_a.delay = WAY},
    {"held-gateway-mtu", "mtu",
        "packets longer than 1000 bytes vanish before the far host, seen at its gateway", .gateways = true,
        .place = CAP_AT_GATEWAY_B, .mtu_most = 1000, .linger = 20 * RWY_SEC,
        .program = {{RC_WRITE, 65536, 10, 1, .first_size = 64}}, .to_b.delay = WAY, .to_a.delay = WAY},
};
const unsigned cap_held_n = sizeof(cap_held) / sizeof(cap_held[0]);
