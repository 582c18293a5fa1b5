#include "broadcast.h"

#include <stdlib.h>

#define MINIMUM_CAPACITY 1024

struct aa_broadcast
{
    aa_references_t references;
    aa_cnc_t *cnc;
    uint8_t *records;
    int64_t capacity;
    aa_broadcast_trailer_t *trailer;
    _Atomic int64_t cursor; /* the next record; written by the receiver, read by the watcher too */
};

bool aa_broadcast_is_length_valid(int64_t length)
{
    int64_t capacity = length - (int64_t)sizeof(aa_broadcast_trailer_t);
    return capacity >= MINIMUM_CAPACITY && aa_is_power_of_two(capacity);
}

aa_broadcast_t *aa_broadcast_open(aa_cnc_t *cnc)
{
    aa_broadcast_t *broadcast = calloc(1, sizeof(*broadcast));
    if (broadcast == NULL)
    {
        return NULL;
    }
    atomic_init(&broadcast->references, 1);
    broadcast->cnc = aa_cnc_reference(cnc);
    broadcast->records = cnc->to_clients;
    broadcast->capacity = cnc->info.to_clients_buffer_length - (int64_t)sizeof(aa_broadcast_trailer_t);
    broadcast->trailer = (aa_broadcast_trailer_t *)(broadcast->records + broadcast->capacity);
    atomic_init(&broadcast->cursor, atomic_load_explicit(&broadcast->trailer->latest, memory_order_acquire));
    return broadcast;
}

aa_broadcast_t *aa_broadcast_reference(aa_broadcast_t *broadcast)
{
    aa_references_take(&broadcast->references);
    return broadcast;
}

void aa_broadcast_release(aa_broadcast_t *broadcast)
{
    if (broadcast != NULL && aa_references_drop(&broadcast->references))
    {
        aa_cnc_release(broadcast->cnc);
        free(broadcast);
    }
}

/* Whether what was read from cursor on had not been overwritten by then: the fence keeps those reads before the look at
 * the intent, which the transmitter raises before it writes. */
static bool is_intact(const aa_broadcast_t *broadcast, int64_t cursor)
{
    atomic_thread_fence(memory_order_acquire);
    int64_t intent = atomic_load_explicit(&broadcast->trailer->tail_intent, memory_order_acquire);
    return cursor + broadcast->capacity > intent;
}

/* Reads the header of the record at cursor: AA_OK, AA_LAPPED, AA_CORRUPT. */
static int read_header(const aa_broadcast_t *broadcast, int64_t cursor, int32_t *length, int32_t *type_id)
{
    const int64_t offset = cursor & (broadcast->capacity - 1);
    if (offset % AA_BROADCAST_ALIGNMENT != 0)
    {
        return AA_CORRUPT;
    }
    aa_broadcast_record_t *record = (aa_broadcast_record_t *)(broadcast->records + offset);
    *length = atomic_load_explicit(&record->length, memory_order_relaxed);
    *type_id = atomic_load_explicit(&record->type_id, memory_order_relaxed);
    if (!is_intact(broadcast, cursor))
    {
        return AA_LAPPED;
    }
    if (*length < (int32_t)sizeof(aa_broadcast_record_t) || *length > broadcast->capacity - offset)
    {
        return AA_CORRUPT;
    }
    return AA_OK;
}

int aa_broadcast_receive(aa_broadcast_t *broadcast, int32_t *type_id, uint8_t *record, size_t capacity)
{
    int64_t cursor = atomic_load_explicit(&broadcast->cursor, memory_order_relaxed);
    int64_t tail = atomic_load_explicit(&broadcast->trailer->tail, memory_order_acquire);
    if (tail <= cursor)
    {
        return AA_NOTHING;
    }
    if (cursor < 0 || tail > INT64_MAX - 2 * broadcast->capacity)
    {
        return AA_CORRUPT;
    }

    int32_t length;
    int result = read_header(broadcast, cursor, &length, type_id);
    if (result == AA_OK && *type_id == AA_BROADCAST_PADDING_TYPE_ID)
    {
        cursor += aa_align(length, AA_BROADCAST_ALIGNMENT);
        if ((cursor & (broadcast->capacity - 1)) != 0 || cursor >= tail)
        {
            return AA_CORRUPT;
        }
        result = read_header(broadcast, cursor, &length, type_id);
    }
    if (result != AA_OK)
    {
        return result;
    }

    const size_t body_length = (size_t)length - sizeof(aa_broadcast_record_t);
    if (body_length > capacity || *type_id < 1)
    {
        return AA_CORRUPT;
    }
    const int64_t offset = cursor & (broadcast->capacity - 1);
    aa_copy_racing(record, broadcast->records + offset + sizeof(aa_broadcast_record_t), body_length);
    if (!is_intact(broadcast, cursor))
    {
        return AA_LAPPED;
    }

    /* Release: the watcher, which takes the cursor with acquire, must not see it ahead of the reads it stands for. */
    atomic_store_explicit(&broadcast->cursor, cursor + aa_align(length, AA_BROADCAST_ALIGNMENT), memory_order_release);
    return (int)body_length;
}

size_t aa_broadcast_max_record_length(const aa_broadcast_t *broadcast)
{
    return (size_t)broadcast->capacity / 8;
}

int64_t aa_broadcast_unread_tail(const aa_broadcast_t *broadcast)
{
    int64_t tail = atomic_load_explicit(&broadcast->trailer->tail, memory_order_acquire);
    int64_t cursor = atomic_load_explicit(&broadcast->cursor, memory_order_acquire);
    return tail > cursor ? tail : -1;
}
