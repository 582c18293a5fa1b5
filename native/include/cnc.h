/* The CnC (command and control) file: where driver and clients meet. */
#ifndef AA_CNC_H
#define AA_CNC_H

#include "atomics.h"
#include "error.h"
#include "mapping.h"
#include "ring_buffer.h"

typedef struct
{
    int32_t version;
    int32_t to_driver_buffer_length;
    int32_t to_clients_buffer_length;
    int32_t counters_metadata_buffer_length;
    int32_t counters_values_buffer_length;
    int32_t error_log_buffer_length;
    int64_t client_liveness_timeout_ns;
    int64_t start_timestamp_ms;
    int64_t pid;
    int32_t file_page_size;
} aa_cnc_info_t;

/* The head of the file; the buffers follow it in the order of their lengths. */
typedef struct
{
    _Atomic int32_t version; /* written last by the driver */
    int32_t to_driver_buffer_length;
    int32_t to_clients_buffer_length;
    int32_t counters_metadata_buffer_length;
    int32_t counters_values_buffer_length;
    int32_t error_log_buffer_length;
    int64_t client_liveness_timeout_ns;
    int64_t start_timestamp_ms;
    int64_t pid;
    int32_t file_page_size;
    uint8_t padding[72];
} aa_cnc_metadata_t;

_Static_assert(offsetof(aa_cnc_metadata_t, client_liveness_timeout_ns) == 24, "layout of the CnC file");
_Static_assert(sizeof(aa_cnc_metadata_t) == 128, "layout of the CnC file");

#define AA_CNC_VERSION_MAJOR 0
#define AA_CNC_VERSION_MINOR 2

typedef struct aa_cnc
{
    aa_references_t references;
    aa_mapping_t mapping;
    aa_cnc_info_t info; /* as checked; never read from the file again */
    aa_ring_buffer_t to_driver;
    uint8_t *to_clients;
    uint8_t *counters_metadata;
    uint8_t *counters_values;
    int32_t max_counter_id;
    _Atomic int32_t heartbeat_counter_id; /* where the client's heartbeat counter was last seen */
} aa_cnc_t;

int aa_cnc_open(const char *path, aa_cnc_t **cnc, aa_error_t *error);
aa_cnc_t *aa_cnc_reference(aa_cnc_t *cnc);
void aa_cnc_release(aa_cnc_t *cnc);
void aa_cnc_info(const aa_cnc_t *cnc, aa_cnc_info_t *info);
int64_t aa_cnc_driver_heartbeat(const aa_cnc_t *cnc);
int64_t aa_cnc_next_correlation_id(aa_cnc_t *cnc);
int aa_cnc_send(aa_cnc_t *cnc, int32_t type_id, const uint8_t *command, size_t length);

#endif
