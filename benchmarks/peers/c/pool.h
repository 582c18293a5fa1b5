/* The messages that are sent: the same bytes in every client, cut from one stream of random numbers. */
#ifndef POOL_H
#define POOL_H

#include "tick.h"

#include <stddef.h>

#define POOL_ENTRIES 4096

typedef struct
{
    uint8_t *bytes;
    size_t size;
    bool ticks;
} pool_t;

/* Messages of size bytes. With ticks each gets one when it is to be sent; without, each keeps the one it has now. */
pool_t pool_make(size_t size, bool ticks);

/* Prints the digest of all messages before any tick, as a JSON object. */
void pool_print_digest(size_t size);

/* Message number sequence, ready to be sent. */
static inline uint8_t *pool_message(const pool_t *pool, uint64_t sequence)
{
    uint8_t *message = pool->bytes + sequence % POOL_ENTRIES * pool->size;
    if (pool->ticks)
    {
        tick_stamp(message, sequence);
    }
    return message;
}

#endif
