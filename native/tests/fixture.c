#define _GNU_SOURCE
#include "fixture.h"

#include "broadcast.h"
#include "check.h"
#include "counters.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMIT_COUNTER 3
#define POSITION_COUNTER 4

cnc_shape_t default_cnc_shape(void)
{
    return (cnc_shape_t){
        .version = AA_CNC_VERSION_MINOR << 8,
        .to_driver_length = 4096 + (int32_t)sizeof(aa_ring_buffer_trailer_t),
        .to_clients_length = 4096 + (int32_t)sizeof(aa_broadcast_trailer_t),
        .counters_metadata_length = FIXTURE_COUNTERS * (int32_t)sizeof(aa_counter_metadata_t),
        .counters_values_length = FIXTURE_COUNTERS * (int32_t)sizeof(aa_counter_value_t),
        .error_log_length = 4096,
    };
}

log_shape_t default_log_shape(void)
{
    return (log_shape_t){
        .term_length = FIXTURE_TERM_LENGTH,
        .page_size = 4096,
        .mtu_length = FIXTURE_MTU,
        .header_length = AA_FRAME_HEADER_LENGTH,
        .initial_term_id = FIXTURE_INITIAL_TERM_ID,
    };
}

const char *in_directory(char path[FIXTURE_PATH_LENGTH], const char *directory, const char *name)
{
    CHECK(snprintf(path, FIXTURE_PATH_LENGTH, "%s/%s", directory, name) < FIXTURE_PATH_LENGTH);
    return path;
}

void write_file(const char *path, const void *content, size_t length)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(descriptor >= 0);
    CHECK_EQUAL(write(descriptor, content, length), length);
    close(descriptor);
}

/* A new file of zeros; the part from offset on is mapped for the caller to fill. */
static uint8_t *map_new_file(const char *path, int64_t file_length, int64_t offset, size_t length)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(descriptor >= 0);
    CHECK_EQUAL(ftruncate(descriptor, file_length), 0);
    uint8_t *address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset);
    CHECK(address != MAP_FAILED);
    close(descriptor);
    return address;
}

void write_cnc(const char *path, const cnc_shape_t *shape)
{
    int64_t needed = (int64_t)sizeof(aa_cnc_metadata_t) + shape->to_driver_length + shape->to_clients_length +
                     shape->counters_metadata_length + shape->counters_values_length + shape->error_log_length;
    int64_t length = shape->file_length != 0 ? shape->file_length : needed;
    aa_cnc_metadata_t *metadata = (aa_cnc_metadata_t *)map_new_file(path, length, 0, sizeof(*metadata));
    metadata->to_driver_buffer_length = shape->to_driver_length;
    metadata->to_clients_buffer_length = shape->to_clients_length;
    metadata->counters_metadata_buffer_length = shape->counters_metadata_length;
    metadata->counters_values_buffer_length = shape->counters_values_length;
    metadata->error_log_buffer_length = shape->error_log_length;
    metadata->client_liveness_timeout_ns = 10000000000;
    metadata->start_timestamp_ms = 1700000000000;
    metadata->pid = 4242;
    metadata->file_page_size = 4096;
    atomic_store_explicit(&metadata->version, shape->version, memory_order_release);
    munmap(metadata, sizeof(*metadata));
}

void write_log(const char *path, const log_shape_t *shape)
{
    int64_t needed = aa_align(
        (int64_t)AA_LOG_PARTITIONS * shape->term_length + AA_LOG_METADATA_LENGTH,
        shape->page_size > 0 ? shape->page_size : 4096);
    int64_t length = shape->file_length != 0 ? shape->file_length : needed;
    aa_log_metadata_t *metadata =
        (aa_log_metadata_t *)map_new_file(path, length, length - AA_LOG_METADATA_LENGTH, AA_LOG_METADATA_LENGTH);
    metadata->correlation_id = 12345;
    metadata->initial_term_id = shape->initial_term_id;
    metadata->default_frame_header_length = shape->header_length;
    metadata->mtu_length = shape->mtu_length;
    metadata->term_length = shape->term_length;
    metadata->page_size = shape->page_size;
    metadata->default_header.session_id = FIXTURE_SESSION_ID;
    metadata->default_header.stream_id = FIXTURE_STREAM_ID;
    metadata->end_of_stream_position = INT64_MAX;
    metadata->is_connected = 1;
    metadata->active_transport_count = 1;
    munmap(metadata, AA_LOG_METADATA_LENGTH);
}

aa_cnc_t *open_new_cnc(const char *directory)
{
    char path[FIXTURE_PATH_LENGTH];
    const cnc_shape_t shape = default_cnc_shape();
    write_cnc(in_directory(path, directory, "cnc.dat"), &shape);
    aa_cnc_t *cnc = NULL;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_cnc_open(path, &cnc, &error), AA_OK);
    return cnc;
}

aa_log_t *open_shaped_log(const char *directory, const char *name, const log_shape_t *shape)
{
    char path[FIXTURE_PATH_LENGTH];
    write_log(in_directory(path, directory, name), shape);
    aa_log_t *log = NULL;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_log_open(path, &log, &error), AA_OK);
    return log;
}

aa_log_t *open_new_log(const char *directory, const char *name)
{
    const log_shape_t shape = default_log_shape();
    return open_shaped_log(directory, name, &shape);
}

void allocate_counter(
    aa_cnc_t *cnc, int32_t id, int32_t type_id, int64_t registration_id, int64_t key, const char *label)
{
    aa_counter_metadata_t *metadata = (aa_counter_metadata_t *)cnc->counters_metadata + id;
    aa_counter_value_t *value = (aa_counter_value_t *)cnc->counters_values + id;
    metadata->type_id = type_id;
    memcpy(metadata->key, &key, sizeof(key));
    memcpy(metadata->label, label, strlen(label));
    metadata->label_length = (int32_t)strlen(label);
    value->registration_id = registration_id;
    atomic_store_explicit(&metadata->state, AA_COUNTER_ALLOCATED, memory_order_release);
}

static void place_tails(aa_log_t *log, int64_t position)
{
    const int32_t term_count = (int32_t)(position >> log->position_bits);
    for (int32_t i = 0; i < AA_LOG_PARTITIONS; i++)
    {
        const int32_t ahead = i == 0 ? 0 : i - AA_LOG_PARTITIONS;
        const uint32_t term_id = (uint32_t)log->info.initial_term_id + (uint32_t)term_count + (uint32_t)ahead;
        const int32_t offset = i == 0 ? aa_log_term_offset(log, position) : 0;
        log->metadata->term_tails[((uint32_t)term_count + (uint32_t)i) % AA_LOG_PARTITIONS] =
            (int64_t)(((uint64_t)term_id << 32) | (uint32_t)offset);
    }
    log->metadata->active_term_count = term_count;
}

stream_t open_stream(const char *directory, const log_shape_t *shape, int64_t position)
{
    const log_shape_t usual = default_log_shape();
    stream_t stream = {.limit_counter_id = LIMIT_COUNTER, .position_counter_id = POSITION_COUNTER};
    CHECK(mkdtemp((char *)in_directory(stream.directory, directory, "stream-XXXXXX")) != NULL);
    stream.cnc = open_new_cnc(stream.directory);
    stream.log = open_shaped_log(stream.directory, FIXTURE_LOG_NAME, shape != NULL ? shape : &usual);
    place_tails(stream.log, position);
    stream.limit = aa_counters_value(stream.cnc, LIMIT_COUNTER);
    stream.subscriber_position = aa_counters_value(stream.cnc, POSITION_COUNTER);
    *stream.limit = position + stream.log->info.term_length / 2;
    *stream.subscriber_position = position;
    return stream;
}

void close_stream(stream_t *stream)
{
    aa_log_release(stream->log);
    aa_cnc_release(stream->cnc);
}

aa_publication_t *add_publication(const stream_t *stream, bool exclusive)
{
    aa_publication_t *publication = NULL;
    aa_error_t error = {0};
    CHECK_EQUAL(
        aa_publication_create(
            stream->log, stream->cnc, FIXTURE_SESSION_ID, FIXTURE_STREAM_ID, stream->limit_counter_id, -1, exclusive,
            &publication, &error),
        AA_OK);
    return publication;
}

aa_image_t *add_image(const stream_t *stream)
{
    aa_image_t *image = NULL;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_image_create(stream->log, stream->cnc, stream->position_counter_id, &image, &error), AA_OK);
    return image;
}

void for_both_kinds(const char *directory, void (*body)(const char *directory, bool exclusive))
{
    body(directory, false);
    body(directory, true);
}

void check_header(const aa_log_t *log, int64_t position, int32_t length, uint8_t flags, int64_t reserved_value)
{
    const aa_frame_t *frame = aa_log_frame_at(log, position);
    CHECK_EQUAL(frame->length, length);
    CHECK_EQUAL(frame->version, 0);
    CHECK_EQUAL(frame->flags, flags);
    CHECK_EQUAL(frame->type, AA_FRAME_TYPE_DATA);
    CHECK_EQUAL(frame->term_offset, aa_log_term_offset(log, position));
    CHECK_EQUAL(frame->session_id, FIXTURE_SESSION_ID);
    CHECK_EQUAL(frame->stream_id, FIXTURE_STREAM_ID);
    CHECK_EQUAL(frame->term_id, aa_log_term_id(log, position));
    CHECK_EQUAL(frame->reserved_value, reserved_value);
}

uint64_t next_random(uint64_t *state)
{
    /* SplitMix64. */
    uint64_t mixed = (*state += 0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
}
