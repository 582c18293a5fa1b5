#include "modes.h"

#include <stdio.h>
#include <stdlib.h>

#include "client.h"
#include "control.h"
#include "pool.h"

static void on_message(void *tally, const uint8_t *message, size_t length, aeron_header_t *header)
{
    (void)length, (void)header;
    tally_take(tally, message);
}

static tally_t exchange(const link_t *link, const pool_t *pool, const options_t *options, extent_t extent)
{
    tally_t tally = {.ticks = options->ticks};
    uint64_t sent = 0;
    int64_t start = monotonic();
    for (;;)
    {
        uint64_t left = extent_left(&extent, sent, monotonic() - start);
        if (left == 0)
        {
            return tally;
        }
        for (uint64_t end = sent + (left < options->batch ? left : options->batch); sent < end; sent++)
        {
            const uint8_t *message = pool_message(pool, sent);
            wait_t wait = {.what = "room in the log"};
            while (!client_try_offer(link->publication, message, pool->size))
            {
                client_poll(link->subscription, on_message, &tally, options->batch);
                wait_spin(&wait);
            }
        }
        wait_t wait = {.what = "messages to arrive"};
        while (tally.messages < sent)
        {
            if (client_poll(link->subscription, on_message, &tally, options->batch) == 0)
            {
                wait_spin(&wait);
            }
        }
    }
}

void run_throughput(const options_t *options)
{
    pool_t pool = pool_make(options->size, options->ticks);
    link_t link = link_connect(options, &options->stream);
    control_ready();

    exchange(&link, &pool, options, extent_warm_up());
    int64_t start = monotonic();
    tally_t tally = exchange(&link, &pool, options, options->extent);
    double seconds = to_seconds(monotonic() - start);
    printf("{");
    tally_print(&tally);
    printf(", \"seconds\": %.9f}\n", seconds);

    client_close(&link.client);
    free(pool.bytes);
}
