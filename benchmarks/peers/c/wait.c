#include "wait.h"

#include <unistd.h>

#include "fail.h"

void wait_check(wait_t *wait)
{
    int64_t now = monotonic();
    if (!wait->end)
    {
        wait->end = now + WAIT_LIMIT;
    }
    if (now >= wait->end)
    {
        fail("waited 30 s for %s", wait->what);
    }
}

void wait_pause(wait_t *wait)
{
    usleep(100);
    wait_check(wait);
}
