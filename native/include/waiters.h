/* Who waits for messages of a publication, in whatever process, and how its publisher wakes them.
 *
 * A reader that parks raises its wake counter: it sets it to the counter's own registration id. A publisher that sees
 * it raised takes it down, so that a wait costs one signal, and writes a byte to the FIFO that the reader's loop
 * watches. */
#ifndef AA_WAITERS_H
#define AA_WAITERS_H

#include "cnc.h"

#include <pthread.h>

typedef struct aa_waiter aa_waiter_t;

typedef struct
{
    _Atomic(aa_waiter_t *) first; /* grows only; its places are used again */
    pthread_mutex_t lock;         /* held by who changes a place, and by who signals */
} aa_waiters_t;

void aa_waiters_init(aa_waiters_t *waiters);
void aa_waiters_destroy(aa_waiters_t *waiters);
/* Adds the owner of a wake counter, who is signalled through a descriptor. AA_OK, AA_ARGUMENT for an id outside the
 * buffers, AA_SYSTEM without memory. From one thread at a time. */
int aa_waiters_add(
    aa_waiters_t *waiters, const aa_cnc_t *cnc, int32_t counter_id, int64_t registration_id, int descriptor);
/* Takes the counter's owner out, or everybody for a registration id of 0. Nobody uses its descriptor afterwards. */
void aa_waiters_remove(aa_waiters_t *waiters, int64_t registration_id);
void aa_waiters_wake_known(aa_waiters_t *waiters);

/* After a message was appended. Relaxed: where nobody is known yet, a wake-up is the watcher's business. */
static inline void aa_waiters_wake(aa_waiters_t *waiters)
{
    if (atomic_load_explicit(&waiters->first, memory_order_relaxed) != NULL)
    {
        aa_waiters_wake_known(waiters);
    }
}

#endif
