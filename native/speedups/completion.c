#include "completion.h"

PyObject *aa_completion_of(const aa_state_t *state, PySendResult result, PyObject *value)
{
    (void)state;
    if (result == PYGEN_RETURN)
    {
        PyErr_SetObject(PyExc_StopIteration, value);
        Py_CLEAR(value);
    }
    return value;
}
