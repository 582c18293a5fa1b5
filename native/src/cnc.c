#include "cnc.h"

#include "broadcast.h"
#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_MAJOR(version) (((version) >> 16) & 0xFF)
#define VERSION_MINOR(version) (((version) >> 8) & 0xFF)
#define VERSION_PATCH(version) ((version)&0xFF)

static int check_version(const aa_mapping_t *mapping, const char *path, aa_cnc_info_t *info, aa_error_t *error)
{
    if (mapping->length < sizeof(aa_cnc_metadata_t))
    {
        return aa_error_set(error, AA_NOT_READY, "%s has only %zu bytes", path, mapping->length);
    }

    /* Pairs with the driver's release: with the version, all lengths are there. */
    aa_cnc_metadata_t *metadata = (aa_cnc_metadata_t *)mapping->address;
    info->version = atomic_load_explicit(&metadata->version, memory_order_acquire);
    if (info->version == 0)
    {
        return aa_error_set(error, AA_NOT_READY, "%s is not initialised", path);
    }
    if (VERSION_MAJOR(info->version) != AA_CNC_VERSION_MAJOR)
    {
        return aa_error_set(
            error, AA_VERSION, "%s has CnC version %d.%d.%d, this library understands %d.%d", path,
            VERSION_MAJOR(info->version), VERSION_MINOR(info->version), VERSION_PATCH(info->version),
            AA_CNC_VERSION_MAJOR, AA_CNC_VERSION_MINOR);
    }
    return AA_OK;
}

static int check_lengths(const aa_mapping_t *mapping, const char *path, aa_cnc_info_t *info, aa_error_t *error)
{
    const aa_cnc_metadata_t *metadata = (const aa_cnc_metadata_t *)mapping->address;
    info->to_driver_buffer_length = metadata->to_driver_buffer_length;
    info->to_clients_buffer_length = metadata->to_clients_buffer_length;
    info->counters_metadata_buffer_length = metadata->counters_metadata_buffer_length;
    info->counters_values_buffer_length = metadata->counters_values_buffer_length;
    info->error_log_buffer_length = metadata->error_log_buffer_length;
    info->client_liveness_timeout_ns = metadata->client_liveness_timeout_ns;
    info->start_timestamp_ms = metadata->start_timestamp_ms;
    info->pid = metadata->pid;
    info->file_page_size = metadata->file_page_size;

    const struct
    {
        const char *name;
        int32_t length;
        int32_t minimum;
    } buffers[] = {
        {"to-driver buffer", info->to_driver_buffer_length, 1},
        {"to-clients buffer", info->to_clients_buffer_length, 1},
        {"counters metadata buffer", info->counters_metadata_buffer_length, sizeof(aa_counter_metadata_t)},
        {"counters values buffer", info->counters_values_buffer_length, sizeof(aa_counter_value_t)},
        {"error log buffer", info->error_log_buffer_length, 0},
    };
    size_t needed = sizeof(aa_cnc_metadata_t);
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
    {
        /* Multiples of 8 keep every buffer aligned for its atomics. */
        if (buffers[i].length < buffers[i].minimum || buffers[i].length % 8 != 0)
        {
            return aa_error_set(error, AA_CORRUPT, "%s: %s of %d bytes", path, buffers[i].name, buffers[i].length);
        }
        needed += (size_t)buffers[i].length;
    }
    if (mapping->length < needed)
    {
        return aa_error_set(error, AA_NOT_READY, "%s has %zu of %zu bytes", path, mapping->length, needed);
    }
    return AA_OK;
}

static int place_buffers(aa_cnc_t *cnc, const char *path, aa_error_t *error)
{
    const aa_cnc_info_t *info = &cnc->info;
    uint8_t *to_driver = cnc->mapping.address + sizeof(aa_cnc_metadata_t);
    cnc->to_clients = to_driver + info->to_driver_buffer_length;
    cnc->counters_metadata = cnc->to_clients + info->to_clients_buffer_length;
    cnc->counters_values = cnc->counters_metadata + info->counters_metadata_buffer_length;

    int32_t records = info->counters_metadata_buffer_length / (int32_t)sizeof(aa_counter_metadata_t);
    int32_t values = info->counters_values_buffer_length / (int32_t)sizeof(aa_counter_value_t);
    cnc->max_counter_id = (records < values ? records : values) - 1;
    atomic_init(&cnc->heartbeat_counter_id, -1);

    if (!aa_ring_buffer_init(&cnc->to_driver, to_driver, info->to_driver_buffer_length))
    {
        return aa_error_set(error, AA_CORRUPT, "%s: to-driver buffer of %d bytes", path, info->to_driver_buffer_length);
    }
    if (!aa_broadcast_is_length_valid(info->to_clients_buffer_length))
    {
        return aa_error_set(
            error, AA_CORRUPT, "%s: to-clients buffer of %d bytes", path, info->to_clients_buffer_length);
    }
    return AA_OK;
}

int aa_cnc_open(const char *path, aa_cnc_t **cnc, aa_error_t *error)
{
    aa_cnc_t *opened = calloc(1, sizeof(*opened));
    if (opened == NULL)
    {
        return aa_error_system(error, ENOMEM, "no memory for %s", path);
    }
    atomic_init(&opened->references, 1);

    int result = aa_mapping_open(&opened->mapping, path, error);
    if (result == AA_OK)
    {
        result = check_version(&opened->mapping, path, &opened->info, error);
    }
    if (result == AA_OK)
    {
        result = check_lengths(&opened->mapping, path, &opened->info, error);
    }
    if (result == AA_OK)
    {
        result = place_buffers(opened, path, error);
    }

    if (result != AA_OK)
    {
        aa_cnc_release(opened);
        return result;
    }
    *cnc = opened;
    return AA_OK;
}

aa_cnc_t *aa_cnc_reference(aa_cnc_t *cnc)
{
    aa_references_take(&cnc->references);
    return cnc;
}

void aa_cnc_release(aa_cnc_t *cnc)
{
    if (cnc != NULL && aa_references_drop(&cnc->references))
    {
        aa_mapping_close(&cnc->mapping);
        free(cnc);
    }
}

void aa_cnc_info(const aa_cnc_t *cnc, aa_cnc_info_t *info)
{
    *info = cnc->info;
}

int64_t aa_cnc_driver_heartbeat(const aa_cnc_t *cnc)
{
    return aa_ring_buffer_consumer_heartbeat(&cnc->to_driver);
}

int64_t aa_cnc_next_correlation_id(aa_cnc_t *cnc)
{
    return aa_ring_buffer_next_correlation_id(&cnc->to_driver);
}

int aa_cnc_send(aa_cnc_t *cnc, int32_t type_id, const uint8_t *command, size_t length)
{
    return aa_ring_buffer_write(&cnc->to_driver, type_id, command, length);
}
