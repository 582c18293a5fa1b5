/* The tick in the first bytes of a message, and the sums of those that came. */
#ifndef TICK_H
#define TICK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ticks are little-endian");

enum
{
    TICK_BID = 4,
    TICK_ASK = 12,
    TICK_SEQUENCE = 20,
    TICK_LENGTH = 28,
};

/* The messages that came, and the sums of their ticks' fields. */
typedef struct
{
    uint64_t messages;
    /* Whether ticks are read; if not, messages are only counted. */
    bool ticks;
    int64_t instrument;
    double bid;
    double ask;
    int64_t sequence;
} tally_t;

/* Writes the tick of a message over its start. */
static inline void tick_stamp(uint8_t *message, uint64_t sequence)
{
    int32_t instrument = (int32_t)(sequence % 1000);
    double bid = 100.0 + 0.25 * (double)(sequence % 64);
    double ask = bid + 0.25;
    memcpy(message, &instrument, sizeof(instrument));
    memcpy(message + TICK_BID, &bid, sizeof(bid));
    memcpy(message + TICK_ASK, &ask, sizeof(ask));
    memcpy(message + TICK_SEQUENCE, &sequence, sizeof(sequence));
}

static inline int64_t tick_sequence(const uint8_t *message)
{
    int64_t sequence;
    memcpy(&sequence, message + TICK_SEQUENCE, sizeof(sequence));
    return sequence;
}

static inline void tally_take(tally_t *tally, const uint8_t *message)
{
    tally->messages++;
    if (tally->ticks)
    {
        int32_t instrument;
        double bid;
        double ask;
        memcpy(&instrument, message, sizeof(instrument));
        memcpy(&bid, message + TICK_BID, sizeof(bid));
        memcpy(&ask, message + TICK_ASK, sizeof(ask));
        tally->instrument += instrument;
        tally->bid += bid;
        tally->ask += ask;
        tally->sequence += tick_sequence(message);
    }
}

/* Writes its members of a JSON object. */
void tally_print(const tally_t *tally);

#endif
