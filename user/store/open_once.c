// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/open_once.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct open_once {
	dev_t device;
	ino_t inode;
	pthread_t owner;
	struct open_once *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct open_once *first;
static pid_t process;

static const struct open_once *find(const struct open_once *wanted)
{
	const struct open_once *opened = first;

	while (opened && (opened->device != wanted->device || opened->inode != wanted->inode))
		opened = opened->next;
	return opened;
}

/* After fork(), the child has none of its parent's stores open. */
static void forget_parent(void)
{
	if (process != getpid())
		first = NULL;
	process = getpid();
}

static int join(struct open_once *opened, bool waits)
{
	const struct open_once *other;

	forget_parent();
	while ((other = find(opened))) {
		if (pthread_equal(other->owner, opened->owner))
			return -EDEADLK;
		if (!waits)
			return -EBUSY;
		pthread_cond_wait(&released, &lock);
	}
	opened->next = first;
	first = opened;
	return 0;
}

int open_once_begin(int dir_fd, bool waits, struct open_once **opened)
{
	struct open_once *new = calloc(1, sizeof(*new));
	struct stat status;
	int error = new ? 0 : -ENOMEM;

	*opened = NULL;
	if (!error && fstat(dir_fd, &status))
		error = -errno;
	if (!error) {
		new->device = status.st_dev;
		new->inode = status.st_ino;
		new->owner = pthread_self();
		pthread_mutex_lock(&lock);
		error = join(new, waits);
		pthread_mutex_unlock(&lock);
	}
	if (!error)
		*opened = new;
	else
		free(new);
	return error;
}

void open_once_end(struct open_once *opened)
{
	struct open_once **place = &first;

	if (!opened)
		return;
	pthread_mutex_lock(&lock);
	while (*place && *place != opened)
		place = &(*place)->next;
	if (*place)
		*place = opened->next;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
	free(opened);
}
