#define _GNU_SOURCE
/* Whole streams: publishers in threads and processes on one log of small terms, and a consumer that is the driver too.
 */
#include "batch.h"
#include "check.h"
#include "claim.h"
#include "driver.h"
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUBLISHERS_MAX 8
#define RUN_LENGTH 32 /* messages that one call takes */

/* ThreadSanitizer cannot see what threads of one process learn from each other through the consumer in another. */
#if defined(__SANITIZE_THREAD__)
#define THREADS_IN_A_PROCESS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS_IN_A_PROCESS 1
#endif
#endif
#ifndef THREADS_IN_A_PROCESS
#define THREADS_IN_A_PROCESS 2
#endif

typedef struct
{
    uint32_t publisher;
    uint32_t sequence;
    uint64_t checksum;
} head_t;

/* What all publishers of a test do. */
typedef struct
{
    bool exclusive;
    int processes;
    int threads;       /* in each process, on one handle */
    uint32_t messages; /* of each thread */
    size_t max_body;
} plan_t;

static uint64_t checksum_of(const uint8_t *body, size_t length, const head_t *head)
{
    uint64_t sum = ((uint64_t)head->publisher << 32 | head->sequence) * 0x9E3779B97F4A7C15 + length;
    for (size_t i = 0; i < length; i++)
    {
        sum = (sum ^ body[i]) * 0x100000001B3;
    }
    return sum;
}

static size_t make_message(uint8_t *to, const plan_t *plan, uint32_t publisher, uint32_t sequence)
{
    uint64_t state = (uint64_t)publisher << 32 | sequence;
    const size_t length = next_random(&state) % (plan->max_body + 1);
    uint8_t *body = to + sizeof(head_t);
    for (size_t i = 0; i < length; i++)
    {
        body[i] = (uint8_t)(i % 8 == 0 ? next_random(&state) : state >> (i % 8 * 8));
    }
    head_t head = {.publisher = publisher, .sequence = sequence};
    head.checksum = checksum_of(body, length, &head);
    memcpy(to, &head, sizeof(head));
    return sizeof(head) + length;
}

/* --- publishing ------------------------------------------------------------------------------------------ */

typedef struct
{
    const plan_t *plan;
    aa_publication_t *publication;
    uint32_t number;
} publisher_t;

static bool is_worth_another_try(int64_t result)
{
    if (result == AA_BACK_PRESSURED || result == AA_ADMIN_ACTION)
    {
        sched_yield();
        return true;
    }
    CHECK(result > 0);
    return false;
}

/* A run of messages, joined or apart; how many were appended. */
static uint32_t publish_run(const publisher_t *publisher, uint32_t sequence, uint8_t *scratch)
{
    int32_t lengths[RUN_LENGTH];
    aa_slice_t slices[RUN_LENGTH];
    size_t total = 0, count = 0;
    for (; count < RUN_LENGTH && sequence + count < publisher->plan->messages; count++)
    {
        lengths[count] =
            (int32_t)make_message(scratch + total, publisher->plan, publisher->number, sequence + (uint32_t)count);
        slices[count] = (aa_slice_t){scratch + total, (size_t)lengths[count]};
        total += (size_t)lengths[count];
    }
    int64_t appended;
    do
    {
        appended = sequence % 2 == 0
                       ? aa_publication_offer_many(publisher->publication, scratch, total, lengths, count, NULL)
                       : aa_publication_offer_slices(publisher->publication, slices, count, NULL);
    } while (is_worth_another_try(appended));
    return (uint32_t)appended;
}

static int64_t publish_claimed(const publisher_t *publisher, const uint8_t *message, size_t length)
{
    aa_claim_t *claim = NULL;
    int64_t result = aa_publication_try_claim(publisher->publication, length, &claim);
    if (result > 0)
    {
        memcpy(aa_claim_data(claim), message, length);
        CHECK_EQUAL(aa_claim_commit(claim, AA_FRAME_BEGIN | AA_FRAME_END, 0), AA_OK);
        aa_claim_release(claim);
    }
    return result;
}

/* What is aborted must not be seen, whatever was written into it. */
static int64_t claim_in_vain(const publisher_t *publisher, size_t length)
{
    aa_claim_t *claim = NULL;
    int64_t result = aa_publication_try_claim(publisher->publication, length, &claim);
    if (result > 0)
    {
        memset(aa_claim_data(claim), 0x55, length);
        CHECK_EQUAL(aa_claim_abort(claim), AA_OK);
        aa_claim_release(claim);
    }
    return result;
}

static void publish_one(const publisher_t *publisher, uint32_t sequence, uint8_t *scratch)
{
    const size_t length = make_message(scratch, publisher->plan, publisher->number, sequence);
    const bool is_claimable = length <= (size_t)aa_publication_max_payload_length(publisher->publication);
    const aa_slice_t parts[] = {{scratch, length / 3}, {NULL, 0}, {scratch + length / 3, length - length / 3}};
    if (is_claimable && sequence % 7 == 0)
    {
        while (is_worth_another_try(claim_in_vain(publisher, length)))
        {
        }
    }
    int64_t result;
    do
    {
        switch (sequence % 3)
        {
        case 0:
            result = aa_publication_offer(publisher->publication, scratch, length, sequence);
            break;
        case 1:
            result = aa_publication_offer_vectored(publisher->publication, parts, 3, sequence);
            break;
        default:
            result = is_claimable
                         ? publish_claimed(publisher, scratch, length)
                         : aa_publication_offer_equal(publisher->publication, scratch, length, length, 0, 1, NULL);
        }
    } while (is_worth_another_try(result));
}

static void *publish_all(void *argument)
{
    const publisher_t *publisher = argument;
    uint8_t *scratch = malloc(RUN_LENGTH * (sizeof(head_t) + publisher->plan->max_body));
    CHECK(scratch != NULL);
    for (uint32_t sequence = 0; sequence < publisher->plan->messages;)
    {
        if (sequence % 5 == 0)
        {
            sequence += publish_run(publisher, sequence, scratch);
        }
        else
        {
            publish_one(publisher, sequence++, scratch);
        }
    }
    free(scratch);
    return NULL;
}

static void start_publishers(
    const plan_t *plan, aa_publication_t *publication, uint32_t first, publisher_t *publishers, pthread_t *threads)
{
    for (int i = 0; i < plan->threads; i++)
    {
        publishers[i] = (publisher_t){.plan = plan, .publication = publication, .number = first + (uint32_t)i};
        CHECK_EQUAL(pthread_create(&threads[i], NULL, publish_all, &publishers[i]), 0);
    }
}

static void join_all(const plan_t *plan, const pthread_t *threads)
{
    for (int i = 0; i < plan->threads; i++)
    {
        pthread_join(threads[i], NULL);
    }
}

/* In a process of its own, with mappings of its own. */
_Noreturn static void publish_in_child(const plan_t *plan, const char *directory, uint32_t first)
{
    char path[FIXTURE_PATH_LENGTH];
    stream_t own = {.limit_counter_id = 3};
    CHECK_EQUAL(aa_cnc_open(in_directory(path, directory, "cnc.dat"), &own.cnc, NULL), AA_OK);
    CHECK_EQUAL(aa_log_open(in_directory(path, directory, FIXTURE_LOG_NAME), &own.log, NULL), AA_OK);
    aa_publication_t *publication = add_publication(&own, plan->exclusive);
    publisher_t publishers[PUBLISHERS_MAX];
    pthread_t threads[PUBLISHERS_MAX];
    start_publishers(plan, publication, first, publishers, threads);
    join_all(plan, threads);
    _exit(0);
}

/* --- consuming ------------------------------------------------------------------------------------------- */

typedef struct
{
    const plan_t *plan;
    stream_t *stream;
    aa_image_t *image;
    aa_batch_t *batch;
    int64_t cleaned;
    uint32_t next[PUBLISHERS_MAX];
    uint64_t total;
} consumer_t;

static void check_row(consumer_t *consumer, size_t row)
{
    const aa_batch_t *batch = consumer->batch;
    const uint8_t *message = batch->messages->data + batch->messages->offsets[row];
    const size_t length = (size_t)(batch->messages->offsets[row + 1] - batch->messages->offsets[row]);
    head_t head;
    CHECK(length >= sizeof(head));
    memcpy(&head, message, sizeof(head));
    CHECK(head.publisher < PUBLISHERS_MAX);
    CHECK_EQUAL(head.sequence, consumer->next[head.publisher]);
    CHECK_EQUAL(head.checksum, checksum_of(message + sizeof(head), length - sizeof(head), &head));
    consumer->next[head.publisher]++;
    consumer->total++;
}

/* Cleans behind the subscriber and lets the publishers go on. */
static void move_limit(consumer_t *consumer)
{
    const int64_t position = atomic_load_explicit(consumer->stream->subscriber_position, memory_order_acquire);
    driver_clean(consumer->stream->log, consumer->cleaned, position);
    consumer->cleaned = position;
    atomic_store_explicit(consumer->stream->limit, position + FIXTURE_TERM_LENGTH / 2, memory_order_release);
}

static void consume_all(consumer_t *consumer, uint64_t expected)
{
    uint64_t state = 3;
    while (consumer->total < expected)
    {
        aa_error_t error = {0};
        const size_t fragment_limit = 1 + next_random(&state) % 100;
        const size_t max_bytes = next_random(&state) % 20000;
        const int result =
            aa_batch_scan(consumer->batch, &consumer->image, 1, 0, fragment_limit, SIZE_MAX, max_bytes, &error);
        if (result != AA_OK)
        {
            check_failed(__FILE__, __LINE__, "%s", error.text);
        }
        /* Now and then part of a batch is left for the next scan. */
        const size_t count = next_random(&state) % 4 == 0 ? consumer->batch->count / 2 : consumer->batch->count;
        for (size_t row = 0; row < count; row++)
        {
            check_row(consumer, row);
        }
        aa_batch_commit(consumer->batch, count);
        move_limit(consumer);
        if (consumer->batch->fragments == 0)
        {
            sched_yield();
        }
    }
}

/* --- plans ----------------------------------------------------------------------------------------------- */

static void carry_out(const char *directory, const plan_t *plan)
{
    stream_t stream = open_stream(directory, NULL, 0);
    consumer_t consumer = {
        .plan = plan,
        .stream = &stream,
        .image = add_image(&stream),
        .batch = aa_batch_create(),
    };
    const uint32_t publishers_of_all = (uint32_t)(plan->processes > 0 ? plan->processes : 1) * (uint32_t)plan->threads;
    pid_t children[PUBLISHERS_MAX];
    publisher_t publishers[PUBLISHERS_MAX];
    pthread_t threads[PUBLISHERS_MAX];
    aa_publication_t *publication = add_publication(&stream, plan->exclusive);

    for (int i = 0; i < plan->processes; i++)
    {
        children[i] = fork();
        if (children[i] == 0)
        {
            publish_in_child(plan, stream.directory, (uint32_t)(i * plan->threads));
        }
    }
    if (plan->processes == 0)
    {
        start_publishers(plan, publication, 0, publishers, threads);
    }
    consume_all(&consumer, (uint64_t)publishers_of_all * plan->messages);
    if (plan->processes == 0)
    {
        join_all(plan, threads);
    }
    for (int i = 0; i < plan->processes; i++)
    {
        int status;
        CHECK_EQUAL(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQUAL(status, 0);
    }

    CHECK_EQUAL(aa_batch_scan(consumer.batch, &consumer.image, 1, 0, SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL), AA_OK);
    CHECK_EQUAL(consumer.batch->count, 0);
    for (uint32_t i = 0; i < publishers_of_all; i++)
    {
        CHECK_EQUAL(consumer.next[i], plan->messages);
    }
    CHECK(stream.log->metadata->active_term_count > 20);
    aa_publication_release(publication);
    aa_batch_release(consumer.batch);
    aa_image_release(consumer.image);
    close_stream(&stream);
}

TEST(shared_publication_of_several_threads_loses_nothing)
{
    carry_out(directory, &(plan_t){.threads = 4, .messages = 20000, .max_body = 200});
}

TEST(shared_publication_of_several_threads_with_fragments_loses_nothing)
{
    carry_out(directory, &(plan_t){.threads = 4, .messages = 3000, .max_body = 8000});
}

TEST(shared_publication_of_several_processes_loses_nothing)
{
    carry_out(
        directory, &(plan_t){.processes = 3, .threads = THREADS_IN_A_PROCESS, .messages = 15000, .max_body = 200});
}

TEST(shared_publication_of_several_processes_with_fragments_loses_nothing)
{
    carry_out(
        directory, &(plan_t){.processes = 3, .threads = THREADS_IN_A_PROCESS, .messages = 2500, .max_body = 8000});
}

TEST(exclusive_publication_loses_nothing)
{
    carry_out(directory, &(plan_t){.exclusive = true, .threads = 1, .messages = 50000, .max_body = 200});
}

TEST(exclusive_publication_with_fragments_loses_nothing)
{
    carry_out(directory, &(plan_t){.exclusive = true, .threads = 1, .messages = 8000, .max_body = 8000});
}

TEST(exclusive_publication_of_another_process_loses_nothing)
{
    carry_out(
        directory, &(plan_t){.exclusive = true, .processes = 1, .threads = 1, .messages = 20000, .max_body = 2000});
}

TEST(exclusive_publication_that_several_threads_use_loses_nothing)
{
    carry_out(directory, &(plan_t){.exclusive = true, .threads = 3, .messages = 8000, .max_body = 2000});
}
