// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs seeds, each in a process of its own, and says which of them breach a promise. README.md tells the model. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "simulation/faults.h"

#define JOBS_MAX 256
#define USAGE "usage: simulation [-s SEED] [-n COUNT] [-t SECONDS] [-j JOBS] [-k KINDS] [-v] [-r] [-c]\n"

static double real_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static int sum_to = -1; /* takes trace_sum */

__attribute__((noreturn)) static void run_seed(__u64 seed, unsigned int seconds, const char *kinds)
{
	/* The tool's own words are in the trace. */
	if (!freopen("/dev/null", "w", stderr))
		_exit(3);
	chance_seed(seed);
	faults_run(seconds, kinds);
	if (sum_to >= 0 && write(sum_to, &trace_sum, sizeof(trace_sum)) != sizeof(trace_sum))
		_exit(3);
	if (*breach)
		printf("seed %llu: %s\n", (unsigned long long)seed, breach);
	fflush(NULL);
	_exit(*breach != '\0');
}

/* Runs the seed twice: both runs must have the same trace. */
__attribute__((noreturn)) static void run_twice(__u64 seed, unsigned int seconds, const char *kinds)
{
	__u64 sums[2] = {};
	int ends[2], status = 0, both = 0;

	is_summed = true;
	if (pipe(ends))
		_exit(3);
	sum_to = ends[1];
	for (int i = 0; i < 2; i++) {
		if (!fork())
			run_seed(seed, seconds, kinds);
		wait(&status);
		both |= status;
		if (!WIFEXITED(status) || WEXITSTATUS(status) > 1 || read(ends[0], &sums[i], sizeof(sums[i])) < 0)
			_exit(3);
	}
	if (sums[0] != sums[1])
		printf("seed %llu: its two runs have different traces\n", (unsigned long long)seed);
	fflush(NULL);
	_exit(both || sums[0] != sums[1]);
}

int main(int argc, char **argv)
{
	unsigned int count = 1, seconds = 600, jobs = 1, bad = 0;
	bool is_compared = false;
	const char *kinds = NULL;
	const double start_s = real_s();
	__u64 seed = 1, seeds[JOBS_MAX] = {};
	int option, status;
	pid_t pid, pids[JOBS_MAX] = {};

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt(argc, argv, "s:n:t:j:k:vrc")) > 0) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (option == 'n')
			count = atoi(optarg);
		else if (option == 't')
			seconds = atoi(optarg);
		else if (option == 'j')
			jobs = atoi(optarg) < JOBS_MAX ? atoi(optarg) : JOBS_MAX;
		else if (option == 'k')
			kinds = optarg;
		else if (option == 'r')
			is_rate_checked = false;
		else if (option == 'c')
			is_compared = true;
		else if (option == 'v')
			is_traced = true;
		else
			return fprintf(stderr, USAGE), 2;
	}
	for (unsigned int started = 0, ended = 0; ended < count;) {
		if (started < count && started - ended < jobs) {
			pid = fork();
			if (!pid)
				(is_compared ? run_twice : run_seed)(seed + started, seconds, kinds);
			pids[started % JOBS_MAX] = pid;
			seeds[started % JOBS_MAX] = seed + started;
			started++;
			continue;
		}
		pid = wait(&status);
		ended++;
		bad += status != 0;
		for (unsigned int i = 0; i < JOBS_MAX && WIFSIGNALED(status); i++)
			if (pids[i] == pid)
				printf("seed %llu: the simulation died of signal %d\n", (unsigned long long)seeds[i],
				       WTERMSIG(status));
	}
	printf("%u seeds of %u simulated seconds from %llu, %u breach a promise, %.0f s\n", count, seconds,
	       (unsigned long long)seed, bad, real_s() - start_s);
	return bad != 0;
}
