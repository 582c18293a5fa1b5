/* The hot methods of publications: the base class of aeron_async.publication.Publication. */
#include "module.h"
#include "publication.h"

typedef struct
{
    PyObject_HEAD;
    aa_publication_t *publication; /* a reference of its own; NULL before __init__ */
} path_t;

static PyObject *path_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return type->tp_alloc(type, 0);
}

static int path_init(path_t *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"address", NULL};
    PyObject *address;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:PublicationPath", names, &PyLong_Type, &address))
    {
        return -1;
    }
    void *publication = PyLong_AsVoidPtr(address);
    if (publication == NULL)
    {
        if (!PyErr_Occurred())
        {
            PyErr_SetString(PyExc_ValueError, "no publication lies at address 0");
        }
        return -1;
    }
    aa_publication_release(self->publication);
    self->publication = aa_publication_reference(publication);
    return 0;
}

static void path_dealloc(path_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    aa_publication_release(self->publication);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot path_slots[] = {
    {Py_tp_doc, "The message path of a publication, over the aa_publication_t at an address."},
    {Py_tp_new, path_new},
    {Py_tp_init, path_init},
    {Py_tp_dealloc, path_dealloc},
    {0, NULL},
};

static PyType_Spec path_spec = {
    .name = "aeron_async._speedups.PublicationPath",
    .basicsize = sizeof(path_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = path_slots,
};

int aa_publication_path_add(PyObject *module)
{
    return aa_module_add_type(module, &path_spec);
}
