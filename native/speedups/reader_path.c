#include "reader_path.h"

#include "batch_path.h"
#include "header.h"
#include "payload_view.h"

/* What an iteration reads ahead of its caller. */
#define AHEAD_MESSAGES 256
#define AHEAD_BYTES (256 * 1024)

/* What one poll copies for its handler at most; the next one reads on. */
#define POLL_BYTES ((size_t)4 << 20)

/* A scan that is likely to copy more gives up the GIL. */
#define LONG_SCAN (256 * 1024)

/* --- life ------------------------------------------------------------------------------------------------ */

static PyObject *reader_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    aa_reader_path_t *self = (aa_reader_path_t *)type->tp_alloc(type, 0);
    if (self != NULL)
    {
        self->state = aa_module_state_of(type);
        self->batch = aa_batch_create();
        if (self->batch == NULL)
        {
            Py_DECREF(self);
            PyErr_SetString(PyExc_MemoryError, "no memory for a batch");
            return NULL;
        }
    }
    return (PyObject *)self;
}

static int reader_init(aa_reader_path_t *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"batch_type", NULL};
    PyObject *batch_type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:ReaderPath", names, &PyType_Type, &batch_type))
    {
        return -1;
    }
    if (!PyType_IsSubtype((PyTypeObject *)batch_type, (PyTypeObject *)self->state->batch_path_type))
    {
        PyErr_SetString(PyExc_TypeError, "batch_type is no subclass of BatchPath");
        return -1;
    }
    Py_XSETREF(self->batch_type, Py_NewRef(batch_type));
    return 0;
}

static int reader_traverse(aa_reader_path_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->batch_type);
    Py_VISIT(self->owner);
    Py_VISIT(self->ahead_source);
    Py_VISIT(self->payload_view);
    Py_VISIT(self->header);
    return 0;
}

static int reader_clear(aa_reader_path_t *self)
{
    Py_CLEAR(self->batch_type);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->ahead_source);
    Py_CLEAR(self->payload_view);
    Py_CLEAR(self->header);
    return 0;
}

static void reader_dealloc(aa_reader_path_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    reader_clear(self);
    aa_batch_release(self->batch);
    type->tp_free(self);
    Py_DECREF(type);
}

/* --- the rare cases, in Python --------------------------------------------------------------------------- */

/* Calls a method that raises; -1. */
static int raise_by(aa_reader_path_t *self, PyObject *method)
{
    PyObject *result = PyObject_CallMethodNoArgs((PyObject *)self, method);
    if (result != NULL)
    {
        Py_DECREF(result);
        PyErr_Format(PyExc_SystemError, "%U() has raised nothing", method);
    }
    return -1;
}

int aa_reader_path_refuse(aa_reader_path_t *self)
{
    return raise_by(self, self->state->str_refuse);
}

int aa_reader_path_check_silence(aa_reader_path_t *self, PyObject *source, const aa_images_t *images)
{
    /* What can be read is not closed. */
    if (images->count > 1 || (images->count == 1 && !aa_image_is_closed(images->images[0])))
    {
        return 0;
    }
    PyObject *result = PyObject_CallMethodOneArg((PyObject *)self, self->state->str_check_silence, source);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* --- scans ----------------------------------------------------------------------------------------------- */

static void drop_ahead(aa_reader_path_t *self)
{
    aa_batch_clear(self->batch);
    Py_CLEAR(self->ahead_source);
}

static size_t next_start(aa_reader_path_t *self, size_t count)
{
    if (count < 2)
    {
        return 0;
    }
    self->start = (self->start + 1) % count;
    return self->start;
}

static bool has_frames(const aa_images_t *images)
{
    for (size_t i = 0; i < images->count; i++)
    {
        if (aa_image_has_frame(images->images[i]))
        {
            return true;
        }
    }
    return false;
}

/* As aa_batch_scan. */
static int scan_from(
    aa_reader_path_t *self, const aa_images_t *images, size_t start, size_t fragments, size_t messages,
    size_t max_bytes)
{
    if (max_bytes <= LONG_SCAN || self->batch->messages->nbytes <= LONG_SCAN)
    {
        return aa_batch_scan(
            self->batch, images->images, images->count, start, fragments, messages, max_bytes, &self->error);
    }
    /* The images may be exchanged for others meanwhile. */
    const aa_images_t kept = {Py_NewRef(images->handles), images->images, images->count};
    int code;
    Py_BEGIN_ALLOW_THREADS code =
        aa_batch_scan(self->batch, kept.images, kept.count, start, fragments, messages, max_bytes, &self->error);
    Py_END_ALLOW_THREADS Py_DECREF(kept.handles);
    return code;
}

/* Reads on from the committed positions. 0, or -1 with an exception. */
static int scan(aa_reader_path_t *self, const aa_images_t *images, size_t messages, size_t max_bytes)
{
    Py_CLEAR(self->ahead_source);
    const int code = scan_from(self, images, next_start(self, images->count), SIZE_MAX, messages, max_bytes);
    return code != AA_OK && self->batch->count == 0 ? raise_by(self, self->state->str_fail) : 0;
}

static PyObject *take_batch(aa_reader_path_t *self)
{
    aa_received_t *received = aa_batch_take(self->batch);
    if (received == NULL)
    {
        PyErr_SetString(PyExc_MemoryError, "no memory for a batch");
        return NULL;
    }
    return aa_batch_path_new((PyTypeObject *)self->batch_type, received);
}

PyObject *aa_reader_path_read_batch(
    aa_reader_path_t *self, PyObject *source, const aa_images_t *images, size_t limit, size_t max_bytes)
{
    if (scan(self, images, limit, max_bytes) < 0)
    {
        return NULL;
    }
    PyObject *batch = take_batch(self);
    if (batch != NULL)
    {
        aa_batch_commit(self->batch, self->batch->count);
    }
    const bool is_empty = self->batch->count == 0;
    aa_batch_clear(self->batch);
    if (batch != NULL && is_empty && aa_reader_path_check_silence(self, source, images) < 0)
    {
        Py_CLEAR(batch);
    }
    return batch;
}

/* --- polls ----------------------------------------------------------------------------------------------- */

/* Where the payloads of a poll lie. */
typedef struct
{
    const aa_holding_t *holding;
    void *memory;
} place_t;

static bool hand_out(
    aa_reader_path_t *self, PyObject *handler, const uint8_t *payload, Py_ssize_t length, const aa_row_t *row,
    const place_t *place)
{
    if (!aa_payload_view_set(self->state, &self->payload_view, payload, length) ||
        !aa_header_set(self->state, &self->header, row))
    {
        return false;
    }
    PyObject *arguments[] = {NULL, self->payload_view, self->header};
    PyObject *result = PyObject_Vectorcall(handler, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    const bool is_ended = aa_payload_view_end(self->state, &self->payload_view, place->holding, place->memory);
    Py_XDECREF(result);
    return is_ended && result != NULL;
}

/* Messages of one frame each, which most are, are handed out where they lie in the log. Stops at whatever else is
 * there. The number of fragments, or -1. */
static Py_ssize_t poll_in_place(aa_reader_path_t *self, aa_image_t *image, PyObject *handler, size_t limit)
{
    int64_t position;
    if (!aa_image_has_frame(image) || aa_image_is_closed(image) || image->builder.is_active ||
        aa_image_begin_read(image, &position, NULL) != AA_OK)
    {
        return 0;
    }
    aa_log_t *log = image->log;
    const place_t place = {&AA_HOLDING_LOG, log};
    const int64_t term_end = position + log->info.term_length;
    const int64_t stream_end = aa_log_max_possible_position(log);
    const int64_t end = term_end < stream_end ? term_end : stream_end;
    Py_ssize_t fragments = 0;
    bool is_good = true;
    aa_read_frame_t frame;
    while (is_good && position < end && (size_t)fragments < limit && aa_image_whole_message(image, position, &frame))
    {
        aa_row_t row;
        aa_row_set(&row, log, frame.header, frame.length, frame.next_position);
        row.fragment_end = 0;
        is_good = hand_out(
            self, handler, (const uint8_t *)(frame.header + 1), frame.length - AA_FRAME_HEADER_LENGTH, &row, &place);
        position = frame.next_position;
        fragments++;
    }
    aa_image_advance(image, position);
    return is_good ? fragments : -1;
}

/* Hands out what the last scan found, which is committed as far as it was. */
static bool poll_found(aa_reader_path_t *self, PyObject *handler)
{
    aa_batch_t *batch = self->batch;
    const aa_received_t *received = batch->messages;
    const place_t place = {&AA_HOLDING_RECEIVED, batch->messages};
    size_t taken = 0;
    bool is_good = true;
    while (is_good && taken < batch->count)
    {
        const size_t i = taken++;
        const int32_t begin = received->offsets[i];
        is_good = hand_out(
            self, handler, received->data + begin, received->offsets[i + 1] - begin, &received->rows[i], &place);
    }
    aa_batch_commit(batch, taken);
    aa_batch_clear(batch);
    return is_good;
}

static Py_ssize_t poll_images(aa_reader_path_t *self, const aa_images_t *images, PyObject *handler, size_t limit)
{
    const size_t start = next_start(self, images->count);
    Py_ssize_t fragments = 0;
    for (size_t i = 0; i < images->count && (size_t)fragments < limit; i++)
    {
        const size_t next = start + i;
        const Py_ssize_t found = poll_in_place(
            self, images->images[next < images->count ? next : next - images->count], handler,
            limit - (size_t)fragments);
        if (found < 0)
        {
            return -1;
        }
        fragments += found;
    }
    if ((size_t)fragments == limit || !has_frames(images))
    {
        return fragments;
    }

    /* What is in several frames, and whatever else there may be. */
    if (scan_from(self, images, start, limit - (size_t)fragments, SIZE_MAX, POLL_BYTES) != AA_OK && fragments == 0 &&
        self->batch->count == 0)
    {
        return raise_by(self, self->state->str_fail);
    }
    fragments += (Py_ssize_t)self->batch->fragments;
    return poll_found(self, handler) ? fragments : -1;
}

Py_ssize_t aa_reader_path_poll(aa_reader_path_t *self, const aa_images_t *images, PyObject *handler, size_t limit)
{
    if (self->ahead_source != NULL)
    {
        drop_ahead(self);
    }
    /* Handlers may bring about that the images are exchanged for others. */
    const aa_images_t kept = {Py_NewRef(images->handles), images->images, images->count};
    const Py_ssize_t fragments = poll_images(self, &kept, handler, limit);
    if (self->payload_view != NULL)
    {
        aa_payload_view_rest(self->payload_view);
    }
    Py_DECREF(kept.handles);
    return fragments;
}

/* --- reading ahead --------------------------------------------------------------------------------------- */

int aa_reader_path_next_ahead(aa_reader_path_t *self, PyObject *source, const aa_images_t *images)
{
    if (self->ahead_source == source)
    {
        return 1;
    }
    if (scan(self, images, AHEAD_MESSAGES, AHEAD_BYTES) < 0)
    {
        return -1;
    }
    if (self->batch->count == 0)
    {
        aa_batch_clear(self->batch);
        return 0;
    }
    self->ahead_source = Py_NewRef(source);
    self->ahead_index = 0;
    return 1;
}

void aa_reader_path_advance(aa_reader_path_t *self)
{
    aa_batch_commit(self->batch, ++self->ahead_index);
    if (self->ahead_index == self->batch->count)
    {
        drop_ahead(self);
    }
}

/* --- methods --------------------------------------------------------------------------------------------- */

static PyObject *reader_claim(aa_reader_path_t *self, PyObject *owner)
{
    if (aa_reader_path_claim(self, owner) < 0)
    {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *reader_release(aa_reader_path_t *self, PyObject *Py_UNUSED(ignored))
{
    aa_reader_path_release(self);
    Py_RETURN_NONE;
}

/* Every step commits what it delivers. */
static PyObject *reader_settle(aa_reader_path_t *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    Py_RETURN_NONE;
}

static PyObject *reader_drop_ahead(aa_reader_path_t *self, PyObject *Py_UNUSED(ignored))
{
    drop_ahead(self);
    Py_RETURN_NONE;
}

static PyObject *reader_has_ahead(aa_reader_path_t *self, PyObject *source)
{
    return PyBool_FromLong(self->ahead_source == source);
}

static PyObject *reader_next_start(aa_reader_path_t *self, PyObject *argument)
{
    const size_t count = PyLong_AsSize_t(argument);
    return count == (size_t)-1 && PyErr_Occurred() ? NULL : PyLong_FromSize_t(next_start(self, count));
}

static PyObject *reader_take_batch(aa_reader_path_t *self, PyObject *Py_UNUSED(ignored))
{
    return take_batch(self);
}

static PyObject *reader_batch_address(aa_reader_path_t *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(self->batch);
}

static PyObject *reader_error_address(aa_reader_path_t *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(&self->error);
}

static PyGetSetDef reader_properties[] = {
    {"_batch_address", (getter)reader_batch_address, NULL, NULL, NULL},
    {"_error_address", (getter)reader_error_address, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef reader_methods[] = {
    {"claim", (PyCFunction)reader_claim, METH_O, NULL},
    {"release", (PyCFunction)reader_release, METH_NOARGS, NULL},
    {"settle", (PyCFunction)reader_settle, METH_NOARGS, NULL},
    {"drop_ahead", (PyCFunction)reader_drop_ahead, METH_NOARGS, NULL},
    {"has_ahead", (PyCFunction)reader_has_ahead, METH_O, NULL},
    {"next_start", (PyCFunction)reader_next_start, METH_O, NULL},
    {"take_batch", (PyCFunction)reader_take_batch, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "What all the ways to read share: the native batch, who reads, the turn among the images, the "
                "read-ahead."},
    {Py_tp_new, reader_new},
    {Py_tp_init, reader_init},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_getset, reader_properties},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "aeron_async._speedups.ReaderPath",
    .basicsize = sizeof(aa_reader_path_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};

int aa_reader_path_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->reader_path_type = (PyObject *)aa_module_make_type(module, &reader_spec);
    return state->reader_path_type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)state->reader_path_type);
}
