#define _GNU_SOURCE
#include "batch.h"
#include "check.h"
#include "claim.h"
#include "counters.h"
#include "driver.h"
#include "exclusive.h"
#include "fixture.h"
#include "watch.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNTER 1
#define OTHER_COUNTER 2
#define REGISTRATION_ID 4711
#define OWNER_ID 42
#define WAKE_TYPE_ID 20861
#define HANG_MS 30000

/* A publication, and a reader of it that can be signalled through a pipe. */
typedef struct
{
    stream_t stream;
    aa_publication_t *publication;
    aa_image_t *image;
    aa_wake_counter_t *counter;
    aa_watch_t *watch;
    int readable;
    int writable;
} waking_t;

static waking_t start_waking(const char *directory, bool exclusive)
{
    waking_t waking = {.stream = open_stream(directory, NULL, 0)};
    aa_cnc_t *cnc = waking.stream.cnc;
    for (int32_t id = 0; id < 4; id++)
    {
        allocate_counter(cnc, id, WAKE_TYPE_ID, id == COUNTER ? REGISTRATION_ID : 5000 + id, OWNER_ID, "wake");
    }
    waking.publication = add_publication(&waking.stream, exclusive);
    waking.image = add_image(&waking.stream);
    waking.counter = aa_wake_counter_create(cnc, COUNTER, REGISTRATION_ID);
    waking.watch = aa_watch_images(&waking.image, 1, waking.counter);
    int ends[2];
    CHECK_EQUAL(pipe2(ends, O_NONBLOCK), 0);
    waking.readable = ends[0];
    waking.writable = ends[1];
    CHECK_EQUAL(aa_publication_add_waiter(waking.publication, COUNTER, REGISTRATION_ID, waking.writable), AA_OK);
    return waking;
}

static void stop_waking(waking_t *waking)
{
    close(waking->readable);
    close(waking->writable);
    aa_watch_release(waking->watch);
    aa_wake_counter_release(waking->counter);
    aa_image_release(waking->image);
    aa_publication_release(waking->publication);
    close_stream(&waking->stream);
}

static int64_t value_of(const waking_t *waking, int32_t id)
{
    return atomic_load(aa_counters_value(waking->stream.cnc, id));
}

static int signals_so_far(const waking_t *waking)
{
    uint8_t signals[64];
    const ssize_t count = read(waking->readable, signals, sizeof(signals));
    return count < 0 ? 0 : (int)count;
}

static void publish(const waking_t *waking)
{
    int64_t result;
    do
    {
        result = aa_publication_offer(waking->publication, (const uint8_t *)"message", 7, 0);
        CHECK(result > 0 || result == AA_ADMIN_ACTION);
    } while (result < 0);
}

static void read_all(const waking_t *waking)
{
    aa_batch_t *batch = aa_batch_create();
    CHECK_EQUAL(aa_batch_scan(batch, &waking->image, 1, 0, SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL), AA_OK);
    aa_batch_commit(batch, batch->count);
    aa_batch_release(batch);
}

TEST(waiter_that_does_not_wait_is_not_signalled)
{
    waking_t waking = start_waking(directory, false);
    publish(&waking);
    CHECK_EQUAL(signals_so_far(&waking), 0);
    stop_waking(&waking);
}

TEST(waiter_that_waits_is_signalled_once_a_wait)
{
    waking_t waking = start_waking(directory, false);
    for (int i = 0; i < 3; i++)
    {
        CHECK(!aa_watch_raise(waking.watch));
        CHECK_EQUAL(value_of(&waking, COUNTER), REGISTRATION_ID);
        CHECK(!aa_watch_was_signalled(waking.watch));
        publish(&waking);
        publish(&waking);
        CHECK_EQUAL(value_of(&waking, COUNTER), 0);
        CHECK(aa_watch_was_signalled(waking.watch));
        CHECK_EQUAL(signals_so_far(&waking), 1);
        aa_watch_lower(waking.watch);
        read_all(&waking);
    }
    stop_waking(&waking);
}

TEST(waiter_that_waits_no_more_is_not_signalled)
{
    waking_t waking = start_waking(directory, false);
    CHECK(!aa_watch_raise(waking.watch));
    aa_watch_lower(waking.watch);
    aa_watch_lower(waking.watch);
    publish(&waking);
    CHECK_EQUAL(signals_so_far(&waking), 0);
    CHECK(aa_watch_raise(waking.watch));
    stop_waking(&waking);
}

TEST(waiters_of_one_stream_are_signalled_until_the_last_waits_no_more)
{
    waking_t waking = start_waking(directory, false);
    aa_watch_t *other = aa_watch_images(&waking.image, 1, waking.counter);
    CHECK(!aa_watch_raise(waking.watch));
    CHECK(!aa_watch_raise(other));
    CHECK(!aa_watch_raise(other));
    aa_watch_lower(waking.watch);
    publish(&waking);
    CHECK_EQUAL(signals_so_far(&waking), 1);
    aa_watch_lower(other);
    aa_watch_release(other);
    stop_waking(&waking);
}

TEST(waiter_is_signalled_by_every_way_to_publish)
{
    waking_t waking = start_waking(directory, true);
    const int32_t lengths[] = {3, 4};
    const aa_slice_t parts[] = {{(const uint8_t *)"mess", 4}, {(const uint8_t *)"age", 3}};
    uint8_t block[64] = {0};
    aa_claim_t *claim;
    for (int way = 0; way < 6; way++)
    {
        CHECK(!aa_watch_raise(waking.watch));
        switch (way)
        {
        case 0:
            CHECK(aa_publication_offer_vectored(waking.publication, parts, 2, 0) > 0);
            break;
        case 1:
            CHECK_EQUAL(
                aa_publication_offer_many(waking.publication, (const uint8_t *)"message", 7, lengths, 2, NULL), 2);
            break;
        case 2:
            CHECK_EQUAL(
                aa_publication_offer_equal(waking.publication, (const uint8_t *)"message", 7, 7, 0, 3, NULL), 3);
            break;
        case 3:
            CHECK(aa_publication_try_claim(waking.publication, 8, &claim) > 0);
            CHECK_EQUAL(signals_so_far(&waking), 0);
            CHECK_EQUAL(aa_claim_commit(claim, AA_FRAME_BEGIN | AA_FRAME_END, 0), AA_OK);
            aa_claim_release(claim);
            break;
        case 4:
        {
            const aa_frame_t *last =
                aa_log_frame_at(waking.stream.log, aa_publication_position(waking.publication) - sizeof(block));
            memcpy(block, last, sizeof(block));
            aa_frame_t *frame = (aa_frame_t *)block;
            frame->term_offset += (int32_t)sizeof(block);
            CHECK(aa_publication_offer_block(waking.publication, block, sizeof(block), NULL) > 0);
            break;
        }
        default:
            /* What it leaves is passed over; there may be messages behind it. */
            CHECK(aa_publication_try_claim(waking.publication, 8, &claim) > 0);
            CHECK_EQUAL(aa_claim_abort(claim), AA_OK);
            aa_claim_release(claim);
        }
        CHECK_EQUAL(signals_so_far(&waking), 1);
        aa_watch_lower(waking.watch);
        read_all(&waking);
    }
    stop_waking(&waking);
}

TEST(waiter_whose_counter_is_another_ones_by_now_is_neither_signalled_nor_touched)
{
    waking_t waking = start_waking(directory, false);
    CHECK(!aa_watch_raise(waking.watch));
    allocate_counter(waking.stream.cnc, COUNTER, WAKE_TYPE_ID, 9999, OWNER_ID, "another's");
    atomic_store(aa_counters_value(waking.stream.cnc, COUNTER), REGISTRATION_ID);
    publish(&waking);
    CHECK_EQUAL(signals_so_far(&waking), 0);
    CHECK_EQUAL(value_of(&waking, COUNTER), REGISTRATION_ID);
    aa_watch_lower(waking.watch);
    CHECK_EQUAL(value_of(&waking, COUNTER), REGISTRATION_ID);
    atomic_store(aa_counters_value(waking.stream.cnc, COUNTER), 1);
    read_all(&waking);
    CHECK(!aa_watch_raise(waking.watch));
    CHECK_EQUAL(value_of(&waking, COUNTER), 1);
    stop_waking(&waking);
}

TEST(waiter_that_was_taken_out_leaves_its_place_to_the_next)
{
    waking_t waking = start_waking(directory, false);
    aa_publication_remove_waiter(waking.publication, REGISTRATION_ID);
    CHECK(!aa_watch_raise(waking.watch));
    publish(&waking);
    CHECK_EQUAL(signals_so_far(&waking), 0);
    CHECK_EQUAL(value_of(&waking, COUNTER), REGISTRATION_ID);

    CHECK_EQUAL(aa_publication_add_waiter(waking.publication, 5000, 1, waking.writable), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_add_waiter(waking.publication, -1, 1, waking.writable), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_add_waiter(waking.publication, OTHER_COUNTER, 5002, waking.writable), AA_OK);
    CHECK_EQUAL(aa_publication_add_waiter(waking.publication, COUNTER, REGISTRATION_ID, waking.writable), AA_OK);
    atomic_store(aa_counters_value(waking.stream.cnc, OTHER_COUNTER), 5002);
    publish(&waking);
    CHECK_EQUAL(signals_so_far(&waking), 2);

    atomic_store(aa_counters_value(waking.stream.cnc, OTHER_COUNTER), 5002);
    aa_publication_remove_waiter(waking.publication, 0);
    publish(&waking);
    CHECK_EQUAL(signals_so_far(&waking), 0);
    stop_waking(&waking);
}

TEST(waiter_whose_signals_nobody_reads_does_not_hold_up_the_publisher)
{
    waking_t waking = start_waking(directory, false);
    const uint8_t filler[4096] = {0};
    while (write(waking.writable, filler, sizeof(filler)) > 0)
    {
    }
    CHECK(!aa_watch_raise(waking.watch));
    publish(&waking);
    CHECK_EQUAL(value_of(&waking, COUNTER), 0);
    stop_waking(&waking);
}

/* --- the race between parking and publishing -------------------------------------------------------------- */

#define HAMMERED 20000

typedef struct
{
    const waking_t *waking;
    uint64_t seed;
    _Atomic int64_t *acknowledged;
} publisher_t;

static void pause_at_random(uint64_t *state)
{
    for (uint64_t spins = next_random(state) % 200; spins > 0; spins--)
    {
        __asm__ volatile("" ::: "memory");
    }
}

/* One message after the other, each as soon as the one before was read. */
static void *publish_after_each_read(void *argument)
{
    const publisher_t *publisher = argument;
    uint64_t state = publisher->seed;
    for (int64_t i = 0; i < HAMMERED; i++)
    {
        while (atomic_load_explicit(publisher->acknowledged, memory_order_acquire) < i)
        {
            sched_yield();
        }
        pause_at_random(&state);
        publish(publisher->waking);
    }
    return NULL;
}

/* There is no watcher here: a signal that was lost would never come. */
TEST(waiter_misses_no_signal_however_parking_meets_publishing)
{
    waking_t waking = start_waking(directory, true);
    _Atomic int64_t acknowledged = 0;
    const publisher_t publisher = {&waking, 5, &acknowledged};
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, publish_after_each_read, (void *)&publisher), 0);
    uint64_t state = 7;
    for (int64_t received = 0; received < HAMMERED; received++)
    {
        pause_at_random(&state);
        while (!aa_watch_raise(waking.watch))
        {
            struct pollfd descriptor = {.fd = waking.readable, .events = POLLIN};
            CHECK_EQUAL(poll(&descriptor, 1, HANG_MS), 1);
            signals_so_far(&waking);
        }
        aa_watch_lower(waking.watch);
        const int64_t before = aa_image_position(waking.image);
        read_all(&waking);
        const int64_t position = aa_image_position(waking.image);
        driver_clean(waking.stream.log, before, position);
        atomic_store_explicit(waking.stream.limit, position + FIXTURE_TERM_LENGTH / 2, memory_order_release);
        atomic_store_explicit(&acknowledged, received + 1, memory_order_release);
    }
    pthread_join(thread, NULL);
    stop_waking(&waking);
}

static void *publish_many(void *argument)
{
    const waking_t *waking = argument;
    for (int i = 0; i < 5000; i++)
    {
        const int64_t result = aa_publication_offer(waking->publication, (const uint8_t *)"message", 7, 0);
        CHECK(result > 0 || result == AA_BACK_PRESSURED || result == AA_ADMIN_ACTION);
    }
    return NULL;
}

TEST(waiters_may_come_and_go_while_others_publish)
{
    waking_t waking = start_waking(directory, false);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
    {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, publish_many, &waking), 0);
    }
    for (int i = 0; i < 2000; i++)
    {
        atomic_store(aa_counters_value(waking.stream.cnc, OTHER_COUNTER), 5002);
        CHECK_EQUAL(aa_publication_add_waiter(waking.publication, OTHER_COUNTER, 5002, waking.writable), AA_OK);
        aa_publication_remove_waiter(waking.publication, i % 3 == 0 ? 0 : 5002);
        signals_so_far(&waking);
    }
    for (int i = 0; i < 2; i++)
    {
        pthread_join(threads[i], NULL);
    }
    stop_waking(&waking);
}
