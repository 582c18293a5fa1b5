#define _GNU_SOURCE
#include "check.h"
#include "fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int open_shape(const char *directory, const log_shape_t *shape, aa_error_t *error)
{
    char path[FIXTURE_PATH_LENGTH];
    write_log(in_directory(path, directory, "log"), shape);
    aa_log_t *log = NULL;
    const int result = aa_log_open(path, &log, error);
    CHECK_EQUAL(log != NULL, result == AA_OK);
    aa_log_release(log);
    return result;
}

TEST(log_that_does_not_exist_is_not_ready)
{
    char path[FIXTURE_PATH_LENGTH];
    aa_log_t *log = NULL;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_log_open(in_directory(path, directory, "log"), &log, &error), AA_NOT_READY);
    CHECK_EQUAL(aa_log_open(directory, &log, &error), AA_SYSTEM);
    CHECK_EQUAL(error.system, EISDIR);
    aa_log_release(NULL);
}

TEST(log_tells_what_the_file_says)
{
    aa_log_t *log = open_new_log(directory, "log");
    aa_log_info_t info;
    aa_log_info(log, &info);
    CHECK_EQUAL(info.correlation_id, 12345);
    CHECK_EQUAL(info.initial_term_id, FIXTURE_INITIAL_TERM_ID);
    CHECK_EQUAL(info.mtu_length, FIXTURE_MTU);
    CHECK_EQUAL(info.term_length, FIXTURE_TERM_LENGTH);
    CHECK_EQUAL(info.page_size, 4096);
    CHECK_EQUAL(info.session_id, FIXTURE_SESSION_ID);
    CHECK_EQUAL(info.stream_id, FIXTURE_STREAM_ID);
    CHECK_EQUAL(log->max_payload_length, FIXTURE_MTU - 32);
    CHECK_EQUAL(log->max_message_length, FIXTURE_TERM_LENGTH / 8);
    CHECK_EQUAL(aa_log_term_id(log, 3 * FIXTURE_TERM_LENGTH), (int32_t)0x80000001);
    aa_log_release(log);
}

TEST(log_of_large_pages_has_its_metadata_at_the_end)
{
    log_shape_t shape = default_log_shape();
    shape.page_size = 2 * 1024 * 1024;
    aa_log_t *log = open_shaped_log(directory, "log", &shape);
    CHECK_EQUAL(log->mapping.length, 2 * 1024 * 1024);
    CHECK_EQUAL(log->info.page_size, 2 * 1024 * 1024);
    aa_log_release(log);
}

TEST(log_messages_are_limited_to_sixteen_mebibytes)
{
    log_shape_t shape = default_log_shape();
    shape.term_length = 1 << 28;
    aa_log_t *log = open_shaped_log(directory, "log", &shape);
    CHECK_EQUAL(log->max_message_length, 16 * 1024 * 1024);
    aa_log_release(log);
}

TEST(log_with_impossible_metadata_is_corrupt)
{
    const struct
    {
        const char *name;
        size_t field;
        int32_t value;
    } cases[] = {
        {"term length", offsetof(log_shape_t, term_length), 0},
        {"term length", offsetof(log_shape_t, term_length), -65536},
        {"term length", offsetof(log_shape_t, term_length), INT32_MIN},
        {"term length", offsetof(log_shape_t, term_length), 65536 + 32},
        {"term length", offsetof(log_shape_t, term_length), 32768},
        {"bytes, but", offsetof(log_shape_t, term_length), 131072},
        {"bytes, but", offsetof(log_shape_t, term_length), 1 << 30},
        {"page size", offsetof(log_shape_t, page_size), 0},
        {"page size", offsetof(log_shape_t, page_size), -4096},
        {"page size", offsetof(log_shape_t, page_size), 2048},
        {"page size", offsetof(log_shape_t, page_size), 4097},
        {"bytes, but", offsetof(log_shape_t, page_size), 1 << 20},
        {"MTU", offsetof(log_shape_t, mtu_length), 0},
        {"MTU", offsetof(log_shape_t, mtu_length), -32},
        {"MTU", offsetof(log_shape_t, mtu_length), 32},
        {"MTU", offsetof(log_shape_t, mtu_length), 1400},
        {"MTU", offsetof(log_shape_t, mtu_length), 65536},
        {"header", offsetof(log_shape_t, header_length), 0},
        {"header", offsetof(log_shape_t, header_length), 24},
        {"header", offsetof(log_shape_t, header_length), INT32_MAX},
    };
    const int64_t usual_length = 3 * FIXTURE_TERM_LENGTH + AA_LOG_METADATA_LENGTH;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        aa_error_t error = {0};
        log_shape_t shape = default_log_shape();
        shape.file_length = usual_length;
        memcpy((uint8_t *)&shape + cases[i].field, &cases[i].value, sizeof(cases[i].value));
        CHECK_EQUAL(open_shape(directory, &shape, &error), AA_CORRUPT);
        if (strstr(error.text, cases[i].name) == NULL)
        {
            check_failed(__FILE__, __LINE__, "case %zu: %s", i, error.text);
        }
    }
}

TEST(log_of_a_length_that_no_log_has_is_corrupt)
{
    const int64_t lengths[] = {4096, 8192, 3 * FIXTURE_TERM_LENGTH, 3 * FIXTURE_TERM_LENGTH + 4095};
    char path[FIXTURE_PATH_LENGTH];
    const log_shape_t shape = default_log_shape();
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
    {
        aa_log_t *log = NULL;
        aa_error_t error = {0};
        write_log(in_directory(path, directory, "log"), &shape);
        CHECK_EQUAL(truncate(path, lengths[i]), 0);
        CHECK_EQUAL(aa_log_open(path, &log, &error), AA_CORRUPT);
    }
    aa_log_t *log = NULL;
    write_file(path, "", 0);
    CHECK_EQUAL(aa_log_open(path, &log, NULL), AA_CORRUPT);
}
