import java.util.Locale;

/** Percentiles of any number of durations, in bounded memory. */
final class Histogram
{
    /** Durations are kept to this many bits after the leading one: exact below 2 us, within 0.1 % above. */
    private static final int PRECISION = 10;
    /** The longest that is told apart, 2^40 ns, is 18 minutes. */
    private static final long LONGEST = (1L << 40) - 1;

    private final long[] counts = new long[bucket(LONGEST) + 1];
    private long total;
    private long max;

    void record(final long nanoseconds)
    {
        counts[bucket(Math.min(nanoseconds, LONGEST))]++;
        total++;
        max = Math.max(max, nanoseconds);
    }

    /** Its members of a JSON object. */
    String json()
    {
        return String.format(
            Locale.ROOT,
            "\"p50\": %d, \"p90\": %d, \"p99\": %d, \"p999\": %d, \"max\": %d",
            percentile(50), percentile(90), percentile(99), percentile(99.9), max);
    }

    /** The duration that so many percent do not exceed, as far as it is told apart. */
    private long percentile(final double percent)
    {
        final double rank = Math.max(Math.ceil(total * percent / 100), 1);
        long seen = 0;
        for (int i = 0; i < counts.length; i++)
        {
            seen += counts[i];
            if (seen >= rank)
            {
                return value(i);
            }
        }
        return 0;
    }

    /** Each power of two has 2^PRECISION buckets of the same width. */
    private static int bucket(final long value)
    {
        final int shift = Math.max(63 - Long.numberOfLeadingZeros(value | 1) - PRECISION, 0);
        return (shift << PRECISION) + (int)(value >> shift);
    }

    private static long value(final int bucket)
    {
        final int shift = Math.max((bucket >> PRECISION) - 1, 0);
        return (long)(bucket - (shift << PRECISION)) << shift;
    }
}
