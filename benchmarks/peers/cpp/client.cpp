#include "client.hpp"

namespace
{
// What find returns as soon as that is something.
template <typename F> auto awaited(const char *what, F &&find)
{
    Wait wait(what);
    for (;;)
    {
        if (auto found = find())
        {
            return found;
        }
        wait.pause();
    }
}
} // namespace

// Errors that come later, such as the end of the driver, end the program: that is the client's default handler.
Client::Client(const Options &options)
{
    if (options.aeronDir.empty())
    {
        throw std::invalid_argument("--aeron-dir is missing");
    }
    aeron::Context context;
    context.aeronDir(options.aeronDir);
    m_aeron = aeron::Aeron::connect(context);
}

std::shared_ptr<aeron::ExclusivePublication> Client::publication(const Stream &stream)
{
    const std::int64_t id = m_aeron->addExclusivePublication(stream.channel, stream.id);
    return awaited("a publication", [&] { return m_aeron->findExclusivePublication(id); });
}

std::shared_ptr<aeron::Subscription> Client::subscription(const Stream &stream)
{
    const std::int64_t id = m_aeron->addSubscription(stream.channel, stream.id);
    return awaited("a subscription", [&] { return m_aeron->findSubscription(id); });
}

void waitForSubscriber(const aeron::ExclusivePublication &publication)
{
    awaited("a subscriber", [&] { return publication.isConnected(); });
}

Link::Link(const Options &options, const Stream &receiving)
    : client(options), subscription(client.subscription(receiving)), publication(client.publication(options.stream))
{
    waitForSubscriber(*publication);
    awaited("a publisher", [&] { return subscription->isConnected(); });
}
