#include "counters.h"

#include <stdlib.h>
#include <string.h>

#define SNAPSHOT_ATTEMPTS 8

static aa_counter_metadata_t *metadata_of(const aa_cnc_t *cnc, int32_t id)
{
    return (aa_counter_metadata_t *)cnc->counters_metadata + id;
}

static aa_counter_value_t *value_of(const aa_cnc_t *cnc, int32_t id)
{
    return (aa_counter_value_t *)cnc->counters_values + id;
}

static bool is_id_valid(const aa_cnc_t *cnc, int32_t id)
{
    return id >= 0 && id <= cnc->max_counter_id;
}

int32_t aa_counters_max_id(const aa_cnc_t *cnc)
{
    return cnc->max_counter_id;
}

_Atomic int64_t *aa_counters_value(const aa_cnc_t *cnc, int32_t id)
{
    return is_id_valid(cnc, id) ? &value_of(cnc, id)->value : NULL;
}

static int32_t clamp_label_length(int32_t length)
{
    if (length < 0)
    {
        return 0;
    }
    return length < AA_COUNTER_LABEL_LENGTH ? length : AA_COUNTER_LABEL_LENGTH;
}

/* False where the counter changed hands meanwhile. */
static bool take_snapshot(const aa_cnc_t *cnc, int32_t id, aa_counter_info_t *info)
{
    aa_counter_metadata_t *metadata = metadata_of(cnc, id);
    aa_counter_value_t *value = value_of(cnc, id);

    /* Pairs with the driver's release once the record is complete. */
    info->state = atomic_load_explicit(&metadata->state, memory_order_acquire);
    info->registration_id = atomic_load_explicit(&value->registration_id, memory_order_acquire);
    info->type_id = atomic_load_explicit(&metadata->type_id, memory_order_relaxed);
    info->free_for_reuse_deadline_ms =
        atomic_load_explicit(&metadata->free_for_reuse_deadline_ms, memory_order_relaxed);
    info->value = atomic_load_explicit(&value->value, memory_order_acquire);
    info->owner_id = atomic_load_explicit(&value->owner_id, memory_order_relaxed);
    info->reference_id = atomic_load_explicit(&value->reference_id, memory_order_relaxed);
    info->label_length = clamp_label_length(atomic_load_explicit(&metadata->label_length, memory_order_acquire));
    aa_copy_racing(info->key, metadata->key, sizeof(info->key));
    aa_copy_racing(info->label, metadata->label, sizeof(info->label));

    atomic_thread_fence(memory_order_acquire);
    return info->state == atomic_load_explicit(&metadata->state, memory_order_relaxed) &&
           info->registration_id == atomic_load_explicit(&value->registration_id, memory_order_relaxed);
}

int aa_counters_read(const aa_cnc_t *cnc, int32_t id, aa_counter_info_t *info)
{
    if (!is_id_valid(cnc, id))
    {
        return AA_ARGUMENT;
    }
    info->id = id;
    for (int attempt = 0; attempt < SNAPSHOT_ATTEMPTS && !take_snapshot(cnc, id, info); attempt++)
    {
    }
    return AA_OK;
}

int32_t aa_counters_find(const aa_cnc_t *cnc, int32_t type_id, int64_t registration_id)
{
    for (int32_t id = 0; id <= cnc->max_counter_id; id++)
    {
        aa_counter_metadata_t *metadata = metadata_of(cnc, id);
        int32_t state = atomic_load_explicit(&metadata->state, memory_order_acquire);
        if (state == AA_COUNTER_UNUSED)
        {
            break;
        }
        if (state == AA_COUNTER_ALLOCATED &&
            atomic_load_explicit(&metadata->type_id, memory_order_relaxed) == type_id &&
            atomic_load_explicit(&value_of(cnc, id)->registration_id, memory_order_acquire) == registration_id)
        {
            return id;
        }
    }
    return -1;
}

/* Whether the key begins with a number. */
static bool has_key(const aa_counter_metadata_t *metadata, int32_t number)
{
    int32_t first;
    aa_copy_racing(&first, metadata->key, sizeof(first));
    return first == number;
}

int32_t aa_counters_next(const aa_cnc_t *cnc, int32_t type_id, int32_t key, int32_t from_id)
{
    for (int32_t id = from_id; id >= 0 && id <= cnc->max_counter_id; id++)
    {
        aa_counter_metadata_t *metadata = metadata_of(cnc, id);
        int32_t state = atomic_load_explicit(&metadata->state, memory_order_acquire);
        if (state == AA_COUNTER_UNUSED)
        {
            break;
        }
        if (state == AA_COUNTER_ALLOCATED &&
            atomic_load_explicit(&metadata->type_id, memory_order_relaxed) == type_id && has_key(metadata, key))
        {
            return id;
        }
    }
    return -1;
}

struct aa_counter
{
    aa_cnc_t *cnc;
    _Atomic int64_t *value;
    _Atomic bool is_closed;
    _Atomic int64_t last_value;
};

aa_counter_t *aa_counter_create(aa_cnc_t *cnc, int32_t id)
{
    _Atomic int64_t *value = aa_counters_value(cnc, id);
    aa_counter_t *counter = value == NULL ? NULL : calloc(1, sizeof(*counter));
    if (counter != NULL)
    {
        counter->cnc = aa_cnc_reference(cnc);
        counter->value = value;
    }
    return counter;
}

void aa_counter_release(aa_counter_t *counter)
{
    if (counter != NULL)
    {
        aa_cnc_release(counter->cnc);
        free(counter);
    }
}

void aa_counter_close(aa_counter_t *counter)
{
    if (!atomic_load_explicit(&counter->is_closed, memory_order_relaxed))
    {
        atomic_store_explicit(
            &counter->last_value, atomic_load_explicit(counter->value, memory_order_acquire), memory_order_relaxed);
        atomic_store_explicit(&counter->is_closed, true, memory_order_release);
    }
}

/* Where reads and writes go. Acquire pairs with the release in close: whoever sees it closed sees the last value. */
static bool is_open(const aa_counter_t *counter)
{
    return !atomic_load_explicit(&counter->is_closed, memory_order_acquire);
}

static int64_t last_value(const aa_counter_t *counter)
{
    return atomic_load_explicit(&counter->last_value, memory_order_relaxed);
}

int64_t aa_counter_value(const aa_counter_t *counter)
{
    return is_open(counter) ? atomic_load_explicit(counter->value, memory_order_acquire) : last_value(counter);
}

void aa_counter_set(aa_counter_t *counter, int64_t value)
{
    if (is_open(counter))
    {
        atomic_store_explicit(counter->value, value, memory_order_release);
    }
}

int64_t aa_counter_add(aa_counter_t *counter, int64_t delta)
{
    return is_open(counter) ? atomic_fetch_add_explicit(counter->value, delta, memory_order_acq_rel)
                            : last_value(counter);
}

int64_t aa_counter_get_and_set(aa_counter_t *counter, int64_t value)
{
    return is_open(counter) ? atomic_exchange_explicit(counter->value, value, memory_order_acq_rel)
                            : last_value(counter);
}

bool aa_counter_compare_and_set(aa_counter_t *counter, int64_t expected, int64_t value)
{
    return is_open(counter) && atomic_compare_exchange_strong_explicit(
                                   counter->value, &expected, value, memory_order_acq_rel, memory_order_acquire);
}

/* The driver puts the client's id at the head of the heartbeat counter's key. */
static bool is_heartbeat_of(const aa_cnc_t *cnc, int32_t id, int64_t client_id)
{
    aa_counter_metadata_t *metadata = metadata_of(cnc, id);
    if (atomic_load_explicit(&metadata->state, memory_order_acquire) != AA_COUNTER_ALLOCATED ||
        atomic_load_explicit(&metadata->type_id, memory_order_relaxed) != AA_COUNTER_TYPE_CLIENT_HEARTBEAT)
    {
        return false;
    }
    int64_t key;
    aa_copy_racing(&key, metadata->key, sizeof(key));
    return key == client_id;
}

static int32_t find_heartbeat(const aa_cnc_t *cnc, int64_t client_id)
{
    for (int32_t id = 0; id <= cnc->max_counter_id; id++)
    {
        if (is_heartbeat_of(cnc, id, client_id))
        {
            return id;
        }
        if (atomic_load_explicit(&metadata_of(cnc, id)->state, memory_order_acquire) == AA_COUNTER_UNUSED)
        {
            break;
        }
    }
    return -1;
}

/* The counter's id, or -1. It is looked for afresh where it is not, or no longer, where it was last seen. */
static int32_t heartbeat_counter(aa_cnc_t *cnc, int64_t client_id)
{
    int32_t id = atomic_load_explicit(&cnc->heartbeat_counter_id, memory_order_relaxed);
    if (id < 0 || !is_heartbeat_of(cnc, id, client_id))
    {
        id = find_heartbeat(cnc, client_id);
        atomic_store_explicit(&cnc->heartbeat_counter_id, id, memory_order_relaxed);
    }
    return id;
}

bool aa_cnc_client_heartbeat(aa_cnc_t *cnc, int64_t client_id, int64_t now_ms)
{
    const int32_t id = heartbeat_counter(cnc, client_id);
    if (id >= 0)
    {
        atomic_store_explicit(&value_of(cnc, id)->value, now_ms, memory_order_release);
    }
    return id >= 0;
}

bool aa_cnc_client_label(aa_cnc_t *cnc, int64_t client_id, const char *text, size_t length)
{
    const int32_t id = heartbeat_counter(cnc, client_id);
    if (id < 0)
    {
        return false;
    }
    aa_counter_metadata_t *metadata = metadata_of(cnc, id);
    const int32_t used = clamp_label_length(atomic_load_explicit(&metadata->label_length, memory_order_acquire));
    const int32_t room = AA_COUNTER_LABEL_LENGTH - used;
    const int32_t added = length < (size_t)room ? (int32_t)length : room;
    memcpy(metadata->label + used, text, (size_t)added);
    /* Pairs with the acquire of whoever reads the label. */
    atomic_store_explicit(&metadata->label_length, used + added, memory_order_release);
    return true;
}
