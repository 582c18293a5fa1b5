#include "payload.h"

int aa_payload_get_buffer(const aa_state_t *state, PyObject *object, aa_payload_t *payload)
{
    if (PyObject_GetBuffer(object, &payload->view, PyBUF_SIMPLE) == 0)
    {
        payload->data = payload->view.buf;
        payload->length = (size_t)payload->view.len;
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_Exception))
    {
        PyErr_Clear();
        PyObject *view = PyObject_CallOneArg(state->view_of, object);
        if (view != NULL)
        {
            Py_DECREF(view);
            PyErr_Format(PyExc_BufferError, "the buffer of %R cannot be read now", object);
        }
    }
    return -1;
}

int aa_payload_add(PyObject *module)
{
    PyObject *buffers = PyImport_ImportModule("aeron_async._buffers");
    if (buffers == NULL)
    {
        return -1;
    }
    aa_state_t *state = aa_module_state(module);
    state->view_of = PyObject_GetAttrString(buffers, "view_of");
    Py_DECREF(buffers);
    return state->view_of == NULL ? -1 : 0;
}
