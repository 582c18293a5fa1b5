// Percentiles of any number of durations, in bounded memory.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

class Histogram
{
  public:
    void record(std::chrono::nanoseconds duration)
    {
        const auto value = static_cast<std::uint64_t>(duration.count());
        m_counts[bucket(std::min(value, LONGEST))]++;
        m_total++;
        m_max = std::max(m_max, value);
    }

    // Writes its members of a JSON object.
    friend std::ostream &operator<<(std::ostream &out, const Histogram &histogram)
    {
        return out << R"("p50": )" << histogram.percentile(50) << R"(, "p90": )" << histogram.percentile(90)
                   << R"(, "p99": )" << histogram.percentile(99) << R"(, "p999": )" << histogram.percentile(99.9)
                   << R"(, "max": )" << histogram.m_max;
    }

  private:
    // Durations are kept to this many bits after the leading one: exact below 2 us, within 0.1 % above.
    static constexpr int PRECISION = 10;
    // The longest that is told apart, 2^40 ns, is 18 minutes.
    static constexpr std::uint64_t LONGEST = (UINT64_C(1) << 40) - 1;

    // Each power of two has 2^PRECISION buckets of the same width.
    static std::size_t bucket(std::uint64_t value)
    {
        const int shift = std::max(63 - __builtin_clzll(value | 1) - PRECISION, 0);
        return (static_cast<std::size_t>(shift) << PRECISION) + (value >> shift);
    }

    static std::uint64_t value(std::size_t bucket)
    {
        const std::size_t shift = std::max<std::size_t>(bucket >> PRECISION, 1) - 1;
        return static_cast<std::uint64_t>(bucket - (shift << PRECISION)) << shift;
    }

    // The duration that so many percent do not exceed, as far as it is told apart.
    [[nodiscard]] std::uint64_t percentile(double percent) const
    {
        const double rank = std::max(std::ceil(static_cast<double>(m_total) * percent / 100), 1.0);
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < m_counts.size(); i++)
        {
            seen += m_counts[i];
            if (static_cast<double>(seen) >= rank)
            {
                return value(i);
            }
        }
        return 0;
    }

    std::vector<std::uint64_t> m_counts = std::vector<std::uint64_t>(bucket(LONGEST) + 1);
    std::uint64_t m_total = 0;
    std::uint64_t m_max = 0;
};
