/* The to-clients broadcast: one transmitter that waits for nobody, and this receiver, who can fall behind. */
#ifndef AA_BROADCAST_H
#define AA_BROADCAST_H

#include "cnc.h"

#define AA_BROADCAST_ALIGNMENT 8
#define AA_BROADCAST_PADDING_TYPE_ID -1

typedef struct
{
    _Atomic int64_t tail_intent; /* how far the transmitter may be writing */
    _Atomic int64_t tail;
    _Atomic int64_t latest;
    uint8_t padding[104];
} aa_broadcast_trailer_t;

_Static_assert(sizeof(aa_broadcast_trailer_t) == 128, "layout of the broadcast's trailer");

typedef struct
{
    _Atomic int32_t length; /* header included */
    _Atomic int32_t type_id;
} aa_broadcast_record_t;

typedef struct aa_broadcast aa_broadcast_t;

bool aa_broadcast_is_length_valid(int64_t length);
aa_broadcast_t *aa_broadcast_open(aa_cnc_t *cnc);
aa_broadcast_t *aa_broadcast_reference(aa_broadcast_t *broadcast);
void aa_broadcast_release(aa_broadcast_t *broadcast);
int aa_broadcast_receive(aa_broadcast_t *broadcast, int32_t *type_id, uint8_t *record, size_t capacity);
size_t aa_broadcast_max_record_length(const aa_broadcast_t *broadcast);
/* The transmitter's position where records are waiting, otherwise -1. From any thread. */
int64_t aa_broadcast_unread_tail(const aa_broadcast_t *broadcast);

#endif
