/* Aeron's ring buffer for many producers and one consumer, over any memory: the producers' side. */
#ifndef AA_RING_BUFFER_H
#define AA_RING_BUFFER_H

#include "atomics.h"
#include "error.h"

#define AA_RING_BUFFER_ALIGNMENT 8
#define AA_RING_BUFFER_PADDING_TYPE_ID -1

/* The trailer behind the records; each field has two cache lines of its own. */
typedef struct
{
    uint8_t begin_padding[128];
    _Atomic int64_t tail_position;
    uint8_t tail_padding[120];
    _Atomic int64_t head_cache_position;
    uint8_t head_cache_padding[120];
    _Atomic int64_t head_position;
    uint8_t head_padding[120];
    _Atomic int64_t correlation_counter;
    uint8_t correlation_padding[120];
    _Atomic int64_t consumer_heartbeat;
    uint8_t heartbeat_padding[120];
} aa_ring_buffer_trailer_t;

_Static_assert(sizeof(aa_ring_buffer_trailer_t) == 768, "layout of the ring buffer's trailer");

typedef struct
{
    _Atomic int32_t length; /* header included; negative while it is being written */
    int32_t type_id;
} aa_ring_buffer_record_t;

_Static_assert(sizeof(aa_ring_buffer_record_t) == 8, "layout of a ring buffer's record");

typedef struct
{
    uint8_t *records;
    int64_t capacity;
    aa_ring_buffer_trailer_t *trailer;
} aa_ring_buffer_t;

/* False for a length that no ring buffer can have. memory must be aligned to 8 bytes. */
bool aa_ring_buffer_init(aa_ring_buffer_t *ring_buffer, uint8_t *memory, int64_t length);
/* AA_OK, AA_FULL, AA_ARGUMENT (longer than an eighth of the capacity, type id below 1), AA_CORRUPT. */
int aa_ring_buffer_write(aa_ring_buffer_t *ring_buffer, int32_t type_id, const uint8_t *message, size_t length);
int64_t aa_ring_buffer_next_correlation_id(aa_ring_buffer_t *ring_buffer);
int64_t aa_ring_buffer_consumer_heartbeat(const aa_ring_buffer_t *ring_buffer);

#endif
