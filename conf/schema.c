/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema: all keys (schema_tunnels.def has those of `tunnels`). Parser, messages, --check and
 * docs/configuration.md follow this table. Rules over more than one key are in check.c.
 */
#include "conf/row.h"
#include "wan/stream.h"

/* clang-format off: a table reads best as one */
const struct conf_key conf_keys[] = {
    {"gateway", CONF_T_GROUP, .text = "The gateway as a whole."},
    {"gateway.name", CONF_T_NAME, 1, CONF_NAME - 1, NULL, C(name),
        .text = "The gateway's name in logs, in the API and to its peers."},
    {"gateway.weight", CONF_T_INT, 1, 65535, "1", LIVE(weight),
        .text = "Its share of the site's address pairs, relative to those of `siblings`."},
    {"gateway.workers", CONF_T_INT, 1, 64, "1", C(workers),
        .text = "Packet-processing threads. Flows are spread over them as `steering` says; both ends of a "
                "tunnel need the same number."},
    {"gateway.steering", CONF_T_ENUM, 0, 0, "pair", .words = "pair qp", C(steering),
        .text = "How flows are spread over the workers. `pair`: all between two addresses are at one worker. "
                "`qp`: connections are spread by queue pair, so that two addresses can use all workers. Only "
                "with a gateway at the other end of the tunnel that does so, too, with the same number of "
                "workers. Not with ack mode `causal`, `siblings`, a relay or a standby."},
    {"gateway.polling", CONF_T_ENUM, 0, 0, "adaptive", .words = "adaptive busy", C(polling),
        .text = "`adaptive` sleeps when there is nothing to do; `busy` never sleeps: for workers with CPUs "
                "of their own."},
    {"gateway.log_level", CONF_T_ENUM, 0, 0, "info", .words = "error warning notice info debug",
        LIVE(log_level), .text = "The least important messages that are still logged."},
    {"gateway.log_format", CONF_T_ENUM, 0, 0, "text", .words = "text json", C(log_json),
        .text = "`text`: time, level, module, words and `key=value`; `json`: an object a line with `time`, "
                "`level`, `module`, `message`."},
    {"gateway.journal_dir", CONF_T_PATH, 2, CONF_STR - 1, "/run/roceway/journal", C(journal_dir),
        .text = "Directory, in memory, for the file that records which requests of hosts were acknowledged. "
                "It must be the gateway's user's own, with mode 0700; it is made if need be. The next "
                "process restores the connections from it: they continue, or get an error if a request was "
                "lost. A relay's links are in it, too."},
    {"gateway.recorder_size", CONF_T_SIZE, 64 * KIB, 64 * MIB, "1MiB", C(recorder_size),
        .text =
            "Memory of each worker for the flight recorder, 64 bytes an entry: how far back `roceway why` "
            "can look. Rounded down to a power of two; beside the journal, in memory "
            "(docs/recorder.md)."},
    {"gateway.site_key", CONF_T_PATH, 2, CONF_STR - 1, "", C(site_key),
        .text =
            "File with a key that all gateways of this site have: 32 hexadecimal digits, readable for the "
            "gateway's user alone. Packets that one hands to another are sealed with it, so that no host "
            "can act for a gateway (docs/gateway-control.md). Left out: they are not."},
    {"gateway.sandbox", CONF_T_ENUM, 0, 0, "on", .words = "off on", C(sandbox),
        .text = "Once it runs, the gateway keeps only the system calls that it needs, so that an intruder "
                "can start no program (docs/security.md). `off`: it keeps all, and warns."},
    {"gateway.drain_timeout", CONF_T_DURATION, 0, 3600 * RWY_SEC, "10s", C(drain_timeout),
        .text = "How long SIGTERM waits until the far hosts have all that was acknowledged to hosts here. "
                "Then the gateway stops, and the journal has the rest. `0s`: it stops at once."},

    {"eal", CONF_T_GROUP, .text = "DPDK's environment."},
    {"eal.args", CONF_T_STRINGS, 0, CONF_EAL_ARGS_MAX, "", LIST(conf, eal_args, eal_argc),
        .text = "Arguments for DPDK, passed as they are."},
    {"eal.cores", CONF_T_CPUS, 0, 0, "", C(cores),
        .text = "CPUs for the workers, such as `1-2` or `0,4-7`. Left out: all that the process may use."},

    {"ports", CONF_T_GROUPS, 2, CONF_PORTS_MAX, NULL, LIST(conf, port, ports),
        .text = "Network ports: at least one of role `lan` and one of role `wan`."},
    {"ports[].name", CONF_T_NAME, 1, CONF_PORT_NAME - 1, NULL, P(name),
        .text = "The port's name; tunnels refer to it. The kernel's interface is `rwy-` and this name."},
    {"ports[].device", CONF_T_STRING, 1, CONF_STR * 2 - 1, NULL, P(device),
        .text = "A PCI address (`0000:3b:00.0`) or a DPDK virtual device with its arguments "
                "(`net_af_packet0,iface=eth1`)."},
    {"ports[].role", CONF_T_ENUM, 0, 0, NULL, .words = "lan wan", P(role),
        .text = "`lan` faces local hosts, `wan` faces other gateways."},
    {"ports[].addresses", CONF_T_ADDRS, 1, CONF_ADDRS_MAX, NULL, LIST(conf_port, addr, addrs),
        .text = "The gateway's own addresses with the length of their subnet. On a LAN port: the hosts' next "
                "hop towards the other site."},
    {"ports[].mac", CONF_T_MAC, 0, 0, "", P(mac),
        .text = "The port's MAC address, the same at both gateways of a pair. Left out: the device's own."},
    {"ports[].mtu", CONF_T_INT, 576, 9000, "1500", P(mtu),
        .text = "Largest IP packet, bytes. IPv6 needs 1280."},
    {"ports[].vlan", CONF_T_INT, 0, 4094, "0", P(vlan), .text = "VLAN ID of every frame; 0: untagged."},
    {"ports[].priority_tags", CONF_T_ENUM, 0, 0, "off", .words = "off on", P(priority_tags),
        .text =
            "On a LAN port without `vlan`: frames to hosts have a priority tag (VLAN 0), for a LAN that "
            "takes its classes from the PCP. Untagged frames and priority tags are accepted in any case."},
    {"ports[].source_check", CONF_T_ENUM, 0, 0, "on", .words = "off on", P(source_check),
        .text = "On a LAN port: drop packets for a tunnel whose source address is none of a LAN's (no route "
                "of the kernel leads there by a LAN port, or a tunnel's prefix is the longer match). ICMP "
                "passes. Tenants' packets are always checked against their prefixes."},
    {"ports[].queue_rules", CONF_T_ENUM, 0, 0, "auto", .words = "off auto", P(queue_rules),
        .text = "On a WAN port with several workers: ask the device, by `rte_flow`, to give each worker the "
                "datagrams of its UDP port. Workers hand over what comes to another one all the same."},
    {"ports[].offload", CONF_T_ENUM, 0, 0, "off", .words = "off rte_flow tc", P(offload),
        .text =
            "Tenants' rules in the hardware of a LAN port: by the port's DPDK driver (`rte_flow`), or by the "
            "kernel's driver of a switch port (`tc`). Software enforces everything all the same."},
    {"ports[].offload_device", CONF_T_NAME, 1, CONF_IFNAME - 1, "", P(offload_device),
        .text =
            "With `tc`: the kernel's interface through which the port's frames come in, such as the eSwitch "
            "representor of the uplink."},

#include "conf/schema_tunnels.def"

    {"keys", CONF_T_GROUP,
        .text = "By what gateways know each other: both ends of a tunnel show a certificate, whose chain, "
                "purpose, time and name (`tunnels[].peer_name`) are checked. `roceway reload` reads the "
                "files again. docs/security.md."},
    {"keys.certificate", CONF_T_PATH, 2, CONF_STR - 1, "", LIVE(keys.certificate),
        .text = "PEM file with this gateway's certificate, fit for TLS clients and servers. Left out: "
                "`controller.certificate`."},
    {"keys.key", CONF_T_PATH, 2, CONF_STR - 1, "", LIVE(keys.key),
        .text = "PEM file with its key, which others cannot read. Left out: `controller.key`."},
    {"keys.ca", CONF_T_PATH, 2, CONF_STR - 1, "", LIVE(keys.ca),
        .text = "PEM file with the CA of the peers' certificates. Left out: `controller.ca`."},
    {"keys.crl", CONF_T_PATH, 2, CONF_STR - 1, "", LIVE(keys.crl),
        .text = "PEM file with certificates that are revoked; it is read again when it changes."},
    {"keys.cipher", CONF_T_ENUM, 0, 0, "aes-128-gcm", .words = "aes-128-gcm aes-256-gcm", C(keys.alg),
        .text = "What seals datagrams; the same at both ends."},
    {"keys.rekey", CONF_T_DURATION, RWY_SEC, 3600 * RWY_SEC, "60s", C(keys.rekey),
        .text = "A key seals datagrams for this long; then the next one is made from it."},
    {"keys.lifetime", CONF_T_DURATION, RWY_SEC, 86400 * RWY_SEC, "1h", C(keys.lifetime),
        .text = "After this time the gateways exchange new keys, independent of those before."},

    {"quic", CONF_T_GROUP,
        .text = "Tunnels' QUIC connections. They use the certificates of `keys`. docs/carriers.md."},
    {"quic.congestion_control", CONF_T_ENUM, 0, 0, "bbr2", .words = "bbr2 cubic", C(quic.cc),
        .text = "Congestion control of QUIC connections."},
    {"quic.window", CONF_T_SIZE, 1 << 20, 1 << 30, "32MiB", C(quic.window),
        .text = "Bytes that a connection may have unacknowledged: at least rate times round trip."},

    {"siblings", CONF_T_GROUPS, 0, CONF_SIBLINGS_MAX, "", LIVE_LIST(conf, sibling, siblings),
        .text = "Other gateways of this site, unless a control center names them: RoCE packets of their "
                "address pairs are forwarded to them. `roceway reload` applies changes. "
                "docs/gateway-control.md."},
    {"siblings[].name", CONF_T_NAME, 1, CONF_NAME - 1, NULL, S(name), .text = "Its `gateway.name`."},
    {"siblings[].address", CONF_T_IP, 0, 0, NULL, S(address),
        .text = "One of its addresses on this gateway's LAN."},
    {"siblings[].weight", CONF_T_INT, 1, 65535, "1", S(weight), .text = "Its `gateway.weight`."},

    {"connections", CONF_T_GROUP, .text = "RDMA connections."},
    {"connections.ack_mode", CONF_T_ENUM, 0, 0, "near", .words = "near far end causal site", C(ack_mode),
        .text = "When a host's request is acknowledged: `near`, this gateway has it; `causal`, the same, and "
                "two hosts' queue pairs keep their order; `far`, the peer has it too; `end`, the far host "
                "has it (only the packet that completes a message waits); `site`, the other gateway of the "
                "pair has it too. docs/completion.md."},
    {"connections.admission", CONF_T_ENUM, 0, 0, "open", .words = "open cm controller", C(admission),
        .text = "Who may begin an RC connection: `open`, any host; `cm`, hosts that connection management "
                "connected through the gateway; `controller`, pairs that the control center named. "
                "Connections that exist go on. docs/what-crosses.md."},
    {"connections.ack_modes", CONF_T_GROUPS, 0, TENANT_MODES_MAX, "", LIST(conf, mode, modes),
        .text = "Other modes for pairs of hosts. The first entry that matches decides."},
    {"connections.max", CONF_T_INT, 16, 4000000, "100000", C(conns_max),
        .text = "Entries of the flow table, over all workers."},
    {"connections.idle_expiry", CONF_T_DURATION, RWY_SEC, 86400 * RWY_SEC, "10min", C(idle_expiry),
        .text = "A flow without packets for this long, with nothing in custody, is forgotten."},
    {"connections.half_open_max", CONF_T_INT, 1, 1000000, "1024", C(half_open_max),
        .text = "Most connections of which only one direction is known."},
    {"connections.ack_timeout_min", CONF_T_DURATION, RWY_MS, 60 * RWY_SEC, "50ms", C(ack_timeout_min),
        .text = "Shortest time after which a silent local host is asked again; longer if it answers more "
                "slowly. docs/rc-semantics.md."},
    {"connections.ack_timeout_max", CONF_T_DURATION, RWY_MS, 600 * RWY_SEC, "1s", C(ack_timeout_max),
        .text = "Longest time after which it is asked again: the time doubles each time. At least "
                "`ack_timeout_min`."},
    {"connections.retry", CONF_T_INT, 1, 255, "7", C(retry),
        .text = "Times that it is asked again without progress before it is given up, for a connection "
                "whose own count is not known from CM. With CM it is given up no earlier than its peer "
                "would give up."},
    {"connections.rnr_retry", CONF_T_INT, 0, 7, "7", C(rnr_retry),
        .text = "RNR retries of a connection whose own count is not known from CM; 7: no limit."},
    {"connections.host_window", CONF_T_INT, 1, 65536, "128", C(host_window),
        .text = "Packets in flight to a local host per connection."},
    {"connections.ack_modes[].from", CONF_T_PREFIX, 0, 0, "any", .words = "any", NM(from), .restart = true,
        .text = "Hosts of this site, which ask."},
    {"connections.ack_modes[].to", CONF_T_PREFIX, 0, 0, "any", .words = "any", NM(to), .restart = true,
        .text = "Hosts behind a tunnel, which answer."},
    {"connections.ack_modes[].mode", CONF_T_ENUM, 0, 0, NULL, .words = "near far end causal site", NM(mode),
        .restart = true, .text = "As `ack_mode`."},

    {"congestion", CONF_T_GROUP, .text = "Congestion on the local segments."},
    {"congestion.near_source_min", CONF_T_SIZE, 0, GIB, "2MiB", C(np_min),
        .text =
            "Bytes of a connection waiting for the WAN from which its host is sent CNPs while they grow."},
    {"congestion.near_source_max", CONF_T_SIZE, 0, GIB, "16MiB", C(np_max),
        .text = "From this many bytes on, every packet causes a CNP (at most one in 50 us is sent); 0: no "
                "CNPs for queues."},
    {"congestion.near_source_percent", CONF_T_INT, 1, 100, "10", C(np_percent),
        .text = "Probability of a CNP for a packet just below `near_source_max`."},
    {"congestion.near_destination", CONF_T_ENUM, 0, 0, "dcqcn", .words = "dcqcn none", C(near_destination),
        .text = "Effect of a local host's CNPs: the gateway sends to it more slowly, as DCQCN does, or "
                "ignores them."},
    {"congestion.end_to_end", CONF_T_ENUM, 0, 0, "window", .words = "window none", C(end_to_end),
        .text = "Effect of a slow local host on the other site: its flows have at most the data in "
                "flight that it accepts in a round trip, or are limited only by credit."},

    {"memory", CONF_T_GROUP, .text = "Memory. All of it is allocated at start."},
    {"memory.buffers", CONF_T_INT, 1024, 16777216, "65536", C(buffers), .text = "Packet buffers in all."},
    {"memory.custody_per_connection", CONF_T_SIZE, 64 * KIB, 64 * GIB, "32MiB", C(custody_conn),
        .text =
            "Bytes kept for one connection until the far host has them; above it, its ACKs are held back."},
    {"memory.custody_total", CONF_T_SIZE, MIB, TIB, "256MiB", C(custody_total),
        .text =
            "The same for all connections. At most 4KiB for each of `memory.buffers`, of which two fifths "
            "have room for it: if that is less, it is the bound, and the log and `roceway status` say so."},
    {"memory.read_cache_per_connection", CONF_T_SIZE, 64 * KIB, GIB, "4MiB", C(read_cache_conn),
        .text = "READ responses kept for a host that repeats its request, in bytes of buffers. All "
                "connections together keep at most an eighth of `buffers`."},

    {"api", CONF_T_GROUP, .text = "The local API, which the `roceway` command uses."},
    {"api.socket", CONF_T_PATH, 2, 107, "/run/roceway/gateway.sock", C(api_socket),
        .text =
            "Path of its Unix socket. Without the two groups only root and the gateway's own user connect."},
    {"api.read_group", CONF_T_STRING, 1, CONF_STR - 1, "", LIVE(api_read_group),
        .text = "Group, a name or a number, whose members may read: connections, counters, states. They may "
                "change "
                "nothing, and capture nothing (docs/security.md). Left out: no group."},
    {"api.operator_group", CONF_T_STRING, 1, CONF_STR - 1, "", LIVE(api_operator_group),
        .text = "Group whose members may do everything, as root may. Left out: no group."},
    {"api.metrics", CONF_T_STRING, 1, CONF_STR - 1, "", C(api_metrics),
        .text = "Where `/metrics`, `/livez`, `/readyz` and `/healthz` alone are served, too, for Prometheus: "
                "`address:port`, `[IPv6]:port` or `unix:/path`. Anybody who can connect "
                "can read them. Left out: nowhere."},

    {"controller", CONF_T_GROUP,
        .text = "The control center, which names tunnels and tenants besides those of this file. "
                "docs/gateway-control.md."},
    {"controller.urls", CONF_T_STRINGS, 1, CONF_URLS_MAX, "", LIST(conf, controller.url, controller.urls),
        .text = "Controllers, `https://host` or `https://host:port`, in the order in which they are tried. "
                "Left out: there is none."},
    {"controller.ca", CONF_T_PATH, 2, CONF_STR - 1, "", C(controller.ca),
        .text = "PEM file with the CA of the controllers' certificates."},
    {"controller.certificate", CONF_T_PATH, 2, CONF_STR - 1, "", C(controller.certificate),
        .text = "PEM file with this gateway's certificate: CN is `gateway.name`, OU is `gateway`."},
    {"controller.key", CONF_T_PATH, 2, CONF_STR - 1, "", C(controller.key), .text = "PEM file with its key."},
    {"controller.site", CONF_T_NAME, 1, CONF_NAME - 1, "", C(controller.site),
        .text = "The site that this gateway is at."},
    {"controller.bandwidth", CONF_T_RATE, 1000000, CONF_TUNNEL_BPS_MAX, "port", .words = "port",
        C(controller.bandwidth_Bps),
        .text = "Bandwidth that the gateway offers. The control center shares the load of a site by it; "
                "`port`: the speed of its fastest WAN port, or 10Gbps if that is unknown."},
    {"controller.tcp_bandwidth", CONF_T_RATE, 1000000, CONF_TUNNEL_BPS_MAX, "bandwidth", .words = "bandwidth",
        C(controller.tcp_bandwidth_Bps),
        .text = "The same over TCP, if it differs: it is higher if the network limits UDP; `bandwidth`: "
                "the same."},
    {"controller.quic_bandwidth", CONF_T_RATE, 1000000, CONF_TUNNEL_BPS_MAX, "measured", .words = "measured",
        C(controller.quic_bandwidth_Bps),
        .text = "The same over QUIC, which the gateway reports if there are `keys`. One thread has all "
                "QUIC connections; `measured`: what that thread can encrypt and send or receive, measured "
                "at the start, and `bandwidth` at most."},
    {"controller.tcp_congestion_control", CONF_T_ENUM, 0, 0, "auto", .words = "auto bbr cubic",
        C(controller.tcp_cc),
        .text = "`tcp_congestion_control` of the control center's tunnels. The gateway reports it, and "
                "the control center predicts TCP from it; `auto`: those of the two that the kernel "
                "allows."},
    {"controller.member", CONF_T_NAME, 1, CONF_NAME - 1, "", C(controller.member),
        .text = "Name of this gateway as one of a pair, which tells the two apart: they have one "
                "`gateway.name`. Left out: `local` of the pair's own tunnel, with `-` for `:`. "
                "docs/standby.md."},
    {"controller.rdma_address", CONF_T_IP, 0, 0, "", C(controller.rdma_address),
        .text = "Address of an RDMA device of this machine. The gateway reports RDMA as one of its "
                "carriers, and the control center's tunnels may move there where a network has promised "
                "the path and hardly anything is lost. Left out: no RDMA. docs/controller-planning.md."},
    {"controller.rdma_port", CONF_T_INT, 1, 65535, "4793", C(controller.rdma_port),
        .text = "Its port, `rdma_port` of these tunnels; the same at all gateways."},
    {"controller.rdma_buffers", CONF_T_INT, 16, 8192, "512", C(controller.rdma_buffers),
        .text = "`rdma_buffers` of these tunnels. The control center predicts RDMA over distance from it."},
    {"controller.rdma_bandwidth", CONF_T_RATE, 1000000, CONF_TUNNEL_BPS_MAX, "bandwidth",
        .words = "bandwidth", C(controller.rdma_bandwidth_Bps),
        .text = "What the device sends at most. Nothing paces it, so RDMA is possible only on paths that "
                "have this bandwidth; `bandwidth`: as `controller.bandwidth`."},
    {"controller.document", CONF_T_PATH, 2, CONF_STR - 1, "/var/lib/roceway/document.json",
        C(controller.document),
        .text = "File of the controller's last document, which runs after a start while no controller "
                "answers."},

    {"relay", CONF_T_GROUP,
        .text = "For `roceway-proxy`: connections of hosts that have no route to each other. docs/proxy.md."},
    {"relay.addresses", CONF_T_IPS, 1, CONF_RELAY_ADDRS, "", LIST(conf, relay.addr, relay.addrs),
        .text = "Addresses of LAN ports that stand for remote hosts. Required for `roceway-proxy`."},
    {"relay.redirect_port", CONF_T_INT, 0, 65535, "0", C(relay.redirect_port),
        .text = "Port of these addresses where a connection names its target in a trailer; 0: none."},
    {"relay.ask_port", CONF_T_INT, 0, 65535, "4795", C(relay.ask_port),
        .text = "UDP port of these addresses where the libraries on hosts ask for connections; 0: none."},
    {"relay.links_max", CONF_T_INT, 16, 1000000, "16384", C(relay.links_max),
        .text = "Most links, with those that ended in the last minute."},
    {"relay.half_open_max", CONF_T_INT, 1, 1000000, "1024", C(relay.half_open_max),
        .text = "Most links whose target has not answered yet. One host has three quarters at most."},
    {"relay.host_max", CONF_T_INT, 1, 1000000, "4096", C(relay.host_max),
        .text = "Most open links of one host that asks."},
    {"relay.idle_expiry", CONF_T_DURATION, 60 * RWY_SEC, 30ull * 86400 * RWY_SEC, "24h", C(relay.idle_expiry),
        .text = "An open link without packets for this long is forgotten."},
    {"relay.allow", CONF_T_GROUPS, 0, CONF_ALLOW_MAX, "", LIST(conf, relay.allow, relay.allows),
        .text = "Who may connect to what, at the source relay and at the destination relay. Nobody else "
                "may: without an entry nothing passes."},
    {"relay.map", CONF_T_GROUPS, 0, CONF_MAP_MAX, "", LIVE_LIST(conf, relay.map, relay.maps),
        .text = "The listen map: a connection to this address and port goes on to that host. "
                "`roceway map` changes it while the relay runs, until the next reload or restart."},
    {"relay.allow[].from", CONF_T_PREFIX, 0, 0, NULL, .words = "any", RA(from),
        .text = "Hosts that ask: real addresses."},
    {"relay.allow[].to", CONF_T_PREFIX, 0, 0, NULL, .words = "any", RA(to),
        .text = "Hosts that are asked: real addresses."},
    {"relay.allow[].ports", CONF_T_UDP, 0, 0, "1-65535", RA(ports),
        .text = "Ports of the hosts that are asked, as in rdma_cm."},
    {"relay.map[].name", CONF_T_NAME, 1, CONF_NAME - 1, NULL, RM(name), .text = "The entry's name."},
    {"relay.map[].listen", CONF_T_IP, 0, 0, NULL, RM(listen), .text = "One of `addresses`."},
    {"relay.map[].port", CONF_T_INT, 1, 65535, NULL, RM(port), .text = "Port there."},
    {"relay.map[].target", CONF_T_IP, 0, 0, NULL, RM(target),
        .text = "The host that is meant: its real address, of the same family, behind a tunnel."},
    {"relay.map[].target_port", CONF_T_INT, 0, 65535, "0", RM(target_port),
        .text = "Its port; 0: the same as `port`."},
    {"relay.map[].links", CONF_T_INT, 0, 1000000, "0", RM(links),
        .text = "Most open links of this entry; 0: not bounded."},

    {"tenants", CONF_T_GROUPS, 0, TENANT_COUNT_MAX, "", MALLOCED(conf, tenant, tenants),
        .text = "Tenants: networks of their own, whose addresses may be the same. `roceway reload` applies "
                "changes, and so do `roceway tenant` and the local API. docs/vxlan.md."},
    {"tenants[].name", CONF_T_NAME, 1, TENANT_NAME_MAX - 1, NULL, N(cfg.name),
        .text = "The tenant's name in logs, the API and metrics."},
    {"tenants[].vni", CONF_T_INT, 1, TENANT_VNI_MAX, NULL, N(cfg.vni),
        .text = "Its VXLAN network identifier, the same at all sites: gateways identify a tenant by its "
                "VNI."},
    {"tenants[].vlan", CONF_T_INT, 0, TENANT_VLAN_MAX, "0", N(cfg.vlan),
        .text = "VLAN ID of its hosts on the LAN ports; 0: it has none there."},
    {"tenants[].prefixes", CONF_T_GROUPS, 1, TENANT_PREFIXES_MAX, NULL,
        MALLOCED(conf_tenant, cfg.prefix, cfg.prefixes),
        .text = "Where the tenant's addresses are. The longest match wins; other tenants' may be the same."},
    {"tenants[].vteps", CONF_T_IPS, 0, TENANT_VTEPS_MAX, "", MALLOCED(conf_tenant, cfg.vtep, cfg.vteps),
        .text = "Its hosts' VTEPs: underlay addresses, UDP 4789. They use any of the gateway's addresses on "
                "LAN ports as theirs."},
    {"tenants[].vtep_learning", CONF_T_ENUM, 0, 0, "false", .words = "false true", N(cfg.vtep_learn),
        .text = "Accept other VTEPs than those."},
    {"tenants[].hosts", CONF_T_GROUPS, 0, TENANT_HOSTS_MAX, "", MALLOCED(conf_tenant, cfg.host, cfg.hosts),
        .text = "Hosts with a configured location, which is not learned. Hardware can forward packets "
                "between two of them."},
    {"tenants[].gateway_addresses", CONF_T_IP_EACH, 0, 2, "", N(cfg.gw_ip),
        .text = "The gateway's own addresses in the tenant: its hosts' next hop. In prefixes at this "
                "site."},
    {"tenants[].gateway_mac", CONF_T_MAC, 0, 0, "", N(cfg.gw_mac),
        .text = "The gateway's MAC address inside the tenant. Left out: 02:52:57 and the VNI."},
    {"tenants[].proxy_arp", CONF_T_ENUM, 0, 0, "false", .words = "false true", N(cfg.proxy_arp),
        .text = "Answer ARP and neighbour discovery for addresses behind tunnels or on the other side here."},
    {"tenants[].acl", CONF_T_GROUPS, 0, ACL_RULES_MAX, "", MALLOCED(conf_tenant, cfg.rule, cfg.rules),
        .text = "Access control list. The first rule that matches decides."},
    {"tenants[].acl_default", CONF_T_ENUM, 0, 0, "allow", .words = "deny allow", N(cfg.allow_default),
        .text = "Action for packets that no rule matches."},
    {"tenants[].ack_mode", CONF_T_ENUM, 0, 0, "", .words = "near far end causal site", N(cfg.ack_mode),
        .text = "As `connections.ack_mode`, which is the default."},
    {"tenants[].admission", CONF_T_ENUM, 0, 0, "", .words = "open cm controller", N(cfg.admission),
        .text = "As `connections.admission`, which is the default. Each site asks for its own hosts."},
    {"tenants[].ack_timeout_min", CONF_T_DURATION, RWY_MS, 60 * RWY_SEC, "", N(cfg.timers.ack_min),
        .text = "As `connections.ack_timeout_min`, which is the default; for connections that begin later."},
    {"tenants[].ack_timeout_max", CONF_T_DURATION, RWY_MS, 600 * RWY_SEC, "", N(cfg.timers.ack_max),
        .text = "As `connections.ack_timeout_max`, likewise."},
    {"tenants[].retry", CONF_T_INT, 1, 255, "", N(cfg.timers.retry),
        .text = "As `connections.retry`, likewise."},
    {"tenants[].rnr_retry", CONF_T_INT, 0, 7, "", N(cfg.timers.rnr_retry),
        .text = "As `connections.rnr_retry`, likewise."},
    {"tenants[].ack_modes", CONF_T_GROUPS, 0, TENANT_MODES_MAX, "",
        .offset = offsetof(struct conf_tenant, cfg.mode), .size = sizeof(struct tenant_mode),
        .count = offsetof(struct conf_tenant, cfg.modes),
        .text = "Other modes for pairs of hosts. The first entry that matches decides."},
    {"tenants[].guarantee", CONF_T_RATE, 8 * TENANT_RATE_MIN, TBPS, "none", .words = "none",
        N(cfg.guarantee_Bps),
        .text = "Rate that it has at least, if it needs it, in each tunnel to its prefixes."},
    {"tenants[].limit", CONF_T_RATE, 8 * TENANT_RATE_MIN, TBPS, "none", .words = "none", N(cfg.limit_Bps),
        .text = "Highest rate that it has in each of them."},
    {"tenants[].weight", CONF_T_INT, 1, TENANT_WEIGHT_MAX, "1", N(cfg.weight),
        .text = "Its share, relative to others' weights, of the rate that no guarantee takes."},
    {"tenants[].priority", CONF_T_INT, 0, TENANT_PRIORITY_MAX, "0", N(cfg.priority),
        .text = "Of several with a guarantee the highest is served first: low latency."},
    {"tenants[].dscp", CONF_T_DSCP, 0, 63, "keep", .words = "keep", N(cfg.dscp),
        .text = "DSCP of its packets on the WAN and in outer headers; `keep`: as they came."},
    {"tenants[].dscp_congested", CONF_T_DSCP, 0, 63, "keep", .words = "keep", N(cfg.dscp_congested),
        .text = "The same for RoCE packets while their path is congested; `keep`: as `dscp`."},
    {"tenants[].pcp", CONF_T_ENUM, 0, 0, "keep", .words = "keep 0 1 2 3 4 5 6 7", N(cfg.pcp),
        .text =
            "VLAN priority (802.1Q PCP) of tagged frames to its hosts; `keep`: that of the frame in which "
            "the packet came from the host at the other site, or 0 if it had no tag."},
    {"tenants[].memory_percent", CONF_T_PERCENT, 0, TENANT_PPM, "0", N(cfg.memory_ppm),
        .text = "Its share of `memory.custody_total`, reserved for it; 0: it uses the part that is not "
                "reserved."},

    {"tenants[].prefixes[].prefix", CONF_T_PREFIX, 0, 0, NULL, NX(p), .text = "Addresses."},
    {"tenants[].prefixes[].at", CONF_T_PLACE, 0, 0, NULL, NX(at),
        .text = "`vtep`: here, behind VTEPs; `vlan`: here, on the tenant's VLAN; or the name of the "
                "tunnel to them."},

    {"tenants[].hosts[].address", CONF_T_IP, 0, 0, NULL, NH(addr), .text = "In a prefix that is here."},
    {"tenants[].hosts[].mac", CONF_T_MAC, 0, 0, NULL, NH(mac), .text = "Its MAC address."},
    {"tenants[].hosts[].vtep", CONF_T_IP, 0, 0, "", NH(vtep),
        .text = "The VTEP that it is behind: one of `vteps`. Left out: it is on the VLAN."},

    {"tenants[].ack_modes[].from", CONF_T_PREFIX, 0, 0, "any", .words = "any", NM(from),
        .text = "Hosts of this site, which ask."},
    {"tenants[].ack_modes[].to", CONF_T_PREFIX, 0, 0, "any", .words = "any", NM(to),
        .text = "Hosts behind a tunnel, which answer."},
    {"tenants[].ack_modes[].mode", CONF_T_ENUM, 0, 0, NULL, .words = "near far end causal site", NM(mode),
        .text = "As `ack_mode`."},

    {"tenants[].acl[].action", CONF_T_ENUM, 0, 0, NULL, .words = "deny allow", NA(allow),
        .text = "Action for packets that match."},
    {"tenants[].acl[].source", CONF_T_PREFIX, 0, 0, "any", .words = "any", NA(src), .text = "From where."},
    {"tenants[].acl[].destination", CONF_T_PREFIX, 0, 0, "any", .words = "any", NA(dst),
        .text = "To where; of the same family."},
    {"tenants[].acl[].source_ports", CONF_T_UDP, 0, 0, "0-65535", NA(sport_lo),
        .text = "UDP source port, or the first and the last of a range. Packets without one count as 0."},
    {"tenants[].acl[].operations", CONF_T_WORDS, 1, ACL_CLASS_COUNT,
        "[send, write, read, atomic, response, cnp, cm, ud, other]",
        .words = "send write read atomic response cnp cm ud other", NA(classes),
        .text = "Operations: `response` is acknowledgements and READ and ATOMIC answers, `cm` connection "
                "management, `ud` other datagrams, `other` all that is not RoCEv2."},
};
/* clang-format on */
const unsigned conf_keys_count = sizeof(conf_keys) / sizeof(conf_keys[0]);
