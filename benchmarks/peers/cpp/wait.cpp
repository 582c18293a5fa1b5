#include "wait.hpp"

#include <stdexcept>
#include <string>
#include <thread>

void Wait::pause()
{
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    check();
}

void Wait::check()
{
    const auto now = Clock::now();
    if (m_end == Clock::time_point{})
    {
        m_end = now + LIMIT;
    }
    if (now >= m_end)
    {
        throw std::runtime_error("waited " + std::to_string(LIMIT.count()) + " s for " + m_what);
    }
}
