#include "pool.hpp"

#include <array>

#include <sha2.h>

namespace
{
constexpr std::uint64_t SEED = 0x5EEDAE20;

std::uint64_t splitmix64(std::uint64_t &state)
{
    std::uint64_t mixed = state += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
}
} // namespace

Pool::Pool(std::size_t size, bool ticks) : m_bytes(randomBytes(size)), m_size(size), m_ticks(ticks)
{
    if (!ticks)
    {
        for (std::size_t i = 0; i < ENTRIES; i++)
        {
            tick::stamp(m_bytes.data() + i * size, i);
        }
    }
}

std::string Pool::digest(std::size_t size)
{
    const std::vector<std::uint8_t> bytes = randomBytes(size);
    std::array<char, SHA256_DIGEST_STRING_LENGTH> digest{};
    return SHA256Data(bytes.data(), bytes.size(), digest.data());
}

std::vector<std::uint8_t> Pool::randomBytes(std::size_t size)
{
    static_assert(ENTRIES % sizeof(std::uint64_t) == 0, "every pool is a whole number of words");
    std::vector<std::uint8_t> bytes(ENTRIES * size);
    std::uint64_t state = SEED;
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t))
    {
        tick::setField(bytes.data(), i, splitmix64(state));
    }
    return bytes;
}
