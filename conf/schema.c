/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema: all keys. Parser, messages, --check and docs/configuration.md follow this table.
 * Rules over more than one key are in check.c.
 */
#include "conf/schema.h"

#define KIB  UINT64_C(1024)
#define MIB  (KIB << 10)
#define GIB  (KIB << 20)
#define TIB  (KIB << 30)
#define TBPS UINT64_C(1000000000000)

/* clang-format off: a table reads best as one */
#define C(f)    .offset = offsetof(struct conf, f), .size = sizeof(((struct conf *)0)->f), .restart = true
#define LIVE(f) .offset = offsetof(struct conf, f), .size = sizeof(((struct conf *)0)->f)
#define P(f)                                                                                                 \
	.offset = offsetof(struct conf_port, f), .size = sizeof(((struct conf_port *)0)->f), .restart = true
#define T(f)  .offset = offsetof(struct conf_tunnel, f), .size = sizeof(((struct conf_tunnel *)0)->f)
#define S(f)  .offset = offsetof(struct conf_sibling, f), .size = sizeof(((struct conf_sibling *)0)->f)
#define N(f)  .offset = offsetof(struct conf_tenant, f), .size = sizeof(((struct conf_tenant *)0)->f)
#define NX(f) .offset = offsetof(struct tenant_prefix, f), .size = sizeof(((struct tenant_prefix *)0)->f)
#define NH(f) .offset = offsetof(struct tenant_host, f), .size = sizeof(((struct tenant_host *)0)->f)
#define NA(f) .offset = offsetof(struct acl_rule, f), .size = sizeof(((struct acl_rule *)0)->f)
#define MALLOCED(s, f, n)                                                                                    \
	.offset = offsetof(struct s, f), .size = sizeof(*((struct s *)0)->f),                                \
	.count = offsetof(struct s, n), .malloced = true
#define LIST(s, f, n)                                                                                        \
	.offset = offsetof(struct s, f), .size = sizeof(((struct s *)0)->f[0]),                              \
	.count = offsetof(struct s, n), .restart = true
#define LIVE_LIST(s, f, n)                                                                                   \
	.offset = offsetof(struct s, f), .size = sizeof(((struct s *)0)->f[0]), .count = offsetof(struct s, n)

const struct conf_key conf_keys[] = {
    {"gateway", CONF_T_GROUP, .text = "The gateway as a whole."},
    {"gateway.name", CONF_T_NAME, 1, CONF_NAME - 1, NULL, C(name),
        .text = "The gateway's name in logs, in the API and to its peers."},
    {"gateway.weight", CONF_T_INT, 1, 65535, "1", LIVE(weight),
        .text = "Its share of the site's address pairs, beside those of `siblings`."},
    {"gateway.workers", CONF_T_INT, 1, 64, "1", C(workers),
        .text = "Packet-processing threads. Flows are spread over them by address pair; both ends of a "
                "tunnel need the same number."},
    {"gateway.polling", CONF_T_ENUM, 0, 0, "adaptive", .words = "adaptive busy", C(polling),
        .text = "`adaptive` sleeps when there is nothing to do; `busy` never sleeps: for workers with CPUs "
                "of their own."},
    {"gateway.log_level", CONF_T_ENUM, 0, 0, "info", .words = "error warning notice info debug",
        LIVE(log_level), .text = "The least important messages that are still logged."},
    {"gateway.journal_dir", CONF_T_PATH, 2, CONF_STR - 1, "/dev/shm", C(journal_dir),
        .text =
            "Directory, in memory, for the file that says up to where hosts were acknowledged. The next "
            "process takes the connections up from it: they go on, or get an error if something was lost."},

    {"eal", CONF_T_GROUP, .text = "DPDK's environment."},
    {"eal.args", CONF_T_STRINGS, 0, CONF_EAL_ARGS_MAX, "", LIST(conf, eal_args, eal_argc),
        .text = "Arguments for DPDK, passed as they are."},
    {"eal.cores", CONF_T_CPUS, 0, 0, "", C(cores),
        .text = "CPUs for the workers, such as `1-2` or `0,4-7`. Left out: whatever the process may use."},

    {"ports", CONF_T_GROUPS, 2, CONF_PORTS_MAX, NULL, LIST(conf, port, ports),
        .text = "Network ports: at least one of role `lan` and one of role `wan`."},
    {"ports[].name", CONF_T_NAME, 1, CONF_NAME - 1, NULL, P(name),
        .text = "The port's name; tunnels refer to it."},
    {"ports[].device", CONF_T_STRING, 1, CONF_STR * 2 - 1, NULL, P(device),
        .text = "A PCI address (`0000:3b:00.0`) or a DPDK virtual device with its arguments "
                "(`net_af_packet0,iface=eth1`)."},
    {"ports[].role", CONF_T_ENUM, 0, 0, NULL, .words = "lan wan", P(role),
        .text = "`lan` faces local hosts, `wan` faces other gateways."},
    {"ports[].addresses", CONF_T_ADDRS, 1, CONF_ADDRS_MAX, NULL, LIST(conf_port, addr, addrs),
        .text = "The gateway's own addresses with the length of their subnet. On a LAN port: the hosts' next "
                "hop towards the other site."},
    {"ports[].mtu", CONF_T_INT, 576, 9000, "1500", P(mtu),
        .text = "Largest IP packet, bytes. IPv6 needs 1280."},
    {"ports[].vlan", CONF_T_INT, 0, 4094, "0", P(vlan), .text = "VLAN ID of every frame; 0: untagged."},
    {"ports[].offload", CONF_T_ENUM, 0, 0, "off", .words = "off rte_flow tc", P(offload),
        .text =
            "Tenants' rules in the hardware of a LAN port: by the port's DPDK driver (`rte_flow`), or by the "
            "kernel's driver of a switch port (`tc`). Software enforces everything all the same."},
    {"ports[].offload_device", CONF_T_NAME, 1, CONF_IFNAME - 1, "", P(offload_device),
        .text =
            "With `tc`: the kernel's interface through which the port's frames come in, such as the eSwitch "
            "representor of the uplink."},

    {"tunnels", CONF_T_GROUPS, 0, CONF_TUNNELS_MAX, "", LIVE_LIST(conf, tunnel, tunnels),
        .text =
            "Tunnels to peer gateways. Required unless a control center names them. `roceway reload` "
            "applies changes, and so do `roceway tunnel` and the local API: a tunnel with other ends "
            "(`port`, `local`, `remote`, `udp_port`, `security`, `congestion_control`, `fec`, `ecn`) is "
            "another tunnel, and its connections begin anew; with another rate, DSCP, threshold or prefix "
            "it stays."},
    {"tunnels[].name", CONF_T_NAME, 1, CONF_NAME - 1, NULL, T(name),
        .text = "The tunnel's name in logs, the API and metrics."},
    {"tunnels[].port", CONF_T_NAME, 1, CONF_NAME - 1, NULL, T(port),
        .text = "The port of role `wan` that it leaves by."},
    {"tunnels[].local", CONF_T_IP, 0, 0, NULL, T(local), .text = "Our address: one of that port's."},
    {"tunnels[].remote", CONF_T_IP, 0, 0, NULL, T(remote), .text = "The peer's address, of the same family."},
    {"tunnels[].udp_port", CONF_T_INT, 1024, 65535, "4793", T(udp_port),
        .text = "UDP port of worker 0 on both sides; worker i uses `udp_port` + i."},
    {"tunnels[].prefixes", CONF_T_PREFIXES, 1, CONF_PREFIXES_MAX, "",
        LIVE_LIST(conf_tunnel, prefix, prefixes),
        .text = "Destinations behind the peer, of hosts that are no tenant's. The longest match over all "
                "tunnels wins. Required unless the file has `tenants` or `controller`."},
    {"tunnels[].security", CONF_T_ENUM, 0, 0, NULL, .words = "none", T(security),
        .text = "`none`: packets cross the WAN readable and unauthenticated. There is no default, so that "
                "nobody gets it unawares."},
    {"tunnels[].congestion_control", CONF_T_ENUM, 0, 0, "auto", .words = "auto fixed bbr swift dcqcn cubic",
        T(cc),
        .text =
            "`auto` finds the path's rate by itself; `fixed` sends at `rate` whatever happens. The others "
            "are for paths that ask for them: docs/congestion-control.md."},
    {"tunnels[].fec", CONF_T_ENUM, 0, 0, "auto", .words = "auto off", T(fec),
        .text = "Forward error correction: `auto` protects the ends of messages as far as the measured loss "
                "asks for it; "
                "`off` only retransmits."},
    {"tunnels[].ecn", CONF_T_ENUM, 0, 0, "auto", .words = "auto off", T(ecn),
        .text = "Congestion marks of the WAN's routers: `auto` sends datagrams ECN-capable unless the path "
                "turns out to lose "
                "or clear the mark; `off` does not."},
    {"tunnels[].carrier", CONF_T_ENUM, 0, 0, "native", .words = "native tcp", T(carrier),
        .text =
            "How its datagrams travel: `native` is UDP, `tcp` is connections of the kernel's TCP, natively "
            "while there are none. The other end follows. docs/carriers.md."},
    {"tunnels[].tcp_port", CONF_T_INT, 0, 65535, "4793", T(tcp_port),
        .text = "TCP port that it listens on and connects to, the same on both sides; 0: no TCP."},
    {"tunnels[].tcp_connections", CONF_T_INT, 1, 16, "4", T(tcp_connections),
        .text = "TCP connections that this end opens."},
    {"tunnels[].tcp_congestion_control", CONF_T_ENUM, 0, 0, "auto", .words = "auto bbr cubic", T(tcp_cc),
        .text = "Theirs. `auto`: `bbr` if the kernel has it, else `cubic`, else the kernel's own choice; "
                "`roceway tunnels` says which. Another one that the kernel has not is refused."},
    {"tunnels[].tcp_local", CONF_T_IP, 0, 0, "", T(tcp_local),
        .text = "Our address of the TCP connections, of any interface of the kernel. Left out: `local`."},
    {"tunnels[].tcp_remote", CONF_T_IP, 0, 0, "", T(tcp_remote), .text = "The peer's. Left out: `remote`."},
    {"tunnels[].rate", CONF_T_RATE, 1000000, TBPS, "10Gbps", T(rate_Bps),
        .text = "The rate (`fixed`) or its upper bound (all others). The workers share it evenly."},
    {"tunnels[].weight", CONF_T_INT, 0, 65535, "1", T(weight),
        .text =
            "Where several tunnels have the same prefix, as those of a control center may: its share of the "
            "address pairs, beside the others' weights."},
    {"tunnels[].peer", CONF_T_NAME, 1, CONF_NAME - 1, "", T(peer),
        .text =
            "The name of the gateway at its other end. Where it is said, both sites come to the same pair of "
            "gateways for an address pair; required beside `siblings`."},
    {"tunnels[].dscp", CONF_T_DSCP, 0, 63, "0", .words = "keep", T(dscp),
        .text = "DSCP of its datagrams, where a tenant's `dscp` does not say another; `keep`: that of the "
                "packet inside."},
    {"tunnels[].dscp_congested", CONF_T_DSCP, 0, 63, "0", .words = "keep", T(dscp_congested),
        .text = "The same while the path is congested for good, which the following keys define."},
    {"tunnels[].congested_loss_percent", CONF_T_PERCENT, 0, 1000000, "3", T(congest.loss_ppm),
        .text = "Share of datagrams lost above which a path is congested; 0: loss is not looked at."},
    {"tunnels[].congested_marks_percent", CONF_T_PERCENT, 0, 1000000, "10", T(congest.marks_ppm),
        .text = "Share of datagrams that routers marked (ECN) above which it is; 0: not looked at."},
    {"tunnels[].congested_delay_percent", CONF_T_PERCENT, 0, 10000000, "50", T(congest.delay_ppm),
        .text =
            "How much longer a round trip takes, at its best, than without a queue (and 5 ms at least); 0: "
            "not looked at."},
    {"tunnels[].congested_hold", CONF_T_DURATION, 100 * RWY_MS, 60 * RWY_SEC, "400ms", T(congest.hold),
        .text = "For so long, and four round trips, one of them must be above its threshold."},
    {"tunnels[].congested_clear", CONF_T_DURATION, RWY_SEC, 3600 * RWY_SEC, "2s", T(congest.clear),
        .text = "After so long, and eight round trips, with all below half their thresholds it is over. A "
                "path that "
                "is congested again soon stays so twice as long, up to 64 times."},

    {"siblings", CONF_T_GROUPS, 0, CONF_SIBLINGS_MAX, "", LIVE_LIST(conf, sibling, siblings),
        .text =
            "Other gateways of this site, where no control center names them: RoCE packets of address pairs "
            "that are theirs are handed to them. `roceway reload` applies changes. "
            "docs/gateway-control.md."},
    {"siblings[].name", CONF_T_NAME, 1, CONF_NAME - 1, NULL, S(name), .text = "Its `gateway.name`."},
    {"siblings[].address", CONF_T_IP, 0, 0, NULL, S(address),
        .text = "One of its addresses on this gateway's LAN."},
    {"siblings[].weight", CONF_T_INT, 1, 65535, "1", S(weight), .text = "Its `gateway.weight`."},

    {"connections", CONF_T_GROUP, .text = "RDMA connections."},
    {"connections.ack_mode", CONF_T_ENUM, 0, 0, "near", .words = "near far end", C(ack_mode),
        .text = "When a host's request is acknowledged: `near`, this gateway has it; `far`, the peer has it "
                "too; `end`, the far host has it."},
    {"connections.max", CONF_T_INT, 16, 4000000, "100000", C(conns_max),
        .text = "Entries of the flow table, over all workers."},
    {"connections.idle_expiry", CONF_T_DURATION, RWY_SEC, 86400 * RWY_SEC, "10min", C(idle_expiry),
        .text = "A flow without packets for this long, with nothing in custody, is forgotten."},
    {"connections.half_open_max", CONF_T_INT, 1, 1000000, "1024", C(half_open_max),
        .text = "Connections of which only one direction is known, at most."},
    {"connections.rnr_retry", CONF_T_INT, 0, 7, "7", C(rnr_retry),
        .text = "RNR retries of a connection whose own count is not known; 7: no limit."},
    {"connections.retry", CONF_T_INT, 1, 7, "7", C(retry),
        .text = "Local retransmissions without progress before the far host is given up, for a connection "
                "whose own count is not known."},
    {"connections.host_window", CONF_T_INT, 1, 65536, "128", C(host_window),
        .text = "Packets in flight to a local host per connection."},

    {"congestion", CONF_T_GROUP, .text = "Congestion on the local segments."},
    {"congestion.near_source_min", CONF_T_SIZE, 0, GIB, "2MiB", C(np_min),
        .text =
            "Bytes of a connection waiting for the WAN from which its host is sent CNPs while they grow."},
    {"congestion.near_source_max", CONF_T_SIZE, 0, GIB, "16MiB", C(np_max),
        .text =
            "From here on every packet asks for one (at most one in 50 us is sent); 0: no CNPs for queues."},
    {"congestion.near_source_percent", CONF_T_INT, 1, 100, "10", C(np_percent),
        .text = "Probability of a CNP for a packet just below `near_source_max`."},
    {"congestion.near_destination", CONF_T_ENUM, 0, 0, "dcqcn", .words = "dcqcn none", C(near_destination),
        .text = "What CNPs of a local host do: slow down what is sent to it, as DCQCN does, or nothing."},
    {"congestion.end_to_end", CONF_T_ENUM, 0, 0, "window", .words = "window none", C(end_to_end),
        .text = "What a slow local host does to the other site: its flows may have no more on the way than "
                "it takes "
                "in a round trip, or nothing but credit bounds them."},

    {"memory", CONF_T_GROUP, .text = "Memory. All of it is taken at start."},
    {"memory.buffers", CONF_T_INT, 1024, 16777216, "65536", C(buffers), .text = "Packet buffers in all."},
    {"memory.custody_per_connection", CONF_T_SIZE, 64 * KIB, 64 * GIB, "32MiB", C(custody_conn),
        .text =
            "Bytes kept for one connection until the far host has them; above it, its ACKs are held back."},
    {"memory.custody_total", CONF_T_SIZE, MIB, TIB, "256MiB", C(custody_total),
        .text = "The same for all connections. At most 4KiB for each of `memory.buffers`."},
    {"memory.read_cache_per_connection", CONF_T_SIZE, 64 * KIB, GIB, "4MiB", C(read_cache_conn),
        .text = "Served READ responses kept for a host that asks again, in what their buffers take. All "
                "connections together keep at most an eighth of `buffers`."},

    {"api", CONF_T_GROUP, .text = "The local API, which the `roceway` command uses."},
    {"api.socket", CONF_T_PATH, 2, 107, "/run/roceway/gateway.sock", C(api_socket),
        .text = "Path of its Unix socket."},

    {"controller", CONF_T_GROUP,
        .text = "The control center, which names tunnels and tenants besides those of this file. "
                "docs/gateway-control.md."},
    {"controller.urls", CONF_T_STRINGS, 1, CONF_URLS_MAX, "", LIST(conf, controller.url, controller.urls),
        .text = "Controllers, `https://host` or `https://host:port`, in the order in which they are tried. "
                "Left out: there is none."},
    {"controller.ca", CONF_T_PATH, 2, CONF_STR - 1, "", C(controller.ca),
        .text = "PEM file with the authority that controllers' certificates must come from."},
    {"controller.certificate", CONF_T_PATH, 2, CONF_STR - 1, "", C(controller.certificate),
        .text = "PEM file with this gateway's certificate: CN is `gateway.name`, OU is `gateway`."},
    {"controller.key", CONF_T_PATH, 2, CONF_STR - 1, "", C(controller.key), .text = "PEM file with its key."},
    {"controller.site", CONF_T_NAME, 1, CONF_NAME - 1, "", C(controller.site),
        .text = "The site that this gateway is at."},
    {"controller.bandwidth", CONF_T_RATE, 1000000, TBPS, "port", .words = "port", C(controller.bandwidth_Bps),
        .text =
            "What the gateway offers to carry, by which the control center shares the load among the "
            "gateways of a site; `port`: the speed of its fastest WAN port, or 10Gbps if that is not known."},
    {"controller.tcp_bandwidth", CONF_T_RATE, 1000000, TBPS, "bandwidth", .words = "bandwidth",
        C(controller.tcp_bandwidth_Bps),
        .text = "The same by TCP, where that is more or less than natively: more where the network lets UDP "
                "have only a part; `bandwidth`: the same."},
    {"controller.tcp_congestion_control", CONF_T_ENUM, 0, 0, "auto", .words = "auto bbr cubic",
        C(controller.tcp_cc),
        .text = "`tcp_congestion_control` of the control center's tunnels. It is told which, and predicts "
                "TCP by it; `auto`: those of the two that the kernel allows."},
    {"controller.document", CONF_T_PATH, 2, CONF_STR - 1, "/var/lib/roceway/document.json",
        C(controller.document),
        .text = "File in which the last document of the controller is kept: what runs after a start while no "
                "controller answers."},

    {"tenants", CONF_T_GROUPS, 0, TENANT_COUNT_MAX, "", MALLOCED(conf, tenant, tenants),
        .text = "Tenants: networks of their own, whose addresses may be the same. `roceway reload` applies "
                "changes, and so do `roceway tenant` and the local API. docs/vxlan.md."},
    {"tenants[].name", CONF_T_NAME, 1, TENANT_NAME_MAX - 1, NULL, N(cfg.name),
        .text = "The tenant's name in logs, the API and metrics."},
    {"tenants[].vni", CONF_T_INT, 1, TENANT_VNI_MAX, NULL, N(cfg.vni),
        .text = "Its VXLAN network identifier, the same at all sites: between gateways a tenant is its VNI."},
    {"tenants[].vlan", CONF_T_INT, 0, TENANT_VLAN_MAX, "0", N(cfg.vlan),
        .text = "VLAN ID of its hosts on the LAN ports; 0: none are there."},
    {"tenants[].prefixes", CONF_T_GROUPS, 1, TENANT_PREFIXES_MAX, NULL,
        MALLOCED(conf_tenant, cfg.prefix, cfg.prefixes),
        .text = "Where the tenant's addresses are. The longest match wins; other tenants' may be the same."},
    {"tenants[].vteps", CONF_T_IPS, 0, TENANT_VTEPS_MAX, "", MALLOCED(conf_tenant, cfg.vtep, cfg.vteps),
        .text = "Its hosts' VTEPs: underlay addresses, UDP 4789. They use any of the gateway's addresses on "
                "LAN ports as theirs."},
    {"tenants[].vtep_learning", CONF_T_ENUM, 0, 0, "false", .words = "false true", N(cfg.vtep_learn),
        .text = "Accept other VTEPs than those."},
    {"tenants[].hosts", CONF_T_GROUPS, 0, TENANT_HOSTS_MAX, "", MALLOCED(conf_tenant, cfg.host, cfg.hosts),
        .text =
            "Hosts whose place is fixed, and is not learned. What goes between two of them can be left to "
            "hardware."},
    {"tenants[].gateway_addresses", CONF_T_IP_EACH, 0, 2, "", N(cfg.gw_ip),
        .text = "The gateway's own inside the tenant: its hosts' next hop. In a prefix that is here."},
    {"tenants[].gateway_mac", CONF_T_MAC, 0, 0, "", N(cfg.gw_mac),
        .text = "The gateway's MAC address inside the tenant. Left out: 02:52:57 and the VNI."},
    {"tenants[].proxy_arp", CONF_T_ENUM, 0, 0, "false", .words = "false true", N(cfg.proxy_arp),
        .text = "Answer ARP and neighbour discovery for addresses behind tunnels or on the other side here."},
    {"tenants[].acl", CONF_T_GROUPS, 0, ACL_RULES_MAX, "", MALLOCED(conf_tenant, cfg.rule, cfg.rules),
        .text = "Who may do what. The first rule that matches decides."},
    {"tenants[].acl_default", CONF_T_ENUM, 0, 0, "allow", .words = "deny allow", N(cfg.allow_default),
        .text = "What becomes of packets that no rule matches."},
    {"tenants[].ack_mode", CONF_T_ENUM, 0, 0, "", .words = "near far end", N(cfg.ack_mode),
        .text = "As `connections.ack_mode`, which it is when left out."},
    {"tenants[].guarantee", CONF_T_RATE, 8 * TENANT_RATE_MIN, TBPS, "none", .words = "none",
        N(cfg.guarantee_Bps),
        .text = "What it gets, if it asks for it, of each tunnel that it has prefixes behind."},
    {"tenants[].limit", CONF_T_RATE, 8 * TENANT_RATE_MIN, TBPS, "none", .words = "none", N(cfg.limit_Bps),
        .text = "What it gets at most of each of them."},
    {"tenants[].weight", CONF_T_INT, 1, TENANT_WEIGHT_MAX, "1", N(cfg.weight),
        .text = "Its share, beside others' weights, of what nobody's guarantee takes."},
    {"tenants[].priority", CONF_T_INT, 0, TENANT_PRIORITY_MAX, "0", N(cfg.priority),
        .text = "Of several with a guarantee the highest is served first: low latency."},
    {"tenants[].dscp", CONF_T_DSCP, 0, 63, "keep", .words = "keep", N(cfg.dscp),
        .text = "DSCP of its packets on the WAN and in outer headers; `keep`: as they came."},
    {"tenants[].dscp_congested", CONF_T_DSCP, 0, 63, "keep", .words = "keep", N(cfg.dscp_congested),
        .text = "The same for RoCE packets while their path is congested; `keep`: as `dscp`."},
    {"tenants[].memory_percent", CONF_T_PERCENT, 0, TENANT_PPM, "0", N(cfg.memory_ppm),
        .text = "Its share of `memory.custody_total`, reserved for it; 0: it lives on what nobody reserved."},

    {"tenants[].prefixes[].prefix", CONF_T_PREFIX, 0, 0, NULL, NX(p), .text = "Addresses."},
    {"tenants[].prefixes[].at", CONF_T_PLACE, 0, 0, NULL, NX(at),
        .text = "`vtep`: here, behind VTEPs; `vlan`: here, on the tenant's VLAN; or the name of the tunnel "
                "that they are behind."},

    {"tenants[].hosts[].address", CONF_T_IP, 0, 0, NULL, NH(addr), .text = "In a prefix that is here."},
    {"tenants[].hosts[].mac", CONF_T_MAC, 0, 0, NULL, NH(mac), .text = "Its MAC address."},
    {"tenants[].hosts[].vtep", CONF_T_IP, 0, 0, "", NH(vtep),
        .text = "The VTEP that it is behind: one of `vteps`. Left out: it is on the VLAN."},

    {"tenants[].acl[].action", CONF_T_ENUM, 0, 0, NULL, .words = "deny allow", NA(allow),
        .text = "What becomes of packets that match."},
    {"tenants[].acl[].source", CONF_T_PREFIX, 0, 0, "any", .words = "any", NA(src), .text = "From where."},
    {"tenants[].acl[].destination", CONF_T_PREFIX, 0, 0, "any", .words = "any", NA(dst),
        .text = "To where; of the same family."},
    {"tenants[].acl[].source_ports", CONF_T_UDP, 0, 0, "0-65535", NA(sport_lo),
        .text = "UDP source port, or the first and the last of several. What has none counts as 0."},
    {"tenants[].acl[].operations", CONF_T_WORDS, 1, ACL_CLASS_COUNT,
        "[send, write, read, atomic, response, cnp, cm, ud, other]",
        .words = "send write read atomic response cnp cm ud other", NA(classes),
        .text = "What packets do: `response` is acknowledgements and READ and ATOMIC answers, `cm` "
                "connection management, `ud` other datagrams, `other` all that is not RoCEv2."},
};
/* clang-format on */

const unsigned conf_keys_count = sizeof(conf_keys) / sizeof(conf_keys[0]);
