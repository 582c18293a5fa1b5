#include "payload.h"

int aa_payload_get_buffer(PyObject *object, aa_payload_t *payload)
{
    if (PyObject_GetBuffer(object, &payload->view, PyBUF_SIMPLE) == 0)
    {
        payload->data = payload->view.buf;
        payload->length = payload->view.len;
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError))
    {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "a message is bytes-like, not %s", Py_TYPE(object)->tp_name);
    }
    else if (PyErr_ExceptionMatches(PyExc_ValueError))
    {
        /* numpy's word for what others call a BufferError. */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        PyErr_Format(PyExc_BufferError, "%S", value);
        Py_DECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    return -1;
}
