/* Nanoseconds of the two clocks. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

#define NANOSECONDS 1000000000

static inline int64_t clock_nanoseconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static inline int64_t monotonic(void)
{
    return clock_nanoseconds(CLOCK_MONOTONIC);
}

/* All processes of a machine share it. */
static inline int64_t realtime(void)
{
    return clock_nanoseconds(CLOCK_REALTIME);
}

static inline double to_seconds(int64_t nanoseconds)
{
    return (double)nanoseconds / NANOSECONDS;
}

#endif
