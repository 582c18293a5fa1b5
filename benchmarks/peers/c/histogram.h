/* Percentiles of any number of durations, in bounded memory. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

/* Durations are kept to this many bits after the leading one: exact below 2 us, within 0.1 % above. */
#define HISTOGRAM_PRECISION 10
/* The longest that is told apart, 2^40 ns, is 18 minutes. */
#define HISTOGRAM_LONGEST ((INT64_C(1) << 40) - 1)
#define HISTOGRAM_BUCKETS ((40 - HISTOGRAM_PRECISION + 1) << HISTOGRAM_PRECISION)

typedef struct
{
    uint64_t total;
    int64_t max;
    uint64_t counts[HISTOGRAM_BUCKETS];
} histogram_t;

/* An empty one; it is large, and the caller frees it. */
histogram_t *histogram_make(void);

/* Each power of two has 2^HISTOGRAM_PRECISION buckets of the same width. */
static inline void histogram_record(histogram_t *histogram, int64_t nanoseconds)
{
    uint64_t value = (uint64_t)(nanoseconds < HISTOGRAM_LONGEST ? nanoseconds : HISTOGRAM_LONGEST);
    int leading_bit = 63 - __builtin_clzll(value | 1);
    int shift = leading_bit > HISTOGRAM_PRECISION ? leading_bit - HISTOGRAM_PRECISION : 0;
    histogram->counts[((uint64_t)shift << HISTOGRAM_PRECISION) + (value >> shift)]++;
    histogram->total++;
    histogram->max = nanoseconds > histogram->max ? nanoseconds : histogram->max;
}

/* Writes its members of a JSON object. */
void histogram_print(const histogram_t *histogram);

#endif
