/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/control/change_lock.h"

#include <pthread.h>

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

void gw_change_lock(void)
{
	pthread_mutex_lock(&changing);
}

bool gw_change_trylock(void)
{
	return pthread_mutex_trylock(&changing) == 0;
}

void gw_change_unlock(void)
{
	pthread_mutex_unlock(&changing);
}
