#include "read_message.h"

#include "header.h"

#include <structmember.h>

typedef struct
{
    PyObject_HEAD;
    PyObject *payload; /* bytes */
    aa_row_t row;
} message_t;

PyObject *aa_read_message_new(const aa_state_t *state, PyObject *payload, const aa_row_t *row)
{
    message_t *self = payload == NULL ? NULL : PyObject_New(message_t, (PyTypeObject *)state->message_type);
    if (self == NULL)
    {
        Py_XDECREF(payload);
        return NULL;
    }
    self->payload = payload;
    self->row = *row;
    return (PyObject *)self;
}

static PyObject *message_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"payload", "header", NULL};
    const aa_state_t *state = PyType_GetModuleState(type);
    PyObject *payload, *header;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O!:Message", names, &PyBytes_Type, &payload, state->header_type, &header))
    {
        return NULL;
    }
    return aa_read_message_new(state, Py_NewRef(payload), &((aa_header_t *)header)->row);
}

static void message_dealloc(message_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(self->payload);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *message_header(message_t *self, void *Py_UNUSED(closure))
{
    return aa_header_new(PyType_GetModuleState(Py_TYPE(self)), &self->row);
}

static Py_ssize_t message_length(message_t *self)
{
    return PyBytes_GET_SIZE(self->payload);
}

static PyObject *message_bytes(message_t *self, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(self->payload);
}

static PyObject *message_repr(message_t *self)
{
    PyObject *header = message_header(self, NULL);
    PyObject *text =
        header == NULL ? NULL : PyUnicode_FromFormat("<Message %zd bytes, %R>", message_length(self), header);
    Py_XDECREF(header);
    return text;
}

static PyMemberDef message_members[] = {
    {"payload", T_OBJECT_EX, offsetof(message_t, payload), READONLY, "What was published."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef message_properties[] = {
    {"header", (getter)message_header, NULL, "The header that the payload came with.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef message_methods[] = {
    {"__bytes__", (PyCFunction)message_bytes, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot message_slots[] = {
    {Py_tp_doc, "One message: its payload, and the header it came with."},
    {Py_tp_new, message_new},
    {Py_tp_dealloc, message_dealloc},
    {Py_tp_repr, message_repr},
    {Py_sq_length, message_length},
    {Py_tp_members, message_members},
    {Py_tp_getset, message_properties},
    {Py_tp_methods, message_methods},
    {0, NULL},
};

static PyType_Spec message_spec = {
    .name = "aeron_async._speedups.Message",
    .basicsize = sizeof(message_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = message_slots,
};

int aa_read_message_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->message_type = (PyObject *)aa_module_make_type(module, &message_spec);
    return state->message_type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)state->message_type);
}
