/* CnC and log files as a driver would make them. */
#ifndef AA_TESTS_FIXTURE_H
#define AA_TESTS_FIXTURE_H

#include "cnc.h"
#include "image.h"
#include "log_buffer.h"
#include "publication.h"

#define FIXTURE_LOG_NAME "stream.logbuffer"
#define FIXTURE_PATH_LENGTH 256
#define FIXTURE_TERM_LENGTH (64 * 1024)
#define FIXTURE_MTU 1408
#define FIXTURE_SESSION_ID 77
#define FIXTURE_STREAM_ID 1001
#define FIXTURE_INITIAL_TERM_ID 2147483646 /* so that term ids wrap */
#define FIXTURE_COUNTERS 64

typedef struct
{
    int32_t version;
    int32_t to_driver_length;
    int32_t to_clients_length;
    int32_t counters_metadata_length;
    int32_t counters_values_length;
    int32_t error_log_length;
    int64_t file_length; /* 0 for what the lengths need */
} cnc_shape_t;

typedef struct
{
    int32_t term_length;
    int32_t page_size;
    int32_t mtu_length;
    int32_t header_length;
    int32_t initial_term_id;
    int64_t file_length; /* 0 for what the lengths need */
} log_shape_t;

cnc_shape_t default_cnc_shape(void);
log_shape_t default_log_shape(void);

/* The path of a file in the test's folder. */
const char *in_directory(char path[FIXTURE_PATH_LENGTH], const char *directory, const char *name);
void write_file(const char *path, const void *content, size_t length);
void write_cnc(const char *path, const cnc_shape_t *shape);
void write_log(const char *path, const log_shape_t *shape);

aa_cnc_t *open_new_cnc(const char *directory);
aa_log_t *open_new_log(const char *directory, const char *name);
aa_log_t *open_shaped_log(const char *directory, const char *name, const log_shape_t *shape);

/* Allocates the counter with this id as the driver does. */
void allocate_counter(
    aa_cnc_t *cnc, int32_t id, int32_t type_id, int64_t registration_id, int64_t key, const char *label);

/* A stream, in a folder of its own: a log that starts at a position, with counters for a publication's limit and a
 * subscriber's position. */
typedef struct
{
    char directory[FIXTURE_PATH_LENGTH];
    aa_cnc_t *cnc;
    aa_log_t *log;
    _Atomic int64_t *limit;
    _Atomic int64_t *subscriber_position;
    int32_t limit_counter_id;
    int32_t position_counter_id;
} stream_t;

stream_t open_stream(const char *directory, const log_shape_t *shape, int64_t position);
void close_stream(stream_t *stream);
aa_publication_t *add_publication(const stream_t *stream, bool exclusive);
aa_image_t *add_image(const stream_t *stream);

/* Runs the body of a test with a shared and with an exclusive publication. */
void for_both_kinds(const char *directory, void (*body)(const char *directory, bool exclusive));
/* Checks the header of a data frame at a position. */
void check_header(const aa_log_t *log, int64_t position, int32_t length, uint8_t flags, int64_t reserved_value);

/* A pseudo-random sequence that is the same everywhere. */
uint64_t next_random(uint64_t *state);

#endif
