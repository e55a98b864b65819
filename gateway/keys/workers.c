/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for the workers: each has two for a tunnel, made from the secret of the exchange. */
#include "engine/tunnel.h"
#include "gateway/gw.h"
#include "gateway/keys/internal.h"

typedef int offer_fn(struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now);

struct call {
	unsigned tunnel;
	offer_fn *how;
	struct wan_secrets secrets;
	int rc;
};

static void offer(struct eng *e, void *arg)
{
	struct call *c = arg;

	c->rc = c->how(e, c->tunnel, &c->secrets, gw_now());
}

static void use(struct eng *e, void *arg)
{
	const struct call *c = arg;

	eng_tunnel_keys_use(e, c->tunnel, gw_now());
}

static void end(struct eng *e, void *arg)
{
	const struct call *c = arg;

	eng_tunnel_keys_end(e, c->tunnel, gw_now());
}

static int offer_all(struct gw_app *app, struct call c, const struct gw_kx_result *r)
{
	int rc = 0;

	for (unsigned w = 0; w < app->workers && !rc; w++) {
		aead_secret_of(&c.secrets.tx, &r->secret, r->own_epoch, w);
		aead_secret_of(&c.secrets.rx, &r->secret, r->peer_epoch, w);
		rc = gw_call(app, w, offer, &c);
		if (!rc)
			rc = c.rc;
	}
	aead_wipe(&c, sizeof(c));
	return rc;
}

int keys_workers_offer(struct gw_app *app, unsigned tunnel, const struct gw_kx_result *r)
{
	return offer_all(app, (struct call){.tunnel = tunnel, .how = eng_tunnel_keys_offer}, r);
}

int keys_workers_reserve(struct gw_app *app, unsigned tunnel, const struct gw_kx_result *r)
{
	return offer_all(app, (struct call){.tunnel = tunnel, .how = eng_tunnel_keys_reserve}, r);
}

static void kept(struct eng *e, void *arg)
{
	const struct call *c = arg;

	eng_tunnel_keys_kept(e, c->tunnel);
}

void keys_workers_kept(struct gw_app *app, unsigned tunnel)
{
	struct call c = {.tunnel = tunnel};

	for (unsigned w = 0; w < app->workers; w++)
		/* a worker that is busy forgets the set with the next one */
		(void)!gw_call(app, w, kept, &c);
}

int keys_workers_keep(struct gw_app *app, unsigned tunnel, const struct gw_kx_result *r)
{
	return offer_all(app, (struct call){.tunnel = tunnel, .how = eng_tunnel_keys_keep}, r);
}

int keys_workers_use(struct gw_app *app, unsigned tunnel)
{
	struct call c = {.tunnel = tunnel};
	int rc = 0;

	for (unsigned w = 0; w < app->workers; w++) {
		int one = gw_call(app, w, use, &c);

		rc = rc ? rc : one;
	}
	return rc;
}

void keys_workers_end(struct gw_app *app, unsigned tunnel)
{
	struct call c = {.tunnel = tunnel};

	for (unsigned w = 0; w < app->workers; w++)
		/* Nothing may be sealed for this peer any more, however busy a worker is. */
		while (gw_call(app, w, end, &c) == RWY_EAGAIN && !atomic_load(&app->worker[w]->stop))
			;
}

bool keys_workers_up(const struct gw_app *app, unsigned tunnel)
{
	for (unsigned w = 0; w < app->workers; w++)
		if (!(atomic_load_explicit(&app->worker[w]->tun_state[tunnel], memory_order_relaxed) & 1))
			return false;
	return true;
}
