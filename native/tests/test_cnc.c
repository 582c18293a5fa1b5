#define _GNU_SOURCE
#include "broadcast.h"
#include "check.h"
#include "counters.h"
#include "driver.h"
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_shape(const char *directory, const cnc_shape_t *shape, aa_error_t *error)
{
    char path[FIXTURE_PATH_LENGTH];
    write_cnc(in_directory(path, directory, "cnc.dat"), shape);
    aa_cnc_t *cnc = NULL;
    int result = aa_cnc_open(path, &cnc, error);
    CHECK_EQUAL(cnc != NULL, result == AA_OK);
    aa_cnc_release(cnc);
    return result;
}

TEST(cnc_that_is_absent_empty_or_short_is_not_ready)
{
    char path[FIXTURE_PATH_LENGTH];
    aa_cnc_t *cnc = NULL;
    aa_error_t error = {0};
    in_directory(path, directory, "cnc.dat");
    CHECK_EQUAL(aa_cnc_open(path, &cnc, &error), AA_NOT_READY);
    CHECK(strstr(error.text, "does not exist") != NULL);

    write_file(path, "", 0);
    CHECK_EQUAL(aa_cnc_open(path, &cnc, &error), AA_NOT_READY);
    uint8_t zeros[256] = {0};
    write_file(path, zeros, 100);
    CHECK_EQUAL(aa_cnc_open(path, &cnc, &error), AA_NOT_READY);
    write_file(path, zeros, sizeof(zeros));
    CHECK_EQUAL(aa_cnc_open(path, &cnc, &error), AA_NOT_READY);
    CHECK(strstr(error.text, "not initialised") != NULL);

    cnc_shape_t shape = default_cnc_shape();
    shape.file_length = 8192;
    CHECK_EQUAL(open_shape(directory, &shape, &error), AA_NOT_READY);
    CHECK(cnc == NULL);
}

TEST(cnc_of_another_major_version_is_refused_with_both_versions_named)
{
    aa_error_t error = {0};
    cnc_shape_t shape = default_cnc_shape();
    shape.version = (1 << 16) | (4 << 8) | 7;
    CHECK_EQUAL(open_shape(directory, &shape, &error), AA_VERSION);
    CHECK(strstr(error.text, "1.4.7") != NULL && strstr(error.text, "0.2") != NULL);

    shape.version = (9 << 8) | 1;
    CHECK_EQUAL(open_shape(directory, &shape, &error), AA_OK);
}

TEST(cnc_with_impossible_lengths_is_corrupt)
{
    const int32_t nonsense[] = {-1, INT32_MIN, 0, 1, 7, 1000, 1004};
    cnc_shape_t shape = default_cnc_shape();
    int32_t *lengths[] = {
        &shape.to_driver_length,
        &shape.to_clients_length,
        &shape.counters_metadata_length,
        &shape.counters_values_length,
    };
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
    {
        for (size_t j = 0; j < sizeof(nonsense) / sizeof(nonsense[0]); j++)
        {
            aa_error_t error = {0};
            shape = default_cnc_shape();
            const int32_t usual = *lengths[i];
            *lengths[i] = nonsense[j];
            shape.file_length = 1 << 20;
            const int result = open_shape(directory, &shape, &error);
            /* 1000 bytes hold counters, but no ring. */
            const bool is_possible = i >= 2 && nonsense[j] == 1000;
            CHECK_EQUAL(result, is_possible ? AA_OK : AA_CORRUPT);
            CHECK_EQUAL(error.code, result);
            *lengths[i] = usual;
        }
    }

    aa_error_t error = {0};
    shape = default_cnc_shape();
    shape.to_driver_length = 3000 + (int32_t)sizeof(aa_ring_buffer_trailer_t);
    CHECK_EQUAL(open_shape(directory, &shape, &error), AA_CORRUPT);
    shape = default_cnc_shape();
    shape.error_log_length = -8;
    shape.file_length = 1 << 20;
    CHECK_EQUAL(open_shape(directory, &shape, &error), AA_CORRUPT);
    shape = default_cnc_shape();
    shape.counters_values_length = INT32_MAX - 7;
    shape.file_length = 1 << 20;
    CHECK_EQUAL(open_shape(directory, &shape, &error), AA_NOT_READY);
}

TEST(cnc_path_that_is_no_regular_file_is_refused)
{
    char path[FIXTURE_PATH_LENGTH], target[FIXTURE_PATH_LENGTH];
    aa_cnc_t *cnc = NULL;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_cnc_open(directory, &cnc, &error), AA_SYSTEM);
    CHECK_EQUAL(error.system, EISDIR);

    const cnc_shape_t shape = default_cnc_shape();
    write_cnc(in_directory(target, directory, "target"), &shape);
    CHECK_EQUAL(symlink(target, in_directory(path, directory, "link")), 0);
    CHECK_EQUAL(aa_cnc_open(path, &cnc, &error), AA_SYSTEM);
    CHECK_EQUAL(error.system, ELOOP);

    CHECK_EQUAL(mkfifo(in_directory(path, directory, "fifo"), 0600), 0);
    CHECK_EQUAL(aa_cnc_open(path, &cnc, &error), AA_CORRUPT);
}

TEST(cnc_tells_what_the_file_says)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_cnc_info_t info;
    aa_cnc_info(cnc, &info);
    CHECK_EQUAL(info.version, 0x200);
    CHECK_EQUAL(info.to_driver_buffer_length, 4096 + 768);
    CHECK_EQUAL(info.to_clients_buffer_length, 4096 + 128);
    CHECK_EQUAL(info.counters_metadata_buffer_length, FIXTURE_COUNTERS * 512);
    CHECK_EQUAL(info.counters_values_buffer_length, FIXTURE_COUNTERS * 128);
    CHECK_EQUAL(info.error_log_buffer_length, 4096);
    CHECK_EQUAL(info.client_liveness_timeout_ns, 10000000000);
    CHECK_EQUAL(info.start_timestamp_ms, 1700000000000);
    CHECK_EQUAL(info.pid, 4242);
    CHECK_EQUAL(info.file_page_size, 4096);

    atomic_store(&cnc->to_driver.trailer->consumer_heartbeat, 123456);
    CHECK_EQUAL(aa_cnc_driver_heartbeat(cnc), 123456);
    atomic_store(&cnc->to_driver.trailer->consumer_heartbeat, -1);
    CHECK_EQUAL(aa_cnc_driver_heartbeat(cnc), -1);
    CHECK_EQUAL(aa_cnc_next_correlation_id(cnc), 0);
    CHECK_EQUAL(aa_cnc_next_correlation_id(cnc), 1);
    aa_cnc_release(cnc);
}

TEST(cnc_stays_mapped_for_what_was_opened_over_it)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    aa_counter_t *counter = aa_counter_create(cnc, 5);
    driver_broadcast(cnc, 9, "record", 6);
    aa_cnc_release(cnc);

    int32_t type_id;
    uint8_t record[64];
    CHECK_EQUAL(aa_broadcast_receive(broadcast, &type_id, record, sizeof(record)), 6);
    CHECK_EQUAL(aa_counter_add(counter, 3), 0);
    aa_broadcast_release(broadcast);
    CHECK_EQUAL(aa_counter_value(counter), 3);
    aa_counter_release(counter);
    aa_cnc_release(NULL);
    aa_broadcast_release(NULL);
    aa_counter_release(NULL);
}

/* Whatever the file holds: an answer, never a crash. */
static void use_every_part(aa_cnc_t *cnc)
{
    uint8_t record[1024] = {0};
    int32_t type_id;
    for (int i = 0; i < 4; i++)
    {
        aa_cnc_send(cnc, 1, record, 100);
    }
    aa_broadcast_t *broadcast = aa_broadcast_open(cnc);
    for (int i = 0; i < 4; i++)
    {
        aa_broadcast_receive(broadcast, &type_id, record, sizeof(record));
    }
    aa_broadcast_unread_tail(broadcast);
    aa_broadcast_release(broadcast);
    for (int32_t id = -1; id <= aa_counters_max_id(cnc) + 1; id++)
    {
        aa_counter_info_t info;
        const bool is_valid = id >= 0 && id <= aa_counters_max_id(cnc);
        CHECK_EQUAL(aa_counters_read(cnc, id, &info), is_valid ? AA_OK : AA_ARGUMENT);
        CHECK(!is_valid || (info.label_length >= 0 && info.label_length <= AA_COUNTER_LABEL_LENGTH));
    }
    aa_counters_find(cnc, 11, 1);
    aa_cnc_client_heartbeat(cnc, 0, 1);
    aa_cnc_client_label(cnc, 0, "name", 4);
}

TEST(cnc_full_of_nonsense_never_crashes)
{
    uint64_t state = 2024;
    const cnc_shape_t shape = default_cnc_shape();
    char path[FIXTURE_PATH_LENGTH];
    int opened = 0;
    for (int round = 0; round < 400; round++)
    {
        write_cnc(in_directory(path, directory, "cnc.dat"), &shape);
        aa_cnc_t *cnc = NULL;
        aa_error_t error = {0};
        aa_mapping_t mapping;
        CHECK_EQUAL(aa_mapping_open(&mapping, path, &error), AA_OK);
        /* Every other round leaves the head alone, so that the buffers are looked at. */
        const size_t from = round % 2 == 0 ? sizeof(aa_cnc_metadata_t) : 4;
        const size_t length = round % 2 == 0 ? mapping.length - from : 40;
        for (size_t i = 0; i + 8 <= length; i += 8)
        {
            const uint64_t word = next_random(&state) >> (next_random(&state) % 64);
            memcpy(mapping.address + from + i, &word, sizeof(word));
        }
        aa_mapping_close(&mapping);

        if (aa_cnc_open(path, &cnc, &error) == AA_OK)
        {
            opened++;
            use_every_part(cnc);
            aa_cnc_release(cnc);
        }
        else
        {
            CHECK(error.text[0] != '\0');
        }
    }
    CHECK(opened >= 200);
}
