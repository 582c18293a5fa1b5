/* Message: a payload and its header. */
#ifndef AA_READ_MESSAGE_H
#define AA_READ_MESSAGE_H

#include "module.h"

#include "received.h"

/* Takes over the reference to payload, which may be NULL with an exception. A new reference. */
PyObject *aa_read_message_new(const aa_state_t *state, PyObject *payload, const aa_row_t *row);

#endif
