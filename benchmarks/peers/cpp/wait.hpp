// Spinning for something that must come.
#pragma once

#include <chrono>
#include <cstdint>

#include <concurrent/BusySpinIdleStrategy.h>

// A wait that has not had to spin costs nothing.
class Wait
{
  public:
    // What takes longer than this never comes.
    static constexpr std::chrono::seconds LIMIT{30};

    explicit Wait(const char *what) : m_what(what)
    {
    }

    // One turn of a loop that has found nothing.
    void spin()
    {
        m_idle.idle();
        if (++m_spins % SPINS == 0)
        {
            check();
        }
    }

    // One turn of a loop that may leave the processor to others.
    void pause();

  private:
    using Clock = std::chrono::steady_clock;

    // Spins between two looks at the clock.
    static constexpr std::uint32_t SPINS = 4096;

    // Throws once the limit has passed.
    void check();

    const char *m_what;
    std::uint32_t m_spins = 0;
    Clock::time_point m_end{};
    aeron::concurrent::BusySpinIdleStrategy m_idle;
};
