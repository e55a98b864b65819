/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCEv2 on the wire: headers as byte arrays (no alignment, no host order), each under the
 * standard's drawing. Multi-byte fields are big-endian (rwy/endian.h), only the ICRC is
 * little-endian. Nothing is checked here: roce/parse.h and roce/cm.h verify lengths before these
 * structs are laid over bytes.
 *
 * Each function returns one field of a header, of the width in its drawing, in host order, as it is
 * there. Pure: any thread.
 */
#ifndef ROCE_WIRE_H
#define ROCE_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/endian.h"
#include "rwy/ether.h"

#define ROCE_WIRE_SIZE(type, size)   static_assert(sizeof(struct type) == (size), #type)
#define ROCE_WIRE_AT(type, field, o) static_assert(offsetof(struct type, field) == (o), #type "." #field)

/* --- below RoCE ------------------------------------------------------------------------------- */

#define ROCE_IPPROTO_UDP 17

/* IEEE 802.3: destination 6 | source 6 | EtherType 2 */
struct roce_eth {
	uint8_t dst[6];
	uint8_t src[6];
	uint8_t type[2];
};
ROCE_WIRE_SIZE(roce_eth, 14);

/* IEEE 802.1Q, after the two addresses: 0x8100 | PCP:3 DEI:1 VID:12 | EtherType. This struct begins
 * at the TCI. */
struct roce_vlan {
	uint8_t tci[2];
	uint8_t type[2];
};
ROCE_WIRE_SIZE(roce_vlan, 4);

/*
 * RFC 791 3.1
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * |Version|  IHL  |Type of Service|          Total Length         |
 * |         Identification        |Flags|      Fragment Offset    |
 * |  Time to Live |    Protocol   |         Header Checksum       |
 * |                       Source Address                          |
 * |                    Destination Address                        |
 */
struct roce_ip4 {
	uint8_t ver_ihl;
	uint8_t tos;
	uint8_t tot_len[2];
	uint8_t id[2];
	uint8_t frag[2];
	uint8_t ttl;
	uint8_t proto;
	uint8_t csum[2];
	uint8_t src[4];
	uint8_t dst[4];
};
ROCE_WIRE_SIZE(roce_ip4, 20);
ROCE_WIRE_AT(roce_ip4, csum, 10);
ROCE_WIRE_AT(roce_ip4, src, 12);

#define ROCE_IP4_DF      0x4000
#define ROCE_IP4_MF      0x2000
#define ROCE_IP4_OFFMASK 0x1fff

/*
 * RFC 8200 3
 * |Version| Traffic Class |           Flow Label                  |
 * |         Payload Length        |  Next Header  |   Hop Limit   |
 * |                      Source Address (16)                      |
 * |                   Destination Address (16)                    |
 */
struct roce_ip6 {
	uint8_t vtf[4];
	uint8_t plen[2];
	uint8_t next;
	uint8_t hlim;
	uint8_t src[16];
	uint8_t dst[16];
};
ROCE_WIRE_SIZE(roce_ip6, 40);
ROCE_WIRE_AT(roce_ip6, src, 8);

static inline uint8_t roce_ip6_tclass(const struct roce_ip6 *h)
{
	return (uint8_t)(h->vtf[0] << 4 | h->vtf[1] >> 4);
}
static inline uint32_t roce_ip6_flow(const struct roce_ip6 *h)
{
	return rwy_get32(h->vtf) & 0xfffff;
}

/* RFC 768: |Source Port|Destination Port|Length|Checksum| */
struct roce_udp {
	uint8_t sport[2];
	uint8_t dport[2];
	uint8_t len[2];
	uint8_t csum[2];
};
ROCE_WIRE_SIZE(roce_udp, 8);

/* --- transport headers (IBA 9.2, 9.3) --------------------------------------------------------- */

/*
 * Base Transport Header, IBA 9.2 and A17.3 (FECN, BECN)
 * |    OpCode     |S|M|Pad| TVer  |         Partition Key         |
 * |F|B|  Reserved |             Destination QP                    |
 * |A|  Reserved   |           Packet Sequence Number              |
 */
struct roce_bth {
	uint8_t opcode;
	uint8_t flags;
	uint8_t pkey[2];
	uint8_t fb;
	uint8_t dqpn[3];
	uint8_t areq;
	uint8_t psn[3];
};
ROCE_WIRE_SIZE(roce_bth, 12);
ROCE_WIRE_AT(roce_bth, fb, 4);
ROCE_WIRE_AT(roce_bth, areq, 8);

#define ROCE_BTH_SE      0x80 /* flags: solicited event */
#define ROCE_BTH_MIGREQ  0x40 /* flags: migration state */
#define ROCE_BTH_PAD     0x30 /* flags: pad count, shifted left by 4 */
#define ROCE_BTH_TVER    0x0f /* flags: transport header version */
#define ROCE_BTH_FECN    0x80 /* fb */
#define ROCE_BTH_BECN    0x40 /* fb */
#define ROCE_BTH_ACKREQ  0x80 /* areq */
#define ROCE_CNP_PAD_LEN 16   /* reserved bytes after a CNP's BTH (IBA A17.9.3) */

static inline uint8_t roce_bth_pad(const struct roce_bth *h)
{
	return (h->flags & ROCE_BTH_PAD) >> 4;
}

/* RDMA Extended Transport Header, IBA 9.3.3: |Virtual Address 8|R_Key 4|DMA Length 4| */
struct roce_reth {
	uint8_t va[8];
	uint8_t rkey[4];
	uint8_t len[4];
};
ROCE_WIRE_SIZE(roce_reth, 16);

/* ACK Extended Transport Header, IBA 9.3.5: |Syndrome 1|MSN 3| */
struct roce_aeth {
	uint8_t syndrome;
	uint8_t msn[3];
};
ROCE_WIRE_SIZE(roce_aeth, 4);

/* Atomic Extended Transport Header, IBA 9.3.4: |VA 8|R_Key 4|Swap or Add Data 8|Compare Data 8| */
struct roce_atomiceth {
	uint8_t va[8];
	uint8_t rkey[4];
	uint8_t swap[8];
	uint8_t cmp[8];
};
ROCE_WIRE_SIZE(roce_atomiceth, 28);
ROCE_WIRE_AT(roce_atomiceth, swap, 12);

/* Atomic ACK Extended Transport Header, IBA 9.5.3: |Original Remote Data 8| */
struct roce_atomicacketh {
	uint8_t orig[8];
};
ROCE_WIRE_SIZE(roce_atomicacketh, 8);

/* Reliable Datagram Extended Transport Header, IBA 9.3.1: |Reserved 1|EE Context 3| */
struct roce_rdeth {
	uint8_t rsvd;
	uint8_t ee[3];
};
ROCE_WIRE_SIZE(roce_rdeth, 4);

/* Datagram Extended Transport Header, IBA 9.3.2: |Q_Key 4|Reserved 1|Source QP 3| */
struct roce_deth {
	uint8_t qkey[4];
	uint8_t rsvd;
	uint8_t sqpn[3];
};
ROCE_WIRE_SIZE(roce_deth, 8);

/* XRC Extended Transport Header, IBA annex A14: |Reserved 1|XRC SRQ 3| */
struct roce_xrceth {
	uint8_t rsvd;
	uint8_t srqn[3];
};
ROCE_WIRE_SIZE(roce_xrceth, 4);

/* Immediate Data, IBA 9.3.6, and Invalidate Extended Transport Header, IBA 9.3.7 (an R_Key) */
struct roce_immdt {
	uint8_t imm[4];
};
ROCE_WIRE_SIZE(roce_immdt, 4);
struct roce_ieth {
	uint8_t rkey[4];
};
ROCE_WIRE_SIZE(roce_ieth, 4);

/* --- management datagrams (IBA 13.4.2) -------------------------------------------------------- */

/*
 * |  BaseVersion  |   MgmtClass   |  ClassVersion |R|   Method    |
 * |             Status            |        Class specific         |
 * |                      Transaction ID (8)                       |
 * |          Attribute ID         |           Reserved            |
 * |                     Attribute Modifier                        |
 */
struct roce_mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint8_t status[2];
	uint8_t class_specific[2];
	uint8_t tid[8];
	uint8_t attr_id[2];
	uint8_t rsvd[2];
	uint8_t attr_mod[4];
};
ROCE_WIRE_SIZE(roce_mad, 24);
ROCE_WIRE_AT(roce_mad, tid, 8);
ROCE_WIRE_AT(roce_mad, attr_id, 16);

#define ROCE_MAD_LEN 256 /* every MAD */

/* --- communication management messages (IBA 12.6), after the MAD header ----------------------- */

/* One path of a REQ (IBA 12.6.5): LIDs, GIDs, then
 * |flow label:20 rsvd:6 rate:6|tclass|hop limit|SL:4 local:1 rsvd:3|timeout:5 rsvd:3| */
struct roce_cm_path {
	uint8_t local_lid[2];
	uint8_t remote_lid[2];
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
	uint8_t flow_rate[4];
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t ack_timeout;
};
ROCE_WIRE_SIZE(roce_cm_path, 44);

/*
 * REQ, IBA 12.6.5, table 106. Offsets count from the end of the MAD header.
 *  0 |                    Local Communication ID                     |
 *  4 |                           Reserved                            |
 *  8 |                        Service ID (8)                         |
 * 16 |                       Local CA GUID (8)                       |
 * 24 |                           Reserved                            |
 * 28 |                         Local Q_Key                           |
 * 32 |                 Local QPN:24                  | Resp. resources |
 * 36 |                 Local EECN:24                 | Initiator depth |
 * 40 |                 Remote EECN:24                |RespTmo:5 TST:2 FC:1|
 * 44 |                 Starting PSN:24               |LocalTmo:5 Retry:3  |
 * 48 |             Partition Key     |MTU:4 RDC:1 RNR:3|Retries:4 SRQ:1 ExtTST:3|
 * 52 |                 Primary path (44), Alternate path (44)        |
 * 140|                      Private data (92)                        |
 */
struct roce_cm_req {
	uint8_t local_comm_id[4];
	uint8_t rsvd4[4];
	uint8_t service_id[8];
	uint8_t ca_guid[8];
	uint8_t rsvd24[4];
	uint8_t qkey[4];
	uint8_t qpn[3];
	uint8_t resp_res;
	uint8_t eecn[3];
	uint8_t init_depth;
	uint8_t remote_eecn[3];
	uint8_t b43;
	uint8_t psn[3];
	uint8_t b47;
	uint8_t pkey[2];
	uint8_t b50;
	uint8_t b51;
	struct roce_cm_path primary;
	struct roce_cm_path alternate;
	uint8_t private_data[92];
};
ROCE_WIRE_SIZE(roce_cm_req, ROCE_MAD_LEN - 24);
ROCE_WIRE_AT(roce_cm_req, qpn, 32);
ROCE_WIRE_AT(roce_cm_req, psn, 44);
ROCE_WIRE_AT(roce_cm_req, primary, 52);
ROCE_WIRE_AT(roce_cm_req, alternate, 96);
ROCE_WIRE_AT(roce_cm_req, private_data, 140);

static inline uint8_t roce_cm_req_remote_resp_timeout(const struct roce_cm_req *m)
{
	return m->b43 >> 3;
}
/* 0 RC, 1 UC, 2 RD, 3 see extended type */
static inline uint8_t roce_cm_req_transport(const struct roce_cm_req *m)
{
	return (m->b43 >> 1) & 3;
}
static inline bool roce_cm_req_flow_control(const struct roce_cm_req *m)
{
	return m->b43 & 1;
}
static inline uint8_t roce_cm_req_local_resp_timeout(const struct roce_cm_req *m)
{
	return m->b47 >> 3;
}
static inline uint8_t roce_cm_req_retry_count(const struct roce_cm_req *m)
{
	return m->b47 & 7;
}
/* IBA enumeration: 1 = 256 .. 5 = 4096 */
static inline uint8_t roce_cm_req_path_mtu(const struct roce_cm_req *m)
{
	return m->b50 >> 4;
}
static inline uint8_t roce_cm_req_rnr_retry(const struct roce_cm_req *m)
{
	return m->b50 & 7;
}
static inline uint8_t roce_cm_req_max_cm_retries(const struct roce_cm_req *m)
{
	return m->b51 >> 4;
}
static inline bool roce_cm_req_srq(const struct roce_cm_req *m)
{
	return m->b51 & 8;
}
/* 1 = XRC when the transport is 3 */
static inline uint8_t roce_cm_req_ext_transport(const struct roce_cm_req *m)
{
	return m->b51 & 7;
}
static inline uint32_t roce_cm_path_flow_label(const struct roce_cm_path *p)
{
	return rwy_get32(p->flow_rate) >> 12;
}
/* 4.096 us * 2^n; 0: none */
static inline uint8_t roce_cm_path_ack_timeout(const struct roce_cm_path *p)
{
	return p->ack_timeout >> 3;
}

/*
 * REP, IBA 12.6.8, table 110
 *  0 |                    Local Communication ID                     |
 *  4 |                    Remote Communication ID                    |
 *  8 |                         Local Q_Key                           |
 * 12 |                 Local QPN:24                  |   Reserved    |
 * 16 |                 Local EECN:24                 |   Reserved    |
 * 20 |                 Starting PSN:24               |   Reserved    |
 * 24 | Resp. resources | Initiator depth |AckDelay:5 Failover:2 FC:1|RNR:3 SRQ:1 rsvd:4|
 * 28 |                       Local CA GUID (8)                       |
 * 36 |                      Private data (196)                       |
 */
struct roce_cm_rep {
	uint8_t local_comm_id[4];
	uint8_t remote_comm_id[4];
	uint8_t qkey[4];
	uint8_t qpn[3];
	uint8_t rsvd15;
	uint8_t eecn[3];
	uint8_t rsvd19;
	uint8_t psn[3];
	uint8_t rsvd23;
	uint8_t resp_res;
	uint8_t init_depth;
	uint8_t b26;
	uint8_t b27;
	uint8_t ca_guid[8];
	uint8_t private_data[196];
};
ROCE_WIRE_SIZE(roce_cm_rep, ROCE_MAD_LEN - 24);
ROCE_WIRE_AT(roce_cm_rep, qpn, 12);
ROCE_WIRE_AT(roce_cm_rep, psn, 20);
ROCE_WIRE_AT(roce_cm_rep, b27, 27);
ROCE_WIRE_AT(roce_cm_rep, private_data, 36);

static inline uint8_t roce_cm_rep_ack_delay(const struct roce_cm_rep *m)
{
	return m->b26 >> 3;
}
static inline uint8_t roce_cm_rep_failover(const struct roce_cm_rep *m)
{
	return (m->b26 >> 1) & 3;
}
static inline bool roce_cm_rep_flow_control(const struct roce_cm_rep *m)
{
	return m->b26 & 1;
}
static inline uint8_t roce_cm_rep_rnr_retry(const struct roce_cm_rep *m)
{
	return m->b27 >> 5;
}
static inline bool roce_cm_rep_srq(const struct roce_cm_rep *m)
{
	return m->b27 & 0x10;
}

/* RTU (IBA 12.6.9, table 111) and DREP (12.6.11, table 113): the two IDs and private data. */
struct roce_cm_rtu {
	uint8_t local_comm_id[4];
	uint8_t remote_comm_id[4];
	uint8_t private_data[224];
};
ROCE_WIRE_SIZE(roce_cm_rtu, ROCE_MAD_LEN - 24);
struct roce_cm_drep {
	uint8_t local_comm_id[4];
	uint8_t remote_comm_id[4];
	uint8_t private_data[224];
};
ROCE_WIRE_SIZE(roce_cm_drep, ROCE_MAD_LEN - 24);

/*
 * REJ, IBA 12.6.7, table 108
 *  8 |Msg:2 rsvd:6|InfoLen:7 rsvd:1|             Reason             |
 * 12 |          Additional Reject Information (72)                   |
 * 84 |                      Private data (148)                       |
 */
struct roce_cm_rej {
	uint8_t local_comm_id[4];
	uint8_t remote_comm_id[4];
	uint8_t b8;
	uint8_t b9;
	uint8_t reason[2];
	uint8_t ari[72];
	uint8_t private_data[148];
};
ROCE_WIRE_SIZE(roce_cm_rej, ROCE_MAD_LEN - 24);
ROCE_WIRE_AT(roce_cm_rej, reason, 10);
ROCE_WIRE_AT(roce_cm_rej, private_data, 84);

static inline uint8_t roce_cm_rej_msg(const struct roce_cm_rej *m) /* 0 REQ, 1 REP, 2 other */
{
	return m->b8 >> 6;
}
static inline uint8_t roce_cm_rej_info_len(const struct roce_cm_rej *m)
{
	return m->b9 >> 1;
}

/* MRA, IBA 12.6.6, table 107: IDs |Msg:2 rsvd:6|Timeout:5 rsvd:3| private data */
struct roce_cm_mra {
	uint8_t local_comm_id[4];
	uint8_t remote_comm_id[4];
	uint8_t b8;
	uint8_t b9;
	uint8_t private_data[222];
};
ROCE_WIRE_SIZE(roce_cm_mra, ROCE_MAD_LEN - 24);

static inline uint8_t roce_cm_mra_msg(const struct roce_cm_mra *m) /* 0 REQ, 1 REP, 2 other */
{
	return m->b8 >> 6;
}
static inline uint8_t roce_cm_mra_service_timeout(const struct roce_cm_mra *m)
{
	return m->b9 >> 3;
}

/* DREQ, IBA 12.6.10, table 112: IDs |Remote QPN:24 rsvd:8| private data */
struct roce_cm_dreq {
	uint8_t local_comm_id[4];
	uint8_t remote_comm_id[4];
	uint8_t remote_qpn[3];
	uint8_t rsvd11;
	uint8_t private_data[220];
};
ROCE_WIRE_SIZE(roce_cm_dreq, ROCE_MAD_LEN - 24);
ROCE_WIRE_AT(roce_cm_dreq, remote_qpn, 8);

#endif
