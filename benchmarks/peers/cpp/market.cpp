#include "modes.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "client.hpp"
#include "control.hpp"
#include "histogram.hpp"
#include "pool.hpp"

using std::chrono::nanoseconds;

namespace
{
// Bytes of a message: the tick, the time of sending, and random ones.
constexpr std::size_t MESSAGE_SIZE = 64;
// Where the time of sending is.
constexpr std::size_t SENT = tick::LENGTH;
// One message in so many has its delay measured.
constexpr std::int64_t SAMPLING = 64;
// A feed that is over and silent for so long has been received.
constexpr std::chrono::milliseconds SILENCE{500};
// How long a feed stays connected after its last message.
constexpr std::chrono::seconds LINGER{1};

// CLOCK_REALTIME, which all processes of a machine share.
nanoseconds realtime()
{
    return std::chrono::system_clock::now().time_since_epoch();
}

double toSeconds(nanoseconds time)
{
    return std::chrono::duration<double>(time).count();
}

// What a consumer has seen of a feed.
class Feed
{
  public:
    explicit Feed(bool ticks) : m_tally(ticks)
    {
    }

    void take(const std::uint8_t *message)
    {
        m_tally.take(message);
        const auto sequence = tick::field<std::int64_t>(message, tick::SEQUENCE);
        m_gaps += sequence != m_next;
        m_next = sequence + 1;
        if (sequence % SAMPLING == 0)
        {
            const nanoseconds delay = realtime() - nanoseconds(tick::field<std::int64_t>(message, SENT));
            // Never negative but by a step of the clock.
            m_delays.record(std::max(delay, nanoseconds::zero()));
        }
    }

    [[nodiscard]] std::uint64_t messages() const
    {
        return m_tally.messages();
    }

    // Writes its members of a JSON object.
    friend std::ostream &operator<<(std::ostream &out, const Feed &feed)
    {
        return out << feed.m_tally << R"(, "gaps": )" << feed.m_gaps << ", " << feed.m_delays;
    }

  private:
    Tally m_tally;
    std::int64_t m_next = 0;
    std::uint64_t m_gaps = 0;
    Histogram m_delays;
};
} // namespace

void runMarketPublisher(const Options &options)
{
    Pool pool(MESSAGE_SIZE, true);
    Client client(options);
    const auto publication = client.publication(options.stream);
    waitForSubscriber(*publication);
    control::ready();

    const double nanosecondsApart = options.rate == 0 ? 0.0 : 1e9 / static_cast<double>(options.rate);
    std::uint64_t messages = 0;
    std::uint64_t refusals = 0;
    nanoseconds elapsed{};
    aeron::concurrent::BusySpinIdleStrategy idle;
    const nanoseconds start = realtime();
    while (options.extent.left(messages, elapsed) > 0)
    {
        // One reading of the clock serves the pace, the end and the message: it costs as much as sending one.
        const nanoseconds now = realtime();
        elapsed = now - start;
        if (static_cast<double>(elapsed.count()) < static_cast<double>(messages) * nanosecondsApart)
        {
            idle.idle();
            continue;
        }
        std::uint8_t *message = pool.message(messages);
        tick::setField(message, SENT, now.count());
        offer(*publication, message, pool.size(), [&] { refusals++; });
        messages++;
    }
    std::cout << R"({"messages": )" << messages << R"(, "seconds": )" << std::fixed << std::setprecision(9)
              << toSeconds(elapsed) << R"(, "backpressured": )" << refusals << "}" << std::endl;
    control::linger(LINGER);
}

void runMarketConsumer(const Options &options)
{
    using Clock = std::chrono::steady_clock;

    Client client(options);
    const auto subscription = client.subscription(options.stream);
    control::ready();

    Feed feed(options.ticks);
    const auto take = [&](auto &buffer, auto offset, auto, auto &) { feed.take(buffer.buffer() + offset); };
    Wait wait("the first message");
    while (subscription->poll(take, options.batch) == 0)
    {
        wait.spin();
    }
    const auto first = Clock::now();
    auto last = first;
    aeron::concurrent::BusySpinIdleStrategy idle;
    for (;;)
    {
        const int polled = subscription->poll(take, options.batch);
        const auto now = Clock::now();
        if (polled > 0)
        {
            last = now;
        }
        else if (
            subscription->imageCount() == 0 ||
            (options.extent.left(feed.messages(), now - first) == 0 && now - last >= SILENCE))
        {
            break;
        }
        else
        {
            idle.idle();
        }
        if (now - first > options.extent.time + Wait::LIMIT)
        {
            throw std::runtime_error("the feed does not end");
        }
    }
    std::cout << "{" << feed << R"(, "seconds": )" << std::setprecision(9) << toSeconds(last - first) << "}"
              << std::endl;
}
