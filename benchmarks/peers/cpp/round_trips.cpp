#include "modes.hpp"

#include <chrono>
#include <iostream>

#include "client.hpp"
#include "control.hpp"
#include "histogram.hpp"
#include "pool.hpp"

using Clock = std::chrono::steady_clock;

namespace
{
struct Trips
{
    Tally tally;
    Histogram durations{};
    Clock::duration time{};
};

Trips exchange(const Link &link, Pool &pool, const Options &options, const Extent &extent)
{
    Trips trips{Tally(options.ticks)};
    const auto take = [&](auto &buffer, auto offset, auto, auto &) { trips.tally.take(buffer.buffer() + offset); };
    const auto start = Clock::now();
    while (extent.left(trips.tally.messages(), trips.time) > 0)
    {
        const auto sent = Clock::now();
        offer(*link.publication, pool.message(trips.tally.messages()), pool.size());
        Wait wait("a message to come back");
        while (link.subscription->poll(take, options.batch) == 0)
        {
            wait.spin();
        }
        const auto back = Clock::now();
        trips.durations.record(back - sent);
        trips.time = back - start;
    }
    return trips;
}
} // namespace

void runRoundTrips(const Options &options, const Stream &returning)
{
    Pool pool(options.size, options.ticks);
    const Link link(options, returning);
    control::ready();

    exchange(link, pool, options, WARM_UP);
    const Trips trips = exchange(link, pool, options, options.extent);
    const std::chrono::duration<double> seconds = trips.time;
    std::cout << "{" << trips.tally << R"(, "seconds": )" << std::setprecision(9) << seconds.count() << ", "
              << trips.durations << "}" << std::endl;
}
