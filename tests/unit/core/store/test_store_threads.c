// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Threads of one process that use one store; and which calls do not wait. */
#include "unit/store_fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <time.h>

static int open_other(struct fixture *f, enum store_mode mode)
{
	struct store *other;
	int error = store_open(f->dir, mode, &other, &f->reason);

	store_close(other);
	return error;
}

DIRECTORY_TEST(test_a_thread_has_a_store_once)
{
	for (enum store_mode mode = STORE_WRITE;; mode = STORE_READ) {
		open_store(f, mode);
		for (enum store_mode again = STORE_READ; again <= STORE_TRY; again++)
			assert_int_equal(open_other(f, again), -EDEADLK);
		assert_non_null(strstr(f->reason.text, "this thread has it open"));
		close_store(f);
		assert_int_equal(open_other(f, STORE_TRY), 0);
		if (mode == STORE_READ)
			return;
	}
}

struct other_thread {
	struct fixture *f;
	sem_t opening;
	bool is_released;
	int tried, read_error;
	bool has_waited;
};

static void *open_meanwhile(void *context)
{
	struct other_thread *other = context;
	struct store *store;
	struct reason reason;

	other->tried = store_open(other->f->dir, STORE_TRY, &store, &reason);
	store_close(store);
	sem_post(&other->opening);
	other->read_error = store_open(other->f->dir, STORE_READ, &store, &reason);
	other->has_waited = __atomic_load_n(&other->is_released, __ATOMIC_ACQUIRE);
	store_close(store);
	return NULL;
}

/* Also if both only read: LMDB's locks work between processes only, and would be lost. */
STORE_TEST(test_threads_wait_for_each_other)
{
	const struct timespec moment = { .tv_nsec = 20000000 };

	close_store(f);
	for (enum store_mode mode = STORE_READ; mode <= STORE_TRY; mode++) {
		struct other_thread other = { .f = f };
		pthread_t thread;

		assert_int_equal(sem_init(&other.opening, 0, 0), 0);
		open_store(f, mode);
		assert_int_equal(pthread_create(&thread, NULL, open_meanwhile, &other), 0);
		sem_wait(&other.opening);
		nanosleep(&moment, NULL);
		__atomic_store_n(&other.is_released, true, __ATOMIC_RELEASE);
		close_store(f);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(other.tried, -EBUSY);
		assert_int_equal(other.read_error, 0);
		assert_true(other.has_waited);
		sem_destroy(&other.opening);
	}
}

/* In a child: its parent's stores are not open here, and another process has the writer's lock. */
STORE_TEST(test_trying_does_not_wait_for_a_process)
{
	int status;
	pid_t pid;

	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0)
		_exit(-open_other(f, STORE_TRY));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EBUSY);
}

TEST_MAIN(NULL, NULL)
