/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the wire format limits and the transport's users need. */
#ifndef WAN_WIRE_LIMITS_H
#define WAN_WIRE_LIMITS_H

#define WAN_HDR_MAX    224 /* bytes of WAN header and frames before the payload */
#define WAN_OPEN_MAX   96  /* bytes of a flow's open information */
#define WAN_REASM_ROOM 192 /* headroom of reassembled buffers, for the headers of the LAN side */

#define WAN_PATHS_MAX 8 /* of a tunnel */

#endif
