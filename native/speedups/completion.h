/* How an awaitable of ours says that it is done. */
#ifndef AA_COMPLETION_H
#define AA_COMPLETION_H

#include "module.h"

/* For tp_iternext and send(): turns what a step has come to into what they return. Takes over the reference to value.
 */
PyObject *aa_completion_of(const aa_state_t *state, PySendResult result, PyObject *value);

#endif
