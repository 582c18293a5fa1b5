#include "watch.h"

#include <stdlib.h>

aa_wake_counter_t *aa_wake_counter_create(aa_cnc_t *cnc, int32_t id, int64_t registration_id)
{
    _Atomic int64_t *value = aa_counters_value(cnc, id);
    aa_wake_counter_t *counter = value == NULL ? NULL : calloc(1, sizeof(*counter));
    if (counter != NULL)
    {
        atomic_init(&counter->references, 1);
        counter->cnc = aa_cnc_reference(cnc);
        counter->value = (aa_counter_value_t *)value;
        counter->raised = registration_id;
    }
    return counter;
}

void aa_wake_counter_release(aa_wake_counter_t *counter)
{
    if (counter != NULL && aa_references_drop(&counter->references))
    {
        aa_cnc_release(counter->cnc);
        free(counter);
    }
}

static aa_watch_t *create(size_t image_count)
{
    aa_watch_t *watch = calloc(1, sizeof(*watch) + image_count * sizeof(watch->images[0]));
    if (watch != NULL)
    {
        atomic_init(&watch->references, 1);
        atomic_init(&watch->state, AA_WATCH_IDLE);
        watch->image_count = image_count;
    }
    return watch;
}

aa_watch_t *aa_watch_images(aa_image_t *const *images, size_t count, aa_wake_counter_t *counter)
{
    aa_watch_t *watch = create(count);
    if (watch != NULL)
    {
        if (counter != NULL)
        {
            aa_references_take(&counter->references);
            watch->counter = counter;
        }
        for (size_t i = 0; i < count; i++)
        {
            watch->images[i] = aa_image_reference(images[i]);
        }
    }
    return watch;
}

aa_watch_t *aa_watch_publication(aa_publication_t *publication, int kind)
{
    aa_watch_t *watch = create(0);
    if (watch != NULL)
    {
        watch->publication = aa_publication_reference(publication);
        watch->kind = kind;
        /* Nobody else ever tells. */
        watch->is_served_by_thread = true;
    }
    return watch;
}

aa_watch_t *aa_watch_reference(aa_watch_t *watch)
{
    aa_references_take(&watch->references);
    return watch;
}

void aa_watch_release(aa_watch_t *watch)
{
    if (watch != NULL && aa_references_drop(&watch->references))
    {
        aa_wake_counter_release(watch->counter);
        aa_publication_release(watch->publication);
        for (size_t i = 0; i < watch->image_count; i++)
        {
            aa_image_release(watch->images[i]);
        }
        free(watch);
    }
}

static bool is_publication_ready(const aa_publication_t *publication, int kind)
{
    if (aa_publication_is_closed(publication))
    {
        return true;
    }
    if (!aa_publication_is_connected(publication))
    {
        return false;
    }
    return kind == AA_WATCH_CONNECTED ||
           aa_publication_position(publication) < aa_publication_position_limit(publication);
}

bool aa_watch_is_ready(const aa_watch_t *watch)
{
    if (watch->publication != NULL)
    {
        return is_publication_ready(watch->publication, watch->kind);
    }
    for (size_t i = 0; i < watch->image_count; i++)
    {
        if (aa_image_is_closed(watch->images[i]) || aa_image_has_frame(watch->images[i]))
        {
            return true;
        }
    }
    return false;
}

/* The driver takes the counters of a client away that it heard nothing of, and gives their places to others. */
static bool is_ours(const aa_wake_counter_t *counter)
{
    return atomic_load_explicit(&counter->value->registration_id, memory_order_relaxed) == counter->raised;
}

static bool is_raised(const aa_wake_counter_t *counter)
{
    return atomic_load_explicit(&counter->value->value, memory_order_relaxed) == counter->raised;
}

bool aa_watch_raise(aa_watch_t *watch)
{
    aa_wake_counter_t *counter = watch->counter;
    if (counter != NULL)
    {
        if (!watch->is_counted)
        {
            watch->is_counted = true;
            counter->waiting++;
        }
        if (!is_raised(counter) && is_ours(counter))
        {
            atomic_store_explicit(&counter->value->value, counter->raised, memory_order_relaxed);
            /* Pairs with the fence of publishers between their message and their look at the counter: either they see
             * it raised, or this look sees the message. Publishers of other libraries know nothing of it: what they
             * publish from now on is found by the watcher, with its bounded lateness. */
            atomic_thread_fence(memory_order_seq_cst);
        }
    }
    return aa_watch_is_ready(watch);
}

void aa_watch_lower(aa_watch_t *watch)
{
    aa_wake_counter_t *counter = watch->counter;
    if (counter == NULL || !watch->is_counted)
    {
        return;
    }
    watch->is_counted = false;
    int64_t raised = counter->raised;
    if (--counter->waiting == 0 && is_raised(counter) && is_ours(counter))
    {
        atomic_compare_exchange_strong_explicit(
            &counter->value->value, &raised, 0, memory_order_relaxed, memory_order_relaxed);
    }
}

bool aa_watch_was_signalled(const aa_watch_t *watch)
{
    return watch->counter != NULL && !is_raised(watch->counter);
}
