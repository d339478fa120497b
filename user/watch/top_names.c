// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "watch/top.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter/filter.h"
#include "store/store.h"

/* After a search, the next one waits PAUSE_S, or PAUSE_TIMES the duration of the last search if that is longer. */
#define PAUSE_S 2
#define PAUSE_TIMES 5
#define SEARCH_S_MAX 60
#define NICE 10

_Static_assert(sizeof(struct top_name) <= PIPE_BUF, "a pipe takes an answer whole");

struct search {
	const struct kernel_filter *filter;
	struct shape_list shapes;
	const struct hit *hits;
	size_t count, found;
	bool is_found[HITS_BEST]; /* of the hits */
	int answers;
	const struct rule *rule; /* whose keys are compared */
};

/* Writes the rule as an answer if a hit has this key. 1: all hits have their answer; 0; -EPIPE: nobody reads. */
static int try_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct search *search = context;
	__u64 tags[FILTER_PARTS];
	struct top_name name;
	struct rule rule;
	size_t i = 0;

	(void)is_shared;
	filter_tags(search->filter, key, tags);
	while (i < search->count && search->hits[i].tag != tags[0] && search->hits[i].tag != tags[1])
		i++;
	if (i == search->count)
		return 0;
	name = (struct top_name){ .tag = search->hits[i].tag, .action = search->rule->action };
	rule = *search->rule;
	rule.timeout_ms = 0;
	rule_format(&rule, name.rule);
	if (write(search->answers, &name, sizeof(name)) != sizeof(name))
		return -EPIPE;
	/* Several rules may have the key. */
	search->found += !search->is_found[i];
	search->is_found[i] = true;
	return search->found == search->count;
}

static int try_rule(const struct rule *rule, void *context)
{
	struct search *search = context;

	search->rule = rule;
	return keys_each(&search->shapes, rule, try_key, search);
}

/* Runs in the child. Ends with its parent, or after SEARCH_S_MAX. */
__attribute__((noreturn)) static void run_search(struct search *search, const char *dir)
{
	static const int signals[] = { SIGALRM, SIGBUS, SIGSEGV, SIGPIPE, SIGINT,
				       SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
	struct store *store;
	struct reason reason;

	/* The handlers of the parent, for example the SIGTSTP handler of ncurses, must not run here. */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SEARCH_S_MAX);
	setpriority(PRIO_PROCESS, 0, NICE);
	if (!store_open(dir, STORE_READ, &store, &reason) && !store_shapes(store, &search->shapes))
		store_each(store, try_rule, search);
	_exit(0);
}

const struct top_name *top_names_find(const struct top_names *names, __u64 tag)
{
	for (size_t i = 0; i < names->count; i++)
		if (names->name[i].tag == tag)
			return &names->name[i];
	return NULL;
}

static void end_search(struct top_names *names)
{
	close(names->answers);
	kill(names->child, SIGKILL);
	waitpid(names->child, NULL, 0);
	names->child = 0;
}

void top_names_ask(struct top_names *names, const char *dir, const struct kernel_filter *filter, const struct hit *hits,
		   size_t count, double second)
{
	const __u64 generation = filter->config->generation;
	struct search search = { .filter = filter, .hits = hits, .count = count };
	size_t known = 0;
	int ends[2];
	pid_t child;

	if (names->child || second < names->pause_end)
		return;
	while (known < count && top_names_find(names, hits[known].tag))
		known++;
	if (!count || (names->generation == generation && known == count))
		return;
	names->started = second;
	names->asked_of = generation;
	names->searches++;
	names->pause_end = second + PAUSE_S; /* if the search does not start */
	if (pipe2(ends, O_CLOEXEC))
		return;
	child = fork();
	if (!child) {
		close(ends[0]);
		search.answers = ends[1];
		run_search(&search, dir);
	}
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	names->child = child;
	names->answers = ends[0];
}

void top_names_collect(struct top_names *names, double second)
{
	struct top_name name;
	ssize_t bytes = -1;
	size_t kept = 0;

	while (names->child && (bytes = read(names->answers, &name, sizeof(name))) == sizeof(name)) {
		struct top_name *known = (struct top_name *)top_names_find(names, name.tag);

		if (!known)
			known = &names->name[names->next++ % TOP_NAMES];
		names->count = MAX(names->count, MIN(names->next, TOP_NAMES));
		*known = name;
		known->search = names->searches;
	}
	if (!names->child || (bytes < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	end_search(names);
	/* The store has changed, so keys may belong to other rules now: forget what this search did not find. */
	if (names->generation != names->asked_of) {
		for (size_t i = 0; i < names->count; i++)
			if (names->name[i].search == names->searches)
				names->name[kept++] = names->name[i];
		names->count = names->next = kept;
	}
	names->generation = names->asked_of;
	names->pause_end = second + MAX(PAUSE_S, PAUSE_TIMES * (second - names->started));
}

void top_names_close(struct top_names *names)
{
	if (names->child)
		end_search(names);
	*names = (struct top_names){};
}
