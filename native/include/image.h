/* Images: one publisher's stream as a subscription sees it, with its position and the builder of its next message. */
#ifndef AA_IMAGE_H
#define AA_IMAGE_H

#include "cnc.h"
#include "log_buffer.h"

/* The beginning of a message whose rest has not arrived: fragments that the image's position is past already. */
typedef struct
{
    uint8_t *data;
    size_t length;
    size_t capacity;
    bool is_active;
    int64_t first_position; /* of the first fragment */
    int64_t next_position;  /* where the next fragment must be */
} aa_builder_t;

typedef struct aa_image
{
    aa_references_t references;
    aa_log_t *log;
    aa_cnc_t *cnc;
    _Atomic int64_t *position; /* the subscriber position counter */
    int64_t join_position;
    uint64_t epoch; /* counts reads, so that a batch knows whether it holds the last one */
    aa_builder_t builder;

    _Atomic bool is_closed;
    int64_t last_position; /* these three are written before is_closed */
    int64_t last_end_of_stream_position;
    bool last_is_publication_revoked;
} aa_image_t;

int aa_image_create(
    aa_log_t *log, aa_cnc_t *cnc, int32_t subscriber_position_counter_id, aa_image_t **image, aa_error_t *error);
aa_image_t *aa_image_reference(aa_image_t *image);
void aa_image_release(aa_image_t *image);
void aa_image_close(aa_image_t *image);
bool aa_image_is_closed(const aa_image_t *image);
int64_t aa_image_join_position(const aa_image_t *image);
int64_t aa_image_position(const aa_image_t *image);
bool aa_image_is_end_of_stream(const aa_image_t *image);
int64_t aa_image_end_of_stream_position(const aa_image_t *image);
int32_t aa_image_active_transport_count(const aa_image_t *image);
bool aa_image_is_publication_revoked(const aa_image_t *image);
bool aa_image_is_within_message(const aa_image_t *image);
/* Whether a scan would find something: a frame at the position, or that the position cannot be true. From any thread.
 */
bool aa_image_has_frame(const aa_image_t *image);
/* Where reading goes on. What earlier reads found and nobody committed cannot be committed any more, and a builder that
 * the position has left behind is reset. AA_OK, AA_CORRUPT. */
int aa_image_begin_read(aa_image_t *image, int64_t *position, aa_error_t *error);
/* Moves the position forwards; does nothing where it is there already, or after close. */
void aa_image_advance(aa_image_t *image, int64_t position);

/* False without memory. */
bool aa_builder_append(aa_builder_t *builder, const uint8_t *data, size_t length);
/* Keeps the memory. */
void aa_builder_reset(aa_builder_t *builder);

#endif
