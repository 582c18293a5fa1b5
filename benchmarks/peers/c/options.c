#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fail.h"
#include "tick.h"

enum option_name
{
    AERON_DIR,
    CHANNEL,
    STREAM,
    REPLY_CHANNEL,
    REPLY_STREAM,
    SIZE,
    SECONDS,
    MESSAGES,
    BATCH,
    TICK,
    RATE,
};

static const struct option OPTIONS[] = {
    {"aeron-dir", required_argument, NULL, AERON_DIR},
    {"channel", required_argument, NULL, CHANNEL},
    {"stream", required_argument, NULL, STREAM},
    {"reply-channel", required_argument, NULL, REPLY_CHANNEL},
    {"reply-stream", required_argument, NULL, REPLY_STREAM},
    {"size", required_argument, NULL, SIZE},
    {"seconds", required_argument, NULL, SECONDS},
    {"messages", required_argument, NULL, MESSAGES},
    {"batch", required_argument, NULL, BATCH},
    {"tick", required_argument, NULL, TICK},
    {"rate", required_argument, NULL, RATE},
    {0},
};

/* The value of the option as a whole number from least to INT32_MAX. */
static int32_t whole(const char *value, int32_t least)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end || number < least || number > INT32_MAX)
    {
        fail("'%s' is not a whole number from %d to %d", value, least, INT32_MAX);
    }
    return (int32_t)number;
}

static int64_t nanoseconds(const char *value)
{
    char *end;
    double seconds = strtod(value, &end);
    if (end == value || *end || !(seconds >= 0 && seconds <= INT32_MAX))
    {
        fail("'%s' is not a number of seconds", value);
    }
    return llround(seconds * NANOSECONDS);
}

static bool ticks(const char *value)
{
    bool full = strcmp(value, "full") == 0;
    if (!full && strcmp(value, "none") != 0)
    {
        fail("ticks are 'full' or 'none'");
    }
    return full;
}

options_t options_parse(int argc, char **argv)
{
    options_t options = {
        .stream = {"aeron:ipc", 1001},
        .reply_stream = {"aeron:ipc", 1002},
        .size = 32,
        .batch = 1000,
        .ticks = true,
        .extent = {.nanoseconds = NANOSECONDS},
    };
    int name;
    while ((name = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1)
    {
        switch (name)
        {
        case AERON_DIR:
            options.aeron_dir = optarg;
            break;
        case CHANNEL:
            options.stream.channel = optarg;
            break;
        case STREAM:
            options.stream.id = whole(optarg, INT32_MIN);
            break;
        case REPLY_CHANNEL:
            options.reply_stream.channel = optarg;
            break;
        case REPLY_STREAM:
            options.reply_stream.id = whole(optarg, INT32_MIN);
            break;
        case SIZE:
            options.size = (size_t)whole(optarg, TICK_LENGTH);
            break;
        case SECONDS:
            options.extent.nanoseconds = nanoseconds(optarg);
            break;
        case MESSAGES:
            options.extent.messages = (uint64_t)whole(optarg, 1);
            break;
        case BATCH:
            options.batch = (uint64_t)whole(optarg, 1);
            break;
        case TICK:
            options.ticks = ticks(optarg);
            break;
        case RATE:
            options.rate = (uint64_t)whole(optarg, 0);
            break;
        default:
            exit(EXIT_FAILURE);
        }
    }
    if (optind != argc - 1)
    {
        fail("one mode is needed");
    }
    options.mode = argv[optind];
    return options;
}
