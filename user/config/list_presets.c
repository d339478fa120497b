// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config/config.h"

#include <string.h>

#define MINUTES(n) ((n)*60 * 1000LL)
#define HOURS(n) MINUTES(60 * (n))
#define FIREHOL "collected from many providers: the terms of each of them apply"
#define SPAMHAUS "free, also for companies; name Spamhaus in a product"

static const struct list_preset presets[] = {
	{ "spamhaus-drop", "https://www.spamhaus.org/drop/drop_v4.json", "spamhaus", HOURS(1), SPAMHAUS,
	  "networks that criminals own or have hijacked", 5 },
	{ "spamhaus-dropv6", "https://www.spamhaus.org/drop/drop_v6.json", "spamhaus", HOURS(1), SPAMHAUS,
	  "the same for IPv6", 5 },
	{ "firehol-level1", "https://iplists.firehol.org/files/firehol_level1.netset", "text", MINUTES(30), FIREHOL,
	  "few mistakes; has private networks too (10.0.0.0/8): not for hosts that use these", 10 },
	{ "firehol-level2", "https://iplists.firehol.org/files/firehol_level2.netset", "text", MINUTES(30), FIREHOL,
	  "attacks of the last 48 hours", 5 },
	{ "firehol-level3", "https://iplists.firehol.org/files/firehol_level3.netset", "text", MINUTES(30), FIREHOL,
	  "attacks, spyware and viruses of the last 30 days", 5 },
	{ "cymru-fullbogons", "https://www.team-cymru.org/Services/Bogons/fullbogons-ipv4.txt", "text", HOURS(4),
	  "see team-cymru.com",
	  "IPv4 that nobody uses; has private networks too (10.0.0.0/8): not for hosts that use these", 10 },
	{ "cymru-fullbogonsv6", "https://www.team-cymru.org/Services/Bogons/fullbogons-ipv6.txt", "text", HOURS(4),
	  "see team-cymru.com", "IPv6 that nobody uses: more than 100,000 networks", 99 },
	{ "tor-exits", "https://check.torproject.org/torbulkexitlist", "text", MINUTES(40), "free; see torproject.org",
	  "exits of the Tor network: most of who comes from there means no harm", 1 },
	{ "blocklist-de", "https://lists.blocklist.de/lists/all.txt", "text", MINUTES(30), "see blocklist.de",
	  "attacks of the last 48 hours, reported by fail2ban", 1 },
	{ "cins", "https://cinsscore.com/list/ci-badguys.txt", "text", HOURS(1), "free of charge; see cinsarmy.com",
	  "addresses with the worst reputation, by Sentinel", 1 },
	{ "et-block", "https://rules.emergingthreats.net/fwrules/emerging-Block-IPs.txt", "text", HOURS(12),
	  "free; see emergingthreats.net", "Spamhaus DROP, DShield and command servers, by Emerging Threats", 5 },
	{ "greensnow", "https://blocklist.greensnow.co/greensnow.txt", "text", MINUTES(30), "see greensnow.co",
	  "scans of ports, and attacks on passwords", 1 },
};

#define PRESETS (sizeof(presets) / sizeof(presets[0]))

const struct list_preset *list_preset(size_t index)
{
	return index < PRESETS ? &presets[index] : NULL;
}

const struct list_preset *list_preset_named(const char *name)
{
	for (size_t i = 0; i < PRESETS; i++)
		if (!strcmp(presets[i].name, name))
			return &presets[i];
	return NULL;
}
