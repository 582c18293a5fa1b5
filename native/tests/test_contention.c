#define _GNU_SOURCE
/* Publishers that nothing holds up: no consumer, no limit, one large term. */
#include "batch.h"
#include "check.h"
#include "fixture.h"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define MESSAGES_EACH 50000

typedef struct
{
    int32_t publisher;
    int32_t sequence;
} message_t;

typedef struct
{
    aa_publication_t *publication;
    int32_t number;
    pthread_barrier_t *start;
} publisher_t;

static void *publish_all(void *argument)
{
    const publisher_t *publisher = argument;
    pthread_barrier_wait(publisher->start);
    for (int32_t sequence = 0; sequence < MESSAGES_EACH; sequence++)
    {
        const message_t message = {publisher->number, sequence};
        CHECK(aa_publication_offer(publisher->publication, (const uint8_t *)&message, sizeof(message), 0) > 0);
    }
    return NULL;
}

TEST(shared_publication_gives_every_message_room_of_its_own)
{
    log_shape_t shape = default_log_shape();
    shape.term_length = 16 * 1024 * 1024;
    stream_t stream = open_stream(directory, &shape, 0);
    *stream.limit = INT64_MAX;
    publisher_t publishers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int32_t i = 0; i < THREADS; i++)
    {
        publishers[i] = (publisher_t){add_publication(&stream, false), i, &start};
        CHECK_EQUAL(pthread_create(&threads[i], NULL, publish_all, &publishers[i]), 0);
    }
    for (int32_t i = 0; i < THREADS; i++)
    {
        pthread_join(threads[i], NULL);
        aa_publication_release(publishers[i].publication);
    }

    aa_image_t *image = add_image(&stream);
    aa_batch_t *batch = aa_batch_create();
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL), AA_OK);
    CHECK_EQUAL(batch->count, THREADS * MESSAGES_EACH);
    int32_t next[THREADS] = {0};
    for (size_t row = 0; row < batch->count; row++)
    {
        message_t message;
        memcpy(&message, batch->messages->data + batch->messages->offsets[row], sizeof(message));
        CHECK(message.publisher >= 0 && message.publisher < THREADS);
        CHECK_EQUAL(message.sequence, next[message.publisher]++);
    }
    pthread_barrier_destroy(&start);
    aa_batch_release(batch);
    aa_image_release(image);
    close_stream(&stream);
}
