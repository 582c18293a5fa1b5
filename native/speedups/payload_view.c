#include "payload_view.h"

static void show(PyObject *view, const uint8_t *data, Py_ssize_t length)
{
    PyMemoryViewObject *object = (PyMemoryViewObject *)view;
    object->view.buf = (void *)data;
    object->view.len = length;
    object->view.shape[0] = length;
    object->hash = -1;
}

static const uint8_t NOTHING;

bool aa_payload_view_set(const aa_state_t *state, PyObject **view, const uint8_t *data, Py_ssize_t length)
{
    if (*view != NULL)
    {
        show(*view, data, length);
        return true;
    }
    *view = aa_pin_view(state, NULL, NULL, data, length, 1, "B");
    if (*view == NULL)
    {
        return false;
    }
    /* The view and its parts know what they show; a handler that keeps the pin itself sees nothing through it. */
    aa_pin_t *pin = (aa_pin_t *)((PyMemoryViewObject *)*view)->mbuf->master.obj;
    pin->data = &NOTHING;
    pin->count = 0;
    return true;
}

/* Whether there is nothing to be seen of the handler that had it. */
static bool is_as_new(PyObject *view)
{
    const PyMemoryViewObject *object = (PyMemoryViewObject *)view;
    return Py_REFCNT(view) == 1 && Py_REFCNT(object->mbuf) == 1 && object->mbuf->exports == 1 &&
           object->weakreflist == NULL && (object->flags & _Py_MEMORYVIEW_RELEASED) == 0;
}

bool aa_payload_view_end(const aa_state_t *state, PyObject **view, const aa_holding_t *holding, void *memory)
{
    if (is_as_new(*view))
    {
        return true;
    }
    /* Parts of it have the pin from the buffer that they share with it; there is none where all were released. */
    aa_pin_t *pin = (aa_pin_t *)((PyMemoryViewObject *)*view)->mbuf->master.obj;
    if (pin != NULL)
    {
        aa_pin_hold(pin, holding, memory);
    }

    PyObject *kept = *view;
    *view = NULL;
    bool is_released = true;
    if (Py_REFCNT(kept) > 1)
    {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *result = PyObject_CallMethodNoArgs(kept, state->str_release);
        is_released = result != NULL;
        Py_XDECREF(result);
        if (type != NULL)
        {
            PyErr_Restore(type, value, traceback);
        }
    }
    Py_DECREF(kept);
    return is_released;
}

void aa_payload_view_rest(PyObject *view)
{
    show(view, &NOTHING, 0);
}
