#include "publication_path.h"

#include "arguments.h"
#include "awaitable.h"
#include "coroutine_method.h"
#include "docstrings.h"
#include "publishing.h"

/* Lists of messages up to this length need no allocation. */
#define SLICES_AT_HAND 64

/* --- life ------------------------------------------------------------------------------------------------ */

static PyObject *path_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    aa_state_t *state = aa_module_state_of(type);
    if (state == NULL)
    {
        return NULL;
    }
    aa_publication_path_t *self = (aa_publication_path_t *)type->tp_alloc(type, 0);
    if (self != NULL)
    {
        self->state = state;
    }
    return (PyObject *)self;
}

static int path_init(aa_publication_path_t *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"address", NULL};
    PyObject *address;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:PublicationPath", names, &PyLong_Type, &address))
    {
        return -1;
    }
    aa_publication_t *publication = PyLong_AsVoidPtr(address);
    if (publication == NULL || self->publication != NULL)
    {
        if (!PyErr_Occurred())
        {
            PyErr_SetString(PyExc_ValueError, "needs the address of a publication, once");
        }
        return -1;
    }
    self->publication = aa_publication_reference(publication);
    return 0;
}

static void path_dealloc(aa_publication_path_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    aa_publication_release(self->publication);
    Py_XDECREF(self->stop);
    aa_awaitable_free_spare(self->spare);
    type->tp_free(self);
    Py_DECREF(type);
}

static bool is_usable(const aa_publication_path_t *self)
{
    if (self->publication == NULL)
    {
        PyErr_SetString(PyExc_RuntimeError, "PublicationPath.__init__() was not called");
        return false;
    }
    return true;
}

/* --- results --------------------------------------------------------------------------------------------- */

int aa_publication_path_reserved_value(PyObject *object, int64_t *value)
{
    *value = object == NULL ? 0 : PyLong_AsLongLong(object);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
}

PyObject *aa_publication_path_refused(aa_publication_path_t *self, int64_t result, size_t length)
{
    PyObject *refused = NULL;
    PyObject *arguments[] = {(PyObject *)self, PyLong_FromLongLong(result), PyLong_FromSize_t(length)};
    if (arguments[1] != NULL && arguments[2] != NULL)
    {
        refused = PyObject_VectorcallMethod(self->state->str_refused, arguments, 3, NULL);
    }
    Py_XDECREF(arguments[1]);
    Py_XDECREF(arguments[2]);
    return refused;
}

/* How many messages of a run were appended, or what an OfferResult is made of. */
static PyObject *appended(aa_publication_path_t *self, int64_t result, size_t longest)
{
    return result >= 0 ? PyLong_FromLongLong(result) : aa_publication_path_refused(self, result, longest);
}

/* --- one message ----------------------------------------------------------------------------------------- */

static PyObject *path_offer(aa_publication_path_t *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *values[2] = {NULL, NULL};
    const aa_signature_t signature = {
        "offer", (PyObject *[]){self->state->str_data, self->state->str_reserved_value}, 1, 1, 2};
    if (aa_arguments_get(&signature, args, nargs, names, values) < 0)
    {
        return NULL;
    }

    int64_t reserved_value;
    aa_payload_t payload;
    if (!is_usable(self) || aa_publication_path_reserved_value(values[1], &reserved_value) < 0 ||
        aa_payload_get(self->state, values[0], &payload) < 0)
    {
        return NULL;
    }
    const int64_t result = aa_publication_path_append(self, &payload, reserved_value);
    const size_t length = payload.length;
    aa_payload_release(&payload);
    return result > 0 ? PyLong_FromLongLong(result) : aa_publication_path_refused(self, result, length);
}

static PyObject *path_publish(PyObject *object, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    aa_publication_path_t *self = (aa_publication_path_t *)object;
    PyObject *values[3] = {NULL, NULL, NULL};
    const aa_state_t *state = self->state;
    const aa_signature_t signature = {
        "publish", (PyObject *[]){state->str_data, state->str_reserved_value, state->str_timeout}, 1, 1, 3};
    if (aa_arguments_get(&signature, args, nargs, names, values) < 0)
    {
        return NULL;
    }
    return is_usable(self) ? aa_publishing_create(self, values[0], values[1], values[2]) : NULL;
}

static PyObject *path_is_turn_over(aa_publication_path_t *self, PyObject *args)
{
    Py_ssize_t length, messages = 1;
    if (!PyArg_ParseTuple(args, "n|n:_is_turn_over", &length, &messages))
    {
        return NULL;
    }
    return PyBool_FromLong(aa_publication_path_is_turn_over(self, (size_t)length, (size_t)messages));
}

/* --- lists of messages ----------------------------------------------------------------------------------- */

/* Where the messages of a list lie. */
typedef struct
{
    PyObject *owner; /* holds every message */
    aa_slice_t *slices;
    size_t count;
    size_t total;
    size_t longest;
    bool may_change; /* while others have the GIL */
    aa_slice_t at_hand[SLICES_AT_HAND];
} messages_t;

static void messages_release(messages_t *messages)
{
    if (messages->slices != messages->at_hand)
    {
        PyMem_Free(messages->slices);
    }
    Py_CLEAR(messages->owner);
}

static PyObject *bytes_of(const aa_state_t *state, PyObject *message)
{
    aa_payload_t payload;
    if (aa_payload_get(state, message, &payload) < 0)
    {
        return NULL;
    }
    PyObject *copy = PyBytes_FromStringAndSize((const char *)payload.data, (Py_ssize_t)payload.length);
    aa_payload_release(&payload);
    return copy;
}

/* A list that nobody else has, of the messages as bytes, copied where they are not. */
static PyObject *all_bytes_of(const aa_state_t *state, PyObject *sequence)
{
    PyObject *list = PySequence_List(sequence);
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++)
    {
        PyObject *message = PyList_GET_ITEM(list, i);
        if (!PyBytes_CheckExact(message))
        {
            PyObject *copy = bytes_of(state, message);
            if (copy == NULL || PyList_SetItem(list, i, copy) < 0)
            {
                Py_CLEAR(list);
            }
        }
    }
    return list;
}

/* Looks up items that lie where they are as long as the GIL is held; false where one is something else. */
static bool look_up(messages_t *messages, PyObject *const *items)
{
    messages->total = messages->longest = 0;
    messages->may_change = false;
    for (size_t i = 0; i < messages->count; i++)
    {
        aa_slice_t *slice = &messages->slices[i];
        if (PyBytes_CheckExact(items[i]))
        {
            *slice = (aa_slice_t){(const uint8_t *)PyBytes_AS_STRING(items[i]), (size_t)PyBytes_GET_SIZE(items[i])};
        }
        else if (PyByteArray_CheckExact(items[i]))
        {
            *slice =
                (aa_slice_t){(const uint8_t *)PyByteArray_AS_STRING(items[i]), (size_t)PyByteArray_GET_SIZE(items[i])};
            messages->may_change = true;
        }
        else
        {
            return false;
        }
        messages->total += slice->length;
        messages->longest = slice->length > messages->longest ? slice->length : messages->longest;
    }
    return true;
}

/* 0, or -1 with an exception. */
static int messages_get(const aa_state_t *state, PyObject *sequence, messages_t *messages)
{
    messages->slices = messages->at_hand;
    messages->owner = NULL;
    if (PyObject_Length(sequence) < 0)
    {
        return -1;
    }
    messages->owner = PySequence_Fast(sequence, "messages are a sequence");
    if (messages->owner == NULL)
    {
        return -1;
    }
    messages->count = (size_t)PySequence_Fast_GET_SIZE(messages->owner);
    if (messages->count > SLICES_AT_HAND)
    {
        messages->slices = PyMem_New(aa_slice_t, messages->count);
        if (messages->slices == NULL)
        {
            messages_release(messages);
            PyErr_NoMemory();
            return -1;
        }
    }

    /* Others could change the caller's list as soon as they get the GIL. */
    if (!look_up(messages, PySequence_Fast_ITEMS(messages->owner)) ||
        (messages->total > AA_PAYLOAD_LONG && (messages->may_change || !PyTuple_CheckExact(messages->owner))))
    {
        Py_SETREF(messages->owner, all_bytes_of(state, messages->owner));
        if (messages->owner == NULL)
        {
            messages_release(messages);
            return -1;
        }
        if ((size_t)PySequence_Fast_GET_SIZE(messages->owner) != messages->count)
        {
            messages_release(messages);
            PyErr_SetString(PyExc_RuntimeError, "the list of messages has changed its size meanwhile");
            return -1;
        }
        look_up(messages, PySequence_Fast_ITEMS(messages->owner));
    }
    return 0;
}

static int64_t append_messages(aa_publication_path_t *self, const messages_t *messages, size_t start, int64_t *position)
{
    const aa_slice_t *slices = messages->slices + start;
    const size_t count = messages->count - start;
    if (messages->total <= AA_PAYLOAD_LONG)
    {
        return aa_publication_offer_slices(self->publication, slices, count, position);
    }
    int64_t result;
    Py_BEGIN_ALLOW_THREADS;
    result = aa_publication_offer_slices(self->publication, slices, count, position);
    Py_END_ALLOW_THREADS;
    return result;
}

static PyObject *path_offer_many(aa_publication_path_t *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *values[1] = {NULL};
    const aa_signature_t signature = {"offer_many", (PyObject *[]){self->state->str_messages}, 1, 1, 1};
    messages_t messages;
    if (!is_usable(self) || aa_arguments_get(&signature, args, nargs, names, values) < 0 ||
        messages_get(self->state, values[0], &messages) < 0)
    {
        return NULL;
    }
    const int64_t result = append_messages(self, &messages, 0, NULL);
    messages_release(&messages);
    return appended(self, result, messages.longest);
}

static PyObject *path_offer_rest(aa_publication_path_t *self, PyObject *args)
{
    PyObject *sequence;
    Py_ssize_t start;
    messages_t messages;
    if (!is_usable(self) || !PyArg_ParseTuple(args, "On:_offer_rest", &sequence, &start) ||
        messages_get(self->state, sequence, &messages) < 0)
    {
        return NULL;
    }
    int64_t position = 0, result = AA_ARGUMENT;
    if (start >= 0 && (size_t)start < messages.count)
    {
        result = append_messages(self, &messages, (size_t)start, &position);
    }
    messages_release(&messages);
    return result >= 0 ? Py_BuildValue("LL", (long long)result, (long long)position)
                       : aa_publication_path_refused(self, result, messages.longest);
}

/* --- records --------------------------------------------------------------------------------------------- */

/* Records of one length, back to back. */
typedef struct
{
    Py_buffer view;
    size_t itemsize;
    size_t count;
} records_t;

static bool has_single_bytes(const Py_buffer *view)
{
    return view->format == NULL ||
           (view->format[0] != '\0' && strchr("Bbc", view->format[0]) != NULL && view->format[1] == '\0');
}

/* Whether this is how the records lie; if not, aeron_async._buffers.Records knows what to say. */
static bool lay_out(records_t *records, PyObject *itemsize)
{
    const Py_buffer *view = &records->view;
    if (itemsize != Py_None)
    {
        const Py_ssize_t given = PyLong_CheckExact(itemsize) ? PyLong_AsSsize_t(itemsize) : -1;
        records->itemsize = (size_t)given;
        records->count = given < 1 ? 0 : (size_t)(view->len / given);
        return given >= 1 && view->len % given == 0;
    }
    if (view->ndim < 1 || view->shape[0] < 1 || (view->ndim == 1 && has_single_bytes(view)))
    {
        return false;
    }
    records->count = (size_t)view->shape[0];
    records->itemsize = (size_t)view->len / records->count;
    return true;
}

static int64_t append_records(aa_publication_path_t *self, const records_t *records)
{
    const uint8_t *data = records->view.buf;
    const size_t length = (size_t)records->view.len, itemsize = records->itemsize;
    if (length <= AA_PAYLOAD_LONG)
    {
        return aa_publication_offer_equal(self->publication, data, length, itemsize, itemsize, records->count, NULL);
    }
    int64_t result;
    Py_BEGIN_ALLOW_THREADS;
    result = aa_publication_offer_equal(self->publication, data, length, itemsize, itemsize, records->count, NULL);
    Py_END_ALLOW_THREADS;
    return result;
}

static PyObject *path_offer_array(aa_publication_path_t *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *values[2] = {NULL, Py_None};
    const aa_state_t *state = self->state;
    const aa_signature_t signature = {"offer_array", (PyObject *[]){state->str_records, state->str_itemsize}, 1, 1, 2};
    if (!is_usable(self) || aa_arguments_get(&signature, args, nargs, names, values) < 0)
    {
        return NULL;
    }

    records_t records;
    if (PyObject_GetBuffer(values[0], &records.view, values[1] == Py_None ? PyBUF_ND | PyBUF_FORMAT : PyBUF_SIMPLE) < 0)
    {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
        {
            return NULL;
        }
        records.view.obj = NULL;
    }
    if (records.view.obj == NULL || !lay_out(&records, values[1]))
    {
        PyErr_Clear();
        PyBuffer_Release(&records.view);
        PyObject *arguments[] = {(PyObject *)self, values[0], values[1]};
        return PyObject_VectorcallMethod(state->str_offer_array_anyhow, arguments, 3, NULL);
    }
    const int64_t result = append_records(self, &records);
    PyBuffer_Release(&records.view);
    return appended(self, result, records.itemsize);
}

/* --- the type -------------------------------------------------------------------------------------------- */

#define FAST_METHOD(name, function)                                                                                    \
    {                                                                                                                  \
#name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, AA_DOC_PublicationPath_##name     \
    }

static PyMethodDef path_methods[] = {
    FAST_METHOD(offer, path_offer),
    FAST_METHOD(offer_array, path_offer_array),
    FAST_METHOD(offer_many, path_offer_many),
    {"_is_turn_over", (PyCFunction)path_is_turn_over, METH_VARARGS, AA_DOC_PublicationPath__is_turn_over},
    {"_offer_rest", (PyCFunction)path_offer_rest, METH_VARARGS, AA_DOC_PublicationPath__offer_rest},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot path_slots[] = {
    {Py_tp_doc, AA_DOC_PublicationPath}, {Py_tp_new, path_new},         {Py_tp_init, path_init},
    {Py_tp_dealloc, path_dealloc},       {Py_tp_methods, path_methods}, {0, NULL},
};

static PyType_Spec path_spec = {
    .name = "aeron_async._speedups.PublicationPath",
    .basicsize = sizeof(aa_publication_path_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = path_slots,
};

int aa_publication_path_add(PyObject *module)
{
    PyTypeObject *type = aa_module_make_type(module, &path_spec);
    if (type == NULL)
    {
        return -1;
    }
    int result = aa_coroutine_method_add(module, type, "publish", path_publish, AA_DOC_PublicationPath_publish);
    if (result == 0)
    {
        result = PyModule_AddType(module, type);
    }
    Py_DECREF(type);
    return result;
}
