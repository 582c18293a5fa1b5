#include "pool.h"

#include <stdio.h>
#include <stdlib.h>

#include <sha2.h>

#include "fail.h"

#define SEED 0x5EEDAE20

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t mixed = *state += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
}

/* A multiple of 8 for any size. */
static size_t pool_length(size_t size)
{
    return POOL_ENTRIES * size;
}

static uint8_t *random_bytes(size_t size)
{
    size_t length = pool_length(size);
    uint8_t *bytes = malloc(length);
    if (!bytes)
    {
        fail("no memory for messages of %zu bytes", size);
    }
    uint64_t state = SEED;
    for (size_t i = 0; i < length; i += sizeof(uint64_t))
    {
        uint64_t number = splitmix64(&state);
        memcpy(bytes + i, &number, sizeof(number));
    }
    return bytes;
}

pool_t pool_make(size_t size, bool ticks)
{
    pool_t pool = {random_bytes(size), size, ticks};
    if (!ticks)
    {
        for (size_t i = 0; i < POOL_ENTRIES; i++)
        {
            tick_stamp(pool.bytes + i * size, i);
        }
    }
    return pool;
}

void pool_print_digest(size_t size)
{
    char digest[SHA256_DIGEST_STRING_LENGTH];
    uint8_t *bytes = random_bytes(size);
    SHA256Data(bytes, pool_length(size), digest);
    printf("{\"sha256\": \"%s\"}\n", digest);
    free(bytes);
}
