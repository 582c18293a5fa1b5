#include "modes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client.h"
#include "control.h"
#include "fail.h"
#include "histogram.h"
#include "pool.h"

enum
{
    /* Bytes of a message: the tick, the time of sending, and random ones. */
    MESSAGE_SIZE = 64,
    /* Where the time of sending is. */
    SENT = TICK_LENGTH,
    /* One message in so many has its delay measured. */
    SAMPLING = 64,
    /* How long a feed stays connected after its last message, in milliseconds. */
    LINGER = 1000,
};

/* A feed that is over and silent for so long has been received. */
static const int64_t SILENCE = NANOSECONDS / 2;

void run_market_publisher(const options_t *options)
{
    pool_t pool = pool_make(MESSAGE_SIZE, true);
    client_t client = client_connect(options);
    aeron_exclusive_publication_t *publication = client_publication(&client, &options->stream);
    client_wait_for_subscriber(publication);
    control_ready();

    double nanoseconds_apart = options->rate ? (double)NANOSECONDS / (double)options->rate : 0.0;
    uint64_t messages = 0;
    uint64_t refusals = 0;
    int64_t elapsed = 0;
    int64_t start = realtime();
    while (extent_left(&options->extent, messages, elapsed) > 0)
    {
        /* One reading of the clock serves the pace, the end and the message: it costs as much as sending one. */
        int64_t now = realtime();
        elapsed = now - start;
        if ((double)elapsed < (double)messages * nanoseconds_apart)
        {
            cpu_relax();
            continue;
        }
        uint8_t *message = pool_message(&pool, messages);
        memcpy(message + SENT, &now, sizeof(now));
        wait_t wait = {.what = "the consumer to make room"};
        while (!client_try_offer(publication, message, pool.size))
        {
            refusals++;
            wait_spin(&wait);
        }
        messages++;
    }
    printf(
        "{\"messages\": %" PRIu64 ", \"seconds\": %.9f, \"backpressured\": %" PRIu64 "}\n", messages,
        to_seconds(elapsed), refusals);
    fflush(stdout);
    control_linger(LINGER);
    client_close(&client);
    free(pool.bytes);
}

/* What a consumer has seen of a feed. */
typedef struct
{
    tally_t tally;
    int64_t next;
    uint64_t gaps;
    histogram_t *delays;
} feed_t;

static void on_tick(void *to, const uint8_t *message, size_t length, aeron_header_t *header)
{
    (void)length, (void)header;
    feed_t *feed = to;
    tally_take(&feed->tally, message);
    int64_t sequence = tick_sequence(message);
    feed->gaps += sequence != feed->next;
    feed->next = sequence + 1;
    if (sequence % SAMPLING == 0)
    {
        int64_t sent;
        memcpy(&sent, message + SENT, sizeof(sent));
        int64_t delay = realtime() - sent;
        /* Never negative but by a step of the clock. */
        histogram_record(feed->delays, delay > 0 ? delay : 0);
    }
}

void run_market_consumer(const options_t *options)
{
    client_t client = client_connect(options);
    aeron_subscription_t *subscription = client_subscription(&client, &options->stream);
    control_ready();

    feed_t feed = {.tally = {.ticks = options->ticks}, .delays = histogram_make()};
    wait_t wait = {.what = "the first message"};
    while (client_poll(subscription, on_tick, &feed, options->batch) == 0)
    {
        wait_spin(&wait);
    }
    int64_t first = monotonic();
    int64_t last = first;
    for (;;)
    {
        int polled = client_poll(subscription, on_tick, &feed, options->batch);
        int64_t now = monotonic();
        if (polled > 0)
        {
            last = now;
        }
        else if (
            aeron_subscription_image_count(subscription) == 0 ||
            (extent_left(&options->extent, feed.tally.messages, now - first) == 0 && now - last >= SILENCE))
        {
            break;
        }
        else
        {
            cpu_relax();
        }
        if (now - first > options->extent.nanoseconds + WAIT_LIMIT)
        {
            fail("the feed does not end");
        }
    }
    printf("{");
    tally_print(&feed.tally);
    printf(", \"seconds\": %.9f, \"gaps\": %" PRIu64 ", ", to_seconds(last - first), feed.gaps);
    histogram_print(feed.delays);
    printf("}\n");

    free(feed.delays);
    client_close(&client);
}
