/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside roceway capture: the gateway's stream of pcapng in blocks (capture_block.c) out of memory
 * that both have (capture_slots.c), kept until something happens (capture_trigger.c), into files
 * (capture_file.c), which are written in pieces (capture_write.c); or packets of a kernel interface
 * (capture_if.c). One thread.
 */
#ifndef TOOLS_ROCEWAY_CAPTURE_H
#define TOOLS_ROCEWAY_CAPTURE_H

#include <signal.h>

#include "base/slots.h"
#include "rwy/err.h"
#include "tools/roceway/capture_write.h"
#include "tools/roceway/roceway.h"

/* --- files ------------------------------------------------------------------------------------ */

/* The block at the beginning of a piece of the file, or the one that spans it. */
struct cap_mark {
	uint64_t offset, packets; /* in the file; packets before it */
};
#define CAP_MARKS (2 * CAP_PIECES) /* more than the pieces that are not written */

/* A file, standard output, or a ring of files. */
struct cap_file {
	const char *path; /* "-": standard output */
	unsigned ring;    /* files that are kept; 0: one file without end */
	uint64_t max;     /* bytes of each, with `ring` */
	unsigned number;  /* of the file that is open, from 1 on, with `ring` */
	int fd;           /* -1: none yet */
	bool failed;      /* and told */
	uint64_t size;    /* bytes added to it, whole blocks */
	uint8_t *head;    /* blocks that each file begins with */
	size_t head_len;
	struct cap_writer writer;
	struct cap_mark mark[CAP_MARKS]; /* by number of the piece */
	/* packets added to all files, surely written, and in files before this one */
	uint64_t added, packets, packets_before;
};
/* Adds a block of the head, or another one; it is copied. The first one opens the file. False,
 * after cli_error(): then the file ends with the last whole block. Standard output may end within
 * one. */
bool cap_file_head(struct cap_file *f, const uint8_t *block, size_t len);
bool cap_file_add(struct cap_file *f, const uint8_t *block, size_t len);
/* Called now and then: what was added is written within some hundred milliseconds; into a pipe, at
 * once. all: it is written when the call returns. False as above. */
bool cap_file_flush(struct cap_file *f, bool all);
/* Drops what was not flushed. */
void cap_file_close(struct cap_file *f);

/* --- blocks ----------------------------------------------------------------------------------- */

enum cap_block_type {
	CAP_SECTION = 0x0a0d0d0a,
	CAP_INTERFACE = 1,
	CAP_STATISTICS = 5,
	CAP_PACKET = 6,
};
#define CAP_BLOCK_MIN     12u /* bytes of the shortest block */
#define CAP_OPT_COMMENT   1
#define CAP_OPT_DROPCOUNT 4 /* of a packet */
#define CAP_OPT_IFDROP    5 /* of statistics */
#define CAP_IFS_MAX       64

/* Bytes that come in pieces, cut into blocks. Zeroed memory is an empty one; free() data. */
struct cap_blocks {
	uint8_t *data;
	size_t len, max;
};
/* Calls `block` for each whole block; false from it ends. RWY_EINVAL: this is no pcapng of this
 * machine's byte order; RWY_ENOMEM; RWY_EAGAIN: ended. */
RWY_MUST_CHECK int cap_blocks_add(struct cap_blocks *b, const void *data, size_t len,
    bool (*block)(void *ctx, const uint8_t *block, size_t len), void *ctx);
uint32_t cap_block_type(const uint8_t *block);
uint32_t cap_block_len(const uint8_t *block); /* bytes, of a block that was handed over */
/* The first 32-bit field of its body: the interface of a packet or of statistics. */
uint32_t cap_block_interface(const uint8_t *block);
/* An option of a packet or of statistics; NULL: it has none. *len: bytes. */
const uint8_t *cap_block_option(const uint8_t *block, size_t len, unsigned code, size_t *opt_len);

/* Calls `block` for each block of data, which has whole ones. Returns as cap_blocks_add(). */
RWY_MUST_CHECK int cap_blocks_whole(
    const uint8_t *data, size_t len, bool (*block)(void *ctx, const uint8_t *block, size_t len), void *ctx);

/* --- the gateway's stream in memory ----------------------------------------------------------- */

#define CAP_SILENCE_MS 15000 /* the gateway tells something each second */

struct cap_slots {
	struct base_slots memory;
	int fd; /* the connection; -1: none */
};
/* Asks for the page `target` and switches. RWY_EAGAIN: the gateway did not; nothing is left. */
RWY_MUST_CHECK int cap_slots_open(struct cap_slots *s, const char *socket_path, const char *target);
enum cap_slots_end {
	CAP_SLOTS_OVER,    /* all has been read */
	CAP_SLOTS_STOPPED, /* by a callback */
	CAP_SLOTS_GONE,    /* the gateway is gone without an end */
	CAP_SLOTS_SILENT,  /* the gateway has told nothing for 15 s, not even its statistics */
};
/* Reads to the end. blocks: whole ones, in order, gone after the call; tick: after each call
 * of `blocks`, and ten times a second at least when there is nothing. False from either stops. */
enum cap_slots_end cap_slots_run(struct cap_slots *s,
    bool (*blocks)(void *ctx, const uint8_t *data, size_t len), bool (*tick)(void *ctx), void *ctx);
void cap_slots_close(struct cap_slots *s);

/* --- trigger ---------------------------------------------------------------------------------- */

/* Keeps the last packets of all connections, and passes on those of connections that had an
 * event. */
struct cap_trigger;
/* events: a list such as "nak,rnr". memory: bytes of packets that are kept. NULL, after
 * cli_error(): an event is unknown, or no memory. */
struct cap_trigger *cap_trigger_new(const char *events, size_t memory);
void cap_trigger_free(struct cap_trigger *t); /* NULL is allowed */
/* Takes a packet's block, and writes what it brings into the file: nothing; the block; or what was
 * kept of its connection, and the block. False: a file's error. */
bool cap_trigger_packet(struct cap_trigger *t, const uint8_t *block, size_t len, struct cap_file *f);
unsigned cap_trigger_connections(const struct cap_trigger *t); /* that had an event */

/* --- a kernel interface ----------------------------------------------------------------------- */

struct cap_limits {
	uint64_t snap, rate, count, seconds; /* 0: none */
};
/* Set by SIGINT and SIGTERM. */
extern volatile sig_atomic_t cap_stopped;
/* Captures with libpcap, in its own format and filter language. Returns an exit code. */
int cap_interface(const struct cli *cli, const char *name, const char *filter, const struct cap_limits *l,
    const char *path);

#endif
