#include "ring_buffer.h"

#include <string.h>

#define MINIMUM_CAPACITY 1024

bool aa_ring_buffer_init(aa_ring_buffer_t *ring_buffer, uint8_t *memory, int64_t length)
{
    int64_t capacity = length - (int64_t)sizeof(aa_ring_buffer_trailer_t);
    if (capacity < MINIMUM_CAPACITY || !aa_is_power_of_two(capacity))
    {
        return false;
    }

    ring_buffer->records = memory;
    ring_buffer->capacity = capacity;
    ring_buffer->trailer = (aa_ring_buffer_trailer_t *)(memory + capacity);
    return true;
}

static aa_ring_buffer_record_t *record_at(aa_ring_buffer_t *ring_buffer, int64_t index)
{
    return (aa_ring_buffer_record_t *)(ring_buffer->records + index);
}

/* A negative length says that the record is claimed, so that the consumer can pass it over should its writer die. The
 * fence keeps the body's stores behind the marker. */
static aa_ring_buffer_record_t *mark_claimed(aa_ring_buffer_t *ring_buffer, int64_t index, int32_t length)
{
    aa_ring_buffer_record_t *record = record_at(ring_buffer, index);
    atomic_store_explicit(&record->length, -length, memory_order_release);
    atomic_thread_fence(memory_order_release);
    return record;
}

/* Pairs with the acquire of the consumer. */
static void commit(aa_ring_buffer_record_t *record, int32_t length)
{
    atomic_store_explicit(&record->length, length, memory_order_release);
}

static int64_t head_now(aa_ring_buffer_trailer_t *trailer)
{
    int64_t head = atomic_load_explicit(&trailer->head_position, memory_order_acquire);
    atomic_store_explicit(&trailer->head_cache_position, head, memory_order_release);
    return head;
}

/* Unsigned, because positions that are nonsense must not overflow. */
static int64_t free_space(int64_t capacity, int64_t tail, int64_t head)
{
    return (int64_t)((uint64_t)capacity - ((uint64_t)tail - (uint64_t)head));
}

/* The index of the claimed space, or AA_FULL, AA_CORRUPT. */
static int64_t claim(aa_ring_buffer_t *ring_buffer, int64_t required)
{
    aa_ring_buffer_trailer_t *trailer = ring_buffer->trailer;
    const int64_t capacity = ring_buffer->capacity;
    const int64_t mask = capacity - 1;
    int64_t head = atomic_load_explicit(&trailer->head_cache_position, memory_order_acquire);
    int64_t tail, index, padding;
    do
    {
        tail = atomic_load_explicit(&trailer->tail_position, memory_order_acquire);
        if (tail < 0 || tail > INT64_MAX - 2 * capacity || tail % AA_RING_BUFFER_ALIGNMENT != 0)
        {
            return AA_CORRUPT;
        }

        if (required > free_space(capacity, tail, head))
        {
            head = head_now(trailer);
            if (required > free_space(capacity, tail, head))
            {
                return AA_FULL;
            }
        }

        index = tail & mask;
        padding = 0;
        if (required > capacity - index)
        {
            if (required > (head & mask))
            {
                head = head_now(trailer);
                if (required > (head & mask))
                {
                    return AA_FULL;
                }
            }
            padding = capacity - index;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &trailer->tail_position, &tail, tail + required + padding, memory_order_acq_rel, memory_order_relaxed));

    if (padding == 0)
    {
        return index;
    }

    aa_ring_buffer_record_t *record = mark_claimed(ring_buffer, index, (int32_t)padding);
    record->type_id = AA_RING_BUFFER_PADDING_TYPE_ID;
    commit(record, (int32_t)padding);
    return 0;
}

int aa_ring_buffer_write(aa_ring_buffer_t *ring_buffer, int32_t type_id, const uint8_t *message, size_t length)
{
    if (type_id < 1 || length > (size_t)ring_buffer->capacity / 8)
    {
        return AA_ARGUMENT;
    }

    const int32_t record_length = (int32_t)(length + sizeof(aa_ring_buffer_record_t));
    int64_t index = claim(ring_buffer, aa_align(record_length, AA_RING_BUFFER_ALIGNMENT));
    if (index < 0)
    {
        return (int)index;
    }

    aa_ring_buffer_record_t *record = mark_claimed(ring_buffer, index, record_length);
    if (length > 0)
    {
        memcpy(record + 1, message, length);
    }
    record->type_id = type_id;
    commit(record, record_length);
    return AA_OK;
}

int64_t aa_ring_buffer_next_correlation_id(aa_ring_buffer_t *ring_buffer)
{
    return atomic_fetch_add_explicit(&ring_buffer->trailer->correlation_counter, 1, memory_order_relaxed);
}

int64_t aa_ring_buffer_consumer_heartbeat(const aa_ring_buffer_t *ring_buffer)
{
    return atomic_load_explicit(&ring_buffer->trailer->consumer_heartbeat, memory_order_acquire);
}
