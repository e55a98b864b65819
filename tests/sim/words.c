/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/explore.h"

static const struct word {
	uint64_t fault;
	const char *word, *text;
} words[] = {
    {F_OUTAGE, "outage", "the WAN is down for a while"},
    {F_CRASH_NEAR, "crash-near", "the near gateway crashes"},
    {F_CRASH_FAR, "crash-far", "the far gateway crashes"},
    {F_CRASH_BOTH, "crash-both", "both gateways crash"},
    {F_MACHINE, "machine", "journals are lost; the gateway of an idle host dies, unless another one does"},
    {F_PAUSE, "pause", "a gateway stands still"},
    {F_HOST, "host-dies", "a host dies"},
    {F_LAN_LOSS, "lan-loss", "LANs lose packets"},
    {F_REUSE, "reuse", "QPNs are used again"},
    {F_SQUEEZE, "squeeze", "little memory, and a long outage"},
    {F_BOUNDS, "bounds", "less memory than hosts have under way"},
    {F_POOL, "pool", "few packet buffers"},
    {F_TENANTS, "tenants", "tenants with the same addresses"},
    {F_CHANGES, "changes", "tenants change, go and come back (with `tenants`)"},
    {F_MOVES, "moves", "the tunnel moves to a reliable carrier and back, and that breaks"},
    {F_DETOUR, "detour", "what a very lossy path loses repeatedly goes by a reliable carrier"},
    {F_PATHS, "paths", "one to four paths, one of them dead, lossy or longer at a time"},
    {F_KEYS, "keys", "the tunnel has keys; --aes: real ones, in all seeds with keys"},
    {F_RATES, "rates", "reservations come, change and go"},
    {F_STANDBY, "pairs", "each site has a pair of gateways"},
    {F_BOTH_DIE, "both-die", "both active gateways die within some ms (with `pairs`)"},
    {F_DRAIN, "drain", "gateways are drained, stop and start again"},
    {F_DRAIN_CUT, "drain-cut", "some of these stop before they are drained"},
    {F_MASS, "mass", "ATOMICs and small READs in masses"},
    {F_SMALL, "small", "many small messages in a row"},
    {F_SLOW, "slow", "hosts are slow, and asked for much"},
    {F_LATE, "late", "hosts answer nothing for up to 2.5 s, then all at once"},
    {F_NIC, "nic", "NICs: deep send queues, adaptive timers"},
    {F_RNR, "rnr", "receives are posted late, RNR retry 0"},
    {F_BEHIND, "behind", "NICs with READs behind WRITEs, ack modes far and end; not drawn"},
    {F_CAUSAL, "causal", "causal order across queue pairs"},
    {F_TOLD, "told", "a host without an error has lost nothing"},
    {F_IDLE, "idle", "a host dies when its idle peer has ACKs for what did not arrive"},
    {F_RESET, "reset", "a queue pair is reset in place when all is complete, not delivered"},
    {F_RESET_ALL, "reset-all", "all queue pairs are reset in place when all is complete"},
    {F_CM, "cm", "CM, DREQ after the last completion"},
    {F_HOSTILE, "hostile", "a hostile host; --alone: the others without it"},
    {F_WORKERS, "workers", "gateways of two to four workers, which steer by queue pair"},
    {F_BY_PAIR, "by-pair", "workers steer by address pair (with `workers`)"},
    {F_CROSS, "cross", "both cables are cut, or gateways hand over, within some ms (with `pairs`)"},
    {F_FOLLOWERS, "followers", "gateways of pairs have three workers, which steer by address pair"},
    {F_BURSTS, "bursts", "a gateway's turn takes time; what comes meanwhile is handled together"},
    {F_MARKS, "marks", "LANs mark packets, and hosts send CNPs, some of them for nobody"},
    {F_UNCARRIED, "uncarried", "operations that gateways do not carry"},
    {F_HEAP, "heap", "allocations of the gateways fail"},
};
#define WORDS (sizeof(words) / sizeof(*words))

static bool parse_one(const char *text, size_t len, uint64_t *faults)
{
	for (unsigned i = 0; i < WORDS; i++)
		if (!strncmp(words[i].word, text, len) && !words[i].word[len]) {
			*faults |= words[i].fault;
			return true;
		}
	return len == strlen("none") && !strncmp(text, "none", len);
}

bool sim_words_parse(const char *text, uint64_t *faults)
{
	char *end;

	*faults = strtoull(text, &end, 0);
	if (end != text && !*end)
		return true;
	*faults = 0;
	for (size_t len;; text += len + 1) {
		len = strcspn(text, ",");
		if (!parse_one(text, len, faults))
			return false;
		if (!text[len])
			return true;
	}
}

void sim_words_of(uint64_t faults, char out[SIM_WORDS_MAX])
{
	size_t n = 0;

	snprintf(out, SIM_WORDS_MAX, "none");
	for (unsigned i = 0; i < WORDS; i++)
		if (faults & words[i].fault)
			n +=
			    (size_t)snprintf(out + n, SIM_WORDS_MAX - n, "%s%s", n ? "," : "", words[i].word);
}

void sim_words_help(void)
{
	for (unsigned i = 0; i < WORDS; i++)
		printf("  %-11s%s\n", words[i].word, words[i].text);
}
