#include "header.h"

#include <structmember.h>

PyObject *aa_header_new(const aa_state_t *state, const aa_row_t *row)
{
    aa_header_t *self = PyObject_New(aa_header_t, (PyTypeObject *)state->header_type);
    if (self != NULL)
    {
        self->row = *row;
    }
    return (PyObject *)self;
}

static PyObject *header_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"session_id", "stream_id", "term_id",      "term_offset",    "initial_term_id", "flags",
                            "type",       "version",   "frame_length", "reserved_value", "position",        NULL};
    aa_header_t *self = (aa_header_t *)type->tp_alloc(type, 0);
    if (self == NULL)
    {
        return NULL;
    }
    aa_row_t *row = &self->row;
    int flags, version;
    long long reserved_value, position;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "iiiiiihiiLL:Header", names, &row->session_id, &row->stream_id, &row->term_id,
            &row->term_offset, &row->initial_term_id, &flags, &row->type, &version, &row->frame_length, &reserved_value,
            &position))
    {
        Py_DECREF(self);
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
        {
            PyErr_SetString(PyExc_OverflowError, "a value is too large for its field of the header");
        }
        return NULL;
    }
    if (flags != (uint8_t)flags || version != (uint8_t)version)
    {
        Py_DECREF(self);
        PyErr_SetString(PyExc_OverflowError, "a value is too large for its field of the header");
        return NULL;
    }
    row->flags = (uint8_t)flags;
    row->version = (uint8_t)version;
    row->reserved_value = reserved_value;
    row->position = position;
    return (PyObject *)self;
}

static void header_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *fields_of(const aa_header_t *self)
{
    const aa_row_t *row = &self->row;
    return Py_BuildValue(
        "iiiiiiiiiLL", row->session_id, row->stream_id, row->term_id, row->term_offset, row->initial_term_id,
        row->flags, row->type, row->version, row->frame_length, (long long)row->reserved_value,
        (long long)row->position);
}

static PyObject *header_compare(PyObject *self, PyObject *other, int comparison)
{
    if (Py_TYPE(self) != Py_TYPE(other) || (comparison != Py_EQ && comparison != Py_NE))
    {
        Py_RETURN_NOTIMPLEMENTED;
    }
    const aa_row_t *a = &((aa_header_t *)self)->row;
    const aa_row_t *b = &((aa_header_t *)other)->row;
    /* What follows the last field of the header is not part of it. */
    const bool are_equal = memcmp(a, b, offsetof(aa_row_t, fragment_end)) == 0;
    return PyBool_FromLong(are_equal == (comparison == Py_EQ));
}

static Py_hash_t header_hash(PyObject *self)
{
    PyObject *fields = fields_of((aa_header_t *)self);
    const Py_hash_t hash = fields == NULL ? -1 : PyObject_Hash(fields);
    Py_XDECREF(fields);
    return hash;
}

static PyObject *header_repr(PyObject *self)
{
    const aa_row_t *row = &((aa_header_t *)self)->row;
    return PyUnicode_FromFormat(
        "Header(session_id=%d, stream_id=%d, term_id=%d, term_offset=%d, initial_term_id=%d, flags=%d, type=%d, "
        "version=%d, frame_length=%d, reserved_value=%lld, position=%lld)",
        row->session_id, row->stream_id, row->term_id, row->term_offset, row->initial_term_id, row->flags, row->type,
        row->version, row->frame_length, (long long)row->reserved_value, (long long)row->position);
}

#define FIELD(name, type, doc)                                                                                         \
    {                                                                                                                  \
#name, type, offsetof(aa_header_t, row.name), READONLY, doc                                                    \
    }

static PyMemberDef header_members[] = {
    FIELD(session_id, T_INT, "The publication's session."),
    FIELD(stream_id, T_INT, "The stream within the channel."),
    FIELD(term_id, T_INT, "The term that the message starts in."),
    FIELD(term_offset, T_INT, "Where the message starts in its term, in bytes."),
    FIELD(initial_term_id, T_INT, "The first term of the stream."),
    FIELD(flags, T_UBYTE, "BEGIN (0x80), END (0x40) and what the publisher has set of the others."),
    FIELD(type, T_SHORT, "The type of the frame: 1, data."),
    FIELD(version, T_UBYTE, "The version of the frame's layout."),
    FIELD(frame_length, T_INT, "Length of header and payload in bytes."),
    FIELD(reserved_value, T_LONGLONG, "What the publisher has put beside the payload."),
    FIELD(position, T_LONGLONG, "The stream position in bytes after the message."),
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot header_slots[] = {
    {Py_tp_doc, "The header of a message; of a fragmented one: its first fragment's place, its last fragment's "
                "reserved value."},
    {Py_tp_new, header_new},
    {Py_tp_dealloc, header_dealloc},
    {Py_tp_richcompare, header_compare},
    {Py_tp_hash, header_hash},
    {Py_tp_repr, header_repr},
    {Py_tp_members, header_members},
    {0, NULL},
};

static PyType_Spec header_spec = {
    .name = "aeron_async._speedups.Header",
    .basicsize = sizeof(aa_header_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = header_slots,
};

int aa_header_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->header_type = (PyObject *)aa_module_make_type(module, &header_spec);
    return state->header_type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)state->header_type);
}
