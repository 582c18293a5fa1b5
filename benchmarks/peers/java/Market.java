import java.nio.ByteOrder;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.SystemEpochNanoClock;

/** A feed of ticks that say when they were sent: what its two ends share. */
final class Market
{
    /** Bytes of a message: the tick, the time of sending, and random ones. */
    static final int SIZE = 64;
    private static final int SENT = Tick.LENGTH;

    private Market()
    {
    }

    /** Nanoseconds of CLOCK_REALTIME, which all processes of a machine share. */
    static long realtime()
    {
        return SystemEpochNanoClock.INSTANCE.nanoTime();
    }

    static long sent(final DirectBuffer buffer, final int offset)
    {
        return buffer.getLong(offset + SENT, ByteOrder.LITTLE_ENDIAN);
    }

    static void sent(final MutableDirectBuffer buffer, final int offset, final long time)
    {
        buffer.putLong(offset + SENT, time, ByteOrder.LITTLE_ENDIAN);
    }
}
