#define _GNU_SOURCE
#include "check.h"

#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIME_LIMIT_S 120

static test_t *first_test;

void test_register(test_t *test)
{
    test_t **link = &first_test;
    while (*link != NULL)
    {
        link = &(*link)->next;
    }
    *link = test;
}

void check_failed(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    _exit(1);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static bool passes(const test_t *test)
{
    char directory[] = "/dev/shm/aa-test-XXXXXX";
    if (mkdtemp(directory) == NULL)
    {
        perror("mkdtemp");
        return false;
    }

    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
    {
        setpgid(0, 0);
        alarm(TIME_LIMIT_S);
        test->run(directory);
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    /* What a test that failed left running; its group is its own. */
    kill(-child, SIGKILL);
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);

    if (WIFSIGNALED(status))
    {
        fprintf(stderr, "%s: %s\n", test->name, strsignal(WTERMSIG(status)));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* With arguments: only tests whose names contain one of them. */
static bool is_wanted(const test_t *test, int count, char **parts)
{
    for (int i = 1; i < count; i++)
    {
        if (strstr(test->name, parts[i]) != NULL)
        {
            return true;
        }
    }
    return count == 1;
}

int main(int argument_count, char **arguments)
{
    int passed = 0, failed = 0;
    for (const test_t *test = first_test; test != NULL; test = test->next)
    {
        if (!is_wanted(test, argument_count, arguments))
        {
            continue;
        }
        const double started = seconds_now();
        const bool is_passed = passes(test);
        printf("%s %s (%.2f s)\n", is_passed ? "ok    " : "FAILED", test->name, seconds_now() - started);
        passed += is_passed;
        failed += !is_passed;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
