import java.util.Locale;

import io.aeron.logbuffer.FragmentHandler;

/** Modes {@code latency} and {@code rpc-client}: one message at a time, there and back. */
final class RoundTrips
{
    private final Client.Link link;
    private final Pool pool;
    private final int batch;
    private final Tally tally;
    private final FragmentHandler handler;
    private final Histogram durations = new Histogram();

    private RoundTrips(final Client.Link link, final Pool pool, final Options options)
    {
        this.link = link;
        this.pool = pool;
        batch = options.batch;
        tally = new Tally(options.ticks);
        handler = (buffer, offset, length, header) -> tally.take(buffer, offset);
    }

    /**
     * @param returning what messages come back on: the stream they are sent on, or that of a server's replies.
     */
    static void run(final Options options, final Options.Stream returning) throws InterruptedException
    {
        final Pool pool = new Pool(options.size, options.ticks);
        try (Client.Link link = Client.Link.connect(options, returning))
        {
            Control.ready();
            new RoundTrips(link, pool, options).exchange(Extent.WARM_UP);
            final RoundTrips run = new RoundTrips(link, pool, options);
            final double seconds = run.exchange(options.extent) / 1e9;
            System.out.printf(
                Locale.ROOT, "{%s, \"seconds\": %.9f, %s}%n", run.tally.json(), seconds, run.durations.json());
        }
    }

    /** Returns the nanoseconds that it took. */
    private long exchange(final Extent extent)
    {
        final long start = System.nanoTime();
        long elapsed = 0;
        while (extent.left(tally.messages(), elapsed) > 0)
        {
            elapsed = trip() - start;
        }
        return elapsed;
    }

    /** Returns the time at which the message was back. */
    private long trip()
    {
        final long sent = System.nanoTime();
        Client.offer(link.publication(), pool.buffer, pool.offset(tally.messages()), pool.size);
        final Wait wait = new Wait("a message to come back");
        while (link.subscription().poll(handler, batch) == 0)
        {
            wait.spin();
        }
        final long back = System.nanoTime();
        durations.record(back - sent);
        return back;
    }
}
