# SPDX-License-Identifier: Apache-2.0
# Permits of tenants, which gateways get for `admission: controller`: tests of controller_api.py.

PAIR = {"source": "10.1.0.5", "destination": "10.2.0.5"}
QPS = {"source": "10.1.0.6", "destination": "10.2.0.6", "source_qpn": 17, "destination_qpn": 0xffffff}


TENANT_MAX, SITE_MAX = 4096, 100000


def tenant(vlan=101, **more):
    return {"vni": 5001, "admission": "controller", "ack_timeout_min": "20ms", "ack_timeout_max": "3s", "retry": 30, "rnr_retry": 6,
            "sites": {"a": {"prefixes": [{"prefix": "10.1.0.0/24", "at": "vlan"}], "vlan": vlan},
                      "b": {"prefixes": [{"prefix": "10.2.0.0/24", "at": "vlan"}], "vlan": vlan}}, **more}


def test_permits_go_to_the_gateways_of_both_sites(w):
    w.sites()
    a, b = w.gateways("gw-a1", "gw-b1")
    assert "permits" not in a.document()
    w.op.put("/v1/tenants/red", tenant(permits=[PAIR, QPS]), 201)
    want = [{"vni": 5001, **PAIR}, {"vni": 5001, **QPS}]
    documents = [g.document() for g in (a, b)]
    for doc in documents:
        assert doc["permits"] == want, doc
        red, = doc["tenants"]
        assert red["admission"] == "controller" and "permits" not in red
        assert (red["ack_timeout_min"], red["ack_timeout_max"], red["retry"], red["rnr_retry"]) == ("20ms", "3s", 30, 6)
    assert w.op.get("/v1/tenants/red")["permits"] == [PAIR, QPS]
    w.op.put("/v1/tenants/red", tenant(permits=[QPS]), 200)
    doc = a.document()
    assert doc["permits"] == want[1:] and doc["generation"] > documents[0]["generation"]
    w.op.put("/v1/tenants/red", tenant(), 200)
    assert "permits" not in a.document()


def test_wrong_permits_are_refused(w):
    w.sites()
    for bad, field in (({}, "permits"), ([1], "permits[0]"), ([PAIR, {"source": "10.1.0.5"}], "permits[1].destination"), ([{**PAIR, "source": "10.1.0.0/24"}], "permits[0].source"),
                       ([{**PAIR, "source_qpn": 5}], "permits[0].destination_qpn"), ([{**PAIR, "destination_qpn": 5}], "permits[0].source_qpn"),
                       ([{**QPS, "source_qpn": 0}], "permits[0].source_qpn"), ([{**QPS, "source_qpn": 2**24}], "permits[0].source_qpn"),
                       ([{**PAIR, "why": 1}], "permits[0].why"), ([PAIR] * 4097, "permits")):
        assert w.op.put("/v1/tenants/red", tenant(permits=bad), 400)["field"] == field, bad
    for key, bad in (("admission", "closed"), ("retry", 0), ("ack_timeout_min", "4s"), ("rnr_retry", 8)):
        said = w.op.put("/v1/tenants/red", {**tenant(), key: bad}, 400)
        assert said["field"].startswith("sites."), said
    w.op.get("/v1/tenants/red", 404)


def test_permits_of_all_tenants_fit_a_document(w):
    """A gateway takes 100,000 of them: the tenant that would make more is refused, and nothing changes."""
    w.sites()

    def put(i, n, want, **more):
        return w.op.put(f"/v1/tenants/t{i}", tenant(vlan=101 + i, vni=6000 + i, permits=[PAIR] * n, **more), want)
    full, left = divmod(SITE_MAX, TENANT_MAX)
    for i in range(full):
        put(i, TENANT_MAX, 201)
    before = w.op.get("/v1/tenants")
    said = put(full, left + 1, 409)
    assert said["field"] == "permits", said
    assert f"site a take {SITE_MAX} of all tenants: others have {full * TENANT_MAX} there, and t{full} has {left + 1}" in said["error"], said
    assert w.op.get("/v1/tenants") == before
    put(full, left, 201)
    elsewhere = {"c": {"prefixes": [{"prefix": "10.3.0.0/24", "at": "vlan"}], "vlan": 300}}
    w.op.put("/v1/sites/c", {"prefixes": []}, 201)
    put(full + 1, TENANT_MAX, 201, sites=elsewhere)
    said = put(full + 1, TENANT_MAX, 409, sites={**elsewhere, "b": {"prefixes": [{"prefix": "10.4.0.0/24", "at": "vlan"}], "vlan": 301}})
    assert "site b take" in said["error"], said
    put(full + 2, 0, 201)
    put(full, left - 1, 200)
    put(full + 2, 2, 409)
    put(full + 2, 1, 200)
