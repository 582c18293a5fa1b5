// The command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

// A channel and a stream of it.
struct Stream
{
    std::string channel;
    std::int32_t id;
};

// How long a run lasts: so many messages, or else so long.
struct Extent
{
    std::chrono::nanoseconds time{};
    std::optional<std::uint64_t> messages{};

    // How many messages may follow the first done: any number until the time is over.
    [[nodiscard]] std::uint64_t left(std::uint64_t done, std::chrono::nanoseconds elapsed) const
    {
        if (messages)
        {
            return done < *messages ? *messages - done : 0;
        }
        return elapsed < time ? UINT64_MAX : 0;
    }
};

// The time before a run that counts, in which caches and the log's pages are used for the first time.
inline constexpr Extent WARM_UP{std::chrono::milliseconds(200)};

struct Options
{
    std::string mode;
    std::string aeronDir;
    // What messages are sent on, and what replies come on.
    Stream stream{"aeron:ipc", 1001};
    Stream replyStream{"aeron:ipc", 1002};
    std::size_t size = 32;
    // Messages of a batch, and fragments that one poll may give.
    int batch = 1000;
    // Whether ticks are written and read; if not, messages are only counted.
    bool ticks = true;
    // Messages a second; 0: as many as go.
    std::uint64_t rate = 0;
    Extent extent{std::chrono::seconds(1)};

    static Options parse(int argc, char **argv);
};
