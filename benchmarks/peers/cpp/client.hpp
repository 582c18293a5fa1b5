// The Aeron client, and what every mode does with it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include <Aeron.h>

#include "options.hpp"
#include "wait.hpp"

class Client
{
  public:
    explicit Client(const Options &options);

    std::shared_ptr<aeron::ExclusivePublication> publication(const Stream &stream);
    std::shared_ptr<aeron::Subscription> subscription(const Stream &stream);

  private:
    std::shared_ptr<aeron::Aeron> m_aeron;
};

// Returns when somebody subscribes to it.
void waitForSubscriber(const aeron::ExclusivePublication &publication);

// A publication and the subscription that its messages, or the replies to them, come on.
struct Link
{
    // Returns when both are connected.
    Link(const Options &options, const Stream &receiving);

    Client client;
    std::shared_ptr<aeron::Subscription> subscription;
    std::shared_ptr<aeron::ExclusivePublication> publication;
};

// Offers a message until it is taken; refused runs after each time that it was not.
template <typename F>
void offer(aeron::ExclusivePublication &publication, std::uint8_t *message, std::size_t length, F &&refused)
{
    const aeron::concurrent::AtomicBuffer buffer(message, length);
    Wait wait("room in the log");
    for (;;)
    {
        const std::int64_t position = publication.offer(buffer, 0, buffer.capacity());
        if (position > 0)
        {
            return;
        }
        if (position != aeron::BACK_PRESSURED && position != aeron::ADMIN_ACTION && position != aeron::NOT_CONNECTED)
        {
            throw std::runtime_error("offer: " + std::to_string(position));
        }
        refused();
        wait.spin();
    }
}

inline void offer(aeron::ExclusivePublication &publication, std::uint8_t *message, std::size_t length)
{
    offer(publication, message, length, [] {});
}
