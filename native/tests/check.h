/* The harness: every test is a process of its own, with a time limit and a folder that is removed afterwards. */
#ifndef AA_TESTS_CHECK_H
#define AA_TESTS_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct test
{
    const char *name;
    void (*run)(const char *directory);
    struct test *next;
} test_t;

void test_register(test_t *test);
_Noreturn void check_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define TEST(name)                                                                                                     \
    static void name(const char *directory);                                                                           \
    __attribute__((constructor)) static void register_##name(void)                                                     \
    {                                                                                                                  \
        static test_t test = {#name, name, NULL};                                                                      \
        test_register(&test);                                                                                          \
    }                                                                                                                  \
    static void name(const char *directory __attribute__((unused)))

#define CHECK(condition)                                                                                               \
    do                                                                                                                 \
    {                                                                                                                  \
        if (!(condition))                                                                                              \
        {                                                                                                              \
            check_failed(__FILE__, __LINE__, "not true: %s", #condition);                                              \
        }                                                                                                              \
    } while (0)

#define CHECK_EQUAL(actual, expected)                                                                                  \
    do                                                                                                                 \
    {                                                                                                                  \
        const int64_t is_ = (int64_t)(actual), ought_ = (int64_t)(expected);                                           \
        if (is_ != ought_)                                                                                             \
        {                                                                                                              \
            check_failed(__FILE__, __LINE__, "%s is %" PRId64 ", not %" PRId64, #actual, is_, ought_);                 \
        }                                                                                                              \
    } while (0)

#endif
