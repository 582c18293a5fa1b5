/* Counters: their records and values in the CnC file, and handles on single values. */
#ifndef AA_COUNTERS_H
#define AA_COUNTERS_H

#include "cnc.h"

#define AA_COUNTER_UNUSED 0
#define AA_COUNTER_ALLOCATED 1
#define AA_COUNTER_RECLAIMED -1

#define AA_COUNTER_KEY_LENGTH 112
#define AA_COUNTER_LABEL_LENGTH 380
#define AA_COUNTER_TYPE_CLIENT_HEARTBEAT 11

typedef struct
{
    _Atomic int32_t state; /* written last when a counter is allocated */
    _Atomic int32_t type_id;
    _Atomic int64_t free_for_reuse_deadline_ms;
    uint8_t key[AA_COUNTER_KEY_LENGTH];
    _Atomic int32_t label_length;
    uint8_t label[AA_COUNTER_LABEL_LENGTH];
} aa_counter_metadata_t;

typedef struct
{
    _Atomic int64_t value;
    _Atomic int64_t registration_id;
    _Atomic int64_t owner_id;
    _Atomic int64_t reference_id;
    uint8_t padding[96];
} aa_counter_value_t;

_Static_assert(sizeof(aa_counter_metadata_t) == 512, "layout of a counter's record");
_Static_assert(sizeof(aa_counter_value_t) == 128, "layout of a counter's value");

typedef struct
{
    int32_t id;
    int32_t state;
    int32_t type_id;
    int32_t label_length;
    int64_t free_for_reuse_deadline_ms;
    int64_t value;
    int64_t registration_id;
    int64_t owner_id;
    int64_t reference_id;
    uint8_t key[AA_COUNTER_KEY_LENGTH];
    uint8_t label[AA_COUNTER_LABEL_LENGTH];
} aa_counter_info_t;

typedef struct aa_counter aa_counter_t;

int32_t aa_counters_max_id(const aa_cnc_t *cnc);
int aa_counters_read(const aa_cnc_t *cnc, int32_t id, aa_counter_info_t *info);
int32_t aa_counters_find(const aa_cnc_t *cnc, int32_t type_id, int64_t registration_id);
int32_t aa_counters_next(const aa_cnc_t *cnc, int32_t type_id, int32_t key, int32_t from_id);
/* Where the value of a counter lies, NULL for an id outside the buffers. Valid as long as the CnC file is mapped. */
_Atomic int64_t *aa_counters_value(const aa_cnc_t *cnc, int32_t id);

aa_counter_t *aa_counter_create(aa_cnc_t *cnc, int32_t id);
void aa_counter_release(aa_counter_t *counter);
void aa_counter_close(aa_counter_t *counter);
int64_t aa_counter_value(const aa_counter_t *counter);
void aa_counter_set(aa_counter_t *counter, int64_t value);
int64_t aa_counter_add(aa_counter_t *counter, int64_t delta);
int64_t aa_counter_get_and_set(aa_counter_t *counter, int64_t value);
bool aa_counter_compare_and_set(aa_counter_t *counter, int64_t expected, int64_t value);

bool aa_cnc_client_heartbeat(aa_cnc_t *cnc, int64_t client_id, int64_t now_ms);
bool aa_cnc_client_label(aa_cnc_t *cnc, int64_t client_id, const char *text, size_t length);

#endif
