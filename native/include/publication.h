/* Publications: appending messages to a log, shared with other publishers or exclusive. */
#ifndef AA_PUBLICATION_H
#define AA_PUBLICATION_H

#include "cnc.h"
#include "log_buffer.h"

typedef struct aa_publication aa_publication_t;

typedef struct
{
    const uint8_t *data;
    size_t length;
} aa_slice_t;

int aa_publication_create(
    aa_log_t *log, aa_cnc_t *cnc, int32_t session_id, int32_t stream_id, int32_t position_limit_counter_id,
    int32_t channel_status_counter_id, bool exclusive, aa_publication_t **publication, aa_error_t *error);
aa_publication_t *aa_publication_reference(aa_publication_t *publication);
void aa_publication_release(aa_publication_t *publication);
void aa_publication_close(aa_publication_t *publication);
bool aa_publication_is_closed(const aa_publication_t *publication);
bool aa_publication_is_connected(const aa_publication_t *publication);
int64_t aa_publication_position(const aa_publication_t *publication);
int64_t aa_publication_position_limit(const aa_publication_t *publication);
int64_t aa_publication_channel_status(const aa_publication_t *publication);
int aa_publication_add_waiter(
    aa_publication_t *publication, int32_t counter_id, int64_t registration_id, int descriptor);
void aa_publication_remove_waiter(aa_publication_t *publication, int64_t registration_id);
int32_t aa_publication_max_payload_length(const aa_publication_t *publication);
int32_t aa_publication_max_message_length(const aa_publication_t *publication);

int64_t aa_publication_offer(aa_publication_t *publication, const uint8_t *data, size_t length, int64_t reserved_value);
int64_t aa_publication_offer_vectored(
    aa_publication_t *publication, const aa_slice_t *parts, size_t count, int64_t reserved_value);
int64_t aa_publication_offer_many(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, const int32_t *lengths, size_t count,
    int64_t *position);
int64_t aa_publication_offer_equal(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, size_t length, size_t stride, size_t count,
    int64_t *position);
int64_t
aa_publication_offer_slices(aa_publication_t *publication, const aa_slice_t *messages, size_t count, int64_t *position);

#endif
