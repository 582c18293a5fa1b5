// The tick in the first bytes of a message, and the sums of those that came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iomanip>
#include <ostream>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ticks are little-endian");

namespace tick
{
inline constexpr std::size_t INSTRUMENT = 0;
inline constexpr std::size_t BID = 4;
inline constexpr std::size_t ASK = 12;
inline constexpr std::size_t SEQUENCE = 20;
inline constexpr std::size_t LENGTH = 28;

template <typename T> T field(const std::uint8_t *message, std::size_t offset)
{
    T value;
    std::memcpy(&value, message + offset, sizeof(value));
    return value;
}

template <typename T> void setField(std::uint8_t *message, std::size_t offset, T value)
{
    std::memcpy(message + offset, &value, sizeof(value));
}

// Writes the tick of a message over its start.
inline void stamp(std::uint8_t *message, std::uint64_t sequence)
{
    const double bid = 100.0 + 0.25 * static_cast<double>(sequence % 64);
    setField(message, INSTRUMENT, static_cast<std::int32_t>(sequence % 1000));
    setField(message, BID, bid);
    setField(message, ASK, bid + 0.25);
    setField(message, SEQUENCE, static_cast<std::int64_t>(sequence));
}
} // namespace tick

// The messages that came, and the sums of their ticks' fields.
class Tally
{
  public:
    // Reads ticks, or only counts.
    explicit Tally(bool ticks) : m_ticks(ticks)
    {
    }

    void take(const std::uint8_t *message)
    {
        m_messages++;
        if (m_ticks)
        {
            m_instrument += tick::field<std::int32_t>(message, tick::INSTRUMENT);
            m_bid += tick::field<double>(message, tick::BID);
            m_ask += tick::field<double>(message, tick::ASK);
            m_sequence += tick::field<std::int64_t>(message, tick::SEQUENCE);
        }
    }

    [[nodiscard]] std::uint64_t messages() const
    {
        return m_messages;
    }

    // Writes its members of a JSON object.
    friend std::ostream &operator<<(std::ostream &out, const Tally &tally)
    {
        return out << std::fixed << std::setprecision(2) << R"("messages": )" << tally.m_messages
                   << R"(, "sum": {"instrument": )" << tally.m_instrument << R"(, "bid": )" << tally.m_bid
                   << R"(, "ask": )" << tally.m_ask << R"(, "sequence": )" << tally.m_sequence << "}";
    }

  private:
    bool m_ticks;
    std::uint64_t m_messages = 0;
    std::int64_t m_instrument = 0;
    double m_bid = 0;
    double m_ask = 0;
    std::int64_t m_sequence = 0;
};
