#include "histogram.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "fail.h"

histogram_t *histogram_make(void)
{
    histogram_t *histogram = calloc(1, sizeof(*histogram));
    if (!histogram)
    {
        fail("no memory for a histogram");
    }
    return histogram;
}

/* The duration that so many of a thousand do not exceed, as far as it is told apart. */
static uint64_t percentile(const histogram_t *histogram, uint64_t of_a_thousand)
{
    uint64_t rank = (histogram->total * of_a_thousand + 999) / 1000;
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
    {
        seen += histogram->counts[bucket];
        if (seen >= rank && seen > 0)
        {
            size_t block = bucket >> HISTOGRAM_PRECISION;
            size_t shift = block ? block - 1 : 0;
            return (uint64_t)(bucket - (shift << HISTOGRAM_PRECISION)) << shift;
        }
    }
    return 0;
}

void histogram_print(const histogram_t *histogram)
{
    printf(
        "\"p50\": %" PRIu64 ", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64 ", \"p999\": %" PRIu64 ", \"max\": %" PRId64,
        percentile(histogram, 500), percentile(histogram, 900), percentile(histogram, 990), percentile(histogram, 999),
        histogram->max);
}
