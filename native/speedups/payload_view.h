/* The memoryview that a poll hands out: the same for one message after the other, as long as no handler keeps it. */
#ifndef AA_PAYLOAD_VIEW_H
#define AA_PAYLOAD_VIEW_H

#include "pin.h"

#include <stdbool.h>

/* Makes *view, which may be NULL, one of `length` bytes at data. False with an exception. */
bool aa_payload_view_set(const aa_state_t *state, PyObject **view, const uint8_t *data, Py_ssize_t length);
/* After the handler: one that was kept shows nothing any more, and parts of it that were kept go on showing what they
 * show, which lies in `memory`. False with an exception; an exception of the handler's stays. */
bool aa_payload_view_end(const aa_state_t *state, PyObject **view, const aa_holding_t *holding, void *memory);
/* Until the next poll it shows nothing. */
void aa_payload_view_rest(PyObject *view);

#endif
