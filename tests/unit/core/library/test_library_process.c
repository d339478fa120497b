// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The library inside a program: threads, descriptors, output, other use of libbpf, other processes. */
#include "unit/library_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <bpf/libbpf.h>

#define THREADS 4
#define RULES_EACH 8
#define OTHER_USER 65534
#define DESCRIPTORS 256
#define CHILD_S 60 /* a child that is left over ends */

/* ---- handles in one thread ---- */

LIBRARY_TEST(test_two_handles_of_one_store)
{
	struct xdp_cuckoo_filter *first, *second, *elsewhere;
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	enum xdp_cuckoo_answer answer;
	struct xdp_cuckoo_info info;

	first = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	second = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	elsewhere = open_filter(f, "elsewhere", XDP_CUCKOO_CHANGE);
	is_told(first, xdp_cuckoo_add(first, &rule), 0);
	is_told(second, xdp_cuckoo_add(second, &rule), -EEXIST);
	is_told(first, xdp_cuckoo_begin(first), 0);
	is_told(second, xdp_cuckoo_add(second, &rule), -EDEADLK);
	is_told(second, xdp_cuckoo_begin(second), -EDEADLK);
	is_told(second, xdp_cuckoo_test(second, &rule, &answer, NULL), -EDEADLK);
	is_told(second, xdp_cuckoo_each(second, count_one, NULL), -EDEADLK);
	is_told(second, xdp_cuckoo_get_info(second, &info), -EDEADLK);
	is_told(elsewhere, xdp_cuckoo_add(elsewhere, &rule), 0);
	is_told(first, xdp_cuckoo_commit(first), 0);
	is_told(second, xdp_cuckoo_del(second, &rule), 0);
	xdp_cuckoo_close(first);
	xdp_cuckoo_close(second);
	xdp_cuckoo_close(elsewhere);
}

/* ---- threads ---- */

struct other_thread {
	const struct fixture *f;
	struct xdp_cuckoo_filter *changing;
	int opened, added, committed;
};

static void *meddle(void *context)
{
	struct other_thread *other = context;
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.2");
	struct xdp_cuckoo_filter *filter;

	other->opened = xdp_cuckoo_open(NULL, other->f->dir, XDP_CUCKOO_CHANGE | XDP_CUCKOO_NO_WAIT, &filter);
	xdp_cuckoo_close(filter);
	other->added = xdp_cuckoo_add(other->changing, &rule);
	other->committed = xdp_cuckoo_commit(other->changing);
	return NULL;
}

LIBRARY_TEST(test_a_change_belongs_to_its_thread)
{
	struct other_thread other = { .f = f };
	pthread_t thread;

	other.changing = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(other.changing, xdp_cuckoo_begin(other.changing), 0);
	is_told(other.changing, add_text(other.changing, "192.0.2.1"), 0);
	assert_int_equal(pthread_create(&thread, NULL, meddle, &other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(other.opened, -EBUSY);
	assert_int_equal(other.added, -EBUSY);
	assert_int_equal(other.committed, -EBUSY);
	is_told(other.changing, xdp_cuckoo_commit(other.changing), 0);
	assert_int_equal(count_rules(other.changing), 1);
	xdp_cuckoo_close(other.changing);
}

struct worker {
	const struct fixture *f;
	unsigned int number;
	int error;
};

static int add_numbered(struct xdp_cuckoo_filter *filter, unsigned int thread, unsigned int i)
{
	const struct xdp_cuckoo_rule rule = {
		.family = AF_INET,
		.src_bits = 32,
		.src = { 192, 0, thread, i },
		.timeout_ms = 3600000,
	};
	unsigned int seen = 0;
	int error = xdp_cuckoo_add(filter, &rule);

	if (!error)
		error = xdp_cuckoo_each(filter, count_one, &seen);
	return error ? error : seen > i ? 0 : -EBADMSG;
}

static void *work(void *context)
{
	struct worker *worker = context;
	struct xdp_cuckoo_filter *filter;

	worker->error = xdp_cuckoo_open(NULL, worker->f->dir, XDP_CUCKOO_CHANGE, &filter);
	for (unsigned int i = 0; i < RULES_EACH && !worker->error; i++)
		worker->error = add_numbered(filter, worker->number, i);
	xdp_cuckoo_close(filter);
	return NULL;
}

LOADED_TEST(test_threads_with_handles_of_their_own)
{
	struct worker workers[THREADS];
	struct xdp_cuckoo_filter *filter;
	struct xdp_cuckoo_info info;
	pthread_t threads[THREADS];

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .f = f, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(workers[i].error, 0);
	assert_int_equal(count_rules(filter), THREADS * RULES_EACH);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.used_slots, THREADS * RULES_EACH);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	xdp_cuckoo_close(filter);
}

/* ---- other processes ---- */

/* A child begins a change, reports it, and keeps it until the other pipe is closed. */
static pid_t start_changer(const struct fixture *f, int *until)
{
	struct xdp_cuckoo_filter *filter;
	int ready[2], end[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		close(end[1]);
		_exit(xdp_cuckoo_open(NULL, f->dir, XDP_CUCKOO_CHANGE, &filter) || xdp_cuckoo_begin(filter) ||
		      write(ready[1], "", 1) != 1 || read(end[0], &byte, 1) != 0);
	}
	close(ready[1]);
	close(end[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*until = end[1];
	return pid;
}

LIBRARY_TEST(test_a_store_that_another_process_changes)
{
	struct xdp_cuckoo_filter *filter;
	int until, status;
	pid_t pid;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE | XDP_CUCKOO_NO_WAIT);
	pid = start_changer(f, &until);
	is_told(filter, xdp_cuckoo_begin(filter), -EBUSY);
	is_told(filter, add_text(filter, "192.0.2.1"), -EBUSY);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), -EBUSY);
	assert_int_equal(count_rules(filter), 0);
	close(until);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	xdp_cuckoo_close(filter);
}

/* The child has copies of all descriptors, also that of the lock. */
LIBRARY_TEST(test_a_child_of_a_change_does_not_prolong_it)
{
	struct xdp_cuckoo_filter *filter;
	int status;
	pid_t pid;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE | XDP_CUCKOO_NO_WAIT);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		alarm(CHILD_S);
		_exit(pause());
	}
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	is_told(filter, add_text(filter, "192.0.2.2"), 0);
	assert_int_equal(kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid, 0);
	xdp_cuckoo_close(filter);
}

/* -EEXIST would mean that the rule is in force. */
LOADED_TEST(test_a_store_that_goes_away)
{
	struct xdp_cuckoo_filter *filter;
	char command[128];

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	snprintf(command, sizeof(command), "rm -r '%s'/default", f->dir);
	assert_int_equal(system(command), 0);
	is_told(filter, add_text(filter, "192.0.2.2"), -ESTALE);
	is_told(filter, del_text(filter, "192.0.2.1"), -ESTALE);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	is_told(filter, add_text(filter, "192.0.2.2"), 0);
	xdp_cuckoo_close(filter);
}

/* Counts the calls that did not fail with a reason. */
static int try_as_other_user(const struct fixture *f, const char *own)
{
	struct xdp_cuckoo_filter *filter;
	int wrong = 0, error = xdp_cuckoo_open(NULL, f->dir, XDP_CUCKOO_READ, &filter);

	wrong += (error != -EACCES && error != -EPERM) || !*xdp_cuckoo_error(filter);
	xdp_cuckoo_close(filter);
	error = xdp_cuckoo_open(NULL, f->dir, XDP_CUCKOO_CHANGE, &filter);
	wrong += (error != -EACCES && error != -EPERM) || !*xdp_cuckoo_error(filter);
	xdp_cuckoo_close(filter);
	/* It has its own store, but may not inspect the programs of its namespace. */
	error = xdp_cuckoo_open(NULL, own, XDP_CUCKOO_CHANGE, &filter);
	wrong += error != -EPERM || !strstr(xdp_cuckoo_error(filter), "CAP_SYS_ADMIN");
	xdp_cuckoo_close(filter);
	return wrong;
}

LOADED_TEST(test_a_process_without_permission)
{
	struct xdp_cuckoo_filter *filter;
	char own[80];
	int status;
	pid_t pid;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	snprintf(own, sizeof(own), "%s/own", f->top);
	assert_int_equal(mkdir(own, 0700) || chown(own, OTHER_USER, OTHER_USER) || chmod(f->top, 0755), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0)
		_exit(setgid(OTHER_USER) || setuid(OTHER_USER) ? 99 : try_as_other_user(f, own));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	xdp_cuckoo_close(filter);
}

/* ---- state of the process ---- */

static unsigned int umask_calls;

/* That of libc is not reached from here. */
mode_t umask(mode_t mask)
{
	(void)mask;
	umask_calls++;
	return 022;
}

static int see(const struct xdp_cuckoo_sample *sample, void *context)
{
	(void)sample, (void)context;
	return 0;
}

static int see_count(const struct xdp_cuckoo_rule *rule, const struct xdp_cuckoo_matched *matched, void *context)
{
	(void)rule, (void)matched, (void)context;
	return 0;
}

/* Calls that succeed and calls that fail, for a filter that runs. */
static void use_lists_and_samples(struct xdp_cuckoo_filter *filter)
{
	const struct xdp_cuckoo_rule rules[] = { parsed("192.0.2.1"), parsed("192.0.2.2") };
	struct xdp_cuckoo_matched matched;
	struct xdp_cuckoo_sampled sampled;
	struct xdp_cuckoo_list list;
	size_t count;
	int fd;

	is_told(filter, xdp_cuckoo_list_add(filter, "feed", &rules[0]), 0);
	is_told(filter, xdp_cuckoo_list_add(filter, "-", &rules[0]), -EINVAL);
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, rules, 2, NULL), 0);
	is_told(filter, xdp_cuckoo_lists(filter, &list, 1, &count), 0);
	is_told(filter, xdp_cuckoo_rule_counts(filter, &rules[1], &matched), 0);
	is_told(filter, xdp_cuckoo_each_counted(filter, "feed", see_count, NULL), 0);
	is_told(filter, xdp_cuckoo_each_counted(filter, "none", see_count, NULL), -ENOENT);
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &fd), 0);
	is_told(filter, xdp_cuckoo_samples_read(filter, see, NULL), 0);
	is_told(filter, xdp_cuckoo_samples_counts(filter, &sampled), 0);
	is_told(filter, xdp_cuckoo_samples_close(filter), 0);
	is_told(filter, xdp_cuckoo_list_del(filter, "feed", &rules[1]), 0);
	is_told(filter, xdp_cuckoo_list_delete(filter, "feed"), 0);
}

/* Calls that succeed and calls that fail. */
static void use_all(struct xdp_cuckoo_filter *filter)
{
	struct xdp_cuckoo_count counts[1];
	struct xdp_cuckoo_info info;
	size_t count;

	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_AUTO), 0);
	is_told(filter, add_text(filter, "192.0.2.1 timeout 1h"), 0);
	is_told(filter, add_text(filter, "dst " OWN_ADDRESS), -ECANCELED);
	is_told(filter, del_text(filter, "192.0.2.2"), -ENOENT);
	is_told(filter, xdp_cuckoo_expire(filter, NULL), 0);
	assert_int_equal(count_rules(filter), 1);
	assert_int_equal(ask(filter, "192.0.2.1"), XDP_CUCKOO_BLOCKED);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	is_told(filter, xdp_cuckoo_counts(filter, counts, 1, &count), 0);
	use_lists_and_samples(filter);
	is_told(filter, xdp_cuckoo_unload(filter, "va"), 0);
	is_told(filter, del_text(filter, "192.0.2.1"), 0);
}

static unsigned int words; /* that libbpf had for this program */

static int hear(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	words++;
	return 0;
}

/* Redirects output to a file; what was printed before is flushed first. */
static int redirect(int fd, int file)
{
	int before = dup(fd);

	fflush(NULL);
	assert_int_equal(dup2(file, fd), fd);
	return before;
}

LOADED_TEST(test_the_library_prints_nothing)
{
	struct xdp_cuckoo_filter *filter;
	int file, out, err;
	char path[64];
	struct stat written;

	snprintf(path, sizeof(path), "%s/output", f->top);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	umask_calls = words = 0;
	libbpf_set_print(hear);
	out = redirect(STDOUT_FILENO, file);
	err = redirect(STDERR_FILENO, file);
	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_load(filter, "lo", XDP_CUCKOO_NATIVE), -EOPNOTSUPP);
	use_all(filter);
	xdp_cuckoo_close(filter);
	fflush(NULL);
	assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
	assert_int_equal(dup2(err, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(fstat(file, &written), 0);
	assert_int_equal(written.st_size, 0);
	assert_int_equal(words, 0);
	assert_int_equal(umask_calls, 0);
	/* The program still gets the messages of its own calls. */
	assert_null(bpf_object__open_file("/dev/null", NULL));
	assert_true(words > 0);
	close(file);
	close(out);
	close(err);
}

/* The open descriptors. Each that is not in `before` must be closed on exec. */
static unsigned int list_descriptors(bool open[DESCRIPTORS], const bool *before)
{
	unsigned int count = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		const int flags = fcntl(fd, F_GETFD);

		open[fd] = flags >= 0;
		count += open[fd];
		if (open[fd] && before && !before[fd] && !(flags & FD_CLOEXEC))
			fail_msg("descriptor %d stays open on exec", fd);
	}
	return count;
}

static int look_at_descriptors(const struct xdp_cuckoo_rule *rule, void *before)
{
	bool open[DESCRIPTORS];

	(void)rule;
	list_descriptors(open, before);
	return 0;
}

LOADED_TEST(test_descriptors)
{
	bool before[DESCRIPTORS], open[DESCRIPTORS];
	struct xdp_cuckoo_filter *filter;
	unsigned int count;
	int samples;

	count = list_descriptors(before, NULL);
	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	use_all(filter);
	assert_int_equal(list_descriptors(open, before), count);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	assert_true(list_descriptors(open, before) > count + 3);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	is_told(filter, xdp_cuckoo_each(filter, look_at_descriptors, before), 0);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_AUTO), 0);
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &samples), 0);
	assert_true(list_descriptors(open, before) > count + 3);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	xdp_cuckoo_close(filter);
	assert_int_equal(list_descriptors(open, before), count);
}

/* As a daemon may do it. What it printed later went into the lock file of the store. */
LOADED_TEST(test_a_standard_file_that_is_closed_later)
{
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	struct xdp_cuckoo_filter *filter;
	int kept, begun, added, asked, samples, opened;
	enum xdp_cuckoo_answer answer;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	kept = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	begun = xdp_cuckoo_begin(filter);
	added = xdp_cuckoo_add(filter, &rule);
	asked = xdp_cuckoo_test(filter, &rule, &answer, NULL);
	opened = xdp_cuckoo_samples_open(filter, 1, 1, &samples);
	assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
	close(kept);
	assert_int_equal(begun, -EINVAL);
	assert_int_equal(added, -EINVAL);
	assert_int_equal(asked, -EINVAL);
	assert_int_equal(opened, -EINVAL);
	assert_int_equal(samples, -1);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	xdp_cuckoo_close(filter);
}

/* Does the same as `xdp-cuckoo import --list`. */
static void import_list(struct fixture *f, const char *text)
{
	const struct rule rule = rule_of(text);
	char before[sizeof(f->dir)];
	unsigned int list;

	memcpy(before, f->dir, sizeof(before));
	assert_true(snprintf(f->dir, sizeof(f->dir), "%s/default", before) < (int)sizeof(f->dir));
	open_store(f, STORE_WRITE);
	begin(f);
	assert_int_equal(store_list_open(f->store, "feed", "-", &list), 0);
	assert_int_equal(put_rule_for(f->store, &rule, list), 0);
	end(f);
	close_store(f);
	memcpy(f->dir, before, sizeof(before));
}

/* A program can add a rule that a list has permanently, with or without a timeout; its change continues. */
LIBRARY_TEST(test_a_rule_of_a_list)
{
	struct xdp_cuckoo_filter *filter;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	import_list(f, "192.0.2.1");
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, add_text(filter, "192.0.2.1 timeout 1h"), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), -EEXIST);
	is_told(filter, add_text(filter, "192.0.2.2"), 0);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	assert_int_equal(count_rules(filter), 2);
	is_told(filter, del_text(filter, "192.0.2.1"), 0);
	assert_int_equal(ask(filter, "192.0.2.1"), XDP_CUCKOO_NOT_BLOCKED);
	xdp_cuckoo_close(filter);
}

TEST_MAIN(set_up_host, NULL)
