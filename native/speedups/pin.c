#include "pin.h"

PyObject *aa_pin_new(
    const aa_state_t *state, aa_received_t *received, const void *data, Py_ssize_t length, Py_ssize_t item_size,
    const char *format)
{
    aa_pin_t *self = PyObject_New(aa_pin_t, (PyTypeObject *)state->pin_type);
    if (self != NULL)
    {
        self->received = received == NULL ? NULL : aa_received_reference(received);
        self->data = data;
        self->length = length;
        self->item_size = item_size;
        self->format = format;
    }
    return (PyObject *)self;
}

PyObject *aa_pin_view(
    const aa_state_t *state, aa_received_t *received, const void *data, Py_ssize_t length, Py_ssize_t item_size,
    const char *format)
{
    PyObject *pin = aa_pin_new(state, received, data, length, item_size, format);
    PyObject *view = pin == NULL ? NULL : PyMemoryView_FromObject(pin);
    Py_XDECREF(pin);
    return view;
}

static void pin_dealloc(aa_pin_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    aa_received_release(self->received);
    type->tp_free(self);
    Py_DECREF(type);
}

static int pin_get_buffer(aa_pin_t *self, Py_buffer *view, int flags)
{
    const Py_ssize_t item_size = self->item_size;
    if (PyBuffer_FillInfo(view, (PyObject *)self, (void *)self->data, self->length * item_size, 1, flags) < 0)
    {
        return -1;
    }
    if (view->format != NULL)
    {
        view->format = (char *)self->format;
        view->itemsize = item_size;
    }
    if (view->shape != NULL)
    {
        view->shape = &self->length;
    }
    if (view->strides != NULL)
    {
        view->strides = &self->item_size;
    }
    return 0;
}

static PyType_Slot pin_slots[] = {
    {Py_tp_dealloc, pin_dealloc},
    {Py_bf_getbuffer, pin_get_buffer},
    {0, NULL},
};

static PyType_Spec pin_spec = {
    .name = "aeron_async._speedups.Pin",
    .basicsize = sizeof(aa_pin_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = pin_slots,
};

int aa_pin_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->pin_type = (PyObject *)aa_module_make_type(module, &pin_spec);
    return state->pin_type == NULL ? -1 : 0;
}
