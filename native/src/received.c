#include "received.h"

#include <stdlib.h>
#include <string.h>

/* What malloc gives, and enough for the fields of any record that payloads are taken for. */
#define ALIGNMENT 16

_Static_assert(sizeof(aa_received_t) % _Alignof(aa_row_t) == 0, "rows lie behind the description");

static size_t data_begin(size_t row_capacity)
{
    const size_t rows = sizeof(aa_row_t) * row_capacity + sizeof(int32_t) * (row_capacity + 1);
    return (size_t)aa_align((int64_t)(sizeof(aa_received_t) + rows), ALIGNMENT);
}

size_t aa_received_length(size_t row_count, size_t data_length)
{
    return data_begin(row_count) + data_length + AA_RECEIVED_STEP;
}

aa_received_t *aa_received_create(size_t row_capacity, size_t data_capacity)
{
    const size_t length = aa_received_length(row_capacity, data_capacity);
    aa_received_t *messages = malloc(length);
    if (messages == NULL)
    {
        return NULL;
    }
    uint8_t *memory = (uint8_t *)messages;
    *messages = (aa_received_t){
        .payload_length = -1,
        .rows = (aa_row_t *)(memory + sizeof(aa_received_t)),
        .offsets = (int32_t *)(memory + sizeof(aa_received_t) + sizeof(aa_row_t) * row_capacity),
        .data = memory + data_begin(row_capacity),
        .row_capacity = row_capacity,
        .data_capacity = data_capacity,
        .length = length,
    };
    atomic_init(&messages->references, 1);
    messages->offsets[0] = 0;
    return messages;
}

aa_received_t *
aa_received_copy(const aa_received_t *messages, size_t data_length, size_t row_capacity, size_t data_capacity)
{
    aa_received_t *copy = aa_received_create(row_capacity, data_capacity);
    if (copy != NULL)
    {
        copy->payload_length = messages->payload_length;
        copy->count = messages->count;
        copy->nbytes = messages->nbytes;
        memcpy(copy->rows, messages->rows, sizeof(aa_row_t) * messages->count);
        memcpy(copy->offsets, messages->offsets, sizeof(int32_t) * (messages->count + 1));
        memcpy(copy->data, messages->data, data_length);
    }
    return copy;
}

aa_received_t *aa_received_reference(aa_received_t *messages)
{
    aa_references_take(&messages->references);
    return messages;
}

void aa_received_release(aa_received_t *messages)
{
    if (messages != NULL && aa_references_drop(&messages->references))
    {
        free(messages);
    }
}

void aa_received_copy_column(const aa_received_t *messages, size_t field, size_t size, uint8_t *out)
{
    for (size_t i = 0; i < messages->count; i++)
    {
        memcpy(out + size * i, (const uint8_t *)&messages->rows[i] + field, size);
    }
}
