/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision engine of one direction; see link.h for the model. Integer time in ns; no clock,
 * socket or bytes here but for wanem_copy_corrupt.
 */
#include "tools/wanem/link.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* Splitmix64's finalizer: a bijection whose values look random for a counter. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t draw(const struct wanem_link *link, enum wanem_stream stream)
{
	return mix(link->key[stream] + link->n * GOLDEN);
}

static bool hit(const struct wanem_link *link, enum wanem_stream stream, double p)
{
	if (p <= 0)
		return false;
	return (double)(draw(link, stream) >> 11) < p * 0x1p53;
}

void wanem_cfg_default(struct wanem_cfg *cfg)
{
	*cfg = (struct wanem_cfg){
	    .keep_order = true,
	    .queue = 1000,
	    .burst = 1,
	    .ge_bad = 1,
	    .reorder_delay = 1000000,
	    .corrupt_bits = 1,
	};
}

static bool is_prob(double p)
{
	return p >= 0 && p <= 1; /* false for a NaN */
}

const char *wanem_cfg_check(const struct wanem_cfg *cfg)
{
	if (!is_prob(cfg->loss) || !is_prob(cfg->ge_p) || !is_prob(cfg->ge_r) || !is_prob(cfg->ge_bad) ||
	    !is_prob(cfg->ge_good) || !is_prob(cfg->reorder) || !is_prob(cfg->dup) || !is_prob(cfg->corrupt))
		return "a probability is not between 0 and 1";
	if (!(cfg->burst >= 1))
		return "burst is less than 1 packet";
	if (cfg->burst > 1 && cfg->ge_p > 0)
		return "burst and ge exclude each other";
	if (cfg->ge_p > 0 && cfg->ge_r <= 0)
		return "ge: r is 0, so that the bad state would never end";
	if (cfg->burst > 1 && cfg->loss > cfg->burst / (cfg->burst + 1))
		return "loss is too high for this burst length: at most burst/(burst+1)";
	if (cfg->queue < 1)
		return "queue is less than 1";
	if (cfg->corrupt_bits < 1 || cfg->corrupt_bits > WANEM_MAX_CORRUPT)
		return "corrupt-bits is not between 1 and 64";
	return NULL;
}

void wanem_link_init(struct wanem_link *link, uint64_t seed, const struct wanem_cfg *cfg)
{
	memset(link, 0, sizeof(*link));
	for (unsigned i = 0; i < WANEM_RND_COUNT; i++)
		link->key[i] = mix(mix(seed + GOLDEN) + (i + 1) * GOLDEN);
	wanem_link_set(link, cfg);
}

void wanem_link_free(struct wanem_link *link)
{
	free(link->svc);
	link->svc = NULL;
	link->svc_cap = link->svc_count = 0;
}

void wanem_link_set(struct wanem_link *link, const struct wanem_cfg *cfg)
{
	bool was_on = link->ge_on;

	if (cfg->rate != link->cfg.rate)
		link->rate_rem = 0;
	link->cfg = *cfg;
	link->ge_on = cfg->ge_p > 0 || (cfg->burst > 1 && cfg->loss > 0);
	if (!link->ge_on) {
		link->ge_is_bad = false;
		return;
	}
	if (cfg->ge_p > 0) {
		link->ge_p = cfg->ge_p;
		link->ge_r = cfg->ge_r;
		link->ge_bad = cfg->ge_bad;
		link->ge_good = cfg->ge_good;
	} else { /* all is lost in the bad state: 1/r is the mean burst, p/(p+r) the loss */
		link->ge_r = 1 / cfg->burst;
		link->ge_p = link->ge_r * cfg->loss / (1 - cfg->loss);
		link->ge_bad = 1;
		link->ge_good = 0;
	}
	if (!was_on) /* start as if the process had always run */
		link->ge_is_bad = hit(link, WANEM_RND_GE_STATE, link->ge_p / (link->ge_p + link->ge_r));
}

void wanem_link_outage(struct wanem_link *link, uint64_t until)
{
	link->down_until = until;
}

bool wanem_link_is_down(const struct wanem_link *link, uint64_t now)
{
	return now < link->down_until;
}

static void svc_expire(struct wanem_link *link, uint64_t now)
{
	while (link->svc_count && link->svc[link->svc_head].finish <= now) {
		link->svc_bytes -= link->svc[link->svc_head].len;
		link->svc_head = (link->svc_head + 1) & (link->svc_cap - 1);
		link->svc_count--;
	}
}

static bool svc_grow(struct wanem_link *link)
{
	uint32_t cap = link->svc_cap ? link->svc_cap * 2 : 256;
	struct wanem_service *svc = malloc(cap * sizeof(*svc));

	if (!svc)
		return false;
	for (uint32_t i = 0; i < link->svc_count; i++)
		svc[i] = link->svc[(link->svc_head + i) & (link->svc_cap - 1)];
	free(link->svc);
	link->svc = svc;
	link->svc_cap = cap;
	link->svc_head = 0;
	return true;
}

/* The bottleneck. False: no room. Else *finish is the time when the last bit is on the line. */
static bool serve(struct wanem_link *link, uint32_t len, uint64_t *finish, uint64_t now)
{
	const struct wanem_cfg *cfg = &link->cfg;
	bool busy = link->busy_until > now;

	svc_expire(link, now);
	*finish = busy ? link->busy_until : now;
	if (!cfg->rate && !busy)
		return true;
	if (cfg->queue_in_bytes ? link->svc_bytes + len > cfg->queue : link->svc_count >= cfg->queue)
		return false;
	if (link->svc_count == link->svc_cap && !svc_grow(link))
		return false;
	if (cfg->rate) {
		uint64_t bits = (uint64_t)len * 8 * UINT64_C(1000000000) + (busy ? link->rate_rem : 0);

		*finish += bits / cfg->rate;
		link->rate_rem = bits % cfg->rate;
	}
	link->busy_until = *finish;
	link->svc[(link->svc_head + link->svc_count) & (link->svc_cap - 1)] =
	    (struct wanem_service){.finish = *finish, .len = len};
	link->svc_count++;
	link->svc_bytes += len;
	if (link->svc_count > link->queue_max)
		link->queue_max = link->svc_count;
	if (link->svc_bytes > link->queue_max_bytes)
		link->queue_max_bytes = link->svc_bytes;
	return true;
}

/* The sum of twelve uniform 16-bit numbers is nearly normal: mean 6, deviation 1, bounds +-6,
 * without floating point. */
static int64_t normal_16(uint64_t r)
{
	int64_t sum = -6 * INT64_C(65535);

	for (int i = 0; i < 3; i++, r = mix(r + GOLDEN))
		sum += (int64_t)(r & 0xffff) + (int64_t)(r >> 16 & 0xffff) + (int64_t)(r >> 32 & 0xffff) +
		       (int64_t)(r >> 48);
	return sum;
}

/* This packet's delay with jitter, never negative. */
static uint64_t line_delay(const struct wanem_link *link)
{
	const struct wanem_cfg *cfg = &link->cfg;
	int64_t off = 0;

	if (!cfg->jitter)
		return cfg->delay;
	switch (cfg->jitter_dist) {
	case WANEM_JITTER_UNIFORM:
		off = (int64_t)(draw(link, WANEM_RND_JITTER) % (2 * cfg->jitter + 1)) - (int64_t)cfg->jitter;
		break;
	case WANEM_JITTER_NORMAL:
		off = normal_16(draw(link, WANEM_RND_JITTER)) * (int64_t)cfg->jitter / 65536;
		break;
	}
	off += (int64_t)cfg->delay;
	return off > 0 ? (uint64_t)off : 0;
}

/* Steps the loss state for every packet, so that packet n has the same draw whatever else happens
 * to it. */
static bool ge_loses(struct wanem_link *link)
{
	if (!link->ge_on)
		return false;
	if (hit(link, WANEM_RND_GE_STATE, link->ge_is_bad ? link->ge_r : link->ge_p))
		link->ge_is_bad = !link->ge_is_bad;
	return hit(link, WANEM_RND_GE_LOSS, link->ge_is_bad ? link->ge_bad : link->ge_good);
}

static void copy_fill(struct wanem_link *link, struct wanem_copy *copy, enum wanem_stream stream, uint64_t at)
{
	*copy = (struct wanem_copy){.at = at};
	if (!hit(link, stream, link->cfg.corrupt))
		return;
	copy->corrupt_key = mix(draw(link, stream) + GOLDEN);
	copy->corrupt_bits = 1 + (unsigned)(mix(copy->corrupt_key) % link->cfg.corrupt_bits);
	link->ctr[WANEM_CTR_corrupted]++;
}

static uint64_t place_in_order(struct wanem_link *link, uint64_t at)
{
	if (at < link->last_at) {
		if (!link->cfg.keep_order)
			return at;
		link->ctr[WANEM_CTR_order_kept]++;
		return link->last_at;
	}
	link->last_at = at;
	return at;
}

static void drop(struct wanem_link *link, struct wanem_outcome *out, enum wanem_ctr why)
{
	link->ctr[why]++;
	out->count = 0;
	out->drop = why;
}

void wanem_link_in(struct wanem_link *link, uint32_t len, struct wanem_outcome *out, uint64_t now)
{
	const struct wanem_cfg *cfg = &link->cfg;
	bool burst_loss, loss;
	uint64_t at;

	link->n++;
	link->ctr[WANEM_CTR_in_packets]++;
	link->ctr[WANEM_CTR_in_bytes] += len;
	burst_loss = ge_loses(link);
	loss = cfg->burst <= 1 && hit(link, WANEM_RND_LOSS, cfg->loss);
	if (wanem_link_is_down(link, now)) {
		drop(link, out, WANEM_CTR_drop_outage);
		return;
	}
	if (!serve(link, len, &at, now)) {
		drop(link, out, WANEM_CTR_drop_queue);
		return;
	}
	if (loss || burst_loss) {
		drop(link, out, loss ? WANEM_CTR_drop_loss : WANEM_CTR_drop_burst);
		return;
	}
	at += line_delay(link);
	if (hit(link, WANEM_RND_REORDER, cfg->reorder)) {
		link->ctr[WANEM_CTR_reordered]++;
		at += cfg->reorder_delay; /* last_at stays: followers may overtake */
	} else {
		at = place_in_order(link, at);
	}
	out->count = 1;
	copy_fill(link, &out->copy[0], WANEM_RND_CORRUPT, at);
	if (hit(link, WANEM_RND_DUP, cfg->dup)) {
		link->ctr[WANEM_CTR_duplicated]++;
		out->count = 2;
		copy_fill(link, &out->copy[1], WANEM_RND_CORRUPT_DUP, at);
	}
}

uint32_t wanem_link_queue(struct wanem_link *link, uint64_t *bytes, uint64_t now)
{
	svc_expire(link, now);
	if (bytes)
		*bytes = link->svc_bytes;
	return link->svc_count;
}

void wanem_copy_corrupt(const struct wanem_copy *copy, uint8_t *frame, uint32_t len)
{
	uint64_t seen[WANEM_MAX_CORRUPT], bits, r = copy->corrupt_key;
	unsigned done = 0;

	if (len <= WANEM_ETH_HLEN)
		return;
	bits = (uint64_t)(len - WANEM_ETH_HLEN) * 8;
	while (done < copy->corrupt_bits && done < bits) {
		uint64_t bit;
		unsigned i;

		r = mix(r + GOLDEN);
		bit = r % bits;
		for (i = 0; i < done && seen[i] != bit; i++)
			;
		if (i < done)
			continue;
		seen[done++] = bit;
		frame[WANEM_ETH_HLEN + bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}
