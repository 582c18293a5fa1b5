/* The CPython face of the C core: what its types share. Each file brings one concept into the module. */
#ifndef AA_MODULE_H
#define AA_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Nothing but references: the garbage collector walks over it as an array. */
typedef struct
{
    PyObject *str_address; /* interned names */
    PyObject *str_check_silence;
    PyObject *str_close;
    PyObject *str_count;
    PyObject *str_data;
    PyObject *str_fail;
    PyObject *str_fragment_limit;
    PyObject *str_handler;
    PyObject *str_itemsize;
    PyObject *str_limit;
    PyObject *str_max_bytes;
    PyObject *str_messages;
    PyObject *str_next_of;
    PyObject *str_offer_array_anyhow;
    PyObject *str_publish_when_possible;
    PyObject *str_records;
    PyObject *str_refuse;
    PyObject *str_refused;
    PyObject *str_release;
    PyObject *str_reserved_value;
    PyObject *str_throw;
    PyObject *str_timeout;
    PyObject *view_of;        /* aeron_async._buffers.view_of */
    PyObject *client_timeout; /* aeron_async._control.CLIENT_TIMEOUT */
    PyObject *zero;
    PyObject *batch_iterator_type;
    PyObject *batch_path_type;
    PyObject *coroutine_method_type;
    PyObject *header_type;
    PyObject *iteration_type;
    PyObject *message_type;
    PyObject *pin_type;
    PyObject *publishing_type;
    PyObject *reader_path_type;
    PyObject *step_type;
} aa_state_t;

static inline aa_state_t *aa_module_state(PyObject *module)
{
    return PyModule_GetState(module);
}

/* The state of this module, from one of its types or a subclass of one; NULL with an exception. It lives as long as
 * the type. */
aa_state_t *aa_module_state_of(PyTypeObject *type);

/* Makes a type of this module: a new reference, or NULL with an exception. */
PyTypeObject *aa_module_make_type(PyObject *module, PyType_Spec *spec);
/* The same, and adds it to the module. */
int aa_module_add_type(PyObject *module, PyType_Spec *spec);

/* One a concept: each adds its types and fills its part of the state. */
int aa_batch_path_add(PyObject *module);
int aa_header_add(PyObject *module);
int aa_iteration_add(PyObject *module);
int aa_payload_add(PyObject *module);
int aa_pin_add(PyObject *module);
int aa_publication_path_add(PyObject *module);
int aa_publishing_add(PyObject *module);
int aa_read_message_add(PyObject *module);
int aa_readable_path_add(PyObject *module);
int aa_reader_path_add(PyObject *module);

#endif
