#include "module.h"

#include "coroutine_method.h"
#include "fingerprint.h"

#include <stddef.h>

static int (*const CONCEPTS[])(PyObject *) = {
    aa_payload_add,     aa_coroutine_method_ready, aa_publishing_add, aa_publication_path_add,
    aa_header_add,      aa_read_message_add,       aa_pin_add,        aa_batch_path_add,
    aa_reader_path_add, aa_readable_path_add,      aa_iteration_add,
};

static const struct
{
    size_t offset;
    const char *text;
} NAMES[] = {
    {offsetof(aa_state_t, str_address), "address"},
    {offsetof(aa_state_t, str_check_silence), "_check_silence"},
    {offsetof(aa_state_t, str_close), "close"},
    {offsetof(aa_state_t, str_count), "count"},
    {offsetof(aa_state_t, str_data), "data"},
    {offsetof(aa_state_t, str_fail), "_fail"},
    {offsetof(aa_state_t, str_fragment_limit), "fragment_limit"},
    {offsetof(aa_state_t, str_handler), "handler"},
    {offsetof(aa_state_t, str_itemsize), "itemsize"},
    {offsetof(aa_state_t, str_limit), "limit"},
    {offsetof(aa_state_t, str_max_bytes), "max_bytes"},
    {offsetof(aa_state_t, str_messages), "messages"},
    {offsetof(aa_state_t, str_next_of), "next_of"},
    {offsetof(aa_state_t, str_offer_array_anyhow), "_offer_array_anyhow"},
    {offsetof(aa_state_t, str_publish_when_possible), "_publish_when_possible"},
    {offsetof(aa_state_t, str_records), "records"},
    {offsetof(aa_state_t, str_refuse), "_refuse"},
    {offsetof(aa_state_t, str_refused), "_refused"},
    {offsetof(aa_state_t, str_release), "release"},
    {offsetof(aa_state_t, str_reserved_value), "reserved_value"},
    {offsetof(aa_state_t, str_throw), "throw"},
    {offsetof(aa_state_t, str_timeout), "timeout"},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define REFERENCES (sizeof(aa_state_t) / sizeof(PyObject *))

_Static_assert(sizeof(aa_state_t) == REFERENCES * sizeof(PyObject *), "the state is walked over as an array");

static int execute(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
    {
        PyObject *name = PyUnicode_InternFromString(NAMES[i].text);
        if (name == NULL)
        {
            return -1;
        }
        *(PyObject **)((char *)state + NAMES[i].offset) = name;
    }
    for (size_t i = 0; i < COUNT_OF(CONCEPTS); i++)
    {
        if (CONCEPTS[i](module) < 0)
        {
            return -1;
        }
    }
    return PyModule_AddStringConstant(module, "FINGERPRINT", aa_build_fingerprint());
}

PyTypeObject *aa_module_make_type(PyObject *module, PyType_Spec *spec)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
}

int aa_module_add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = aa_module_make_type(module, spec);
    if (type == NULL)
    {
        return -1;
    }
    const int result = PyModule_AddType(module, type);
    Py_DECREF(type);
    return result;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **references = PyModule_GetState(module);
    for (size_t i = 0; i < REFERENCES; i++)
    {
        Py_VISIT(references[i]);
    }
    return 0;
}

static int clear(PyObject *module)
{
    PyObject **references = PyModule_GetState(module);
    for (size_t i = 0; i < REFERENCES; i++)
    {
        Py_CLEAR(references[i]);
    }
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "aeron_async._speedups",
    .m_doc = "The message path over the C core, on CPython's own API.",
    .m_size = sizeof(aa_state_t),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

aa_state_t *aa_module_state_of(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &definition);
    return module == NULL ? NULL : aa_module_state(module);
}

PyMODINIT_FUNC PyInit__speedups(void)
{
    return PyModuleDef_Init(&definition);
}
