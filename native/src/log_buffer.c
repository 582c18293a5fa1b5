#include "log_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TERM_LENGTH_MIN (64 * 1024)
#define TERM_LENGTH_MAX (1024 * 1024 * 1024)
#define PAGE_SIZE_MIN 4096
#define PAGE_SIZE_MAX (1024 * 1024 * 1024)
#define MTU_LENGTH_MAX 65504
#define MESSAGE_LENGTH_MAX (16 * 1024 * 1024)

static bool is_power_of_two_within(int32_t value, int32_t min, int32_t max)
{
    return value >= min && value <= max && aa_is_power_of_two(value);
}

static int read_metadata(aa_log_t *log, const char *path, aa_error_t *error)
{
    const size_t length = log->mapping.length;
    if (length < AA_LOG_PARTITIONS * TERM_LENGTH_MIN + AA_LOG_METADATA_LENGTH || length % PAGE_SIZE_MIN != 0)
    {
        return aa_error_set(error, AA_CORRUPT, "%s: no log buffer has %zu bytes", path, length);
    }

    log->metadata = (aa_log_metadata_t *)(log->mapping.address + length - AA_LOG_METADATA_LENGTH);
    const aa_log_metadata_t *metadata = log->metadata;
    log->info = (aa_log_info_t){
        .correlation_id = metadata->correlation_id,
        .initial_term_id = metadata->initial_term_id,
        .mtu_length = metadata->mtu_length,
        .term_length = metadata->term_length,
        .page_size = metadata->page_size,
        .session_id = metadata->default_header.session_id,
        .stream_id = metadata->default_header.stream_id,
    };
    const int32_t header_length = metadata->default_frame_header_length;
    const aa_log_info_t *info = &log->info;

    if (!is_power_of_two_within(info->term_length, TERM_LENGTH_MIN, TERM_LENGTH_MAX))
    {
        return aa_error_set(error, AA_CORRUPT, "%s: term length %d", path, info->term_length);
    }
    if (!is_power_of_two_within(info->page_size, PAGE_SIZE_MIN, PAGE_SIZE_MAX))
    {
        return aa_error_set(error, AA_CORRUPT, "%s: page size %d", path, info->page_size);
    }
    const int64_t needed =
        aa_align((int64_t)AA_LOG_PARTITIONS * info->term_length + AA_LOG_METADATA_LENGTH, info->page_size);
    if ((int64_t)length < needed)
    {
        return aa_error_set(
            error, AA_CORRUPT, "%s: %zu bytes, but %lld for term length %d and page size %d", path, length,
            (long long)needed, info->term_length, info->page_size);
    }
    if (info->mtu_length <= AA_FRAME_HEADER_LENGTH || info->mtu_length > MTU_LENGTH_MAX ||
        info->mtu_length % AA_FRAME_ALIGNMENT != 0)
    {
        return aa_error_set(error, AA_CORRUPT, "%s: MTU %d", path, info->mtu_length);
    }
    if (header_length != AA_FRAME_HEADER_LENGTH)
    {
        return aa_error_set(error, AA_CORRUPT, "%s: default frame header of %d bytes", path, header_length);
    }

    log->position_bits = __builtin_ctz((unsigned)info->term_length);
    log->max_payload_length = info->mtu_length - AA_FRAME_HEADER_LENGTH;
    log->max_message_length = info->term_length / 8 < MESSAGE_LENGTH_MAX ? info->term_length / 8 : MESSAGE_LENGTH_MAX;
    return AA_OK;
}

int aa_log_open(const char *path, aa_log_t **log, aa_error_t *error)
{
    aa_log_t *opened = calloc(1, sizeof(*opened));
    if (opened == NULL)
    {
        return aa_error_system(error, ENOMEM, "no memory for %s", path);
    }
    atomic_init(&opened->references, 1);

    int result = aa_mapping_open(&opened->mapping, path, error);
    if (result == AA_OK)
    {
        result = read_metadata(opened, path, error);
    }
    if (result != AA_OK)
    {
        aa_log_release(opened);
        return result;
    }
    *log = opened;
    return AA_OK;
}

aa_log_t *aa_log_reference(aa_log_t *log)
{
    aa_references_take(&log->references);
    return log;
}

void aa_log_release(aa_log_t *log)
{
    if (log != NULL && aa_references_drop(&log->references))
    {
        aa_mapping_close(&log->mapping);
        free(log);
    }
}

void aa_log_info(const aa_log_t *log, aa_log_info_t *info)
{
    *info = log->info;
}

const uint8_t *aa_log_terms(const aa_log_t *log)
{
    return log->mapping.address;
}
