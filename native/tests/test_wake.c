#define _GNU_SOURCE
#include "batch.h"
#include "check.h"
#include "counters.h"
#include "driver.h"
#include "fixture.h"
#include "wake.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENT_ID 42
#define HEARTBEAT_COUNTER 0
#define HANG_MS 30000
#define MS 1000000LL
#define HOUR_NS (3600LL * 1000 * MS)

typedef struct
{
    stream_t stream;
    aa_publication_t *publication;
    aa_image_t *image;
    aa_broadcast_t *broadcast;
    aa_watcher_t *watcher;
} watching_t;

typedef struct
{
    int64_t keepalive_interval_ms;
    int64_t stall_limit_ms;
    int64_t liveness_timeout_ms;
    int64_t max_park_ns;
} times_t;

static const times_t usual_times = {500, 10000, 10000, 1 * MS};

static watching_t start_with(const char *directory, const times_t *times)
{
    watching_t watching = {.stream = open_stream(directory, NULL, 0)};
    const stream_t *stream = &watching.stream;
    for (int32_t id = 1; id <= 4; id++)
    {
        allocate_counter(stream->cnc, id, 1, id, 0, "counter");
    }
    allocate_counter(
        stream->cnc, HEARTBEAT_COUNTER, AA_COUNTER_TYPE_CLIENT_HEARTBEAT, 0, CLIENT_ID, "client-heartbeat: 42");
    watching.publication = add_publication(stream, false);
    watching.image = add_image(stream);
    watching.broadcast = aa_broadcast_open(stream->cnc);
    aa_error_t error = {0};
    CHECK_EQUAL(
        aa_watcher_start(
            stream->cnc, watching.broadcast, CLIENT_ID, times->keepalive_interval_ms, times->stall_limit_ms,
            times->liveness_timeout_ms, times->max_park_ns, &watching.watcher, &error),
        AA_OK);
    return watching;
}

static watching_t start_watching(const char *directory)
{
    return start_with(directory, &usual_times);
}

static void stop_watching(watching_t *watching)
{
    aa_watcher_stop(watching->watcher);
    aa_watcher_release(watching->watcher);
    aa_broadcast_release(watching->broadcast);
    aa_image_release(watching->image);
    aa_publication_release(watching->publication);
    close_stream(&watching->stream);
}

static bool is_readable(const watching_t *watching, int timeout_ms)
{
    struct pollfd descriptor = {.fd = aa_watcher_fd(watching->watcher), .events = POLLIN};
    return poll(&descriptor, 1, timeout_ms) == 1;
}

static int take(const watching_t *watching, int32_t *tickets, int capacity)
{
    return aa_watcher_take(watching->watcher, aa_watcher_fd(watching->watcher), tickets, capacity);
}

static aa_watch_t *add_watch(const watching_t *watching, aa_watch_t *watch)
{
    CHECK(aa_watcher_add(watching->watcher, watch) > 0);
    return watch;
}

static aa_watch_t *watch_images(const watching_t *watching, aa_image_t *const *images, size_t count)
{
    return add_watch(watching, aa_watch_images(images, count, NULL));
}

static aa_watch_t *watch_publication(const watching_t *watching, int kind)
{
    return add_watch(watching, aa_watch_publication(watching->publication, kind));
}

static int32_t park(const watching_t *watching, aa_watch_t *watch)
{
    CHECK_EQUAL(aa_watcher_wait(watching->watcher, watch, 0), AA_WAIT_PARKED);
    return watch->id;
}

static bool is_over(int result)
{
    return result == AA_WAIT_READY || result == AA_WAIT_READY_TURN;
}

static void end_watch(const watching_t *watching, aa_watch_t *watch)
{
    aa_watcher_remove(watching->watcher, watch);
    aa_watch_release(watch);
}

/* The next ticket; nothing else may come with it. */
static int32_t next_ticket(const watching_t *watching)
{
    int32_t tickets[4];
    int count = 0;
    while (count == 0)
    {
        CHECK(is_readable(watching, HANG_MS));
        count = take(watching, tickets, 4);
    }
    CHECK_EQUAL(count, 1);
    return tickets[0];
}

static void sleep_ms(int64_t milliseconds)
{
    const struct timespec duration = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * MS};
    nanosleep(&duration, NULL);
}

/* Nothing becomes ready while the thread looks a few times. */
static void check_silent(const watching_t *watching)
{
    CHECK(!is_readable(watching, 20));
    int32_t ticket;
    CHECK_EQUAL(take(watching, &ticket, 1), 0);
}

static void publish(const watching_t *watching)
{
    CHECK(aa_publication_offer(watching->publication, (const uint8_t *)"message", 7, 0) > 0);
}

/* --- readiness ------------------------------------------------------------------------------------------- */

TEST(watcher_reports_images_with_a_frame_once)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    park(&watching, watch);
    check_silent(&watching);
    publish(&watching);
    CHECK_EQUAL(next_ticket(&watching), watch->id);
    check_silent(&watching);
    CHECK(is_over(aa_watcher_wait(watching.watcher, watch, 0)));
    check_silent(&watching);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

TEST(watcher_reports_the_one_of_several_images_that_has_a_frame_or_is_closed)
{
    watching_t watching = start_watching(directory);
    stream_t others[3];
    aa_image_t *images[4];
    for (int i = 0; i < 3; i++)
    {
        others[i] = open_stream(directory, NULL, 0);
        images[i] = add_image(&others[i]);
    }
    images[3] = watching.image;
    aa_watch_t *all = watch_images(&watching, images, 4);
    park(&watching, all);
    check_silent(&watching);
    aa_publication_t *publication = add_publication(&others[1], true);
    CHECK(aa_publication_offer(publication, NULL, 0, 0) > 0);
    CHECK_EQUAL(next_ticket(&watching), all->id);

    aa_watch_t *last_two = watch_images(&watching, &images[2], 2);
    park(&watching, last_two);
    check_silent(&watching);
    aa_image_close(images[2]);
    CHECK_EQUAL(next_ticket(&watching), last_two->id);
    end_watch(&watching, all);
    end_watch(&watching, last_two);
    aa_publication_release(publication);
    for (int i = 0; i < 3; i++)
    {
        aa_image_release(images[i]);
        close_stream(&others[i]);
    }
    stop_watching(&watching);
}

TEST(watcher_reports_a_publication_that_may_be_written_to)
{
    watching_t watching = start_watching(directory);
    *watching.stream.limit = 0;
    aa_watch_t *watch = watch_publication(&watching, AA_WATCH_WRITABLE);
    park(&watching, watch);
    check_silent(&watching);
    watching.stream.log->metadata->is_connected = 0;
    *watching.stream.limit = 64;
    check_silent(&watching);
    watching.stream.log->metadata->is_connected = 1;
    CHECK_EQUAL(next_ticket(&watching), watch->id);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

TEST(watcher_reports_a_publication_that_is_connected)
{
    watching_t watching = start_watching(directory);
    *watching.stream.limit = 0;
    watching.stream.log->metadata->is_connected = 0;
    aa_watch_t *watch = watch_publication(&watching, AA_WATCH_CONNECTED);
    park(&watching, watch);
    check_silent(&watching);
    watching.stream.log->metadata->is_connected = 1;
    CHECK_EQUAL(next_ticket(&watching), watch->id);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

TEST(watcher_reports_a_publication_that_is_closed)
{
    const int kinds[] = {AA_WATCH_WRITABLE, AA_WATCH_CONNECTED};
    for (int i = 0; i < 2; i++)
    {
        watching_t watching = start_watching(directory);
        watching.stream.log->metadata->is_connected = 0;
        aa_watch_t *watch = watch_publication(&watching, kinds[i]);
        park(&watching, watch);
        check_silent(&watching);
        aa_publication_close(watching.publication);
        CHECK_EQUAL(next_ticket(&watching), watch->id);
        end_watch(&watching, watch);
        stop_watching(&watching);
    }
}

TEST(watcher_reports_broadcast_records_until_they_are_received)
{
    watching_t watching = start_watching(directory);
    int32_t type_id;
    uint8_t record[512];
    check_silent(&watching);
    driver_broadcast(watching.stream.cnc, 1, "first", 5);
    CHECK_EQUAL(next_ticket(&watching), AA_TAKEN_BROADCAST);
    CHECK_EQUAL(next_ticket(&watching), AA_TAKEN_BROADCAST);
    CHECK_EQUAL(aa_broadcast_receive(watching.broadcast, &type_id, record, sizeof(record)), 5);
    int32_t ticket;
    take(&watching, &ticket, 1);
    sleep_ms(5);
    take(&watching, &ticket, 1);
    check_silent(&watching);
    driver_broadcast(watching.stream.cnc, 1, "second", 6);
    CHECK_EQUAL(next_ticket(&watching), AA_TAKEN_BROADCAST);
    stop_watching(&watching);
}

TEST(watcher_gives_tickets_that_found_no_room_the_next_time)
{
    watching_t watching = start_watching(directory);
    bool is_given[5] = {false};
    int32_t tickets[5];
    aa_watch_t *watches[4];
    for (int i = 0; i < 4; i++)
    {
        watches[i] = watch_images(&watching, &watching.image, 1);
        tickets[i] = park(&watching, watches[i]);
    }
    tickets[4] = AA_TAKEN_BROADCAST;
    publish(&watching);
    driver_broadcast(watching.stream.cnc, 1, "record", 6);
    for (int given = 0; given < 5;)
    {
        int32_t ticket = -1;
        CHECK(is_readable(&watching, HANG_MS));
        if (take(&watching, &ticket, 1) == 0)
        {
            continue;
        }
        for (int i = 0; i < 5; i++)
        {
            if (tickets[i] == ticket && !is_given[i])
            {
                is_given[i] = true;
                given++;
            }
        }
    }
    for (int i = 0; i < 4; i++)
    {
        end_watch(&watching, watches[i]);
    }
    stop_watching(&watching);
}

TEST(watcher_forgets_what_is_not_waited_for_any_more)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    park(&watching, watch);
    aa_watcher_leave(watching.watcher, watch);
    aa_watcher_leave(watching.watcher, watch);
    publish(&watching);
    check_silent(&watching);
    end_watch(&watching, watch);

    stream_t other = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&other);
    aa_publication_t *publication = add_publication(&other, false);
    aa_watch_t *removed = watch_images(&watching, &image, 1);
    park(&watching, removed);
    CHECK(aa_publication_offer(publication, NULL, 0, 0) > 0);
    CHECK(is_readable(&watching, HANG_MS));
    end_watch(&watching, removed);
    int32_t ticket;
    CHECK_EQUAL(take(&watching, &ticket, 1), 0);
    check_silent(&watching);
    aa_publication_release(publication);
    aa_image_release(image);
    close_stream(&other);
    stop_watching(&watching);
}

TEST(watcher_keeps_what_it_watches_alive)
{
    watching_t watching = start_watching(directory);
    stream_t other = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&other);
    aa_publication_t *publication = add_publication(&other, false);
    *other.limit = 0;
    aa_watch_t *read = watch_images(&watching, &image, 1);
    aa_watch_t *written = add_watch(&watching, aa_watch_publication(publication, AA_WATCH_WRITABLE));
    park(&watching, read);
    park(&watching, written);
    aa_image_release(image);
    aa_publication_release(publication);
    close_stream(&other);
    check_silent(&watching);
    end_watch(&watching, read);
    check_silent(&watching);
    end_watch(&watching, written);
    stop_watching(&watching);
}

/* --- waking ---------------------------------------------------------------------------------------------- */

static bool read_thread_file(const char *thread, const char *name, char *content, size_t capacity)
{
    char path[512];
    snprintf(path, sizeof(path), "/proc/self/task/%s/%s", thread, name);
    int descriptor = open(path, O_RDONLY);
    if (descriptor < 0)
    {
        return false;
    }
    const ssize_t length = read(descriptor, content, capacity - 1);
    content[length > 0 ? length : 0] = '\0';
    close(descriptor);
    return length > 0;
}

/* The status of the watcher's thread, as the kernel has it. */
static void read_status(char status[4096])
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    bool is_found = false;
    while (!is_found && (task = readdir(tasks)) != NULL)
    {
        char name[64];
        is_found = read_thread_file(task->d_name, "comm", name, sizeof(name)) && strcmp(name, "aeron-watch\n") == 0 &&
                   read_thread_file(task->d_name, "status", status, 4096);
    }
    closedir(tasks);
    CHECK(is_found);
}

static uint64_t status_field(const char *name, int base)
{
    char status[4096];
    read_status(status);
    const char *field = strstr(status, name);
    CHECK(field != NULL);
    return strtoull(field + strlen(name), NULL, base);
}

static uint64_t parks_so_far(void)
{
    return status_field("\nvoluntary_ctxt_switches:", 10);
}

/* Waits for so many parks; with the long parks of an idle watcher that would take longer than a hang. */
static void wait_for_parks(uint64_t from, uint64_t count)
{
    for (int waited = 0; parks_so_far() < from + count; waited++)
    {
        CHECK(waited < HANG_MS);
        sleep_ms(1);
    }
}

TEST(watcher_thread_has_a_name_and_takes_no_signals)
{
    watching_t watching = start_watching(directory);
    wait_for_parks(0, 1);
    const uint64_t blocked = status_field("\nSigBlk:", 16);
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGPROF};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
    {
        CHECK((blocked >> (signals[i] - 1) & 1) == 1);
    }
    sigset_t own;
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    CHECK(!sigismember(&own, SIGTERM));
    stop_watching(&watching);
}

TEST(watcher_that_is_nudged_or_alone_can_find_what_is_waited_for_looks_again_often)
{
    const times_t times = {500, 10000, 10000, HOUR_NS};
    watching_t watching = start_with(directory, &times);
    sleep_ms(700);
    uint64_t parks = parks_so_far();
    aa_watcher_nudge(watching.watcher);
    wait_for_parks(parks, 12);

    sleep_ms(700);
    parks = parks_so_far();
    *watching.stream.limit = 0;
    aa_watch_t *watch = watch_publication(&watching, AA_WATCH_WRITABLE);
    park(&watching, watch);
    wait_for_parks(parks, 12);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

static int64_t cpu_time_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000 * MS + used.tv_nsec;
}

TEST(watcher_with_nothing_to_do_uses_little_of_a_core)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    park(&watching, watch);
    sleep_ms(1500);
    const int64_t before_ns = cpu_time_ns();
    sleep_ms(1000);
    const int64_t used_ns = cpu_time_ns() - before_ns;
    printf("       (%.2f %% of a core)\n", (double)used_ns / 1e7);
    CHECK(used_ns < 50 * MS);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

/* A publisher that pauses at random, so that messages meet every moment of the reader's parking. */
#define HAMMERED 4000

static void *publish_at_random(void *argument)
{
    const watching_t *watching = argument;
    uint64_t state = 11;
    for (int32_t i = 0; i < HAMMERED;)
    {
        const int64_t result = aa_publication_offer(watching->publication, (const uint8_t *)&i, sizeof(i), 0);
        if (result > 0)
        {
            i++;
        }
        else
        {
            CHECK(result == AA_ADMIN_ACTION || result == AA_BACK_PRESSURED);
        }
        if (i % 3 == 0)
        {
            driver_broadcast(watching->stream.cnc, 1, &i, sizeof(i));
        }
        const struct timespec pause = {.tv_nsec = (long)(next_random(&state) % (i % 16 == 0 ? 2000000 : 100000))};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

TEST(watcher_loses_no_wake_up)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    aa_batch_t *batch = aa_batch_create();
    pthread_t publisher;
    CHECK_EQUAL(pthread_create(&publisher, NULL, publish_at_random, &watching), 0);
    int32_t received = 0;
    while (received < HAMMERED)
    {
        /* Spins now and then, so that messages meet every moment of that as well. */
        int result = AA_WAIT_AGAIN;
        while (result == AA_WAIT_AGAIN)
        {
            result = aa_watcher_wait(watching.watcher, watch, received % 3 == 0 ? 50000 : 0);
        }
        for (bool is_ready = result != AA_WAIT_PARKED; !is_ready;)
        {
            int32_t tickets[2];
            CHECK(is_readable(&watching, HANG_MS));
            const int count = take(&watching, tickets, 1 + received % 2);
            for (int i = 0; i < count; i++)
            {
                is_ready |= tickets[i] == watch->id;
                int32_t type_id;
                uint8_t record[512];
                while (tickets[i] == AA_TAKEN_BROADCAST &&
                       aa_broadcast_receive(watching.broadcast, &type_id, record, sizeof(record)) > 0)
                {
                }
            }
        }
        CHECK_EQUAL(aa_batch_scan(batch, &watching.image, 1, 0, SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL), AA_OK);
        for (size_t row = 0; row < batch->count; row++)
        {
            int32_t number;
            memcpy(&number, batch->messages->data + batch->messages->offsets[row], sizeof(number));
            CHECK_EQUAL(number, received++);
        }
        const int64_t before = aa_image_position(watching.image);
        aa_batch_commit(batch, batch->count);
        const int64_t position = aa_image_position(watching.image);
        driver_clean(watching.stream.log, before, position);
        atomic_store_explicit(watching.stream.limit, position + FIXTURE_TERM_LENGTH / 2, memory_order_release);
    }
    pthread_join(publisher, NULL);
    aa_batch_release(batch);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

/* --- spinning -------------------------------------------------------------------------------------------- */

#define SECOND_NS (1000 * MS)

TEST(watcher_spins_once_at_a_time_and_parks_whoever_comes_meanwhile)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *first = watch_images(&watching, &watching.image, 1);
    aa_watch_t *second = watch_images(&watching, &watching.image, 1);
    CHECK_EQUAL(aa_watcher_wait(watching.watcher, first, SECOND_NS), AA_WAIT_AGAIN);
    CHECK_EQUAL(aa_watcher_wait(watching.watcher, second, SECOND_NS), AA_WAIT_PARKED);
    CHECK_EQUAL(aa_watcher_wait(watching.watcher, first, SECOND_NS), AA_WAIT_AGAIN);
    aa_watcher_leave(watching.watcher, first);
    aa_watcher_leave(watching.watcher, second);
    CHECK_EQUAL(aa_watcher_wait(watching.watcher, second, SECOND_NS), AA_WAIT_AGAIN);
    end_watch(&watching, first);
    end_watch(&watching, second);
    stop_watching(&watching);
}

TEST(watcher_that_spins_looks_for_those_that_are_parked)
{
    watching_t watching = start_watching(directory);
    stream_t other = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&other);
    aa_publication_t *publication = add_publication(&other, false);
    aa_watch_t *spinning = watch_images(&watching, &watching.image, 1);
    aa_watch_t *parked = watch_images(&watching, &image, 1);
    park(&watching, parked);
    CHECK_EQUAL(aa_watcher_wait(watching.watcher, spinning, SECOND_NS), AA_WAIT_AGAIN);
    CHECK(aa_publication_offer(publication, NULL, 0, 0) > 0);
    CHECK_EQUAL(aa_watcher_wait(watching.watcher, spinning, SECOND_NS), AA_WAIT_OTHERS);
    int32_t ids[2];
    CHECK_EQUAL(aa_watcher_take(watching.watcher, -1, ids, 2), 1);
    CHECK_EQUAL(ids[0], parked->id);
    CHECK_EQUAL(aa_watcher_wait(watching.watcher, spinning, SECOND_NS), AA_WAIT_AGAIN);
    publish(&watching);
    CHECK(is_over(aa_watcher_wait(watching.watcher, spinning, SECOND_NS)));
    end_watch(&watching, spinning);
    end_watch(&watching, parked);
    aa_publication_release(publication);
    aa_image_release(image);
    close_stream(&other);
    stop_watching(&watching);
}

/* How many of so many waits, in all of which nothing comes, begin to spin. */
static int spins_of(const watching_t *watching, aa_watch_t *watch, int waits)
{
    int spins = 0;
    for (int i = 0; i < waits; i++)
    {
        int result = aa_watcher_wait(watching->watcher, watch, 30000);
        spins += result == AA_WAIT_AGAIN;
        while (result == AA_WAIT_AGAIN)
        {
            result = aa_watcher_wait(watching->watcher, watch, 30000);
        }
        CHECK_EQUAL(result, AA_WAIT_PARKED);
        aa_watcher_leave(watching->watcher, watch);
    }
    return spins;
}

TEST(watcher_spins_ever_more_rarely_where_it_does_not_pay_and_always_where_it_does)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    const int spins = spins_of(&watching, watch, 1000);
    CHECK(spins >= 1000 / 65 && spins <= 40);

    aa_batch_t *batch = aa_batch_create();
    for (int waits = 0; waits < 100; waits++)
    {
        int result = aa_watcher_wait(watching.watcher, watch, SECOND_NS);
        if (result == AA_WAIT_PARKED)
        {
            aa_watcher_leave(watching.watcher, watch);
            continue;
        }
        CHECK_EQUAL(result, AA_WAIT_AGAIN);
        publish(&watching);
        CHECK(is_over(aa_watcher_wait(watching.watcher, watch, SECOND_NS)));
        CHECK_EQUAL(aa_batch_scan(batch, &watching.image, 1, 0, SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL), AA_OK);
        aa_batch_commit(batch, batch->count);
        break;
    }
    for (int waits = 0; waits < 10; waits++)
    {
        CHECK_EQUAL(aa_watcher_wait(watching.watcher, watch, SECOND_NS), AA_WAIT_AGAIN);
        aa_watcher_leave(watching.watcher, watch);
    }
    aa_batch_release(batch);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

TEST(watcher_that_always_finds_something_asks_for_a_turn_of_the_others)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    publish(&watching);
    int ready = 0, turns = 0;
    for (int waited = 0; turns < 3 || ready == 0; waited++)
    {
        const int result = aa_watcher_wait(watching.watcher, watch, 50000);
        CHECK(is_over(result));
        ready += result == AA_WAIT_READY;
        turns += result == AA_WAIT_READY_TURN;
        CHECK(waited < 1 << 28);
    }
    end_watch(&watching, watch);
    stop_watching(&watching);
}

TEST(watcher_that_only_looks_arms_nothing)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    CHECK_EQUAL(aa_watcher_look(watching.watcher, watch, 0), AA_WAIT_AGAIN);
    CHECK_EQUAL(aa_watcher_look(watching.watcher, watch, 10000), AA_WAIT_AGAIN);
    publish(&watching);
    CHECK(is_over(aa_watcher_look(watching.watcher, watch, 0)));
    check_silent(&watching);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

/* --- keeping the client alive ---------------------------------------------------------------------------- */

static int64_t heartbeat_of(const watching_t *watching)
{
    return atomic_load(aa_counters_value(watching->stream.cnc, HEARTBEAT_COUNTER));
}

static void forget_heartbeat(const watching_t *watching)
{
    atomic_store(aa_counters_value(watching->stream.cnc, HEARTBEAT_COUNTER), 0);
}

static void wait_for_heartbeat(const watching_t *watching)
{
    for (int waited = 0; heartbeat_of(watching) == 0; waited++)
    {
        CHECK(waited < HANG_MS);
        sleep_ms(1);
    }
}

TEST(watcher_keeps_a_client_alive_whose_loop_is_blocked_but_not_for_ever)
{
    const times_t times = {10, 400, 10000, 1 * MS};
    watching_t watching = start_with(directory, &times);
    for (int i = 0; i < 3; i++)
    {
        forget_heartbeat(&watching);
        wait_for_heartbeat(&watching);
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t age_ms = now.tv_sec * 1000 + now.tv_nsec / MS - heartbeat_of(&watching);
    CHECK(age_ms >= 0 && age_ms < HANG_MS);

    sleep_ms(700);
    forget_heartbeat(&watching);
    sleep_ms(100);
    CHECK_EQUAL(heartbeat_of(&watching), 0);
    aa_watcher_beat(watching.watcher);
    wait_for_heartbeat(&watching);
    stop_watching(&watching);
}

TEST(watcher_after_a_gap_longer_than_the_liveness_timeout_is_silent_until_the_loop_beats)
{
    const times_t times = {10, 60000, 1000, 1 * MS};
    int commands[2];
    CHECK_EQUAL(pipe(commands), 0);
    watching_t parents = {.stream = open_stream(directory, NULL, 0)};
    pid_t child = fork();
    if (child == 0)
    {
        watching_t watching = {.stream = parents.stream};
        allocate_counter(
            parents.stream.cnc, HEARTBEAT_COUNTER, AA_COUNTER_TYPE_CLIENT_HEARTBEAT, 0, CLIENT_ID, "heartbeat");
        watching.broadcast = aa_broadcast_open(parents.stream.cnc);
        CHECK_EQUAL(
            aa_watcher_start(
                parents.stream.cnc, watching.broadcast, CLIENT_ID, times.keepalive_interval_ms, times.stall_limit_ms,
                times.liveness_timeout_ms, times.max_park_ns, &watching.watcher, NULL),
            AA_OK);
        char command;
        while (read(commands[0], &command, 1) == 1 && command == 'b')
        {
            aa_watcher_beat(watching.watcher);
        }
        _exit(0);
    }
    wait_for_heartbeat(&parents);
    kill(child, SIGSTOP);
    int status;
    CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
    forget_heartbeat(&parents);
    sleep_ms(1500);
    kill(child, SIGCONT);
    sleep_ms(200);
    CHECK_EQUAL(heartbeat_of(&parents), 0);

    CHECK_EQUAL(write(commands[1], "b", 1), 1);
    wait_for_heartbeat(&parents);
    CHECK_EQUAL(write(commands[1], "q", 1), 1);
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    close_stream(&parents.stream);
}

/* --- the end --------------------------------------------------------------------------------------------- */

TEST(watcher_released_in_a_forked_child_leaves_the_parents_alone)
{
    watching_t watching = start_watching(directory);
    aa_watch_t *watch = watch_images(&watching, &watching.image, 1);
    park(&watching, watch);
    pid_t child = fork();
    if (child == 0)
    {
        aa_watcher_stop(watching.watcher);
        aa_watcher_release(watching.watcher);
        _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    publish(&watching);
    CHECK_EQUAL(next_ticket(&watching), watch->id);
    end_watch(&watching, watch);
    stop_watching(&watching);
}

TEST(watcher_may_be_stopped_with_watches_of_every_state)
{
    for (int i = 0; i < 50; i++)
    {
        watching_t watching = start_watching(directory);
        *watching.stream.limit = 0;
        aa_watch_t *watches[] = {
            watch_publication(&watching, AA_WATCH_WRITABLE),
            watch_images(&watching, &watching.image, 1),
            watch_images(&watching, &watching.image, 1),
            watch_images(&watching, &watching.image, 1),
        };
        for (int each = 0; each < 3; each++)
        {
            park(&watching, watches[each]);
        }
        aa_watcher_leave(watching.watcher, watches[1]);
        aa_watcher_remove(watching.watcher, watches[2]);
        stop_watching(&watching);
        for (int each = 0; each < 4; each++)
        {
            aa_watch_release(watches[each]);
        }
    }
    aa_watcher_release(NULL);
}
