// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/open_once.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct store_claim {
	dev_t device;
	ino_t inode;
	pthread_t owner;
	struct store_claim *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct store_claim *claims;
static pid_t claimant;

static const struct store_claim *find(const struct store_claim *wanted)
{
	const struct store_claim *claim = claims;

	while (claim && (claim->device != wanted->device || claim->inode != wanted->inode))
		claim = claim->next;
	return claim;
}

/* After fork(), the child has none of its parent's stores open. */
static void forget_parent(void)
{
	if (claimant != getpid())
		claims = NULL;
	claimant = getpid();
}

static int join(struct store_claim *claim, bool waits)
{
	const struct store_claim *other;

	forget_parent();
	while ((other = find(claim))) {
		if (pthread_equal(other->owner, claim->owner))
			return -EDEADLK;
		if (!waits)
			return -EBUSY;
		pthread_cond_wait(&released, &lock);
	}
	claim->next = claims;
	claims = claim;
	return 0;
}

int store_claim(int dir_fd, bool waits, struct store_claim **claim)
{
	struct store_claim *new = calloc(1, sizeof(*new));
	struct stat status;
	int error = new ? 0 : -ENOMEM;

	*claim = NULL;
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
		*claim = new;
	else
		free(new);
	return error;
}

void store_release(struct store_claim *claim)
{
	struct store_claim **place = &claims;

	if (!claim)
		return;
	pthread_mutex_lock(&lock);
	while (*place && *place != claim)
		place = &(*place)->next;
	if (*place)
		*place = claim->next;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
	free(claim);
}
