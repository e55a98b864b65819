/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of headers, so that models without wan/ send packets of the same size. */
#ifndef SIM_WAN_WIRE_H
#define SIM_WAN_WIRE_H

#define INNER_HEAD    44 /* IPv4 20, UDP 8, BTH 12, ICRC 4 */
#define INNER_RETH    16 /* added in the first packet of a WRITE */
#define WAN_DATA_HEAD 30 /* datagram header 20, DATA frame 10 */

#endif
