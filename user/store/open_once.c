// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * LMDB allows a process to open each store only once. It detects other users by record locks, which do not work
 * between threads and vanish when any descriptor of the file is closed. So threads wait for each other here, also
 * for reading.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

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

static int join(struct open_once *opened, bool waits)
{
	const struct open_once *other;

	/* After fork(), the child has none of its parent's stores open. */
	if (process != getpid())
		first = NULL;
	process = getpid();
	other = first;
	while (other) {
		if (other->device != opened->device || other->inode != opened->inode) {
			other = other->next;
			continue;
		}
		if (pthread_equal(other->owner, opened->owner))
			return -EDEADLK;
		if (!waits)
			return -EBUSY;
		pthread_cond_wait(&released, &lock);
		other = first; /* `other` may be gone */
	}
	opened->next = first;
	first = opened;
	return 0;
}

int open_once_begin(int dir_fd, bool waits, struct open_once **opened)
{
	struct open_once *new;
	struct stat status;
	int error;

	*opened = NULL;
	if (fstat(dir_fd, &status))
		return -errno;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	*new = (struct open_once){ status.st_dev, status.st_ino, pthread_self(), NULL };
	pthread_mutex_lock(&lock);
	error = join(new, waits);
	pthread_mutex_unlock(&lock);
	if (error)
		free(new);
	else
		*opened = new;
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
