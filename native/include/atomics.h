/* What C11's atomics lack for memory that is shared with other processes: copies that may race, and reference counts.
 */
#ifndef AA_ATOMICS_H
#define AA_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared memory needs lock-free atomics");
_Static_assert(
    sizeof(_Atomic int64_t) == 8 && sizeof(_Atomic int32_t) == 4, "atomics must have the layout of integers");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Aeron's files are little-endian");

/* Rounds up to a power of two. */
static inline int64_t aa_align(int64_t value, int64_t alignment)
{
    return (value + (alignment - 1)) & ~(alignment - 1);
}

static inline int64_t aa_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline bool aa_is_power_of_two(int64_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

/* Copies out of memory that may be overwritten meanwhile: what comes out can be torn, and the caller has to find out.
 * from must be aligned to 4 bytes. */
static inline void aa_copy_racing(void *to, const void *from, size_t length)
{
    const _Atomic uint32_t *words = from;
    uint8_t *out = to;
    size_t whole = length / sizeof(uint32_t);
    for (size_t i = 0; i < whole; i++)
    {
        uint32_t word = atomic_load_explicit(&words[i], memory_order_relaxed);
        __builtin_memcpy(out + i * sizeof(word), &word, sizeof(word));
    }

    const _Atomic uint8_t *bytes = from;
    for (size_t i = whole * sizeof(uint32_t); i < length; i++)
    {
        out[i] = atomic_load_explicit(&bytes[i], memory_order_relaxed);
    }
}

typedef _Atomic int32_t aa_references_t;

static inline void aa_references_take(aa_references_t *references)
{
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* True for the last one, who frees: acquire pairs with the release of all who let go before. */
static inline bool aa_references_drop(aa_references_t *references)
{
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

#endif
