import java.util.concurrent.TimeUnit;

/**
 * How long a run lasts.
 *
 * @param messages    that it takes, or 0 for as many as there is time for.
 * @param nanoseconds that it takes otherwise.
 */
record Extent(long messages, long nanoseconds)
{
    /** The time before a run that counts, in which the code gets compiled and the log's pages are first used. */
    static final Extent WARM_UP = new Extent(0, TimeUnit.SECONDS.toNanos(1));

    /** How many messages may follow the first {@code done}: any number until the time is over. */
    long left(final long done, final long elapsed)
    {
        if (messages > 0)
        {
            return Math.max(messages - done, 0);
        }
        return elapsed < nanoseconds ? Long.MAX_VALUE : 0;
    }
}
