#define _GNU_SOURCE
#include "broadcast.h"
#include "check.h"
#include "driver.h"
#include "fixture.h"

#include <pthread.h>
#include <string.h>

#define CAPACITY 4096

static aa_broadcast_trailer_t *trailer_of(aa_cnc_t *cnc)
{
    return (aa_broadcast_trailer_t *)(cnc->to_clients + CAPACITY);
}

static aa_broadcast_record_t *record_at(aa_cnc_t *cnc, int64_t position)
{
    return (aa_broadcast_record_t *)(cnc->to_clients + position % CAPACITY);
}

TEST(broadcast_gives_records_in_order_through_many_wraps)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    uint8_t sent[512], received[512];
    int32_t type_id = 0;
    uint64_t state = 7;
    CHECK_EQUAL(aa_broadcast_max_record_length(broadcast), 512);
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, received, sizeof(received)), AA_NOTHING);
    CHECK_EQUAL(aa_broadcast_unread_tail(broadcast), -1);
    for (int32_t i = 1; i < 5000; i++)
    {
        const size_t length = next_random(&state) % 513;
        memset(sent, i, length);
        driver_broadcast(cnc, i, sent, length);
        CHECK(aa_broadcast_unread_tail(broadcast) > 0);
        CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, received, sizeof(received)), length);
        CHECK_EQUAL(type_id, i);
        CHECK_EQUAL(memcmp(sent, received, length), 0);
        CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, received, sizeof(received)), AA_NOTHING);
    }
    aa_broadcast_release(broadcast);
    aa_cnc_release(cnc);
}

TEST(broadcast_is_received_from_the_latest_record_on)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    driver_broadcast(cnc, 1, "first", 5);
    driver_broadcast(cnc, 2, "second", 6);
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    driver_broadcast(cnc, 3, "third", 5);

    int32_t type_id;
    uint8_t record[512];
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), 6);
    CHECK_EQUAL(type_id, 2);
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), 5);
    CHECK_EQUAL(type_id, 3);
    aa_broadcast_release(broadcast);
    aa_cnc_release(cnc);
}

TEST(broadcast_receiver_that_falls_behind_is_lapped_for_good)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    const uint8_t sent[504] = {0};
    int32_t type_id;
    uint8_t record[512];
    for (int i = 0; i < CAPACITY / 512 - 1; i++)
    {
        driver_broadcast(cnc, 1, sent, sizeof(sent));
    }
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), sizeof(sent));
    driver_broadcast(cnc, 1, sent, sizeof(sent));
    driver_broadcast(cnc, 1, sent, sizeof(sent));
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), AA_LAPPED);
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), AA_LAPPED);
    aa_broadcast_release(broadcast);
    aa_cnc_release(cnc);
}

TEST(broadcast_record_that_is_about_to_be_overwritten_is_not_given)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    int32_t type_id;
    uint8_t record[512];
    driver_broadcast(cnc, 1, "record", 6);
    atomic_store(&trailer_of(cnc)->tail_intent, CAPACITY);
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), AA_LAPPED);
    atomic_store(&trailer_of(cnc)->tail_intent, CAPACITY - 8);
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), 6);
    aa_broadcast_release(broadcast);
    aa_cnc_release(cnc);
}

#define HAMMERED 200000

/* As fast as it can, so that receivers are overrun; every record is of one byte value. */
static void *transmit(void *argument)
{
    uint8_t content[512];
    uint64_t state = 99;
    for (int32_t i = 1; i <= HAMMERED; i++)
    {
        const size_t length = next_random(&state) % 65;
        memset(content, i, length);
        driver_broadcast(argument, i, content, length);
    }
    return NULL;
}

TEST(broadcast_under_overrun_gives_whole_records_or_says_lapped)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    pthread_t transmitter;
    CHECK_EQUAL(pthread_create(&transmitter, NULL, transmit, cnc), 0);
    int32_t type_id = 0, last = 0, received = 0;
    while (last < HAMMERED)
    {
        uint8_t record[512];
        const int length = aa_broadcast_receive(broadcast, &type_id, record, sizeof(record));
        if (length == AA_LAPPED)
        {
            aa_broadcast_release(broadcast);
            broadcast = aa_broadcast_open(cnc);
            continue;
        }
        if (length == AA_NOTHING)
        {
            continue;
        }
        CHECK(length >= 0);
        CHECK(type_id >= last);
        for (int i = 0; i < length; i++)
        {
            CHECK_EQUAL(record[i], (uint8_t)type_id);
        }
        last = type_id;
        received++;
    }
    pthread_join(transmitter, NULL);
    CHECK(received > 0);
    aa_broadcast_release(broadcast);
    aa_cnc_release(cnc);
}

TEST(broadcast_with_impossible_records_is_corrupt)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    const struct
    {
        int32_t type_id;
        int32_t length;
    } nonsense[] = {
        {1, 0},
        {1, 7},
        {1, -8},
        {1, INT32_MIN},
        {1, INT32_MAX},
        {1, CAPACITY + 1},
        {1, 512 + 8 + 1},
        {0, 16},
        {-2, 16},
        {AA_BROADCAST_PADDING_TYPE_ID, 16},
        {AA_BROADCAST_PADDING_TYPE_ID, CAPACITY},
    };
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
        int32_t type_id;
        uint8_t record[512];
        driver_broadcast(cnc, 1, "12345678", 8);
        record_at(cnc, 0)->length = nonsense[i].length;
        record_at(cnc, 0)->type_id = nonsense[i].type_id;
        CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), AA_CORRUPT);
        memset(trailer_of(cnc), 0, sizeof(aa_broadcast_trailer_t));
        aa_broadcast_release(broadcast);
    }

    const int64_t positions[] = {-8, 4, INT64_MIN, INT64_MAX - 7};
    for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++)
    {
        atomic_store(&trailer_of(cnc)->latest, positions[i]);
        atomic_store(&trailer_of(cnc)->tail, INT64_MAX);
        aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
        int32_t type_id;
        uint8_t record[512];
        CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), AA_CORRUPT);
        aa_broadcast_release(broadcast);
    }
    aa_cnc_release(cnc);
}

TEST(broadcast_record_longer_than_the_callers_buffer_is_corrupt)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    int32_t type_id;
    uint8_t record[8];
    driver_broadcast(cnc, 1, "123456789", 9);
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), AA_CORRUPT);
    aa_broadcast_release(broadcast);
    aa_cnc_release(cnc);
}
