// The messages that are sent: the same bytes in every client, cut from one stream of random numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tick.hpp"

class Pool
{
  public:
    // Messages of size bytes. With ticks each gets one when it is to be sent; without, each keeps the one it has now.
    Pool(std::size_t size, bool ticks);

    // The digest, in hexadecimal, of all messages of size bytes before any tick.
    static std::string digest(std::size_t size);

    [[nodiscard]] std::size_t size() const
    {
        return m_size;
    }

    // Message number sequence, ready to be sent.
    std::uint8_t *message(std::uint64_t sequence)
    {
        std::uint8_t *message = m_bytes.data() + sequence % ENTRIES * m_size;
        if (m_ticks)
        {
            tick::stamp(message, sequence);
        }
        return message;
    }

  private:
    static constexpr std::size_t ENTRIES = 4096;

    static std::vector<std::uint8_t> randomBytes(std::size_t size);

    std::vector<std::uint8_t> m_bytes;
    std::size_t m_size;
    bool m_ticks;
};
