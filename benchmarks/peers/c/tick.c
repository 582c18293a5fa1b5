#include "tick.h"

#include <inttypes.h>
#include <stdio.h>

void tally_print(const tally_t *tally)
{
    printf(
        "\"messages\": %" PRIu64 ", \"sum\": {\"instrument\": %" PRId64
        ", \"bid\": %.2f, \"ask\": %.2f, \"sequence\": %" PRId64 "}",
        tally->messages, tally->instrument, tally->bid, tally->ask, tally->sequence);
}
