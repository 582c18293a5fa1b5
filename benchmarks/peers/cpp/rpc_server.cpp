#include "modes.hpp"

#include <exception>
#include <iostream>

#include "client.hpp"
#include "control.hpp"

namespace
{
// The length of the request that ends the server.
constexpr int END = 1;

// Idle turns between two looks at standard input, which cost a system call.
constexpr std::uint64_t TURNS = 4096;
} // namespace

void runRpcServer(const Options &options)
{
    Client client(options);
    const auto requests = client.subscription(options.stream);
    const auto replies = client.publication(options.replyStream);
    control::ready();

    std::uint64_t served = 0;
    bool ended = false;
    // A handler must not throw: what went wrong in it is looked at after the poll.
    std::exception_ptr failure;
    const auto serve = [&](auto &buffer, auto offset, auto length, auto &)
    {
        if (length == END)
        {
            ended = true;
            return;
        }
        try
        {
            offer(*replies, buffer.buffer() + offset, length);
            served++;
        }
        catch (...)
        {
            failure = std::current_exception();
        }
    };
    aeron::concurrent::BusySpinIdleStrategy idle;
    for (std::uint64_t turns = 1; !ended;)
    {
        const int polled = requests->poll(serve, options.batch);
        if (failure)
        {
            std::rethrow_exception(failure);
        }
        if (polled == 0)
        {
            idle.idle();
            if (++turns % TURNS == 0 && control::isClosed())
            {
                break;
            }
        }
    }
    std::cout << R"({"messages": )" << served << "}" << std::endl;
}
