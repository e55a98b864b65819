/* SPDX-License-Identifier: Apache-2.0 */
/* roceway anonymise: a capture that may be given away. It asks no gateway. */
#include "tools/anonymise/file.h"
#include "tools/roceway/roceway.h"

static const struct cli_opt opts[] = {
    {"key", "FILE", "the key of the new names; made when there is no such file"},
    {NULL, NULL, NULL},
};

static int run_anonymise(const struct cli *cli)
{
	struct anon_error err;
	struct anon_count n;
	struct anon_key key;

	if (cli->words != 2) {
		cli_error("anonymise: name the capture file and the file to write");
		return EXIT_USAGE;
	}
	if (anon_key_get(&key, cli_value(cli, "key"), &err) != 0 ||
	    anon_file(&key, cli->word[0], cli->word[1], &n, &err) != 0) {
		cli_error("%s", err.text);
		return EXIT_ERROR;
	}
	if (n.cut_short)
		cli_error("%s: ends in the middle of a packet; read up to there", cli->word[0]);
	fprintf(stderr, "%llu RoCEv2 packets written, %llu others left out\n", (unsigned long long)n.kept,
	    (unsigned long long)n.left_out);
	return EXIT_OK;
}

const struct cli_cmd cmd_anonymise = {.name = "anonymise",
    .no_json = true,
    .no_socket = true,
    .operand = "IN OUT",
    .many = true,
    .text = "a copy of a capture without addresses, keys and payload",
    .more = "Reads a capture (pcap, pcapng) and writes a pcap file; - is standard input or output.\n"
            "Addresses keep common prefixes; QPNs, R_Keys, virtual addresses and CM's identifiers get\n"
            "other names, payload and private data become zeros, and the ICRC is made anew. PSNs, times,\n"
            "lengths, P_Keys and VLAN tags stay. What is not RoCEv2, VXLAN too, is left out.\n"
            "\n"
            "With one --key the same names come out of several captures. With the key the old\n"
            "names can be found again; without --key they cannot.\n",
    .opts = opts,
    .run = run_anonymise};
