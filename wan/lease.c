/* SPDX-License-Identifier: Apache-2.0 */
#include "wan/lease.h"

#include <stdbool.h>

void wan_leases_init(struct wan_leases *all, unsigned halves)
{
	all->halves = halves;
	atomic_store_explicit(&all->free, WAN_LEASE_WHOLE % halves, memory_order_relaxed);
	for (unsigned i = 0; i < halves; i++)
		atomic_store_explicit(&all->demand[i], 0, memory_order_relaxed);
}

void wan_lease_begin(struct wan_lease *l, const struct wan_leases *all)
{
	*l = (struct wan_lease){.held = WAN_LEASE_WHOLE / all->halves};
}

/* Demands of all halves, at least what each of them keeps. Returns their sum. */
static uint64_t read_demands(const struct wan_leases *all, uint32_t *demand)
{
	const uint32_t least = WAN_LEASE_WHOLE / all->halves / WAN_LEASE_LEAST;
	uint64_t sum = 0;

	for (unsigned i = 0; i < all->halves; i++) {
		demand[i] = atomic_load_explicit(&all->demand[i], memory_order_relaxed);
		demand[i] = demand[i] < least ? least : demand[i];
		sum += demand[i];
	}
	return sum;
}

/*
 * The level of max-min fairness, where the demands are more than the whole: each half gets its
 * demand, or this. Halves that want less than an equal part of the rest get their demand, again and
 * again, until no such half is left.
 */
static uint32_t level_of(const uint32_t *demand, unsigned halves)
{
	bool served[WAN_HALVES_MAX] = {false}, any;
	uint32_t left = WAN_LEASE_WHOLE, level = left / halves;
	unsigned n = halves; /* that are not served yet */

	do {
		any = false;
		for (unsigned i = 0; i < halves; i++) {
			if (served[i] || demand[i] > level)
				continue;
			served[i] = any = true;
			left -= demand[i];
			n--;
		}
		if (n)
			level = left / n;
	} while (any);
	return level;
}

/* The part that the half should hold. The halves share equally the part that nobody wants, since a
 * demand may grow at once. */
static uint32_t target_of(const struct wan_leases *all, unsigned half)
{
	uint32_t demand[WAN_HALVES_MAX], level;
	uint64_t sum = read_demands(all, demand);

	if (sum <= WAN_LEASE_WHOLE)
		return demand[half] + (uint32_t)((WAN_LEASE_WHOLE - sum) / all->halves);
	level = level_of(demand, all->halves);
	return demand[half] < level ? demand[half] : level;
}

static uint32_t take(struct wan_leases *all, uint32_t want)
{
	uint32_t free = atomic_load_explicit(&all->free, memory_order_relaxed), n;

	do
		n = want < free ? want : free;
	while (n && !atomic_compare_exchange_weak_explicit(
	                &all->free, &free, free - n, memory_order_acquire, memory_order_relaxed));
	return n;
}

uint32_t wan_lease_turn(struct wan_lease *l, struct wan_leases *all, unsigned half, uint32_t demand)
{
	const uint32_t last = atomic_load_explicit(&all->demand[half], memory_order_relaxed);
	uint32_t slowly = last - last / 4, target;

	if (demand > WAN_LEASE_WHOLE)
		demand = WAN_LEASE_WHOLE;
	atomic_store_explicit(&all->demand[half], demand > slowly ? demand : slowly, memory_order_relaxed);
	target = target_of(all, half);
	if (l->held > target) {
		l->giving += l->held - target;
		l->held = target;
	} else if (l->held < target) {
		l->held += take(all, target - l->held);
	}
	return l->held;
}

void wan_lease_release(struct wan_lease *l, struct wan_leases *all)
{
	atomic_fetch_add_explicit(&all->free, l->giving, memory_order_release);
	l->giving = 0;
}
