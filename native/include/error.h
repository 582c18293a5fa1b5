/* Results, and an error that is filled in where it happens. */
#ifndef AA_ERROR_H
#define AA_ERROR_H

#include <stdint.h>

#define AA_OK 0
#define AA_NOT_READY -10
#define AA_FULL -11
#define AA_NOTHING -12
#define AA_LAPPED -13
#define AA_CORRUPT -14
#define AA_VERSION -15
#define AA_SYSTEM -16
#define AA_ARGUMENT -17

#define AA_NOT_CONNECTED -1
#define AA_BACK_PRESSURED -2
#define AA_ADMIN_ACTION -3
#define AA_CLOSED -4
#define AA_MAX_POSITION_EXCEEDED -5
#define AA_ERROR -6
#define AA_MESSAGE_TOO_LONG -7

typedef struct
{
    int32_t code;
    int32_t system;
    char text[480];
} aa_error_t;

/* Both return the code, so that a failing call can end with one of them. error may be NULL. */
int aa_error_set(aa_error_t *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
int aa_error_system(aa_error_t *error, int system, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
