#include "control.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "wait.h"

/* Whether there is something to read, if only the end, within the time. */
static bool is_readable(int milliseconds)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, milliseconds) > 0;
}

void control_ready(void)
{
    puts("ready");
    fflush(stdout);

    char line[8] = "";
    size_t length = 0;
    for (;;)
    {
        if (!is_readable(WAIT_LIMIT / 1000000))
        {
            fail("nobody has said go");
        }
        char byte;
        if (read(STDIN_FILENO, &byte, 1) <= 0)
        {
            fail("standard input was closed before it said go");
        }
        if (byte == '\n' && strcmp(line, "go") == 0)
        {
            return;
        }
        if (byte == '\n' || length == sizeof(line) - 1)
        {
            fail("expected 'go'");
        }
        line[length++] = byte;
    }
}

bool control_is_closed(void)
{
    char unexpected;
    return is_readable(0) && read(STDIN_FILENO, &unexpected, 1) <= 0;
}

void control_linger(int milliseconds)
{
    is_readable(milliseconds);
}
