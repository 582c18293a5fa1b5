/* Spinning for something that must come. */
#ifndef WAIT_H
#define WAIT_H

#include "clock.h"

/* What takes longer than this never comes. */
#define WAIT_LIMIT ((int64_t)30 * NANOSECONDS)

/* Spins between two looks at the clock. */
#define WAIT_SPINS 4096

/* A wait that has not had to spin costs nothing. */
typedef struct
{
    const char *what;
    uint32_t spins;
    int64_t end;
} wait_t;

/* Fails once the limit has passed. */
void wait_check(wait_t *wait);

/* One turn of a loop that may leave the processor to others. */
void wait_pause(wait_t *wait);

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* One turn of a loop that has found nothing. */
static inline void wait_spin(wait_t *wait)
{
    cpu_relax();
    if (++wait->spins % WAIT_SPINS == 0)
    {
        wait_check(wait);
    }
}

#endif
