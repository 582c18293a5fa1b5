#include "error.h"

#include <stdarg.h>
#include <stdio.h>

static int fill(aa_error_t *error, int code, int system, const char *format, va_list arguments)
{
    if (error != NULL)
    {
        error->code = code;
        error->system = system;
        vsnprintf(error->text, sizeof(error->text), format, arguments);
    }
    return code;
}

int aa_error_set(aa_error_t *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = fill(error, code, 0, format, arguments);
    va_end(arguments);
    return result;
}

int aa_error_system(aa_error_t *error, int system, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = fill(error, AA_SYSTEM, system, format, arguments);
    va_end(arguments);
    return result;
}
