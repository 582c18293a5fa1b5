/* Bytes-like objects as messages, read in place. */
#ifndef AA_PAYLOAD_H
#define AA_PAYLOAD_H

#include "module.h"

#include <stdint.h>

/* Copies of more bytes than this give up the GIL. */
#define AA_PAYLOAD_LONG (256 * 1024)

typedef struct
{
    const uint8_t *data;
    size_t length;
    Py_buffer view; /* view.obj is NULL where there is none to release */
} aa_payload_t;

/* As aa_payload_get, for every object that has a buffer. */
int aa_payload_get_buffer(const aa_state_t *state, PyObject *object, aa_payload_t *payload);

/* 0, or -1 with what view_of raises. The object must outlive the payload, and the GIL be held meanwhile unless it is
 * longer than AA_PAYLOAD_LONG. */
static inline int aa_payload_get(const aa_state_t *state, PyObject *object, aa_payload_t *payload)
{
    if (PyBytes_CheckExact(object))
    {
        payload->data = (const uint8_t *)PyBytes_AS_STRING(object);
        payload->length = (size_t)PyBytes_GET_SIZE(object);
    }
    else if (PyByteArray_CheckExact(object) && PyByteArray_GET_SIZE(object) <= AA_PAYLOAD_LONG)
    {
        payload->data = (const uint8_t *)PyByteArray_AS_STRING(object);
        payload->length = (size_t)PyByteArray_GET_SIZE(object);
    }
    else
    {
        return aa_payload_get_buffer(state, object, payload);
    }
    payload->view.obj = NULL;
    return 0;
}

static inline void aa_payload_release(aa_payload_t *payload)
{
    if (payload->view.obj != NULL)
    {
        PyBuffer_Release(&payload->view);
    }
}

#endif
