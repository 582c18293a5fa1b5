#include "modes.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "client.hpp"
#include "control.hpp"
#include "pool.hpp"

using Clock = std::chrono::steady_clock;

namespace
{
Tally exchange(const Link &link, Pool &pool, const Options &options, const Extent &extent)
{
    Tally tally(options.ticks);
    const auto take = [&](auto &buffer, auto offset, auto, auto &) { tally.take(buffer.buffer() + offset); };
    const auto drain = [&] { return link.subscription->poll(take, options.batch); };
    std::uint64_t sent = 0;
    const auto start = Clock::now();
    while (const std::uint64_t left = extent.left(sent, Clock::now() - start))
    {
        const std::uint64_t end = sent + std::min<std::uint64_t>(left, options.batch);
        for (; sent < end; sent++)
        {
            offer(*link.publication, pool.message(sent), pool.size(), drain);
        }
        Wait wait("messages to arrive");
        while (tally.messages() < sent)
        {
            if (drain() == 0)
            {
                wait.spin();
            }
        }
    }
    return tally;
}
} // namespace

void runThroughput(const Options &options)
{
    Pool pool(options.size, options.ticks);
    const Link link(options, options.stream);
    control::ready();

    exchange(link, pool, options, WARM_UP);
    const auto start = Clock::now();
    const Tally tally = exchange(link, pool, options, options.extent);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    std::cout << "{" << tally << R"(, "seconds": )" << std::setprecision(9) << seconds.count() << "}" << std::endl;
}
