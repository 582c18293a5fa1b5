/* The command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A channel and a stream of it. */
typedef struct
{
    const char *channel;
    int32_t id;
} stream_t;

/* How long a run lasts: so many messages, or else so long. */
typedef struct
{
    uint64_t messages;
    int64_t nanoseconds;
} extent_t;

typedef struct
{
    const char *mode;
    const char *aeron_dir;
    /* What messages are sent on, and what replies come on. */
    stream_t stream;
    stream_t reply_stream;
    size_t size;
    /* Messages of a batch, and fragments that one poll may give. */
    uint64_t batch;
    /* Whether ticks are written and read; if not, messages are only counted. */
    bool ticks;
    /* Messages a second; 0: as many as go. */
    uint64_t rate;
    extent_t extent;
} options_t;

options_t options_parse(int argc, char **argv);

/* The time before a run that counts, in which caches and the log's pages are used for the first time. */
static inline extent_t extent_warm_up(void)
{
    return (extent_t){.nanoseconds = 200 * 1000 * 1000};
}

/* How many messages may follow the first done: any number until the time is over. */
static inline uint64_t extent_left(const extent_t *extent, uint64_t done, int64_t elapsed)
{
    if (extent->messages)
    {
        return done < extent->messages ? extent->messages - done : 0;
    }
    return elapsed < extent->nanoseconds ? UINT64_MAX : 0;
}

#endif
