#include "waiters.h"

#include "counters.h"

#include <stdlib.h>
#include <unistd.h>

/* Read without the lock by every publisher, so that all of it is atomic; what does not fit together is found out under
 * the lock. */
struct aa_waiter
{
    aa_waiter_t *next;
    _Atomic int64_t registration_id; /* 0: nobody */
    _Atomic(aa_counter_value_t *) counter;
    _Atomic int descriptor;
};

void aa_waiters_init(aa_waiters_t *waiters)
{
    atomic_init(&waiters->first, NULL);
    pthread_mutex_init(&waiters->lock, NULL);
}

void aa_waiters_destroy(aa_waiters_t *waiters)
{
    aa_waiter_t *waiter = atomic_load_explicit(&waiters->first, memory_order_relaxed);
    while (waiter != NULL)
    {
        aa_waiter_t *next = waiter->next;
        free(waiter);
        waiter = next;
    }
    pthread_mutex_destroy(&waiters->lock);
}

/* A place that nobody has, in the list. NULL without memory. */
static aa_waiter_t *free_place(aa_waiters_t *waiters)
{
    aa_waiter_t *first = atomic_load_explicit(&waiters->first, memory_order_relaxed);
    for (aa_waiter_t *waiter = first; waiter != NULL; waiter = waiter->next)
    {
        if (atomic_load_explicit(&waiter->registration_id, memory_order_relaxed) == 0)
        {
            return waiter;
        }
    }
    aa_waiter_t *added = calloc(1, sizeof(*added));
    if (added != NULL)
    {
        added->next = first;
        /* Pairs with the acquire of publishers that walk the list. */
        atomic_store_explicit(&waiters->first, added, memory_order_release);
    }
    return added;
}

int aa_waiters_add(
    aa_waiters_t *waiters, const aa_cnc_t *cnc, int32_t counter_id, int64_t registration_id, int descriptor)
{
    _Atomic int64_t *value = aa_counters_value(cnc, counter_id);
    if (value == NULL || registration_id == 0)
    {
        return AA_ARGUMENT;
    }
    pthread_mutex_lock(&waiters->lock);
    aa_waiter_t *waiter = free_place(waiters);
    if (waiter != NULL)
    {
        atomic_store_explicit(&waiter->counter, (aa_counter_value_t *)value, memory_order_relaxed);
        atomic_store_explicit(&waiter->descriptor, descriptor, memory_order_relaxed);
        atomic_store_explicit(&waiter->registration_id, registration_id, memory_order_release);
    }
    pthread_mutex_unlock(&waiters->lock);
    return waiter == NULL ? AA_SYSTEM : AA_OK;
}

void aa_waiters_remove(aa_waiters_t *waiters, int64_t registration_id)
{
    pthread_mutex_lock(&waiters->lock);
    aa_waiter_t *waiter = atomic_load_explicit(&waiters->first, memory_order_relaxed);
    for (; waiter != NULL; waiter = waiter->next)
    {
        const int64_t found = atomic_load_explicit(&waiter->registration_id, memory_order_relaxed);
        if (registration_id == 0 || found == registration_id)
        {
            atomic_store_explicit(&waiter->registration_id, 0, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&waiters->lock);
}

/* Whether the counter is raised, and still the one that was meant: the driver gives ids out again. */
static bool is_raised(const aa_waiter_t *waiter, int64_t registration_id)
{
    aa_counter_value_t *counter = atomic_load_explicit(&waiter->counter, memory_order_relaxed);
    return atomic_load_explicit(&counter->value, memory_order_relaxed) == registration_id &&
           atomic_load_explicit(&counter->registration_id, memory_order_acquire) == registration_id;
}

static void signal_waiter(aa_waiters_t *waiters, aa_waiter_t *waiter)
{
    pthread_mutex_lock(&waiters->lock);
    int64_t registration_id = atomic_load_explicit(&waiter->registration_id, memory_order_relaxed);
    if (registration_id != 0 && is_raised(waiter, registration_id))
    {
        aa_counter_value_t *counter = atomic_load_explicit(&waiter->counter, memory_order_relaxed);
        if (atomic_compare_exchange_strong_explicit(
                &counter->value, &registration_id, 0, memory_order_acq_rel, memory_order_relaxed))
        {
            /* A full FIFO is readable already, and whatever else fails is left to the reader's watcher. */
            const ssize_t ignored = write(atomic_load_explicit(&waiter->descriptor, memory_order_relaxed), "", 1);
            (void)ignored;
        }
    }
    pthread_mutex_unlock(&waiters->lock);
}

void aa_waiters_wake_known(aa_waiters_t *waiters)
{
    /* Pairs with the fence of the reader between raising its counter and its last look: either it sees the message, or
     * this sees the counter raised. */
    atomic_thread_fence(memory_order_seq_cst);
    aa_waiter_t *waiter = atomic_load_explicit(&waiters->first, memory_order_acquire);
    for (; waiter != NULL; waiter = waiter->next)
    {
        const int64_t registration_id = atomic_load_explicit(&waiter->registration_id, memory_order_acquire);
        if (registration_id != 0 && is_raised(waiter, registration_id))
        {
            signal_waiter(waiters, waiter);
        }
    }
}
