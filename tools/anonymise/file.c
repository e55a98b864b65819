/* SPDX-License-Identifier: Apache-2.0 */
/* Link layers and files; packet.c does the rest. What is not RoCEv2 is left out. */
#include "tools/anonymise/file.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rwy/endian.h"
#include "rwy/ether.h"
#include "tools/anonymise/packet.h"

#define FRAME_MAX 65536
#define ETHER_LEN 14
#define SLL_LEN   16
#define SLL_ADDR  6 /* offset of the address, 8 bytes; what follows is the type */
#define SLL2_LEN  20
#define SLL2_ADDR 12
#define ADDR_LEN  8
#define HEADS_MAX 64 /* more than any link header */
#define VLAN_LEN  4
#define VLANS_MAX 2
#define TYPE_VLAN 0x8100
#define TYPE_QINQ 0x88a8

struct job {
	const struct anon_key *key;
	const char *in, *out;
	pcap_t *from, *form;
	pcap_dumper_t *to;
	int link;
	uint8_t frame[FRAME_MAX + HEADS_MAX]; /* what was not captured is zero */
};

static int fail(struct anon_error *err, const char *path, const char *why)
{
	size_t n = strlen(path);

	/* libpcap begins some of its messages with the name of the file. */
	if (!strncmp(why, path, n) && why[n] == ':')
		snprintf(err->text, sizeof(err->text), "%s", why);
	else
		snprintf(err->text, sizeof(err->text), "%s: %s", path, why);
	return -1;
}

static bool is_ip(uint16_t type)
{
	return type == RWY_ETHER_IP4 || type == RWY_ETHER_IP6;
}

/* Makes the link header anonymous. Returns its length; 0 with *ok false: no IP follows. */
static uint32_t link_header(const struct job *j, uint8_t *p, bool *ok)
{
	uint32_t len = ETHER_LEN;
	uint16_t type;

	*ok = true;
	switch (j->link) {
	case DLT_EN10MB:
		anon_mac(j->key, p);
		anon_mac(j->key, p + 6);
		type = rwy_get16(p + len - 2);
		for (unsigned i = 0; i < VLANS_MAX && (type == TYPE_VLAN || type == TYPE_QINQ); i++) {
			len += VLAN_LEN;
			type = rwy_get16(p + len - 2);
		}
		break;
	case DLT_LINUX_SLL:
		memset(p + SLL_ADDR, 0, ADDR_LEN);
		type = rwy_get16(p + SLL_LEN - 2);
		len = SLL_LEN;
		break;
	case DLT_LINUX_SLL2:
		memset(p + SLL2_ADDR, 0, ADDR_LEN);
		type = rwy_get16(p);
		len = SLL2_LEN;
		break;
	default:
		return 0;
	}
	*ok = is_ip(type);
	return *ok ? len : 0;
}

static void take(struct job *j, const struct pcap_pkthdr *h, const uint8_t *data, struct anon_count *n)
{
	bool ok = h->len < FRAME_MAX && h->caplen <= h->len;
	uint32_t skip;

	if (ok) {
		memcpy(j->frame, data, h->caplen);
		memset(j->frame + h->caplen, 0, h->len + HEADS_MAX - h->caplen);
		skip = link_header(j, j->frame, &ok);
		ok = ok && h->caplen > skip &&
		     anon_packet(j->key, j->frame + skip, h->len - skip, h->caplen - skip);
	}
	if (!ok) {
		n->left_out++;
		return;
	}
	n->kept++;
	pcap_dump((u_char *)j->to, h, j->frame);
}

static int copy(struct job *j, struct anon_count *n, struct anon_error *err)
{
	struct pcap_pkthdr *h;
	const uint8_t *data;
	int rc;

	while ((rc = pcap_next_ex(j->from, &h, &data)) == 1) {
		take(j, h, data, n);
		if (ferror(pcap_dump_file(j->to)))
			return fail(err, j->out, "cannot write: is the disk full?");
	}
	n->cut_short = rc == PCAP_ERROR && strstr(pcap_geterr(j->from), "truncated");
	if (rc == PCAP_ERROR && !n->cut_short)
		return fail(err, j->in, pcap_geterr(j->from));
	if (pcap_dump_flush(j->to) != 0)
		return fail(err, j->out, "cannot write: is the disk full?");
	return 0;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_in(struct job *j, struct anon_error *err)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	struct stat st;

	/* libpcap reports whatever errno was for these. */
	if (stat(j->in, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		return fail(err, j->in, "is empty");
	j->from = pcap_open_offline_with_tstamp_precision(j->in, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!j->from)
		return fail(err, j->in, why);
	j->link = pcap_datalink(j->from);
	switch (j->link) {
	case DLT_EN10MB:
	case DLT_LINUX_SLL:
	case DLT_LINUX_SLL2:
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		return 0;
	default:
		return fail(err, j->in, "its link type is not Ethernet, Linux cooked or raw IP");
	}
}

static int open_out(struct job *j, struct anon_error *err)
{
	if (same_file(j->in, j->out))
		return fail(err, j->out, "is the file that is read");
	j->form = pcap_open_dead_with_tstamp_precision(j->link, FRAME_MAX, PCAP_TSTAMP_PRECISION_NANO);
	if (!j->form)
		return fail(err, j->out, "not enough memory");
	j->to = pcap_dump_open(j->form, j->out);
	return j->to ? 0 : fail(err, j->out, pcap_geterr(j->form));
}

/* Not a device, nor a pipe. */
static void remove_file(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path);
}

int anon_file(
    const struct anon_key *key, const char *in, const char *out, struct anon_count *n, struct anon_error *err)
{
	struct job *j = calloc(1, sizeof(*j));
	bool begun;
	int rc;

	*n = (struct anon_count){0};
	if (!j)
		return fail(err, in, "not enough memory");
	j->key = key;
	j->in = in;
	j->out = out;
	rc = open_in(j, err);
	if (!rc)
		rc = open_out(j, err);
	begun = j->to;
	if (!rc)
		rc = copy(j, n, err);
	if (j->to)
		pcap_dump_close(j->to);
	if (rc && begun)
		remove_file(out);
	if (j->form)
		pcap_close(j->form);
	if (j->from)
		pcap_close(j->from);
	free(j);
	return rc;
}
