# SPDX-License-Identifier: Apache-2.0
# Fifty clients of a controller that write at the same time, each to a record of its own, and
# remember the answers: acknowledged changes must be there, whatever happens to the controller. Not
# here: the faults (controller_kill.py).
import http.client
import json
import ssl
import threading
import time

from ctlr.harness import LOAD, Client, registration

PATIENCE = 60  # seconds until a store has a leader again, on a busy machine
GONE = (OSError, http.client.HTTPException, ssl.SSLError)  # the controller died during the request


class Quick(Client):
    """A client that does not check every answer."""

    def ask(self, method, path, body=None, want=None):
        if not self.c:
            self.connect().connect()
        try:
            self.c.request(method, path, None if body is None else json.dumps(body))
            r = self.c.getresponse()
            text = r.read()
        except Exception:
            self.close()
            raise
        assert want is None or r.status == want, (method, path, r.status, text[:300])
        return r.status, json.loads(text) if text[:1] == b"{" else text


class Patient(Quick):
    """A client that repeats a request while the store does not answer (503), as with an etcd
    without a leader."""

    def ask(self, method, path, body=None, want=None):
        end = time.monotonic() + PATIENCE
        while True:
            status, out = super().ask(method, path, body)
            if status != 503 or time.monotonic() > end:
                break
            time.sleep(0.05)
        wanted = want if isinstance(want, tuple) else (want,)
        assert want is None or status in wanted, (method, path, status, out)
        return status, out


class Book:
    """Common observations of all clients: revisions and generations grow, and one generation is one
    document."""

    def __init__(self):
        self.lock, self.revision, self.generation, self.document = threading.Lock(), 0, {}, {}
        self.acknowledged = self.unsure = self.refused = 0

    def saw_document(self, gateway, doc):
        with self.lock:
            generation = doc["generation"]
            assert generation >= self.generation.get(gateway, 0), f"{gateway}: generation {generation} after {self.generation[gateway]}"
            self.generation[gateway] = generation
            was = self.document.setdefault((gateway, generation), doc)
            differ = {k: (was[k], doc[k]) for k in doc if was[k] != doc[k]}
            assert not differ, f"{gateway}: two documents of generation {generation}: {differ}"[:3000]


class Thing:
    """A record that one client writes: the last answer, and possible later states."""

    path = key = ""
    pause = 0  # seconds between two of its requests

    def __init__(self, world, i, rng):
        self.world, self.i, self.rng, self.version = world, i, rng, 0
        self.name = f"{self.key}{i}"
        self.acked, self.maybe = None, []
        self.client = None

    def url(self):
        return f"/v1/{self.path}/{self.name}"

    def connect(self, controller):
        if self.client:
            self.client.close()
        self.client = Quick(controller, self.world.context[self.who()])

    def body(self, v):
        raise NotImplementedError

    def there(self, answer):
        """The state that an answer to GET shows."""
        return {k: v for k, v in answer.items() if k != "name"}

    def write(self):
        self.version += 1
        gone = self.rng.random() < 0.2
        self.send("DELETE" if gone else "PUT", None if gone else self.body(self.version))

    def send(self, method, state):
        book = self.world.book
        if not self.client.c:
            self.client.connect().connect()  # no request is sent before that
        self.maybe.append(state)
        try:
            status, out = self.client.ask(method, self.url(), state)
        except GONE:
            book.unsure += 1
            raise
        if status in (200, 201):
            self.acked, self.maybe = state, []
            book.acknowledged += 1
            if "revision" in out:
                book.revision = max(book.revision, out["revision"])
        elif status == 404 and method == "DELETE":
            self.acked = None  # it was not there then; an unanswered change may still appear
            self.maybe.pop()
        elif status < 500 or "nothing has changed" in out["error"]:
            self.maybe.pop()
            book.refused += 1
        else:
            book.unsure += 1

    def found(self, state):
        """A request of a killed controller may be executed by etcd later, until another one was: so
        it stays possible."""
        self.acked, self.maybe = state, [m for m in self.maybe if m != state]

    def work(self, stop):
        while not stop.is_set():
            try:
                self.write()
                if self.pause:
                    stop.wait(self.pause)
            except GONE:
                self.client.close()
                if stop.wait(0.05):
                    return

    def check(self, client):
        status, out = client.ask("GET", self.url())
        assert status in (200, 404), (self.name, status, out)
        is_ = self.there(out) if status == 200 else None
        assert is_ in [self.acked, *self.maybe], f"{self.name}: acknowledged {self.acked}, perhaps {self.maybe}, found {is_}"
        self.found(is_)


class Site(Thing):
    path, key = "sites", "s"

    def who(self):
        return "op"

    def body(self, v):
        return {"prefixes": [f"10.{100 + self.i}.{k}.0/24" for k in range(v % 4 + 1)], "location": f"version {v}", "latitude_udeg": v}


class Tenant(Thing):
    path, key = "tenants", "t"

    def who(self):
        return "op"

    def body(self, v):
        at = {s: {"prefixes": [{"prefix": f"10.{n}.{k}.0/24", "at": "vtep"} for k in range(v % 5 + 1)]} for s, n in (("a", 1), ("b", 2))}
        return {"vni": 1000 + self.i, "weight": v % 1000 + 1, "sites": at}


class Job(Thing):
    path, key = "jobs", "j"

    def who(self):
        return "sched"

    def body(self, v):
        return {"pairs": [{"source": f"10.1.{self.i}.{k}", "destination": f"10.2.{self.i}.{k}", "bandwidth_bps": 10**6} for k in range(v % 3 + 1)],
                "duration_ms": 10**9 + v}

    def there(self, answer):
        job = answer["job"]
        assert [(r["source"], r["destination"]) for r in answer["plan"]] == [(p["source"], p["destination"]) for p in job["pairs"]], answer
        return job


class Link(Thing):
    key = "n"

    def who(self):
        return "op"

    def url(self):
        return f"/v1/links/a/b/{self.name}"

    def body(self, v):
        return {"class": "reserved", "bandwidth_bps": 10**10 + v, "delay_us": v, "jitter_us": v, "loss_ppm": 1, "ttl_ms": 86400000}

    def check(self, client):
        mine = [p for p in client.ask("GET", "/v1/links?limit=1", None, 200)[1]["pushed"] if p["source"] == self.name]
        is_ = {k: v for k, v in mine[0].items() if k not in ("site_a", "site_b", "source", "age_ms")} if mine else None
        assert is_ in [self.acked, *self.maybe], f"{self.name}: acknowledged {self.acked}, perhaps {self.maybe}, found {is_}"
        self.found(is_)


class Alternating(Thing):
    """A link that is set and removed in turn: a removal right after an acknowledged change finds
    it."""

    key = "n"
    who, url, body = Link.who, Link.url, Link.body

    def work(self, stop):
        while not stop.is_set():
            try:
                if self.client.ask("PUT", self.url(), self.body(1))[0] == 200:
                    status = self.client.ask("DELETE", self.url())[0]
                    assert status != 404, f"{self.name}: set, and not there"
            except GONE:
                self.client.close()
                if stop.wait(0.05):
                    return


class Gateway(Thing):
    """Registers, keeps its lease, polls its document, reports; sometimes it restarts or leaves."""

    path, key = "gateways", "g"
    lease, boot = None, 0

    def who(self):
        return self.name

    def body(self, v):
        reg = registration("ab"[self.i % 2], self.i + 1, boot=f"b{self.boot}")
        return {**reg, "version": str(v), "ports": [{"name": "lan", "speed_bps": v}]}

    def there(self, answer):
        # as it was registered, except the start's name, which is private
        state = self.acked or next((m for m in self.maybe if m), None)
        for s in [self.acked, *self.maybe]:
            if s and s["version"] == answer["version"]:
                state = s
        assert state and all(answer[k] == state[k] for k in ("site", "version", "lan", "wan", "ports", "capabilities")), (answer, state)
        return state

    def write(self):
        x = self.rng.random()
        if not self.acked or x < 0.1:
            self.version += 1
            self.boot += x < 0.05
            self.lease = None
            self.send("PUT", self.body(self.version))
            if not self.acked:
                return
        elif x < 0.12:
            self.send("DELETE", None)
            return
        if not self.lease:  # the answer to a repeated request: the lease that it has
            status, out = self.client.ask("PUT", self.url(), self.acked)
            if status != 200:
                return
            self.lease = out["lease"]
        known = self.world.book.generation.get(self.name, 0)
        status, out = self.client.ask("POST", self.url() + "/lease",
                                      {"lease": self.lease, "boot_id": self.acked["boot_id"], "generation_running": known, "load": LOAD})
        if status != 200:
            self.lease = None
            assert status in (404, 409, 503), (status, out)  # 503: it stops
            return
        assert out["generation"] >= known, (self.name, out, known)
        status, out = self.client.ask("GET", self.url() + f"/document?after={self.rng.choice((0, known))}&wait_ms=50")
        if status == 200:
            self.world.book.saw_document(self.name, out)
        pair = {"id": str(self.version % 7), "event": "opened", "source": f"10.{1 + self.i % 2}.200.{self.i}", "destination": f"10.{2 - self.i % 2}.200.1"}
        self.client.ask("POST", self.url() + "/sessions", {"sessions": [pair]})


def things(world, rng):
    import random
    out = []
    for kind, n in ((Gateway, 12), (Site, 12), (Tenant, 10), (Job, 10), (Link, 6)):
        out += [kind(world, i, random.Random(rng.random())) for i in range(n)]
    return out


class Reader:
    """Reads all records repeatedly."""

    def __init__(self, world, rng, *only):
        self.world, self.rng, self.only = world, rng, only

    def connect(self, controller):
        self.client = Quick(controller, self.world.context["op"])

    def work(self, stop):
        paths = self.only or [f"/v1/{p}" for p in ("gateways", "tunnels", "sessions", "links", "sites", "tenants", "jobs", "jobs", "jobs", "events", "health", "routes?site=a",
                                      "gateways/g0/document", "gateways/g1/document", "jobs/j0", "tenants/t0")] + ["/metrics", "/"]
        while not stop.is_set():
            try:
                self.client.ask("GET", self.rng.choice(paths))
            except GONE:
                self.client.close()
                if stop.wait(0.05):
                    return


class Crowd:
    """Runs all clients, each in a thread."""

    def __init__(self, things, controller):
        self.stop_, self.wrong = threading.Event(), []
        self.threads = [threading.Thread(target=self.run, args=(t,), daemon=True) for t in things]
        for t in things:
            t.connect(controller)
        [t.start() for t in self.threads]

    def run(self, thing):
        try:
            thing.work(self.stop_)
        except Exception as e:  # reported by stop()
            self.wrong.append(e)

    def stop(self):
        self.stop_.set()
        [t.join(60) for t in self.threads]
        if self.wrong:
            raise self.wrong[0]


def same_everywhere(client, seconds=PATIENCE):
    """A job's plan, the routes of both sites and the gateways' documents agree once nothing changes
    any longer."""
    end = time.monotonic() + seconds
    while True:
        bad = disagreement(client)
        if not bad:
            return
        assert time.monotonic() < end, bad
        time.sleep(0.05)


def disagreement(client):
    def get(path):
        return client.ask("GET", path, None, 200)[1]
    up = {g["name"] for g in get("/v1/gateways?limit=1000")["gateways"] if g["state"] == "up"}
    plan = {}
    for j in get("/v1/jobs")["jobs"]:
        for row in j["plan"]:
            gws = tuple(row.get("pair", "/").split("/"))
            if set(gws) <= up:
                plan[row["source"], row["destination"]] = gws
    for site, k in (("a", 0), ("b", 1)):
        routes = {(r["source"][:-3], r["destination"][:-3]): r["gateways"][0]["gateway"] for r in get(f"/v1/routes?site={site}")["routes"] if "source" in r}
        for (x, y), gws in plan.items():
            if routes.get((x, y) if k == 0 else (y, x)) != gws[k]:
                return f"{x} -> {y}: the plan says {gws}, the routes of {site} {routes.get((x, y) if k == 0 else (y, x))}"
    told = {}
    for g in up:
        for a in get(f"/v1/gateways/{g}/document")["assignments"]:
            if g in [p[0] for p in plan.values()]:
                told[a["source"], a["destination"]] = (g, a["tunnel"])
    for pair, gws in plan.items():
        if told.get(pair) != gws:
            return f"{pair}: the plan says {gws}, the documents {told.get(pair)}"
    return ""
