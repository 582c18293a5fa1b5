#include "modes.h"

#include <stdio.h>
#include <stdlib.h>

#include "client.h"
#include "control.h"
#include "histogram.h"
#include "pool.h"

typedef struct
{
    tally_t tally;
    histogram_t *durations;
    int64_t time;
} trips_t;

static void on_message(void *tally, const uint8_t *message, size_t length, aeron_header_t *header)
{
    (void)length, (void)header;
    tally_take(tally, message);
}

static trips_t exchange(const link_t *link, const pool_t *pool, const options_t *options, extent_t extent)
{
    trips_t trips = {.tally = {.ticks = options->ticks}, .durations = histogram_make()};
    int64_t start = monotonic();
    while (extent_left(&extent, trips.tally.messages, trips.time) > 0)
    {
        int64_t sent = monotonic();
        client_offer(link->publication, pool_message(pool, trips.tally.messages), pool->size);
        wait_t wait = {.what = "a message to come back"};
        while (client_poll(link->subscription, on_message, &trips.tally, options->batch) == 0)
        {
            wait_spin(&wait);
        }
        int64_t back = monotonic();
        histogram_record(trips.durations, back - sent);
        trips.time = back - start;
    }
    return trips;
}

void run_round_trips(const options_t *options, const stream_t *returning)
{
    pool_t pool = pool_make(options->size, options->ticks);
    link_t link = link_connect(options, returning);
    control_ready();

    free(exchange(&link, &pool, options, extent_warm_up()).durations);
    trips_t trips = exchange(&link, &pool, options, options->extent);
    printf("{");
    tally_print(&trips.tally);
    printf(", \"seconds\": %.9f, ", to_seconds(trips.time));
    histogram_print(trips.durations);
    printf("}\n");

    free(trips.durations);
    client_close(&link.client);
    free(pool.bytes);
}
