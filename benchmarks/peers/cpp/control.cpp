#include "control.hpp"

#include <iostream>
#include <stdexcept>
#include <string>

#include <poll.h>
#include <unistd.h>

#include "wait.hpp"

namespace
{
// Whether there is something to read, if only the end, within the time.
bool isReadable(std::chrono::milliseconds limit)
{
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, static_cast<int>(limit.count())) > 0;
}

std::string line()
{
    std::string line;
    for (;;)
    {
        if (!isReadable(Wait::LIMIT))
        {
            throw std::runtime_error("nobody has said go");
        }
        char byte = 0;
        if (read(STDIN_FILENO, &byte, 1) <= 0)
        {
            throw std::runtime_error("standard input was closed before it said go");
        }
        if (byte == '\n')
        {
            return line;
        }
        line += byte;
    }
}
} // namespace

namespace control
{
void ready()
{
    std::cout << "ready" << std::endl;
    if (const std::string said = line(); said != "go")
    {
        throw std::runtime_error("expected 'go', not '" + said + "'");
    }
}

bool isClosed()
{
    char unexpected = 0;
    return isReadable(std::chrono::milliseconds::zero()) && read(STDIN_FILENO, &unexpected, 1) <= 0;
}

void linger(std::chrono::milliseconds limit)
{
    isReadable(limit);
}
} // namespace control
