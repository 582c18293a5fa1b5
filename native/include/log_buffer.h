/* Log buffers: three terms and their metadata in one file, and the frames in the terms. */
#ifndef AA_LOG_BUFFER_H
#define AA_LOG_BUFFER_H

#include "atomics.h"
#include "error.h"
#include "mapping.h"

#define AA_LOG_PARTITIONS 3
#define AA_LOG_METADATA_LENGTH 4096

#define AA_FRAME_ALIGNMENT 32
#define AA_FRAME_HEADER_LENGTH 32
#define AA_FRAME_BEGIN 0x80
#define AA_FRAME_END 0x40
#define AA_FRAME_WHOLE (AA_FRAME_BEGIN | AA_FRAME_END)
#define AA_FRAME_TYPE_PADDING 0
#define AA_FRAME_TYPE_DATA 1

typedef struct
{
    _Atomic int32_t length; /* header included; 0 where nothing is, negative while it is being written */
    uint8_t version;
    uint8_t flags;
    int16_t type;
    int32_t term_offset;
    int32_t session_id;
    int32_t stream_id;
    int32_t term_id;
    int64_t reserved_value;
} aa_frame_t;

_Static_assert(sizeof(aa_frame_t) == AA_FRAME_HEADER_LENGTH, "layout of a data frame's header");

/* The last 4096 bytes of the file, as far as clients read them. */
typedef struct
{
    _Atomic int64_t term_tails[AA_LOG_PARTITIONS]; /* term id in the high half, offset in the low */
    _Atomic int32_t active_term_count;
    uint8_t padding1[100];
    _Atomic int64_t end_of_stream_position;
    _Atomic int32_t is_connected;
    _Atomic int32_t active_transport_count;
    uint8_t padding2[112];
    int64_t correlation_id;
    int32_t initial_term_id;
    int32_t default_frame_header_length;
    int32_t mtu_length;
    int32_t term_length;
    int32_t page_size;
    int32_t windows_and_socket_buffers[8];
    int32_t max_resend;
    aa_frame_t default_header;
    uint8_t default_header_padding[96];
    int64_t entity_tag_and_timeouts[5];
    uint8_t stream_options[8];
    _Atomic uint8_t is_publication_revoked;
    uint8_t rest[3599];
} aa_log_metadata_t;

_Static_assert(offsetof(aa_log_metadata_t, active_term_count) == 24, "layout of a log's metadata");
_Static_assert(offsetof(aa_log_metadata_t, end_of_stream_position) == 128, "layout of a log's metadata");
_Static_assert(offsetof(aa_log_metadata_t, correlation_id) == 256, "layout of a log's metadata");
_Static_assert(offsetof(aa_log_metadata_t, default_header) == 320, "layout of a log's metadata");
_Static_assert(offsetof(aa_log_metadata_t, stream_options) == 488, "layout of a log's metadata");
_Static_assert(offsetof(aa_log_metadata_t, is_publication_revoked) == 496, "layout of a log's metadata");
_Static_assert(sizeof(aa_log_metadata_t) == AA_LOG_METADATA_LENGTH, "layout of a log's metadata");

typedef struct
{
    int64_t correlation_id;
    int32_t initial_term_id;
    int32_t mtu_length;
    int32_t term_length;
    int32_t page_size;
    int32_t session_id;
    int32_t stream_id;
} aa_log_info_t;

typedef struct aa_log
{
    aa_references_t references;
    aa_mapping_t mapping;
    aa_log_metadata_t *metadata;
    aa_log_info_t info; /* as checked; never read from the file again */
    int position_bits;  /* term_length == 1 << position_bits */
    int32_t max_payload_length;
    int32_t max_message_length;
} aa_log_t;

int aa_log_open(const char *path, aa_log_t **log, aa_error_t *error);
aa_log_t *aa_log_reference(aa_log_t *log);
void aa_log_release(aa_log_t *log);
void aa_log_info(const aa_log_t *log, aa_log_info_t *info);
const uint8_t *aa_log_terms(const aa_log_t *log);

static inline bool aa_log_is_connected(const aa_log_t *log)
{
    return atomic_load_explicit(&log->metadata->is_connected, memory_order_acquire) == 1;
}

/* Term ids wrap, so a count of terms is their difference modulo 2^32. */
static inline int32_t aa_log_term_count(const aa_log_t *log, int32_t term_id)
{
    return (int32_t)((uint32_t)term_id - (uint32_t)log->info.initial_term_id);
}

static inline int32_t aa_log_term_id(const aa_log_t *log, int64_t position)
{
    return (int32_t)((uint32_t)(position >> log->position_bits) + (uint32_t)log->info.initial_term_id);
}

static inline int32_t aa_log_term_offset(const aa_log_t *log, int64_t position)
{
    return (int32_t)(position & (log->info.term_length - 1));
}

/* The end of the stream: positions at and past it do not exist. */
static inline int64_t aa_log_max_possible_position(const aa_log_t *log)
{
    return (int64_t)log->info.term_length << 31;
}

static inline bool aa_log_is_position_valid(const aa_log_t *log, int64_t position)
{
    return position >= 0 && position <= aa_log_max_possible_position(log) && position % AA_FRAME_ALIGNMENT == 0;
}

/* offset must be aligned and within the term. */
static inline aa_frame_t *aa_log_frame(const aa_log_t *log, int32_t partition, int32_t offset)
{
    return (aa_frame_t *)(log->mapping.address + ((int64_t)partition << log->position_bits) + offset);
}

/* position must be valid and before the end of the stream. */
static inline aa_frame_t *aa_log_frame_at(const aa_log_t *log, int64_t position)
{
    int32_t partition = (int32_t)((position >> log->position_bits) % AA_LOG_PARTITIONS);
    return aa_log_frame(log, partition, aa_log_term_offset(log, position));
}

#endif
