/* The one way in which this program fails. */
#ifndef FAIL_H
#define FAIL_H

/* Says why on standard error and ends the program. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
