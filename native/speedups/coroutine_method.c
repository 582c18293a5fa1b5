#include "coroutine_method.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#define END_OF_SIGNATURE "\n--\n\n"

typedef struct
{
    PyObject_HEAD;
    vectorcallfunc vectorcall;
    aa_coroutine_method_t method;
    PyTypeObject *type; /* whose instances it is for */
    PyObject *attributes;
} descriptor_t;

static PyObject *descriptor_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const descriptor_t *self = (const descriptor_t *)callable;
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargs < 1 || !PyObject_TypeCheck(args[0], self->type))
    {
        PyErr_Format(PyExc_TypeError, "%R needs a %s", callable, self->type->tp_name);
        return NULL;
    }
    return self->method(args[0], args + 1, nargs - 1, names);
}

static PyObject *descriptor_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type))
{
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static int descriptor_traverse(descriptor_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->type);
    Py_VISIT(self->attributes);
    return 0;
}

static int descriptor_clear(descriptor_t *self)
{
    Py_CLEAR(self->attributes);
    return 0;
}

static void descriptor_dealloc(descriptor_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    descriptor_clear(self);
    Py_CLEAR(self->type);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef descriptor_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(descriptor_t, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(descriptor_t, attributes), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot descriptor_slots[] = {
    {Py_tp_traverse, descriptor_traverse},
    {Py_tp_clear, descriptor_clear},
    {Py_tp_dealloc, descriptor_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, descriptor_get},
    {Py_tp_members, descriptor_members},
    {0, NULL},
};

static PyType_Spec descriptor_spec = {
    .name = "aeron_async._speedups.CoroutineMethod",
    .basicsize = sizeof(descriptor_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = descriptor_slots,
};

int aa_coroutine_method_ready(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->coroutine_method_type = (PyObject *)aa_module_make_type(module, &descriptor_spec);
    return state->coroutine_method_type == NULL ? -1 : 0;
}

/* What a function in Python would have. */
static PyObject *attributes_of(const char *type_name, const char *name, const char *documentation)
{
    const char *signature = documentation + strlen(name);
    const char *end = strstr(signature, END_OF_SIGNATURE);
    if (end == NULL)
    {
        PyErr_Format(PyExc_SystemError, "no signature in the documentation of %s", name);
        return NULL;
    }
    PyObject *qualified = PyUnicode_FromFormat("%s.%s", strrchr(type_name, '.') + 1, name);
    return Py_BuildValue(
        "{sssNss#ss}", "__name__", name, "__qualname__", qualified, "__text_signature__", signature, end - signature,
        "__doc__", end + strlen(END_OF_SIGNATURE));
}

static int mark(PyObject *descriptor)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *inspect = PyImport_ImportModule("inspect");
    PyObject *marked = inspect == NULL ? NULL : PyObject_CallMethod(inspect, "markcoroutinefunction", "O", descriptor);
    Py_XDECREF(inspect);
    Py_XDECREF(marked);
    return marked == NULL ? -1 : 0;
#else
    PyObject *coroutines = PyImport_ImportModule("asyncio.coroutines");
    PyObject *marker = coroutines == NULL ? NULL : PyObject_GetAttrString(coroutines, "_is_coroutine");
    const int result = marker == NULL ? -1 : PyObject_SetAttrString(descriptor, "_is_coroutine", marker);
    Py_XDECREF(coroutines);
    Py_XDECREF(marker);
    return result;
#endif
}

int aa_coroutine_method_add(
    PyObject *module, PyTypeObject *type, const char *name, aa_coroutine_method_t method, const char *documentation)
{
    PyTypeObject *descriptor_type = (PyTypeObject *)aa_module_state(module)->coroutine_method_type;
    descriptor_t *descriptor = PyObject_GC_New(descriptor_t, descriptor_type);
    if (descriptor == NULL)
    {
        return -1;
    }
    descriptor->vectorcall = descriptor_call;
    descriptor->method = method;
    descriptor->type = (PyTypeObject *)Py_NewRef(type);
    descriptor->attributes = attributes_of(type->tp_name, name, documentation);
    PyObject_GC_Track(descriptor);

    PyObject *object = (PyObject *)descriptor;
    const bool is_added = descriptor->attributes != NULL && mark(object) == 0 &&
                          PyObject_SetAttrString((PyObject *)type, name, object) == 0;
    Py_DECREF(object);
    return is_added ? 0 : -1;
}
