#include "completion.h"

#if PY_VERSION_HEX < 0x030C0000

/* Here it is made only where somebody looks at it. */
PyObject *aa_completion_stop(aa_state_t *Py_UNUSED(state), PyObject *value)
{
    PyErr_SetObject(PyExc_StopIteration, value);
    Py_DECREF(value);
    return NULL;
}

#else

static int is_as_new(const PyStopIterationObject *stop)
{
    return Py_REFCNT(stop) == 1 && stop->traceback == NULL && stop->context == NULL && stop->notes == NULL;
}

PyObject *aa_completion_stop(aa_state_t *state, PyObject *value)
{
    if (state->stop == NULL || !is_as_new((PyStopIterationObject *)state->stop))
    {
        PyObject *stop = PyObject_CallNoArgs(PyExc_StopIteration);
        if (stop == NULL)
        {
            Py_DECREF(value);
            return NULL;
        }
        Py_XSETREF(state->stop, stop);
    }
    PyStopIterationObject *stop = (PyStopIterationObject *)state->stop;
    Py_XSETREF(stop->value, value);
    PyErr_SetRaisedException(Py_NewRef(stop));
    return NULL;
}

#endif
